//! The ratio of two partition functions from draws of both laws.
//!
//! **Statement.** With w = log(p̃/m) at n draws of m and n′ of p = p̃/Z, and M = log(n′/n): log Z is the l that solves
//! Σ_m σ(w − l + M) = Σ_p σ(−(w − l + M)), σ(x) = 1/(1 + e^{−x}).
//! **Source.** bennett1976efficient; meng1996bridge (of all bridges from these draws it has the least error).
//! **Conventions.** Reverse weights are given as −w, as importance sampling in reverse takes them.
//! **Error.** Var l = Var_m σ/(n·mean²) + Var_p σ/(n′·mean²), for independent draws. Unlike importance sampling from one side it has a
//! finite error wherever the laws overlap. **Checked by** tests/theory/diagnostics.rs.

use super::Estimate;

/// log Z from forward log weights w at draws of m, and −w at draws of p.
pub fn bridge(forward: &[f64], reverse: &[f64]) -> Estimate {
    assert!(!forward.is_empty() && !reverse.is_empty(), "bridge: no draws");
    let ratio = (reverse.len() as f64 / forward.len() as f64).ln();
    let sigma = |x: f64| 1.0 / (1.0 + (-x).exp());
    let from_below = |l: f64| forward.iter().map(|w| sigma(w - l + ratio)).sum::<f64>();
    let from_above = |l: f64| reverse.iter().map(|v| sigma(v + l - ratio)).sum::<f64>();
    let all = || forward.iter().copied().chain(reverse.iter().map(|v| -v)).filter(|w| w.is_finite());
    let (mut low, mut high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    if !low.is_finite() {
        return Estimate { mean: f64::NAN, std_error: f64::NAN, count: forward.len() as u64 };
    }
    // The solution lies between the extreme weights, whatever the numbers of draws.
    (low, high) = (low - 1.0 - ratio.abs(), high + 1.0 + ratio.abs());
    while high - low > 1e-12 * (1.0 + low.abs()) {
        let middle = 0.5 * (low + high);
        if middle == low || middle == high {
            break;
        }
        if from_below(middle) > from_above(middle) { low = middle } else { high = middle }
    }
    let l = 0.5 * (low + high);
    let of = |values: Estimate| values.std_error / values.mean;
    let below = of(Estimate::of(forward.iter().map(|w| sigma(w - l + ratio))));
    let above = of(Estimate::of(reverse.iter().map(|v| sigma(v + l - ratio))));
    Estimate { mean: l, std_error: below.hypot(above), count: forward.len().min(reverse.len()) as u64 }
}
