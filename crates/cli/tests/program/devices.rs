//! Devices that are not there, and what the help says of those that fail.

use std::process::Command;

#[test]
fn an_unknown_device_in_the_environment_is_bad_input() {
    let run =
        Command::new(env!("CARGO_BIN_EXE_minvel")).arg("devices").env("MINVEL_DEVICE", "abacus").output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(said.contains("MINVEL_DEVICE") && said.contains("abacus") && !said.contains("panicked"), "{said}");
}

#[test]
fn the_help_names_the_exit_status_of_a_device_that_fails() {
    let run = Command::new(env!("CARGO_BIN_EXE_minvel")).arg("--help").output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(said.lines().any(|line| line.trim().starts_with("3 ") && line.contains("--resume")), "{said}");
}

#[test]
fn scores_on_a_card_that_is_not_there_are_bad_input_and_leave_nothing() {
    let folder = minvel_testing::fresh("scores-without-a-card");
    let out = folder.join("scored.csv");
    let mut command = Command::new(env!("CARGO_BIN_EXE_minvel"));
    let run =
        command.args(["score", "model", "points.csv", "--device", "cuda:99", "--out"]).arg(&out).output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(said.contains("--device cpu") && !said.contains("panicked"), "{said}");
    assert!(!out.exists());
}
