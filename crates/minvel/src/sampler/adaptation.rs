//! Finding a step size while the chains warm up.
//!
//! **Statement.** Multiplicative: ε ← clip(ε·(1.02 if ᾱ > target else 0.98)), then ᾱ ← 0.9ᾱ + 0.1α. Robbins–Monro:
//! log ε ← log ε + (k+1)^{−0.6}(α − target).
//! **Source.** docs/math §4.6; robbins1951, andrieu2008adaptive. **Conventions.** α is the acceptance of this step, averaged
//! over the chains of a replica; each replica has its own ε. k counts steps from the start.
//! **Error.** While ε follows the chains they are not exactly Markov: draws are kept only after the warm-up. Annealing
//! keeps adapting, as the official code does; with many chains ε is all but deterministic.
//! **Checked by** tests/theory/sampler_laws.rs.

use minvel_engine::Expr;

/// A rule for the step size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Adaptation {
    /// As given.
    Fixed,
    /// Up or down by 2 %, as the running acceptance is above or below the target.
    Multiplicative {
        /// Acceptance aimed at.
        target: f64,
        /// Smallest and largest ε.
        bounds: (f64, f64),
    },
    /// In ever smaller steps towards the target: ε converges.
    RobbinsMonro {
        /// Acceptance aimed at.
        target: f64,
    },
}

impl Adaptation {
    /// The acceptance aimed at; the running acceptance starts there.
    pub fn target(&self) -> f64 {
        match *self {
            Adaptation::Fixed => 0.0,
            Adaptation::Multiplicative { target, .. } | Adaptation::RobbinsMonro { target } => target,
        }
    }

    /// (ε, ᾱ) after step number k with acceptance α; all scalars.
    pub fn next<'g>(
        &self,
        (step, running): (Expr<'g>, Expr<'g>),
        acceptance: Expr<'g>,
        count: Expr<'g>,
    ) -> (Expr<'g>, Expr<'g>) {
        let after = 0.9 * running + 0.1 * acceptance;
        let step = match *self {
            Adaptation::Fixed => step,
            // ᾱ from before this step, as in the official code.
            Adaptation::Multiplicative { target, bounds: (low, high) } => {
                let g = step.graph();
                let factor = running.less_equal(target).select(g.scalar(0.98), g.scalar(1.02));
                (step * factor).max(low).min(high)
            }
            Adaptation::RobbinsMonro { target } => step * ((acceptance - target) * (-0.6 * count.log1p()).exp()).exp(),
        };
        (step, after)
    }
}
