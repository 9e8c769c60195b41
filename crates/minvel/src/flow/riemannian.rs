//! Langevin dynamics on a manifold, in a chart or along geodesics.
//!
//! **Statement.** Chart: y⁻ = y + ε(−τ g^{ij}∂_jE + b) + √(2ε)·G^{−1/2}z, b = ½g^{ij}∂_j log|G| + ∂_jg^{ij}.
//! Geodesic: x⁻ = exp_x(−ετ grad E + √(2ε)·ζ), ζ the standard normal of the tangent space.
//! **Source.** wang2020mvl section 4.1 with erratum P5 (sign of log|G|); docs/math §2.6, §3.1, §3.5.
//! **Conventions.** E is w.r.t. the Riemannian volume. Generator Δ_g − τ⟨grad E, grad·⟩ in every form. Steepness:
//! N = |drift|² in chart components, geometry included; |grad E|²_g along geodesics.
//! **Error.** Bias O(ε), chart dependent; normalising instead of exp adds O(εn²).
//! **Checked by** tests/theory/objective_facts.rs (F33–F40), tests/theory/golden.rs.

use super::{Displacement, EnergyOf, Flow, Noise, Pace, Particles, langevin, leaf};
use crate::manifold::Manifold;
use minvel_engine::{Expr, difference, grad};
use std::sync::Arc;

/// In which coordinates a step is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowForm {
    /// A straight step in the chart that the manifold chooses for each point; noise `rows × [n]`.
    Chart,
    /// Along the geodesic, no chart needed; noise `rows × [m]`.
    #[default]
    Geodesic,
    /// A straight step off the manifold and back by [`Manifold::settle`] (normalising, on a sphere); noise `rows × [m]`.
    Settled,
}

/// Gradient flow of KL in the 2-Wasserstein space over a manifold.
#[derive(Clone, Debug)]
pub struct RiemannianLangevin {
    /// Where the points live.
    pub manifold: Arc<dyn Manifold>,
    /// How a step is made.
    pub form: FlowForm,
}

impl RiemannianLangevin {
    /// The flow on a manifold.
    pub fn new(manifold: impl Manifold + 'static, form: FlowForm) -> Self {
        RiemannianLangevin { manifold: Arc::new(manifold), form }
    }

    /// A step in the chart given by `choice` (which must not depend on the state where detailed balance is wanted).
    pub fn step_in_chart<'g>(
        &self,
        energy: EnergyOf<'_, 'g>,
        x: Expr<'g>,
        choice: Expr<'g>,
        pace: Pace<'g>,
        noise: Noise<'g>,
    ) -> Displacement<'g> {
        let y = leaf(self.manifold.to_chart(x, choice));
        let land = |y| self.manifold.from_chart(y, choice);
        let value = energy(land(y));
        let gradient = grad(value, &[y])[0];
        let metric = self.manifold.metric(y);
        let drift = -pace.temper * metric.inverse * gradient + metric.brownian;
        let step = pace.over(drift.square().sum(-1));
        let u = (2.0 * step.expand(-1) * metric.inverse).sqrt() * noise.like(y);
        Displacement::straight_step((y, value, gradient), drift, Some(u), step, land)
    }

    fn step_embedded<'g>(
        &self,
        energy: EnergyOf<'_, 'g>,
        x: Expr<'g>,
        pace: Pace<'g>,
        noise: Noise<'g>,
    ) -> Displacement<'g> {
        let (at, value, derivative) = langevin::start(energy, x);
        let gradient = self.manifold.gradient(at, derivative);
        let step = pace.over(self.manifold.inner(at, gradient, gradient));
        let drift = -pace.temper * gradient;
        let u = (2.0 * step).sqrt().expand(-1) * self.manifold.tangent_normal(at, noise.like(at));
        let tangent = step.expand(-1) * drift + u;
        let delta = match self.form {
            FlowForm::Settled => difference(self.manifold.settle(at), &[(at, tangent)]),
            _ => self.manifold.exp_delta(at, tangent),
        };
        Displacement {
            at,
            energy: value,
            gradient: derivative,
            drift,
            diffusion: Some(u),
            delta,
            straight: false,
            to: self.manifold.settle(at + delta),
            step,
            rate: None,
        }
    }
}

impl Flow for RiemannianLangevin {
    fn step<'g>(
        &self,
        energy: EnergyOf<'_, 'g>,
        from: Particles<'g>,
        pace: Pace<'g>,
        noise: Noise<'g>,
    ) -> Displacement<'g> {
        match self.form {
            FlowForm::Chart => self.step_in_chart(energy, from.at, self.manifold.choose_chart(from.at), pace, noise),
            FlowForm::Geodesic | FlowForm::Settled => self.step_embedded(energy, from.at, pace, noise),
        }
    }
}
