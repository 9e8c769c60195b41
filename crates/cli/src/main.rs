//! The program `minvel`: glue between the command line and the library.
//!
//! Exit status: 0 done, 1 failed while working, 2 bad input (nothing was written), 130 interrupted (can be resumed).

#[macro_use]
mod out;

mod claims;
mod data;
mod devices;
mod evaluate;
mod fid;
mod fit;
mod inspect;
mod place;
mod plot;
mod progress;
mod report;
mod reproduce;
mod sample;
mod score;
mod source;
mod stop;
mod train;

use clap::{Parser, Subcommand};
use minvel::Limits;
use std::process::ExitCode;

/// Learn energies from data by minimum velocity learning.
#[derive(Parser)]
#[command(name = "minvel", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "\
Begin with:
  minvel fit quakes.csv --out quakes     a density, a map and an honest score from a file of points
  minvel train vae --quick               an auto-encoder of digits with codes on a sphere
  minvel reproduce synthetic --quick     the experiments of the paper, in minutes")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// The most memory that a file may take when it is read, as 500M or 16G; a picture may take half of it.
    #[arg(long, value_name = "SIZE", global = true, default_value = "4G")]
    max_size: Limits,
}

#[derive(Subcommand)]
enum Command {
    Fit(Box<fit::Arguments>),
    Score(score::Arguments),
    Sample(sample::Arguments),
    Evaluate(evaluate::Arguments),
    Fid(fid::Arguments),
    Plot(plot::Arguments),
    Report(report::Arguments),
    Inspect(inspect::Arguments),
    Data(data::Arguments),
    Devices(devices::Arguments),
    Train(train::Arguments),
    Reproduce(reproduce::Arguments),
}

/// Why the program ends early.
enum Failure {
    /// The input was at fault; nothing was written.
    Input(minvel::Error),
    /// Work failed.
    Work(minvel::Error),
    /// Work failed for a reason outside; how to go on when it is mended.
    Halted(minvel::Error, String),
    /// The user stopped it; how to go on.
    Interrupted(String),
}

fn main() -> ExitCode {
    // clap itself prints and exits with 2 for arguments it cannot read, with 0 for --help and --version
    let arguments = Arguments::parse();
    arguments.max_size.set();
    let outcome = match arguments.command {
        Command::Fit(arguments) => fit::run(*arguments),
        Command::Score(arguments) => score::run(&arguments),
        Command::Sample(arguments) => sample::run(&arguments),
        Command::Evaluate(arguments) => evaluate::run(&arguments),
        Command::Fid(arguments) => fid::run(&arguments),
        Command::Plot(arguments) => plot::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Data(arguments) => data::run(arguments),
        Command::Devices(arguments) => devices::run(&arguments),
        Command::Train(arguments) => train::run(arguments),
        Command::Reproduce(arguments) => reproduce::run(arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Input(error)) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
        Err(Failure::Work(error)) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
        Err(Failure::Halted(error, advice)) => {
            eprintln!("error: {error}\n{advice}");
            ExitCode::FAILURE
        }
        Err(Failure::Interrupted(advice)) => {
            eprintln!("{advice}");
            ExitCode::from(130)
        }
    }
}
