//! `minvel evaluate`: how good a fitted density is on other rows.

use crate::Failure;
use crate::progress::Bars;
use crate::source::Source;
use crate::threads::Threads;
use clap::Args;
use minvel::density::Goodness;
use minvel::fit::{Coverage, Evaluation, Fitness, LEAST_TESTED, Model};
use minvel::manifold::Space;
use minvel::train::Context;
use minvel::{Error, file};
use minvel_lab::catalogue::{locate, sha256};
use minvel_lab::fitting::{RunFolder, look};
use minvel_lab::plot::Figure;
use minvel_lab::plot::density::witness_figure;
use minvel_lab::stream::{Judged, Judging};
use minvel_lab::table::Input;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Score new rows under a fitted density and under baselines: a uniform density, a kernel density and a mixture.
///
/// Also tests whether the rows could come from the model, on scales from the nearest neighbours to the whole spread: by a kernel
/// Stein test, and against draws of the model. Use rows that the model was not fitted to: scores of training rows are too
/// optimistic. Files of any length are read in little memory; the tests take 1000 of the rows, chosen at random.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel evaluate quakes new.csv                 scores, differences and tests of fit
  minvel evaluate quakes new.csv --figures maps  also a map of where rows and model differ
  minvel evaluate quakes new.csv --json          the same for scripts")]
pub struct Arguments {
    /// Folder of the fit.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// File of points, - for standard input, or the name of a data set; rows with missing values are rejected.
    #[arg(value_name = "DATA")]
    data: String,
    #[command(flatten)]
    source: Source,
    /// Keep the sums in this file while at work, and continue from it if it is there; it is removed at the end.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Seconds between two writes of the journal.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, hide = true)]
    save_every: f64,
    /// Output folder of a map of the misfit: where there are more rows than the model says, and fewer (S2, T2 and R2).
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (begun, bars) = (Instant::now(), Bars::new("evaluate"));
    let context = arguments.threads.context(&bars);
    let folder = RunFolder(arguments.folder.clone());
    let (model, coordinates) = folder.read_model().map_err(Failure::Input)?;
    let input = locate(&arguments.data).map_err(Failure::Input)?;
    if let Some(journal) = &arguments.journal {
        if input == Input::Standard {
            return Err(Failure::Input(Error::config("--journal needs a file: standard input cannot be read again")));
        }
        file::check_place(journal).map_err(Failure::Input)?;
        crate::stop::advise("interrupted; resume with the same command");
    }
    let has_map = matches!(
        model.manifold().spaces().as_deref(),
        Some([Space::Sphere(2) | Space::Torus(2) | Space::Euclidean(2)])
    );
    if arguments.figures.is_some() && !has_map {
        let what = format!(
            "--figures: there is no map of the misfit on {}, only on S2, T2 and R2; remove the option",
            model.manifold()
        );
        return Err(Failure::Input(Error::config(what)));
    }
    let judging = Judging {
        model: &model,
        model_sha256: &sha256(&folder.model()).map_err(Failure::Input)?,
        coordinates: &arguments.source.rename(&coordinates).map_err(Failure::Input)?,
        input: &input,
        options: &arguments.source.options(),
        journal: arguments.journal.as_deref(),
        save_every: Duration::try_from_secs_f64(arguments.save_every).unwrap_or(Duration::MAX),
    };
    let judged = judging.perform(&context)?;
    let written = match &arguments.figures {
        Some(out) => draw(&folder, &model, &judged, out, &context)?,
        None => vec![],
    };
    bars.finish();
    judged.doubts.iter().for_each(|doubt| note!("warning: {doubt}"));
    let evaluation = &judged.evaluation;
    if arguments.json {
        let mut all = serde_json::to_value(evaluation).expect("an evaluation is plain data");
        all["log_z"] = serde_json::to_value(model.log_z().value).expect("an estimate is plain data");
        all["rows"] = judged.rows.into();
        all["distinct_rows"] = judged.distinct.count().into();
        all["distinct_rows_exact"] = judged.distinct.is_exact().into();
        all["leaked_share"] = model.stands_on_rows().then_some(judged.known).into();
        all["below_uniform"] = serde_json::to_value(evaluation.below_uniform()).expect("an estimate is plain data");
        all["volume"] = model.manifold().volume().into();
        all["files"] = serde_json::to_value(&written).expect("paths are plain data");
        all["seconds"] = begun.elapsed().as_secs_f64().into();
        say!("{all}");
        return Ok(());
    }
    let about = if judged.distinct.is_exact() { "" } else { "about " };
    let known = match model.stands_on_rows() {
        true => format!("{:.1} % of them in the training data", 100.0 * judged.known),
        false => "the model keeps no training rows to compare them with".to_string(),
    };
    say!("{} rows ({about}{} distinct), {known}", judged.rows, judged.distinct.count());
    crate::out::put(format_args!("\n{}", scores("NLL (nats, lower is better)", evaluation)));
    say!("\nlog Z {}; {}", model.log_z().value, tests(evaluation));
    crate::out::put(format_args!("{}", details(evaluation, &model)));
    written.iter().for_each(|path| say!("Written: {}", path.display()));
    Ok(())
}

/// Writes the map of the misfit; tells the files.
fn draw(
    folder: &RunFolder,
    model: &Model,
    judged: &Judged,
    out: &Path,
    context: &Context,
) -> Result<Vec<PathBuf>, Failure> {
    let Some(witness) = &judged.witness else { return Ok(vec![]) };
    let data = folder.read_summary().map_err(Failure::Input)?.data;
    let look = look(&data.file, &data.coordinates);
    let at = |points: &[f64]| witness.at(&model.standardised(points), context);
    let figure = witness_figure(&**model.manifold(), &judged.tested, at, &look).map_err(Failure::of_work)?;
    file::create_folder(out).map_err(Failure::Work)?;
    let write = |figure: Figure| figure.write(out).map_err(Failure::Work);
    Ok(figure.map(write).transpose()?.into_iter().flatten().collect())
}

/// The rest of what is known about the rows, a line each.
fn details(evaluation: &Evaluation, model: &Model) -> String {
    let manifold = model.manifold();
    let mut out = match (evaluation.below_uniform(), manifold.volume()) {
        (Some(nats), Some(volume)) => {
            format!("{nats} nats below the uniform density 1/{volume:.4} of {manifold} (volume in radians)\n")
        }
        _ => format!("no uniform density: the volume of {manifold} is infinite; densities are per unit of the data\n"),
    };
    if let Some(mmd) = evaluation.goodness.mmd {
        out += &format!("MMD² of rows and draws {mmd} (Gaussian kernel as wide as their root-mean-square distance)\n");
    }
    if !evaluation.coverage.is_empty() {
        let part = |c: &Coverage| {
            format!("{:.1} ± {:.1} % (should be {})", 100.0 * c.share.mean, 100.0 * c.share.std_error, 100.0 * c.mass)
        };
        let parts: Vec<String> = evaluation.coverage.iter().map(part).collect();
        out += &format!("rows in the regions of highest density: {}\n", parts.join(", "));
    }
    out
}

/// The outcome of the tests of fit, in words.
pub fn tests(evaluation: &Evaluation) -> String {
    let Fitness { p_value, points, stein, two_sample, .. } = &evaluation.goodness;
    if p_value.is_nan() {
        return format!("no test of fit: {} rows, at least {LEAST_TESTED} needed", evaluation.test_rows);
    }
    let all = if evaluation.test_rows > *points { format!(" of {}", evaluation.test_rows) } else { String::new() };
    let part = |name: &str, test: &Option<Goodness>| test.as_ref().map(|test| format!("{name} {:.3}", test.p_value));
    let parts: Vec<String> = [part("Stein", stein), part("against draws", two_sample)].into_iter().flatten().collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    format!("test of fit on {points}{all} rows: p = {p_value:.3}{parts}")
}

/// Scores of the model and of the baselines, a line each.
pub fn scores(title: &str, evaluation: &Evaluation) -> String {
    let mut out = format!("  {title:<32} {:>18}  {:>22}\n", "", "minvel − baseline");
    out += &format!("  {:<32} {:>18}\n", "minvel", evaluation.test_nll.to_string());
    for b in &evaluation.baselines {
        out += &format!("  {:<32} {:>18}  {:>22}\n", b.name, b.nll.to_string(), b.difference.to_string());
    }
    out
}
