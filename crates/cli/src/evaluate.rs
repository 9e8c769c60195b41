//! `minvel evaluate`: how good a fitted density is on other rows.

use crate::Failure;
use crate::progress::Bars;
use crate::source::Source;
use clap::Args;
use minvel::fit::{Evaluation, LEAST_TESTED};
use minvel::train::Context;
use minvel_lab::catalogue::locate;
use minvel_lab::fitting::RunFolder;
use minvel_lab::table::Dataset;
use std::path::PathBuf;
use std::time::Instant;

/// Score new rows under a fitted density and under baselines: a uniform density, a kernel density and a mixture.
///
/// Also tests whether the rows could come from the model, by a kernel Stein test. Use rows that the model was not fitted
/// to: scores of training rows are too optimistic.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel evaluate quakes new.csv            scores, differences and a test of fit
  minvel evaluate quakes new.csv --json     the same for scripts")]
pub struct Arguments {
    /// Folder of the fit.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// File of points, - for standard input, or the name of a data set; rows with missing values are rejected.
    #[arg(value_name = "DATA")]
    data: String,
    #[command(flatten)]
    source: Source,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (begun, bars) = (Instant::now(), Bars::new("evaluate"));
    let context = Context::watched(&bars, crate::stop::on_signal());
    let (model, coordinates) = RunFolder(arguments.folder.clone()).read_model().map_err(Failure::Input)?;
    let input = locate(&arguments.data).map_err(Failure::Input)?;
    let (coordinates, options) =
        (arguments.source.rename(&coordinates).map_err(Failure::Input)?, arguments.source.options());
    let read = || Dataset::read_as(&input, &coordinates, &options);
    let data = context.stage("reading", 0, "rows", read).map_err(Failure::of_input)?;
    data.guesses.iter().for_each(|doubt| note!("warning: {doubt}"));
    let evaluation = Evaluation::of(&model, &data.points, model.settings().seed, &context);
    bars.finish();
    let evaluation = evaluation.map_err(Failure::of_work)?;
    let known = model.share_known(&data.points);
    if arguments.json {
        let mut all = serde_json::to_value(&evaluation).expect("an evaluation is plain data");
        all["log_z"] = serde_json::to_value(model.log_z().value).expect("an estimate is plain data");
        all["rows"] = data.rows().into();
        all["distinct_rows"] = data.distinct_rows().into();
        all["leaked_share"] = known.into();
        all["seconds"] = begun.elapsed().as_secs_f64().into();
        say!("{all}");
        return Ok(());
    }
    say!(
        "{} rows ({} distinct), {:.1} % of them in the training data",
        data.rows(),
        data.distinct_rows(),
        100.0 * known
    );
    crate::out::put(format_args!("\n{}", scores("NLL (nats, lower is better)", &evaluation)));
    say!("\nlog Z {}; {}", model.log_z().value, stein(&evaluation));
    Ok(())
}

/// The outcome of the Stein test, in words.
pub fn stein(evaluation: &Evaluation) -> String {
    let fitness = evaluation.goodness;
    match fitness.p_value.is_nan() {
        true => format!("no Stein test: {} rows, at least {LEAST_TESTED} needed", evaluation.test_rows),
        false => format!("Stein test on {} rows: p = {:.3}", fitness.points, fitness.p_value),
    }
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
