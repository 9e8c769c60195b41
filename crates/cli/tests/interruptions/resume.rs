//! A run that is killed at any moment goes on and ends with the same bits.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SETTINGS: &[&str] = &["--quick", "--set", "samples=400_000", "--set", "learning.iterations=6000", "--seeds", "3"];

fn folder(name: &str) -> PathBuf {
    minvel_testing::fresh(&format!("resume-{name}"))
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minvel"));
    command.arg("reproduce").args(arguments).args(["--save-every", "0", "--threads", "1"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn begin(out: &Path, more: &[&str]) -> Command {
    let mut command = command(&["gaussian", "--out", out.to_str().unwrap()]);
    command.args(SETTINGS).args(more);
    command
}

/// Everything a reader sees but the times.
fn rows(out: &Path) -> String {
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("report.json")).unwrap()).unwrap();
    serde_json::to_string(&(&report["rows"], &report["figures"], &report["config"])).unwrap()
}

/// No file may be there in part: each JSON is whole, whatever was killed.
fn all_whole(out: &Path) {
    for entry in std::fs::read_dir(out.join("units")).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "json") {
            let text = std::fs::read(&path).unwrap();
            serde_json::from_slice::<serde_json::Value>(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        }
    }
}

#[test]
fn twenty_kills_at_random_moments_change_no_bit() {
    let whole = folder("whole");
    let begun = Instant::now();
    assert!(begin(&whole, &[]).status().unwrap().success());
    let duration = begun.elapsed();
    let expected = rows(&whole);

    // moments from a fixed sequence; how far each gets depends on the machine, what comes out must not
    let (mut word, mut kills, mut inside) = (1u64, 0, 0);
    while kills < 20 {
        let out = folder("killed");
        let mut child = begin(&out, &[]).spawn().unwrap();
        loop {
            word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let share = (word >> 40) as f64 / (1u64 << 24) as f64;
            std::thread::sleep(Duration::from_secs_f64(0.7 * share * duration.as_secs_f64()));
            let ended = child.try_wait().unwrap();
            if let Some(status) = ended {
                assert!(status.success());
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            all_whole(&out);
            inside += usize::from(out.join("units/learning.work/a.safetensors").exists());
            if !out.join("run.json").exists() {
                // killed before it had begun: there is nothing to go on with
                let _ = std::fs::remove_dir_all(&out);
                child = begin(&out, &[]).spawn().unwrap();
            } else {
                child = command(&["--resume", out.to_str().unwrap()]).spawn().unwrap();
            }
        }
        assert_eq!(rows(&out), expected);
        std::fs::remove_dir_all(&out).unwrap();
    }
    println!("{kills} kills, {inside} of them inside the training");
    assert!(inside > 0, "no kill hit the training: make it longer");
    std::fs::remove_dir_all(&whole).unwrap();
}

/// The twin: other randomness must give other rows.
#[test]
fn another_seed_gives_other_rows() {
    let (one, two) = (folder("one"), folder("two"));
    assert!(begin(&one, &[]).status().unwrap().success());
    assert!(begin(&two, &["--set", "seed=2"]).status().unwrap().success());
    assert_ne!(rows(&one), rows(&two));
    for out in [one, two] {
        std::fs::remove_dir_all(out).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_at_a_safe_place_with_status_130() {
    let out = folder("interrupt");
    let mut child = begin(&out, &["--set", "learning.iterations=2_000_000"]).spawn().unwrap();
    let limit = Instant::now() + Duration::from_secs(60);
    while !out.join("units/learning.work/a.safetensors").exists() {
        assert!(Instant::now() < limit && child.try_wait().unwrap().is_none(), "the training never began");
        std::thread::sleep(Duration::from_millis(20));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    all_whole(&out);
    assert!(out.join("units/learning.work/a.safetensors").exists() && !out.join("report.json").exists());
    std::fs::remove_dir_all(&out).unwrap();
}
