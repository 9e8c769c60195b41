//! The natural exponential family of a model space: statistics, and the law of largest likelihood from their mean.
//!
//! **Statement.** p(x; η) = exp(⟨η, T(x)⟩ − A(η)): Sⁿ: T = x (von Mises–Fisher); Tⁿ: cosines and sines (independent von
//! Mises); Rⁿ: x and xxᵀ (normal); Hⁿ: the point of the hyperboloid (hyperboloid law); RPⁿ and SO(3): xxᵀ (Watson law). η from the
//! mean of T: its direction is the centre, the rest is the spread −E t, which fixes κ.
//! **Source.** mardia2000directional, sections 5.3 and 10.3; jensen1981hyperboloid. **Conventions.** −t as in
//! [`Bump`](super::Bump); spreads are pulled towards a prior one by a share w: (1−w)·spread + w·prior, so that no component
//! collapses onto a point. **Error.** Rounding of ⟨η, T⟩ − A, of the size κ rounding errors.
//! **Checked by** tests/densities/density_fit.rs.

use crate::manifold::Space;
use crate::special::Eigen;
use std::f64::consts::TAU;

/// η with the constant −A(η).
pub(super) struct Natural {
    pub parameter: Vec<f64>,
    pub constant: f64,
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Pairs (i, j) of the upper triangle.
fn triangle(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |i| (i..n).map(move |j| (i, j)))
}

/// The symmetric matrix of an upper triangle.
fn symmetric(upper: &[f64], n: usize) -> Vec<f64> {
    let mut matrix = vec![0.0; n * n];
    for ((i, j), x) in triangle(n).zip(upper) {
        (matrix[i * n + j], matrix[j * n + i]) = (*x, *x);
    }
    matrix
}

/// The upper triangle of a symmetric matrix with off-diagonal entries doubled: ⟨·, T⟩ is then the trace.
fn doubled(n: usize, entry: impl Fn(usize, usize) -> f64) -> impl Iterator<Item = f64> {
    triangle(n).map(move |(i, j)| if i == j { 1.0 } else { 2.0 } * entry(i, j))
}

impl Space {
    /// Appends T(x).
    pub(super) fn sufficient(self, x: &[f64], out: &mut Vec<f64>) {
        match self {
            Space::Sphere(_) => out.extend(x),
            Space::Torus(_) => out.extend(x.iter().flat_map(|x| [x.cos(), x.sin()])),
            Space::Euclidean(n) => {
                out.extend(x);
                out.extend(triangle(n).map(|(i, j)| x[i] * x[j]));
            }
            Space::Hyperbolic(_) => {
                let r2: f64 = x.iter().map(|x| x * x).sum();
                out.push((1.0 + r2) / (1.0 - r2));
                out.extend(x.iter().map(|x| 2.0 * x / (1.0 - r2)));
            }
            Space::Projective(_) | Space::So3 => out.extend(triangle(self.ambient()).map(|(i, j)| x[i] * x[j])),
        }
    }

    /// a and b with t(x, c) = ⟨a, T(x)⟩ + b.
    pub(super) fn statistic_of(self, c: &[f64]) -> (Vec<f64>, f64) {
        match self {
            Space::Sphere(_) => (c.to_vec(), -1.0),
            Space::Torus(n) => (c.iter().flat_map(|c| [c.cos(), c.sin()]).collect(), -(n as f64)),
            Space::Euclidean(n) => {
                let squares = triangle(n).map(|(i, j)| if i == j { -0.5 } else { 0.0 });
                (c.iter().copied().chain(squares).collect(), -0.5 * norm(c).powi(2))
            }
            Space::Hyperbolic(_) => {
                let mut a = vec![];
                self.sufficient(c, &mut a);
                a[0] = -a[0];
                (a, 1.0)
            }
            Space::Projective(_) | Space::So3 => (doubled(self.ambient(), |i, j| c[i] * c[j]).collect(), -1.0),
        }
    }

    /// The centre of the law of largest likelihood, from the mean of T.
    pub(super) fn centre_of(self, mean: &[f64]) -> Vec<f64> {
        match self {
            Space::Sphere(_) => {
                let length = norm(mean).max(f64::MIN_POSITIVE);
                mean.iter().map(|m| m / length).collect()
            }
            Space::Torus(_) => mean.chunks(2).map(|m| m[1].atan2(m[0])).collect(),
            Space::Euclidean(n) => mean[..n].to_vec(),
            Space::Hyperbolic(_) => {
                let length = lorentz_norm(mean);
                mean[1..].iter().map(|m| m / length / (1.0 + mean[0] / length)).collect()
            }
            Space::Projective(_) | Space::So3 => axis(mean, self.ambient()).1,
        }
    }

    /// Numbers of T.
    pub(super) fn sufficient_width(self) -> usize {
        match self {
            Space::Sphere(n) | Space::Hyperbolic(n) => n + 1,
            Space::Torus(n) => 2 * n,
            Space::Euclidean(n) => n + n * (n + 1) / 2,
            Space::Projective(_) | Space::So3 => self.ambient() * (self.ambient() + 1) / 2,
        }
    }

    /// The spreads that a mean of T leaves around its centre: one, but one for each angle and each coordinate of Rⁿ.
    pub(super) fn spreads(self, mean: &[f64]) -> Vec<f64> {
        match self {
            Space::Sphere(_) => vec![(1.0 - norm(mean)).max(0.0)],
            Space::Torus(_) => mean.chunks(2).map(|m| (1.0 - norm(m)).max(0.0)).collect(),
            Space::Euclidean(n) => {
                let (m, square) = mean.split_at(n);
                let diagonal = triangle(n).zip(square).filter(|((i, j), _)| i == j);
                diagonal.map(|((i, _), s)| (s - m[i] * m[i]).max(0.0)).collect()
            }
            Space::Hyperbolic(_) => vec![(lorentz_norm(mean) - 1.0).max(0.0)],
            Space::Projective(_) | Space::So3 => vec![(1.0 - axis(mean, self.ambient()).0).max(0.0)],
        }
    }

    /// The law of largest likelihood, its spreads pulled towards `prior` by the share `pull`.
    pub(super) fn fitted(self, mean: &[f64], prior: &[f64], pull: f64) -> Natural {
        let pulled = |k: usize, spread: f64| (1.0 - pull) * spread + pull * prior[k];
        let spreads: Vec<f64> = self.spreads(mean).into_iter().enumerate().map(|(k, s)| pulled(k, s)).collect();
        match self {
            Space::Sphere(_) => {
                let kappa = self.concentration(spreads[0]);
                let length = norm(mean).max(f64::MIN_POSITIVE);
                let parameter = mean.iter().map(|m| kappa * m / length).collect();
                Natural { parameter, constant: -kappa - self.log_normaliser(kappa) }
            }
            Space::Torus(_) => {
                // T¹ by its angle is S¹ in its plane: the same law; the spread is already pulled.
                let one = |(m, s): (&[f64], &f64)| Space::Sphere(1).fitted(m, &[*s], 1.0);
                let parts: Vec<Natural> = mean.chunks(2).zip(&spreads).map(one).collect();
                let constant = parts.iter().map(|p| p.constant).sum();
                Natural { parameter: parts.into_iter().flat_map(|p| p.parameter).collect(), constant }
            }
            Space::Euclidean(n) => normal(n, mean, prior, pull),
            Space::Hyperbolic(_) => {
                let (kappa, length) = (self.concentration(spreads[0]), lorentz_norm(mean));
                let signed = |(i, m): (usize, &f64)| if i == 0 { -kappa * m / length } else { kappa * m / length };
                let parameter = mean.iter().enumerate().map(signed).collect();
                Natural { parameter, constant: kappa - self.log_normaliser(kappa) }
            }
            Space::Projective(_) | Space::So3 => {
                let (kappa, mu) = (self.concentration(spreads[0]), axis(mean, self.ambient()).1);
                let parameter = doubled(self.ambient(), |i, j| kappa * mu[i] * mu[j]).collect();
                Natural { parameter, constant: -kappa - self.log_normaliser(kappa) }
            }
        }
    }
}

/// √(X₀² − |X⃗|²) of a mean of points on the hyperboloid, at least 1.
fn lorentz_norm(mean: &[f64]) -> f64 {
    let far = norm(&mean[1..]);
    ((mean[0] - far) * (mean[0] + far)).max(1.0).sqrt()
}

/// The largest eigenvalue of a mean of xxᵀ, and its unit eigenvector.
fn axis(mean: &[f64], m: usize) -> (f64, Vec<f64>) {
    let eigen = Eigen::new(&symmetric(mean, m), m);
    let k = (0..m).max_by(|a, b| eigen.values[*a].total_cmp(&eigen.values[*b])).unwrap_or(0);
    (eigen.values[k], (0..m).map(|i| eigen.vectors[i * m + k]).collect())
}

/// The normal law of a mean of (x, xxᵀ), its covariance pulled towards a diagonal one.
fn normal(n: usize, mean: &[f64], prior: &[f64], pull: f64) -> Natural {
    let (m, square) = mean.split_at(n);
    let mut covariance = symmetric(square, n);
    for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let centred = covariance[i * n + j] - m[i] * m[j];
        covariance[i * n + j] = (1.0 - pull) * centred + if i == j { pull * prior[i] } else { 0.0 };
    }
    let eigen = Eigen::new(&covariance, n);
    // Rounding may leave a variance below zero where points lie in a plane.
    let least = 1e-9 * prior.iter().fold(0.0f64, |a, p| a.max(*p));
    let values: Vec<f64> = eigen.values.iter().map(|v| v.max(least).max(f64::MIN_POSITIVE)).collect();
    let q = &eigen.vectors;
    let precision: Vec<f64> =
        (0..n * n).map(|ij| (0..n).map(|k| q[ij / n * n + k] * q[ij % n * n + k] / values[k]).sum::<f64>()).collect();
    let linear: Vec<f64> = (0..n).map(|i| (0..n).map(|j| precision[i * n + j] * m[j]).sum::<f64>()).collect();
    let energy: f64 = linear.iter().zip(m).map(|(a, b)| a * b).sum();
    let log_det: f64 = values.iter().map(|v| (TAU * v).ln()).sum();
    let parameter = linear.iter().copied().chain(doubled(n, |i, j| -0.5 * precision[i * n + j])).collect();
    Natural { parameter, constant: -0.5 * (energy + log_det) }
}
