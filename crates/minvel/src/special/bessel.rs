//! Modified Bessel functions of real order and their ratios, on a logarithmic scale.
//!
//! **Statement.** log I_v, log K_v; ρ = I_{v+1}/I_v by its continued fraction 1/ρ_v = 2(v+1)/x + ρ_{v+1};
//! ρ′ = 1 − ρ² − (2v+1)ρ/x and 1 − ρ in forms that do not cancel. **Source.** docs/math §5; DLMF 10.25.2, 10.32.9,
//! 10.33.1.
//! **Conventions.** v ≥ 0, x > 0; "scaled" means times e^{−x} (I) or eˣ (K).
//! **Error.** p = √(v²+x²) < 30: series of positive terms, exponentially convergent trapezoidal rule; beyond: the
//! uniform expansion. A few rounding errors everywhere. **Checked by** tests/theory/special.rs, tests/theory/energy_facts.rs
//! (F42, F46).

use super::gamma::log_gamma;
use super::uniform::{self, FAR};
use std::f64::consts::{PI, TAU};

fn check(v: f64, x: f64) -> f64 {
    assert!(v >= 0.0 && x > 0.0, "Bessel functions are for order ≥ 0 and argument > 0, not {v} and {x}");
    v.hypot(x)
}

/// log Σ_k (x²/4)ᵏ/(k!(v+1)_k) = log Γ(v+1)(2/x)^v I_v(x), summed up; for x² ≤ 900(v+1), so that nothing overflows.
pub(super) fn log_series(v: f64, x: f64) -> f64 {
    let y = 0.25 * x * x;
    let (mut term, mut sum, mut k) = (1.0, 0.0, 1.0);
    loop {
        term *= y / (k * (v + k));
        sum += term;
        // From here on terms fall, faster than geometrically.
        if k * (v + k) > 2.0 * y && term <= 0.25 * f64::EPSILON * sum {
            return f64::ln_1p(sum);
        }
        k += 1.0;
    }
}

/// log e^{−x} I_v(x).
pub fn log_bessel_i_scaled(v: f64, x: f64) -> f64 {
    let p = check(v, x);
    if p < FAR {
        return v * (0.5 * x).ln() - log_gamma(v + 1.0) + log_series(v, x) - x;
    }
    v * v / (p + x) - v * (v / x).asinh() - 0.5 * (TAU * p).ln() + uniform::sum(v, x, 1.0)[0].ln()
}

/// log I_v(x).
pub fn log_bessel_i(v: f64, x: f64) -> f64 {
    log_bessel_i_scaled(v, x) + x
}

/// Levels after which the continued fraction of ρ has forgotten its start: errors shrink by ρ² = e^{−2 arsinh(k/x)}
/// at level k, so by e^{−36} after 6√x levels.
fn levels(x: f64) -> usize {
    40 + (6.0 * x.sqrt()) as usize
}

/// ρ_v(x) = I_{v+1}(x)/I_v(x), in (0, 1).
pub fn bessel_i_ratio(v: f64, x: f64) -> f64 {
    check(v, x);
    if x > 1e3 {
        return 1.0 - bessel_i_ratio_complement(v, x);
    }
    let top = v + levels(x) as f64;
    let start = x / (top + 1.0 + (top + 1.0).hypot(x));
    (0..levels(x)).rev().fold(start, |above, k| 1.0 / (2.0 * (v + k as f64 + 1.0) / x + above))
}

/// 1 − ρ_v(x), without cancellation for large x.
pub fn bessel_i_ratio_complement(v: f64, x: f64) -> f64 {
    let p = check(v, x);
    if p < FAR {
        return 1.0 - bessel_i_ratio(v, x);
    }
    let [s, slope, _] = uniform::sum(v, x, 1.0);
    v * (1.0 + x / (p + v)) / (p + x) + 0.5 * x / (p * p) - slope / s
}

/// ρ_v′(x) = 1 − ρ² − (2v+1)ρ/x, without its cancellation.
pub fn bessel_i_ratio_slope(v: f64, x: f64) -> f64 {
    let p = check(v, x);
    if p >= FAR {
        let [s, first, second] = uniform::sum(v, x, 1.0);
        let bend = second / s - (first / s).powi(2);
        return v / (p * (p + v)) + 0.5 * (x - v) * (x + v) / p.powi(4) + bend;
    }
    // The continued fraction, differentiated: ρ_v′ = ρ_v²(2(v+1)/x² − ρ_{v+1}′).
    let top = v + levels(x) as f64;
    let start = (x / (top + 1.0 + (top + 1.0).hypot(x)), 0.5 / (top + 1.0));
    let back = |(above, slope): (f64, f64), k: usize| {
        let order = 2.0 * (v + k as f64 + 1.0);
        let ratio = 1.0 / (order / x + above);
        (ratio, ratio * ratio * (order / (x * x) - slope))
    };
    (0..levels(x)).rev().fold(start, back).1
}

/// log eˣ K_v(x).
pub fn log_bessel_k_scaled(v: f64, x: f64) -> f64 {
    let p = check(v, x);
    if p < FAR {
        return log_integral(v, x);
    }
    v * (v / x).asinh() - v * v / (p + x) + 0.5 * (0.5 * PI / p).ln() + uniform::sum(v, x, -1.0)[0].ln()
}

/// log K_v(x).
pub fn log_bessel_k(v: f64, x: f64) -> f64 {
    log_bessel_k_scaled(v, x) - x
}

/// log ∫₀^∞ e^{−x(cosh t − 1)} cosh vt dt by the trapezoidal rule, whose error is below e^{−60} at this step for p <
/// 30.
fn log_integral(v: f64, x: f64) -> f64 {
    const STEP: f64 = 0.1;
    let exponent = |t: f64| v * t - 2.0 * x * (0.5 * t).sinh().powi(2);
    let top = (v / x).asinh();
    let peak = exponent(top);
    let mut sum = 0.5 * (-peak).exp();
    for k in 1.. {
        let t = k as f64 * STEP;
        let term = 0.5 * (exponent(t) - peak).exp() * (1.0 + (-2.0 * v * t).exp());
        sum += term;
        if t > top && term < 1e-18 * sum {
            break;
        }
    }
    peak + (sum * STEP).ln()
}

/// K_{v+1}(x)/K_v(x) = 2v/x + K_{v−1}/K_v, carried up from the fractional part of v: all terms are positive.
pub fn bessel_k_ratio(v: f64, x: f64) -> f64 {
    check(v, x);
    let lowest = v.fract();
    let start = (log_bessel_k_scaled(lowest + 1.0, x) - log_bessel_k_scaled(lowest, x)).exp();
    let start = if lowest == 0.5 { 1.0 + 1.0 / x } else { start };
    (1..=v as usize).fold(start, |ratio, k| 2.0 * (lowest + k as f64) / x + 1.0 / ratio)
}
