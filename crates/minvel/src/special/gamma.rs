//! The logarithm of Γ.
//!
//! **Statement.** log Γ(x) = (x − ½) log x − x + ½ log 2π + Σ_k B_{2k}/(2k(2k−1) x^{2k−1}), at an argument moved up to
//! 12 by Γ(x + 1) = xΓ(x); from Γ(1) = 1 and Γ(½) = √π where 2x is a small whole number.
//! **Source.** Stirling's series; DLMF 5.11.1. **Conventions.** x > 0. **Error.** The first term left out is below
//! 2·10⁻¹⁸; an argument moved up costs a rounding error of log Γ(12) ≈ 17. **Checked by** tests/theory/special.rs.

use std::f64::consts::{PI, TAU};

/// B_{2k}/(2k(2k−1)).
const STIRLING: [f64; 7] =
    [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360360.0, 1.0 / 156.0];

/// log Γ(x) for x > 0.
pub fn log_gamma(x: f64) -> f64 {
    assert!(x > 0.0, "log_gamma: {x} is not positive");
    let (mut x, mut product) = (x, 1.0);
    if x < 12.0 && (2.0 * x).fract() == 0.0 {
        while x > 1.0 {
            x -= 1.0;
            product *= x;
        }
        return if x == 1.0 { f64::ln(product) } else { f64::ln(product * PI.sqrt()) };
    }
    while x < 12.0 {
        product *= x;
        x += 1.0;
    }
    let inverse = 1.0 / x;
    let tail = STIRLING.iter().rev().fold(0.0, |sum, c| sum * inverse * inverse + c) * inverse;
    (x - 0.5) * x.ln() - x + 0.5 * TAU.ln() + tail - f64::ln(product)
}
