//! From a file to a density, and everything one does with it then.

use crate::support::{Folder, Numbers, SPLIT, TINY, column, quakes};
use serde_json::Value;

/// An estimate has a mean and its error.
fn estimate(value: &Value, what: &str) -> (f64, f64) {
    let number = |key: &str| value[key].as_f64().unwrap_or_else(|| panic!("{what}.{key} is {}", value[key]));
    let (mean, error) = (number("mean"), number("std_error"));
    assert!(mean.is_finite() && error >= 0.0, "{what}: {mean} ± {error}");
    (mean, error)
}

/// The keys that fit and evaluate promise.
fn check_scores(value: &Value, rows: u64, distinct: u64) {
    estimate(&value["test_nll"], "test_nll");
    estimate(&value["log_z"], "log_z");
    let baselines = value["baselines"].as_array().expect("baselines are a list");
    let names: Vec<&str> = baselines.iter().map(|b| b["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 3, "uniform, kernel density, mixture: {names:?}");
    baselines.iter().for_each(|b| {
        estimate(&b["nll"], "baseline");
        estimate(&b["difference"], "difference");
    });
    assert_eq!((value["rows"].as_u64(), value["distinct_rows"].as_u64()), (Some(rows), Some(distinct)));
    let leaked = value["leaked_share"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&leaked));
    assert!(value["seconds"].as_f64().unwrap() > 0.0);
    let p = value["goodness"]["p_value"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&p));
}

#[test]
fn a_file_of_quakes_becomes_a_density_a_score_a_sample_a_map_and_a_report() {
    let folder = Folder::new("fit-quakes");
    folder.file("quakes.csv", quakes(300, 1));
    let fit = folder.json(&[&["fit", "quakes.csv", "--out", "run"], &TINY[..], &SPLIT].concat());
    check_scores(&fit, 300, 300);
    assert_eq!(fit["leaked_share"].as_f64(), Some(0.0));
    let guesses = fit["data"]["guesses"].to_string();
    for guess in ["sphere:2", "latlon", "degrees"] {
        assert!(guesses.contains(guess), "guessed {guess}: {guesses}");
    }
    let split = ["train", "validation", "test"].map(|part| fit["procedure"][part].as_u64().unwrap());
    assert_eq!((split, fit["centres"].as_u64()), ([240, 30, 30], Some(240)));

    let files = folder.list("run");
    for file in
        ["config.toml", "metrics.csv", "model.safetensors", "summary.json", "report.json", "report.html", "report.md"]
    {
        assert!(files.iter().any(|f| f == file), "{file} is missing: {files:?}");
    }
    assert!(files.iter().any(|f| f.ends_with(".png")), "no figure: {files:?}");
    assert!(!files.iter().any(|f| f == "work" || f.contains("tmp")), "something is left over: {files:?}");
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
    let config = read("run/config.toml");
    for key in ["seed", "seeds", "objective", "flow", "step_size", "mobility", "neighbours", "waves", "rate", "draws"] {
        assert!(config.lines().any(|l| l.starts_with(&format!("{key} ="))), "config.toml has no {key}:\n{config}");
    }
    assert!(config.contains("steps = 20") && config.contains("draws = 2000"), "{config}");
    let metrics = read("run/metrics.csv");
    assert_eq!(metrics.lines().next(), Some("step,seed,train,validation,score"));
    assert_eq!(metrics.lines().count(), 1 + 3 * 2, "three looks at two seeds:\n{metrics}");
    let summary: Value = serde_json::from_str(&read("run/summary.json")).unwrap();
    assert_eq!(summary, fit, "the summary is what was printed");
    let page = read("run/report.html");
    for word in ["distinct rows", "Inferred", "log Z", "kernel density", "test NLL", "uniform"] {
        assert!(page.contains(word), "the report does not say `{word}`");
    }

    score(&folder);
    sample(&folder);
    evaluate(&folder);
    look(&folder);
    threads(&folder);
}

/// Every command takes a number of threads, and writes or says the same with any.
fn threads(folder: &Folder) {
    let commands: [(&str, &[&str]); 5] = [
        ("scored.csv", &["score", "run", "quakes.csv", "--out"]),
        ("drawn.csv", &["sample", "run", "-n", "50", "--out"]),
        ("grid.csv", &["grid", "run", "--size", "20", "--out"]),
        ("small/model.safetensors", &["compress", "run", "--centres", "30", "--out"]),
        ("figures/density.svg", &["plot", "run", "--out"]),
    ];
    for (file, command) in commands {
        let written = ["1", "3"].map(|threads| {
            let place = format!("by-{threads}-{file}");
            folder.good(&[command, &[place.split('/').next().unwrap(), "--threads", threads]].concat());
            std::fs::read(folder.path(&place)).unwrap_or_else(|e| panic!("{place}: {e}"))
        });
        assert!(!written[0].is_empty() && written[0] == written[1], "{command:?}");
    }
    for command in [vec!["evaluate", "run", "fresh.csv"], vec!["compare", "run", "run", "fresh.csv"]] {
        let said = ["1", "3"].map(|threads| {
            let mut value = folder.json(&[command.as_slice(), &["--threads", threads]].concat());
            value.as_object_mut().expect("an object").remove("seconds");
            value
        });
        assert_eq!(said[0], said[1], "{command:?}");
    }
}

fn score(folder: &Folder) {
    let source = quakes(300, 1);
    let value = folder.json(&["score", "run", "quakes.csv", "--out", "scored.csv"]);
    assert_eq!(value["rows"].as_u64(), Some(300));
    let (mean, _) = estimate(&value["log_density"], "log_density");
    let scored = std::fs::read_to_string(folder.path("scored.csv")).unwrap();
    let mut lines = scored.lines().filter(|l| !l.starts_with('#'));
    assert_eq!(lines.next(), Some("place,latitude,longitude,depth,log_density,energy"));
    for (line, old) in lines.zip(source.lines().skip(2)) {
        assert!(line.starts_with(&format!("{old},")), "{line} keeps {old}");
    }
    let (log_density, energy) =
        (column(&folder.path("scored.csv"), "log_density"), column(&folder.path("scored.csv"), "energy"));
    assert_eq!((log_density.len(), energy.len()), (300, 300));
    let own = log_density.iter().sum::<f64>() / 300.0;
    assert!((own - mean).abs() <= 300.0 * f64::EPSILON * (1.0 + mean.abs()), "{own}, not {mean}");
    // log p = −E − log Z (− log of the unit, 1 on a sphere), in every row.
    let (log_z, _) = estimate(&value["log_z"], "log_z");
    for (l, e) in log_density.iter().zip(&energy) {
        let size = 1.0 + l.abs() + e.abs();
        assert!((l + e + log_z).abs() <= 16.0 * f64::EPSILON * size, "{l} + {e} + {log_z}");
    }
    // A gap in the Pacific is less likely than a place on a fault.
    folder.file("places.csv", "latitude,longitude\n38,142\n0,-160\n");
    folder.good(&["score", "run", "places.csv", "--out", "places.tsv"]);
    let text = std::fs::read_to_string(folder.path("places.tsv")).unwrap();
    let logs: Vec<f64> = text.lines().skip(1).map(|l| l.split('\t').nth(2).unwrap().parse().unwrap()).collect();
    assert!(logs[0] > logs[1] + 2.0, "{logs:?}");
    // The same places under other names, with decimal commas.
    folder.file("orte.csv", "Breite;Ort;Länge\n38,0;Japan;142,0\n0,0;nirgends;-160,0\n");
    folder.good(&["score", "run", "orte.csv", "--columns", "Breite,Länge", "--out", "orte-scored.csv"]);
    assert_eq!(column(&folder.path("orte-scored.csv"), "log_density"), logs);
    // Other formats hold the same numbers.
    folder.good(&["score", "run", "quakes.csv", "--out", "scored.parquet"]);
    folder.good(&["score", "run", "scored.parquet", "--out", "again.csv"]);
    assert_eq!(column(&folder.path("again.csv"), "log_density"), log_density);
}

fn sample(folder: &Folder) {
    let value = folder.json(&["sample", "run", "-n", "250", "--out", "drawn.csv"]);
    assert_eq!(value["rows"].as_u64(), Some(250));
    for key in ["acceptance", "moved"] {
        assert!((0.0..=1.0).contains(&value[key].as_f64().unwrap()), "{key}: {value}");
    }
    let path = folder.path("drawn.csv");
    let (lat, lon) = (column(&path, "latitude"), column(&path, "longitude"));
    assert_eq!((lat.len(), lon.len()), (250, 250));
    assert!(lat.iter().all(|x| x.abs() <= 90.0) && lat.iter().any(|x| x.abs() > 10.0), "latitudes in degrees");
    assert!(lon.iter().all(|x| x.abs() <= 180.0) && lon.iter().any(|x| *x > 100.0), "longitudes as in the file");
    // About half of the draws are about Japan, as are the data: 120 ± 10 of 300.
    let near = lat.iter().zip(&lon).filter(|(a, o)| (*a - 38.0).hypot(*o - 142.0) < 15.0).count();
    assert!((60..160).contains(&near), "{near} of 250 about Japan");
    folder.good(&["sample", "run", "-n", "250", "--out", "same.csv"]);
    folder.good(&["sample", "run", "-n", "250", "--seed", "2", "--out", "other.csv"]);
    let bytes = |name: &str| std::fs::read(folder.path(name)).unwrap();
    assert!(bytes("drawn.csv") == bytes("same.csv") && bytes("drawn.csv") != bytes("other.csv"), "seeds decide");
    folder.good(&["sample", "run", "-n", "5", "--out", "drawn.npy"]);
    assert!(bytes("drawn.npy").starts_with(b"\x93NUMPY"));
    folder.good(&["sample", "run", "-n", "0", "--out", "none.csv"]);
    assert!(column(&folder.path("none.csv"), "latitude").is_empty());
}

fn evaluate(folder: &Folder) {
    folder.file("fresh.csv", quakes(120, 99));
    let fresh = folder.json(&["evaluate", "run", "fresh.csv"]);
    check_scores(&fresh, 120, 120);
    assert_eq!(fresh["leaked_share"].as_f64(), Some(0.0), "nobody knows the fresh rows");
    // The file it was fitted to: 240 of 300 rows are known.
    let known = folder.json(&["evaluate", "run", "quakes.csv"]);
    assert_eq!(known["leaked_share"].as_f64(), Some(0.8));
    let text = folder.good(&["evaluate", "run", "fresh.csv"]);
    assert!(text.contains("minvel − baseline") && text.contains("test of fit on 120 rows"), "{text}");
    for part in ["nats below the uniform density 1/12.5664", "MMD²", "regions of highest density", "should be 95"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let figures = folder.json(&["evaluate", "run", "fresh.csv", "--figures", "misfit"]);
    assert_eq!(figures["coverage"].as_array().unwrap().len(), 3);
    assert!(figures["below_uniform"]["mean"].is_number() && figures["volume"].as_f64().unwrap() > 12.5, "{figures}");
    assert_eq!(folder.list("misfit"), ["witness.png", "witness.svg"]);
    let scored =
        folder.json(&["score", "run", "fresh.csv", "--outliers", "--false-discovery", "0.2", "--out", "odd.csv"]);
    let flags = column(&folder.path("odd.csv"), "outlier");
    assert_eq!(scored["outliers"].as_u64().unwrap(), flags.iter().filter(|flag| **flag == 1.0).count() as u64);
    assert!(column(&folder.path("odd.csv"), "p_value").iter().all(|p| *p > 0.0 && *p <= 1.0));
    // One row has a score, without an error.
    folder.file("one.csv", "latitude,longitude\n38,142\n");
    let one = folder.json(&["evaluate", "run", "one.csv"]);
    assert!(one["test_nll"]["mean"].is_number() && one["rows"].as_u64() == Some(1), "{one}");
    assert!(one["test_nll"]["std_error"].is_null() && one["goodness"]["p_value"].is_null(), "{one}");
}

fn look(folder: &Folder) {
    let plot = folder.json(&["plot", "run", "--out", "figures", "--centre", "180", "--title", "Faults"]);
    let files: Vec<&str> = plot["files"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
    assert!(files.iter().any(|f| f.ends_with(".png")), "{files:?}");
    for file in &files {
        assert!(std::fs::metadata(folder.path(file)).unwrap().len() > 1000, "{file} is too small to be a figure");
    }
    folder.good(&["plot", "run", "--out", "bare", "--points", "none", "--earth", "false"]);
    let map = |name: &str| std::fs::read(folder.path(name)).unwrap();
    let first = folder.list("bare").into_iter().find(|f| f.ends_with(".png")).unwrap();
    assert_ne!(map(&format!("bare/{first}")), map(&format!("figures/{first}")), "other looks, other figures");

    let page = map("run/report.html");
    folder.good(&["report", "run", "--out", "copy"]);
    assert!(folder.list("copy").iter().any(|f| f == "report.html"));
    folder.good(&["report", "run"]);
    assert_eq!(page, map("run/report.html"), "the report is the same as the fit wrote");
    let report = folder.json(&["report", "run"]);
    assert!(report["rows"].as_array().is_some_and(|rows| rows.len() > 5), "{report}");

    let inspect = folder.json(&["inspect", "run"]);
    assert_eq!(inspect["centres"].as_u64(), Some(240));
    assert_eq!(inspect["coordinates"]["manifold"].as_str(), Some("sphere:2"));
    assert_eq!(inspect["settings"]["learning"]["steps"].as_u64(), Some(20));
    estimate(&inspect["log_z"], "log_z");
    let text = folder.good(&["inspect", "run"]);
    assert!(text.contains("240 centres") && text.contains("log Z"), "{text}");
}

#[test]
fn a_fit_says_what_it_guessed_and_how_it_went() {
    let folder = Folder::new("fit-says");
    folder.file("quakes.csv", quakes(100, 2));
    let output = folder.minvel(&[&["fit", "quakes.csv"], &TINY[..], &SPLIT].concat());
    let (out, err) = (String::from_utf8_lossy(&output.stdout), crate::support::error(&output));
    assert!(output.status.success(), "{err}");
    assert!(err.contains("inferred: manifold sphere:2") && err.contains("inferred: units degrees"), "{err}");
    for word in [
        "100 rows (100 distinct)",
        "80 training, 10 validation and 10 test rows",
        "kernels on 80 rows",
        "test NLL",
        "kernel density",
        "log Z",
        "report.html",
    ] {
        assert!(out.contains(word), "`{word}` is not said:\n{out}");
    }
    assert!(folder.path("runs/fit-quakes/report.html").exists(), "without --out it goes to runs/");
    folder.good(&[&["fit", "quakes.csv"], &TINY[..]].concat());
    assert!(folder.path("runs/fit-quakes-2/report.html").exists(), "and the next one beside it");
}

/// The score of five test rows used to be printed as if it were one, and rows fewer than 30 were refused.
#[test]
fn few_rows_are_scored_by_cross_validation_and_refitted_and_that_is_said() {
    let folder = Folder::new("fit-few");
    for (rows, said) in [(5, "leaving out one row at a time"), (40, "10 folds, repeated 5 times")] {
        folder.file("quakes.csv", quakes(rows, 2));
        let out = format!("run-{rows}");
        let text = folder.good(&[&["fit", "quakes.csv", "--out", &out], &TINY[..]].concat());
        let all = format!("refitted on all {rows} rows");
        for words in [said, &all, "cross-validated NLL", "without correction"] {
            assert!(text.contains(words), "`{words}` is not said:\n{text}");
        }
        let page = std::fs::read_to_string(folder.path(&out).join("report.md")).unwrap();
        assert!(page.contains(said) && page.contains(&all), "{page}");
        let inspect = folder.json(&["inspect", &out]);
        assert_eq!((inspect["centres"].as_u64(), inspect["rows"].as_u64()), (Some(rows as u64), Some(rows as u64)));
        let drawn = folder.good(&["sample", &out, "-n", "10", "--out", "drawn.csv"]);
        assert!(drawn.contains("exact") && !drawn.contains("efficient"), "{drawn}");
    }
    let fit = folder.json(&[&["fit", "quakes.csv", "--out", "json"], &TINY[..]].concat());
    assert_eq!(fit["procedure"]["kind"].as_str(), Some("cross-validation"));
    let numbers = ["rows", "folds", "repeats"].map(|key| fit["procedure"][key].as_u64().unwrap());
    assert_eq!((numbers, fit["test_rows"].as_u64()), ([40, 10, 5], Some(40)));
}

/// On a million rows the report said "kernels on 800000 points", while 20 000 were centres.
#[test]
fn a_report_says_on_how_many_clusters_the_kernels_stand() {
    let folder = Folder::new("fit-clusters");
    folder.file("quakes.csv", quakes(300, 2));
    let thin = ["--set", "kernels.centres=100", "--objective", "none"];
    let text = folder.good(&[&["fit", "quakes.csv", "--out", "run"], &TINY[..], &SPLIT, &thin].concat());
    let said = "kernels on 100 clusters of 240 training rows";
    assert!(text.contains(said) && text.contains("warning: The kernels"), "{text}");
    let page = std::fs::read_to_string(folder.path("run/report.md")).unwrap();
    assert!(page.contains(said), "{page}");
    assert!(folder.good(&["inspect", "run"]).contains("100 centres (clusters of 240 training rows"));
    let known = folder.good(&["evaluate", "run", "quakes.csv"]);
    assert!(known.contains("keeps no training rows"), "{known}");
}

#[test]
fn a_compressed_model_is_used_like_a_fit_and_says_what_it_costs() {
    let folder = Folder::new("compress");
    folder.file("quakes.csv", quakes(300, 2));
    folder.file("new.csv", quakes(200, 3));
    folder.good(&[&["fit", "quakes.csv", "--out", "run", "--objective", "none"], &TINY[..], &SPLIT].concat());
    let text = folder.good(&["compress", "run", "--out", "small", "--centres", "50", "--rows", "new.csv"]);
    for word in ["50 centres instead of 240", "new samples of the model", "200 rows of new.csv", "Written: small"] {
        assert!(text.contains(word), "the text does not say `{word}`:\n{text}");
    }
    assert_eq!(folder.list("small"), ["model.safetensors"]);
    let said = folder.json(&["compress", "run", "--out", "again", "--centres", "50", "--rows", "quakes.csv"]);
    let file = |name: &str| std::fs::read(folder.path(name)).unwrap();
    assert_eq!(file("small/model.safetensors"), file("again/model.safetensors"), "the same model again");
    let (cost, error) = estimate(&said["samples"]["difference"], "cost");
    assert!(cost > -4.0 * error, "a divergence is not negative: {cost} ± {error}");
    let known = |of: usize| said["rows"]["known_share"][of].as_f64().unwrap();
    assert!(known(0) > 0.7 && known(1) == 0.0, "the small model holds no training row");

    let inspect = folder.json(&["inspect", "small"]);
    assert_eq!((inspect["centres"].as_u64(), inspect["rows"].as_u64()), (Some(50), Some(240)));
    folder.good(&["score", "small", "new.csv", "--out", "scored.csv"]);
    assert_eq!(column(&folder.path("scored.csv"), "log_density").len(), 200);
    folder.good(&["sample", "small", "-n", "20", "--out", "drawn.csv"]);
    assert!(folder.good(&["evaluate", "small", "new.csv"]).contains("keeps no training rows"));
    assert!(!folder.json(&["plot", "small", "--out", "figures"])["files"].as_array().unwrap().is_empty());

    let refused = [
        (vec!["compress", "run", "--out", "small"], "no empty folder"),
        (vec!["compress", "run", "--out", "new.csv"], "no empty folder"),
        (vec!["compress", "run", "--out", "other", "--centres", "9"], "expected a number from 10 to 100000"),
        (vec!["compress", "nowhere", "--out", "other"], "there is no such folder"),
        (vec!["compress", "run", "--out", "other", "--rows", "none.csv"], "none.csv"),
        (vec!["compress", "run", "--out", "other", "--rows", "new.csv", "--columns", "depth"], "expected 2"),
    ];
    for (arguments, word) in refused {
        let output = folder.minvel(&arguments);
        let message = crate::support::error(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(word) && !folder.path("other").exists(), "{arguments:?}: {message}");
    }
}

/// A rate of 10³⁰ fell back to no correction, and nothing said so.
#[test]
fn a_training_that_diverges_is_a_warning() {
    let folder = Folder::new("fit-diverges");
    folder.file("quakes.csv", quakes(100, 2));
    let wild = ["--set", "learning.rate=1e30"];
    let text = folder.good(&[&["fit", "quakes.csv", "--out", "run"], &TINY[..], &SPLIT, &wild].concat());
    assert!(text.contains("diverged") && text.contains("the correction was dropped"), "{text}");
    assert!(std::fs::read_to_string(folder.path("run/report.md")).unwrap().contains("diverged"));
    let text = folder.good(&[&["fit", "quakes.csv", "--out", "tame"], &TINY[..], &SPLIT].concat());
    assert!(!text.contains("diverged"), "{text}");
}

#[test]
fn repeated_rows_stay_together_and_are_warned_of_where_a_split_tears_them() {
    let folder = Folder::new("fit-repeats");
    let text = quakes(100, 3);
    let body: Vec<&str> = text.lines().skip(2).collect();
    folder.file("twice.csv", format!("place,latitude,longitude,depth\n{}\n{}\n", body.join("\n"), body.join("\n")));
    let fit = folder.json(&[&["fit", "twice.csv", "--out", "run"], &TINY[..]].concat());
    assert_eq!((fit["rows"].as_u64(), fit["distinct_rows"].as_u64()), (Some(200), Some(100)));
    assert_eq!(fit["leaked_share"].as_f64(), Some(0.0));
    let distinct = folder.json(&[&["fit", "twice.csv", "--distinct", "--out", "distinct"], &TINY[..]].concat());
    assert_eq!((distinct["rows"].as_u64(), distinct["leaked_share"].as_f64()), (Some(100), Some(0.0)));
    assert_eq!(fit["test_nll"], distinct["test_nll"], "every row twice is every row once");
    // A given split: the other copy of a test row is a training row for 3 of 4.
    let parts: Vec<&str> = (0..200).map(|i| ["train", "validation", "train", "test"][(i + i / 100) % 4]).collect();
    let split = folder.file("parts.txt", parts.join("\n"));
    let torn = folder.json(&[&["fit", "twice.csv", "--split", &split, "--out", "torn"], &TINY[..]].concat());
    let leaked = torn["leaked_share"].as_f64().unwrap();
    assert!(leaked > 0.4, "{leaked}");
    assert!(torn["warnings"].to_string().contains("repeat a training row"), "{}", torn["warnings"]);
    assert!(std::fs::read_to_string(folder.path("torn/report.html")).unwrap().contains("repeat a training row"));
}

/// Rows of numbers as a file without a header or with one.
fn rows(header: &str, count: usize, row: impl Fn(&mut Numbers) -> Vec<f64>) -> String {
    let mut numbers = Numbers::new(5);
    let line = |numbers: &mut Numbers| row(numbers).iter().map(f64::to_string).collect::<Vec<_>>().join(",");
    let body: Vec<String> = (0..count).map(|_| line(&mut numbers)).collect();
    format!("{header}{}\n", body.join("\n"))
}

/// Fits, draws, scores the draws: they are in the units and layout of the input.
fn there_and_back(name: &str, text: &str, arguments: &[&str], check: impl Fn(&[Vec<f64>])) {
    let folder = Folder::new(&format!("fit-{name}"));
    folder.file("data.csv", text);
    let tiny = [&TINY[..], &["--seeds", "1"]].concat();
    let fit = folder.json(&[&["fit", "data.csv", "--out", "run"], arguments, &tiny].concat());
    estimate(&fit["test_nll"], name);
    folder.good(&["sample", "run", "-n", "100", "--out", "drawn.csv"]);
    let drawn = std::fs::read_to_string(folder.path("drawn.csv")).unwrap();
    let lines = drawn.lines().filter(|l| l.split(',').all(|cell| cell.parse::<f64>().is_ok()));
    let cells: Vec<Vec<f64>> = lines.map(|l| l.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
    assert_eq!(cells.len(), 100, "{name}: {drawn}");
    check(&cells);
    let columns: Vec<Vec<f64>> = (0..cells[0].len()).map(|k| cells.iter().map(|c| c[k]).collect()).collect();
    assert!(columns.iter().all(|c| c.iter().any(|x| *x != c[0])), "{name}: columns vary");
    let score = folder.json(&["score", "run", "drawn.csv", "--out", "scored.csv"]);
    let (mean, error) = estimate(&score["log_density"], name);
    let own = -fit["test_nll"]["mean"].as_f64().unwrap();
    println!("{name}: draws have log density {mean:.2} ± {error:.2}, test rows {own:.2}");
    let plot = folder.json(&["plot", "run", "--out", "figures"]);
    assert!(!plot["files"].as_array().unwrap().is_empty(), "{name}: no figure");
}

#[test]
fn torsion_angles_come_back_as_radians() {
    let text = rows("phi,psi\n", 120, |n| vec![-2.9 + 5.8 * n.uniform(), 1.0 + 0.3 * n.normal()]);
    there_and_back("torus", &text, &["--manifold", "torus:2", "--units", "radians"], |cells| {
        assert!(cells.iter().flatten().all(|x| x.abs() <= std::f64::consts::PI));
    });
}

#[test]
fn wind_directions_come_back_from_0_to_360() {
    let text = rows("direction\n", 120, |n| vec![(300.0 + 40.0 * n.normal()).rem_euclid(360.0)]);
    there_and_back("wind", &text, &["--manifold", "sphere:1", "--units", "degrees"], |cells| {
        assert!(cells.iter().flatten().all(|x| (0.0..360.0).contains(x)));
        assert!(cells.iter().flatten().filter(|x| **x > 180.0).count() > 50);
    });
}

#[test]
fn rotations_come_back_as_quaternions_with_the_real_part_first() {
    let text = rows("", 120, |n| {
        let q = [1.0, 0.2 * n.normal(), 0.2 * n.normal(), 0.2 * n.normal()];
        let length = q.iter().map(|x| x * x).sum::<f64>().sqrt();
        q.iter().map(|x| x / length).collect()
    });
    there_and_back("so3", &text, &["--manifold", "so3", "--layout", "quaternion-wxyz"], |cells| {
        for q in cells {
            let length = q.iter().map(|x| x * x).sum::<f64>();
            assert!((length - 1.0).abs() <= 16.0 * f64::EPSILON && q[0] >= 0.0, "{q:?}");
        }
        assert!(cells.iter().filter(|q| q[0] > 0.7).count() > 60, "the first number is the real part");
    });
}

#[test]
fn vectors_come_back_in_their_own_units() {
    let text = rows("a,b,c\n", 120, |n| vec![1e6 + 1e3 * n.normal(), 1e-3 * n.normal(), n.normal()]);
    there_and_back("vectors", &text, &["--manifold", "euclidean:3"], |cells| {
        assert!(cells.iter().all(|c| (c[0] - 1e6).abs() < 1e4 && c[1].abs() < 1e-2 && c[2].abs() < 10.0));
    });
}

#[test]
fn points_of_a_disk_come_back_inside_it() {
    let text = rows("u,v\n", 120, |n| vec![0.3 + 0.1 * n.normal(), 0.1 * n.normal()]);
    there_and_back("disk", &text, &["--manifold", "hyperbolic:2", "--layout", "ball"], |cells| {
        assert!(cells.iter().all(|c| c[0].hypot(c[1]) < 1.0));
    });
}

#[test]
fn places_with_a_depth_come_back_as_both() {
    let text =
        rows("lon,lat,depth\n", 120, |n| vec![140.0 + 5.0 * n.normal(), 38.0 + 4.0 * n.normal(), 90.0 * n.uniform()]);
    let form = ["--manifold", "product(sphere:2,euclidean:1)", "--layout", "lonlat,vector", "--units", "degrees"];
    there_and_back("product", &text, &form, |cells| {
        assert!(cells.iter().filter(|c| (c[0] - 140.0).abs() < 25.0 && (c[1] - 38.0).abs() < 20.0).count() > 60);
        assert!(cells.iter().filter(|c| (0.0..90.0).contains(&c[2])).count() > 60);
    });
}

#[test]
fn every_objective_and_flow_can_be_asked_for() {
    let folder = Folder::new("fit-objectives");
    folder.file("quakes.csv", quakes(60, 4));
    let flags: [&[&str]; 5] = [
        &["--objective", "minimum-velocity", "--flow", "chart"],
        &["--objective", "score-matching"],
        &["--objective", "likelihood"],
        &["--objective", "none"],
        &["--step-size", "1e-2", "--seed", "7", "--seeds", "3", "--threads", "1"],
    ];
    for (k, flags) in flags.iter().enumerate() {
        let out = format!("run{k}");
        let fit = folder.json(&[&["fit", "quakes.csv", "--out", &out], &TINY[..], &SPLIT, flags].concat());
        estimate(&fit["test_nll"], &flags.join(" "));
        let config = std::fs::read_to_string(folder.path(&out).join("config.toml")).unwrap();
        for pair in flags.chunks(2).filter(|pair| pair[0] != "--threads") {
            let key = pair[0].trim_start_matches("--").replace('-', "_");
            let line = config.lines().find(|l| l.starts_with(&format!("{key} ="))).unwrap_or("");
            let value = line.split(['=', '#']).nth(1).unwrap_or("").trim().trim_matches('"');
            let same = value == pair[1]
                || value.parse::<f64>().ok().zip(pair[1].parse::<f64>().ok()).is_some_and(|(a, b)| a == b);
            assert!(same, "{pair:?}: config.toml says `{line}`");
        }
    }
    folder.file("own.toml", "step_size = 2e-3\n[learning]\nbatch = 32\n");
    folder.json(&[&["fit", "quakes.csv", "--out", "own", "--config", "own.toml"], &TINY[..]].concat());
    let config = std::fs::read_to_string(folder.path("own/config.toml")).unwrap();
    assert!(config.contains("step_size = 0.002") && config.contains("batch = 32"), "{config}");
}
