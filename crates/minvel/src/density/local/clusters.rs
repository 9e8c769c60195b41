//! Clusters of rows, for kernels to stand on where there are more rows than centres.
//!
//! **Statement.** A cluster is N rows: N, Σv and Σvvᵀ, v their normal coordinates about one point ([`Moments`]); such sums are
//! merged by adding them up. Rows are cut into k clusters across their longest coordinate, ⌊k/2⌋/k of them to the left, and
//! so on in both parts; a cluster stands at the mean c of its rows, and S = Σvvᵀ/N about c.
//! **Source.** zhang1996birch (sums that describe a cluster). **Conventions.** Each fold of the rows has clusters of its own, so
//! that those of the other folds have not seen its rows. In the moments of a neighbourhood a cluster is N rows in 2n equal
//! parts at c ± √n C e_a, CCᵀ = S: the same mean and covariance in the coordinates of any other point.
//! **Error.** Counts are exact, sums are so up to rounding in whatever order they are merged. c is the mean of a cluster of
//! radius r up to O(κr³) on a space of curvature κ, exactly on a flat one. C is that of S + 10⁻¹⁰ tr S.
//! **Checked by** its own tests, and tests/densities/clusters.rs.

use super::folds::Folds;
use super::kernels::LocalKernels;
use super::longest;
use super::shape::cholesky;
use crate::Error;
use crate::density::by_rows;
use crate::density::sample::{Sample, weight};
use crate::train::Context;
use std::borrow::Cow;
use std::ops::Range;

/// How many rows there are, and sums over their normal coordinates about one point.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moments {
    /// N, or the sum of the weights of the rows.
    pub mass: f64,
    /// Σv.
    pub sum: Vec<f64>,
    /// Σvvᵀ, the lower triangle row by row.
    pub products: Vec<f64>,
}

impl Moments {
    /// Of no rows in n dimensions.
    pub fn none(n: usize) -> Self {
        Moments { mass: 0.0, sum: vec![0.0; n], products: vec![0.0; n * (n + 1) / 2] }
    }

    /// Adds rows of this mass, in equal parts at some coordinates.
    pub fn add(&mut self, at: &[f64], mass: f64) {
        let n = self.sum.len();
        let weight = mass / (at.len() / n) as f64;
        self.mass += mass;
        for v in at.chunks(n) {
            for a in 0..n {
                self.sum[a] += weight * v[a];
                for b in 0..=a {
                    self.products[a * (a + 1) / 2 + b] += weight * v[a] * v[b];
                }
            }
        }
    }

    /// Adds the rows of another, about the same point.
    pub fn merge(&mut self, other: &Moments) {
        self.mass += other.mass;
        self.sum.iter_mut().zip(&other.sum).for_each(|(own, other)| *own += other);
        self.products.iter_mut().zip(&other.products).for_each(|(own, other)| *own += other);
    }

    /// Σv/N.
    pub fn mean(&self) -> Vec<f64> {
        self.sum.iter().map(|sum| sum / self.mass).collect()
    }

    /// Entry (a, b), b ≤ a, of Σvvᵀ/N.
    pub fn second(&self, a: usize, b: usize) -> f64 {
        self.products[a * (a + 1) / 2 + b] / self.mass
    }
}

/// What kernels stand on: rows, or clusters of them.
pub(super) struct Clusters<'a> {
    /// The rows, or the means of the clusters.
    pub points: Cow<'a, [f64]>,
    /// N of each cluster, or the weights of its rows; none where all are 1.
    masses: Cow<'a, [f64]>,
    /// The group of each row; none of clusters, and where every row is one.
    groups: Cow<'a, [u32]>,
    /// Rows of each cluster; none where each is a row.
    counts: Vec<u32>,
    /// C of each cluster, the lower triangle row by row.
    factors: Vec<f64>,
}

impl<'a> Clusters<'a> {
    /// Every row is one.
    pub fn rows(sample: &'a Sample) -> Self {
        let (points, masses) = (sample.points().into(), sample.weights().into());
        Clusters { points, masses, groups: sample.groups().into(), counts: vec![], factors: vec![] }
    }

    /// At most `most` clusters of rows (at least one for each fold), and the fold of each.
    pub fn of(
        space: &LocalKernels,
        sample: &'a Sample,
        folds: (&Folds, usize),
        most: usize,
        context: &Context,
    ) -> Result<(Self, Folds), Error> {
        let (m, points, weights) = (space.ambient(), sample.points(), sample.weights());
        let rows = points.len() / m;
        let (mut order, mut ends, mut fold_of) = (Vec::with_capacity(rows), vec![0], vec![]);
        for fold in 0..folds.1 {
            let mut own = folds.0.parts(fold).0;
            if own.is_empty() {
                continue;
            }
            context.go_on()?;
            let count = (most * own.len() / rows).clamp(1, own.len());
            cut(points, m, &mut own, count, &mut |len| ends.push(ends.last().unwrap_or(&0) + len));
            fold_of.resize(ends.len() - 1, fold as u32);
            order.append(&mut own);
        }
        let counts = ends.windows(2).map(|ends| (ends[1] - ends[0]) as u32).collect();
        let cell = |k: usize| &order[ends[k]..ends[k + 1]];
        let masses = (0..ends.len() - 1).map(|k| cell(k).iter().map(|&i| weight(weights, i)).sum()).collect();
        let clusters = Clusters::gathered(space, sample, (&order, &ends), (counts, masses), context)?;
        Ok((clusters, Folds::known(fold_of)))
    }

    /// The rows of known parts: the order in which they stand together, where parts end, and rows and mass of each part.
    pub fn gathered(
        space: &LocalKernels,
        sample: &Sample,
        (order, ends): (&[usize], &[usize]),
        (counts, masses): (Vec<u32>, Vec<f64>),
        context: &Context,
    ) -> Result<Self, Error> {
        let (m, n) = (space.ambient(), space.dim());
        let entries = n * (n + 1) / 2;
        let found = by_rows(counts.len(), m + entries, context, |first, out| {
            for (k, out) in (first..).zip(out.chunks_mut(m + entries)) {
                let (centre, factor) = out.split_at_mut(m);
                space.cluster(sample, &order[ends[k]..ends[k + 1]], centre, factor);
            }
        })?;
        let part =
            |range: Range<usize>| found.chunks(m + entries).flat_map(|row| &row[range.clone()]).copied().collect();
        let (points, masses) = (Cow::Owned(part(0..m)), Cow::Owned(masses));
        let (groups, factors) = (Cow::Borrowed(&[][..]), part(m..m + entries));
        Ok(Clusters { points, masses, groups, counts, factors })
    }

    /// Whether each is one row.
    pub fn are_rows(&self) -> bool {
        self.counts.is_empty()
    }

    /// Rows of cluster i, by their weights.
    pub fn mass(&self, i: usize) -> f64 {
        weight(&self.masses, i)
    }

    /// What each counts; none where all are equal.
    pub fn masses(&self) -> &[f64] {
        &self.masses
    }

    /// The groups of some rows; none where every row is one.
    pub fn groups(&self, of: &[usize]) -> Vec<f64> {
        if self.groups.is_empty() { vec![] } else { of.iter().map(|&i| self.groups[i].into()).collect() }
    }

    /// The share of each of some clusters in the rows of all of these; none where all are equal.
    pub fn weights(&self, of: &[usize]) -> Vec<f64> {
        let total: f64 = of.iter().map(|&i| self.mass(i)).sum();
        let share = |&i: &usize| self.mass(i) / total;
        if self.masses.is_empty() { vec![] } else { of.iter().map(share).collect() }
    }

    /// Appends points that stand for the rows of cluster i in equal parts.
    pub fn stand_ins(&self, space: &LocalKernels, i: usize, points: &mut Vec<f64>) {
        let (m, n) = (space.ambient(), space.dim());
        let centre = &self.points[i * m..][..m];
        if self.counts.get(i).is_none_or(|count| *count == 1) {
            points.extend_from_slice(centre);
            return;
        }
        let factor = &self.factors[i * n * (n + 1) / 2..];
        let mut v = vec![0.0; 2 * n * n];
        for a in 0..n {
            for b in a..n {
                let entry = (n as f64).sqrt() * factor[b * (b + 1) / 2 + a];
                (v[2 * a * n + b], v[(2 * a + 1) * n + b]) = (entry, -entry);
            }
        }
        space.points_about(centre, &v, points);
    }
}

/// Cuts rows into `count` parts and says how long each is, from left to right.
fn cut(points: &[f64], m: usize, of: &mut [usize], count: usize, part: &mut impl FnMut(usize)) {
    if count == 1 {
        return part(of.len());
    }
    let longest = longest(points, m, of);
    let left = count / 2;
    let middle = of.len() * left / count;
    let by = |i: &usize| points[i * m + longest];
    of.select_nth_unstable_by(middle, |a, b| by(a).total_cmp(&by(b)).then(a.cmp(b)));
    let (before, after) = of.split_at_mut(middle);
    cut(points, m, before, left, part);
    cut(points, m, after, count - left, part);
}

impl LocalKernels {
    /// Moments of some rows about a point.
    fn moments(&self, about: &[f64], sample: &Sample, of: &[usize]) -> Moments {
        // So many at a time, so that a large cluster takes no memory.
        const BLOCK: usize = 4096;
        let (m, n) = (self.ambient(), self.dim());
        let mut all = Moments::none(n);
        for of in of.chunks(BLOCK) {
            let rows: Vec<f64> = of.iter().flat_map(|&i| &sample.points()[i * m..][..m]).copied().collect();
            let (mut v, mut logs) = (vec![0.0; of.len() * n], vec![0.0; of.len()]);
            self.normals(about, &rows, &mut v, &mut logs);
            let mut own = Moments::none(n);
            v.chunks(n).zip(of).for_each(|(v, &i)| own.add(v, sample.weight(i)));
            all.merge(&own);
        }
        all
    }

    /// The mean of some rows, and C of their moments about it.
    fn cluster(&self, sample: &Sample, of: &[usize], centre: &mut [f64], factor: &mut [f64]) {
        let (m, n) = (self.ambient(), self.dim());
        let pivot = &sample.points()[of[of.len() / 2] * m..][..m];
        let mut mean = vec![];
        self.points_about(pivot, &self.moments(pivot, sample, of).mean(), &mut mean);
        centre.copy_from_slice(&mean);
        let about = self.moments(centre, sample, of);
        let trace: f64 = (0..n).map(|a| about.second(a, a)).sum();
        factor.fill(0.0);
        if trace == 0.0 {
            return; // repeats of one point
        }
        let mut c = vec![0.0; n * n];
        for a in 0..n {
            (0..=a).for_each(|b| c[a * n + b] = about.second(a, b));
            c[a * n + a] += 1e-10 * trace;
        }
        cholesky(&mut c, n);
        (0..n).for_each(|a| factor[a * (a + 1) / 2..][..=a].copy_from_slice(&c[a * n..][..=a]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifold::parse;
    use minvel_engine::random::{Key, Stream};

    const SPACES: [&str; 7] =
        ["euclidean:3", "sphere:2", "projective:2", "torus:2", "hyperbolic:2", "so3", "product(sphere:2,euclidean:1)"];

    /// Rows within about `radius` of a point, and the point.
    fn rows(name: &str, count: usize, radius: f64) -> (LocalKernels, Sample<'static>, Vec<f64>) {
        let manifold = parse(name).unwrap();
        let space = LocalKernels::blank(&manifold).unwrap();
        let mut stream = Stream::new(Key::new(1, 0), 5);
        let v: Vec<f64> = (0..count * space.dim()).map(|_| radius * stream.normal()).collect();
        let (mut rows, mut about) = (vec![], vec![]);
        space.points_about(&manifold.origin(), &v, &mut rows);
        space.points_about(&manifold.origin(), &vec![0.1; space.dim()], &mut about);
        (space, rows.into(), about)
    }

    #[test]
    fn clusters_are_merged_in_any_order_with_exact_counts_and_the_same_moments() {
        for name in SPACES {
            let (space, rows, about) = rows(name, 3000, 0.2);
            let all: Vec<usize> = (0..3000).collect();
            let whole = space.moments(&about, &rows, &all);
            let backwards: Vec<usize> = all.iter().rev().copied().collect();
            for (order, each) in [(&all, 1), (&all, 7), (&backwards, 1), (&backwards, 1234)] {
                let mut parts: Vec<Moments> = order.chunks(each).map(|of| space.moments(&about, &rows, of)).collect();
                // Neighbours in pairs, then pairs in pairs, and so on.
                while parts.len() > 1 {
                    let pairs = parts.chunks(2).map(|pair| {
                        let mut both = pair.last().expect("a chunk is not empty").clone();
                        pair[..pair.len() - 1].iter().for_each(|first| both.merge(first));
                        both
                    });
                    parts = pairs.collect();
                }
                assert_eq!(parts[0].mass, 3000.0);
                let sizes = |v: &[f64]| v.iter().fold(0.0f64, |a, x| a.max(x.abs()));
                let pairs = [(&whole.sum, &parts[0].sum), (&whole.products, &parts[0].products)];
                for (one, other) in pairs {
                    let apart: Vec<f64> = one.iter().zip(other).map(|(a, b)| a - b).collect();
                    assert!(sizes(&apart) <= 1e-12 * sizes(one), "{name}, parts of {each}: {}", sizes(&apart));
                }
            }
        }
    }

    #[test]
    fn a_cluster_stands_at_its_mean_up_to_the_cube_of_its_radius() {
        for name in SPACES {
            let off = |radius: f64| {
                let (space, rows, _) = rows(name, 40, radius);
                let (mut centre, mut factor) =
                    (vec![0.0; space.ambient()], vec![0.0; space.dim() * (space.dim() + 1) / 2]);
                let all: Vec<usize> = (0..40).collect();
                space.cluster(&rows, &all, &mut centre, &mut factor);
                let mean = space.moments(&centre, &rows, &all).mean();
                mean.iter().map(|v| v * v).sum::<f64>().sqrt() / radius
            };
            let (wide, narrow) = (off(0.2), off(0.02));
            println!("{name}: {wide:.1e} of the radius, {narrow:.1e} of a tenth of it");
            assert!(wide < 0.05 && narrow < 1e-14 + wide / 50.0, "{name}");
        }
    }

    #[test]
    fn stand_ins_have_the_moments_of_the_rows_about_any_point() {
        for name in SPACES {
            let worst = |radius: f64| {
                let (space, rows, about) = rows(name, 40, radius);
                let n = space.dim();
                let folds = Folds::known(vec![0; 40]);
                let (clusters, of) = Clusters::of(&space, &rows, (&folds, 1), 1, &Context::bare()).unwrap();
                assert_eq!((clusters.mass(0), of.of(0), clusters.weights(&[0])), (40.0, 0, vec![1.0]));
                let (mut points, mut own) = (vec![], Moments::none(n));
                clusters.stand_ins(&space, 0, &mut points);
                let (mut v, mut logs) = (vec![0.0; 2 * n * n], vec![0.0; 2 * n]);
                space.normals(&about, &points, &mut v, &mut logs);
                own.add(&v, clusters.mass(0));
                let all = space.moments(&about, &rows, &(0..40).collect::<Vec<_>>());
                let pairs = all.products.iter().zip(&own.products).chain(all.sum.iter().zip(&own.sum));
                pairs.map(|(a, b)| (a - b).abs() / 40.0).fold(0.0, f64::max) / (radius * radius)
            };
            let (wide, narrow) = (worst(0.1), worst(0.01));
            println!("{name}: {wide:.1e} of r², {narrow:.1e} for a tenth of it");
            assert!(wide < 0.3 && narrow < 1e-9 + wide / 5.0, "{name}");
        }
    }
}
