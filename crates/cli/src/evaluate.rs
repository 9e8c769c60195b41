//! `minvel evaluate`: how good a fitted density is on other rows.

use crate::Failure;
use crate::progress::Bars;
use crate::source::Source;
use clap::Args;
use minvel::density::Goodness;
use minvel::fit::{Evaluation, Fitness, LEAST_TESTED};
use minvel::train::Context;
use minvel::{Error, file};
use minvel_lab::catalogue::{locate, sha256};
use minvel_lab::fitting::RunFolder;
use minvel_lab::stream::Judging;
use minvel_lab::table::Input;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Score new rows under a fitted density and under baselines: a uniform density, a kernel density and a mixture.
///
/// Also tests whether the rows could come from the model, by a kernel Stein test. Use rows that the model was not fitted
/// to: scores of training rows are too optimistic. Files of any length are read in little memory; the Stein test takes 1000
/// of the rows, chosen at random.
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
    /// Keep the sums in this file while at work, and continue from it if it is there; it is removed at the end.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Seconds between two writes of the journal.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, hide = true)]
    save_every: f64,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (begun, bars) = (Instant::now(), Bars::new("evaluate"));
    let context = Context::watched(&bars, crate::stop::on_signal());
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
    bars.finish();
    judged.doubts.iter().for_each(|doubt| note!("warning: {doubt}"));
    let evaluation = &judged.evaluation;
    if arguments.json {
        let mut all = serde_json::to_value(evaluation).expect("an evaluation is plain data");
        all["log_z"] = serde_json::to_value(model.log_z().value).expect("an estimate is plain data");
        all["rows"] = judged.rows.into();
        all["distinct_rows"] = judged.distinct.count().into();
        all["distinct_rows_exact"] = judged.distinct.is_exact().into();
        all["leaked_share"] = judged.known.into();
        all["seconds"] = begun.elapsed().as_secs_f64().into();
        say!("{all}");
        return Ok(());
    }
    let about = if judged.distinct.is_exact() { "" } else { "about " };
    say!(
        "{} rows ({about}{} distinct), {:.1} % of them in the training data",
        judged.rows,
        judged.distinct.count(),
        100.0 * judged.known
    );
    crate::out::put(format_args!("\n{}", scores("NLL (nats, lower is better)", evaluation)));
    say!("\nlog Z {}; {}", model.log_z().value, tests(evaluation));
    Ok(())
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
