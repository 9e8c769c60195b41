//! `minvel compress`: a smaller model of the same density, without training rows.

use crate::Failure;
use crate::progress::Bars;
use crate::source::Source;
use crate::threads::Threads;
use clap::Args;
use minvel::fit::{Comparison, Model};
use minvel::{Error, file};
use minvel_lab::catalogue::locate;
use minvel_lab::fitting::RunFolder;
use minvel_lab::table::Dataset;
use std::path::{Path, PathBuf};

/// Make a small model of a fitted density, without training rows in it, and measure what that costs.
///
/// The small model stands on means of samples of the large one: at least 200 000 samples are drawn and put into clusters, and
/// kernels on the clusters are fitted to them. No row of the training data is kept, and a learnt correction becomes part of
/// the kernels. `score`, `sample`, `evaluate`, `compare`, `grid`, `plot` and `inspect` use it like any fit.
///
/// The cost is the mean of log p(MODEL) − log p(SMALL) in nats, with its standard error: on samples that the small model has not
/// seen (the Kullback–Leibler divergence), and on rows of yours with --rows. Use rows that MODEL was not fitted to: it
/// remembers the others. A cost of 0.01 nats means that rows are 1 % less likely on average; if it is too high, take more
/// centres.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel compress quakes --out small                      2000 centres
  minvel compress quakes --out small --centres 500 --rows new.csv
  minvel compress quakes --out small --json               the same for scripts
Then: minvel score small new.csv --out scored.csv")]
pub struct Arguments {
    /// Folder of the fit.
    #[arg(value_name = "MODEL")]
    folder: PathBuf,
    /// Output folder, new or empty.
    #[arg(long, value_name = "SMALL")]
    out: PathBuf,
    /// Number of centres of the small model, at most: 10 to 100000.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    centres: usize,
    /// Also measure the cost on the rows of this file (- for standard input), or of a data set; rows with missing values
    /// are rejected.
    #[arg(long, value_name = "DATA")]
    rows: Option<String>,
    #[command(flatten)]
    source: Source,
    /// Random seed of the samples.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    threads: Threads,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Samples on which the cost is measured.
const MEASURED: usize = 50_000;

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (large, small) = (RunFolder(arguments.folder.clone()), RunFolder(arguments.out.clone()));
    check(arguments, &small.0).map_err(Failure::Input)?;
    let (model, coordinates) = large.read_model().map_err(Failure::Input)?;
    let read = |name: &String| {
        let coordinates = arguments.source.rename(&coordinates)?;
        Dataset::read_as(&locate(name)?, &coordinates, &arguments.source.options())
    };
    let data = arguments.rows.as_ref().map(read).transpose().map_err(Failure::Input)?;
    data.iter().flat_map(|data| &data.guesses).for_each(|doubt| note!("warning: {doubt}"));
    let bars = Bars::of_stages("compress");
    let context = arguments.threads.context(&bars);
    let work = || {
        let compressed = model.compressed(arguments.centres, arguments.seed, &context)?;
        let fresh = model.sample(MEASURED, arguments.seed.wrapping_add(1), &context)?.points;
        let compare = |points: &[f64]| {
            let rows = 2 * points.len() / compressed.manifold().ambient();
            context.stage("cost", rows, "rows", || Comparison::of([&model, &compressed], points, &context))
        };
        let costs = (compare(&fresh)?, data.as_ref().map(|data| compare(&data.points)).transpose()?);
        context.go_on()?;
        file::create_folder(&small.0)?;
        compressed.write(&small.model(), &coordinates)?;
        Ok((compressed, costs))
    };
    let (compressed, (draws, rows)) = work().map_err(Failure::of_work)?;
    bars.finish();
    let sizes = [bytes(&large), bytes(&small)];
    if arguments.json {
        let all = serde_json::json!({
            "centres": [model.kernels().centres(), compressed.kernels().centres()], "bytes": sizes,
            "samples": draws, "rows": rows, "out": small.model(),
        });
        say!("{all}");
        return Ok(());
    }
    let [from, to] = [&model, &compressed].map(|model| model.kernels().centres());
    say!("{to} centres instead of {from}, {} kB instead of {}\n", sizes[1].div_ceil(1000), sizes[0].div_ceil(1000));
    say!("cost: mean log density of {} less that of {} (nats)", large.0.display(), small.0.display());
    let line = |what: String, cost: &Comparison| say!("  {what:<40} {}", cost.difference);
    line(format!("on {} new samples of the model", draws.rows), &draws);
    if let (Some(rows), Some(name)) = (&rows, &arguments.rows) {
        line(format!("on {} rows of {name}", rows.rows), rows);
        if rows.known_share[0] > 0.0 {
            let share = 100.0 * rows.known_share[0];
            note!(
                "warning: the model was fitted to {share:.1} % of these rows, and remembers them: the cost is too high"
            );
        }
    }
    say!("Written: {}", small.model().display());
    Ok(())
}

/// Refuses what cannot be done, before any work.
fn check(arguments: &Arguments, out: &Path) -> Result<(), Error> {
    if !Model::COMPRESSED.contains(&arguments.centres) {
        let (least, most) = Model::COMPRESSED.into_inner();
        return Err(Error::config(format!(
            "--centres {}: expected a number from {least} to {most}",
            arguments.centres
        )));
    }
    if out.exists() && out.read_dir().map_or(true, |mut entries| entries.next().is_some()) {
        return Err(Error::content(out, "this is no empty folder; choose another --out"));
    }
    Ok(())
}

/// The length of a model's file.
fn bytes(folder: &RunFolder) -> u64 {
    std::fs::metadata(folder.model()).map_or(0, |file| file.len())
}
