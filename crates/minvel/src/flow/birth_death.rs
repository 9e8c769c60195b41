//! Birth and death of particles beside their motion: mass jumps where the model wants it.
//!
//! **Statement.** Besides moving, particle i dies at rate Λ_i = ℓ_i + τE_i − mean, ℓ = log p: after ε its share is
//! w_i ∝ e^{−εΛ_i}.
//! **Source.** lu2019birthdeath; wang2020mvl sections 2.2, 3.4; docs/math §2.9.
//! **Conventions.** Shares are reweighted, never drawn: drawn events would bring the variance 1/ε back. Constants in E
//! and ℓ do not matter.
//! **Error.** ℓ is known only approximately: with a kernel estimate of bandwidth h, log p is replaced by log(p∗K_h).
//! **Checked by** tests/theory/objective_facts.rs (F23–F26).

use super::{Displacement, EnergyOf, Flow, Noise, Pace, Particles};
use crate::energy::Energy;
use minvel_engine::Expr;
use std::sync::Arc;

/// Where log p at the particles comes from.
#[derive(Clone, Debug)]
pub enum DensityEstimate {
    /// A Gaussian kernel estimate, log Σ_j w_j e^{−|x_i−x_j|²/2h²}.
    Kernel {
        /// h.
        bandwidth: f64,
        /// Whether a particle's own kernel is left out, as it must be for a sample.
        leave_one_out: bool,
    },
    /// A density fitted elsewhere: log p = −E_p up to a constant.
    Known(Arc<dyn Energy>),
    /// Given with the particles ([`Particles::with_log_density`]).
    Given,
}

impl DensityEstimate {
    /// ℓ_i up to a constant, `rows × []`.
    pub fn log_density<'g>(&self, particles: Particles<'g>) -> Expr<'g> {
        match self {
            DensityEstimate::Known(energy) => -energy.energy(particles.at),
            DensityEstimate::Given => particles.log_density.expect("particles were given no log density"),
            DensityEstimate::Kernel { bandwidth, leave_one_out } => {
                let x = particles.at;
                let exponent = -0.5 / bandwidth.powi(2) * x.squared_distances(x.collect());
                // log 0 = −∞ leaves a particle out.
                (exponent + particles.seen(*leave_one_out).log()).logsumexp(-1)
            }
        }
    }
}

/// Gradient flow of KL in the Wasserstein–Fisher–Rao space.
#[derive(Clone, Debug)]
pub struct BirthDeath {
    /// How particles move.
    pub motion: Arc<dyn Flow>,
    /// log p.
    pub density: DensityEstimate,
}

impl BirthDeath {
    /// Birth and death beside a motion.
    pub fn new(motion: impl Flow + 'static, density: DensityEstimate) -> Self {
        BirthDeath { motion: Arc::new(motion), density }
    }
}

impl Flow for BirthDeath {
    fn step<'g>(
        &self,
        energy: EnergyOf<'_, 'g>,
        from: Particles<'g>,
        pace: Pace<'g>,
        noise: Noise<'g>,
    ) -> Displacement<'g> {
        let moved = self.motion.step(energy, from, pace, noise);
        let rate = self.density.log_density(from).stop_gradient() + pace.temper * moved.energy;
        Displacement { rate: Some(rate - from.mean(rate)), ..moved }
    }
}
