//! Objectives: what is minimised so that a model q ∝ e^{−E} becomes the law p of the data.
//!
//! **Statement.** L(θ) = E_p[|∇E|² − 2ΔE] = 2J(θ) = 2D_F(p‖q) − I(p), or an estimate of it that needs less.
//! **Source.** hyvarinen2005; wang2020mvl; docs/math §1.1, §2.
//! **Conventions.** All are minimised. A loss is an expression: its `grad` in θ is the exact gradient of the value
//! ([`Contrastive`] alone has a gradient without a value). Expected values are [`Objective::scale`]·J plus a constant.
//! **Error.** Bias O(ε) where there is a step ε; the variance stays bounded as ε → 0 with a [`Reduction`] only:
//!
//! | objective | scale | limit | variance, reduced | variance, plain | derivatives in x |
//! |---|---|---|---|---|---|
//! | [`ScoreMatching`] | 1 | J | over x only | – | second, d directions |
//! | [`Sliced`] | 1 | J | O(1) | O(1) | second, one direction |
//! | [`Denoising`] | 2 | L (+ d/ε plain) | O(1) | 2d/ε² | first, at two points |
//! | [`Contrastive`] | 1 | ∂J (gradient only) | O(1) | O(1/ε) | first |
//! | [`MinimumVelocity`] | 2 | L of the flow's geometry | O(1) | 8E‖∇E‖²/ε | first |
//! | [`TransportReaction`] | 2 | L + λ·Var(E + log p) | O(1) | as its transport | as its transport |
//! | [`ProbabilityFlow`] | 2 | L | O(1) | O(1/σ²) | none, first if reduced |
//!
//! **Checked by** tests/theory/objective_laws.rs, tests/theory/objective_facts.rs, tests/theory/golden.rs.

mod contrastive;
mod denoising;
mod minimum_velocity;
mod probability_flow;
mod score_matching;
mod sliced;
mod transport_reaction;

pub use contrastive::Contrastive;
pub use denoising::Denoising;
pub use minimum_velocity::MinimumVelocity;
pub use probability_flow::ProbabilityFlow;
pub use score_matching::ScoreMatching;
pub use sliced::Sliced;
pub use transport_reaction::TransportReaction;

use crate::flow::{EnergyOf, Noise, Particles};
use minvel_engine::Expr;
use std::fmt;

/// A loss that a model minimises when it is the law of the data.
pub trait Objective: fmt::Debug + Send + Sync {
    /// The loss of each row, `rows × []`: independent given the data where rows do not meet in the flow.
    fn rows<'g>(&self, energy: EnergyOf<'_, 'g>, data: Particles<'g>, noise: Noise<'g>) -> Expr<'g>;

    /// The loss, a scalar: the mean of the rows under the law of the data.
    fn loss<'g>(&self, energy: EnergyOf<'_, 'g>, data: Particles<'g>, noise: Noise<'g>) -> Expr<'g> {
        data.mean(self.rows(energy, data, noise))
    }

    /// How many times the score-matching loss J = E[½|∇E|² − ΔE] this is, up to a constant and in the limit of small
    /// steps.
    fn scale(&self) -> f64;

    /// Whether the value means anything, or only its gradient does.
    fn has_value(&self) -> bool {
        true
    }
}

/// What keeps the variance bounded as the step shrinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// Nothing.
    None,
    /// The first-order term in the noise is subtracted: its mean is exactly zero.
    #[default]
    ControlVariate,
    /// The mean over z and −z, in which all odd terms cancel; no derivative is needed for it, but two steps.
    Antithetic,
}

impl Reduction {
    /// The estimate `rows(noise, with control variate?)`, reduced.
    fn of<'g>(self, noise: Noise<'g>, rows: impl Fn(Noise<'g>, bool) -> Expr<'g>) -> Expr<'g> {
        match self {
            Reduction::None => rows(noise, false),
            Reduction::ControlVariate => rows(noise, true),
            Reduction::Antithetic => 0.5 * (rows(noise, false) + rows(noise.opposite(), false)),
        }
    }
}
