//! Likelihoods of an image given what a decoder says.
//!
//! **Statement.** Bernoulli: log p(x|y) = Σ_i x_i y_i − log(1 + e^{y_i}), y logits. Gaussian: log p(x|y) =
//! −|x − y|²/(2σ²) − (d/2) log 2πσ². **Source.** METHODS 4.6–4.8. **Error.** Rounding.
//! **Checked by** tests/autoencoder.rs.

use minvel_engine::Expr;
use std::f64::consts::TAU;

/// The law of pixels given the decoder's output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Likelihood {
    /// Pixels are 0 or 1; the output is their logits.
    Bernoulli,
    /// Pixels are numbers; the output is their mean. Their deviation is the same everywhere.
    Gaussian {
        /// σ.
        deviation: f64,
    },
}

impl Likelihood {
    /// log p(x | output), `rows × [d]` both → `rows × []`.
    pub fn log_prob<'g>(self, x: Expr<'g>, output: Expr<'g>) -> Expr<'g> {
        match self {
            Likelihood::Bernoulli => (x * output - output.softplus()).sum(-1),
            Likelihood::Gaussian { deviation } => {
                let d = output.shape().features() as f64;
                let variance = deviation * deviation;
                (x - output).square().sum(-1) * (-0.5 / variance) - 0.5 * d * (TAU * variance).ln()
            }
        }
    }

    /// Mean pixels.
    pub fn mean(self, output: Expr) -> Expr {
        match self {
            Likelihood::Bernoulli => output.sigmoid(),
            Likelihood::Gaussian { .. } => output,
        }
    }
}
