//! `minvel compare`: two fits on the same rows.

use crate::Failure;
use crate::progress::Bars;
use crate::source::Source;
use crate::threads::Threads;
use clap::Args;
use minvel::Error;
use minvel::fit::{Comparison, Model};
use minvel_lab::catalogue::locate;
use minvel_lab::fitting::RunFolder;
use minvel_lab::table::{Coordinates, Dataset};
use std::path::{Path, PathBuf};

/// Compare two fits on rows that neither was fitted to: the paired mean difference of their log densities.
///
/// The ± is the standard error of the paired differences, including the errors of log Z. Both fits must have the same
/// manifold and units, and read the same points from the file.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel compare quakes quakes-2 new.csv           which of two fits is better on new rows
  minvel compare quakes quakes-2 new.csv --json    the same for scripts")]
pub struct Arguments {
    /// Folder of the first fit.
    #[arg(value_name = "A")]
    first: PathBuf,
    /// Folder of the second fit.
    #[arg(value_name = "B")]
    second: PathBuf,
    /// File of points, - for standard input, or the name of a data set; rows with missing values are rejected.
    #[arg(value_name = "DATA")]
    data: String,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    threads: Threads,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (models, data) = read(arguments).map_err(Failure::Input)?;
    data.guesses.iter().for_each(|doubt| note!("warning: {doubt}"));
    let bars = Bars::new("compare");
    let context = arguments.threads.context(&bars);
    let both = || Comparison::of([&models[0], &models[1]], &data.points, &context);
    let comparison = context.stage("scoring", 2 * data.rows(), "rows", both).map_err(Failure::of_work)?;
    bars.finish();
    if arguments.json {
        say!("{}", serde_json::to_string(&comparison).expect("a comparison is plain data"));
        return Ok(());
    }
    crate::out::put(format_args!("{}", text(&comparison, [&arguments.first, &arguments.second])));
    Ok(())
}

/// Both models, and the points, which both must read alike.
fn read(arguments: &Arguments) -> Result<([Model; 2], Dataset), Error> {
    let (first, a) = RunFolder(arguments.first.clone()).read_model()?;
    let (second, b) = RunFolder(arguments.second.clone()).read_model()?;
    let form = |c: &Coordinates| (c.manifold.clone(), c.units, c.periods.clone());
    if form(&a) != form(&b) {
        let what =
            format!("the fits have different manifolds or units, so their densities cannot be compared: {a}; {b}");
        return Err(Error::config(what));
    }
    let input = locate(&arguments.data)?;
    let points = |coordinates: &Coordinates| {
        Dataset::read_as(&input, &arguments.source.rename(coordinates)?, &arguments.source.options())
    };
    let data = points(&a)?;
    if a != b && data.points != points(&b)?.points {
        return Err(Error::content(
            input.path(),
            format!("the two fits read different points from this file: {a}; {b}"),
        ));
    }
    Ok(([first, second], data))
}

fn text(comparison: &Comparison, names: [&Path; 2]) -> String {
    let [a, b] = names.map(|name| name.display().to_string());
    let width = a.chars().count().max(b.chars().count()).max("difference".len());
    let mut out = format!("{} rows, mean log density (nats, higher is better)\n\n", comparison.rows);
    for (name, score) in [&a, &b].iter().zip(comparison.log_density) {
        out += &format!("  {name:<width$}  {score}\n");
    }
    out += &format!("  {:<width$}  {}", "difference", comparison.difference);
    if comparison.z.is_finite() {
        out += &format!("  z = {:+.1}, p = {:.2e}", comparison.z, comparison.p_value);
    }
    out += &format!("\n\n{a} is better on {:.1} % of the rows.\n", 100.0 * comparison.win_share);
    for (name, known) in [a, b].iter().zip(comparison.known_share).filter(|(_, known)| *known > 0.0) {
        let share = 100.0 * known;
        out += &format!("warning: {name} was fitted to {share:.1} % of these rows: its score is too optimistic\n");
    }
    out
}
