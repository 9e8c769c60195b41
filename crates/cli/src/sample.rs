//! `minvel sample`: new points of a fitted density.

use crate::Failure;
use crate::progress::Bars;
use crate::target::Target;
use clap::Args;
use minvel::data::encode_table;
use minvel::fit::Folder;
use minvel::train::Desk;
use std::path::PathBuf;

/// Draw points of a fitted density, in the units and layout of its data.
///
/// Each row is the end of a chain of its own: 20 proposals of the kernels, which are exact draws, each accepted or not for
/// the correction. Without correction the draws are exact. Axes are given by one of their ends, that of the upper half.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel sample quakes -n 10000 --out new.csv
  minvel sample quakes -n 100 --out - | minvel score quakes - --out -")]
pub struct Arguments {
    /// Folder of the fit.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// How many points.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000)]
    number: usize,
    #[command(flatten)]
    target: Target,
    /// Seed: the same points for the same seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.target.check(arguments.json).map_err(Failure::Input)?;
    let (model, coordinates) = Folder(arguments.folder.clone()).read_model().map_err(Failure::Input)?;
    let bars = Bars::new("sample");
    let desk = Desk::watched(&bars, crate::stop::on_signal());
    let draw = || model.sample(arguments.number, arguments.seed, &desk);
    let rows = model.rows_of_draws(arguments.number);
    let drawn = desk.stage("sampling", rows, "proposals", draw).map_err(Failure::of_work)?;
    let columns = coordinates.table(&drawn.points).map_err(Failure::Input)?;
    let table = || encode_table(&arguments.target.out, &columns);
    let bytes = desk.stage("writing", 0, "rows", table).map_err(Failure::of_work)?;
    bars.finish();
    arguments.target.put(&bytes)?;
    match arguments.json {
        true => {
            let all = serde_json::json!({
                "rows": arguments.number, "acceptance": drawn.acceptance, "moved": drawn.moved,
                "importance_efficiency": model.log_z().efficiency, "out": arguments.target.out,
            });
            say!("{all}");
        }
        false => {
            arguments.target.say(&format!(
                "{} points; acceptance {:.2}, {:.1} % of the chains moved; importance weights {:.0} % efficient",
                arguments.number,
                drawn.acceptance,
                100.0 * drawn.moved,
                100.0 * model.log_z().efficiency
            ));
        }
    }
    Ok(())
}
