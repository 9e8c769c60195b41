//! Diagnostics: how much a mean over correlated draws is worth, and whether chains agree with one another.
//!
//! **Statement.** With c_t the mean over chains of 1/N Σ_i (x_i − μ)(x_{i+t} − μ), μ the mean of all draws, and
//! P_k = (c_{2k} + c_{2k+1})/c_0 as long as positive, made to fall: τ = −1 + 2Σ_k P_k, and M·N draws are worth M·N/τ
//! independent ones. With W the variance within half-chains and V that of all draws, R̂ = √(V/W).
//! **Source.** geyer1992practical (initial monotone sequence); vehtari2021rank (split chains, ranks).
//! **Conventions.** A trace is one number at each draw of one chain; all traces have one length. Deviations are from the
//! mean of all chains, so that chains that disagree count as correlated; 1/N makes τ that of chains of this very length.
//! For R̂ chains are split into halves, so that a trend shows as disagreement. Without spread there is nothing to tell: NaN.
//! **Error.** τ is uncertain by about τ√(4τ/MN); R̂ of chains that agree exceeds 1 by about τ/2N.
//! **Checked by** tests/theory/diagnostics.rs (closed forms of autoregressive chains).

use crate::estimate::Estimate;
use crate::special::normal_cdf;
use std::f64::consts::TAU;

/// What the traces of a statistic say about its mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChainSummary {
    /// The mean over all draws, with error √(c_0/effective).
    pub mean: Estimate,
    /// Independent draws that the draws are worth.
    pub effective: f64,
    /// Split R̂ of the ranks: above 1.01 the chains have not seen the same law.
    pub r_hat: f64,
}

impl ChainSummary {
    /// Of at least one trace of at least four draws.
    pub fn of(traces: &[Vec<f64>]) -> Self {
        let correlations = Correlations::of(traces);
        let effective = correlations.effective();
        let mean = Estimate {
            mean: correlations.mean,
            std_error: (correlations.at(0) / effective).sqrt(),
            count: if effective.is_finite() { effective.max(1.0) as u64 } else { 1 },
        };
        ChainSummary { mean, effective, r_hat: rank_r_hat(traces) }
    }
}

/// Independent draws that the draws of all traces together are worth.
pub fn effective_sample_size(traces: &[Vec<f64>]) -> f64 {
    Correlations::of(traces).effective()
}

/// Deviations of all draws from their common mean.
struct Correlations<'a> {
    traces: &'a [Vec<f64>],
    mean: f64,
}

impl<'a> Correlations<'a> {
    fn of(traces: &'a [Vec<f64>]) -> Self {
        check(traces);
        let means = traces.iter().map(|t| t.iter().sum::<f64>() / t.len() as f64);
        Correlations { traces, mean: means.sum::<f64>() / traces.len() as f64 }
    }

    /// c_t.
    fn at(&self, lag: usize) -> f64 {
        let product = |(a, b): (&f64, &f64)| (a - self.mean) * (b - self.mean);
        let one = |t: &Vec<f64>| t.iter().zip(&t[lag..]).map(product).sum::<f64>() / t.len() as f64;
        self.traces.iter().map(one).sum::<f64>() / self.traces.len() as f64
    }

    fn effective(&self) -> f64 {
        let length = self.traces[0].len();
        let draws = (self.traces.len() * length) as f64;
        let variance = self.at(0);
        let (mut pairs, mut last) = (0.0, f64::INFINITY);
        for k in 0..length / 2 {
            let pair = (self.at(2 * k) + self.at(2 * k + 1)) / variance;
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

/// √(V/W) of the half-chains: 1 if all have seen the same law.
pub fn split_r_hat(traces: &[Vec<f64>]) -> f64 {
    check(traces);
    let n = traces[0].len() / 2;
    // The middle draw of an odd number is left out.
    let halves = traces.iter().flat_map(|t| [&t[..n], &t[t.len() - n..]]);
    let halves: Vec<Estimate> = halves.map(|half| Estimate::of(half.iter().copied())).collect();
    let between = Estimate::of(halves.iter().map(|half| half.mean));
    let average = |f: &dyn Fn(&Estimate) -> f64| halves.iter().map(f).sum::<f64>() / halves.len() as f64;
    let within = average(&|half| half.std_error.powi(2) * n as f64);
    let pooled = within * (n - 1) as f64 / n as f64 + between.std_error.powi(2) * halves.len() as f64;
    (pooled / within).sqrt()
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

fn check(traces: &[Vec<f64>]) {
    let length = traces.first().map_or(0, Vec::len);
    assert!(length >= 4, "diagnostics: traces of {length} draws tell nothing");
    assert!(traces.iter().all(|t| t.len() == length), "diagnostics: traces of different lengths");
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
