//! Tells the program its git revision and compiler, for reports.

use std::process::Command;

fn main() {
    let output = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok().filter(|o| o.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_string())
    };
    let revision = output("git", &["rev-parse", "--short=12", "HEAD"]).map(|head| {
        let changed = output("git", &["status", "--porcelain", "--untracked-files=no"]).is_none_or(|s| !s.is_empty());
        if changed { format!("{head}+") } else { head }
    });
    let compiler = std::env::var("RUSTC").ok().and_then(|rustc| output(&rustc, &["--version"]));
    let unknown = || "unknown".to_string();
    println!("cargo::rustc-env=MINVEL_REVISION={}", revision.unwrap_or_else(unknown));
    println!("cargo::rustc-env=MINVEL_RUSTC={}", compiler.unwrap_or_else(unknown));
    // Any changed source changes the revision to one with `+`.
    for path in [".", "../lab", "../minvel", "../engine", "../../Cargo.toml", "../../Cargo.lock"] {
        println!("cargo::rerun-if-changed={path}");
    }
    if let Some(head) = output("git", &["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={head}");
    }
}
