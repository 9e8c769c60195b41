//! Quadrature rules of one variable, and their products.
//!
//! **Statement.** Σ w_k f(t_k) = ∫ f(t) w(t) dt, exactly for polynomials of degree < 2N in N nodes.
//! **Source.** The classical Gauss rules, by Newton's method on the three-term recurrence of the polynomials.
//! **Error.** Rounding; for analytic f the error of N nodes decreases geometrically.
//! **Checked by** the unit tests below and tests/theory/manifold_laws.rs (volumes).

use super::Grid;
use std::f64::consts::{PI, TAU};

/// Nodes and weights.
pub type Rule = (Vec<f64>, Vec<f64>);

/// Gauss–Legendre: ∫₋₁¹ f(t) dt.
pub fn gauss_legendre(count: usize) -> Rule {
    let node = |k: usize| {
        let mut t = (PI * (k as f64 + 0.75) / (count as f64 + 0.5)).cos();
        for _ in 0..100 {
            let (value, slope) = legendre(count, t);
            let step = value / slope;
            t -= step;
            if step.abs() <= f64::EPSILON {
                break;
            }
        }
        t
    };
    let nodes: Vec<f64> = (0..count).map(node).collect();
    let weight = |&t: &f64| 2.0 / ((1.0 - t * t) * legendre(count, t).1.powi(2));
    let weights = nodes.iter().map(weight).collect();
    (nodes, weights)
}

/// P_n(t) and P_n'(t).
fn legendre(n: usize, t: f64) -> (f64, f64) {
    let (mut before, mut p) = (0.0, 1.0);
    for k in 0..n {
        let next = ((2 * k + 1) as f64 * t * p - k as f64 * before) / (k + 1) as f64;
        (before, p) = (p, next);
    }
    (p, n as f64 * (t * p - before) / (t * t - 1.0))
}

/// Gauss–Chebyshev of the second kind: ∫₋₁¹ f(t) √(1−t²) dt.
pub fn gauss_chebyshev(count: usize) -> Rule {
    let angle = |k: usize| PI * (k + 1) as f64 / (count + 1) as f64;
    let weight = |k: usize| PI / (count + 1) as f64 * angle(k).sin().powi(2);
    ((0..count).map(|k| angle(k).cos()).collect(), (0..count).map(weight).collect())
}

/// Gauss–Hermite: E f(z) for a standard normal z.
pub fn gauss_hermite(count: usize) -> Rule {
    // Roots lie within 2√n and further apart than this.
    let step = 1.0 / (count as f64).sqrt();
    let value = |z: f64| hermite(count, z).0;
    let mut nodes: Vec<f64> = if count % 2 == 1 { vec![0.0] } else { vec![] };
    for k in 0..=2 * count {
        let (mut low, mut high) = ((k as f64 + 0.5) * step, (k as f64 + 1.5) * step);
        if k == 0 && count.is_multiple_of(2) {
            low = 0.0;
        }
        if value(low) * value(high) > 0.0 {
            continue;
        }
        for _ in 0..80 {
            let middle = 0.5 * (low + high);
            if value(low) * value(middle) > 0.0 { low = middle } else { high = middle }
        }
        nodes.extend([low, -low]);
    }
    assert!(nodes.len() == count, "{count} roots of a Hermite polynomial, not {}", nodes.len());
    let weights = nodes.iter().map(|&z| 1.0 / (count as f64 * hermite(count, z).1.powi(2))).collect();
    (nodes, weights)
}

/// Orthonormal Hermite polynomials of the standard normal law, h_n(z) and h_{n−1}(z); h_n′ = √n h_{n−1}.
fn hermite(n: usize, z: f64) -> (f64, f64) {
    let (mut before, mut h) = (0.0, 1.0);
    for k in 0..n {
        let next = (z * h - (k as f64).sqrt() * before) / ((k + 1) as f64).sqrt();
        (before, h) = (h, next);
    }
    (h, before)
}

/// The midpoint rule on an interval: of spectral accuracy for periodic functions and for those that fade at the ends.
pub fn midpoint(from: f64, to: f64, count: usize) -> Rule {
    let h = (to - from) / count as f64;
    ((0..count).map(|k| from + (k as f64 + 0.5) * h).collect(), vec![h; count])
}

/// The midpoint rule of the angles −π…π.
pub fn angles(count: usize) -> Rule {
    midpoint(-TAU / 2.0, TAU / 2.0, count)
}

/// Gauss–Legendre on an interval.
pub fn interval(from: f64, to: f64, count: usize) -> Rule {
    let (nodes, weights) = gauss_legendre(count);
    let half = 0.5 * (to - from);
    (nodes.iter().map(|t| from + half * (1.0 + t)).collect(), weights.iter().map(|w| half * w).collect())
}

/// The grid of a product manifold: every point of one with every point of the other.
pub fn product(a: &Grid, b: &Grid) -> Grid {
    let (wide, tall) = (a.points.len() / a.weights.len(), b.points.len() / b.weights.len());
    let mut grid = Grid { points: vec![], weights: vec![] };
    for (x, v) in a.points.chunks(wide).zip(&a.weights) {
        for (y, w) in b.points.chunks(tall).zip(&b.weights) {
            grid.points.extend(x.iter().chain(y));
            grid.weights.push(v * w);
        }
    }
    grid
}

/// n copies of a rule of one variable, as a grid of points with n numbers.
pub fn tensor((nodes, weights): Rule, n: usize) -> Grid {
    let line = Grid { points: nodes, weights };
    (1..n).fold(line.clone(), |grid, _| product(&grid, &line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integral((nodes, weights): Rule, f: impl Fn(f64) -> f64) -> f64 {
        nodes.iter().zip(&weights).map(|(&t, w)| w * f(t)).sum()
    }

    #[test]
    fn gauss_rules_of_n_nodes_integrate_degree_2n_minus_1_and_not_2n() {
        for n in [1, 2, 5, 20] {
            let even = 2 * n as i32 - 2;
            let moment = 2.0 / (even + 1) as f64;
            let error = integral(gauss_legendre(n), |t| t.powi(even) + t.powi(even + 1)) - moment;
            // A node wrong by one rounding error changes tᵏ by k of them.
            let rounding = (16 + 2 * even) as f64 * f64::EPSILON * moment;
            assert!(error.abs() <= rounding, "{n} nodes miss by {error}");
            let miss = integral(gauss_legendre(n), |t| t.powi(even + 2)) - 2.0 / (even + 3) as f64;
            assert!(miss < -1e3 * f64::EPSILON, "{n} nodes cannot be exact for degree {}", even + 2);
        }
    }

    #[test]
    fn hermite_rules_of_n_nodes_know_the_moments_of_the_normal_law_below_2n_and_not_that_of_2n() {
        for n in [1, 2, 3, 4, 5, 9, 16] {
            let moment = |k: i32| (1..k).step_by(2).map(f64::from).product::<f64>();
            let even = 2 * n as i32 - 2;
            let error = integral(gauss_hermite(n), |z| z.powi(even) + z.powi(even + 1)) - moment(even);
            let rounding = (16 + 4 * even) as f64 * f64::EPSILON * moment(even);
            assert!(error.abs() <= rounding, "{n} nodes miss by {error}");
            let miss = integral(gauss_hermite(n), |z| z.powi(even + 2)) / moment(even + 2) - 1.0;
            assert!(miss < -1e3 * f64::EPSILON, "{n} nodes cannot be exact for degree {}", even + 2);
        }
    }

    #[test]
    fn chebyshev_weights_know_the_semicircle() {
        // ∫ t² √(1−t²) dt = π/8.
        let error = integral(gauss_chebyshev(7), |t| t * t) - PI / 8.0;
        assert!(error.abs() <= 8.0 * f64::EPSILON, "{error}");
    }
}
