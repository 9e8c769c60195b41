//! Experiments: settings as written ([`Config`]) → checked once ([`Experiment`]) → run → [`Report`].
//!
//! An experiment is a list of independent units, each named; what a unit found is kept as soon as it is there
//! ([`Journal`]), and trainings inside a unit keep checkpoints, so that an interrupted run goes on where it was and ends
//! with the same bits. A new experiment is one file with an [`Entry`],
//! one TOML, and one line in the [list](crate::index::LIST).
//! **Checked by** tests/lab/experiment.rs, and by killing the program in crates/cli/tests/interruptions/resume.rs.

mod config;
mod journal;
mod runner;
mod sharing;

pub use config::Config;
pub(crate) use config::nearest;
pub use journal::{Finished, Journal};
pub use runner::Runner;
pub use sharing::{Claim, Owner, Sharing};

use crate::plot::Figure;
use crate::report::{Machine, Report, Row, Versions};
use minvel::Error;

/// How the first note of a report begins that lacks units.
pub const PARTIAL: &str = "This report is partial";

/// Something that can be run and finds numbers.
pub trait Experiment: Send + Sync {
    /// Whether what it needs from outside, as data, is there: asked before anything is written.
    fn ready(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Does the work, in units of the runner.
    fn run(&self, runner: &mut Runner) -> Result<Findings, Error>;
}

/// What an experiment found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Numbers and claims.
    pub rows: Vec<Row>,
    /// Figures.
    pub figures: Vec<Figure>,
    /// What a reader should know besides.
    pub notes: Vec<String>,
}

/// An experiment in the list.
pub struct Entry {
    /// Its name on the command line, and of its TOML.
    pub name: &'static str,
    /// The figure, table or section it reproduces.
    pub source: &'static str,
    /// What it shows, a sentence without its full stop.
    pub about: &'static str,
    /// Its settings with comments: the file in `experiments/`.
    pub settings: &'static str,
    /// Checks settings, and builds the experiment of them.
    pub check: fn(&Config) -> Result<Box<dyn Experiment>, Error>,
    /// Whether it is for testing the machinery only.
    pub hidden: bool,
}

impl Entry {
    /// The settings as the file has them.
    pub fn config(&self) -> Result<Config, Error> {
        Config::parse(&format!("experiments/{}.toml", self.name), self.settings)
    }

    /// The experiment of these settings, checked and built.
    pub fn prepare(&'static self, config: Config) -> Result<Prepared, Error> {
        Ok(Prepared { entry: self, experiment: (self.check)(&config)?, config })
    }
}

/// An experiment whose settings were checked, ready to be run.
pub struct Prepared {
    /// Its line in the list.
    pub entry: &'static Entry,
    /// Its settings, as written.
    pub config: Config,
    /// As built of them.
    pub experiment: Box<dyn Experiment>,
}

impl Prepared {
    /// Runs the experiment and reports. Versions and revision are those of the caller.
    ///
    /// Where units are shared ([`Runner::sharing`]), one pass over them is made: with [`Error::Interrupted`] and units in
    /// [`Runner::missing`] others work on those, and the caller comes again later with a new runner.
    pub fn perform(&self, runner: &mut Runner, versions: Versions, revision: &str) -> Result<Report, Error> {
        let Prepared { entry, config, experiment } = self;
        runner.revision = revision.to_string();
        let mut findings = experiment.run(runner)?;
        if runner.sharing.is_some() && !runner.missing().is_empty() {
            return Err(Error::Interrupted); // others work on them
        }
        let others = runner.other_revisions();
        if !others.is_empty() {
            let others = others.join(", ");
            findings.notes.push(format!("Analysed by revision {revision}; units were computed by: {others}."));
        }
        if !runner.missing().is_empty() {
            let missing = runner.missing().join(", ");
            findings.notes.insert(0, format!("{PARTIAL}; still missing: {missing}."));
        }
        Ok(Report {
            experiment: entry.name.to_string(),
            about: entry.about.to_string(),
            source: entry.source.to_string(),
            config: config.json(),
            quick: config.is_quick(),
            device: runner.devices(),
            seconds: runner.timings().iter().map(|t| t.seconds).sum(),
            timings: runner.timings().to_vec(),
            machine: Machine::here(),
            versions,
            revision: revision.to_string(),
            rows: findings.rows,
            figures: findings.figures,
            notes: findings.notes,
        })
    }
}
