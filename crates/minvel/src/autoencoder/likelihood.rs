//! Likelihoods of an image given what a decoder says.
//!
//! **Statement.** Bernoulli: log p(x|y) = Σ_i x_i y_i − log(1 + e^{y_i}), y logits. Gaussian: log p(x|y) =
//! −|x − y|²/(2σ²) − (d/2) log 2πσ². Dequantised: the same of x = v/128 − 1 + (u − ½)/128, u uniform, and of tanh y, where
//! v = 0 … 255 is the byte of a pixel; with σ² = ½ that is the sum of squares, but for a constant.
//! **Source.** docs/math §4.6–§4.9. **Conventions.** Data are intensities v/255; what is encoded and judged are pixels x.
//! **Error.** Rounding. **Checked by** tests/theory/autoencoder.rs, tests/theory/convolution.rs.

use minvel_engine::random::{Key, Stream};
use minvel_engine::{Draw, Expr};
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
    /// Pixels are bytes between −1 and 1, as numbers by noise; tanh of the output is their mean.
    Dequantised {
        /// σ.
        deviation: f64,
    },
}

/// Bytes to the unit of dequantised pixels.
const UNIT: f64 = 128.0;
/// The largest byte.
const BYTE: f64 = 255.0;

impl Likelihood {
    /// Pixels of intensities, without noise.
    pub fn pixels(self, intensities: Expr) -> Expr {
        match self {
            Likelihood::Bernoulli | Likelihood::Gaussian { .. } => intensities,
            Likelihood::Dequantised { .. } => intensities * (BYTE / UNIT) - 1.0,
        }
    }

    /// What an encoder is shown of images in bytes: their intensities v/255. Where pixels are 0 or 1 they are drawn with that
    /// probability, the same ones whenever the seed is the same.
    pub fn shown(self, bytes: &[u8], seed: u64) -> Vec<f32> {
        let intensities = bytes.iter().map(|&v| f32::from(v) / BYTE as f32);
        if self != Likelihood::Bernoulli {
            return intensities.collect();
        }
        let uniform = Stream::new(Key::new(seed, 0), crate::stream::named("binarised"));
        let bit = |(p, u): (f32, f64)| if u < f64::from(p) { 1.0 } else { 0.0 };
        intensities.zip(uniform.samples(Draw::Uniform)).map(bit).collect()
    }

    /// Pixels to learn from, drawn afresh at every step where the law has noise.
    pub fn drawn(self, intensities: Expr<'_>, stream: u32) -> Expr<'_> {
        match self {
            Likelihood::Bernoulli => intensities.bernoulli(stream),
            Likelihood::Gaussian { .. } => intensities,
            Likelihood::Dequantised { .. } => {
                let noise = intensities.graph().draw_like(Draw::Uniform, stream, intensities) - 0.5;
                self.pixels(intensities) + noise * (1.0 / UNIT)
            }
        }
    }

    /// log p(x | output), `rows × [d]` both → `rows × []`.
    pub fn log_prob<'g>(self, x: Expr<'g>, output: Expr<'g>) -> Expr<'g> {
        let normal = |mean: Expr<'g>, deviation: f64| {
            let d = output.shape().features() as f64;
            let variance = deviation * deviation;
            (x - mean).square().sum(-1) * (-0.5 / variance) - 0.5 * d * (TAU * variance).ln()
        };
        match self {
            Likelihood::Bernoulli => (x * output - output.softplus()).sum(-1),
            Likelihood::Gaussian { deviation } => normal(output, deviation),
            Likelihood::Dequantised { deviation } => normal(output.tanh(), deviation),
        }
    }

    /// Mean intensities.
    pub fn mean(self, output: Expr) -> Expr {
        match self {
            Likelihood::Bernoulli => output.sigmoid(),
            Likelihood::Gaussian { .. } => output,
            Likelihood::Dequantised { .. } => (output.tanh() + 1.0) * (UNIT / BYTE),
        }
    }
}
