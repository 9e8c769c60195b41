//! `minvel report`: the report of a run, written again from `report.json`.

use crate::Failure;
use clap::Args;
use minvel_lab::report::Report;
use std::path::PathBuf;

/// Rewrite report.html, report.md and the figures of a run from its report.json.
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
    let report = Report::read(&arguments.folder.join("report.json")).map_err(Failure::Input)?;
    if arguments.json {
        say!("{}", serde_json::to_string(&report).expect("a report is plain data"));
        return Ok(());
    }
    let out = arguments.out.as_ref().unwrap_or(&arguments.folder);
    report.write(out).map_err(Failure::Work)?;
    say!("Report: {}", out.join("report.html").display());
    Ok(())
}
