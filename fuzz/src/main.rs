//! Fuzzing on stable Rust: `fuzz/run [--seconds N] [TARGET…]`.
//!
//! Each target has a worker, a process of its own, that spoils good files and gives them to a reader of the library. Panics
//! are caught there; what ends the process (a stack overflow, an allocation that fails, a hang) is seen from here, and the
//! worker is started again. Inputs that show something new are kept under `target/fuzz/findings`.
//!
//! Built with the instrumentation of `fuzz/run --coverage`, a worker also keeps inputs that reach new code and spoils those
//! further; otherwise it spoils the seeds alone.

mod coverage;
mod memory;
mod mutation;
mod seeds;
mod supervisor;
mod targets;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use supervisor::Run;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

const HELP: &str = "\
Feed damaged files to every reader and report panics, crashes, hangs and excessive memory.

Usage: fuzz/run [--seconds N] [--seed N] [--table FILE] [TARGET…]
       fuzz/run --replay FILE TARGET

  --seconds N    seconds per target [default: 10]
  --seed N       random seed [default: 1]
  --table FILE   write the table of results into this Markdown file, between its two markers
  --replay FILE  run one input and print the result
  --coverage     build with instrumentation and keep inputs that reach new code (the first build takes minutes)";

/// What the command line says.
struct Arguments {
    seconds: f64,
    seed: u64,
    table: Option<PathBuf>,
    replay: Option<PathBuf>,
    /// This process is the worker whose folder this is.
    worker: Option<PathBuf>,
    targets: Vec<&'static targets::Target>,
}

fn arguments() -> Result<Arguments, String> {
    let mut given = std::env::args().skip(1);
    let mut out = Arguments { seconds: 10.0, seed: 1, table: None, replay: None, worker: None, targets: vec![] };
    while let Some(word) = given.next() {
        let mut value = || given.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--seconds" => out.seconds = value()?.parse().map_err(|_| "--seconds needs a number")?,
            "--seed" => out.seed = value()?.parse().map_err(|_| "--seed needs a whole number")?,
            "--table" => out.table = Some(value()?.into()),
            "--replay" => out.replay = Some(value()?.into()),
            "--worker" => out.worker = Some(value()?.into()),
            "--help" | "-h" => return Err(HELP.into()),
            name => out.targets.push(targets::find(name)?),
        }
    }
    if out.targets.is_empty() {
        out.targets = targets::LIST.iter().collect();
    }
    Ok(out)
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(what) => {
            eprintln!("{what}");
            return ExitCode::from(2);
        }
    };
    let target = arguments.targets[0];
    if let Some(folder) = &arguments.worker {
        return worker::run(target, folder, arguments.seconds, arguments.seed);
    }
    if let Some(input) = &arguments.replay {
        return worker::replay(target, input);
    }
    let run = Run { seconds: arguments.seconds, seed: arguments.seed };
    let rows: Vec<supervisor::Row> = arguments.targets.iter().map(|target| run.target(target)).collect();
    println!("\n{}", supervisor::table(&rows));
    if let Some(path) = &arguments.table
        && let Err(what) = supervisor::write_table(path, &rows)
    {
        eprintln!("error: {what}");
        return ExitCode::FAILURE;
    }
    match rows.iter().all(supervisor::Row::is_clean) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
