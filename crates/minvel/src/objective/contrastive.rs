//! Contrastive divergence after one step: a gradient without an objective.
//!
//! **Statement.** g = (1/ε)·∂_θ[E(x) − E(sg x⁻) + u·∇E(x)], x⁻ one step from x of the flow towards q itself.
//! **Source.** hyvarinen2007; wang2020mvl section 3.3 (erratum P9); docs/math §2.4.
//! **Conventions.** Scale J: E g → ∂_θJ, and θ ← θ − η·g. The value of the rows is that of no objective: it tends to
//! E[|∇E|² − ΔE] and must not be watched.
//! **Error.** Bias O(ε); plain variance (2/ε)E|∇_x∂_θE|² for each parameter, bounded if reduced.
//! **Checked by** tests/theory/objective_facts.rs (F12, F13), tests/theory/golden.rs.

use super::{Objective, Reduction};
use crate::flow::{EnergyOf, Flow, Noise, Pace, Particles};
use minvel_engine::{Expr, difference};
use std::sync::Arc;

/// CD-1: data against where the model's sampler moves them.
#[derive(Clone, Debug)]
pub struct Contrastive {
    /// The sampler.
    pub flow: Arc<dyn Flow>,
    /// ε.
    pub step: f64,
    /// Whether ε is divided by max(1, N_i) for each row.
    pub adaptive: bool,
    /// What keeps the variance bounded.
    pub reduction: Reduction,
    /// Whether energies are subtracted operation by operation, without cancellation.
    pub exact_difference: bool,
}

impl Contrastive {
    /// Step ε, control variate, exact differences.
    pub fn new(flow: impl Flow + 'static, step: f64) -> Self {
        assert!(step > 0.0, "contrastive divergence: the step must be positive, not {step}");
        let (adaptive, exact_difference) = (false, true);
        Contrastive { flow: Arc::new(flow), step, adaptive, reduction: Reduction::default(), exact_difference }
    }
}

impl Objective for Contrastive {
    /// Rows whose gradient in θ is right, and whose value is no objective.
    fn rows<'g>(&self, energy: EnergyOf<'_, 'g>, data: Particles<'g>, noise: Noise<'g>) -> Expr<'g> {
        let pace = Pace { adaptive: self.adaptive, ..Pace::sampling(data.at.graph().scalar(self.step)) };
        self.reduction.of(noise, |noise, with_control_variate| {
            let moved = self.flow.step(energy, data, pace, noise);
            let change = if self.exact_difference {
                difference(moved.energy, &[(moved.at, moved.delta.stop_gradient())])
            } else {
                energy(moved.to.stop_gradient()) - moved.energy
            };
            let first_order = moved.first_order().filter(|_| with_control_variate);
            first_order.map_or(-change, |c| c - change) / moved.step
        })
    }

    fn scale(&self) -> f64 {
        1.0
    }

    fn has_value(&self) -> bool {
        false
    }
}
