//! Denoising score matching: the score of the data after a little noise.
//!
//! **Statement.** With x̃ = x + √ε z: L̂ = ‖z/√ε − ∇E(x̃)‖²; reduced, |∇E(x̃)|² − (2/√ε)·z·(∇E(x̃) − ∇E(x)).
//! **Source.** vincent2011; wang2020mvl section 3.3 (errata P7, P8); docs/math §2.3.
//! **Conventions.** Scale L = 2J. The residual has −∇E: the minimiser is ∇E = −∇log(p∗N(0, εI)).
//! **Error.** Bias O(ε) (plus the constant d/ε unless reduced). Plain variance 2d/ε² + 4L/ε; reduced O(1); the
//! antithetic one keeps the |z|²/ε, whose variance 2d/ε² has no θ.
//! **Checked by** tests/theory/objective_facts.rs (F7, F10, F11), tests/theory/golden.rs.

use super::{Objective, Reduction};
use crate::flow::{EnergyOf, Noise, Particles, leaf};
use minvel_engine::{Expr, difference, grad};

/// Score matching of the smoothed data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Denoising {
    /// ε, the variance of the noise.
    pub variance: f64,
    /// What keeps the variance bounded.
    pub reduction: Reduction,
    /// Whether gradients are subtracted operation by operation, without cancellation.
    pub exact_difference: bool,
}

impl Denoising {
    /// Noise of variance ε, control variate, exact differences.
    pub fn new(variance: f64) -> Self {
        assert!(variance > 0.0, "denoising: noise of variance {variance}");
        Denoising { variance, reduction: Reduction::default(), exact_difference: true }
    }
}

impl Objective for Denoising {
    fn rows<'g>(&self, energy: EnergyOf<'_, 'g>, data: Particles<'g>, noise: Noise<'g>) -> Expr<'g> {
        let (x, deviation) = (leaf(data.at), self.variance.sqrt());
        let gradient_at = |x: Expr<'g>| grad(energy(x), &[x])[0];
        self.reduction.of(noise, |noise, with_control_variate| {
            let z = noise.like(x);
            let here = gradient_at(x);
            let (there, change) = if self.exact_difference {
                let change = difference(here, &[(x, deviation * z)]);
                (here + change, change)
            } else {
                let there = gradient_at(leaf(x + deviation * z));
                (there, there - here)
            };
            if with_control_variate {
                there.square().sum(-1) - (2.0 / deviation) * z.dot(change)
            } else {
                (z / deviation - there).square().sum(-1)
            }
        })
    }

    fn scale(&self) -> f64 {
        2.0
    }
}
