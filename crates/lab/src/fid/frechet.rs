//! The Fréchet distance of normal laws: how far two clouds of features are apart.
//!
//! **Statement.** d² = |μ₁ − μ₂|² + tr(Σ₁ + Σ₂ − 2(Σ₁Σ₂)^½), and with Σ_i = L_iL_iᵀ tr (Σ₁Σ₂)^½ = Σσ(L₁ᵀL₂), the sum of
//! singular values. **Source.** dowson1982frechet; heusel2017fid for its use on features; docs/math §6.F.
//! **Conventions.** What is returned is d², as FID always is. Covariances have the divisor N − 1.
//! **Error.** None beyond rounding, also where covariances have no full rank (fewer samples than features): the root of
//! Σ₁Σ₂ is never formed, so that nothing has to be added to a diagonal. Of samples, d² is biased upwards by about
//! O(d²/N): distances of different N do not compare.
//! **Checked by** tests/lab/frechet.rs (F52, F53, the values of SciPy's `sqrtm`).

use minvel::special::{semidefinite_root, singular_values};
use minvel_engine::{Clock, Device, Graph, Options, State};

/// N(μ, Σ).
#[derive(Clone, Debug, PartialEq)]
pub struct Normal {
    /// μ.
    pub mean: Vec<f64>,
    /// Σ, row-major.
    pub covariance: Vec<f64>,
}

impl Normal {
    /// The squared Fréchet distance to another normal law.
    pub fn frechet(&self, other: &Normal) -> f64 {
        let n = self.mean.len();
        assert!(other.mean.len() == n, "frechet: laws of {n} and {} numbers", other.mean.len());
        let trace = |law: &Normal| (0..n).map(|i| law.covariance[i * n + i]).sum::<f64>();
        let shift: f64 = self.mean.iter().zip(&other.mean).map(|(a, b)| (a - b).powi(2)).sum();
        // A square is not negative; a difference of traces may be, by rounding.
        (shift + trace(self) + trace(other) - 2.0 * self.fidelity(other)).max(0.0)
    }

    /// tr (Σ₁Σ₂)^½.
    fn fidelity(&self, other: &Normal) -> f64 {
        let n = self.mean.len();
        let ((a, r), (b, s)) = (semidefinite_root(&self.covariance, n), semidefinite_root(&other.covariance, n));
        if r * s == 0 { 0.0 } else { singular_values(&product((&a, r), (&b, s), n), r, s).iter().sum() }
    }
}

/// aᵀb of matrices `[n, columns]`.
fn product((a, r): (&[f64], usize), (b, s): (&[f64], usize), n: usize) -> Vec<f64> {
    let g = Graph::new();
    let value = g.input("a", [n, r]).t().matmul(g.input("b", [n, s]));
    let mut program = g.compile::<f64>(&[value], &[], &Options { device: Device::Cpu, ..Options::default() });
    program.run(&mut State::new(1), &[("a", a), ("b", b)], Clock { seed: 0, step: 0 });
    program.output(0).to_vec()
}

/// Mean and covariance of rows of features, seen part by part.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter {
    features: usize,
    count: usize,
    mean: Vec<f64>,
    /// Σ (x − x̄)(x − x̄)ᵀ.
    products: Vec<f64>,
}

/// Rows that are multiplied at once.
const BLOCK: usize = 1024;

impl Scatter {
    /// Nothing seen yet of rows of so many features.
    pub fn new(features: usize) -> Self {
        Scatter { features, count: 0, mean: vec![0.0; features], products: vec![0.0; features * features] }
    }

    /// Of rows one after another.
    pub fn of(rows: &[f32], features: usize) -> Self {
        let mut scatter = Scatter::new(features);
        scatter.extend(rows);
        scatter
    }

    /// Rows seen.
    pub fn count(&self) -> usize {
        self.count
    }

    /// More rows, one after another.
    pub fn extend(&mut self, rows: &[f32]) {
        let d = self.features;
        assert!(rows.len().is_multiple_of(d), "scatter: {} numbers are not rows of {d}", rows.len());
        for block in rows.chunks(BLOCK * d) {
            let count = block.len() / d;
            let mut x: Vec<f64> = block.iter().map(|x| *x as f64).collect();
            let mut mean = vec![0.0; d];
            x.chunks(d).for_each(|row| mean.iter_mut().zip(row).for_each(|(m, x)| *m += x / count as f64));
            x.chunks_mut(d).for_each(|row| row.iter_mut().zip(&mean).for_each(|(x, m)| *x -= m));
            let products = product((&x, d), (&x, d), count);
            self.merge(&Scatter { features: d, count, mean, products });
        }
    }

    /// Rows seen elsewhere: no difference of large sums is taken.
    pub fn merge(&mut self, other: &Scatter) {
        assert!(self.features == other.features, "scatter: {} and {} features", self.features, other.features);
        if other.count == 0 {
            return;
        }
        let (d, count) = (self.features, self.count + other.count);
        let share = other.count as f64 / count as f64;
        let weight = self.count as f64 * share;
        let shift: Vec<f64> = other.mean.iter().zip(&self.mean).map(|(b, a)| b - a).collect();
        for (i, (own, new)) in self.products.chunks_mut(d).zip(other.products.chunks(d)).enumerate() {
            let step = weight * shift[i];
            own.iter_mut().zip(new).zip(&shift).for_each(|((own, new), shift)| *own += new + step * shift);
        }
        self.mean.iter_mut().zip(&shift).for_each(|(m, s)| *m += share * s);
        self.count = count;
    }

    /// The normal law with the rows' mean and covariance, which takes two rows at least.
    pub fn normal(&self) -> Normal {
        assert!(self.count > 1, "scatter: {} rows have no covariance", self.count);
        let covariance = self.products.iter().map(|p| p / (self.count - 1) as f64).collect();
        Normal { mean: self.mean.clone(), covariance }
    }
}
