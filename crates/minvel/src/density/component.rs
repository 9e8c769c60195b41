//! Draws of a component of a mixture, from its natural parameter.
//!
//! **Statement.** η ↦ the law exp(⟨η, T(x)⟩ − A(η)) as centre and concentration (normal laws: mean and covariance), and A(η).
//! **Conventions.** Those of the family: Sⁿ: η = κc. Tⁿ: κ_j(cos c_j, sin c_j). Hⁿ: κ(−C₀, C⃗). RPⁿ, SO(3): κccᵀ, entries
//! off the diagonal doubled. Rⁿ: Σ⁻¹μ and −½Σ⁻¹, likewise doubled. **Error.** Rounding. **Checked by**
//! tests/densities/density.rs (draws against log densities).

use crate::manifold::Space;
use crate::special::Eigen;
use minvel_engine::random::Stream;
use std::f64::consts::TAU;

/// A law that can be drawn from.
pub(super) struct Component {
    law: Law,
    /// A(η).
    pub log_partition: f64,
}

enum Law {
    /// e^{κt(x,c)}.
    Bump { space: Space, centre: Vec<f64>, kappa: f64 },
    /// Angles, each with a centre and concentration.
    Angles(Vec<(f64, f64)>),
    /// Mean and a root of the covariance, row-major.
    Normal { mean: Vec<f64>, root: Vec<f64> },
}

/// Where η is zero the centre does not matter.
const LEAST: f64 = 1e-12;

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

impl Component {
    /// Of a natural parameter.
    pub fn of(space: Space, eta: &[f64]) -> Self {
        match space {
            Space::Sphere(_) => {
                let kappa = norm(eta).max(LEAST);
                let mut centre: Vec<f64> = eta.iter().map(|e| e / kappa).collect();
                if norm(eta) < LEAST {
                    centre = (0..eta.len()).map(|j| if j == 0 { 1.0 } else { 0.0 }).collect();
                }
                Self::bump(space, centre, kappa, kappa)
            }
            Space::Torus(_) => {
                let angles: Vec<(f64, f64)> = eta.chunks(2).map(|e| (e[1].atan2(e[0]), norm(e).max(LEAST))).collect();
                let log_partition = angles.iter().map(|(_, k)| k + Space::Sphere(1).log_normaliser(*k)).sum();
                Component { law: Law::Angles(angles), log_partition }
            }
            Space::Hyperbolic(_) => {
                let far = norm(&eta[1..]);
                let kappa = ((-eta[0] - far) * (-eta[0] + far)).max(LEAST * LEAST).sqrt();
                let centre = eta[1..].iter().map(|e| e / kappa / (1.0 - eta[0] / kappa)).collect();
                Self::bump(space, centre, kappa, -kappa)
            }
            Space::Projective(_) | Space::So3 => {
                let m = space.ambient();
                let diagonal: Vec<usize> = (0..m).scan(0, |at, i| Some(std::mem::replace(at, *at + m - i))).collect();
                let kappa = diagonal.iter().map(|&at| eta[at]).sum::<f64>().max(LEAST);
                let top = (0..m).max_by(|&a, &b| eta[diagonal[a]].total_cmp(&eta[diagonal[b]])).expect("coordinates");
                let length = (eta[diagonal[top]] / kappa).max(LEAST).sqrt();
                let entry = |j: usize| match j.cmp(&top) {
                    std::cmp::Ordering::Less => eta[diagonal[j] + top - j] / 2.0 / kappa / length,
                    std::cmp::Ordering::Equal => length,
                    std::cmp::Ordering::Greater => eta[diagonal[top] + j - top] / 2.0 / kappa / length,
                };
                let centre: Vec<f64> = (0..m).map(entry).collect();
                let size = norm(&centre);
                Self::bump(space, centre.iter().map(|c| c / size).collect(), kappa, kappa)
            }
            Space::Euclidean(n) => Self::normal(n, eta),
        }
    }

    /// log ∫ e^{κt} is log N(κ), where ⟨η, T⟩ = κt + `top`.
    fn bump(space: Space, centre: Vec<f64>, kappa: f64, top: f64) -> Self {
        let log_partition = top + space.log_normaliser(kappa);
        Component { law: Law::Bump { space, centre, kappa }, log_partition }
    }

    fn normal(n: usize, eta: &[f64]) -> Self {
        let (linear, quadratic) = eta.split_at(n);
        let mut precision = vec![0.0; n * n];
        let pairs = (0..n).flat_map(|i| (i..n).map(move |j| (i, j)));
        for ((i, j), q) in pairs.zip(quadratic) {
            let entry = if i == j { -2.0 * q } else { -q };
            (precision[i * n + j], precision[j * n + i]) = (entry, entry);
        }
        let Eigen { values, vectors } = Eigen::new(&precision, n);
        let product = |f: &dyn Fn(f64) -> f64| -> Vec<f64> {
            let term = |i: usize, j: usize, k: usize| vectors[i * n + k] * f(values[k]) * vectors[j * n + k];
            (0..n * n).map(|ij| (0..n).map(|k| term(ij / n, ij % n, k)).sum()).collect()
        };
        let covariance = product(&|v| 1.0 / v);
        let mean: Vec<f64> = (0..n).map(|i| (0..n).map(|j| covariance[i * n + j] * linear[j]).sum()).collect();
        let energy: f64 = mean.iter().zip(linear).map(|(a, b)| a * b).sum();
        let log_det: f64 = values.iter().map(|v| (TAU / v).ln()).sum();
        Component {
            law: Law::Normal { mean, root: product(&|v| v.powf(-0.5)) },
            log_partition: 0.5 * (energy + log_det),
        }
    }

    /// Appends a draw.
    pub fn draw(&self, stream: &mut Stream, out: &mut Vec<f64>) {
        match &self.law {
            Law::Bump { space, centre, kappa } => out.extend(space.draw(centre, *kappa, stream)),
            Law::Angles(angles) => {
                angles.iter().for_each(|(c, kappa)| out.extend(Space::Torus(1).draw(&[*c], *kappa, stream)));
            }
            Law::Normal { mean, root } => {
                let n = mean.len();
                let z: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
                out.extend((0..n).map(|i| mean[i] + (0..n).map(|j| root[i * n + j] * z[j]).sum::<f64>()));
            }
        }
    }
}
