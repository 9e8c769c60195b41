//! The natural law of a model space: normaliser, mean, and concentration of given mean.
//!
//! **Statement.** N(κ) = ∫ e^{κt(x,c)} dvol(x) does not depend on c; E t = d log N/dκ. With v = (n−1)/2:
//! Sⁿ: (2π)^{v+1} κ^{−v} e^{−κ}I_v(κ); Tⁿ: (2π e^{−κ}I₀(κ))ⁿ; Rⁿ: (2π/κ)^{n/2}; Hⁿ: 2(2π/κ)^v e^κ K_v(κ);
//! RPⁿ: ½|Sⁿ|e^{−κ}M(½, (n+1)/2, κ); SO(3): 8π² e^{−z}(I₀(z) − I₁(z)), z = κ/2.
//! **Source.** mardia2000directional, sections 3.5 and 9.3; jensen1981hyperboloid. **Conventions.** t is that of
//! [`Bump`](super::Bump); volumes are those of [`crate::manifold`]. **Error.** A few rounding errors for all κ from 10⁻³ to
//! 10⁷; E t on Hⁿ loses κ rounding errors. **Checked by** tests/densities/density.rs, against quadrature.

use crate::manifold::Space;
use crate::special::{
    bessel_i_ratio_complement, bessel_i_ratio_slope, bessel_k_ratio, log_bessel_i_scaled, log_bessel_k_scaled,
    log_mean_exp, log_sphere_area, log_watson_mean, watson_spread,
};
use std::f64::consts::{LN_2, PI, TAU};

/// The concentrations that are used: flatter is uniform to 10⁻³, sharper is a point to 10⁻³·⁵.
pub(super) const LEAST: f64 = 1e-3;
/// See [`LEAST`].
pub(super) const MOST: f64 = 1e7;

impl Space {
    /// log N(κ).
    pub(super) fn log_normaliser(self, kappa: f64) -> f64 {
        let half = 0.5 * self.dim() as f64;
        match self {
            Space::Euclidean(_) => half * (TAU / kappa).ln(),
            // Near zero the powers of κ cancel; far out the exponentials do.
            Space::Sphere(n) if kappa < 1.0 => log_sphere_area(n + 1) + log_mean_exp(n + 1, kappa) - kappa,
            Space::Sphere(_) => {
                let v = half - 0.5;
                (v + 1.0) * TAU.ln() - v * kappa.ln() + log_bessel_i_scaled(v, kappa)
            }
            Space::Torus(n) => n as f64 * (TAU.ln() + log_bessel_i_scaled(0.0, kappa)),
            Space::Hyperbolic(_) => {
                let v = half - 0.5;
                LN_2 + v * (TAU / kappa).ln() + log_bessel_k_scaled(v, kappa)
            }
            Space::Projective(n) => log_sphere_area(n + 1) - LN_2 + log_watson_mean(n + 1, kappa),
            Space::So3 => {
                let z = 0.5 * kappa;
                (8.0 * PI * PI).ln() + log_bessel_i_scaled(0.0, z) + bessel_i_ratio_complement(0.0, z).ln()
            }
        }
    }

    /// E t = d log N/dκ, at most 0.
    pub(super) fn mean_statistic(self, kappa: f64) -> f64 {
        let half = 0.5 * self.dim() as f64;
        match self {
            Space::Euclidean(_) => -half / kappa,
            Space::Sphere(_) => -bessel_i_ratio_complement(half - 0.5, kappa),
            Space::Torus(n) => -(n as f64) * bessel_i_ratio_complement(0.0, kappa),
            Space::Hyperbolic(_) => 1.0 - bessel_k_ratio(half - 0.5, kappa),
            Space::Projective(n) => -watson_spread(n + 1, kappa),
            Space::So3 => {
                let z = 0.5 * kappa;
                let rest = bessel_i_ratio_complement(0.0, z);
                -0.5 * (rest + bessel_i_ratio_slope(0.0, z) / rest)
            }
        }
    }

    /// The κ with −E t = spread.
    pub(super) fn concentration(self, spread: f64) -> f64 {
        concentration(self.dim(), spread, |kappa| self.mean_statistic(kappa))
    }
}

/// The κ with −E t = spread in so many dimensions, given E t as a function of κ: by the secant rule on logarithms, where the
/// curve is nearly straight; kept to the concentrations that are used.
pub(super) fn concentration(dim: usize, spread: f64, mean_statistic: impl Fn(f64) -> f64) -> f64 {
    let excess = |log_kappa: f64| (-mean_statistic(log_kappa.exp()) / spread).ln();
    let (mut low, mut high) = ((LEAST.ln(), excess(LEAST.ln())), (MOST.ln(), excess(MOST.ln())));
    if low.1.is_nan() || low.1 <= 0.0 {
        return LEAST;
    }
    if high.1 >= 0.0 {
        return MOST;
    }
    let mut middle = (0.5 * dim as f64 / spread).ln();
    for _ in 0..100 {
        let wide = high.0 - low.0;
        if !(middle > low.0 && middle < high.0) {
            middle = 0.5 * (low.0 + high.0);
        }
        let value = excess(middle);
        if value.abs() < 1e-12 {
            break;
        }
        if value > 0.0 {
            low = (middle, value)
        } else {
            high = (middle, value)
        }
        let secant = low.0 + (high.0 - low.0) * low.1 / (low.1 - high.1);
        // Halving where the secant is stuck on one side keeps it from crawling.
        middle = if high.0 - low.0 > 0.5 * wide { 0.5 * (low.0 + high.0) } else { secant };
        if high.0 - low.0 < 1e-12 {
            break;
        }
    }
    middle.exp()
}
