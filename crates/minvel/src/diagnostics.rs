//! Diagnostics: how much a mean over correlated draws is worth, and whether chains agree with one another.
//!
//! **Statement.** With W the variance within chains and V = (N−1)/N·W + Var(chain means) that of all draws: R̂ = √(V/W);
//! ρ_t = 1 − (W − mean autocovariance at t)/V, τ = −1 + 2Σ_k P_k with P_k = ρ_{2k} + ρ_{2k+1} as long as positive, made
//! to fall; the M·N draws are worth M·N/τ independent ones.
//! **Source.** geyer1992practical (initial monotone sequence); vehtari2021rank (split chains, ranks).
//! **Conventions.** A trace is one number at each draw of one chain; all traces have one length. Chains are split into
//! halves, so that a trend within a chain shows as disagreement. Without spread there is nothing to tell: NaN.
//! **Error.** τ is uncertain by about τ√(4τ/MN); R̂ of chains that agree exceeds 1 by about τ/2N.
//! **Checked by** tests/diagnostics.rs (closed forms of autoregressive chains).

use crate::eval::Estimate;
use crate::special::normal_cdf;
use std::f64::consts::TAU;

/// What the traces of a statistic say about its mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The mean over all draws, with error √(V/effective).
    pub mean: Estimate,
    /// Independent draws that the draws are worth.
    pub effective: f64,
    /// Split R̂ of the ranks: above 1.01 the chains have not seen the same law.
    pub r_hat: f64,
}

impl Summary {
    /// Of at least one trace of at least four draws.
    pub fn of(traces: &[Vec<f64>]) -> Self {
        let spread = Spread::of(halves(traces));
        let effective = spread.effective();
        let (count, total) = traces.iter().flatten().fold((0.0, 0.0), |(n, s), x| (n + 1.0, s + x));
        let mean = Estimate {
            mean: total / count,
            std_error: (spread.pooled / effective).sqrt(),
            count: if effective.is_finite() { effective.max(1.0) as u64 } else { 1 },
        };
        Summary { mean, effective, r_hat: rank_r_hat(traces) }
    }
}

/// Independent draws that the draws of all traces together are worth.
pub fn effective_sample_size(traces: &[Vec<f64>]) -> f64 {
    Spread::of(halves(traces)).effective()
}

/// √(V/W) of the half-chains: 1 if all have seen the same law.
pub fn split_r_hat(traces: &[Vec<f64>]) -> f64 {
    Spread::of(halves(traces)).r_hat()
}

/// Split R̂ of the normal scores of ranks, or of the distances from the median if that is larger: it exists without
/// moments, and sees chains that differ in their spread only.
pub fn rank_r_hat(traces: &[Vec<f64>]) -> f64 {
    let mut all: Vec<f64> = traces.iter().flatten().copied().collect();
    if all.iter().any(|x| x.is_nan()) {
        return f64::NAN;
    }
    all.sort_by(f64::total_cmp);
    let median = 0.5 * (all[(all.len() - 1) / 2] + all[all.len() / 2]);
    let folded: Vec<Vec<f64>> = traces.iter().map(|t| t.iter().map(|x| (x - median).abs()).collect()).collect();
    split_r_hat(&scores(traces)).max(split_r_hat(&scores(&folded)))
}

/// Φ⁻¹((r − ⅜)/(S + ¼)) of the rank r of each draw among all S, equal draws sharing their mean rank.
fn scores(traces: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut sorted: Vec<f64> = traces.iter().flatten().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let score = |x: f64| {
        let below = sorted.partition_point(|&y| y < x);
        let up_to = sorted.partition_point(|&y| y <= x);
        let rank = 0.5 * (below + 1 + up_to) as f64;
        normal_quantile((rank - 0.375) / (count + 0.25))
    };
    traces.iter().map(|t| t.iter().map(|&x| score(x)).collect()).collect()
}

/// Φ⁻¹(p): a rational guess (DLMF 7.17, good to 0.003) and Newton's method.
fn normal_quantile(p: f64) -> f64 {
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    let t = (-2.0 * p.ln()).sqrt();
    let guess = (2.30753 + 0.27061 * t) / (1.0 + t * (0.99229 + 0.04481 * t)) - t;
    (0..3).fold(guess, |x, _| x - (normal_cdf(x) - p) * TAU.sqrt() * (0.5 * x * x).exp())
}

/// First and second half of each trace; the middle draw of an odd number is left out.
fn halves(traces: &[Vec<f64>]) -> Vec<&[f64]> {
    let length = traces.first().map_or(0, Vec::len);
    assert!(length >= 4, "diagnostics: traces of {length} draws tell nothing");
    assert!(traces.iter().all(|t| t.len() == length), "diagnostics: traces of different lengths");
    traces.iter().flat_map(|t| [&t[..length / 2], &t[length - length / 2..]]).collect()
}

/// Chains of one length and their variances.
struct Spread<'a> {
    chains: Vec<&'a [f64]>,
    means: Vec<f64>,
    /// W.
    within: f64,
    /// V.
    pooled: f64,
}

impl<'a> Spread<'a> {
    fn of(chains: Vec<&'a [f64]>) -> Self {
        let (m, n) = (chains.len() as f64, chains[0].len() as f64);
        let means: Vec<f64> = chains.iter().map(|c| c.iter().sum::<f64>() / n).collect();
        let grand = means.iter().sum::<f64>() / m;
        let between = means.iter().map(|x| (x - grand).powi(2)).sum::<f64>() / (m - 1.0);
        let mut spread = Spread { chains, means, within: 0.0, pooled: 0.0 };
        spread.within = spread.autocovariance(0) * n / (n - 1.0);
        spread.pooled = spread.autocovariance(0) + between;
        spread
    }

    /// Mean over chains of 1/N Σ_i (x_i − x̄)(x_{i+t} − x̄).
    fn autocovariance(&self, lag: usize) -> f64 {
        let one = |(c, mean): (&&[f64], &f64)| c.iter().zip(&c[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
        self.chains.iter().zip(&self.means).map(one).sum::<f64>() / (self.chains.len() * self.chains[0].len()) as f64
    }

    fn r_hat(&self) -> f64 {
        (self.pooled / self.within).sqrt()
    }

    fn effective(&self) -> f64 {
        let draws = (self.chains.len() * self.chains[0].len()) as f64;
        let correlation = |t: usize| if t == 0 { 1.0 } else { 1.0 - (self.within - self.autocovariance(t)) / self.pooled };
        let (mut pairs, mut last) = (0.0, f64::INFINITY);
        for k in 0..self.chains[0].len() / 2 {
            let pair = correlation(2 * k) + correlation(2 * k + 1);
            if pair.is_nan() {
                return f64::NAN;
            }
            if pair <= 0.0 {
                break;
            }
            last = pair.min(last);
            pairs += last;
        }
        // Antithetic chains may be worth more than their draws, but not without bound.
        draws / (2.0 * pairs - 1.0).max(1.0 / draws.log10())
    }
}

/// log of the mean of e^{w}, with the error to first order: std(e^w)/(√n·mean e^w).
///
/// By Jensen's inequality its expectation is at most the log of the expectation, by about half the squared error.
pub fn log_mean_exp(log_weights: &[f64]) -> Estimate {
    let top = log_weights.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
    if !top.is_finite() {
        return Estimate { mean: top, std_error: f64::NAN, count: log_weights.len() as u64 };
    }
    let mean = Estimate::of(log_weights.iter().map(|w| (w - top).exp())).ln();
    Estimate { mean: mean.mean + top, ..mean }
}

/// (Σw)²/Σw²: how many equally weighted points weighted ones are worth.
pub fn weighted_sample_size(log_weights: &[f64]) -> f64 {
    let top = log_weights.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
    let (sum, squares) = log_weights.iter().map(|w| (w - top).exp()).fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
    sum * sum / squares
}
