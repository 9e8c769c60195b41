//! `minvel score`: the log density of each row of a file.

use crate::progress::Bars;
use crate::source::Source;
use crate::target::{Resumption, Target};
use crate::threads::Threads;
use crate::{Failure, place};
use clap::Args;
use minvel::fit::Levels;
use minvel::{Device, Error};
use minvel_lab::catalogue::{locate, sha256};
use minvel_lab::fitting::RunFolder;
use minvel_lab::stream::{Scored, Scoring};
use minvel_lab::table::Input;
use std::path::PathBuf;

/// Score each row of a file: add the columns `log_density` and `energy`.
///
/// The file must have the columns that the model was fitted to, or others given by --columns; all its columns are kept. Log
/// densities are in nats, with respect to the volume of the manifold in radians (angles) or in the units of the data
/// (vectors); for axes, with respect to half of the circle or sphere. Rows with missing values (empty, NA, NaN) are kept,
/// with empty scores.
///
/// Files of any length are scored in little memory, a block of rows after another. After an interruption, the same command
/// with --resume continues, and ends with the same bytes.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel score quakes places.csv --out scored.csv           all columns, log_density and energy
  minvel score quakes places.csv --level --out scored.csv   also highest-density levels
  minvel score quakes places.csv --outliers --out scored.csv   p-values, and flags
  minvel score quakes places.csv --error --out scored.csv   how well each log density is known
  minvel score quakes orte.csv --columns Breite,Länge --out scored.csv    other column names
  minvel score quakes all.parquet --out scored.parquet --resume   continue after an interruption
  minvel score quakes all.parquet --out scored.parquet --device cuda   on a GPU
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
    /// Add the columns `p_value` and `outlier`. The p-value is the share of rows unseen by the model that are at most as likely
    /// (conformal: below 0.05 for 5 % of the rows that are none); outlier is 1 for rows that Benjamini and Hochberg's rule
    /// flags. The file is read twice.
    #[arg(long)]
    outliers: bool,
    /// Add the column `log_density_error`: the standard error of log_density by a bootstrap over the training rows, or over their groups, with
    /// kernels reweighted and not fitted again; inf where there are no data. It takes 30 times as long as without.
    #[arg(long)]
    error: bool,
    /// Mean share of false ones among the rows flagged as outliers, at most.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, requires = "outliers")]
    false_discovery: f64,
    /// Device for sums over kernels: cpu, cuda, cuda:N or auto (a GPU if available); see `minvel devices`. Log densities on a
    /// GPU are those on the CPU to 1e-5 [default: cpu].
    #[arg(long, value_name = "NAME")]
    device: Option<Device>,
    #[command(flatten)]
    resumption: Resumption,
    #[command(flatten)]
    threads: Threads,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let bars = Bars::new("score");
    let mut context = arguments.threads.context(&bars);
    context.device = arguments.device.unwrap_or(context.device);
    place::check_device(context.device).map_err(Failure::Input)?;
    let out = &arguments.target.out;
    arguments.target.check(arguments.json).map_err(Failure::Input)?;
    if !(arguments.false_discovery > 0.0 && arguments.false_discovery < 1.0) {
        return Err(Failure::Input(Error::config("--false-discovery: expected a share above 0 and below 1, as 0.1")));
    }
    let folder = RunFolder(arguments.folder.clone());
    let (model, coordinates) = folder.read_model().map_err(Failure::Input)?;
    let input = locate(&arguments.data).map_err(Failure::Input)?;
    let scoring = Scoring {
        model: &model,
        model_sha256: &sha256(&folder.model()).map_err(Failure::Input)?,
        coordinates: &arguments.source.rename(&coordinates).map_err(Failure::Input)?,
        input: &input,
        options: &arguments.source.options(),
        level: arguments.level,
        outliers: arguments.outliers.then_some(arguments.false_discovery),
        error: arguments.error,
        out,
        resume: arguments.resumption.resume,
        save_every: arguments.resumption.save_every(),
    };
    Resumption::advise(input != Input::Standard && !arguments.target.is_standard());
    let scored = scoring.perform(&context)?;
    bars.finish();
    scored.doubts.iter().for_each(|doubt| note!("warning: {doubt}"));
    let Scored { rows, missing, log_density, resumed, flagged, .. } = scored;
    if arguments.json {
        let all = serde_json::json!({
            "rows": rows, "missing": missing, "log_density": log_density, "log_z": model.log_z().value, "out": out,
            "outliers": flagged,
        });
        say!("{all}");
        return Ok(());
    }
    let mut text = format!("{rows} rows, mean log density {log_density} nats, log Z {}", model.log_z().value);
    if missing > 0 {
        text += &format!("; {missing} rows with missing values not scored");
    }
    if resumed > 0 {
        text += &format!("; resumed after {resumed} rows");
    }
    if arguments.level {
        text += &format!("; levels from {} samples of the model", Levels::DRAWS);
    }
    if let Some(flagged) = flagged {
        let (share, among) = (arguments.false_discovery, model.reference().map_or(0.0, |r| r.count()));
        text += &format!(
            "; {flagged} outliers, at most {share} of them false on average (p-values among {among:.0} unseen rows or groups)"
        );
    }
    arguments.target.say(&text);
    Ok(())
}
