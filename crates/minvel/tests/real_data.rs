//! Tests on real data, each of which names the set that it needs. Without the set they are skipped; see CONTRIBUTING.md.

#[path = "real_data/cifar.rs"]
mod cifar;
#[path = "real_data/digits.rs"]
mod digits;
#[path = "real_data/earth.rs"]
mod earth;
#[path = "support/experiments.rs"]
mod experiments;
#[path = "real_data/files.rs"]
mod files;
#[path = "support/grids.rs"]
mod grids;
#[path = "real_data/inception.rs"]
mod inception;
#[path = "support/needs.rs"]
mod needs;
mod support;

use std::process::ExitCode;

fn main() -> ExitCode {
    let tests = [files::tests(), earth::tests(), digits::tests(), inception::tests(), cifar::tests()];
    minvel_testing::run(tests.into_iter().flatten())
}
