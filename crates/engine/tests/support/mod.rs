//! Comparisons with a stated tolerance.

/// True if each pair agrees within `ulps` rounding errors of f64 relative to the larger of the two and to 1; NaN equals NaN.
pub fn within_rounding(got: &[f64], expected: &[f64], ulps: f64) -> bool {
    let close = |(&a, &b): (&f64, &f64)| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= ulps * f64::EPSILON * a.abs().max(b.abs()).max(1.0)
    };
    got.len() == expected.len() && got.iter().zip(expected).all(close)
}
