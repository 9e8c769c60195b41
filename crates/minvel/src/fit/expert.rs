//! An energy that was learnt, as a normalised density, and what it stands on.
//!
//! **Statement.** Anchored: p_k = a·e^{−t f}/Z, Z = E_a e^{−t f}. Free: p_k = b·e^{−f}/Z, b the wide law of the manifold
//! ([`wide`](super::wide)). f is the mean of networks. A model is the sum w₀a + Σ wₖpₖ.
//! **Source.** wang2020mvl; docs/math §2.14. **Conventions.** Points and densities in standard units.
//! **Error.** That of log Z, and single precision of networks. **Checked by** tests/densities/experts.rs.

use super::correction::Averaged;
use super::partition::LogZ;
use super::settings::{Goal, NetworkSettings};
use crate::Manifold;
use crate::energy::{Energy, Head, Mlp};
use crate::network::{Features, Parameter};
use crate::train::Context;
use crate::{Error, estimate::Estimate};
use minvel_engine::{State, grad};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// What an energy is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// The kernels.
    Anchor,
    /// The wide law: the energy stands on its own.
    Wide,
}

/// An energy that was learnt, normalised.
#[derive(Clone)]
pub struct Expert {
    /// What it minimised.
    pub(super) goal: Goal,
    pub(super) base: Base,
    pub(super) network: NetworkSettings,
    /// Variables of the networks, one state for each.
    pub(super) networks: Vec<State<f32>>,
    /// t; 1 of a free energy.
    pub(super) share: f64,
    pub(super) log_z: LogZ,
    /// w.
    pub(super) weight: f64,
    /// Its weight where energies of minimum velocity are left out.
    pub(super) without: f64,
}

/// A density that was in the running, and what the validation rows said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// What it is.
    pub name: String,
    /// What it minimised; none of kernels.
    pub goal: Option<Goal>,
    /// Negative log-likelihood of the validation rows, alone.
    pub validation_nll: Estimate,
    /// The kernels' less this one's, row by row: what it gains alone.
    pub gain: Estimate,
    /// Its weight in the model.
    pub weight: f64,
    /// After how many steps each of its networks was best.
    pub best_step: Vec<u32>,
}

/// The network of an energy, one output.
pub(super) fn network(manifold: &Arc<dyn Manifold>, settings: &NetworkSettings, seed: u64) -> Mlp {
    let features = Features::of(manifold.clone());
    let features = match settings.waves {
        0 => features,
        waves => features.with_fourier(waves, settings.frequency, seed).over_octaves(settings.spread),
    };
    Mlp::with_head("correction", features, &settings.hidden, settings.activation, Head::Scalar)
}

impl Expert {
    /// What it is, in words.
    pub fn name(&self) -> String {
        name(self.base, self.goal)
    }

    /// What it minimised.
    pub fn goal(&self) -> Goal {
        self.goal
    }

    /// What it is added to.
    pub fn base(&self) -> Base {
        self.base
    }

    /// Its weight in the model.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// t.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Its networks, of which the mean is taken.
    pub fn networks(&self) -> usize {
        self.networks.len()
    }

    /// Hidden layers, waves and frequencies.
    pub fn network(&self) -> &NetworkSettings {
        &self.network
    }

    /// log Z and how it was found.
    pub fn log_z(&self) -> &LogZ {
        &self.log_z
    }

    /// Whether its objective is the minimum velocity of a flow.
    pub fn is_of_velocity(&self) -> bool {
        is_of_velocity(self.goal)
    }

    /// Whether every network has all its parameters.
    pub(super) fn is_whole(&self, manifold: &Arc<dyn Manifold>, seed: u64) -> bool {
        let network = network(manifold, &self.network, seed);
        let whole = |p: &Parameter, state: &State<f32>| {
            state.get(&p.name).is_some_and(|values| values.len() == p.dims.iter().product::<usize>())
        };
        self.networks.iter().all(|state| network.parameters().iter().all(|p| whole(p, state)))
    }

    /// U, compiled for so many points: f of an anchored energy, f − log b of a free one.
    pub(super) fn energy(
        &self,
        manifold: &Arc<dyn Manifold>,
        seed: u64,
        count: usize,
        context: &Context,
    ) -> Result<Averaged, Error> {
        let network = network(manifold, &self.network, seed);
        Averaged::of(&self.networks, manifold.ambient(), 1, count, context, |x| match self.base {
            Base::Anchor => network.energy(x),
            Base::Wide => network.energy(x) + manifold.base_energy(x),
        })
    }

    /// ∂U in the coordinates of the points.
    pub(super) fn derivative(
        &self,
        manifold: &Arc<dyn Manifold>,
        seed: u64,
        count: usize,
        context: &Context,
    ) -> Result<Averaged, Error> {
        let (network, m) = (network(manifold, &self.network, seed), manifold.ambient());
        Averaged::of(&self.networks, m, m, count, context, |x| match self.base {
            Base::Anchor => grad(network.energy(x), &[x])[0],
            Base::Wide => grad(network.energy(x) + manifold.base_energy(x), &[x])[0],
        })
    }

    /// log of the density before it is normalised, where the kernels have log a and the energy is U.
    pub(super) fn unnormalised(&self, log_anchor: f64, energy: f64) -> f64 {
        match self.base {
            Base::Anchor => log_anchor - self.share * energy,
            Base::Wide => -energy,
        }
    }
}

/// What an energy of a goal on a base is called.
pub(super) fn name(base: Base, goal: Goal) -> String {
    let goal = match goal {
        Goal::MinimumVelocity => "minimum velocity",
        Goal::ScoreMatching => "score matching",
        Goal::Denoising => "denoising",
        Goal::Likelihood => "likelihood",
        Goal::TransportReaction => "transport, birth and death",
        Goal::None => "nothing",
    };
    let base = if base == Base::Anchor { "kernels times an energy" } else { "a free energy" };
    format!("{base} ({goal})")
}

/// Whether a goal is the velocity of a flow.
pub(super) fn is_of_velocity(goal: Goal) -> bool {
    matches!(goal, Goal::MinimumVelocity | Goal::ScoreMatching | Goal::Denoising | Goal::TransportReaction)
}

impl fmt::Debug for Expert {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Expert({}, share {}, weight {})", self.name(), self.share, self.weight)
    }
}
