//! Units, questions, names of columns, missing values, standard input and output, and what one does with a fit.

use crate::support::{Folder, Numbers, TINY, column, error, quakes};
use std::io::Write;
use std::process::{Output, Stdio};

/// Arguments of a quick fit.
fn fit<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["fit"], arguments, &["--out", "run"], &TINY[..]].concat()
}

/// Rows of one number around two values, modulo a period.
fn around(name: &str, rows: usize, period: f64) -> String {
    let mut numbers = Numbers::new(3);
    let mut text = format!("{name}\n");
    for _ in 0..rows {
        let middle = if numbers.uniform() < 0.5 { 0.0 } else { 0.4 };
        text += &format!("{}\n", (period * (middle + 0.08 * numbers.normal())).rem_euclid(period));
    }
    text
}

/// Runs the program with something on standard input.
fn piped(folder: &Folder, arguments: &[&str], input: &str) -> Output {
    let mut command = folder.command(arguments);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// The question names whole command lines, and the first of them works.
#[test]
fn a_clock_is_asked_about_with_command_lines_that_work() {
    let folder = Folder::new("units-clock");
    folder.file("clock.csv", around("t", 120, 24.0));
    let output = folder.minvel(&fit(&["clock.csv", "--manifold", "sphere:1"]));
    let message = error(&output);
    assert_eq!((output.status.code(), folder.list("")), (Some(2), vec!["clock.csv".to_string()]), "{message}");
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|l| l.starts_with("minvel fit clock.csv")).collect();
    assert!(
        lines.len() == 3 && lines[0].contains("--units hours") && lines[1].contains("--units degrees"),
        "{message}"
    );
    assert!(lines[2].contains("--period P"), "{message}");
    let words: Vec<&str> =
        lines[0].split("  ").next().unwrap().split(' ').skip(1).map(|w| w.trim_matches('\'')).collect();
    let text = folder.good(&words);
    assert!(text.contains("sphere:1 from t as angles in hours"), "{text}");
    folder.good(&["sample", "run", "-n", "200", "--out", "drawn.csv"]);
    let drawn = column(&folder.path("drawn.csv"), "t");
    assert!(drawn.iter().all(|t| (0.0..24.0).contains(t)) && drawn.iter().any(|t| *t > 20.0), "{drawn:?}");
}

#[test]
fn periods_and_axes_are_fitted_and_score_integrates_to_one_over_them() {
    let folder = Folder::new("units-axes");
    folder.file("axes.csv", around("strike", 200, 180.0));
    let output = folder.minvel(&fit(&["axes.csv", "--manifold", "sphere:1", "--units", "degrees"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("axes or directions?") && error(&output).contains("--axial=false"));
    let text = folder.good(&fit(&["axes.csv", "--manifold", "sphere:1", "--units", "degrees", "--axial"]));
    assert!(text.contains("projective:1"), "{text}");
    let report = std::fs::read_to_string(folder.path("run/report.md")).unwrap();
    assert!(report.contains("x and −x are the same point") && report.contains("one half"), "{report}");
    let grid = folder.json(&["grid", "run", "--out", "grid.csv"]);
    let (total, cells) = (grid["total"].as_f64().unwrap(), grid["cells"].as_u64());
    assert!((total - 1.0).abs() < 0.02 && cells == Some(360), "{grid}");
    let (angles, logs) = (column(&folder.path("grid.csv"), "strike"), column(&folder.path("grid.csv"), "log_density"));
    assert!(angles.iter().all(|a| (0.0..180.0).contains(a)) && angles.windows(2).all(|w| w[0] < w[1]));
    // The same by hand: steps of half a degree, in radians; and half a turn further nothing changes.
    let sum: f64 = logs.iter().map(|l| l.exp() * 0.5f64.to_radians()).sum();
    assert!((sum - total).abs() < 1e-6, "{sum}");
    let rows = |shift: f64| angles.iter().map(|a| format!("{}\n", a + shift)).collect::<String>();
    folder.file("turned.csv", format!("strike\n{}", rows(180.0)));
    folder.good(&["score", "run", "turned.csv", "--out", "scored.csv"]);
    let turned = column(&folder.path("scored.csv"), "log_density");
    assert!(turned.iter().zip(&logs).all(|(a, b)| (a - b).abs() < 1e-4));

    folder.file("week.csv", around("day", 100, 7.0));
    let week = [&["fit", "week.csv", "--manifold", "torus:1", "--period", "7", "--out", "week"], &TINY[..]].concat();
    assert!(folder.good(&week).contains("torus:1 from day as angles with period 7"));
}

#[test]
fn radians_said_to_be_degrees_are_refused_by_fit_and_doubted_by_score_and_evaluate() {
    let folder = Folder::new("units-radians");
    folder.file("radians.csv", around("a", 100, std::f64::consts::TAU));
    folder.file("degrees.csv", around("a", 100, 360.0));
    let output = folder.minvel(&fit(&["radians.csv", "--manifold", "sphere:1", "--units", "degrees"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("look like radians") && error(&output).contains("--units radians"));
    folder.good(&fit(&["degrees.csv", "--manifold", "sphere:1", "--units", "degrees"]));
    for command in [&["score", "run", "radians.csv", "--out", "s.csv"][..], &["evaluate", "run", "radians.csv"]] {
        let output = folder.minvel(command);
        assert!(output.status.success() && error(&output).contains("if they are radians"), "{}", error(&output));
    }
}

#[test]
fn columns_not_used_are_named_and_settings_are_explained() {
    let folder = Folder::new("units-unused");
    folder.file("quakes.csv", quakes(200, 1));
    let output = folder.minvel(&fit(&["quakes.csv", "--seed", "5"]));
    assert!(output.status.success() && error(&output).contains("not used: place, depth"), "{}", error(&output));
    assert!(std::fs::read_to_string(folder.path("run/report.md")).unwrap().contains("Columns not used: place, depth."));
    let config = std::fs::read_to_string(folder.path("run/config.toml")).unwrap();
    for line in [
        "seed = 5                 # random seed",
        "# number of evaluations of the validation objective",
        "draws = 2000             # samples of the kernels",
    ] {
        assert!(config.contains(line), "`{line}` is not in\n{config}");
    }
    assert!(!config.contains("[quick]"), "{config}");
    // The file gives the same fit.
    let again = ["fit", "quakes.csv", "--config", "run/config.toml", "--out", "again"];
    folder.good(&again);
    let file = |name: &str| std::fs::read(folder.path(name)).unwrap();
    assert!(file("run/model.safetensors") == file("again/model.safetensors"), "config.toml gives another model");
    assert_eq!(config, String::from_utf8(file("again/config.toml")).unwrap());
    let help = folder.good(&["fit", "--help"]);
    assert!(help.contains("shrinkage = 0.003        # of the second moments"), "{help}");
    assert!(!folder.good(&["fit", "-h"]).contains("shrinkage"));
}

/// Samples of a model of columns by number could once not be scored: "there is no column `3`".
#[test]
fn files_without_names_go_around_and_columns_can_be_named() {
    let folder = Folder::new("units-names");
    let mut numbers = Numbers::new(5);
    let rows: String = (0..100)
        .map(|i| format!("{i} {:.2} {:.2}\n", -60.0 + 20.0 * numbers.normal(), 100.0 + 30.0 * numbers.normal()))
        .collect();
    folder.file("torsions.txt", &rows);
    let torus = ["torsions.txt", "--manifold", "torus:2", "--units", "degrees", "--columns"];
    folder.good(&fit(&[&torus[..], &["2,3"]].concat()));
    for file in ["drawn.csv", "drawn.npy"] {
        folder.good(&["sample", "run", "-n", "20", "--out", file]);
        folder.good(&["score", "run", file, "--out", "scored.csv"]);
        assert_eq!(column(&folder.path("scored.csv"), "log_density").len(), 20);
    }
    let named = [&["fit"], &torus[..], &["phi=2,psi=3", "--out", "named"], &TINY[..]].concat();
    assert!(folder.good(&named).contains("torus:2 from phi, psi as angles"));
    let score = |columns: &str, out: &str| {
        folder.good(&["score", "named", "torsions.txt", "--columns", columns, "--out", out]);
        column(&folder.path(out), "log_density")
    };
    let one = score("phi=2,psi=3", "a.csv");
    assert_eq!(one, score("psi=3,phi=2", "b.csv"), "names decide, not the order");
    assert_eq!(one, score("2,3", "c.csv"));
    assert_ne!(one, score("3,2", "d.csv"));
}

#[test]
fn rows_that_miss_a_number_keep_their_place_without_a_score() {
    let folder = Folder::new("units-missing");
    folder.file("quakes.csv", quakes(100, 1));
    folder.good(&fit(&["quakes.csv"]));
    folder.file("places.csv", "latitude,longitude,name\n38,142,a\n,100,b\n10,NA,c\n-40,-70,d\n");
    let text = folder.good(&["score", "run", "places.csv", "--level", "--out", "scored.csv"]);
    assert!(
        text.contains("4 rows") && text.contains("2 rows with missing values") && text.contains("10000 samples"),
        "{text}"
    );
    let scored = std::fs::read_to_string(folder.path("scored.csv")).unwrap();
    let lines: Vec<&str> = scored.lines().collect();
    assert_eq!(lines[0], "latitude,longitude,name,log_density,energy,level");
    assert!(lines[2].ends_with(",100,b,,,") && lines[3] == "10,NA,c,,,", "{scored}");
    let level: f64 = lines[1].rsplit(',').next().unwrap().parse().unwrap();
    assert!((0.0..1.0).contains(&level), "{scored}");
    let value = folder.json(&["score", "run", "places.csv", "--out", "scored.parquet"]);
    assert_eq!((value["rows"].as_u64(), value["missing"].as_u64()), (Some(4), Some(2)));
    folder.file("gaps.csv", "latitude,longitude\n38,142\n,100\n-40,-70\n");
    folder.good(&["score", "run", "gaps.csv", "--out", "scored.npy"]);
    let output = folder.minvel(&["evaluate", "run", "gaps.csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("line 3") && error(&output).contains("empty"), "{}", error(&output));
}

/// `evaluate` on one row once printed p = NaN.
#[test]
fn a_test_of_few_rows_is_none() {
    let folder = Folder::new("units-few");
    folder.file("quakes.csv", quakes(100, 1));
    folder.good(&fit(&["quakes.csv"]));
    for rows in [1, 7] {
        folder.file("few.csv", quakes(rows, 9));
        let text = folder.good(&["evaluate", "run", "few.csv"]);
        assert!(
            text.contains(&format!("no test of fit: {rows} rows, at least 8 needed")) && !text.contains("NaN"),
            "{text}"
        );
        assert!(folder.json(&["evaluate", "run", "few.csv"])["goodness"]["p_value"].is_null());
    }
    folder.file("enough.csv", quakes(8, 9));
    assert!(folder.json(&["evaluate", "run", "enough.csv"])["goodness"]["p_value"].is_number());
}

#[test]
fn a_dash_is_standard_input_and_output() {
    let folder = Folder::new("units-dash");
    let text = quakes(100, 1);
    folder.file("quakes.csv", &text);
    folder.good(&fit(&["quakes.csv"]));
    let output = piped(&folder, &[&["fit", "-", "--out", "piped"], &TINY[..]].concat(), &text);
    assert!(output.status.success(), "{}", error(&output));
    let file = |name: &str| std::fs::read(folder.path(name)).unwrap();
    assert!(file("run/model.safetensors") == file("piped/model.safetensors"), "the same bytes, the same model");
    folder.good(&["score", "run", "quakes.csv", "--out", "scored.csv"]);
    let output = piped(&folder, &["score", "run", "-", "--out", "-"], &text);
    assert!(output.status.success(), "{}", error(&output));
    assert_eq!(output.stdout, file("scored.csv"), "only the table is printed");
    assert!(error(&output).contains("mean log density"));
    folder.good(&["sample", "run", "-n", "7", "--out", "drawn.csv"]);
    assert_eq!(folder.good(&["sample", "run", "-n", "7", "--out", "-"]).into_bytes(), file("drawn.csv"));
    let output = folder.minvel(&["sample", "run", "--out", "-", "--json"]);
    assert_eq!(output.status.code(), Some(2), "two things on one stream");
    let output = piped(&folder, &["score", "run", "-", "--out", "-"], "latitude,longitude\n95,3\n");
    let message = error(&output);
    assert!(output.status.code() == Some(2) && message.contains("standard input: line 2"), "{message}");
    assert!(output.stdout.is_empty());
}

#[test]
fn two_fits_are_compared_on_the_same_rows() {
    let folder = Folder::new("units-compare");
    folder.file("quakes.csv", quakes(300, 1));
    folder.file("few.csv", quakes(40, 2));
    folder.file("fresh.csv", quakes(200, 3));
    for (data, out) in [("quakes.csv", "a"), ("few.csv", "b")] {
        folder.good(&[&["fit", data, "--out", out], &TINY[..]].concat());
    }
    let value = folder.json(&["compare", "a", "b", "fresh.csv"]);
    let number = |key: &str| value[key].as_f64().unwrap_or_else(|| panic!("{key}: {value}"));
    assert!(number("z") > 3.0 && number("p_value") < 0.01 && number("win_share") > 0.5, "{value}");
    assert_eq!((value["rows"].as_u64(), value["known_share"][0].as_f64()), (Some(200), Some(0.0)));
    let mean = |value: &serde_json::Value| value["mean"].as_f64().unwrap();
    let apart = mean(&value["log_density"][0]) - mean(&value["log_density"][1]);
    assert!((mean(&value["difference"]) - apart).abs() < 1e-9);
    let text = folder.good(&["compare", "a", "b", "quakes.csv"]);
    assert!(text.contains("a was fitted to") && text.contains("z = +"), "{text}");
    // Other units: densities of other things.
    folder.file("plane.csv", quakes(60, 4));
    let plane = ["fit", "plane.csv", "--manifold", "euclidean:2", "--columns", "latitude,longitude", "--out", "plane"];
    folder.good(&[&plane[..], &TINY[..]].concat());
    let output = folder.minvel(&["compare", "a", "plane", "fresh.csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("cannot be compared"), "{}", error(&output));
}
