//! Functions of a squared length that are smooth at zero, with all their derivatives.
//!
//! **Statement.** f(√s)/√s for an odd analytic f is a power series in s. Below a threshold the series is summed, above
//! it the quotient is taken; the branch that is not taken sees a clamped argument, so that no derivative is NaN.
//! **Error.** A few rounding errors: each series is cut below 2⁻⁵³ at its threshold.
//! **Checked by** the unit tests below and tests/theory/manifold_laws.rs.

use minvel_engine::Expr;

/// Σ c_k s^k below `limit`, `far(√s)` from there on.
fn analytic<'g>(s: Expr<'g>, limit: f64, series: &[f64], far: impl Fn(Expr<'g>) -> Expr<'g>) -> Expr<'g> {
    let near = s.min(limit);
    let (last, rest) = series.split_last().expect("a series has terms");
    let sum = rest.iter().rev().fold(s.like(*last), |sum, &c| sum * near + c);
    s.less(limit).select(sum, far(s.max(limit).sqrt()))
}

/// √s, with derivative 0 at s = 0.
pub(crate) fn norm(s: Expr) -> Expr {
    let positive = s.like(0.0).less(s);
    positive.select(positive.select(s, s.like(1.0)).sqrt(), s.like(0.0))
}

/// sin √s / √s.
pub(crate) fn sinc(s: Expr) -> Expr {
    analytic(s, 0.25, &inverse_odd_factorials(-1.0), |r| r.sin() / r)
}

/// tanh √s / √s.
pub(crate) fn tanhc(s: Expr) -> Expr {
    let series = [
        1.0,
        -1.0 / 3.0,
        2.0 / 15.0,
        -17.0 / 315.0,
        62.0 / 2835.0,
        -1382.0 / 155925.0,
        21844.0 / 6081075.0,
        -929569.0 / 638512875.0,
        6404582.0 / 10854718875.0,
    ];
    analytic(s, 1.0 / 64.0, &series, |r| r.tanh() / r)
}

/// arcsin √s / √s for 0 ≤ s ≤ 1, given 1 − s without cancellation.
pub(crate) fn asinc<'g>(s: Expr<'g>, complement: Expr<'g>) -> Expr<'g> {
    let cosine = norm(complement);
    analytic(s, 1.0 / 64.0, &arcsine(1.0), |r| r.atan2(cosine) / r)
}

/// arsinh √s / √s.
pub(crate) fn asinhc(s: Expr) -> Expr {
    analytic(s, 1.0 / 64.0, &arcsine(-1.0), |r| r.asinh() / r)
}

/// σᵏ/(2k+1)!: the series of sinc (σ = −1).
fn inverse_odd_factorials(sign: f64) -> Vec<f64> {
    let mut c = 1.0;
    (0..9)
        .map(|k| {
            let term = c;
            c *= sign / ((2 * k + 2) * (2 * k + 3)) as f64;
            term
        })
        .collect()
}

/// σᵏ (2k)!/(4ᵏ k!² (2k+1)): the series of asinc (σ = 1) and asinhc (σ = −1).
fn arcsine(sign: f64) -> Vec<f64> {
    let mut c = 1.0;
    (0..10)
        .map(|k| {
            let term = c / (2 * k + 1) as f64;
            c *= sign * (2 * k + 1) as f64 / (2 * k + 2) as f64;
            term
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use minvel_engine::{Graph, grad, reference};

    /// Name, the function of s, and the odd function it is the quotient of.
    type Case = (&'static str, for<'g> fn(Expr<'g>) -> Expr<'g>, fn(f64) -> f64);

    fn cases() -> [Case; 4] {
        fn asinc_alone(s: Expr) -> Expr {
            asinc(s, 1.0 - s)
        }
        [
            ("sinc", sinc, f64::sin),
            ("tanhc", tanhc, f64::tanh),
            ("asinc", asinc_alone, f64::asin),
            ("asinhc", asinhc, f64::asinh),
        ]
    }

    #[test]
    fn radial_functions_agree_with_the_quotient_on_both_sides_of_the_threshold() {
        for (name, f, quotient) in cases() {
            let g = Graph::new();
            let points: Vec<f64> = (1..200).map(|k| (k as f64 / 200.0).powi(2)).collect();
            let s = g.input_rows("s", points.len(), []);
            let got = &reference::evaluate(&[f(s)], &[("s", points.clone())].into(), 0, 0, 0)[0];
            for (s, got) in points.iter().zip(got) {
                let expected = quotient(s.sqrt()) / s.sqrt();
                let error = (got - expected).abs() / expected;
                assert!(error <= 8.0 * f64::EPSILON, "{name}({s}) = {got}, not {expected}");
            }
        }
    }

    #[test]
    fn radial_functions_have_finite_derivatives_at_zero_and_far_away() {
        for (name, f, _) in cases() {
            let g = Graph::new();
            let v = g.input_rows("v", 2, [2]);
            let first = grad(f(v.square().sum(-1)), &[v])[0];
            let second = grad(first, &[v])[0];
            let third = grad(second, &[v])[0];
            let far = if name == "asinc" { 0.9 } else { 1e20 }; // whose powers overflow
            let point = [("v", vec![0.0, 0.0, far, 0.0])].into();
            let values = reference::evaluate(&[first, second, third], &point, 0, 0, 0);
            assert!(values.iter().flatten().all(|x| x.is_finite()), "{name}: {values:?}");
        }
    }
}
