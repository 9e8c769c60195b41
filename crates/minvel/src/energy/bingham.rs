//! The Bingham law on S^{m−1}.
//!
//! **Statement.** E(z) = zᵀΛz for a symmetric Λ with eigenvalues λ_i, and
//! Z = 2π^{m/2} · (1/2πi) ∫ eᵗ Π_i (t + λ_i)^{−½} dt over a contour around the negative axis; E z_i² = −∂ log Z/∂λ_i;
//! I(p) = 2 tr Λ − 2m E zᵀΛz. **Source.** kume2005saddlepoint (the integral), kent2013bingham (the sampler).
//! **Conventions.** z and −z are alike; adding a multiple of I to Λ changes nothing but log Z.
//! **Error.** The contour is a parabola through the saddle point, on which the trapezoidal rule converges
//! exponentially: log Z is right to about 10⁻¹⁴ for any m and Λ, not only on S² and S³. Samples by rejection
//! ([`draw`]).
//! **Checked by** tests/theory/energy_laws.rs.

use super::{Energy, draw};
use crate::special::{Eigen, log_sphere_area};
use minvel_engine::{Draw, Expr, Graph};
use std::f64::consts::{LN_2, PI};

/// p(z) ∝ exp(−zᵀΛz).
#[derive(Clone, Debug, PartialEq)]
pub struct Bingham {
    matrix: Vec<f64>,
    /// Of Λ less its smallest eigenvalue times I.
    eigen: Eigen,
    smallest: f64,
    /// log Z of the shifted Λ, and E z_i² along its eigenvectors.
    log_partition: f64,
    moments: Vec<f64>,
}

impl Bingham {
    /// Symmetric matrix Λ, row-major `[m, m]`, m ≥ 2.
    pub fn new(matrix: &[f64], m: usize) -> Self {
        assert!(m >= 2, "a Bingham law needs at least two coordinates, not {m}");
        let mut eigen = Eigen::new(matrix, m);
        let smallest = eigen.values.iter().copied().fold(f64::INFINITY, f64::min);
        eigen.values.iter_mut().for_each(|x| *x -= smallest);
        let (log_partition, moments) = partition(&eigen.values);
        Bingham { matrix: matrix.to_vec(), eigen, smallest, log_partition, moments }
    }

    /// E z zᵀ, row-major.
    pub fn second_moments(&self) -> Vec<f64> {
        let m = self.moments.len();
        let q = &self.eigen.vectors;
        let entry = |i: usize| (0..m).map(|k| q[i / m * m + k] * self.moments[k] * q[i % m * m + k]).sum();
        (0..m * m).map(entry).collect()
    }

    /// b with Σ 1/(b + 2λ_i) = 1: the best angular central Gaussian envelope has precision I + 2Λ/b.
    fn envelope(&self) -> f64 {
        let sum = |b: f64| self.eigen.values.iter().map(|x| 1.0 / (b + 2.0 * x)).sum::<f64>();
        falling_root(1.0, self.moments.len() as f64, |b| sum(b) - 1.0)
    }

    /// log sup of e^{−q}(1 + 2q/b)^{m/2}, the worst ratio of target and envelope.
    fn log_bound(&self, b: f64) -> f64 {
        let m = self.moments.len() as f64;
        -0.5 * (m - b) + 0.5 * m * (m / b).ln()
    }

    /// The rate at which proposals of the sampler are accepted.
    pub fn acceptance(&self) -> f64 {
        let b = self.envelope();
        let log_det: f64 = self.eigen.values.iter().map(|x| (2.0 * x / b).ln_1p()).sum();
        (self.log_partition - self.log_bound(b) - log_sphere_area(self.moments.len()) + 0.5 * log_det).exp()
    }
}

impl Energy for Bingham {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let m = self.moments.len();
        x.dot(x.matmul(x.graph().table(&self.matrix, [m, m])))
    }

    fn log_partition(&self) -> Option<f64> {
        Some(self.log_partition - self.smallest)
    }

    fn sample<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Option<Expr<'g>> {
        let (m, b) = (self.moments.len(), self.envelope());
        let half = 0.5 * m as f64;
        let trials = draw::trials(self.acceptance());
        let spread: Vec<f64> = self.eigen.values.iter().map(|x| (1.0 + 2.0 * x / b).powf(-0.5)).collect();
        let z = graph.random_rows(Draw::Normal, stream, rows, [trials, m]) * graph.table(&spread, [m]);
        let x = draw::direction(z);
        let q = x.square().dot(graph.table(&self.eigen.values, [m]));
        let log_accept = half * (q * (2.0 / b)).log1p() - q - self.log_bound(b);
        let u = graph.random_rows(Draw::Uniform, crate::stream::substream(stream, 1), rows, [trials]);
        let chosen = draw::first_accepted(u.log().less_equal(log_accept), x);
        // From the eigenbasis: Qx, for row vectors xQᵀ.
        Some(chosen.matmul(graph.table(&self.eigen.vectors, [m, m]).t()))
    }

    fn fisher_information(&self) -> Option<f64> {
        let m = self.moments.len() as f64;
        let trace: f64 = self.eigen.values.iter().sum();
        let mean: f64 = self.eigen.values.iter().zip(&self.moments).map(|(x, y)| x * y).sum();
        Some(2.0 * trace - 2.0 * m * mean)
    }
}

/// The root of a falling function between two points, by bisection.
fn falling_root(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if f(middle) > 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// log Z and E z_i² for eigenvalues of which the smallest is 0.
fn partition(lambda: &[f64]) -> (f64, Vec<f64>) {
    let half = 0.5 * lambda.len() as f64;
    let saddle = falling_root(0.5, half, |t| lambda.iter().map(|x| 0.5 / (t + x)).sum::<f64>() - 1.0);
    // Logarithm of the integrand's modulus at the saddle, relative to which everything is computed.
    let height = saddle - lambda.iter().map(|x| 0.5 * (saddle + x).ln()).sum::<f64>();
    let step = 0.05 / saddle.max(1.0).sqrt();
    let (mut sum, mut moments) = (0.0, vec![0.0; lambda.len()]);
    for k in 0.. {
        // t = s(1 + iu)², dt = 2is(1 + iu)du; negative u gives the complex conjugate.
        let u = k as f64 * step;
        let (re, im) = (saddle * (1.0 - u * u), 2.0 * saddle * u);
        let mut log = (re - height, im);
        for x in lambda {
            log.0 -= 0.5 * (re + x).hypot(im).ln();
            log.1 -= 0.5 * im.atan2(re + x);
        }
        let size = log.0.exp() * if k == 0 { 0.5 } else { 1.0 };
        let (cos, sin) = (size * log.1.cos(), size * log.1.sin());
        let (real, imaginary) = (cos - u * sin, sin + u * cos);
        sum += real;
        for (moment, x) in moments.iter_mut().zip(lambda) {
            let norm = (re + x).powi(2) + im * im;
            *moment += 0.5 * (real * (re + x) + imaginary * im) / norm;
        }
        if size * (1.0 + u) < 1e-18 * sum.abs() {
            break;
        }
    }
    moments.iter_mut().for_each(|x| *x /= sum);
    // 2π^{m/2} · (2s/π) · step · Σ.
    (height + LN_2 + half * PI.ln() + (2.0 * saddle / PI * step * sum).ln(), moments)
}
