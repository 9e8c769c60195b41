//! Whatever is wrong with files or arguments: exit status 2, a message that says where and what to do, and nothing written.

use crate::support::{Folder, TINY, error, quakes};

/// Forty good rows of latitude and longitude, with one cell replaced; line 2 is the first row.
fn places(line: usize, cells: &str) -> String {
    let mut lines = vec!["lat,lon".to_string()];
    lines.extend((0..40).map(|i| format!("{}.5,{}", 2 * i - 40, 8 * i - 160)));
    if line > 0 {
        lines[line - 1] = cells.to_string();
    }
    lines.join("\n") + "\n"
}

/// Rows of numbers by a rule.
fn table(header: &str, count: usize, row: impl Fn(f64) -> String) -> String {
    let body: Vec<String> = (0..count).map(|i| row(i as f64)).collect();
    format!("{header}\n{}\n", body.join("\n"))
}

/// Runs a fit that must be refused: status 2, all of the words, no folder.
fn refused(name: &str, file: &str, contents: impl AsRef<[u8]>, arguments: &[&str], words: &[&str]) {
    let folder = Folder::new(&format!("refused-{name}"));
    folder.file(file, contents);
    let output = folder.minvel(&[&["fit", file, "--out", "run"], arguments].concat());
    let message = error(&output);
    assert_eq!(output.status.code(), Some(2), "{name}: {message}");
    for word in words {
        assert!(message.contains(word), "{name}: the message does not say `{word}`:\n{message}");
    }
    assert!(message.lines().filter(|l| l.starts_with("error: ")).count() == 1, "{name}: one error:\n{message}");
    assert!(output.stdout.is_empty(), "{name}: nothing is printed for programs");
    assert_eq!(folder.list(""), [file], "{name}: something was left behind");
}

/// The same files without their fault are fine: what is refused is the fault.
#[test]
fn the_good_file_is_fitted() {
    let folder = Folder::new("refused-not");
    folder.file("places.csv", places(0, ""));
    folder.good(&[&["fit", "places.csv", "--out", "run"], &TINY[..]].concat());
    assert!(folder.path("run/report.html").exists());
}

#[test]
fn latitudes_beyond_90_are_refused_with_line_and_column() {
    refused(
        "latitude",
        "places.csv",
        places(9, "95.5,10"),
        &[],
        &["places.csv", "line 9", "column 1 (`lat`)", "95.5", "90"],
    );
    let turned = ["--manifold", "sphere:2", "--layout", "lonlat", "--columns", "lat,lon", "--units", "degrees"];
    refused(
        "turned",
        "places.csv",
        places(0, ""),
        &turned,
        &["places.csv", "line 2", "column 2 (`lon`)", "-160", "latlon"],
    );
    let neither = table("a,b", 40, |i| format!("{},{}", 5.0 * i - 100.0, 8.0 * i - 160.0));
    refused(
        "neither",
        "places.csv",
        neither,
        &["--manifold", "sphere:2"],
        &["neither column can be the latitude", "line 2"],
    );
}

#[test]
fn longitudes_beyond_360_are_refused_with_line_and_column() {
    refused(
        "longitude",
        "places.csv",
        places(12, "1.5,400"),
        &[],
        &["places.csv", "line 12", "column 2 (`lon`)", "400"],
    );
}

#[test]
fn a_file_in_which_either_column_may_be_the_latitude_is_refused() {
    let text = table("a,b", 40, |i| format!("{},{}", 2.0 * i - 40.0, 40.0 - 1.5 * i));
    refused(
        "either",
        "places.csv",
        text,
        &["--manifold", "sphere:2", "--units", "degrees"],
        &["places.csv", "latlon or lonlat"],
    );
}

#[test]
fn angles_that_look_like_the_other_unit_are_refused() {
    let torus = ["--manifold", "torus:2", "--units"];
    let degrees = table("phi,psi", 40, |i| format!("{},{}", 9.0 * i - 180.0, 100.0 - i));
    let words = ["angles.csv", "line 2", "column 1 (`phi`)", "-180", "degrees"];
    refused("degrees", "angles.csv", &degrees, &[&torus[..], &["radians"]].concat(), &words);
    let radians = table("phi,psi", 40, |i| format!("{},{}", 0.15 * i - 3.0, 0.01 * i));
    let words = ["angles.csv", "column 1 (`phi`)", "radians", "trust the units"];
    refused("radians", "angles.csv", &radians, &[&torus[..], &["degrees"]].concat(), &words);
    let narrow = table("phi,psi", 40, |i| format!("{},{}", 0.05 * i, 0.01 * i));
    refused(
        "narrow",
        "angles.csv",
        &narrow,
        &["--manifold", "torus:2"],
        &["angles.csv", "degrees or radians", "give the units"],
    );
    // Said to be so, they are taken.
    let folder = Folder::new("refused-trusted");
    folder.file("angles.csv", &radians);
    folder.good(&[&["fit", "angles.csv", "--out", "run", "--trust"], &torus[..], &["degrees"], &TINY[..]].concat());
}

#[test]
fn points_off_the_manifold_are_refused_with_their_line() {
    let unit = |i: f64| (0.3 * i).sin_cos();
    let vectors = |bad: f64| {
        table("x,y,z", 40, |i| {
            let (s, c) = unit(i);
            format!(
                "{},{},{}",
                if i == 6.0 { bad * s } else { 0.6 * s },
                0.6 * c,
                if i % 2.0 == 0.0 { 0.8 } else { -0.8 }
            )
        })
    };
    let words = ["vectors.csv", "line 8", "1"];
    refused("sphere", "vectors.csv", vectors(3.0), &["--manifold", "sphere:2"], &words);
    let ball = table("u,v", 40, |i| if i == 4.0 { "1.2,0".into() } else { format!("{},{}", 0.02 * i, 0.01 * i) });
    refused("ball", "ball.csv", ball, &["--manifold", "hyperbolic:2", "--layout", "ball"], &["ball.csv", "line 6"]);
    let rotations = table("a,b,c,d", 40, |i| {
        let (s, c) = unit(i);
        if i == 1.0 { "2,0,0,0".into() } else { format!("{},{},{},{}", 0.6 * s, 0.8 * s, 0.6 * c, 0.8 * c) }
    });
    let form = ["--manifold", "so3", "--layout", "quaternion-wxyz"];
    refused("so3", "poses.csv", rotations, &form, &["poses.csv", "line 3"]);
}

#[test]
fn cells_without_a_number_are_refused_with_line_and_column() {
    refused("nan", "places.csv", places(5, "nan,10"), &[], &["places.csv", "line 5", "column 1 (`lat`)", "finite"]);
    refused("inf", "places.csv", places(5, "3,inf"), &[], &["places.csv", "line 5", "column 2 (`lon`)", "finite"]);
    refused("empty", "places.csv", places(6, ",10"), &[], &["places.csv", "line 6", "column 1 (`lat`)", "empty"]);
    refused(
        "text",
        "places.csv",
        places(7, "3.5,east"),
        &[],
        &["places.csv", "line 7", "column 2 (`lon`)", "`east` is not a number"],
    );
    let words = ["places.csv", "line 7", "column 1 (`lat`)", "decimals with a point"];
    refused("comma", "places.csv", places(7, "\"3,5\",10"), &[], &words);
    refused("short", "places.csv", places(7, "3.5"), &[], &["places.csv", "line 7"]);
    // The first fault in the file is named, whatever its column.
    let two = places(5, "1,west").replace("-20.5,", "north,");
    refused("first", "places.csv", two, &[], &["line 5"]);
}

#[test]
fn constant_columns_are_refused_by_name() {
    let text = table("lat,lon", 40, |i| format!("12.5,{}", 8.0 * i - 160.0));
    refused("constant", "places.csv", text, &[], &["places.csv", "column 1 (`lat`)", "12.5", "lower dimension"]);
}

#[test]
fn too_few_rows_are_refused() {
    let text = table("lat,lon", 2, |i| format!("{},{}", i, 30.0 * i));
    refused("few", "places.csv", text, &[], &["places.csv", "2 rows", "at least 3"]);
    refused("header", "places.csv", "lat,lon\n", &[], &["places.csv", "0 rows"]);
    refused("empty-file", "places.csv", "", &[], &["places.csv", "empty"]);
    // Too few different ones are too few as well.
    let text = table("lat,lon", 60, |i| format!("{},{}", i % 2.0, 30.0 * (i % 2.0)));
    refused("repeats", "places.csv", text, &[], &["places.csv", "2 distinct rows", "at least 3"]);
}

#[test]
fn columns_that_are_not_there_are_refused_with_those_that_are() {
    let words = ["places.csv", "there is no column `lng`", "2 columns: lat, lon"];
    refused("column", "places.csv", places(0, ""), &["--columns", "lat,lng"], &words);
    let twice = ["--manifold", "sphere:2", "--columns", "lat,lat"];
    refused("twice", "places.csv", places(0, ""), &twice, &["places.csv", "column 1 (`lat`)", "twice"]);
    let words = ["places.csv", "sphere:2", "2 (latlon)"];
    refused("one", "places.csv", places(0, ""), &["--manifold", "sphere:2", "--columns", "lat"], &words);
    let plain = table("a,b", 40, |i| format!("{i},{}", i * i));
    refused("where", "plain.csv", plain, &[], &["plain.csv", "give the manifold", "euclidean:2"]);
}

#[test]
fn files_that_cannot_be_read_are_refused() {
    let folder = Folder::new("refused-missing");
    let output = folder.minvel(&["fit", "nowhere.csv", "--out", "run"]);
    let message = error(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("nowhere.csv"), "{message}");
    assert!(folder.list("").is_empty(), "{:?}", folder.list(""));
    let output = folder.minvel(&["fit", ".", "--out", "run"]);
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
    refused(
        "parquet",
        "broken.parquet",
        b"PAR1 this is none PAR1",
        &["--manifold", "sphere:2"],
        &["broken.parquet", "damaged"],
    );
    refused("gzip", "cut.csv.gz", b"\x1f\x8b\x08\0\0\0\0\0", &[], &["cut.csv.gz", "damaged or truncated"]);
    refused("npy", "cut.npy", b"\x93NUMPY\x01\0\x10\0{'descr'", &[], &["cut.npy"]);
    refused("utf16", "wide.csv", b"\xff\xfel\0a\0t\0", &[], &["wide.csv", "UTF-8"]);
}

#[test]
fn settings_that_do_not_exist_or_make_no_sense_are_refused() {
    let good = places(0, "");
    let cases: [(&str, &[&str], &[&str]); 17] = [
        ("key", &["--set", "learning.step=5"], &["learning.step", "learning.steps"]),
        ("table", &["--set", "larning.steps=5"], &["larning"]),
        ("form", &["--set", "learning.steps"], &["key=value"]),
        ("type", &["--set", "learning.steps=many"], &["steps"]),
        ("zero", &["--set", "learning.steps=0"], &["learning.steps", "positive"]),
        ("looks", &["--set", "learning.looks=5000"], &["learning.looks"]),
        ("negative", &["--step-size=-1"], &["step_size", "positive"]),
        ("activation", &["--set", "network.activation=relu"], &["network.activation", "silu"]),
        ("objective", &["--objective", "luck"], &["luck", "minimum-velocity"]),
        ("flow", &["--flow", "lava"], &["lava", "langevin"]),
        ("seeds", &["--seeds", "0"], &["seeds"]),
        ("draws", &["--set", "partition.draws=10"], &["partition.draws", "1000"]),
        ("units", &["--units", "gradians"], &["--units", "gradians"]),
        ("layout", &["--layout", "latlong"], &["latlong", "latlon"]),
        ("manifold", &["--manifold", "sphere"], &["sphere:2"]),
        ("torus", &["--manifold", "donut:2"], &["donut:2", "torus"]),
        ("config", &["--config", "nowhere.toml"], &["nowhere.toml"]),
    ];
    for (name, arguments, words) in cases {
        refused(name, "places.csv", &good, arguments, words);
    }
    // Arguments that clap refuses have its own form.
    let folder = Folder::new("refused-clap");
    folder.file("places.csv", &good);
    for arguments in [&["fit"][..], &["fit", "places.csv", "--no-such"], &["fit", "places.csv", "--seeds", "many"]] {
        assert_eq!(folder.minvel(arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert_eq!(folder.list(""), ["places.csv"]);
    for config in ["learning = 3\n", "[learning]\nsteps = \"many\"\n", "[unknown]\n", "not toml"] {
        folder.file("own.toml", config);
        let output = folder.minvel(&["fit", "places.csv", "--out", "run", "--config", "own.toml"]);
        assert_eq!(output.status.code(), Some(2), "{config}: {}", error(&output));
        assert_eq!(folder.list(""), ["own.toml", "places.csv"], "{config}");
    }
}

#[test]
fn a_folder_that_is_not_empty_is_left_alone() {
    let folder = Folder::new("refused-folder");
    folder.file("places.csv", places(0, ""));
    std::fs::create_dir(folder.path("run")).unwrap();
    std::fs::write(folder.path("run/thesis.txt"), "years of work").unwrap();
    let output = folder.minvel(&["fit", "places.csv", "--out", "run"]);
    let message = error(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("not empty") && message.contains("--resume"), "{message}");
    assert_eq!(folder.list("run"), ["thesis.txt"]);
    folder.file("plain", "a file, no folder");
    let output = folder.minvel(&["fit", "places.csv", "--out", "plain"]);
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
    assert_eq!(folder.list(""), ["places.csv", "plain", "run"]);
    for nothing in ["run", "nowhere"] {
        let output = folder.minvel(&["fit", "--resume", nothing]);
        assert_eq!(output.status.code(), Some(2), "{}", error(&output));
        assert!(error(&output).contains("no fit to resume here"), "{}", error(&output));
    }
    assert!(!folder.path("nowhere").exists());
}

/// Every command that uses a fit, refused: status 2, the words, and no file but those that were there.
fn all_refused(folder: &Folder, what: &str, commands: &[&[&str]], words: &[&str]) {
    let before = folder.list("");
    for command in commands {
        let output = folder.minvel(command);
        let message = error(&output);
        assert_eq!(output.status.code(), Some(2), "{what}, {command:?}: {message}");
        for word in words {
            assert!(message.contains(word), "{what}, {command:?}: no `{word}` in:\n{message}");
        }
        assert!(!message.contains("panicked"), "{what}, {command:?}: {message}");
        assert_eq!(folder.list(""), before, "{what}, {command:?}: something was left behind");
    }
}

#[test]
fn fits_of_another_version_broken_ones_and_none_at_all_are_refused() {
    let folder = Folder::new("refused-models");
    folder.file("quakes.csv", quakes(60, 1));
    folder.good(&[&["fit", "quakes.csv", "--out", "run", "--objective", "none"], &TINY[..]].concat());
    let commands: [&[&str]; 5] = [
        &["score", "run", "quakes.csv", "--out", "scored.csv"],
        &["sample", "run", "-n", "5", "--out", "drawn.csv"],
        &["evaluate", "run", "quakes.csv"],
        &["plot", "run", "--out", "figures"],
        &["inspect", "run"],
    ];
    let path = folder.path("run/model.safetensors");
    let whole = std::fs::read(&path).unwrap();
    let mark = br#"\"format\":1"#;
    let at = whole.windows(mark.len()).position(|w| w == mark).unwrap() + mark.len() - 1;
    let mut newer = whole.clone();
    newer[at] = b'7';
    std::fs::write(&path, newer).unwrap();
    all_refused(&folder, "newer", &commands, &["model.safetensors", "format 7", "this program reads format 1"]);
    std::fs::write(&path, &whole[..whole.len() - 100]).unwrap();
    all_refused(&folder, "cut", &commands, &["model.safetensors", "not a whole safetensors file"]);
    std::fs::write(&path, quakes(60, 1)).unwrap();
    all_refused(&folder, "foreign", &commands, &["model.safetensors", "not a whole safetensors file"]);
    std::fs::remove_file(&path).unwrap();
    all_refused(&folder, "missing", &commands, &["model.safetensors"]);
    std::fs::write(&path, &whole).unwrap();

    for (file, what) in [("summary.json", "plot"), ("report.json", "report")] {
        let good = std::fs::read(folder.path("run").join(file)).unwrap();
        for bytes in [&b"{\"rows\": 3"[..], b"{}", b""] {
            std::fs::write(folder.path("run").join(file), bytes).unwrap();
            all_refused(&folder, file, &[&[what, "run", "--out", "elsewhere"]], &[file]);
        }
        std::fs::write(folder.path("run").join(file), good).unwrap();
    }
    let nowhere: [&[&str]; 6] = [
        &["score", "nowhere", "quakes.csv", "--out", "scored.csv"],
        &["sample", "nowhere", "-n", "5", "--out", "drawn.csv"],
        &["evaluate", "nowhere", "quakes.csv"],
        &["plot", "nowhere"],
        &["inspect", "nowhere"],
        &["report", "nowhere"],
    ];
    all_refused(&folder, "no folder", &nowhere, &["nowhere"]);
    // As it was, it works.
    folder.good(&["score", "run", "quakes.csv", "--out", "scored.csv"]);
}

#[test]
fn data_that_do_not_fit_the_model_are_refused_by_every_command() {
    let folder = Folder::new("refused-data");
    folder.file("quakes.csv", quakes(60, 1));
    folder.good(&[&["fit", "quakes.csv", "--out", "run", "--objective", "none"], &TINY[..]].concat());
    let on = |file: &'static str| -> [Vec<&'static str>; 2] {
        [vec!["score", "run", file, "--out", "scored.csv"], vec!["evaluate", "run", file]]
    };
    for (file, contents, words) in [
        ("names.csv", "lat,lon\n1,2\n3,4\n", &["names.csv", "there is no column `latitude`", "lat, lon"][..]),
        ("pole.csv", "latitude,longitude\n1,2\n93,4\n", &["pole.csv", "line 3", "column 1 (`latitude`)", "93"]),
        ("text.csv", "latitude,longitude\n1,2\n3,west\n", &["text.csv", "line 3", "column 2 (`longitude`)", "west"]),
        ("none.csv", "latitude,longitude\n", &["none.csv", "no rows"]),
    ] {
        folder.file(file, contents);
        let commands = on(file);
        let commands: Vec<&[&str]> = commands.iter().map(Vec::as_slice).collect();
        all_refused(&folder, file, &commands, words);
    }
    all_refused(&folder, "no file", &[&["score", "run", "gone.csv", "--out", "scored.csv"]], &["gone.csv"]);
    let nowhere: [&[&str]; 2] =
        [&["score", "run", "quakes.csv", "--out", "no/scored.csv"], &["sample", "run", "--out", "no/drawn.csv"]];
    all_refused(&folder, "no folder", &nowhere, &["there is no folder no"]);
    let columns: [&[&str]; 1] = [&["evaluate", "run", "quakes.csv", "--columns", "latitude"]];
    all_refused(&folder, "too few columns", &columns, &["1 columns", "2: latitude, longitude"]);
    let names: [&[&str]; 3] = [
        &["score", "run", "quakes.csv", "--out", "scored.xlsx"],
        &["sample", "run", "--out", "drawn.doc"],
        &["sample", "run", "--out", "drawn"],
    ];
    all_refused(&folder, "a name of no format", &names, &[".csv"]);
    let figures: [&[&str]; 1] = [&["plot", "run", "--out", "figures", "--centre", "1000"]];
    all_refused(&folder, "no longitude", &figures, &["--centre: expected a longitude"]);
    let figures: [&[&str]; 1] = [&["plot", "run", "--out", "figures", "--compass", "true"]];
    all_refused(&folder, "no wind rose", &figures, &["--compass applies to wind roses", "remove the option"]);
}
