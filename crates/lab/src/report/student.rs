//! Student's test: what a difference shows whose standard error comes from few pairs.
//!
//! **Statement.** P(|T| ≤ t) for ν degrees of freedom, by the finite sums for whole ν with θ = arctan(t/√ν); the t that
//! confidence asks for; and the number of pairs n ≥ ((t₀.₉₇₅ + t₀.₈)·σ/δ)² that shows a difference δ of pairs with standard
//! deviation σ at 5 % (two-sided) with probability 0.8.
//! **Source.** abramowitz1964, 26.7.3 and 26.7.4. **Conventions.** No degree of freedom decides nothing: t is infinite.
//! **Error.** Rounding; the number of pairs is approximate (a shifted T instead of the noncentral law), by about one pair.
//! **Checked by** tests/lab/student.rs.

use minvel::estimate::format;
use std::f64::consts::PI;

/// Confidence of every test of a difference.
pub const CONFIDENCE: f64 = 0.95;
/// Probability with which the stated number of pairs shows the difference.
const POWER: f64 = 0.8;
/// More pairs than anybody trains.
const MANY: u64 = 100_000;

/// P(|T| ≤ |t|).
pub fn probability(t: f64, freedom: u64) -> f64 {
    let (sin, cos) = (t.abs() / (freedom as f64).sqrt()).atan().sin_cos();
    let odd = freedom % 2 == 1;
    // terms cos^k·(product of ratios), k = 1, 3, … or 0, 2, …, ν − 2
    let (mut term, mut sum) = (if odd { cos } else { 1.0 }, 0.0);
    for k in (if odd { 1 } else { 0 }..freedom.saturating_sub(1)).step_by(2) {
        sum += term;
        term *= cos * cos * (k + 1) as f64 / (k + 2) as f64;
    }
    match freedom {
        0 => 0.0,
        _ if odd => 2.0 / PI * (sin.atan2(cos) + sin * sum),
        _ => sin * sum,
    }
}

/// The t with P(|T| ≤ t) = confidence.
pub fn critical(confidence: f64, freedom: u64) -> f64 {
    if freedom == 0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while probability(high, freedom) < confidence {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        *(if probability(middle, freedom) < confidence { &mut low } else { &mut high }) = middle;
    }
    high
}

/// Pairs that would show a difference with the scatter of this one; `None` where nobody could train so many.
pub fn pairs_needed(difference: f64, deviation: f64) -> Option<u64> {
    let enough = |n: u64| {
        let t = critical(CONFIDENCE, n - 1) + critical(2.0 * POWER - 1.0, n - 1);
        n as f64 >= (t * deviation / difference).powi(2)
    };
    if !enough(MANY) {
        return None;
    }
    let (mut low, mut high) = (1, MANY);
    while high - low > 1 {
        let middle = (low + high) / 2;
        *(if enough(middle) { &mut high } else { &mut low }) = middle;
    }
    Some(high)
}

/// t and p of a difference, in words.
pub fn words(difference: f64, std_error: f64, freedom: u64) -> String {
    let t = difference / std_error;
    if !t.is_finite() || freedom == 0 {
        return "one seed shows no scatter".into();
    }
    let p = 1.0 - probability(t, freedom);
    let p = if p < 1e-4 { "p < 0.0001".to_string() } else { format!("p = {p:.*}", if p < 0.01 { 4 } else { 3 }) };
    format!("t = {}, {freedom} degrees of freedom, {p}", format::plain((100.0 * t).round() / 100.0))
}
