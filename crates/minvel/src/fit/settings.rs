//! How a fit is made: settings with their defaults, checked once.

use crate::density::LocalSettings;
use crate::limits::TooLarge;
use crate::manifold::Space;
use crate::network::Activation;
use crate::{Error, Manifold};
use serde::{Deserialize, Serialize};

/// All settings of a fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitSettings {
    /// Random seed: split, folds, initial values, batches and noise.
    pub seed: u64,
    /// Corrections, trained concurrently; their mean is used.
    pub seeds: usize,
    /// What the correction minimises.
    pub objective: Goal,
    /// The flow of that objective.
    pub flow: Geometry,
    /// ε of the flow, in squared units of the coordinates.
    pub step_size: f64,
    /// Whether the flow scales with the local width of the kernels.
    pub mobility: bool,
    /// The density that the correction starts from.
    pub kernels: LocalSettings,
    /// The network of the correction.
    pub network: NetworkSettings,
    /// Its training.
    pub learning: LearningSettings,
    /// The estimate of log Z.
    pub partition: PartitionSettings,
    /// Further energies, which are stacked with the kernels and the correction.
    #[serde(default = "EnergySettings::none")]
    pub energies: EnergySettings,
    /// Small data sets.
    #[serde(default = "FewSettings::before_there_was_a_choice")]
    pub few: FewSettings,
}

/// What the correction minimises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// The velocity of the flow at the data.
    MinimumVelocity,
    /// The score-matching loss itself, with all second derivatives.
    ScoreMatching,
    /// That of data with a little noise, by the control variate; on flat manifolds.
    Denoising,
    /// Minus the log-likelihood, with Z from draws of the kernels.
    Likelihood,
    /// The speed of transport, birth and death, of a free energy.
    TransportReaction,
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSettings {
    /// Widths of the hidden layers.
    pub hidden: Vec<usize>,
    /// Between them; not `relu`, whose gradient is discontinuous.
    pub activation: Activation,
    /// Random Fourier features, in addition to the manifold's own.
    pub waves: usize,
    /// Their standard deviation.
    pub frequency: f64,
    /// By how much it falls from the first to the last of them.
    #[serde(default = "NetworkSettings::one_frequency")]
    pub spread: f64,
}

impl NetworkSettings {
    fn one_frequency() -> f64 {
        1.0
    }
}

/// How many energies are learnt beside the correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// None.
    None,
    /// One of each kind.
    Normal,
    /// Longer, more networks, and further frequencies and weights of transport.
    Thorough,
}

/// Energies beside the correction: kernels times an energy by likelihood and, where dimensions are few, free energies by
/// likelihood and by transport, birth and death. Validation rows stop and weigh them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnergySettings {
    /// How many.
    pub effort: Effort,
    /// Dimensions up to which energies may stand on their own.
    pub free: usize,
    /// Networks of each, trained concurrently; their mean is used. Energies on kernels have twice as many.
    pub seeds: usize,
    /// Their networks; `frequency` is that in two dimensions, and falls as 1/√n.
    pub network: NetworkSettings,
    /// Steps of the training of each; twice as many of free ones.
    pub steps: u32,
    /// Rows of a step.
    pub batch: usize,
    /// Of Adam, decaying to zero as half a cosine; three times as large for free ones.
    pub rate: f64,
    /// Draws of kernels and wide law.
    pub draws: usize,
    /// Weight of the residual off the data.
    pub off: f64,
}

impl EnergySettings {
    /// No energies: models of earlier versions.
    pub fn none() -> Self {
        EnergySettings { effort: Effort::None, ..EnergySettings::default() }
    }
}

impl Default for EnergySettings {
    fn default() -> Self {
        EnergySettings {
            effort: Effort::Normal,
            free: 4,
            seeds: 1,
            network: NetworkSettings {
                hidden: vec![128, 128],
                activation: Activation::Silu,
                waves: 96,
                frequency: 4.0,
                spread: 8.0,
            },
            steps: 2000,
            batch: 512,
            rate: 1e-3,
            draws: 100_000,
            off: 0.3,
        }
    }
}

/// The training of the correction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearningSettings {
    /// Steps.
    pub steps: u32,
    /// Evaluations of the validation objective.
    pub looks: u32,
    /// Rows of a step.
    pub batch: usize,
    /// Of Adam, decaying to zero as half a cosine.
    pub rate: f64,
    /// On the squared correction.
    pub penalty: f64,
}

/// The estimate of log Z.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionSettings {
    /// Samples of the kernels.
    pub draws: usize,
}

/// What is done with few rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FewSettings {
    /// Below: scored by cross-validation, and the model is refitted on all rows.
    pub rows: usize,
    /// Of the cross-validation; leave-one-out with fewer rows.
    pub folds: usize,
    /// At most, each with other folds; one from 1000 rows on.
    pub repeats: usize,
    /// Rows from which a correction is tried; it is used only if significantly better.
    pub correction: usize,
}

impl FewSettings {
    /// Models that were written before there was a choice come from split rows.
    fn before_there_was_a_choice() -> Self {
        FewSettings { rows: 0, ..FewSettings::default() }
    }
}

impl Default for FewSettings {
    fn default() -> Self {
        FewSettings { rows: 2000, folds: 10, repeats: 5, correction: 500 }
    }
}

impl Default for FitSettings {
    fn default() -> Self {
        FitSettings {
            seed: 1,
            seeds: 4,
            objective: Goal::MinimumVelocity,
            flow: Geometry::Langevin,
            step_size: 1e-3,
            mobility: true,
            kernels: LocalSettings::default(),
            network: NetworkSettings {
                hidden: vec![64, 64],
                activation: Activation::Silu,
                waves: 64,
                frequency: 4.0,
                spread: 1.0,
            },
            learning: LearningSettings { steps: 1000, looks: 10, batch: 256, rate: 1e-3, penalty: 1e-3 },
            partition: PartitionSettings { draws: 200_000 },
            energies: EnergySettings::default(),
            few: FewSettings::default(),
        }
    }
}

/// The most hidden layers.
const MOST_LAYERS: usize = 64;
/// The most numbers of a layer.
const WIDEST: usize = 1 << 16;

impl FitSettings {
    /// Smaller and faster: fewer networks, shorter training.
    pub fn quick() -> Self {
        let defaults = FitSettings::default();
        FitSettings {
            seeds: 2,
            learning: LearningSettings { steps: 200, looks: 4, ..defaults.learning },
            partition: PartitionSettings { draws: 20_000 },
            energies: EnergySettings::none(),
            ..defaults
        }
    }

    /// An error if the objective is not defined on this manifold, or if the kernels of so many points would take more memory than the
    /// [limit](crate::Limits) allows: their covariances grow with the square of the dimension.
    pub fn check(&self, manifold: &dyn Manifold, rows: usize) -> Result<(), Error> {
        let is_flat = |space: &Space| matches!(space, Space::Euclidean(_) | Space::Torus(_));
        if self.objective == Goal::Denoising && !manifold.spaces().is_some_and(|all| all.iter().all(is_flat)) {
            return Err(Error::config(format!(
                "the objective denoising adds noise to coordinates, which needs a flat manifold, and {manifold} is curved: use \
                 minimum-velocity or score-matching"
            )));
        }
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
    pub fn fault(&self) -> Option<(&'static str, &'static str)> {
        let LocalSettings {
            neighbours,
            factors,
            shrinkage,
            folds,
            centres,
            widths,
            grouped: _,
            classes,
            mixtures,
            worth,
            tolerance,
        } = &self.kernels;
        let LearningSettings { steps, looks, batch, rate, penalty } = self.learning;
        let positive = |all: &[f64]| all.iter().all(|x| *x > 0.0);
        let kernels = *widths > 0 || !neighbours.is_empty() && !factors.is_empty();
        let energies = &self.energies;
        let hidden = |network: &NetworkSettings| {
            network.hidden.len() <= MOST_LAYERS && network.hidden.iter().all(|n| (1..=WIDEST).contains(n))
        };
        let demands = [
            ("seeds", self.seeds > 0, "must be positive"),
            ("step_size", self.step_size > 0.0, "must be positive"),
            ("kernels.neighbours", positive(neighbours), "must be positive"),
            ("kernels.factors", positive(factors), "must be positive"),
            ("kernels.widths", kernels, "leave no kernel"),
            ("kernels.shrinkage", (0.0..=1.0).contains(shrinkage), "must lie in [0, 1]"),
            ("kernels.folds", *folds >= 2, "must be at least 2"),
            ("kernels.centres", *centres >= 10, "must be at least 10"),
            ("kernels.classes", (1..=64).contains(classes), "must be from 1 to 64"),
            (
                "kernels.mixtures",
                mixtures.iter().all(|count| (1..=4096).contains(count)),
                "must be numbers of components from 1 to 4096",
            ),
            ("kernels.worth", (0.0..0.1).contains(worth), "must be from 0 to 0.1"),
            ("kernels.tolerance", (0.0..0.01).contains(tolerance), "must be from 0 to 0.01"),
            ("network.hidden", !self.network.hidden.contains(&0), "must be positive"),
            ("network.hidden", self.network.hidden.len() <= MOST_LAYERS, "must be at most 64 layers"),
            ("network.hidden", !self.network.hidden.iter().any(|n| *n > WIDEST), "must be at most 65536"),
            (
                "network.activation",
                self.network.activation != Activation::Relu,
                "must be silu, tanh, softplus, elu or sin, not relu: its gradient is discontinuous",
            ),
            ("network.waves", self.network.waves <= WIDEST, "must be at most 65536"),
            ("network.frequency", self.network.frequency > 0.0, "must be positive"),
            ("network.spread", self.network.spread >= 1.0, "must be at least 1"),
            (
                "objective",
                self.objective != Goal::TransportReaction,
                "must be minimum-velocity, score-matching, denoising, likelihood or none: transport-reaction is for free energies",
            ),
            ("energies.seeds", energies.seeds > 0, "must be positive"),
            ("energies.free", energies.free <= 8, "must be at most 8"),
            ("energies.network.hidden", hidden(&energies.network), "must be at most 64 layers of 1 to 65536"),
            ("energies.network.activation", energies.network.activation != Activation::Relu, "must not be relu"),
            ("energies.network.waves", energies.network.waves <= WIDEST, "must be at most 65536"),
            ("energies.network.frequency", energies.network.frequency > 0.0, "must be positive"),
            ("energies.network.spread", energies.network.spread >= 1.0, "must be at least 1"),
            ("energies.steps", energies.steps > 0, "must be positive"),
            ("energies.batch", energies.batch > 1, "must be at least 2"),
            ("energies.rate", energies.rate > 0.0, "must be positive"),
            ("energies.draws", (1000..=10_000_000).contains(&energies.draws), "must be from 1000 to 10 000 000"),
            ("energies.off", energies.off >= 0.0, "must not be negative"),
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
        demands.into_iter().find(|(_, met, _)| !met).map(|(key, _, what)| (key, what))
    }
}
