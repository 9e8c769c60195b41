//! The normal distribution function, and erf.
//!
//! **Statement.** erf x = 2/√π ∫₀ˣ e^{−t²} dt = 2/√π e^{−x²} Σ_k 2ᵏ x^{2k+1}/(2k+1)!!; far out,
//! erfc x = e^{−x²}/√π · 1/(x + ½/(x + 1/(x + 3⁄2/(x + …)))). **Source.** DLMF 7.6.2, 7.9.1.
//! **Conventions.** Φ is that of N(0, 1).
//! **Error.** Series and fraction have terms of one sign: a few rounding errors, and x² of them in the tail, from the
//! exponential. **Checked by** tests/theory/special.rs.

use std::f64::consts::{PI, SQRT_2};

/// From here on the fraction is used; below, 1 − erf loses at most five bits.
const FAR: f64 = 1.5;

/// erf x.
pub fn erf(x: f64) -> f64 {
    if x.abs() < FAR { series(x) } else { x.signum() * (1.0 - fraction(x.abs())) }
}

/// erfc x = 1 − erf x, to full precision in its tail.
pub fn erfc(x: f64) -> f64 {
    if x < -FAR {
        2.0 - fraction(-x)
    } else if x < FAR {
        1.0 - series(x)
    } else {
        fraction(x)
    }
}

/// Φ(x) = P(z ≤ x) of a standard normal z.
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * erfc(-x / SQRT_2)
}

fn series(x: f64) -> f64 {
    let (mut term, mut sum, mut k) = (x, x, 1.0);
    while term.abs() > 0.25 * f64::EPSILON * sum.abs() {
        term *= 2.0 * x * x / (2.0 * k + 1.0);
        sum += term;
        k += 1.0;
    }
    2.0 / PI.sqrt() * (-x * x).exp() * sum
}

/// Enough levels at [`FAR`], where it converges slowest.
fn fraction(x: f64) -> f64 {
    let below = (1..=160).rev().fold(x, |tail, k| x + 0.5 * k as f64 / tail);
    (-x * x).exp() / (PI.sqrt() * below)
}
