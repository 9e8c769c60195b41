//! What the Watson law of axes is made of.
//!
//! **Statement.** For u = μ·z of a uniform unit vector z of m coordinates, E e^{κ(u²−1)} = e^{−κ}M(½, m/2, κ), Kummer's
//! function; under the density ∝ e^{κu²}, E(1−u²) = (m−1)/m · M(½, m/2+1, κ)/M(½, m/2, κ).
//! **Source.** mardia2000directional, section 9.4; DLMF 13.2.2 (series) and 13.7.1 (far out). **Conventions.** κ ≥ 0.
//! **Error.** A few rounding errors: the series has positive terms only, the expansion is used where its smallest term is
//! below e⁻⁵⁰. **Checked by** tests/theory/special.rs.

use super::gamma::log_gamma;

/// log M(½, b, κ) − κ for b ≥ 1.
fn log_kummer(b: f64, kappa: f64) -> f64 {
    if kappa < 50.0 + b * b {
        let (mut term, mut sum, mut shift, mut k) = (1.0, 1.0, 0.0, 0.0);
        while term > f64::EPSILON * sum || (0.5 + k) * kappa > (b + k) * (k + 1.0) {
            term *= (0.5 + k) / (b + k) * kappa / (k + 1.0);
            sum += term;
            k += 1.0;
            if sum > 1e200 {
                (term, sum, shift) = (term / sum, 1.0, shift + f64::ln(sum));
            }
        }
        return f64::ln(sum) + shift - kappa;
    }
    let (mut term, mut sum, mut k) = (1.0, 1.0, 0.0);
    while term > 0.5 * f64::EPSILON * sum {
        term *= (b - 0.5 + k) * (0.5 + k) / ((k + 1.0) * kappa);
        sum += term;
        k += 1.0;
    }
    log_gamma(b) - log_gamma(0.5) + (0.5 - b) * kappa.ln() + f64::ln(sum)
}

/// log of the mean of e^{κ(u²−1)} over uniform unit vectors of m coordinates.
pub fn log_watson_mean(m: usize, kappa: f64) -> f64 {
    log_kummer(0.5 * m as f64, kappa)
}

/// E(1−u²) under the Watson law of concentration κ.
pub fn watson_spread(m: usize, kappa: f64) -> f64 {
    let b = 0.5 * m as f64;
    (1.0 - 0.5 / b) * (log_kummer(b + 1.0, kappa) - log_kummer(b, kappa)).exp()
}
