//! The program `minvel`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(minvel_cli::run(std::env::args_os().collect()))
}
