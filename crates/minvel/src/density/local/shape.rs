//! Covariances of kernels, as Cholesky factors.

use super::clusters::{Clusters, Moments};
use super::kernels::LocalKernels;
use super::neighbours::Neighbours;
use crate::Error;
use crate::density::by_rows;
use crate::train::Context;

/// Covariances of all centres, as Cholesky factors C: entry (a, b), b ≤ a, of all centres after one another; the diagonal
/// is kept as 1/C_aa.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    /// The list of centres it belongs to.
    pub list: usize,
    /// Neighbours that shaped them; 0 where they are those of a mixture.
    pub neighbours: usize,
    pub factors: Vec<f64>,
    /// log det C.
    pub log_det: Vec<f64>,
}

impl Shape {
    pub(super) fn entry(&self, a: usize, b: usize, i: usize) -> f64 {
        self.factors[(a * (a + 1) / 2 + b) * self.log_det.len() + i]
    }

    /// (tr S⁸)^{1/8} of each S = CCᵀ: at least the largest variance, and at most n^{1/8} times that.
    pub(super) fn widest(&self, n: usize) -> Vec<f64> {
        let squared = |s: &[f64]| -> Vec<f64> {
            let entry = |ab: usize| (0..n).map(|k| s[ab / n * n + k] * s[k * n + ab % n]).sum();
            (0..n * n).map(entry).collect()
        };
        let one = |i: usize| {
            let c = |a: usize, b: usize| match a.cmp(&b) {
                std::cmp::Ordering::Less => 0.0,
                std::cmp::Ordering::Equal => 1.0 / self.entry(a, a, i),
                std::cmp::Ordering::Greater => self.entry(a, b, i),
            };
            let s: Vec<f64> = (0..n * n).map(|ab| (0..n).map(|k| c(ab / n, k) * c(ab % n, k)).sum()).collect();
            let trace: f64 = (0..n).map(|a| s[a * n + a]).sum();
            // In units of the trace nothing under- or overflows.
            let unit: Vec<f64> = s.iter().map(|s| s / trace).collect();
            let fourth = squared(&squared(&unit));
            trace * fourth.iter().map(|x| x * x).sum::<f64>().powf(0.125) * (1.0 + 1e-12)
        };
        (0..self.log_det.len()).map(one).collect()
    }

    /// Tr CCᵀ, at least the largest variance.
    pub(super) fn trace(&self, i: usize, n: usize) -> f64 {
        let square = |a: usize, b: usize| {
            let c = self.entry(a, b, i);
            if a == b { 1.0 / (c * c) } else { c * c }
        };
        (0..n).flat_map(|a| (0..=a).map(move |b| (a, b))).map(|(a, b)| square(a, b)).sum()
    }

    /// y = C⁻¹v.
    pub(super) fn solve(&self, i: usize, v: &[f64], y: &mut [f64]) {
        for a in 0..v.len() {
            let rest: f64 = (0..a).map(|b| self.entry(a, b, i) * y[b]).sum();
            y[a] = (v[a] - rest) * self.entry(a, a, i);
        }
    }

    /// y ← C⁻ᵀy.
    pub(super) fn solve_transposed(&self, i: usize, y: &mut [f64]) {
        let n = y.len();
        for a in (0..n).rev() {
            let rest: f64 = (a + 1..n).map(|b| self.entry(b, a, i) * y[b]).sum();
            y[a] = (y[a] - rest) * self.entry(a, a, i);
        }
    }

    /// v = Cz.
    pub(super) fn multiply(&self, i: usize, z: &[f64], v: &mut [f64]) {
        for a in 0..z.len() {
            let below: f64 = (0..a).map(|b| self.entry(a, b, i) * z[b]).sum();
            v[a] = below + z[a] / self.entry(a, a, i);
        }
    }
}

/// What covariances are made of.
pub(super) struct Surroundings<'a> {
    pub clusters: &'a Clusters<'a>,
    pub neighbours: &'a Neighbours,
    /// Points that are not looked at.
    pub outside: &'a (dyn Fn(usize) -> bool + Sync),
    /// How far covariances are shrunk towards round ones.
    pub shrinkage: f64,
    /// The widest kernel.
    pub widest: f64,
}

impl LocalKernels {
    /// Second moments of the `count` nearest neighbours of the points `of`, about the centres of a list; where these are
    /// groups of points, or clusters of rows, the point itself is one of its neighbours.
    pub(super) fn add_shape(
        &mut self,
        list: usize,
        of: &[usize],
        count: usize,
        around: &Surroundings,
        context: &Context,
    ) -> Result<(), Error> {
        let (m, n) = (self.ambient(), self.dim());
        let entries = n * (n + 1) / 2;
        let centres = &self.sites[list].points;
        let rows = by_rows(of.len(), entries + 1, &context.quiet(), |first, rows| {
            let mut c = vec![0.0; n * n];
            for (k, row) in (first..).zip(rows.chunks_mut(entries + 1)) {
                let near = around.neighbours.list(of[k]).iter().map(|&j| j as usize);
                let own = (list > 0 || !around.clusters.are_rows()).then_some(of[k]).into_iter();
                let near = own.chain(near).filter(|&j| !(around.outside)(j)).take(count);
                self.second_moments(&centres[k * m..][..m], near, around, &mut c);
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
        let (factors, log_det) = ((0..entries).flat_map(column).collect(), column(entries).collect());
        self.shapes.push(Shape { list, neighbours: count, factors, log_det });
        Ok(())
    }

    /// The Cholesky factor of the second moments of some points about a centre, into the lower triangle of `c`.
    fn second_moments(&self, centre: &[f64], near: impl Iterator<Item = usize>, around: &Surroundings, c: &mut [f64]) {
        let &Surroundings { clusters, neighbours, shrinkage, widest, .. } = around;
        let (m, n) = (self.ambient(), self.dim());
        let floor = (0.1 * neighbours.near).powi(2) / n as f64;
        let (mut points, mut ends) = (vec![], vec![]);
        for j in near {
            clusters.stand_ins(self, j, &mut points);
            ends.push((points.len() / m, clusters.mass(j)));
        }
        let (mut v, mut logs) = (vec![0.0; points.len() / m * n], vec![0.0; points.len() / m]);
        self.normals(centre, &points, &mut v, &mut logs);
        let (mut moments, mut from) = (Moments::none(n), 0);
        for (end, mass) in ends {
            moments.add(&v[from * n..end * n], mass);
            from = end;
        }
        // Without neighbours there is only the floor.
        let found = if moments.mass > 0.0 { moments.mass } else { 1.0 };
        let product = |a: usize, b: usize| moments.products[a * (a + 1) / 2 + b];
        let trace: f64 = (0..n).map(|a| product(a, a)).sum::<f64>() / found;
        let scale = (widest.powi(2) / trace.max(1e-300)).min(1.0);
        c.fill(0.0);
        for a in 0..n {
            for b in 0..=a {
                c[a * n + b] = product(a, b) * ((1.0 - shrinkage) * scale / found);
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
