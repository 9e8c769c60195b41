//! Wide kernels about groups of points: near points for which a kernel is wide share one.
//!
//! **Statement.** Σ_g w_g N(x; c_g, σ²I) in place of (1/N) Σ_i N(x; c_i, σ²I): halves of halves along the longest coordinate,
//! until the points of a group deviate from their mean c_g by at most σ/2 in each direction; w_g is their share.
//! Kernels that are shaped by many neighbours and not narrower than these lie stand on groups of a sixth as many points.
//! **Conventions.** A choice of the kernels, not an approximation of sums over them: shares are found with the groups, the
//! density is normalised, and is summed to the same error as others. Widths for which there would be nearly as many groups as points stand on the points.
//! **Error.** Gaussians of deviation σ that are σ apart add up to a constant within 10⁻⁸: groups leave no ripples, they only
//! take (σ/2)² or less from the variance of a kernel. **Checked by** tests/densities/kernel_sums.rs.

use super::clusters::{Clusters, Moments};
use super::kernels::{LocalKernels, Sites};
use crate::Error;
use crate::train::Context;

/// Deviations of a group, over the width of its kernel.
const DEVIATION: f64 = 0.5;
/// Groups at most, over the points.
const MOST: f64 = 0.8;

/// Points that are halved again and again.
struct Halving<'a> {
    space: &'a LocalKernels,
    clusters: &'a Clusters<'a>,
    points: &'a [f64],
    total: usize,
    /// Rows of all points, by their weights.
    rows: f64,
    /// The largest variance of a group for each width, the widest first.
    variances: Vec<f64>,
    lists: Vec<Sites>,
    context: &'a Context<'a>,
}

/// Groups of the points `of` for kernels of each width, where there are few enough.
pub(super) fn grouped(
    space: &LocalKernels,
    clusters: &Clusters,
    of: &[usize],
    widths: &[f64],
    context: &Context,
) -> Result<Vec<Option<Sites>>, Error> {
    let mut order: Vec<usize> = (0..widths.len()).collect();
    order.sort_by(|a, b| widths[*b].total_cmp(&widths[*a]));
    let variances: Vec<f64> = order.iter().map(|&k| (DEVIATION * widths[k]).powi(2)).collect();
    let mut halving = Halving::new(space, clusters, of, context);
    (halving.variances, halving.lists) = (variances, vec![Sites::default(); widths.len()]);
    halving.halve(of.to_vec(), 0)?;
    let mut found: Vec<Option<Sites>> = vec![None; widths.len()];
    for (k, sites) in order.into_iter().zip(halving.lists) {
        let few = sites.weights.len() as f64 <= MOST * of.len() as f64;
        found[k] = (few && !sites.weights.is_empty()).then_some(sites);
    }
    Ok(found)
}

/// Groups of at most `most` of the points `of`, with one point of each.
pub(super) fn grouped_by(
    space: &LocalKernels,
    clusters: &Clusters,
    of: &[usize],
    most: usize,
    context: &Context,
) -> (Sites, Vec<usize>) {
    let halving = Halving::new(space, clusters, of, context);
    let (mut sites, mut members) = (Sites::default(), vec![]);
    let mut left = vec![of.to_vec()];
    while let Some(mut own) = left.pop() {
        if own.len() > most {
            let right = halving.split(&mut own);
            left.extend([right, own]);
            continue;
        }
        let middle = halving.middle(&own);
        sites.points.extend(middle.centre);
        sites.weights.push(middle.share);
        members.push(own[own.len() / 2]);
    }
    (sites, members)
}

impl Sites {
    /// The same in another order.
    pub(super) fn reordered(&self, order: &[usize], m: usize) -> Sites {
        let points = order.iter().flat_map(|&k| &self.points[k * m..][..m]).copied().collect();
        Sites { points, weights: order.iter().map(|&k| self.weights[k]).collect(), groups: vec![] }
    }
}

/// The mean of some points, their share of the rows, and their largest variance.
struct Middle {
    centre: Vec<f64>,
    share: f64,
    variance: f64,
}

impl<'a> Halving<'a> {
    fn new(space: &'a LocalKernels, clusters: &'a Clusters, of: &[usize], context: &'a Context) -> Self {
        let rows = of.iter().map(|&i| clusters.mass(i)).sum();
        let (points, total, variances, lists) = (&*clusters.points, of.len(), vec![], vec![]);
        Halving { space, clusters, points, total, rows, variances, lists, context }
    }

    /// Leaves one half, and gives the other.
    fn split(&self, of: &mut Vec<usize>) -> Vec<usize> {
        let m = self.space.ambient();
        let longest = super::longest(self.points, m, of);
        let middle = of.len() / 2;
        let by = |i: &usize| self.points[i * m + longest];
        of.select_nth_unstable_by(middle, |a, b| by(a).total_cmp(&by(b)).then(a.cmp(b)));
        of.split_off(middle)
    }

    /// Groups for the widths from `first` on.
    fn halve(&mut self, mut of: Vec<usize>, mut first: usize) -> Result<(), Error> {
        let most = MOST * self.total as f64;
        let Middle { centre, share, variance } = self.middle(&of);
        // One cluster of rows may be wider than a kernel; it is not cut again.
        let whole = of.len() == 1;
        while first < self.variances.len() && (whole || variance <= self.variances[first]) {
            let sites = &mut self.lists[first];
            sites.points.extend_from_slice(&centre);
            sites.weights.push(share);
            first += 1;
        }
        // Widths that have too many groups already are given up.
        let left = self.variances.len().min(self.lists.partition_point(|s| s.weights.len() as f64 <= most));
        if first >= left {
            return Ok(());
        }
        if of.len() > 10_000 {
            self.context.go_on()?;
        }
        let right = self.split(&mut of);
        self.halve(of, first)?;
        self.halve(right, first)
    }

    /// The mean of some points, and their largest variance about it, in normal coordinates about one of them.
    fn middle(&self, of: &[usize]) -> Middle {
        let (m, n) = (self.space.ambient(), self.space.dim());
        let pivot = &self.points[of[of.len() / 2] * m..][..m];
        let (mut points, mut v, mut moments) = (vec![], vec![], Moments::none(n));
        for &i in of {
            points.clear();
            self.clusters.stand_ins(self.space, i, &mut points);
            v.resize(points.len() / m * n, 0.0);
            let pairs = points.chunks(m).zip(v.chunks_mut(n));
            pairs.for_each(|(x, v)| {
                self.space.to_normal(pivot, x, v);
            });
            moments.add(&v, self.clusters.mass(i));
        }
        let mean = moments.mean();
        let variance = (0..n).map(|j| moments.second(j, j) - mean[j].powi(2)).fold(0.0, f64::max);
        let mut centre = vec![0.0; m];
        self.space.point_at(pivot, &mean, &mut centre);
        Middle { centre, share: moments.mass / self.rows, variance }
    }
}
