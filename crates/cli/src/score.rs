//! `minvel score`: the log density of each row of a file.

use crate::Failure;
use crate::source::Source;
use clap::Args;
use minvel::data::{Column, Dataset, append_columns, check_name, locate};
use minvel::eval::Estimate;
use minvel::fit::Folder;
use minvel::train::Desk;
use std::path::PathBuf;

/// Add `log_density` and `energy` to the rows of a file.
///
/// The file must have the columns that the model was fitted to, or others named by --columns; all its columns are kept. Log
/// densities are in nats, w.r.t. the volume of the manifold in radians (angles) or in the units of the data (vectors).
#[derive(Args)]
pub struct Arguments {
    /// Folder of the fit.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// File of points, or the name of a known data set.
    #[arg(value_name = "DATA")]
    data: String,
    #[command(flatten)]
    source: Source,
    /// File to write: .csv, .tsv (.gz), .parquet or .npy.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    check_name(&arguments.out).map_err(Failure::Input)?;
    let (model, coordinates) = Folder(arguments.folder.clone()).read_model().map_err(Failure::Input)?;
    let path = locate(&arguments.data).map_err(Failure::Input)?;
    let (coordinates, options) =
        (arguments.source.rename(&coordinates).map_err(Failure::Input)?, arguments.source.options());
    let data = Dataset::read_as(&path, &coordinates, &options).map_err(Failure::Input)?;
    data.guesses.iter().for_each(|doubt| eprintln!("mind: {doubt}"));
    let desk = Desk::bare();
    let energy = model.energy(&data.points, &desk).map_err(Failure::Work)?;
    let log_density = model.log_density_of_energy(&energy);
    let mean = Estimate::of(log_density.iter().copied());
    let more = [Column::numbers("log_density", log_density), Column::numbers("energy", energy)];
    append_columns(&path, &options, &arguments.out, &more).map_err(Failure::Work)?;
    match arguments.json {
        true => {
            let all = serde_json::json!({
                "rows": data.rows(), "log_density": mean, "log_z": model.log_z().value, "out": arguments.out,
            });
            say!("{all}");
        }
        false => {
            say!("{} rows, mean log density {mean} nats, log Z {}", data.rows(), model.log_z().value);
            say!("Written: {}", arguments.out.display());
        }
    }
    Ok(())
}
