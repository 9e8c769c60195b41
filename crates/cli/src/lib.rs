//! The program `minvel`: glue between the command line and the library. The program and the Python package call [`run`].
//!
//! Exit status: 0 done, 1 failed while working, 2 bad input (nothing was written), 3 the device failed or has no memory left,
//! 130 interrupted; after 3 and 130 `--resume` continues.

#[macro_use]
mod out;

mod cards;
mod claims;
mod compare;
mod compress;
mod data;
mod decode;
mod devices;
mod encode;
mod evaluate;
mod fid;
mod fit;
mod grid;
mod inspect;
mod model;
mod place;
mod plot;
mod progress;
mod question;
mod report;
mod reproduce;
mod sample;
mod score;
mod shard;
mod source;
mod stop;
mod target;
mod threads;
mod train;

use clap::{Parser, Subcommand};
use minvel::{DeviceErrorKind, Limits};
use std::ffi::OsString;

/// Fit densities and train auto-encoders by minimum velocity learning.
#[derive(Parser)]
#[command(name = "minvel", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "\
Start with:
  minvel fit earthquake                  a density, a map and a held-out score for built-in data
  minvel fit quakes.csv --out quakes     the same from your own file of points
  minvel train wae photos                an auto-encoder for your pictures, with codes on a sphere
  minvel reproduce synthetic --quick     the experiments of the paper, in minutes

Exit status:
  0    success
  1    failure while running
  2    invalid input (arguments, settings or files); nothing was written
  3    device error (GPU lost, broken or out of memory); continue with --resume
  130  interrupted; continue with --resume")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Memory limit for reading one file, for example 500M or 16G; a picture may use half of it.
    #[arg(long, value_name = "SIZE", global = true, default_value = "4G")]
    max_size: Limits,
}

#[derive(Subcommand)]
enum Command {
    Fit(Box<fit::Arguments>),
    Score(score::Arguments),
    Sample(sample::Arguments),
    Evaluate(evaluate::Arguments),
    Compare(compare::Arguments),
    Compress(compress::Arguments),
    Grid(grid::Arguments),
    Fid(fid::Arguments),
    Encode(encode::Arguments),
    Decode(decode::Arguments),
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
    /// Work failed for an outside reason; how to resume once it is fixed.
    Halted(minvel::Error, String),
    /// The user stopped it, and was told how to resume by [`stop::advise`].
    Interrupted,
}

impl Failure {
    /// Of input that cannot be used.
    fn of_input(error: minvel::Error) -> Self {
        match error {
            minvel::Error::Interrupted => Failure::Interrupted,
            error => Failure::Input(error),
        }
    }

    /// Of work that is not resumed.
    fn of_work(error: minvel::Error) -> Self {
        match error {
            minvel::Error::Interrupted => Failure::Interrupted,
            error => Failure::Work(error),
        }
    }
}

/// Runs the program with these arguments, of which the first is its name, and returns its exit status.
///
/// A request to stop that is not heard in time, and a closed pipe, end the process.
pub fn run(given: Vec<OsString>) -> u8 {
    let arguments = match Arguments::try_parse_from(&given) {
        Ok(arguments) => arguments,
        // of --help and --version too; where nobody reads it, nothing can be done about it
        Err(why) => {
            let _ = why.print();
            return why.exit_code() as u8;
        }
    };
    if let Err(why) = minvel::Device::from_environment() {
        note!("error: {why}");
        return 2;
    }
    arguments.max_size.set();
    let outcome = match arguments.command {
        Command::Fit(arguments) => fit::run(*arguments),
        Command::Score(arguments) => score::run(&arguments),
        Command::Sample(arguments) => sample::run(&arguments),
        Command::Evaluate(arguments) => evaluate::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Compress(arguments) => compress::run(&arguments),
        Command::Grid(arguments) => grid::run(&arguments),
        Command::Fid(arguments) => fid::run(&arguments),
        Command::Encode(arguments) => encode::run(&arguments),
        Command::Decode(arguments) => decode::run(&arguments),
        Command::Plot(arguments) => plot::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Data(arguments) => data::run(arguments),
        Command::Devices(arguments) => devices::run(&arguments),
        Command::Train(arguments) => train::run(arguments),
        Command::Reproduce(arguments) => reproduce::run(arguments),
    };
    match outcome {
        Ok(()) => 0,
        Err(Failure::Input(error)) => {
            note!("error: {}", question::explain(&error, &given));
            2
        }
        Err(Failure::Work(error)) => {
            note!("error: {error}");
            status(&error)
        }
        Err(Failure::Halted(error, advice)) => {
            note!("error: {error}\n{advice}");
            status(&error)
        }
        Err(Failure::Interrupted) => {
            stop::last_words();
            stop::STATUS
        }
    }
}

/// The exit status of work that failed.
fn status(error: &minvel::Error) -> u8 {
    match error {
        // An index outside its table is wrong on every device.
        minvel::Error::Device(why) if why.kind() != DeviceErrorKind::Index => 3,
        _ => 1,
    }
}
