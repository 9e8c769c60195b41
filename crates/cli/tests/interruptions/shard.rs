//! Processes that share the units of a run in one folder, some of which are killed.

use crate::support::{Folder, SPLIT, TINY, error, quakes};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

/// 39 steps and one learning: forty units, short ones.
fn sweep<'a>(steps: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["reproduce", "gaussian", "--quick", "--threads", "1", "--save-every", "0", "--set", steps];
    arguments.extend([
        "--set",
        "samples=60_000",
        "--set",
        "learning.iterations=300",
        "--seeds",
        "3",
        "--device",
        "cpu",
    ]);
    arguments.extend(more);
    arguments
}

fn steps() -> String {
    let steps: Vec<String> = (0..39).map(|k| format!("{:e}", 1e-3 * 1.15f64.powi(k))).collect();
    format!("step_sizes=[{}]", steps.join(", "))
}

fn start(folder: &Folder, arguments: &[&str]) -> Child {
    folder.command(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Everything a reader sees but the times.
fn rows(out: &Path) -> String {
    let report: Value = serde_json::from_slice(&std::fs::read(out.join("report.json")).unwrap()).unwrap();
    serde_json::to_string(&(&report["rows"], &report["figures"], &report["config"], &report["notes"])).unwrap()
}

/// Processes that claim a unit now.
fn owners(units: &Path) -> BTreeSet<u32> {
    let entries = std::fs::read_dir(units).into_iter().flatten().flatten();
    let claims = entries.filter(|entry| entry.file_name().to_string_lossy().contains(".claim."));
    let owner = |text: Vec<u8>| Some(serde_json::from_slice::<Value>(&text).ok()?["pid"].as_u64()? as u32);
    claims.filter_map(|entry| owner(std::fs::read(entry.path()).ok()?)).collect()
}

/// Units that a process worked on to their end, as it says.
fn worked(output: &Output) -> Vec<String> {
    let done = |line: &&str| line.starts_with("gaussian [") && !line.ends_with("(resumed)");
    let name = |line: &str| line.split("] ").nth(1).and_then(|rest| rest.split(": ").next()).map(str::to_string);
    error(output).lines().filter(done).filter_map(name).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn forty_units_by_eight_processes_of_which_three_are_killed_give_the_report_of_one() {
    let (folder, steps) = (Folder::new("shard"), steps());
    folder.good(&sweep(&steps, &["--out", "alone"]));
    let expected = rows(&folder.path("alone"));

    let (units, shards) = (folder.path("shared/units"), (1..=8).map(|k| format!("{k}/8")).collect::<Vec<_>>());
    let begin = |shard: &String| start(&folder, &sweep(&steps, &["--out", "shared", "--shard", shard]));
    let mut children: Vec<Child> = shards.iter().map(begin).collect();
    // three that are at work on a unit
    let (mut killed, limit) = (vec![], Instant::now() + Duration::from_secs(120));
    while killed.len() < 3 {
        assert!(Instant::now() < limit, "there is nothing to kill: make the units longer");
        let at_work = owners(&units);
        let Some(k) = children.iter().position(|child| at_work.contains(&child.id())) else { continue };
        let mut child = children.swap_remove(k);
        child.kill().unwrap();
        child.wait().unwrap();
        killed.push(child.id());
        std::thread::sleep(Duration::from_millis(30));
    }
    let left: Vec<u32> = owners(&units).into_iter().filter(|pid| killed.contains(pid)).collect();
    let outputs: Vec<Output> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    for output in &outputs {
        assert!(output.status.success(), "{}", error(output));
    }
    assert_eq!(rows(&folder.path("shared")), expected);
    // no claim is left, every unit is there, and those who lived did none of them twice
    let names = folder.list("shared/units");
    assert_eq!((names.len(), names.iter().filter(|name| name.ends_with(".json")).count()), (40, 40), "{names:?}");
    let each: Vec<Vec<String>> = outputs.iter().map(worked).collect();
    let all: Vec<&String> = each.iter().flatten().collect();
    assert_eq!(all.len(), all.iter().collect::<BTreeSet<_>>().len(), "a unit was done twice: {all:?}");
    let busy = each.iter().filter(|own| !own.is_empty()).count();
    println!("{} claims of the killed were left; {busy} of 5 others did {} units", left.len(), all.len());
    assert!(busy > 1, "the work was shared");
}

/// Also where all are killed nothing is lost: what is finished is reported, and any process goes on.
#[cfg(target_os = "linux")]
#[test]
fn a_run_whose_processes_all_died_is_reported_in_part_and_joined_again() {
    let (folder, steps) = (Folder::new("shard-all"), steps());
    let arguments = sweep(&steps, &["--out", "shared", "--shard", "1/1"]);
    let mut child = start(&folder, &arguments);
    let limit = Instant::now() + Duration::from_secs(120);
    while folder.files("shared/units").iter().filter(|name| name.ends_with(".json")).count() < 3 {
        assert!(Instant::now() < limit);
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // this experiment has no partial report: what to do is said
    let refused = folder.minvel(&["report", "shared"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(error(&refused).contains("finish it with: minvel reproduce --resume shared"), "{}", error(&refused));
    folder.good(&["reproduce", "--resume", "shared", "--shard", "2/3", "--threads", "1", "--device", "cpu"]);
    let merged = rows(&folder.path("shared"));
    // the units alone make the report
    std::fs::remove_file(folder.path("shared/report.json")).unwrap();
    folder.good(&["report", "shared"]);
    assert_eq!(rows(&folder.path("shared")), merged);
}

#[test]
fn shards_that_cannot_be_are_refused() {
    let (folder, steps) = (Folder::new("shard-refused"), steps());
    let refused = |arguments: &[&str], words: &str| {
        let output = folder.minvel(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", error(&output));
        assert!(error(&output).contains(words), "{arguments:?}: {}", error(&output));
    };
    refused(&sweep(&steps, &["--out", "a", "--shard", "3/2"]), "there is no process 3 of 2");
    refused(&sweep(&steps, &["--out", "a", "--shard", "two"]), "expected K/N");
    refused(&sweep(&steps, &["--shard", "1/2"]), "--shard requires --out DIR");
    assert!(folder.list(".").is_empty(), "{:?}", folder.list("."));
    // other settings
    folder.good(&sweep("step_sizes=[1e-2, 2e-2, 4e-2]", &["--out", "a", "--shard", "1/2"]));
    refused(&sweep(&steps, &["--out", "a", "--shard", "2/2"]), "`step_sizes = [0.01, 0.02, 0.04]` there");
    std::fs::create_dir(folder.path("full")).unwrap();
    folder.file("full/thesis.txt", "");
    refused(&sweep(&steps, &["--out", "full", "--shard", "1/2"]), "not empty");
    assert_eq!(folder.list("full"), ["thesis.txt"]);
}

#[test]
fn the_launcher_says_which_process_it_is() {
    let folder = Folder::new("shard-auto");
    let arguments = sweep("step_sizes=[1e-2, 2e-2, 4e-2]", &["--out", "auto", "--shard", "auto"]);
    let clean = || {
        let mut command = folder.command(&arguments);
        for name in ["SLURM_ARRAY_TASK_ID", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"] {
            command.env_remove(name);
        }
        command
    };
    let output = clean().output().unwrap();
    assert!(output.status.code() == Some(2) && error(&output).contains("the environment names no process"));
    let output = clean().env("PMI_RANK", "1").env("PMI_SIZE", "2").output().unwrap();
    assert!(output.status.success(), "{}", error(&output));
}

/// A fit is one unit: of three processes one does it, the others wait, and all print the same.
#[test]
fn a_fit_that_processes_share_is_made_once() {
    let folder = Folder::new("shard-fit");
    folder.file("quakes.csv", quakes(400, 1));
    let arguments =
        [&["fit", "quakes.csv", "--out", "q", "--device", "cpu", "--threads", "1"], &TINY[..], &SPLIT].concat();
    let begin = |k: usize| {
        let shard = format!("{k}/3");
        let arguments = [&arguments[..], &["--shard", &shard]].concat();
        folder.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = (1..=3).map(begin).collect();
    let outputs: Vec<Output> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    for output in &outputs {
        assert!(output.status.success(), "{}", error(output));
        assert_eq!(output.stdout, outputs[0].stdout);
    }
    let waited = outputs.iter().filter(|o| error(o).contains("finished by another process")).count();
    assert_eq!(waited, 2);
    assert!(!folder.list("q").iter().any(|name| name.contains("claim")), "{:?}", folder.list("q"));
    // other settings in the folder
    let other = folder.minvel(&[&arguments[..], &["--seed", "7", "--shard", "1/2"]].concat());
    assert_eq!(other.status.code(), Some(2), "{}", error(&other));
    assert!(error(&other).contains("`seed = 1` there, `seed = 7` here"), "{}", error(&other));
}
