//! A GPU that fails in the middle of the work ends it with a message and exit status 3, and `--resume` goes on to the same bits.
//!
//! Needs the emulated card, which fails on request: `crates/engine/emulator/run cargo test --release -p minvel-cli --test real_data device::`.

use minvel_testing::{Test, emulated_card, test};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub fn tests() -> [Test; 2] {
    let cards = minvel::cards().unwrap_or_default();
    let card = || emulated_card(cards.first().is_some_and(|card| card.name == "emulated card"));
    [
        test!(a_gpu_that_fails_half_way_is_told_and_the_run_goes_on_to_the_same_bits).needs(card()),
        test!(two_cards_share_the_units_and_find_what_one_finds).needs(card()),
    ]
}

fn folder(name: &str) -> PathBuf {
    minvel_testing::fresh(&format!("device-{name}"))
}

fn minvel(arguments: &[&str], fault: Option<(&str, &str)>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minvel"));
    command.arg("reproduce").args(arguments).args(["--save-every", "0", "--threads", "1"]).envs(fault);
    command.output().expect("the program starts")
}

fn begin(out: &Path, fault: Option<(&str, &str)>) -> Output {
    begin_on("cuda", out, fault)
}

fn begin_on(device: &str, out: &Path, fault: Option<(&str, &str)>) -> Output {
    const SETTINGS: [&str; 8] = [
        "--quick",
        "--seeds",
        "2",
        "--set",
        "samples=20_000",
        "--set",
        "step_sizes=[1e-3,1e-2,1e-1]",
        "--set=learning.iterations=60",
    ];
    let asked = ["gaussian", "--out", out.to_str().expect("a plain name"), "--device", device];
    minvel(&[&asked[..], &SETTINGS].concat(), fault)
}

/// Everything a reader sees but the times.
fn rows(out: &Path) -> String {
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("report.json")).unwrap()).unwrap();
    serde_json::to_string(&(&report["rows"], &report["figures"], &report["config"])).unwrap()
}

fn a_gpu_that_fails_half_way_is_told_and_the_run_goes_on_to_the_same_bits() {
    let whole = folder("whole");
    assert!(begin(&whole, None).status.success());
    // In the middle of the training; when it is to begin; while the card is full.
    let faults = [("EMULATOR_FAIL", "kernel:40"), ("EMULATOR_FAIL", "cuGraphLaunch:2"), ("EMULATOR_MEMORY", "100000")];
    for fault in faults {
        let out = folder("failed");
        let Output { status, stderr, .. } = begin(&out, Some(fault));
        let said = String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(3), "{fault:?}: {said}");
        assert!(!said.contains("panicked") && said.contains("--device cpu"), "{fault:?}: {said}");
        let what = if fault.0 == "EMULATOR_MEMORY" { "out of memory" } else { "the GPU failed" };
        assert!(said.contains(what) && said.contains(&format!("--resume {}", out.display())), "{fault:?}: {said}");
        let resumed = minvel(&["--resume", out.to_str().expect("a plain name"), "--device", "cuda"], None);
        assert!(resumed.status.success(), "{fault:?}: {}", String::from_utf8_lossy(&resumed.stderr));
        assert_eq!(rows(&out), rows(&whole), "{fault:?}");
        std::fs::remove_dir_all(out).expect("a temporary folder");
    }
    std::fs::remove_dir_all(whole).expect("a temporary folder");
}

fn two_cards_share_the_units_and_find_what_one_finds() {
    let (one, two) = (folder("one"), folder("two"));
    assert!(begin(&one, None).status.success());
    let Output { status, stderr, .. } = begin_on("cuda:all", &two, Some(("EMULATOR_CARDS", "2")));
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    assert_eq!(rows(&two), rows(&one));
    let text = std::fs::read_to_string(two.join("report.json")).unwrap();
    assert!(
        text.contains("cuda:0 (emulated card)") && text.contains("cuda:1 (emulated card)"),
        "both cards have worked"
    );
    [one, two].iter().for_each(|out| std::fs::remove_dir_all(out).expect("a temporary folder"));
}
