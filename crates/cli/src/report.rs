//! `minvel report`: the report of a run, written again from `report.json`, or merged from the finished units of a run without one.

use crate::{Failure, reproduce};
use clap::Args;
use minvel_lab::experiment::PARTIAL;
use minvel_lab::report::Report;
use std::path::PathBuf;

/// Rewrite report.html, report.md and the figures of a run from its report.json.
///
/// A run of `minvel reproduce` or `minvel train` that has no report yet, since processes that shared it (--shard) are still at work or
/// died, is reported as far as it is finished; the report then says what is missing.
#[derive(Args)]
pub struct Arguments {
    /// Folder of a fit, training or experiment.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Output folder [default: the same folder].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the report as one JSON object and write nothing.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let path = arguments.folder.join("report.json");
    let is_partial = |report: &Report| report.notes.first().is_some_and(|note| note.starts_with(PARTIAL));
    let report = match Report::read(&path) {
        Ok(report) if !is_partial(&report) => report,
        before => match (reproduce::merged(&arguments.folder)?, before) {
            (Some(merged), _) => merged,
            (None, before) => before.map_err(Failure::Input)?,
        },
    };
    if arguments.json {
        say!("{}", serde_json::to_string(&report).expect("a report is plain data"));
        return Ok(());
    }
    let out = arguments.out.as_ref().unwrap_or(&arguments.folder);
    report.write(out).map_err(Failure::Work)?;
    say!("Report: {}", out.join("report.html").display());
    Ok(())
}
