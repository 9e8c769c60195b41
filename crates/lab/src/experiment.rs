//! Experiments: settings as written ([`Config`]) → checked once ([`Experiment`]) → run → [`Report`].
//!
//! An experiment is a list of independent units, each named; what a unit found is kept as soon as it is there
//! ([`Journal`]), and trainings inside a unit keep checkpoints, so that an interrupted run goes on where it was and ends
//! with the same bits. A new experiment is one file with an [`Entry`], one TOML, and one line in [`LIST`].
//! **Checked by** tests/experiment.rs, and by killing the program in crates/cli/tests/resume.rs.

mod bias_variance;
mod celeba;
mod cifar;
mod config;
mod contrastive;
mod directions;
mod earth;
mod gaussian;
mod image_models;
mod integrals;
mod journal;
mod planar;
mod recipe;
mod recovery;
mod runner;
mod single;
mod vae;
mod wae;

pub use config::Config;
pub use journal::Journal;
pub use runner::Runner;
pub use single::{Choices, Chosen, choices};

use crate::report::{Figure, Machine, Report, Row, Versions};
use minvel::Error;

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

/// All experiments.
pub const LIST: &[Entry] = &[
    bias_variance::ENTRY,
    contrastive::ENTRY,
    gaussian::ENTRY,
    directions::CIRCLE,
    directions::SPHERE,
    earth::ENTRY,
    recovery::ENTRY,
    integrals::ENTRY,
    vae::ENTRY,
    wae::ENTRY,
    cifar::ENTRY,
    celeba::ENTRY,
];

/// Single models, for `minvel train`.
pub const MODELS: &[Entry] = &[single::VAE, single::WAE];

/// Names that stand for several experiments, with what they have in common.
pub const GROUPS: &[(&str, &str, &[&str])] = &[
    ("synthetic", "The paper's synthetic experiments", &["bias-variance", "cd1", "circle", "sphere"]),
    ("fit", "Results of `minvel fit` on public data and on known densities", &["earth", "recovery", "integrals"]),
];

/// The experiments that a name stands for.
pub fn named(name: &str) -> Result<Vec<&'static Entry>, Error> {
    if let Some((_, _, members)) = GROUPS.iter().find(|(group, _, _)| *group == name) {
        return Ok(members.iter().filter_map(|m| LIST.iter().find(|e| e.name == *m)).collect());
    }
    if let Some(entry) = LIST.iter().find(|e| e.name == name) {
        return Ok(vec![entry]);
    }
    let visible = LIST.iter().filter(|e| !e.hidden).map(|e| e.name);
    let known: Vec<&str> = visible.chain(GROUPS.iter().map(|(group, _, _)| *group)).collect();
    let nearest = config::nearest(name, known.iter().copied());
    let hint = nearest.map_or(String::new(), |n| format!(" Did you mean `{n}`?"));
    Err(Error::config(format!("unknown experiment `{name}`.{hint} Expected one of {}.", known.join(", "))))
}

/// The experiment or single model of a name.
pub fn find(name: &str) -> Result<&'static Entry, Error> {
    let found = LIST.iter().chain(MODELS).find(|e| e.name == name);
    found.ok_or_else(|| Error::config(format!("unknown experiment `{name}`")))
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
    pub fn perform(&self, runner: &mut Runner, versions: Versions, revision: &str) -> Result<Report, Error> {
        let Prepared { entry, config, experiment } = self;
        let mut findings = experiment.run(runner)?;
        if !runner.missing().is_empty() {
            let missing = runner.missing().join(", ");
            findings.notes.insert(0, format!("This report is partial; still missing: {missing}."));
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
