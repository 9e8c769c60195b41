//! Normal laws on Rᵈ.
//!
//! **Statement.** E(x) = ½(x−μ)ᵀΛ(x−μ), log Z = ½(d log 2π − log det Λ), I(p) = tr Λ.
//! **Source.** docs/math F15. **Conventions.** Λ is the precision, the inverse of the covariance.
//! **Error.** None; samples are μ + QΛ^{−½}z with Λ = Q diag(λ) Qᵀ. **Checked by** tests/theory/energy_laws.rs.

use super::Energy;
use crate::special::Eigen;
use minvel_engine::{Draw, Expr, Graph};
use std::f64::consts::TAU;

/// N(μ, Λ⁻¹).
#[derive(Clone, Debug, PartialEq)]
pub struct Gaussian {
    mean: Vec<f64>,
    precision: Vec<f64>,
    eigen: Eigen,
}

impl Gaussian {
    /// Mean μ and precision Λ, row-major, symmetric and positive definite.
    pub fn new(mean: &[f64], precision: &[f64]) -> Self {
        let eigen = Eigen::new(precision, mean.len());
        assert!(eigen.values.iter().all(|&x| x > 0.0), "a precision is positive definite, not of {:?}", eigen.values);
        Gaussian { mean: mean.to_vec(), precision: precision.to_vec(), eigen }
    }

    /// Independent coordinates with the given standard deviations.
    pub fn diagonal(mean: &[f64], deviations: &[f64]) -> Self {
        let d = mean.len();
        assert!(deviations.len() == d, "{} deviations for {d} coordinates", deviations.len());
        let entry = |i: usize| if i / d == i % d { deviations[i % d].powi(-2) } else { 0.0 };
        Self::new(mean, &(0..d * d).map(entry).collect::<Vec<f64>>())
    }

    /// N(μ, σ²I).
    pub fn isotropic(mean: &[f64], deviation: f64) -> Self {
        Self::diagonal(mean, &vec![deviation; mean.len()])
    }

    /// N(0, I) on Rᵈ.
    pub fn standard(d: usize) -> Self {
        Self::isotropic(&vec![0.0; d], 1.0)
    }

    fn is_diagonal(&self) -> bool {
        let d = self.mean.len();
        (0..d * d).all(|i| i / d == i % d || self.precision[i] == 0.0)
    }
}

impl Energy for Gaussian {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let (g, d) = (x.graph(), self.mean.len());
        let y = x - g.table(&self.mean, [d]);
        if self.is_diagonal() {
            let precision: Vec<f64> = (0..d).map(|i| self.precision[i * d + i]).collect();
            return 0.5 * y.square().dot(g.table(&precision, [d]));
        }
        0.5 * y.dot(y.matmul(g.table(&self.precision, [d, d])))
    }

    fn log_partition(&self) -> Option<f64> {
        Some(self.eigen.values.iter().map(|x| 0.5 * (TAU / x).ln()).sum())
    }

    fn sample<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Option<Expr<'g>> {
        let d = self.mean.len();
        let z = graph.random_rows(Draw::Normal, stream, rows, [d]);
        // (QΛ^{−½})ᵀ, for row vectors.
        let root = |i: usize| self.eigen.vectors[i % d * d + i / d] / self.eigen.values[i / d].sqrt();
        let spread = match self.is_diagonal() {
            true => z * graph.table(&(0..d).map(|i| self.precision[i * d + i].powf(-0.5)).collect::<Vec<f64>>(), [d]),
            false => z.matmul(graph.table(&(0..d * d).map(root).collect::<Vec<f64>>(), [d, d])),
        };
        Some(graph.table(&self.mean, [d]) + spread)
    }

    fn fisher_information(&self) -> Option<f64> {
        Some(self.eigen.values.iter().sum())
    }
}
