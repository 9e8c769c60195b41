//! `minvel score`: the log density of each row of a file.

use crate::Failure;
use crate::progress::Bars;
use crate::source::Source;
use crate::target::Target;
use clap::Args;
use minvel::estimate::Estimate;
use minvel::fit::Levels;
use minvel::train::Context;
use minvel_lab::catalogue::locate;
use minvel_lab::fitting::RunFolder;
use minvel_lab::table::{Dataset, encode_appended};
use std::path::PathBuf;

/// Score each row of a file: add the columns `log_density` and `energy`.
///
/// The file must have the columns that the model was fitted to, or others given by --columns; all its columns are kept. Log
/// densities are in nats, with respect to the volume of the manifold in radians (angles) or in the units of the data
/// (vectors); for axes, with respect to half of the circle or sphere. Rows with missing values (empty, NA, NaN) are kept,
/// with empty scores.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel score quakes places.csv --out scored.csv           all columns, log_density and energy
  minvel score quakes places.csv --level --out scored.csv   also highest-density levels
  minvel score quakes orte.csv --columns Breite,Länge --out scored.csv    other column names
  zcat new.csv.gz | minvel score quakes - --out -           in a pipe")]
pub struct Arguments {
    /// Folder of the fit.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// File of points, - for standard input, or the name of a data set.
    #[arg(value_name = "DATA")]
    data: String,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    target: Target,
    /// Add the column `level`: probability mass where the density is higher than at the row (0 at the mode, near 1 in the
    /// tails; rows with a level above 0.9 are outside the 90 % region), estimated from 10 000 samples of the model.
    #[arg(long)]
    level: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let bars = Bars::new("score");
    let context = Context::watched(&bars, crate::stop::on_signal());
    arguments.target.check(arguments.json).map_err(Failure::Input)?;
    let (model, coordinates) = RunFolder(arguments.folder.clone()).read_model().map_err(Failure::Input)?;
    let input = locate(&arguments.data).map_err(Failure::Input)?;
    let (coordinates, options) =
        (arguments.source.rename(&coordinates).map_err(Failure::Input)?, arguments.source.options());
    let read = || Dataset::read_complete(&input, &coordinates, &options);
    let complete = context.stage("reading", 0, "rows", read).map_err(Failure::of_input)?;
    let data = &complete.data;
    data.guesses.iter().for_each(|doubt| note!("warning: {doubt}"));
    let energy = || model.energy(&data.points, &context);
    let energy = context.stage("scoring", data.rows(), "rows", energy).map_err(Failure::of_work)?;
    let log_density = model.log_density_of_energy(&energy);
    let mean = Estimate::of(log_density.iter().copied());
    let mut more = vec![complete.column("log_density", &log_density), complete.column("energy", &energy)];
    if arguments.level {
        let levels = || Levels::of(&model, model.settings().seed + 4, &context);
        let levels = context.stage("levels", Levels::DRAWS, "draws", levels).map_err(Failure::of_work)?;
        more.push(complete.column("level", &log_density.iter().map(|l| levels.at(*l)).collect::<Vec<f64>>()));
    }
    let write = || encode_appended(&input, &options, &arguments.target.out, &more);
    let bytes = context.stage("writing", 0, "rows", write).map_err(Failure::of_work)?;
    bars.finish();
    arguments.target.put(&bytes)?;
    let missing = complete.total - data.rows();
    if arguments.json {
        let all = serde_json::json!({
            "rows": complete.total, "missing": missing, "log_density": mean, "log_z": model.log_z().value,
            "out": arguments.target.out,
        });
        say!("{all}");
        return Ok(());
    }
    let mut text = format!("{} rows, mean log density {mean} nats, log Z {}", complete.total, model.log_z().value);
    if missing > 0 {
        text += &format!("; {missing} rows with missing values not scored");
    }
    if arguments.level {
        text += &format!("; levels from {} samples of the model", Levels::DRAWS);
    }
    arguments.target.say(&text);
    Ok(())
}
