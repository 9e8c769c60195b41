//! `minvel sample`: new points of a fitted density.

use crate::Failure;
use clap::Args;
use minvel::data::{check_name, write_table};
use minvel::fit::Folder;
use minvel::train::Desk;
use std::path::PathBuf;

/// Draw points of a fitted density, in the units and layout of its data.
///
/// Each row is the end of a chain of its own: 20 proposals of the kernels, which are exact draws, each accepted or not for
/// the correction. Without correction the draws are exact.
#[derive(Args)]
pub struct Arguments {
    /// Folder of the fit.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// How many points.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000)]
    number: usize,
    /// File to write: .csv, .tsv (.gz), .parquet or .npy.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Seed: the same points for the same seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    check_name(&arguments.out).map_err(Failure::Input)?;
    let (model, coordinates) = Folder(arguments.folder.clone()).read_model().map_err(Failure::Input)?;
    let drawn = model.sample(arguments.number, arguments.seed, &Desk::bare());
    let columns = coordinates.table(&drawn.points).map_err(Failure::Input)?;
    write_table(&arguments.out, &columns).map_err(Failure::Work)?;
    match arguments.json {
        true => {
            let all = serde_json::json!({
                "rows": arguments.number, "acceptance": drawn.acceptance, "moved": drawn.moved, "out": arguments.out,
            });
            say!("{all}");
        }
        false => {
            let how = match model.share() {
                0.0 => "independent draws of the kernels, exact".to_string(),
                _ => format!("acceptance {:.2}, {:.1} % of the chains moved", drawn.acceptance, 100.0 * drawn.moved),
            };
            say!("{} points; {how}", arguments.number);
            say!("Written: {}", arguments.out.display());
        }
    }
    Ok(())
}
