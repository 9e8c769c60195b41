//! KL(vMF(κ) ‖ uniform) and the mean resultant length as expressions of κ, for single precision.
//!
//! **Statement.** With v = m/2 − 1, A = ρ_v = I_{v+1}/I_v, M_v = E e^{κμ·z} under the uniform law:
//! KL_v = κρ_v − log M_v, dKL/dκ = κA′. Going down from ν = v + 8,
//! 1/ρ_v = 2(v+1)/κ + ρ_{v+1}, 1 − ρ_v = ρ_v(2(v+1)/κ − (1 − ρ_{v+1})), ρ_v′ = ρ_v²(2(v+1)/κ² − ρ_{v+1}′),
//! log M_v = log M_{v+1} + log(1 + κρ_{v+1}/2(v+1)). At ν, with p = √(ν² + κ²), r = ν/p and D(r) = Σ_k d_k(r)/νᵏ,
//! log M_ν = p − ν − ν log((p+ν)/2ν) − ½ log(p/ν) + D(r) − D(1). **Source.** docs/math §5; DLMF 10.41.3 (D is the
//! logarithm of its sum, and D(1) that of Stirling's series, so that log M_ν(0) = 0 exactly). **Conventions.** κ > 0;
//! below 10⁻⁶ it counts as 10⁻⁶. **Error.** Every difference is taken before it cancels. For m from 2 to 1000 and κ from
//! 10⁻³ to 10⁴, relatively: in f64 6·10⁻⁷ of KL, 4·10⁻⁸ of κA′, 8·10⁻⁹ of 1 − A, by truncation; in f32 10⁻⁵ of each.
//! **Checked by** tests/theory/vmf_gradients.rs (against [`crate::special`]).

use minvel_engine::Expr;

/// Levels of the recurrence.
const LEVELS: usize = 8;

/// Coefficients of d_k: of rᵏ, r^{k+2}, …, r^{3k}.
const EXPANSION: [&[f64]; 4] = [
    &[1.0 / 8.0, -5.0 / 24.0],
    &[1.0 / 16.0, -3.0 / 8.0, 5.0 / 16.0],
    &[25.0 / 384.0, -531.0 / 640.0, 221.0 / 128.0, -1105.0 / 1152.0],
    &[13.0 / 128.0, -71.0 / 32.0, 531.0 / 64.0, -339.0 / 32.0, 565.0 / 128.0],
];

/// Coefficients of D(r) for an order ν.
fn expansion(order: f64) -> Vec<f64> {
    let mut all = vec![0.0; 3 * EXPANSION.len() + 1];
    for (k, row) in (1..).zip(EXPANSION) {
        for (j, c) in row.iter().enumerate() {
            all[k + 2 * j] += c / order.powi(k as i32);
        }
    }
    all
}

/// Σ c_a rᵃ.
fn polynomial<'g>(coefficients: &[f64], r: Expr<'g>) -> Expr<'g> {
    let (last, rest) = coefficients.split_last().expect("a polynomial has coefficients");
    rest.iter().rev().fold(r.like(*last), |sum, &c| sum * r + c)
}

/// What belongs to a concentration, without cancellation; constants to differentiation.
#[derive(Clone, Copy, Debug)]
pub struct Resultant<'g> {
    /// A_m(κ).
    pub mean: Expr<'g>,
    /// 1 − A_m(κ).
    pub complement: Expr<'g>,
    /// A_m′(κ).
    pub slope: Expr<'g>,
    /// KL(vMF(κ) ‖ uniform).
    pub divergence: Expr<'g>,
}

impl<'g> Resultant<'g> {
    /// In m coordinates, for each entry of κ.
    pub fn new(m: usize, kappa: Expr<'g>) -> Self {
        assert!(m >= 2, "the sphere in {m} coordinates has no von Mises–Fisher law");
        let x = kappa.stop_gradient().max(1e-6);
        let order = 0.5 * m as f64 - 1.0;
        let top = Self::of_large_order(order + LEVELS as f64, x);
        let mut all = top;
        for k in (1..=LEVELS).rev() {
            let step = 2.0 * (order + k as f64) / x;
            all.divergence = all.divergence - (all.mean / step).log1p();
            all.mean = (step + all.mean).recip();
            all.complement = all.mean * (step - all.complement);
            all.slope = all.mean * (step * (all.mean / x) - all.mean * all.slope);
        }
        // κ(ρ_v − ρ_ν), from whichever of ρ and 1 − ρ is smaller.
        let gain = x.less(order + LEVELS as f64).select(all.mean - top.mean, top.complement - all.complement);
        Resultant { divergence: all.divergence + x * gain, ..all }
    }

    /// By the expansion for large orders.
    fn of_large_order(order: f64, x: Expr<'g>) -> Self {
        let coefficients = expansion(order);
        let indexed = |f: &dyn Fn(f64) -> f64| -> Vec<f64> {
            coefficients.iter().enumerate().map(|(a, c)| f(a as f64) * c).collect()
        };
        // (D(1) − D(r))/(1 − r).
        let quotient: Vec<f64> = (1..coefficients.len()).map(|a| coefficients[a..].iter().sum()).collect();
        let p = (x.square() + order * order).sqrt();
        let (r, above) = (order / p, x / (p + order));
        // x/p² and x²/p² = 1 − r².
        let (inverse, share) = (x / p / p, (x / p).square());
        // κ²/2ν(p+ν) = (p+ν)/2ν − 1.
        let excess = above * x / (2.0 * order);
        let first = polynomial(&indexed(&|a| a), r);
        let second = polynomial(&indexed(&|a| a * (a + 2.0)), r);
        let bend = 0.5 * (x - order) / p * (x + order) / p + share * second - first;
        Resultant {
            mean: above - inverse * (first + 0.5),
            complement: order * (above + 1.0) / (p + x) + inverse * (first + 0.5),
            slope: r / (p + order) + bend / p / p,
            divergence: order * excess.log1p() + 0.5 * (2.0 * excess).log1p() - share * (first + 0.5)
                + above * (x / p) * polynomial(&quotient, r),
        }
    }
}

/// KL(vMF(κ) ‖ uniform) in m coordinates for each entry of κ, with the gradient κA_m′(κ).
///
/// The gradient is put in as a number, so that second derivatives are zero.
pub fn divergence(m: usize, kappa: Expr) -> Expr {
    let at = Resultant::new(m, kappa);
    let constant = kappa.stop_gradient();
    at.divergence + constant * at.slope * (kappa - constant)
}
