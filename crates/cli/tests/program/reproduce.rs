//! The command line: exit status, messages, and nothing half-written.

use crate::support::Folder;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn minvel(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_minvel")).args(arguments).output().unwrap()
}

fn folder(name: &str) -> PathBuf {
    minvel_testing::fresh(&format!("cli-{name}"))
}

#[test]
fn bad_input_is_refused_with_status_2_and_leaves_nothing() {
    let out = folder("refused");
    let out = out.to_str().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["reproduce", "sintetic"], "Did you mean `synthetic`?"),
        (&["reproduce", "gaussian", "--set", "sampels=3"], "Did you mean `samples`?"),
        (&["reproduce", "gaussian", "--set", "learning.batc=3"], "Did you mean `learning.batch`?"),
        (&["reproduce", "gaussian", "--set", "samples=many"], "integer"),
        (&["reproduce", "gaussian", "--set", "samples"], "key=value"),
        (&["reproduce", "gaussian", "--set", "samples=3"], "at least"),
        (&["reproduce", "gaussian", "--set", "deviation=-1"], "`deviation` must be positive"),
        (&["reproduce", "gaussian", "--seeds", "0"], "at least 1"),
        (&["reproduce", "gaussian", "--seeds", "few"], "few"),
        (&["reproduce", "gaussian", "--jobs", "0"], "--jobs"),
        (&["reproduce", "gaussian", "--config", "no-such-file.toml"], "no-such-file.toml"),
        (&["reproduce", "gaussian", "--partial"], "--resume"),
        (&["reproduce", "synthetic", "--set", "rate=1e-3"], "bias-variance: unknown setting `rate`"),
        (&["reproduce", "synthetic", "--set", "rate=1e-3"], "circle.KEY"),
        (&["reproduce", "gaussian", "--device", "cuda"], "cpu"),
        (&["reproduce", "gaussian", "--device", "tpu"], "tpu"),
    ];
    for (arguments, expected) in cases {
        let output = minvel(&[arguments, ["--out", out].as_slice()].concat());
        let message = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert!(!std::path::Path::new(out).exists(), "{arguments:?} left a folder behind");
    }
    for arguments in [vec![], vec!["reproduce"], vec!["--resume"], vec!["reproduce", "--resume", "no-such-folder"]] {
        assert_eq!(minvel(&arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert!(!std::path::Path::new("no-such-folder").exists());
}

/// Settings are checked without data (once `earth` refused its own on a machine that had none); work is not begun without.
#[test]
fn an_experiment_asks_for_the_data_it_lacks_and_leaves_nothing() {
    let folder = Folder::new("lacks-data");
    let output = folder.minvel(&["reproduce", "earth", "--quick", "--set", "sets=['volcano', 'rna']", "--out", "out"]);
    let message = String::from_utf8_lossy(&output.stderr).to_string();
    assert_eq!(output.status.code(), Some(2), "{message}");
    for part in ["volcano, rna", "not on this machine", "`minvel data fetch volcano rna`"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!folder.path("out").exists(), "a folder is left behind");
}

#[test]
fn a_run_keeps_its_precision() {
    let out = folder("precision");
    let path = out.to_str().unwrap();
    let run = minvel(&["reproduce", "gaussian", "--quick", "--device", "cpu", "--precision", "tf32", "--out", path]);
    assert!(run.status.success());
    let kept = std::fs::read_to_string(out.join("run.json")).unwrap();
    assert!(kept.contains("\"precision\": \"tf32\""), "{kept}");
    let resume = |more: &[&str]| minvel(&[&["reproduce", "--resume", path, "--device", "cpu"], more].concat());
    assert!(resume(&[]).status.success());
    assert_eq!(resume(&["--precision", "f32"]).status.code(), Some(2));
    std::fs::write(out.join("run.json"), kept.replace("tf32", "f16")).unwrap();
    let refused = resume(&[]);
    let message = String::from_utf8_lossy(&refused.stderr).to_string();
    assert!(refused.status.code() == Some(2) && message.contains("run.json") && message.contains("f16"), "{message}");
    std::fs::remove_dir_all(&out).unwrap();
}

/// `minvel reproduce --list | head` once ended in a panic.
#[test]
fn readers_may_stop_reading() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minvel"));
    let mut child =
        command.args(["reproduce", "--list"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn help_teaches_by_example() {
    let output = minvel(&["reproduce", "--help"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("minvel reproduce synthetic --quick"));
    for command in
        ["fit", "data", "reproduce", "train", "fid", "encode", "decode", "plot", "compare", "evaluate", "grid"]
    {
        let help = String::from_utf8(minvel(&[command, "--help"]).stdout).unwrap();
        let examples = help.split("Examples:\n").nth(1).unwrap_or_else(|| panic!("{command} has no examples"));
        let broken =
            examples.lines().take_while(|line| line.starts_with("  ")).find(|line| !line.starts_with("  minvel "));
        assert_eq!(broken, None, "{command}: an example does not fit its line");
    }
    let list = String::from_utf8(minvel(&["reproduce", "--list"]).stdout).unwrap();
    assert!(list.contains("synthetic") && !list.contains("gaussian"), "{list}");
}

#[test]
fn a_run_writes_its_report_and_keeps_others_folders() {
    let out = folder("run");
    let path = out.to_str().unwrap();
    let run = || minvel(&["reproduce", "gaussian", "--quick", "--seeds", "3", "--threads", "1", "--out", path]);
    let output = run();
    let text = String::from_utf8_lossy(&output.stdout).to_string();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("claims hold") && text.contains("report.html"), "{text}");
    for name in ["report.json", "report.md", "report.html", "variance.svg", "variance.png"] {
        assert!(out.join(name).exists(), "{name}");
    }
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("report.json")).unwrap()).unwrap();
    for key in ["experiment", "config", "device", "seconds", "machine", "versions", "revision", "rows", "figures"] {
        assert!(!report[key].is_null(), "{key}");
    }
    assert_eq!(report["config"]["seeds"], 3);
    // another run does not touch it
    assert_eq!(run().status.code(), Some(2));
    std::fs::remove_dir_all(&out).unwrap();
}

#[test]
fn experiments_side_by_side_find_what_they_find_one_after_another() {
    let run = |jobs: &str| {
        let out = folder(&format!("jobs-{jobs}"));
        let small =
            ["circle.run=[\"paper\"]", "circle.settings.paper.iterations=20", "circle.settings.paper.batch=100"];
        let sets = small.iter().flat_map(|set| ["--set", set]);
        let start = ["reproduce", "gaussian", "circle", "--quick", "--device", "cpu", "--seeds", "2", "--jobs", jobs];
        let arguments: Vec<&str> = start.into_iter().chain(sets).chain(["--out", out.to_str().unwrap()]).collect();
        let output = minvel(&arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report = std::fs::read(out.join("report.json")).unwrap();
        std::fs::remove_dir_all(&out).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        (report["rows"].clone(), report["timings"].as_array().unwrap().len())
    };
    let (one, two) = (run("1"), run("2"));
    assert!(one.0.as_array().is_some_and(|rows| rows.len() > 5), "{one:?}");
    assert_eq!(one, two);
    assert_eq!(one.1, 2);
}
