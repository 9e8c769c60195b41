//! `minvel reproduce`: run experiments of the paper and report.

mod shared;

use crate::cards::Devices;
use crate::progress::{Bars, Screen};
use crate::shard::{self, Shard};
use crate::threads::Threads;
use crate::{Failure, claims, place};
use clap::Args;
use minvel::estimate::format;
use minvel::train::Stop;
use minvel::{Device, DeviceError, Error, Precision, file};
use minvel_lab::experiment::{Config, Entry, Journal, Prepared, Runner, Sharing};
use minvel_lab::index;
use minvel_lab::index::{GROUPS, LIST};
use minvel_lab::report::{Report, Versions};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// Reproduce experiments of the paper and check its claims.
///
/// Each run writes a folder with report.json (all results), report.md, report.html (self-contained) and the figures as SVG
/// and PNG. An interrupted run continues with --resume and gives the same results, bit for bit.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel reproduce --list                            experiments and what they reproduce
  minvel reproduce synthetic --quick                 all synthetic experiments in a few minutes
  minvel reproduce vae --quick                       auto-encoders of digits, a small table 1
  minvel reproduce circle --seeds 5 --out circle-5   one experiment with five seeds
  minvel reproduce circle --set rate=1e-3            another learning rate
  minvel reproduce synthetic --set circle.rate=1e-3  a setting of one experiment in a group
  minvel reproduce --resume circle-5                 continue after Ctrl-C or a power failure
  minvel reproduce small --out sweep --shard 1/8     one of eight processes that share the work
  minvel reproduce small --out sweep --shard auto    the same, as a task of Slurm or MPI")]
pub struct Arguments {
    /// Experiments or groups of experiments (see --list).
    #[arg(value_name = "NAME", required_unless_present_any = ["list", "resume"], conflicts_with = "resume")]
    names: Vec<String>,
    /// List experiments and exit.
    #[arg(long, conflicts_with = "resume")]
    list: bool,
    /// Number of experiments that run concurrently [default: all on a GPU, one on a CPU].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZero<usize>>,
    #[command(flatten)]
    how: How,
}

/// How experiments are run.
#[derive(Args)]
pub struct How {
    /// Small, fast settings: smaller samples and shorter training.
    #[arg(long)]
    pub quick: bool,
    /// Number of trainings with different seeds; their spread gives the ±.
    #[arg(long, value_name = "N")]
    seeds: Option<u32>,
    /// Device: auto (a GPU if available), cpu, cuda, cuda:N, or cuda:all (units are spread over all GPUs); see `minvel devices`.
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: Devices,
    /// Precision of matrix products on a GPU: f32, or tf32 (faster, 11 significant bits).
    #[arg(long, value_name = "PRECISION", default_value = "f32")]
    precision: Precision,
    #[command(flatten)]
    threads: Threads,
    /// Output folder, new or empty [default: runs/NAME].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Resume the interrupted run in this folder, with its experiments, settings and precision.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["quick", "seeds", "precision", "out", "set", "config"])]
    pub resume: Option<PathBuf>,
    /// With --resume: report the finished parts and start nothing new.
    #[arg(long)]
    partial: bool,
    /// Override a setting, for example rate=1e-3 or learning.batch=500; repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// TOML file of settings that override the defaults; for a single experiment.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Share the work with other processes that use the same --out (or --resume): this is process K of N, or `auto`.
    ///
    /// Start as many processes as you like, on one machine or on several that see the same folder, all with the same
    /// settings. Each unit of the run is done by one of them; when a process dies, another takes its unit over and continues from
    /// its last checkpoint. K only decides where a process begins, so that every process can finish the run alone. Each process
    /// ends when all units are done, and writes the same report, bit for bit that of a single process. `auto` reads K and
    /// N from Slurm (array task, rank of srun), Open MPI or PMI. Where a run is one unit (minvel train), the first process does
    /// it and the others wait for it.
    #[arg(long, value_name = "K/N")]
    pub shard: Option<Shard>,
    /// Seconds between checkpoints.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, hide = true)]
    save_every: f64,
}

/// What was asked for: kept in the folder, so that a run can be resumed.
#[derive(Serialize, Deserialize)]
struct Request {
    version: String,
    /// Git revision of the program that began the run, with `+` if files had changed; earlier runs do not record it.
    #[serde(default)]
    revision: String,
    name: String,
    quick: bool,
    /// How products are computed; earlier runs do not record it: f32.
    precision: Option<String>,
    /// Names of experiments and all their settings.
    experiments: Vec<(String, String)>,
}

/// An experiment and its folder.
struct Job {
    prepared: Prepared,
    folder: PathBuf,
    precision: Precision,
}

/// Runs the command.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    if arguments.list {
        crate::out::put(format_args!("{}", list()));
        return Ok(());
    }
    let mut entries: Vec<&Entry> = vec![];
    for name in &arguments.names {
        for entry in index::named(name).map_err(Failure::Input)? {
            if entries.iter().all(|e| e.name != entry.name) {
                entries.push(entry);
            }
        }
    }
    // On a GPU one computes while another's kernels are compiled.
    let most = if arguments.how.device == Devices::One(Device::Cpu) { 1 } else { usize::MAX };
    let at_once = arguments.jobs.map_or(most, NonZero::get);
    perform(&entries, &arguments.names.join("+"), &arguments.how, at_once, "reproduce")
}

/// Runs up to `at_once` experiments concurrently, or resumes an interrupted run, and reports; `command` is how the user asks for it.
pub fn perform(
    entries: &[&'static Entry],
    name: &str,
    how: &How,
    at_once: usize,
    command: &str,
) -> Result<(), Failure> {
    if how.partial && how.resume.is_none() {
        // clap does not ask for what the names exclude
        return Err(Failure::Input(Error::config("--partial requires --resume DIR, the folder of an interrupted run")));
    }
    shard::check_folder(how.shard, how.out.as_deref(), how.resume.as_deref()).map_err(Failure::Input)?;
    let stop = crate::stop::on_signal();
    let devices = how.device.usable().map_err(Failure::Input)?;
    let (folder, request) = match &how.resume {
        Some(folder) => (folder.clone(), read_request(folder).map_err(Failure::Input)?),
        None => new_request(entries, name, how).map_err(Failure::Input)?,
    };
    let jobs = jobs(&folder, &request).map_err(Failure::Input)?;
    jobs.iter().try_for_each(|job| job.prepared.experiment.ready()).map_err(Failure::Input)?;
    match (&how.resume, how.shard) {
        (None, Some(_)) => place::join(&folder, "run", &request).map_err(Failure::Input)?,
        (None, None) => place::claim(&folder, &request).map_err(Failure::Input)?,
        (Some(_), _) => {}
    }
    place::resumable(command, &folder);
    let at_once = at_once.min(jobs.len());
    let reports = match (how.shard, &devices[..]) {
        (None, &[device]) => work(&jobs, how, device, at_once, &folder, command, &stop)?,
        (shard, devices) => {
            shared::spread(&jobs, how, devices, shard.unwrap_or(Shard::ALONE), &folder, command, &stop)?
        }
    };
    let whole = conclude(&request, reports, &folder, at_once > 1).map_err(Failure::Work)?;
    crate::out::put(format_args!("{}", claims::table(&whole)));
    if whole.timings.len() > 1 && jobs.len() > 1 {
        let times: Vec<String> =
            whole.timings.iter().map(|t| format!("{} {}", t.name, format::duration(t.seconds))).collect();
        say!("Times: {}.", times.join(", "));
    }
    say!("Report: {}", folder.join("report.html").display());
    Ok(())
}

fn list() -> String {
    let mut out = String::from("Experiments:\n");
    for entry in LIST.iter().filter(|e| !e.hidden) {
        out += &format!("  {:<14} {}: {}\n", entry.name, entry.source, entry.about);
    }
    out += "Groups:\n";
    for (name, about, members) in GROUPS {
        out += &format!("  {name:<14} {about}: {}\n", members.join(", "));
    }
    out
}

/// The experiments asked for, with their settings resolved.
fn new_request(entries: &[&'static Entry], name: &str, arguments: &How) -> Result<(PathBuf, Request), Error> {
    if arguments.config.is_some() && entries.len() > 1 {
        return Err(Error::config("--config applies to a single experiment; name only one"));
    }
    if arguments.seeds == Some(0) {
        return Err(Error::config("--seeds must be at least 1"));
    }
    let names: Vec<&str> = entries.iter().map(|e| e.name).collect();
    let mut experiments = vec![];
    for entry in entries {
        experiments.push((entry.name.to_string(), resolved(entry, arguments, &names)?.text()));
    }
    let (quick, version) = (arguments.quick, env!("CARGO_PKG_VERSION").to_string());
    let precision = Some(arguments.precision.to_string());
    let revision = env!("MINVEL_REVISION").to_string();
    let request = Request { version, revision, name: name.to_string(), quick, precision, experiments };
    let folder = arguments.out.clone().unwrap_or_else(|| place::free(&stem(&request)));
    Ok((folder, request))
}

/// Settings: the file's, then the quick ones, then those of the command line.
pub fn resolved(entry: &Entry, arguments: &How, names: &[&str]) -> Result<Config, Error> {
    let mut config = entry.config()?;
    if let Some(path) = &arguments.config {
        config = config.overlay(&Config::parse(&path.display().to_string(), &file::read_text(path)?)?)?;
    }
    if arguments.quick {
        config = config.quick()?;
    }
    if let Some(seeds) = arguments.seeds {
        config.set(&format!("seeds={seeds}"))?;
    }
    for assignment in &arguments.set {
        // `circle.rate=1e-3` is for circle alone
        match assignment.split_once('.') {
            Some((first, rest)) if names.contains(&first) => {
                if first == entry.name {
                    config.set(rest)?;
                }
            }
            _ => config.set(assignment).map_err(|error| of_several(error, entry, names))?,
        }
    }
    Ok(config)
}

/// An error about a setting that several experiments are given.
fn of_several(error: Error, entry: &Entry, names: &[&str]) -> Error {
    if names.len() == 1 {
        return error;
    }
    let own: Vec<String> = names.iter().map(|name| format!("{name}.KEY")).collect();
    Error::config(format!("{}: {error} For a setting of one experiment use {}.", entry.name, own.join(", ")))
}

/// The name of the folder of a run that was given none.
fn stem(request: &Request) -> String {
    format!("{}{}", request.name, if request.quick { "-quick" } else { "" })
}

fn read_request(folder: &Path) -> Result<Request, Error> {
    let request: Request = place::asked(folder, "run")?;
    place::check_version(folder, "run", &request.version)?;
    Ok(request)
}

/// The experiments of a request, their settings checked.
fn jobs(folder: &Path, request: &Request) -> Result<Vec<Job>, Error> {
    let single = request.experiments.len() == 1;
    let precision = request.precision.as_deref().map_or(Ok(Precision::default()), str::parse);
    let precision = precision.map_err(|e: DeviceError| Error::content(&folder.join(place::ASKED), e.to_string()))?;
    let job = |(name, text): &(String, String)| {
        let entry = index::find(name)?;
        let base = if request.quick { entry.config()?.quick()? } else { entry.config()? };
        let config = base.overlay(&Config::parse(place::ASKED, text)?)?;
        let folder = if single { folder.to_path_buf() } else { folder.join(name) };
        Ok(Job { prepared: entry.prepare(config)?, folder, precision })
    };
    request.experiments.iter().map(job).collect()
}

fn work(
    jobs: &[Job],
    arguments: &How,
    device: Device,
    at_once: usize,
    folder: &Path,
    command: &str,
    stop: &Stop,
) -> Result<Vec<Report>, Failure> {
    let failure = |error| match error {
        Error::Interrupted if arguments.partial => Failure::Work(Error::config(format!(
            "not enough finished parts in {} for a report; finish it with: minvel {command} --resume {}",
            folder.display(),
            folder.display()
        ))),
        error => place::ended(error, command, folder),
    };
    let (screen, queue) = (Screen::new(), Mutex::new(jobs.iter()));
    let worker = || {
        let next = || queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next().filter(|_| !stop.asked());
        let perform = |job: &Job| {
            let report = job.perform(arguments, device, stop, &screen);
            if report.is_err() {
                stop.ask(); // the others too, at a safe place
            }
            (job.name(), report)
        };
        std::iter::from_fn(next).map(perform).collect::<Vec<_>>()
    };
    let mut done: HashMap<&str, Result<Report, Error>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|w| w.join().expect("no worker panics")).collect()
    });
    // What went wrong tells more than that others were stopped for it.
    let wrong = |report: &Result<Report, Error>| matches!(report, Err(e) if !matches!(e, Error::Interrupted));
    if let Some(name) = done.iter().find(|(_, report)| wrong(report)).map(|(name, _)| *name) {
        return Err(failure(done.remove(name).and_then(Result::err).expect("found above")));
    }
    let report = |job: &Job| done.remove(job.name()).unwrap_or(Err(Error::Interrupted)).map_err(failure);
    jobs.iter().map(report).collect()
}

/// What comes of one pass over the units of a job that others share.
enum Pass {
    Done(Box<Report>),
    /// Units that others work on.
    Elsewhere(Vec<(PathBuf, String)>),
}

/// The report of the finished units of a run that has none yet, or one of some units only; `None` if the folder is no run.
pub fn merged(folder: &Path) -> Result<Option<Report>, Failure> {
    let Ok(request) = read_request(folder) else { return Ok(None) };
    let jobs = jobs(folder, &request).map_err(Failure::Input)?;
    let how = How {
        quick: request.quick,
        seeds: None,
        device: Devices::One(Device::Cpu),
        precision: Precision::default(),
        threads: Threads { number: 0 },
        out: None,
        resume: Some(folder.to_path_buf()),
        partial: true,
        set: vec![],
        config: None,
        shard: None,
        save_every: 0.0,
    };
    let command = if request.name.starts_with("train-") { request.name.replace('-', " ") } else { "reproduce".into() };
    let reports = work(&jobs, &how, Device::Cpu, 1, folder, &command, &Stop::default())?;
    conclude(&request, reports, folder, false).map(Some).map_err(Failure::Work)
}

impl Job {
    fn name(&self) -> &'static str {
        self.prepared.entry.name
    }

    fn journal(&self) -> Result<Journal, Error> {
        let (name, settings) = (self.name(), self.prepared.config.text());
        Journal::open(&self.folder, &format!("{name} {} {:016x}", env!("CARGO_PKG_VERSION"), fingerprint(&settings)))
    }

    fn perform(&self, arguments: &How, device: Device, stop: &Stop, screen: &Screen) -> Result<Report, Error> {
        let bars = screen.bars(self.name());
        let pass = self.attempt(arguments, device, stop, &bars, None);
        bars.finish();
        match pass? {
            Pass::Done(report) => Ok(*report),
            Pass::Elsewhere(_) => Err(Error::Interrupted),
        }
    }

    /// Does all units, or one pass over those that are shared.
    fn attempt(
        &self,
        arguments: &How,
        device: Device,
        stop: &Stop,
        bars: &Bars,
        sharing: Option<Sharing>,
    ) -> Result<Pass, Error> {
        let mut runner = Runner::new(self.journal()?, bars, stop.clone());
        runner.sharing = sharing;
        (runner.threads, runner.partial) = (arguments.threads.number, arguments.partial);
        (runner.device, runner.precision) = (device, self.precision);
        runner.save_every = Duration::try_from_secs_f64(arguments.save_every).unwrap_or(Duration::MAX);
        let versions = Versions { rustc: env!("MINVEL_RUSTC").to_string(), ..Versions::default() };
        let report = self.prepared.perform(&mut runner, versions, env!("MINVEL_REVISION"));
        match report {
            Err(Error::Interrupted) if runner.sharing.is_some() && !stop.asked() => {
                let folder = self.journal()?.units().to_path_buf();
                let units = runner.missing().iter().map(|unit| (folder.clone(), unit.clone()));
                Ok(Pass::Elsewhere(units.collect()))
            }
            report => {
                let report = report?;
                report.write(&self.folder)?;
                Ok(Pass::Done(Box::new(report)))
            }
        }
    }
}

/// One report of all, beside those that each experiment has in a folder of its own.
fn conclude(request: &Request, mut reports: Vec<Report>, folder: &Path, concurrent: bool) -> Result<Report, Error> {
    if reports.len() == 1 {
        return Ok(reports.remove(0));
    }
    let about =
        GROUPS.iter().find(|(name, _, _)| *name == request.name).map_or("Several experiments", |(_, about, _)| about);
    let mut whole = Report::together(&request.name, about, &reports);
    if concurrent {
        whole.seconds = reports.iter().map(|r| r.seconds).fold(0.0, f64::max);
    }
    whole.write(folder)?;
    Ok(whole)
}

/// FNV-1a: tells settings apart, nothing more.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3))
}
