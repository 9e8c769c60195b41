//! Hostile files end with a message and exit status 2, in a process that the system gives little memory.
#![cfg(target_os = "linux")]

use crate::support::{Folder, error};
use minvel_lab::table::{Column, write_table};
use std::process::Output;

/// Memory that the system gives the program, in KiB.
const GIVEN: usize = 1 << 20;

/// Runs the program with little memory.
fn confined(folder: &Folder, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_minvel");
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(format!("ulimit -v {GIVEN}; exec \"$0\" \"$@\"")).arg(program).args(arguments);
    shell.env_remove("MINVEL_DATA").env("XDG_CACHE_HOME", folder.path("cache")).current_dir(folder.path(""));
    shell.output().unwrap()
}

/// Gzip of 8 MiB so many times: members one after another are one file.
fn bomb(folder: &Folder, times: usize) -> Vec<u8> {
    let column = || Column::numbers("", vec![1.5; 1 << 20]);
    write_table(&folder.path("part.csv.gz"), &[column(), column()]).unwrap();
    std::fs::read(folder.path("part.csv.gz")).unwrap().repeat(times)
}

#[test]
fn ten_gigabytes_in_gzip_end_at_the_limit() {
    let folder = Folder::new("bomb");
    let bomb = bomb(&folder, 1280);
    assert!(bomb.len() < 100 << 20, "a bomb is small");
    let bomb = folder.file("bomb.csv.gz", bomb);
    let output = confined(&folder, &["fit", &bomb, "--max-size", "128M", "--out", "fit"]);
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
    for part in ["bomb.csv.gz", "the limit is 128 MiB", "raise the limit with --max-size 256M"] {
        assert!(error(&output).contains(part), "{}", error(&output));
    }
    assert!(!folder.path("fit").exists(), "nothing was written");
}

#[test]
fn the_limit_can_be_raised() {
    let folder = Folder::new("raised");
    let rows: String = (0..4000).map(|i| format!("{},{}\n", i % 61, i % 89)).collect();
    let file = folder.file("rows.csv", format!("lat,lon\n{rows}"));
    let small = folder.minvel(&["fit", &file, "--quick", "--max-size", "16K", "--out", "a"]);
    assert_eq!(small.status.code(), Some(2));
    assert!(error(&small).contains("--max-size 32K"), "{}", error(&small));
    let wrong = folder.minvel(&["fit", &file, "--max-size", "many"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(error(&wrong).contains("invalid size `many`"), "{}", error(&wrong));
    let settings = ["--set", "objective=none", "--set", "kernels.centres=50", "--max-size", "64M"];
    folder.good(&[&["fit", &file, "--quick", "--out", "b"][..], &settings[..]].concat());
}

/// Covariances of so many columns would take 40 GiB.
#[test]
fn kernels_in_too_many_dimensions_are_refused_before_anything_is_written() {
    let folder = Folder::new("columns");
    let row = |i: usize| (0..10_000).map(|k| ((i + k) % 61).to_string()).collect::<Vec<_>>().join(",") + "\n";
    let file = folder.file("wide.csv", (0..60).map(row).collect::<String>());
    let output = confined(&folder, &["fit", &file, "--manifold", "euclidean:10000", "--out", "fit"]);
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
    for part in ["10000 dimensions", "would take 44.7 GiB of memory, and the limit is 4 GiB", "--max-size 64G"] {
        assert!(error(&output).contains(part), "{}", error(&output));
    }
    assert!(!folder.path("fit").exists());
}

/// A manifold's name may come with a file that somebody sent.
#[test]
fn a_deep_name_is_refused() {
    let folder = Folder::new("deep");
    let file = folder.file("rows.csv", "1,2\n".repeat(40));
    let name = format!("{}torus:1{}", "product(".repeat(10_000), ")".repeat(10_000));
    for name in [name.as_str(), "euclidean:99999999999"] {
        let output = confined(&folder, &["fit", &file, "--manifold", name]);
        assert_eq!(output.status.code(), Some(2), "{}", error(&output));
        assert!(error(&output).contains("at most"), "{}", error(&output));
    }
}

/// `minvel report` wrote figures wherever their names led.
#[test]
fn figures_of_a_report_stay_in_its_folder() {
    let folder = Folder::new("names");
    let rows: String = (0..60).map(|i| format!("{},{}\n", i % 7, i % 11)).collect();
    let file = folder.file("rows.csv", format!("x,y\n{rows}"));
    folder.good(&["fit", &file, "--manifold", "euclidean:2", "--quick", "--set", "objective=none", "--out", "fit"]);
    let path = folder.path("fit/report.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut report: serde_json::Value = serde_json::from_str(&text).unwrap();
    report["figures"][0]["name"] = "../outside".into();
    std::fs::write(&path, report.to_string()).unwrap();
    let output = folder.minvel(&["report", "fit"]);
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
    assert!(error(&output).contains("figure `../outside`"), "{}", error(&output));
    assert!(!folder.path("outside.svg").exists());
}
