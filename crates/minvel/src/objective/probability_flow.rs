//! Minimum probability flow with local proposals in flat space.
//!
//! **Statement.** L̂ = (8/σ²)·[e^{½(E(x) − E(x'))} − 1 + ½σ z·∇E(x)], x' = x + σz.
//! **Source.** sohldickstein2011; docs/math §2.11 (erratum P13).
//! **Conventions.** Scale L = 2J: (8/σ²)(K − 1) → L with K = E e^{½(E(x)−E(x'))}.
//! **Error.** Bias O(σ²); plain variance (16/σ²)E|∇E|², bounded if reduced.
//! **Checked by** tests/theory/objective_facts.rs (F14), tests/theory/objective_laws.rs.

use super::{Objective, Reduction};
use crate::flow::{EnergyOf, Noise, Particles, leaf};
use minvel_engine::{Expr, difference, grad};

/// How fast probability flows from the data to their neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbabilityFlow {
    /// σ, the distance of the neighbours.
    pub deviation: f64,
    /// What keeps the variance bounded.
    pub reduction: Reduction,
    /// Whether energies are subtracted operation by operation, without cancellation.
    pub exact_difference: bool,
}

impl ProbabilityFlow {
    /// Neighbours at σz, control variate, exact differences.
    pub fn new(deviation: f64) -> Self {
        assert!(deviation > 0.0, "probability flow: neighbours at distance {deviation}");
        ProbabilityFlow { deviation, reduction: Reduction::default(), exact_difference: true }
    }
}

impl Objective for ProbabilityFlow {
    fn rows<'g>(&self, energy: EnergyOf<'_, 'g>, data: Particles<'g>, noise: Noise<'g>) -> Expr<'g> {
        let x = leaf(data.at);
        let here = energy(x);
        self.reduction.of(noise, |noise, with_control_variate| {
            let step = self.deviation * noise.like(x);
            let rise = if self.exact_difference { difference(here, &[(x, step)]) } else { energy(x + step) - here };
            let flow = (-0.5 * rise).expm1();
            let corrected = if with_control_variate { flow + 0.5 * step.dot(grad(here, &[x])[0]) } else { flow };
            corrected * (8.0 / self.deviation.powi(2))
        })
    }

    fn scale(&self) -> f64 {
        2.0
    }
}
