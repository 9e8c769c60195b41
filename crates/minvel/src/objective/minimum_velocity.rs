//! Minimum velocity learning: a model is learnt when the first step of its flow no longer moves the data.
//!
//! **Statement.** L̂ = −(2/ε)·[E(x⁻) − E(x) − u·∇E(x)], x⁻ one step from x of the flow towards q^{1/2}.
//! **Source.** wang2020mvl sections 3 and 4.1 (errata P1–P5); docs/math §1.1–§1.6, §2.5–§2.9, §2.13, §4.0.
//! **Conventions.** Scale L = 2J. θ is differentiated through x⁻ too. With birth and death the loss gains
//! 2Cov_p(E, Λ) = Var E + 2Cov(E, log p), taken in its limit ε → 0. The penalty is c·(E(x⁻)² + E(x)²).
//! **Error.** Bias O(ε). As ε → 0 the variance is Var_p(|∇E|² − 2ΔE) + 8E‖∇²E‖², or (8/ε)E|∇E|² more if not reduced.
//! Rounding (unit roundoff r): r|E|/ε by plain differences; r|∇E|/√ε by exact ones with the control variate; r by exact
//! ones with antithetic noise and straight steps, at any ε (a nested difference: about four times the work).
//! **Checked by** tests/theory/objective_facts.rs (F2–F7, F15–F24, F29, F33–F40), tests/theory/objective_laws.rs,
//! tests/theory/golden.rs.

use super::{Objective, Reduction};
use crate::flow::{Displacement, EnergyOf, Flow, Noise, Pace, Particles};
use minvel_engine::{Expr, difference};
use std::sync::Arc;

/// How fast the flow of the model moves the data, squared; up to a constant.
#[derive(Clone, Debug)]
pub struct MinimumVelocity {
    /// The geometry of the space of laws, by its gradient flow.
    pub flow: Arc<dyn Flow>,
    /// ε.
    pub step: f64,
    /// Whether ε is divided by max(1, N_i) for each row: steep models cannot then exploit the finite step (docs/math §1.6).
    pub adaptive: bool,
    /// What keeps the variance bounded.
    pub reduction: Reduction,
    /// Whether energies are subtracted operation by operation, without cancellation.
    pub exact_difference: bool,
    /// c, the weight of the squared energies: it bounds their scale.
    pub penalty: f64,
}

impl MinimumVelocity {
    /// Step ε, control variate, exact differences; the same step for all rows and no penalty.
    pub fn new(flow: impl Flow + 'static, step: f64) -> Self {
        assert!(step > 0.0, "minimum velocity: the step must be positive, not {step}");
        MinimumVelocity {
            flow: Arc::new(flow),
            step,
            adaptive: false,
            reduction: Reduction::default(),
            exact_difference: true,
            penalty: 0.0,
        }
    }

    /// E(x⁻) − E(x).
    fn change<'g>(&self, energy: EnergyOf<'_, 'g>, moved: &Displacement<'g>) -> Expr<'g> {
        if self.exact_difference { moved.energy_change() } else { energy(moved.to) - moved.energy }
    }
}

impl Objective for MinimumVelocity {
    fn rows<'g>(&self, energy: EnergyOf<'_, 'g>, data: Particles<'g>, noise: Noise<'g>) -> Expr<'g> {
        let pace = Pace { adaptive: self.adaptive, ..Pace::learning(data.at.graph().scalar(self.step)) };
        let moved = self.flow.step(energy, data, pace, noise);
        let change = self.change(energy, &moved);
        let squared = |change: Expr<'g>| (moved.energy + change).square();

        let (reduced, after) = match (self.reduction, moved.first_order()) {
            (Reduction::ControlVariate, Some(first_order)) => (change - first_order, squared(change)),
            (Reduction::Antithetic, Some(_)) => {
                let opposite = self.flow.step(energy, data, pace, noise.opposite());
                let back = self.change(energy, &opposite);
                let even = if self.exact_difference && moved.straight { even(&moved) } else { 0.5 * (change + back) };
                (even, 0.5 * (squared(change) + squared(back)))
            }
            _ => (change, squared(change)),
        };
        let transport = -2.0 * reduced / moved.step;
        let reaction = moved.rate.map(|rate| 2.0 * data.covariance_rows(moved.energy, rate));
        let loss = reaction.map_or(transport, |r| transport + r);
        loss + self.penalty * (after + moved.energy.square())
    }

    fn scale(&self) -> f64 {
        2.0
    }
}

/// ½[E(x+m+u) + E(x+m−u)] − E(x) of a straight step with m = ε·drift, in which nothing cancels: with
/// S(x) = E(x+u) − 2E(x) + E(x−u), a difference of differences, it is ½S(x) and half of what 2E + S gains along m.
fn even<'g>(moved: &Displacement<'g>) -> Expr<'g> {
    let Displacement { at, energy, diffusion: Some(u), .. } = *moved else { panic!("even: the step has no noise") };
    // The step stays the same while the point moves, though its length may have been computed at the point.
    let u = u.stop_gradient();
    let held = (u, u.like(0.0));
    let forward = difference(energy, &[(at, u)]);
    let backward = difference(energy, &[(at, -u)]);
    let bend = -difference(forward, &[(at, -u), held]);
    let carried = moved.step.expand(-1) * moved.drift;
    0.5 * (bend + difference(2.0 * energy + forward + backward, &[(at, carried), held]))
}
