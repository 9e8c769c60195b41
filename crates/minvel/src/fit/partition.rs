//! log Z of a corrected density: by quadrature where dimensions are few, else between bounds.
//!
//! **Statement.** Z = ∫ a e^{−tf} = E_a e^{−tf}. Up to three dimensions, on products of model spaces: adaptive quadrature over every kernel
//! ([`quadrature`](super::quadrature)). Beyond: forward, from draws of
//! a, log Ê_a e^{−tf}, which is too small in the mean; in reverse, from draws of p, −log Ê_p e^{tf}, too large: annealed
//! importance sampling with a as base and a single temperature, enough while the weights stay even. Draws are added until
//! their error is small. **Source.** docs/math §4.6; neal2001ais; grosse2015sandwiching. **Error.** Quadrature: 10⁻⁶ of Z
//! but for the rounding of the networks. Draws: the standard error of the forward mean, the share of its largest term, or
//! half the bracket, whichever is widest. **Checked by** tests/densities/integrals.rs, crates/lab/tests/lab/fit.rs.

use super::model::Model;
use super::quadrature::{Effort, mean_over_kernels};
use crate::Error;
use crate::estimate::{Estimate, log_mean_exp, weighted_sample_size};
use crate::train::Context;
use serde::{Deserialize, Serialize};

/// log Z and how it was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogZ {
    /// The number, with its error.
    pub value: Estimate,
    /// How it was found, in words.
    pub method: String,
    /// From below and from above, where it was found by draws.
    pub bracket: Option<[Estimate; 2]>,
    /// Effective share of the draws; 1 where there are none.
    pub efficiency: f64,
}

/// Points of a quadrature at most.
const NODES: usize = 30_000_000;
/// The error of a quadrature, as a share of Z: networks compute in single precision, which is not much better.
const TOLERANCE: f64 = 1e-6;
/// Draws in reverse.
const REVERSE: usize = 10_000;
/// Rounds of draws at most, and the standard error at which they end.
const ROUNDS: u64 = 8;
const ENOUGH: f64 = 2e-3;
/// An error of log Z with which a density is not normalised.
pub(super) const UNKNOWN: f64 = 0.01;

impl LogZ {
    /// That of a density that nothing corrects.
    pub(super) fn of_kernels() -> LogZ {
        let method = "the kernels are normalised and nothing corrects them".to_string();
        LogZ { value: Estimate::exact(0.0), method, bracket: None, efficiency: 1.0 }
    }
}

impl Model {
    /// log Z of the model as it is.
    pub(super) fn partition(&self, context: &Context) -> Result<LogZ, Error> {
        if self.share == 0.0 {
            return Ok(LogZ::of_kernels());
        }
        let (n, known) = (self.manifold.dim(), self.manifold.spaces().is_some());
        let kernels: usize = self.anchor.kernel_families().map(|(family, _)| self.anchor.kernels_of(family)).sum();
        // One node, three and five a dimension for each kernel are the least that says something.
        if known && n <= 3 && kernels.saturating_mul(1 + 3usize.pow(n as u32) + 5usize.pow(n as u32)) <= NODES {
            return self.by_quadrature(context);
        }
        self.by_draws(context)
    }

    fn by_quadrature(&self, context: &Context) -> Result<LogZ, Error> {
        let mut weight = |points: &[f64]| -> Result<Vec<f64>, Error> {
            Ok(self.correction(points, context)?.iter().map(|f| (-self.share * f).exp()).collect())
        };
        let effort = Effort { tolerance: TOLERANCE, nodes: NODES };
        let z = context.stage("normalising", 0, "points", || {
            mean_over_kernels(&self.anchor, &*self.manifold, &mut weight, &effort, context)
        })?;
        // Networks compute in single precision.
        let std_error = (z.error / z.value).hypot(f32::EPSILON.into());
        let value = Estimate { mean: z.value.ln(), std_error, count: 1 };
        let method = format!("adaptive quadrature of every kernel, {} points", z.nodes);
        Ok(LogZ { value, method, bracket: None, efficiency: 1.0 })
    }

    fn by_draws(&self, context: &Context) -> Result<LogZ, Error> {
        let seed = self.settings.seed;
        let weights = |points: &[f64], sign: f64| -> Result<Vec<f64>, Error> {
            Ok(self.correction(points, context)?.iter().map(|f| sign * self.share * f).collect())
        };
        let (forward, reverse) = context.stage("normalising", 0, "draws", || {
            let mut forward = vec![];
            for round in 0..ROUNDS {
                // The first round's seed is that of fits before there were rounds.
                let seed = seed.wrapping_add(1).wrapping_add(round << 32);
                forward.extend(weights(&self.anchor.sample(self.settings.partition.draws, seed), -1.0)?);
                if spread(&forward) <= ENOUGH {
                    break;
                }
            }
            let back = self.standard.apply(&self.sample(REVERSE, seed + 3, context)?.points);
            Ok((forward, weights(&back, 1.0)?))
        })?;
        let (lower, draws) = (log_mean_exp(&forward), forward.len());
        let upper = log_mean_exp(&reverse) * -1.0;
        let std_error = spread(&forward).max(0.5 * (upper.mean - lower.mean).abs());
        Ok(LogZ {
            value: Estimate { std_error, ..lower },
            method: format!("importance sampling, {draws} draws of the kernels and {REVERSE} of the model"),
            bracket: Some([lower, upper]),
            efficiency: weighted_sample_size(&forward) / draws as f64,
        })
    }
}

/// The error of the logarithm of a mean of e^w: its standard error, or the share of the largest term, which would have been
/// missed as easily.
fn spread(log_weights: &[f64]) -> f64 {
    let mean = log_mean_exp(log_weights);
    let top = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    mean.std_error.max((top - mean.mean).exp() / log_weights.len() as f64)
}
