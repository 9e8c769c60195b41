//! Weights, groups, blocks, given splits and missing values, as users give them.

use crate::support::Folder;
use serde_json::Value;

/// Places in pairs a kilometre apart, with a weight, an event and a part.
fn places(count: usize) -> Vec<[String; 5]> {
    let row = |i: usize| {
        let k = (i / 2) as f64;
        let (lat, lon) = (50.0 * (0.7 * k).sin(), 170.0 * (1.3 * k + 0.2 * (0.31 * k).cos()).sin());
        let part = ["train", "train", "train", "validation", "test"][i / 2 % 5];
        let lat = lat + 0.009 * (i % 2) as f64;
        [
            format!("{lat:.6}"),
            format!("{lon:.6}"),
            format!("{}", 1 + i % 3),
            format!("event-{}", i / 2),
            part.to_string(),
        ]
    };
    (0..count).map(row).collect()
}

fn csv(rows: &[[String; 5]]) -> String {
    let lines: Vec<String> = rows.iter().map(|row| row.join(",")).collect();
    format!("lat,lon,n,event,part\n{}\n", lines.join("\n"))
}

fn nll(fit: &Value) -> f64 {
    fit["test_nll"]["mean"].as_f64().expect("a score")
}

#[test]
fn weights_are_repeated_rows_also_for_the_program() {
    let folder = Folder::new("rows-weights");
    let rows = places(80);
    let twice: Vec<[String; 5]> = rows.iter().flat_map(|row| vec![row.clone(); row[2].parse().unwrap()]).collect();
    folder.file("once.csv", csv(&rows));
    folder.file("often.csv", csv(&twice));
    let quick = ["--effort", "quick"];
    let weighted = folder.json(&[&["fit", "once.csv", "--weights", "n", "--out", "once"], &quick[..]].concat());
    let repeated = folder.json(&[&["fit", "often.csv", "--out", "often"], &quick[..]].concat());
    let plain = folder.json(&[&["fit", "once.csv", "--out", "plain"], &quick[..]].concat());
    assert!((nll(&weighted) - nll(&repeated)).abs() < 1e-9, "{} and {}", nll(&weighted), nll(&repeated));
    assert!((nll(&weighted) - nll(&plain)).abs() > 1e-4, "no power");
    assert!(!weighted["data"]["unused"].to_string().contains("\"n\""), "{}", weighted["data"]["unused"]);
}

#[test]
fn groups_and_blocks_stay_together_and_a_given_split_is_used() {
    let folder = Folder::new("rows-groups");
    folder.file("places.csv", csv(&places(300)));
    let parts: Vec<String> = places(300).iter().map(|row| row[4].clone()).collect();
    folder.file("parts.txt", format!("part\n{}\n", parts.join("\n")));
    let base = ["--effort", "quick", "--set", "few.rows=100"];
    let fit = |name: &str, options: &[&str]| {
        folder.json(&[&["fit", "places.csv", "--out", name][..], options, &base[..]].concat())
    };
    let (torn, grouped) = (fit("torn", &[]), fit("grouped", &["--group", "event"]));
    let blocked = ["1.1km", "0.01deg", "1.8e-4rad", "0.01"].map(|distance| fit(distance, &["--block", distance]));
    assert!(nll(&torn) + 0.5 < nll(&grouped), "{} and {}", nll(&torn), nll(&grouped));
    for other in &blocked {
        assert!((nll(other) - nll(&grouped)).abs() < 1e-12, "the same groups: {} and {}", nll(other), nll(&grouped));
    }
    let (by_column, by_file) = (fit("column", &["--split", "part"]), fit("file", &["--split", "parts.txt"]));
    let counts = ["train", "validation", "test"].map(|part| by_column["procedure"][part].as_u64().unwrap());
    assert_eq!((counts, nll(&by_column)), ([180, 60, 60], nll(&by_file)));
}

#[test]
fn missing_values_are_refused_or_dropped_and_counted() {
    let folder = Folder::new("rows-missing");
    let mut rows = places(60);
    (rows[10][0], rows[11][1], rows[12][2], rows[13][3]) = ("".into(), "NA".into(), "".into(), "".into());
    folder.file("holes.csv", csv(&rows));
    let kept: Vec<[String; 5]> = (0..60).filter(|i| !(10..14).contains(i)).map(|i| rows[i].clone()).collect();
    folder.file("whole.csv", csv(&kept));
    let about = ["--weights", "n", "--group", "event", "--effort", "quick"];
    let dropped = folder.json(&[&["fit", "holes.csv", "--missing", "drop", "--out", "holes"], &about[..]].concat());
    let whole = folder.json(&[&["fit", "whole.csv", "--out", "whole"], &about[..]].concat());
    assert_eq!((dropped["rows"].as_u64(), nll(&dropped)), (Some(56), nll(&whole)));
    for column in ["lat", "lon", "n", "event"] {
        assert_eq!(dropped["data"]["missing"][column].as_u64(), Some(1), "{}", dropped["data"]["missing"]);
    }
    for (arguments, words) in [
        (vec!["fit", "holes.csv"], "line 12, column 1 (`lat`)"),
        (vec!["fit", "whole.csv", "--weights", "part"], "line 2, column 5 (`part`): `train` is no weight"),
        (vec!["fit", "whole.csv", "--weights", "mass"], "there is no column `mass`"),
        (vec!["fit", "whole.csv", "--split", "event"], "line 2, column 4 (`event`): `event-0` is no part of a split"),
        (vec!["fit", "whole.csv", "--block", "5parsec"], "unknown unit"),
        (vec!["fit", "whole.csv", "--block=-1km"], "a distance is positive"),
        (vec!["fit", "whole.csv", "--block", "20000km", "--effort", "quick"], "in 1 groups"),
        (vec!["fit", "whole.csv", "--weights", "n", "--distinct"], "--distinct"),
    ] {
        let output = folder.minvel(&[&arguments[..], &["--out", "bad"]].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(words), "{arguments:?}: `{words}` is not said: {message}");
    }
}
