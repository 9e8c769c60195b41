//! `minvel fit`: from a file of points to a normalised density.

use crate::progress::Bars;
use crate::shard::{self, Shard, Wait};
use crate::source::Source;
use crate::threads::Threads;
use crate::{Failure, place};
use clap::Args;
use minvel::estimate::format;
use minvel::train::{Context, Stop};
use minvel::{Device, Error, file};
use minvel_lab::catalogue::locate;
use minvel_lab::experiment::{Claim, Config};
use minvel_lab::fitting::{self, FitRun, FitSummary, RunFolder, ingredients_in_words, model_in_words};
use minvel_lab::report::Versions;
use minvel_lab::table::{Dataset, Input, LEAST_ROWS, Layout, Missing, Request, RowColumns};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The one unit of a fit that processes share.
const FIT: &str = "fit";

/// What is shown after the options.
macro_rules! examples {
    () => {
        "\
Examples:
  minvel fit quakes.csv --out quakes               columns named lat and lon: a map of the Earth
  minvel fit angles.tsv --manifold torus:2 --columns phi,psi --units degrees --out angles
  minvel fit wind.csv --manifold sphere:1 --layout angles --units degrees --out wind
  minvel fit arrivals.csv --manifold sphere:1 --columns time --units hours --out clock
  minvel fit joints.csv --axial --columns trend,plunge --units degrees --out joints
  minvel fit torsions.txt --manifold torus:2 --columns phi=2,psi=3 --units degrees --out torsions
  minvel fit poses.npy --manifold so3 --layout quaternion-wxyz --out poses
  minvel fit fires.csv --block 5km --out fires     a fire and its neighbours stay in one part of the split
  minvel fit survey.csv --weights w --group site --out survey
  minvel fit earthquake --out quakes               a built-in data set (more: minvel data list)
  minvel fit quakes.csv --set kernels.centres=500  a setting; config.toml of any run lists all
  minvel fit - --out big < big.csv.gz              standard input, also compressed
  minvel fit --resume quakes                       continue after Ctrl-C or a power failure
Then: minvel score, sample, grid, evaluate, compare, plot, report, inspect."
    };
}

/// Fit a normalised density to a file of directions, locations, angles, rotations or vectors.
///
/// Reads CSV, TSV (any delimiter, comments, gzip), Parquet, NPY and NPZ. Missing options are inferred only when unambiguous,
/// and reported; otherwise the program lists the command lines to choose from and exits. From 2000 rows on, rows are split
/// into 80 % training, 10 % validation and 10 % test; fewer rows are scored by repeated cross-validation, and the model is
/// refitted on all of them. The output folder holds the model, a report with figures, and the held-out score, compared with
/// a uniform density, a kernel density and a mixture.
#[derive(Args)]
#[command(term_width = 0)] // the settings can be copied to a file
#[command(after_help = concat!(examples!(), "\nAll settings: minvel fit --help"))]
#[command(after_long_help = format!(
    "{}\n\nSettings, for --set KEY=VALUE (in section [kernels], KEY is kernels.NAME) or for a --config file:\n\n{}",
    examples!(), fitting::DEFAULTS
))]
pub struct Arguments {
    /// File of points, - for standard input, or the name of a data set (see `minvel data list`).
    #[arg(value_name = "DATA", required_unless_present = "resume")]
    data: Option<String>,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    rows: Rows,
    /// Output folder, new or empty [default: runs/fit-NAME].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How much is tried: quick (kernels and baselines, nothing learnt), normal (also a correction and an energy of each
    /// kind, stacked by the validation rows) or thorough (longer, with further settings of each) [default: normal].
    #[arg(long, value_name = "LEVEL", conflicts_with = "quick")]
    effort: Option<Effort>,
    /// Small, fast settings for a first look, with a short training of the correction.
    #[arg(long)]
    quick: bool,
    /// Drop duplicate rows; without it they count as often as they occur, and stay together in splits and folds.
    #[arg(long, conflicts_with = "weights")]
    distinct: bool,
    /// Objective of the correction: minimum-velocity, score-matching, denoising (flat manifolds), likelihood or none [default: minimum-velocity].
    #[arg(long, value_name = "NAME")]
    objective: Option<String>,
    /// Flow of the objective: langevin (along geodesics) or chart [default: langevin].
    #[arg(long, value_name = "NAME")]
    flow: Option<String>,
    /// Step size ε of the flow [default: 1e-3].
    #[arg(long, value_name = "EPSILON")]
    step_size: Option<f64>,
    /// Number of corrections trained concurrently and averaged [default: 4; 2 with --quick].
    #[arg(long, value_name = "N")]
    seeds: Option<u32>,
    /// Random seed, which also determines the split [default: 1].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// TOML file of settings that override the defaults.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Override a setting, for example learning.rate=1e-4; repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Resume the interrupted fit in this folder.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["data", "weights", "group", "block", "split", "missing", "out", "quick", "effort", "distinct", "objective", "flow", "step_size", "seeds", "seed", "config", "set"])]
    resume: Option<PathBuf>,
    /// Device for training and for sums over kernels: auto (a GPU if available), cpu, cuda or cuda:N; see `minvel devices`.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    device: Device,
    #[command(flatten)]
    threads: Threads,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
    /// Share the fit with other processes that use the same --out: this is process K of N, or `auto`.
    ///
    /// A fit is one unit of work: the first process does it, the others wait for it and print the same result. If the first dies,
    /// another takes over and continues from its last checkpoint. `auto` reads K and N from Slurm, Open MPI or PMI.
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Seconds between checkpoints.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, hide = true)]
    save_every: f64,
}

/// How the file is to be read.
#[derive(Args, Clone, Default, Serialize, Deserialize)]
pub struct Reading {
    /// Manifold of the points: euclidean:2, sphere:2, projective:2 (axes), torus:3, hyperbolic:2, so3,
    /// product(sphere:2,euclidean:1).
    #[arg(long, value_name = "NAME")]
    manifold: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    source: Source,
    /// Coordinates of a point: latlon, lonlat, xyz, angles, vector, ball, hyperboloid, quaternion-wxyz,
    /// quaternion-xyzw or rotation-matrix; for a product, one for each factor.
    #[arg(long, value_name = "NAME,…")]
    layout: Option<String>,
    /// Unit of angles: degrees, radians or hours (24-hour clock).
    #[arg(long, value_name = "NAME")]
    units: Option<String>,
    /// Period of angles on circles and tori, for example 24, 7 or 365.25; or one for each column, as in 24,360.
    #[arg(long, value_name = "P,…", value_delimiter = ',')]
    period: Option<Vec<f64>>,
    /// Treat directions as axes: x and −x are the same point, and angles are modulo half a turn. Densities then integrate
    /// to one over half of the circle or sphere. --axial=false means directions, not axes.
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    axial: Option<bool>,
    /// Accept the given units even if the angles look like other units.
    #[arg(long)]
    trust: bool,
}

impl Reading {
    fn request(&self, rows: &Rows) -> Result<Request, Error> {
        let layout = self.layout.as_deref().map(Layout::parse_list).transpose().map_err(Error::config)?;
        let units = self.units.as_deref().map(str::parse).transpose();
        let units = units.map_err(|why: String| Error::config(format!("--units: {why}")))?;
        Ok(Request {
            manifold: self.manifold.clone(),
            columns: self.source.columns(),
            layout,
            units,
            periods: self.period.clone(),
            axial: self.axial,
            names: self.source.names(),
            trust: self.trust,
            options: self.source.options(),
            missing: rows.missing(),
            rows: rows.columns(),
        })
    }
}

/// What rows stand for, and what belongs together.
#[derive(Args, Clone, Default, Serialize, Deserialize)]
pub struct Rows {
    /// Column of weights: weight 2 is the row twice, weight 0 is no row, and a common factor does not matter.
    #[arg(long, value_name = "COLUMN")]
    weights: Option<String>,
    /// Column of labels: rows with the same label (an event, a patient, a molecule) stay together in every split and fold, and ± are
    /// those over groups. Without it the score is that of further rows of the same groups, which can be much better.
    #[arg(long, value_name = "COLUMN")]
    group: Option<String>,
    /// Keep rows together that are linked by steps of at most this distance: 5km (latitudes and longitudes), 0.5deg, 0.01rad, or a
    /// number in the units of the data.
    #[arg(long, value_name = "DISTANCE")]
    block: Option<String>,
    /// Use a given split: a column, or a file with a row for each row of the data, whose values are train, validation and test.
    #[arg(long, value_name = "COLUMN|FILE")]
    split: Option<String>,
    /// What to do with rows that have missing values in the columns that are used.
    #[arg(long, value_name = "refuse|drop")]
    missing: Option<MissingRows>,
}

/// What is done with rows that have missing values.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum MissingRows {
    /// They are an error, which names the first [default].
    Refuse,
    /// They are dropped, and counted by column.
    Drop,
}

impl Rows {
    fn columns(&self) -> RowColumns {
        RowColumns { weights: self.weights.clone(), group: self.group.clone(), split: self.split.clone() }
    }

    fn missing(&self) -> Missing {
        match self.missing {
            Some(MissingRows::Drop) => Missing::Skipped,
            _ => Missing::Refused,
        }
    }
}

/// How much is tried.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Effort {
    /// Kernels and baselines, nothing learnt.
    Quick,
    /// A correction and energies, learnt with the default settings.
    Normal,
    /// Energies that learn longer, with further settings.
    Thorough,
}

/// What was asked for: kept in the folder, so that a fit can be resumed.
#[derive(Serialize, Deserialize)]
struct Asked {
    version: String,
    data: PathBuf,
    sha256: String,
    reading: Reading,
    #[serde(default)]
    rows: Rows,
    distinct: bool,
    quick: bool,
    config: String,
}

/// Runs the command.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    shard::check_folder(arguments.shard, arguments.out.as_deref(), arguments.resume.as_deref())
        .map_err(Failure::Input)?;
    place::check_device(arguments.device).map_err(Failure::Input)?;
    let (bars, stop) = (Bars::of_stages("fit"), crate::stop::on_signal());
    if let Some(folder) = &arguments.resume {
        place::resumable("fit", folder);
    }
    let context = Context::watched(&bars, stop.clone());
    let (folder, asked, config, dataset) = prepare(&arguments, &context).map_err(Failure::of_input)?;
    if !arguments.json {
        for guess in &dataset.guesses {
            note!("inferred: {guess}");
        }
        if !dataset.unused.is_empty() {
            note!("not used: {}", dataset.provenance().unused_columns());
        }
        for (column, count) in &dataset.missing {
            note!("dropped: {count} rows with missing values in {column}");
        }
    }
    if arguments.resume.is_none() {
        match arguments.shard {
            Some(_) => place::join(&folder.0, "fit", &asked).map_err(Failure::Input)?,
            None => place::claim(&folder.0, &asked).map_err(Failure::Input)?,
        }
        place::resumable("fit", &folder.0);
    }
    let claim = arguments.shard.map(|shard| own(shard, &folder, &stop)).transpose();
    let claim = claim.map_err(|error| place::ended(error, "fit", &folder.0))?;
    if let Some(None) = claim {
        let summary = folder.read_summary().map_err(Failure::Work)?;
        return print(&summary, &folder, arguments.json);
    }
    let block = asked.rows.block.as_ref().map(|text| dataset.coordinates.distance(text));
    let fit = FitRun {
        dataset: &dataset,
        block: block.transpose().map_err(Failure::Input)?,
        config: &config,
        observer: &bars,
        stop,
        threads: arguments.threads.number,
        device: arguments.device,
        save_every: Duration::try_from_secs_f64(arguments.save_every).unwrap_or(Duration::MAX),
        versions: Versions { rustc: env!("MINVEL_RUSTC").to_string(), ..Versions::default() },
        revision: env!("MINVEL_REVISION"),
    };
    let outcome = fit.perform(&folder);
    bars.finish();
    let summary = outcome.map_err(|error| place::ended(error, "fit", &folder.0))?;
    drop(claim);
    print(&summary, &folder, arguments.json)
}

fn print(summary: &FitSummary, folder: &RunFolder, json: bool) -> Result<(), Failure> {
    match json {
        true => say!("{}", serde_json::to_string(summary).expect("a summary is plain data")),
        false => crate::out::put(format_args!("{}", text(summary, folder))),
    }
    Ok(())
}

/// Makes the fit this process's own, or waits until another has finished it (`None`).
fn own(shard: Shard, folder: &RunFolder, stop: &Stop) -> Result<Option<Claim>, Error> {
    let sharing = shard.sharing();
    let is_finished = || folder.0.join("report.json").is_file();
    loop {
        if is_finished() {
            note!("this fit was finished by another process");
            return Ok(None);
        }
        if let Some(claim) = sharing.claim(&folder.0, FIT)? {
            if !is_finished() {
                return Ok(Some(claim));
            }
            continue;
        }
        let wait = Wait { sharing: &sharing, units: vec![(folder.0.clone(), FIT.to_string())] };
        note!("waiting for another process: {}", wait.owners());
        wait.for_change(|| stop.asked() || is_finished())?;
        if stop.asked() {
            return Err(Error::Interrupted);
        }
    }
}

/// Reads and checks everything before anything is written.
fn prepare(arguments: &Arguments, context: &Context) -> Result<(RunFolder, Asked, Config, Dataset), Error> {
    if let Some(folder) = &arguments.resume {
        return resumed(folder, context);
    }
    let name = arguments.data.as_deref().expect("clap asks for it");
    let mut config = fitting::defaults();
    if let Some(path) = &arguments.config {
        config = config.overlay(&Config::parse(&path.display().to_string(), &file::read_text(path)?)?)?;
    }
    let effortless = arguments.effort == Some(Effort::Quick);
    if arguments.quick || effortless {
        config = config.quick()?;
    }
    let flags = [
        effortless.then(|| "objective=\"none\"".to_string()),
        (arguments.effort == Some(Effort::Thorough)).then(|| "energies.effort=\"thorough\"".to_string()),
        arguments.objective.as_ref().map(|v| format!("objective={v:?}")),
        arguments.flow.as_ref().map(|v| format!("flow={v:?}")),
        arguments.step_size.map(|v| format!("step_size={v:?}")),
        arguments.seeds.map(|v| format!("seeds={v}")),
        arguments.seed.map(|v| format!("seed={v}")),
    ];
    for assignment in flags.iter().flatten().chain(&arguments.set) {
        config.set(assignment)?;
    }
    let settings = fitting::settings(&config)?;
    let input = locate(name)?;
    let dataset = read(&input, (&arguments.reading, &arguments.rows), arguments.distinct, context)?;
    let block = arguments.rows.block.as_ref().map(|block| dataset.coordinates.distance(block)).transpose()?;
    settings.check(&*dataset.manifold, dataset.rows())?;
    let refused = |error: Error| match error {
        Error::Interrupted => error,
        error => Error::content(&dataset.source, error.to_string()),
    };
    fitting::fit_of(&dataset, &settings, block).check(&dataset.points).map_err(refused)?;
    let stem = if input == Input::Standard { "input" } else { name };
    let stem = Path::new(stem).file_stem().map_or("data".to_string(), |s| s.to_string_lossy().into_owned());
    let folder = arguments.out.clone().unwrap_or_else(|| place::free(&format!("fit-{stem}")));
    let asked = Asked {
        version: env!("CARGO_PKG_VERSION").to_string(),
        data: input.path().to_path_buf(),
        sha256: dataset.sha256.clone(),
        reading: arguments.reading.clone(),
        rows: arguments.rows.clone(),
        distinct: arguments.distinct,
        quick: arguments.quick || effortless,
        config: config.text(),
    };
    Ok((RunFolder(folder), asked, config, dataset))
}

fn read(
    input: &Input,
    (reading, rows): (&Reading, &Rows),
    distinct: bool,
    context: &Context,
) -> Result<Dataset, Error> {
    let request = reading.request(rows)?;
    let dataset = context.stage("reading", 0, "rows", || Dataset::read(input, &request))?;
    let dataset = if distinct { dataset.without_repeats() } else { dataset };
    match dataset.distinct_rows() {
        LEAST_ROWS.. => Ok(dataset),
        rows => {
            Err(Error::content(&dataset.source, format!("has {rows} distinct rows; expected at least {LEAST_ROWS}")))
        }
    }
}

fn resumed(folder: &Path, context: &Context) -> Result<(RunFolder, Asked, Config, Dataset), Error> {
    let asked: Asked = place::asked(folder, "fit")?;
    place::check_version(folder, "fit", &asked.version)?;
    let base = if asked.quick { fitting::defaults().quick()? } else { fitting::defaults() };
    let config = base.overlay(&Config::parse(place::ASKED, &asked.config)?)?;
    // the name of a built-in file is not a path
    let input =
        if asked.data.is_file() { Input::File(asked.data.clone()) } else { locate(&asked.data.to_string_lossy())? };
    let dataset = read(&input, (&asked.reading, &asked.rows), asked.distinct, context)?;
    if dataset.sha256 != asked.sha256 {
        return Err(Error::content(&asked.data, "the file has changed since the fit started; start a new fit"));
    }
    Ok((RunFolder(folder.to_path_buf()), asked, config, dataset))
}

/// The outcome in a few lines.
fn text(summary: &FitSummary, folder: &RunFolder) -> String {
    let mut out = format!("{}\n", summary.data.coordinates);
    out += &format!(
        "{} rows ({} distinct): {}\nmodel: {}\n",
        summary.rows,
        summary.distinct_rows,
        summary.procedure,
        model_in_words(summary)
    );
    let title = format!("{} (nats)", summary.procedure.score());
    out += &format!("\n{}", crate::evaluate::scores(&title, &summary.evaluation));
    for line in ingredients_in_words(&summary.evaluation) {
        out += &format!("  {line}\n");
    }
    out += &format!("\nlog Z {}; {}\n", summary.log_z, crate::evaluate::tests(&summary.evaluation));
    for warning in &summary.warnings {
        out += &format!("warning: {warning}\n");
    }
    out += &format!("{}. Report: {}\n", format::duration(summary.seconds), folder.0.join("report.html").display());
    out
}
