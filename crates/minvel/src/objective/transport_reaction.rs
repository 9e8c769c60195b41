//! The squared speed of transport, birth and death, with the densities of the rows given: Wasserstein–Fisher–Rao learning.
//!
//! **Statement.** L = L_transport + λ·E_p[2H_δ(r − r̄)], r = E + ℓ, ℓ = log p̂ at each row by an estimate that has not seen it;
//! H_δ is Huber's function, ½r² up to δ and δ|r| − ½δ² beyond. With δ = ∞: E_p|grad(E + log p)|² + λ·Var_p(E + ℓ) − I(p).
//! **Source.** wang2020mvl section 3.4; lu2019birthdeath; huber1964robust; docs/math §2.9, §2.14.
//! **Conventions.** Scale L = 2J of transport; r̄ is the mean over the rows, through which θ is differentiated too.
//! Transport says nothing about the masses of separated modes; the other part says nothing that ℓ does not.
//! **Error.** Bias of transport; noise of ℓ that is independent of the row adds a constant and 4λ²σ²·Var(∂E)/B to the variance
//! of the slope; bias of ℓ moves the minimiser, the less the smaller λ is (F59, F60).
//! **Checked by** tests/theory/objective_facts/fisher_rao.rs (F57–F61), tests/theory/objective_laws.rs.

use super::Objective;
use crate::flow::{DensityEstimate, EnergyOf, Noise, Particles};
use minvel_engine::Expr;
use std::sync::Arc;

/// Transport by any objective, and the residual of birth and death.
#[derive(Clone, Debug)]
pub struct TransportReaction {
    /// An estimate of the transport part, in its own scale.
    pub transport: Arc<dyn Objective>,
    /// λ.
    pub ratio: f64,
    /// log p.
    pub density: DensityEstimate,
    /// δ: residuals beyond it count linearly.
    pub bound: f64,
}

impl TransportReaction {
    /// With squared residuals.
    pub fn new(transport: impl Objective + 'static, ratio: f64, density: DensityEstimate) -> Self {
        assert!(ratio >= 0.0, "transport and reaction: the ratio must not be negative, not {ratio}");
        TransportReaction { transport: Arc::new(transport), ratio, density, bound: f64::INFINITY }
    }

    /// 2H_δ(r), which is r² where r is small.
    pub fn penalty<'g>(&self, residual: Expr<'g>) -> Expr<'g> {
        if self.bound.is_infinite() {
            return residual.square();
        }
        let size = residual.abs();
        let near = size.less(self.bound).select(size, size.like(self.bound));
        near * (2.0 * size - near)
    }
}

impl Objective for TransportReaction {
    fn rows<'g>(&self, energy: EnergyOf<'_, 'g>, data: Particles<'g>, noise: Noise<'g>) -> Expr<'g> {
        let transport = self.transport.rows(energy, data, noise) * (2.0 / self.transport.scale());
        let residual = energy(data.at) + self.density.log_density(data).stop_gradient();
        let reaction = self.penalty(residual - data.mean(residual));
        // unbiased for a sample
        let count = data.count() as f64;
        let divisor = if data.weights.is_some() { 1.0 } else { count / (count - 1.0) };
        transport + self.ratio * divisor * reaction
    }

    fn scale(&self) -> f64 {
        2.0
    }
}
