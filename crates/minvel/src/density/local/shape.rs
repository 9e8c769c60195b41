//! Covariances of kernels, as Cholesky factors.

use super::kernels::LocalKernels;
use super::neighbours::Neighbours;
use crate::Error;
use crate::density::by_rows;
use crate::train::Context;

/// Covariances of all centres, as Cholesky factors C: entry (a, b), b ≤ a, of all centres after one another; the diagonal
/// is kept as 1/C_aa.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    pub factors: Vec<f64>,
    /// log det C.
    pub log_det: Vec<f64>,
}

impl Shape {
    pub(super) fn entry(&self, a: usize, b: usize, i: usize, total: usize) -> f64 {
        self.factors[(a * (a + 1) / 2 + b) * total + i]
    }

    /// Tr CCᵀ, at least the largest variance.
    pub(super) fn trace(&self, i: usize, total: usize, n: usize) -> f64 {
        let square = |a: usize, b: usize| {
            let c = self.entry(a, b, i, total);
            if a == b { 1.0 / (c * c) } else { c * c }
        };
        (0..n).flat_map(|a| (0..=a).map(move |b| (a, b))).map(|(a, b)| square(a, b)).sum()
    }

    /// y = C⁻¹v.
    pub(super) fn solve(&self, i: usize, total: usize, v: &[f64], y: &mut [f64]) {
        for a in 0..v.len() {
            let rest: f64 = (0..a).map(|b| self.entry(a, b, i, total) * y[b]).sum();
            y[a] = (v[a] - rest) * self.entry(a, a, i, total);
        }
    }

    /// y ← C⁻ᵀy.
    pub(super) fn solve_transposed(&self, i: usize, total: usize, y: &mut [f64]) {
        let n = y.len();
        for a in (0..n).rev() {
            let rest: f64 = (a + 1..n).map(|b| self.entry(b, a, i, total) * y[b]).sum();
            y[a] = (y[a] - rest) * self.entry(a, a, i, total);
        }
    }

    /// v = Cz.
    pub(super) fn multiply(&self, i: usize, total: usize, z: &[f64], v: &mut [f64]) {
        for a in 0..z.len() {
            let below: f64 = (0..a).map(|b| self.entry(a, b, i, total) * z[b]).sum();
            v[a] = below + z[a] / self.entry(a, a, i, total);
        }
    }
}

impl LocalKernels {
    /// Second moments of `count` neighbours about each centre, shrunk, and no wider than `widest`; points `outside` are not
    /// looked at.
    pub(super) fn add_shape(
        &mut self,
        points: &[f64],
        of: &[usize],
        neighbours: &Neighbours,
        count: usize,
        shrinkage: f64,
        widest: f64,
        outside: &(dyn Fn(usize) -> bool + Sync),
        context: &Context,
    ) -> Result<(), Error> {
        let n = self.dim();
        let entries = n * (n + 1) / 2;
        let total = of.len();
        let moments = Moments { space: self, points, neighbours, count, shrinkage, widest, outside };
        let rows = by_rows(total, entries + 1, context, |first, rows| {
            let mut c = vec![0.0; n * n];
            for (&at, row) in of[first..].iter().zip(rows.chunks_mut(entries + 1)) {
                moments.factor(at, &mut c);
                let mut log_det = 0.0;
                for a in 0..n {
                    row[a * (a + 1) / 2..][..a].copy_from_slice(&c[a * n..][..a]);
                    row[a * (a + 1) / 2 + a] = 1.0 / c[a * n + a];
                    log_det += c[a * n + a].ln();
                }
                row[entries] = log_det;
            }
        })?;
        let column = |k: usize| rows.iter().skip(k).step_by(entries + 1).copied();
        self.shapes
            .push(Shape { factors: (0..entries).flat_map(column).collect(), log_det: column(entries).collect() });
        Ok(())
    }
}

/// Second moments of the neighbours of a point.
struct Moments<'a> {
    space: &'a LocalKernels,
    points: &'a [f64],
    neighbours: &'a Neighbours,
    count: usize,
    shrinkage: f64,
    widest: f64,
    outside: &'a (dyn Fn(usize) -> bool + Sync),
}

impl Moments<'_> {
    /// Their Cholesky factor about point `at`, into the lower triangle of `c`.
    fn factor(&self, at: usize, c: &mut [f64]) {
        let &Moments { space, points, neighbours, count, shrinkage, widest, outside } = self;
        let (m, n) = (space.ambient(), space.dim());
        let floor = (0.1 * neighbours.near).powi(2) / n as f64;
        c.fill(0.0);
        let near = neighbours.list(at).iter().map(|&j| j as usize).filter(|&j| !outside(j)).take(count);
        let near: Vec<f64> = near.flat_map(|j| &points[j * m..][..m]).copied().collect();
        let found = (near.len() / m) as f64;
        let (mut v, mut logs) = (vec![0.0; near.len() / m * n], vec![0.0; near.len() / m]);
        space.normals(&points[at * m..][..m], &near, &mut v, &mut logs);
        for v in v.chunks(n) {
            for a in 0..n {
                for b in 0..=a {
                    c[a * n + b] += v[a] * v[b];
                }
            }
        }
        let trace: f64 = (0..n).map(|a| c[a * n + a]).sum::<f64>() / found.max(1.0);
        let scale = (widest.powi(2) / trace.max(1e-300)).min(1.0);
        for a in 0..n {
            for b in 0..=a {
                c[a * n + b] *= (1.0 - shrinkage) * scale / found.max(1.0);
            }
            c[a * n + a] += shrinkage * scale * trace / n as f64 + floor;
        }
        cholesky(c, n);
    }
}

/// Lower Cholesky factor in place of a symmetric positive matrix given by its lower triangle.
pub(crate) fn cholesky(c: &mut [f64], n: usize) {
    for a in 0..n {
        for b in 0..=a {
            let sum: f64 = (0..b).map(|k| c[a * n + k] * c[b * n + k]).sum();
            let left = c[a * n + b] - sum;
            c[a * n + b] = if a == b { left.max(f64::MIN_POSITIVE).sqrt() } else { left / c[b * n + b] };
        }
    }
}
