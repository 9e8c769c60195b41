//! Stein and Langevin together (stochastic particle-optimisation sampling).
//!
//! **Statement.** x⁻ = x + ε(s·φ(x) − l·τ∇E(x)) + √(2lε)·z.
//! **Source.** zhang2018spos; wang2020mvl appendix B; docs/math §2.8.
//! **Conventions.** The paper's form is s = 1, l = α; the convex form is s = α, l = 1 − α. The noise has √l, not l:
//! with l (the official code, erratum P12) the loss is not proper.
//! **Error.** Limit s·L_svgd + l·L, bias O(ε); variance of the first-order part ∝ l/ε.
//! **Checked by** tests/theory/objective_facts.rs (F22), tests/theory/objective_laws.rs.

use super::{Displacement, EnergyOf, Flow, Langevin, Noise, Pace, Particles, Stein};

/// A mixture of the two dynamics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blend {
    /// The particles' mutual push.
    pub stein: Stein,
    /// s, its share.
    pub stein_share: f64,
    /// l, the share of Langevin dynamics.
    pub langevin_share: f64,
}

impl Blend {
    /// Velocity φ + α∇log(q^τ/p): s = 1, l = α.
    pub fn paper(alpha: f64, stein: Stein) -> Self {
        Blend { stein, stein_share: 1.0, langevin_share: alpha }
    }

    /// s = α, l = 1 − α.
    pub fn convex(alpha: f64, stein: Stein) -> Self {
        Blend { stein, stein_share: alpha, langevin_share: 1.0 - alpha }
    }
}

impl Flow for Blend {
    fn step<'g>(
        &self,
        energy: EnergyOf<'_, 'g>,
        from: Particles<'g>,
        pace: Pace<'g>,
        noise: Noise<'g>,
    ) -> Displacement<'g> {
        let stein = self.stein.step(energy, from, pace, noise);
        let langevin = Langevin.step(energy, from, pace, noise);
        let drift = self.stein_share * stein.drift + self.langevin_share * langevin.drift;
        let u = langevin.diffusion.map(|u| self.langevin_share.sqrt() * u);
        Displacement::straight_step((stein.at, stein.energy, stein.gradient), drift, u, stein.step, |x| x)
    }
}
