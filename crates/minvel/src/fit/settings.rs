//! How a fit is made: settings as written, checked once.

use crate::density::LocalSettings;
use crate::energy::Activation;
use crate::experiment::Config;
use crate::limits::TooLarge;
use crate::{Error, Manifold};
use serde::{Deserialize, Serialize};

/// All settings of a fit; `experiments/fit.toml` says what they mean.
#[allow(missing_docs)] // said there
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub seed: u64,
    pub seeds: usize,
    pub objective: Goal,
    pub flow: Geometry,
    pub step_size: f64,
    pub mobility: bool,
    pub kernels: LocalSettings,
    pub network: Network,
    pub learning: Learning,
    pub partition: Partition,
    #[serde(default)]
    pub few: Few,
}

/// What the correction minimises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// The velocity of the flow at the data.
    MinimumVelocity,
    /// The score-matching loss itself, with all second derivatives.
    ScoreMatching,
    /// Minus the log-likelihood, with Z from draws of the kernels.
    Likelihood,
    /// Nothing: there is no correction.
    None,
}

/// In which coordinates the flow steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Geometry {
    /// Riemannian Langevin along geodesics.
    Langevin,
    /// Riemannian Langevin in the manifold's chart.
    Chart,
}

/// The network of the correction.
#[allow(missing_docs)] // said in experiments/fit.toml
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    pub hidden: Vec<usize>,
    pub activation: String,
    pub waves: usize,
    pub frequency: f64,
}

/// The training of the correction.
#[allow(missing_docs)] // said in experiments/fit.toml
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learning {
    pub steps: u32,
    pub looks: u32,
    pub batch: usize,
    pub rate: f64,
    pub penalty: f64,
}

/// The estimate of log Z.
#[allow(missing_docs)] // said in experiments/fit.toml
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    pub draws: usize,
}

/// The most hidden layers.
const MOST_LAYERS: usize = 64;
/// The most numbers of a layer.
const WIDEST: usize = 1 << 16;
/// What is done with few rows.
#[allow(missing_docs)] // said in experiments/fit.toml
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Few {
    pub rows: usize,
    pub folds: usize,
    pub repeats: usize,
    pub correction: usize,
}

impl Default for Few {
    /// Models that were written before there was a choice come from split rows.
    fn default() -> Self {
        Few { rows: 0, folds: 10, repeats: 5, correction: 500 }
    }
}

impl Settings {
    /// The defaults, as a file that names every setting.
    pub const DEFAULTS: &'static str = include_str!("../../../../experiments/fit.toml");

    /// The defaults as settings to change.
    pub fn defaults() -> Config {
        Config::parse("fit.toml", Self::DEFAULTS).expect("our own file")
    }

    /// Checked settings.
    pub fn check(config: &Config) -> Result<Self, Error> {
        let this: Settings = config.read()?;
        match this.fault() {
            Some((key, what)) => Err(config.refuse(key, &what)),
            None => Ok(this),
        }
    }

    /// An error if the kernels of so many points would take more memory than the [limit](crate::Limits) allows: their
    /// covariances grow with the square of the dimension.
    pub fn check_room(&self, manifold: &dyn Manifold, rows: usize) -> Result<(), Error> {
        let (n, centres) = (manifold.dim() as u64, rows.min(self.kernels.centres) as u64);
        let numbers = (n * (n + 1) / 2).saturating_mul(centres).saturating_mul(self.kernels.neighbours.len() as u64);
        TooLarge::check(numbers.saturating_mul(8), 1).map_err(|why| {
            Error::config(format!(
                "{manifold} has {n} dimensions: kernels at {centres} points {why}; or take fewer columns, or kernels of \
                 one width only (--set kernels.neighbours=[])"
            ))
        })
    }

    /// The first setting that cannot be used, and why.
    pub(super) fn fault(&self) -> Option<(&'static str, String)> {
        let LocalSettings { neighbours, factors, shrinkage, folds, centres, widths } = &self.kernels;
        let Learning { steps, looks, batch, rate, penalty } = self.learning;
        let positive = |all: &[f64]| all.iter().all(|x| *x > 0.0);
        let kernels = *widths > 0 || !neighbours.is_empty() && !factors.is_empty();
        let demands = [
            ("seeds", self.seeds > 0, "must be positive"),
            ("step_size", self.step_size > 0.0, "must be positive"),
            ("kernels.neighbours", positive(neighbours), "must be positive"),
            ("kernels.factors", positive(factors), "must be positive"),
            ("kernels.widths", kernels, "leave no kernel"),
            ("kernels.shrinkage", (0.0..=1.0).contains(shrinkage), "must lie in [0, 1]"),
            ("kernels.folds", *folds >= 2, "must be at least 2"),
            ("kernels.centres", *centres >= 10, "must be at least 10"),
            ("network.hidden", !self.network.hidden.contains(&0), "must be positive"),
            ("network.hidden", self.network.hidden.len() <= MOST_LAYERS, "must be at most 64 layers"),
            ("network.hidden", !self.network.hidden.iter().any(|n| *n > WIDEST), "must be at most 65536"),
            ("network.waves", self.network.waves <= WIDEST, "must be at most 65536"),
            ("network.frequency", self.network.frequency > 0.0, "must be positive"),
            ("learning.steps", steps > 0, "must be positive"),
            ("learning.looks", looks > 0 && looks <= steps, "must be from 1 to the number of steps"),
            ("learning.batch", batch > 0, "must be positive"),
            ("learning.rate", rate > 0.0, "must be positive"),
            ("learning.penalty", penalty >= 0.0, "must not be negative"),
            ("few.folds", self.few.folds >= 2, "must be at least 2"),
            ("few.repeats", self.few.repeats > 0, "must be positive"),
            ("few.correction", self.few.correction >= 100, "must be at least 100"),
            ("partition.draws", self.partition.draws >= 1000, "must be at least 1000"),
        ];
        let unmet = demands.into_iter().find(|(_, met, _)| !met).map(|(key, _, what)| (key, what.to_string()));
        unmet.or_else(|| Some(("network.activation", activation(&self.network.activation).err()?)))
    }
}

/// The activation of a name; rectifiers are none, their gradients jump.
pub(super) fn activation(name: &str) -> Result<Activation, String> {
    match Activation::parse(name)? {
        Activation::Relu => {
            Err("must be one of silu, tanh, softplus, elu, sin, not relu: the gradient of an energy would jump".into())
        }
        other => Ok(other),
    }
}
