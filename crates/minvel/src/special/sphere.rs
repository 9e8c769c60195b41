//! What the von Mises–Fisher law on S^{m−1} and its hyperbolic brother are made of.
//!
//! **Statement.** With v = m/2 − 1: C_m(κ)⁻¹ = ∫ e^{κμ·z} dz = |S^{m−1}| Γ(m/2)(2/κ)^v I_v(κ), A_m = I_{m/2}/I_{m/2−1},
//! KL(vMF‖uniform) = κA + log C + log|S^{m−1}|, dKL/dκ = κA′.
//! On Hⁿ: ∫ e^{−κX₀} dvol = 2(2π/κ)^{(n−1)/2} K_{(n−1)/2}(κ), E X₀ = K_{(n+1)/2}/K_{(n−1)/2}.
//! **Source.** docs/math §3.1, §5; mardia2000directional. **Conventions.** Densities are w.r.t. area and volume.
//! **Error.** A few rounding errors, also of KL where it is small and where κ is large. **Checked by**
//! tests/theory/energy_facts.rs (F42, F46), tests/theory/special.rs.

use super::bessel::{
    bessel_i_ratio, bessel_i_ratio_complement, bessel_i_ratio_slope, bessel_k_ratio, log_bessel_i_scaled, log_bessel_k,
    log_series,
};
use super::gamma::log_gamma;
use std::f64::consts::{LN_2, PI, TAU};

fn order(m: usize) -> f64 {
    assert!(m >= 2, "the sphere in {m} coordinates has no von Mises–Fisher law");
    0.5 * m as f64 - 1.0
}

/// log |S^{m−1}| = log 2π^{m/2}/Γ(m/2), for m ≥ 1.
pub fn log_sphere_area(m: usize) -> f64 {
    let half = 0.5 * m as f64;
    LN_2 + half * PI.ln() - log_gamma(half)
}

/// True where the power series in κ is short and does not overflow.
fn is_near(v: f64, kappa: f64) -> bool {
    kappa * kappa <= 900.0 * (v + 1.0)
}

/// log of the mean of e^{κμ·z} − κ over uniform z, where the power series does not reach.
fn log_mean_exp_less_kappa(v: f64, kappa: f64) -> f64 {
    log_bessel_i_scaled(v, kappa) + log_gamma(v + 1.0) + v * (2.0 / kappa).ln()
}

/// log of the mean of e^{κμ·z} over uniform z on S^{m−1}: log Γ(m/2)(2/κ)^{m/2−1} I_{m/2−1}(κ), for κ ≥ 0.
pub fn log_mean_exp(m: usize, kappa: f64) -> f64 {
    let v = order(m);
    if is_near(v, kappa) { log_series(v, kappa) } else { kappa + log_mean_exp_less_kappa(v, kappa) }
}

/// log C_m(κ), C_m(κ) e^{κμ·z} being the density, for κ ≥ 0.
pub fn log_vmf_constant(m: usize, kappa: f64) -> f64 {
    -log_sphere_area(m) - log_mean_exp(m, kappa)
}

/// A_m(κ) = E μ·z, for κ ≥ 0.
pub fn mean_resultant(m: usize, kappa: f64) -> f64 {
    let v = order(m);
    if kappa == 0.0 { 0.0 } else { bessel_i_ratio(v, kappa) }
}

/// A_m′(κ) = 1 − A² − (m−1)A/κ = Var μ·z.
pub fn mean_resultant_slope(m: usize, kappa: f64) -> f64 {
    let v = order(m);
    if kappa == 0.0 { 1.0 / m as f64 } else { bessel_i_ratio_slope(v, kappa) }
}

/// KL(vMF(κ) ‖ uniform) on S^{m−1}.
pub fn vmf_divergence(m: usize, kappa: f64) -> f64 {
    let v = order(m);
    if is_near(v, kappa) {
        return kappa * mean_resultant(m, kappa) - log_series(v, kappa);
    }
    -kappa * bessel_i_ratio_complement(v, kappa) - log_mean_exp_less_kappa(v, kappa)
}

/// dKL/dκ = κA_m′(κ).
pub fn vmf_divergence_slope(m: usize, kappa: f64) -> f64 {
    kappa * mean_resultant_slope(m, kappa)
}

/// log ∫ e^{−κX₀} dvol over Hⁿ, for κ > 0.
pub fn log_hyperbolic_partition(n: usize, kappa: f64) -> f64 {
    let v = 0.5 * (n as f64 - 1.0);
    LN_2 + v * (TAU / kappa).ln() + log_bessel_k(v, kappa)
}

/// T = E X₀ under the law ∝ e^{−κX₀} on Hⁿ.
pub fn hyperbolic_mean(n: usize, kappa: f64) -> f64 {
    bessel_k_ratio(0.5 * (n as f64 - 1.0), kappa)
}
