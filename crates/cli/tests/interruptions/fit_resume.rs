//! A fit that is killed at any moment goes on and ends with the same bits.

use crate::support::{Folder, Numbers, error, quakes};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

const SETTINGS: [&str; 17] = [
    "--set",
    "few.rows=0",
    "--quick",
    "--set",
    "learning.steps=200",
    "--set",
    "learning.looks=4",
    "--set",
    "network.hidden=[16]",
    "--set",
    "partition.draws=1000",
    "--seeds",
    "2",
    "--threads",
    "1",
    "--save-every",
    "0",
];

fn begin<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["fit", "quakes.csv", "--out", out], &SETTINGS[..], more].concat()
}

fn resume(out: &str) -> [&str; 7] {
    ["fit", "--resume", out, "--threads", "1", "--save-every", "0"]
}

/// Everything that must not depend on interruptions: the model's bytes, the numbers but the time, the curves.
fn outcome(folder: &Folder, out: &str) -> (Vec<u8>, Value, Vec<u8>, String) {
    let read = |name: &str| std::fs::read(folder.path(out).join(name)).unwrap();
    let mut summary: Value = serde_json::from_slice(&read("summary.json")).unwrap();
    summary["seconds"] = Value::Null;
    let report: Value = serde_json::from_slice(&read("report.json")).unwrap();
    let shown =
        serde_json::to_string(&(&report["rows"], &report["figures"], &report["config"], &report["quick"])).unwrap();
    (read("model.safetensors"), summary, read("metrics.csv"), shown)
}

/// No file may be there in part, whatever was killed.
fn all_whole(folder: &Folder, out: &str) {
    for name in folder.list(out).iter().filter(|name| name.ends_with(".json")) {
        let bytes = std::fs::read(folder.path(out).join(name)).unwrap();
        serde_json::from_slice::<Value>(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn twenty_kills_at_random_moments_change_no_bit_of_a_fit() {
    let folder = Folder::new("fit-killed");
    folder.file("quakes.csv", quakes(60, 1));
    let begun = Instant::now();
    folder.good(&begin("whole", &[]));
    let mut duration = begun.elapsed().as_secs_f64();
    let expected = outcome(&folder, "whole");

    // moments from a fixed sequence; how far each gets depends on the machine, what comes out must not
    let (mut numbers, mut kills, mut inside, mut runs) = (Numbers::new(1), 0, 0, 0);
    while kills < 20 {
        let start =
            |arguments: &[&str]| folder.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut child = start(&begin("killed", &[]));
        loop {
            if kills < 20 {
                std::thread::sleep(Duration::from_secs_f64(0.6 * numbers.uniform() * duration));
            } else {
                child.wait().unwrap();
            }
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success());
                // it may be less busy now than when the time was taken
                duration *= 0.8;
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            if folder.path("killed").exists() {
                all_whole(&folder, "killed");
            }
            let work = folder.path("killed/work");
            inside += usize::from(work.read_dir().is_ok_and(|mut entries| entries.next().is_some()));
            child = match folder.path("killed/run.json").exists() {
                true => start(&resume("killed")),
                // killed before it had begun: there is nothing to go on with
                false => {
                    let _ = std::fs::remove_dir_all(folder.path("killed"));
                    start(&begin("killed", &[]))
                }
            };
        }
        assert!(outcome(&folder, "killed") == expected, "after {kills} kills the outcome differs");
        assert!(!folder.path("killed/work").exists(), "checkpoints are left over");
        std::fs::remove_dir_all(folder.path("killed")).unwrap();
        runs += 1;
    }
    println!("{kills} kills in {runs} runs of {duration:.1} s, {inside} of them inside the training");
    assert!(inside > 0, "no kill hit the training: make it longer");
}

/// Few rows: folds with corrections of their own, kept apart.
#[test]
fn kills_change_no_bit_of_a_cross_validation() {
    let folder = Folder::new("fit-few-killed");
    folder.file("quakes.csv", quakes(120, 1));
    let few = ["--set", "few.rows=2000", "--set", "few.correction=100", "--set", "few.folds=3"];
    let begun = Instant::now();
    folder.good(&begin("whole", &few));
    let duration = begun.elapsed().as_secs_f64();
    let expected = outcome(&folder, "whole");
    let start =
        |arguments: &[&str]| folder.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (mut numbers, mut kills) = (Numbers::new(2), 0);
    let mut child = start(&begin("killed", &few));
    loop {
        std::thread::sleep(Duration::from_secs_f64(duration * (0.2 + 0.5 * numbers.uniform())));
        if child.try_wait().unwrap().is_some() {
            break;
        }
        if kills == 4 {
            child.wait().unwrap();
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        child = match folder.path("killed/run.json").exists() {
            true => start(&resume("killed")),
            false => start(&begin("killed", &few)),
        };
    }
    println!("{kills} kills of a run of {duration:.1} s");
    assert!(kills > 0, "no kill hit the fit");
    assert!(outcome(&folder, "killed") == expected, "after {kills} kills the outcome differs");
}

/// The twin: other randomness must give another outcome, in every part that is compared.
#[test]
fn another_seed_gives_another_fit() {
    let folder = Folder::new("fit-seeds");
    folder.file("quakes.csv", quakes(60, 1));
    folder.good(&begin("one", &[]));
    folder.good(&begin("same", &[]));
    folder.good(&begin("two", &["--seed", "2"]));
    let (one, two) = (outcome(&folder, "one"), outcome(&folder, "two"));
    assert!(one == outcome(&folder, "same"));
    assert!(one.0 != two.0 && one.1 != two.1 && one.2 != two.2 && one.3 != two.3);
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_a_fit_at_a_safe_place_and_resume_goes_on_or_says_why_not() {
    let folder = Folder::new("fit-ctrl-c");
    folder.file("quakes.csv", quakes(60, 1));
    let long = ["--set", "learning.steps=20_000"];
    let mut child = folder.command(&begin("run", &long)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let limit = Instant::now() + Duration::from_secs(60);
    let begun = || folder.path("run/work").read_dir().is_ok_and(|mut entries| entries.next().is_some());
    while !begun() {
        if Instant::now() > limit || child.try_wait().unwrap().is_some() {
            let _ = child.kill();
            panic!("the training never began");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(begun() && !folder.path("run/report.json").exists() && !folder.path("run/summary.json").exists());
    all_whole(&folder, "run");
    // What is not finished cannot be used yet, and says so.
    for command in [&["plot", "run"][..], &["inspect", "run"], &["score", "run", "quakes.csv", "--out", "s.csv"]] {
        let output = folder.minvel(command);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {}", error(&output));
    }
    // The data may not change in between.
    folder.file("quakes.csv", quakes(61, 1));
    let output = folder.minvel(&resume("run"));
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
    assert!(error(&output).contains("has changed"), "{}", error(&output));
    // Nor the version of the program.
    folder.file("quakes.csv", quakes(60, 1));
    let path = folder.path("run/run.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&version), "{text}");
    for (broken, why) in
        [(text.replace(&version, "\"version\": \"99.0.0\""), "99.0.0"), (text[..40].to_string(), "run.json")]
    {
        std::fs::write(&path, broken).unwrap();
        let output = folder.minvel(&resume("run"));
        assert_eq!(output.status.code(), Some(2), "{}", error(&output));
        assert!(error(&output).contains(why), "{}", error(&output));
    }
    // Nor may anything else be asked for.
    std::fs::write(&path, text).unwrap();
    let output = folder.minvel(&["fit", "--resume", "run", "--seed", "3"]);
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
}
