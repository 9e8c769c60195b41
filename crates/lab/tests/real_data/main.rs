//! Tests on real data, each of which names the set that it needs. Without the set they are skipped; see CONTRIBUTING.md.

#[path = "../support/mod.rs"]
mod support;

mod cifar;
mod digits;
mod earth;
mod files;
mod inception;
mod records;

use std::process::ExitCode;

fn main() -> ExitCode {
    let tests = [files::tests(), earth::tests(), digits::tests(), inception::tests(), cifar::tests(), records::tests()];
    minvel_testing::run(tests.into_iter().flatten())
}
