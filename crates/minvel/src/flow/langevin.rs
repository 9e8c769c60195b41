//! Langevin dynamics in flat space.
//!
//! **Statement.** x⁻ = x − ετ∇E(x) + √(2ε)·z.
//! **Source.** wang2020mvl section 2.2; docs/math §1.2, §2.5.
//! **Conventions.** Generator Δ − τ∇E·∇ (noise of variance 2ε); steepness N = |∇E|², of E itself.
//! **Error.** Bias O(ε); the first-order part u·∇E has variance 2ε|∇E|².
//! **Checked by** tests/theory/objective_facts.rs (F2–F7, F15, F16), tests/theory/golden.rs.

use super::{Displacement, EnergyOf, Flow, Noise, Pace, Particles, leaf};
use minvel_engine::{Expr, grad};

/// Gradient flow of KL in the 2-Wasserstein space over Rⁿ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Langevin;

/// A leaf at the point, E there and ∇E there.
pub(super) fn start<'g>(energy: EnergyOf<'_, 'g>, x: Expr<'g>) -> (Expr<'g>, Expr<'g>, Expr<'g>) {
    let at = leaf(x);
    let value = energy(at);
    (at, value, grad(value, &[at])[0])
}

impl Flow for Langevin {
    fn step<'g>(
        &self,
        energy: EnergyOf<'_, 'g>,
        from: Particles<'g>,
        pace: Pace<'g>,
        noise: Noise<'g>,
    ) -> Displacement<'g> {
        let start @ (x, _, gradient) = start(energy, from.at);
        let step = pace.over(gradient.square().sum(-1));
        let drift = -pace.temper * gradient;
        let u = (2.0 * step).sqrt().expand(-1) * noise.like(x);
        Displacement::straight_step(start, drift, Some(u), step, |x| x)
    }
}
