//! log Z of an energy: by quadrature where dimensions are few, else by draws from both sides.
//!
//! **Statement.** Anchored: Z = ∫ a e^{−tf} = E_a e^{−tf}; up to three dimensions, on products of model spaces, adaptive quadrature
//! over every kernel ([`quadrature`](super::quadrature)). Free: Z = ∫ b e^{−f}; up to three dimensions grids of the whole manifold, each
//! twice as fine. Beyond: forward, from draws of a law m (a, or half a and half b), log Ê_m[p̃/m], which is too small in the
//! mean; in reverse, from draws of p, −log Ê_p[m/p̃], too large; and the bridge between both,
//! log Z of [`bridge`], which has the least error of all estimates from these draws.
//! **Source.** docs/math §4.6; neal2001ais; grosse2015sandwiching; meng1996bridge; bennett1976efficient.
//! **Error.** Quadrature: 10⁻⁶ of Z (grids: 10⁻⁵) but for the rounding of the networks. Draws: the standard error of the bridge, the
//! share of the largest forward term, or half the bracket, whichever is widest.
//! **Checked by** tests/densities/integrals.rs, tests/densities/experts.rs, crates/lab/tests/lab/fit.rs.

use super::expert::{Base, Expert};
use super::model::Model;
use super::quadrature::{Effort, mean_over_kernels};
use crate::Error;
use crate::estimate::{Estimate, bridge, log_mean_exp, weighted_sample_size};
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

/// Half the first grid of a free energy, in points a dimension; points of the last at most; and the change that is small.
const GRID: usize = 16;
const FINEST: usize = 3_000_000;
const SMALL: f64 = 1e-5;
/// Geodesic distance from the origin that grids of unbounded manifolds reach, in standard deviations of the wide law.
const REACH: f64 = 9.0;

impl Model {
    /// log Z of an energy as it is.
    pub(super) fn partition(&self, expert: &Expert, context: &Context) -> Result<LogZ, Error> {
        let (n, known) = (self.manifold.dim(), self.manifold.spaces().is_some());
        if expert.base == Base::Wide {
            if n <= 3
                && known
                && let Some(found) = self.on_grids(expert, context)?
            {
                return Ok(found);
            }
            return self.by_draws(expert, context);
        }
        let kernels: usize = self.anchor.kernel_families().map(|(family, _)| self.anchor.kernels_of(family)).sum();
        // One node, three and five a dimension for each kernel are the least that says something.
        if known && n <= 3 && kernels.saturating_mul(1 + 3usize.pow(n as u32) + 5usize.pow(n as u32)) <= NODES {
            return self.by_quadrature(expert, context);
        }
        self.by_draws(expert, context)
    }

    fn by_quadrature(&self, expert: &Expert, context: &Context) -> Result<LogZ, Error> {
        let mut f = self.energy_of(expert, usize::MAX, context)?;
        let mut weight = |points: &[f64]| -> Result<Vec<f64>, Error> {
            Ok(f.at(points, context)?.iter().map(|f| (-expert.share * f).exp()).collect())
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

    /// ∫ e^{−U} over grids, each twice as fine; `None` where there is none, or the finest is not fine enough.
    fn on_grids(&self, expert: &Expert, context: &Context) -> Result<Option<LogZ>, Error> {
        let mut energy = self.energy_of(expert, usize::MAX, context)?;
        let (n, mut resolution) = (self.manifold.dim(), GRID);
        let mut last: Option<f64> = None;
        context.stage("normalising", 0, "points", || {
            while 2 * (2 * resolution).pow(n as u32) <= FINEST {
                resolution *= 2;
                let Some(grid) = self.manifold.grid(resolution, REACH) else { return Ok(None) };
                let terms: Vec<f64> = energy.at(&grid.points, context)?.iter().map(|u| -u).collect();
                let top = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = terms.iter().zip(&grid.weights).map(|(u, w)| w * (u - top).exp()).sum();
                let log_z = top + sum.ln();
                let change = last.map_or(f64::INFINITY, |last| (log_z - last).abs());
                last = Some(log_z);
                if change <= SMALL {
                    let std_error = change.hypot(f32::EPSILON.into());
                    let value = Estimate { mean: log_z, std_error, count: 1 };
                    let method = format!("a grid of {} points", grid.weights.len());
                    return Ok(Some(LogZ { value, method, bracket: None, efficiency: 1.0 }));
                }
            }
            Ok(None)
        })
    }

    fn by_draws(&self, expert: &Expert, context: &Context) -> Result<LogZ, Error> {
        let seed = self.settings.seed;
        let (forward, reverse) = context.stage("normalising", 0, "draws", || {
            let mut forward = vec![];
            for round in 0..ROUNDS {
                // The first round's seed is that of fits before there were rounds.
                let seed = seed.wrapping_add(1).wrapping_add(round << 32);
                let (_, weights) = self.proposals(expert, self.settings.partition.draws, seed, None, context)?;
                forward.extend(weights);
                if spread(&forward) <= ENOUGH {
                    break;
                }
            }
            let back = self.chains(expert, REVERSE, seed + 3, context)?;
            Ok((forward, back.log_weights.iter().map(|w| -w).collect::<Vec<f64>>()))
        })?;
        let (lower, draws) = (log_mean_exp(&forward), forward.len());
        let upper = log_mean_exp(&reverse) * -1.0;
        let between = bridge(&forward, &reverse);
        let half = 0.5 * (upper.mean - lower.mean).abs();
        let std_error = between.std_error.max(spread(&forward)).max(half);
        let law = if expert.base == Base::Anchor { "the kernels" } else { "kernels and wide law" };
        Ok(LogZ {
            value: Estimate { std_error, ..between },
            method: format!("bridge sampling, {draws} draws of {law} and {REVERSE} of the model"),
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
