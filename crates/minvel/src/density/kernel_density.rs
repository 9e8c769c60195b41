//! Kernel density with the natural kernel of the manifold, its bandwidth by cross-validation.
//!
//! **Statement.** log p(x) = log((1−u) Σ_i w_i K_κ(x; c_i) + u/vol), κ the maximiser of the held-out log-likelihood.
//! **Source.** mardia2000directional, section 12.2 (kernels on spheres); docs/math §5 for the normalisers.
//! **Conventions.** Σ w_i = 1. Ten folds, drawn by seed; bandwidths κ₀·2^k first, κ₀ an eighth of 1/(mean of −t), then
//! golden sections of log κ between the neighbours of the best.
//! **Error.** None of the density but rounding: sums are taken relative to their largest term. log κ to 0.05, which costs
//! second order. Repeated points make the likelihood grow without bound in κ: then κ is at the edge, and it says so.
//! **Checked by** tests/densities/density.rs, tests/densities/density_fit.rs.

use super::cloud::{Cloud, exp_below_zero, largest, sum_of_exponentials};
use super::natural::{LEAST, MOST};
use super::{Bump, Density, Sample, blend, blended_draws, by_rows, draw, rows, sample, share, uniform_points};
use crate::train::Context;
use crate::{Error, Manifold};
use minvel_engine::random::{Key, Stream};
use minvel_engine::{Loop, widest};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Σ w_i K_κ(x; c_i), with a share of the uniform law.
#[derive(Clone, Debug)]
pub struct KernelDensity {
    /// Centres as points, row-major.
    centres: Vec<f64>,
    bump: Bump,
    cloud: Cloud,
    weights: Vec<f64>,
    kappa: f64,
    share: Option<(f64, f64)>,
}

/// How a bandwidth is looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// Folds of the training points.
    pub folds: usize,
    /// What the folds are drawn by.
    pub seed: u64,
    /// u, the share of the uniform law where the volume is finite.
    pub uniform: f64,
}

impl Search {
    /// How often a search looks at every point: once for all doublings of κ, then in golden sections.
    pub const PASSES: usize = 1 + SECTIONS;
}

impl Default for Search {
    fn default() -> Self {
        Search { folds: 10, seed: 0, uniform: 0.01 }
    }
}

/// A bandwidth and what was found on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct BandwidthSearch {
    /// κ.
    pub kappa: f64,
    /// The mean held-out log density at κ.
    pub log_density: f64,
    /// True where the best bandwidth is the least or most that was tried: the likelihood has no maximum inside.
    pub at_edge: bool,
    /// All (κ, mean held-out log density), in increasing order of κ.
    pub tried: Vec<(f64, f64)>,
}

/// Doublings that the ladder of points that are left out begins later where the volume is infinite.
const UNBOUNDED: usize = 2;

/// What points say of each other.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// Each κ, twice the one before.
    pub kappas: Vec<f64>,
    /// log p₋ᵢ(c_i) at each κ, `[points, kappas]`.
    pub logs: Vec<f64>,
    /// u, 0 where the volume is infinite.
    pub uniform: f64,
}

/// Bandwidths of the first pass, each twice the one before.
const LEVELS: usize = 28;

impl KernelDensity {
    /// From centres (row-major), κ and the share u of the uniform law.
    pub fn new(bump: Bump, centres: &[f64], kappa: f64, uniform: f64) -> Self {
        let cloud = bump.cloud(centres);
        assert!(cloud.count > 0, "a kernel density needs a centre");
        assert!(kappa > 0.0 && kappa.is_finite(), "κ is positive, not {kappa}");
        let share = share(uniform, bump.log_volume());
        KernelDensity {
            centres: centres.to_vec(),
            weights: vec![1.0 / cloud.count as f64; cloud.count],
            bump,
            cloud,
            kappa,
            share,
        }
    }

    /// With positive weights of the centres in place of equal ones; they are divided by their sum.
    pub fn weighted(self, weights: &[f64]) -> Self {
        assert!(weights.len() == self.cloud.count, "{} weights for {} centres", weights.len(), self.cloud.count);
        assert!(weights.iter().all(|w| *w > 0.0), "weights are positive");
        let total: f64 = weights.iter().sum();
        KernelDensity { weights: weights.iter().map(|w| w / total).collect(), ..self }
    }

    /// The kernel.
    pub fn bump(&self) -> &Bump {
        &self.bump
    }

    /// κ.
    pub fn kappa(&self) -> f64 {
        self.kappa
    }

    /// u, 0 where the volume is infinite.
    pub fn uniform(&self) -> f64 {
        self.share.map_or(0.0, |(uniform, _)| uniform)
    }

    /// t(x, c_j), −∞ in the range, and the largest.
    #[inline(always)]
    fn statistics_without(&self, x: &[f64], without: Range<usize>, statistics: &mut [f64]) -> f64 {
        self.cloud.statistics(x, statistics);
        statistics[without].fill(f64::NEG_INFINITY);
        largest(statistics)
    }

    /// log p of each query, where query i does not see the centres of `without(i)`, whose weight goes to the others.
    fn log_densities(
        &self,
        queries: &Cloud,
        without: impl Fn(usize) -> Range<usize> + Sync,
        context: &Context,
    ) -> Result<Vec<f64>, Error> {
        let log_normaliser = self.bump.log_normaliser(self.kappa);
        by_rows(queries.count, 1, context, |first, out| {
            let mut statistics = vec![0.0; self.cloud.count];
            for (i, out) in (first..).zip(out) {
                let hidden = without(i);
                let left = 1.0 - self.weights[hidden.clone()].iter().sum::<f64>();
                let (x, statistics) = (&queries.row(i), statistics.as_mut_slice());
                let mut sum = [0.0];
                let top = widest(OnePoint { density: self, x, hidden, kappa: self.kappa, statistics, sums: &mut sum });
                *out = blend(self.kappa * top + (sum[0] / left).ln() - log_normaliser, self.share);
            }
        })
    }

    /// log p₋ᵢ(c_i): each centre under the density of all others.
    pub fn leave_one_out(&self, context: &Context) -> Result<Vec<f64>, Error> {
        assert!(self.cloud.count > 1, "leaving one out needs two centres");
        self.log_densities(&self.cloud, |i| i..i + 1, context)
    }

    /// The density of the training points whose κ has the largest log-likelihood on the validation points, or where there
    /// are none, by folds of the training points, which keep groups together.
    pub fn cross_validated<'p>(
        bump: Bump,
        train: impl Into<Sample<'p>>,
        validation: Option<&[f64]>,
        search: &Search,
        context: &Context,
    ) -> Result<(KernelDensity, BandwidthSearch), Error> {
        let train = &train.into();
        assert!(rows(train.points(), bump.ambient()) > 1, "a bandwidth needs two points");
        let (folded, folds) = folded(train, bump.ambient(), search);
        let fold = |i: usize| folds[folds.partition_point(|f| f.end <= i)].clone();
        let mut density = KernelDensity::of(bump, if validation.is_some() { train } else { &folded }, search.uniform);
        let bandwidth = match validation.map(|v| density.bump.cloud(v)) {
            Some(queries) => density.clone().best(&queries, &[], |_| 0..0, context)?,
            None => density.clone().best(&density.cloud, folded.weights(), fold, context)?,
        };
        density.kappa = bandwidth.kappa;
        Ok((density, bandwidth))
    }

    /// Of a sample, with κ = 1.
    fn of(bump: Bump, sample: &Sample, uniform: f64) -> Self {
        let density = KernelDensity::new(bump, sample.points(), 1.0, uniform);
        if sample.weights().is_empty() { density } else { density.weighted(sample.weights()) }
    }

    /// What the other points say of each point, at every κ of a ladder of doublings; repeats of a point, and points of its group,
    /// are left out with it.
    ///
    /// Kernels are no narrower than 1.5 times the median distance to the nearest other point, over √n (4 times in one
    /// dimension): few points would now and then ask for needles.
    pub fn left_out<'p>(
        bump: Bump,
        points: impl Into<Sample<'p>>,
        uniform: f64,
        context: &Context,
    ) -> Result<LeftOut, Error> {
        let (m, sample) = (bump.ambient(), &points.into());
        let points = sample.points();
        let bits = |i: &usize| points[i * m..][..m].iter().map(|x| (x + 0.0).to_bits()).collect::<Vec<u64>>();
        let mut order: Vec<usize> = (0..rows(points, m)).collect();
        // Groups of rows stand together, or repeats of a point.
        let grouped = !sample.groups().is_empty();
        order.sort_by_cached_key(|i| (if grouped { sample.group(*i) } else { 0 }, bits(i)));
        let together =
            |a: &usize, b: &usize| if grouped { sample.group(*a) == sample.group(*b) } else { bits(a) == bits(b) };
        let groups: Vec<Range<usize>> = order
            .chunk_by(together)
            .scan(0, |at, group| {
                *at += group.len();
                Some(*at - group.len()..*at)
            })
            .collect();
        assert!(groups.len() > 1, "a bandwidth needs two points");
        let group = |i: usize| groups[groups.partition_point(|g| g.end <= i)].clone();
        let density = KernelDensity::of(bump, &sample.select(&order, m), uniform);
        let (least, sharpest) = (density.least(&density.cloud, group), density.sharpest(&groups));
        let mut kappas = density.ladder(least);
        if density.share.is_none() {
            // Without end there is no uniform law to come near to.
            kappas.drain(..UNBOUNDED.min(kappas.len() - 1));
        }
        let widest = kappas[0];
        kappas.retain(|kappa| *kappa <= sharpest.max(widest));
        let logs = density.doublings(&density.cloud, group, &kappas, context)?;
        let count = kappas.len();
        let mut in_order = vec![0.0; logs.len()];
        for (&i, row) in order.iter().zip(logs.chunks(count)) {
            in_order[i * count..][..count].copy_from_slice(row);
        }
        Ok(LeftOut { kappas, logs: in_order, uniform: density.uniform() })
    }

    /// The κ of the narrowest kernel that [`KernelDensity::left_out`] takes.
    fn sharpest(&self, groups: &[Range<usize>]) -> f64 {
        // On a line neighbours on either side make the nearest one very near.
        let wider = if self.bump.dim() == 1 { 4.0 } else { 1.5 };
        let mut statistics = vec![0.0; self.cloud.count];
        let nearest = |g: &Range<usize>| -self.statistics_without(&self.cloud.row(g.start), g.clone(), &mut statistics);
        let mut nearest: Vec<f64> = groups.iter().map(nearest).collect();
        nearest.sort_by(f64::total_cmp);
        let square = 2.0 * nearest[nearest.len() / 2] * wider * wider / self.bump.dim() as f64;
        (1.0 / square).clamp(LEAST, MOST)
    }

    /// The κ under which the queries have the largest likelihood, by their weights (none: all equal).
    fn best(
        &mut self,
        queries: &Cloud,
        weights: &[f64],
        without: impl Fn(usize) -> Range<usize> + Sync + Copy,
        context: &Context,
    ) -> Result<BandwidthSearch, Error> {
        let least = self.least(queries, without);
        let kappas = self.ladder(least);
        let all = self.doublings(queries, without, &kappas, context)?;
        let column = |k: usize| all.iter().skip(k).step_by(kappas.len()).copied().collect::<Vec<f64>>();
        let mean = |k: usize| sample::mean(&column(k), weights);
        let mut tried: Vec<(f64, f64)> = kappas.iter().enumerate().map(|(k, kappa)| (*kappa, mean(k))).collect();
        let best =
            |tried: &[(f64, f64)]| (0..tried.len()).max_by(|a, b| tried[*a].1.total_cmp(&tried[*b].1)).unwrap_or(0);
        let top = best(&tried);
        let at_edge = top == 0 || top + 1 == tried.len();
        if !at_edge {
            let mut value = |log_kappa: f64| {
                self.kappa = log_kappa.exp();
                let all = self.log_densities(queries, without, context)?;
                let mean = sample::mean(&all, weights);
                tried.push((self.kappa, mean));
                Ok(mean)
            };
            let centre = least.ln() + top as f64 * std::f64::consts::LN_2;
            golden(centre - std::f64::consts::LN_2, centre + std::f64::consts::LN_2, &mut value)?;
            tried.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let (kappa, log_density) = tried[best(&tried)];
        Ok(BandwidthSearch { kappa, log_density, at_edge, tried })
    }

    /// An eighth of 1/(mean of −t over some pairs).
    fn least(&self, queries: &Cloud, without: impl Fn(usize) -> Range<usize>) -> f64 {
        let mut statistics = vec![0.0; self.cloud.count];
        let step = queries.count.div_ceil(100);
        let (mut sum, mut count) = (0.0, 0);
        for i in (0..queries.count).step_by(step) {
            self.cloud.statistics(&queries.row(i), &mut statistics);
            let hidden = without(i);
            sum += statistics.iter().enumerate().filter(|(j, _)| !hidden.contains(j)).map(|(_, t)| t).sum::<f64>();
            count += self.cloud.count - hidden.len();
        }
        let spread = -sum / count as f64;
        let largest = self.bump.scales().iter().fold(0.0f64, |a, s| a.max(*s));
        let smallest = self.bump.scales().iter().fold(f64::INFINITY, |a, s| a.min(*s));
        let least = if spread > 0.0 { 0.125 / spread } else { 1.0 };
        least.clamp(LEAST / smallest, MOST / largest)
    }

    /// κ = least·2^k, as far as kernels can be computed.
    fn ladder(&self, least: f64) -> Vec<f64> {
        let most = MOST / self.bump.scales().iter().fold(0.0f64, |a, s| a.max(*s));
        (0..LEVELS).map(|k| least * 2f64.powi(k as i32)).filter(|k| *k <= most).collect()
    }

    /// Log densities at each κ of a ladder, a row for each query: one exponential per pair, which is then squared again and
    /// again.
    fn doublings(
        &self,
        queries: &Cloud,
        without: impl Fn(usize) -> Range<usize> + Sync,
        kappas: &[f64],
        context: &Context,
    ) -> Result<Vec<f64>, Error> {
        let normalisers: Vec<f64> = kappas.iter().map(|k| self.bump.log_normaliser(*k)).collect();
        by_rows(queries.count, kappas.len(), context, |first, out| {
            let mut statistics = vec![0.0; self.cloud.count];
            for (i, out) in (first..).zip(out.chunks_mut(kappas.len())) {
                let hidden = without(i);
                let left = 1.0 - self.weights[hidden.clone()].iter().sum::<f64>();
                let (x, statistics) = (&queries.row(i), statistics.as_mut_slice());
                let top = widest(OnePoint { density: self, x, hidden, kappa: kappas[0], statistics, sums: out });
                for (k, out) in out.iter_mut().enumerate() {
                    *out = blend(kappas[k] * top + (*out / left).ln() - normalisers[k], self.share);
                }
            }
        })
    }
}

impl Density for KernelDensity {
    fn name(&self) -> &str {
        "kernel density"
    }

    fn manifold(&self) -> Arc<dyn Manifold> {
        self.bump.manifold()
    }

    fn log_density(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        self.log_densities(&self.bump.cloud(points), |_| 0..0, context)
    }

    fn sample(&self, count: usize, seed: u64, context: &Context) -> Result<Vec<f64>, Error> {
        let m = self.bump.ambient();
        let mut stream = Stream::new(Key::new(seed, 0), 0x4b44_4531);
        let spread = uniform_points(&*self.manifold(), count, seed, context)?;
        Ok(blended_draws(self.share, &spread, m, &mut stream, |stream| {
            let centre = draw::weighted(&self.weights, stream) * m;
            self.bump.sample(&self.centres[centre..][..m], self.kappa, stream)
        }))
    }
}

/// Sums over all centres at one point, at κ and its doublings.
struct OnePoint<'a> {
    density: &'a KernelDensity,
    x: &'a [f64],
    /// Centres that are not seen.
    hidden: Range<usize>,
    kappa: f64,
    statistics: &'a mut [f64],
    sums: &'a mut [f64],
}

impl Loop for OnePoint<'_> {
    /// The largest t.
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let OnePoint { density, x, hidden, kappa, statistics, sums } = self;
        let top = density.statistics_without(x, hidden, statistics);
        match sums {
            [sum] => *sum = sum_of_exponentials(statistics, &density.weights, kappa, top),
            _ => sums_by_doubling(statistics, &density.weights, kappa, top, sums),
        }
        top
    }
}

/// Σ w_j e^{κ2^k(t_j − top)} for k = 0, 1, …; overwrites the statistics.
#[inline(always)]
fn sums_by_doubling(statistics: &mut [f64], weights: &[f64], kappa: f64, top: f64, sums: &mut [f64]) {
    sums.fill(0.0);
    for (t, w) in statistics.chunks_mut(256).zip(weights.chunks(256)) {
        t.iter_mut().for_each(|t| *t = exp_below_zero(kappa * (*t - top)));
        for sum in sums.iter_mut() {
            let mut lanes = [0.0; 4];
            let (t, t_rest) = t.as_chunks_mut::<4>();
            let (w, w_rest) = w.as_chunks::<4>();
            for (t, w) in t.iter_mut().zip(w) {
                for l in 0..4 {
                    lanes[l] += w[l] * t[l];
                    // Squares below the normal numbers would be slow, and count for nothing.
                    t[l] = if t[l] < 1e-140 { 0.0 } else { t[l] * t[l] };
                }
            }
            for (t, w) in t_rest.iter_mut().zip(w_rest) {
                lanes[0] += w * *t;
                *t = if *t < 1e-140 { 0.0 } else { *t * *t };
            }
            *sum += lanes.iter().sum::<f64>();
        }
    }
}

/// The training points sorted by fold, and where each fold is.
fn folded(train: &Sample, ambient: usize, search: &Search) -> (Sample<'static>, Vec<Range<usize>>) {
    let count = train.rows(ambient);
    let folds = search.folds.clamp(2, count);
    let mut stream = Stream::new(Key::new(search.seed, 0), 0x464F_4C44);
    let mut places: HashMap<usize, f64> = HashMap::new();
    let mut place = |group: usize| *places.entry(group).or_insert_with(|| super::draw::uniform(&mut stream));
    let mut order: Vec<(f64, usize)> = (0..count).map(|i| (place(train.group(i)), i)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let order: Vec<usize> = order.into_iter().map(|(_, i)| i).collect();
    // A fold ends where a group does.
    let group = |k: usize| train.group(order[k]);
    let end = |f: usize| {
        let inside = |k: &usize| *k < count && *k > 0 && group(*k) == group(*k - 1);
        (f * count / folds..).find(|k| !inside(k)).expect("the end ends a group")
    };
    let starts = (0..folds).map(|f| end(f)..end(f + 1)).collect();
    (train.select(&order, ambient), starts)
}

/// Places at which golden sections look.
const SECTIONS: usize = 8;

/// Narrows the bracket of a maximum by the golden ratio.
pub(super) fn golden(
    mut low: f64,
    mut high: f64,
    value: &mut impl FnMut(f64) -> Result<f64, Error>,
) -> Result<(), Error> {
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let inner = |low: f64, high: f64| (high - ratio * (high - low), low + ratio * (high - low));
    let (mut a, mut b) = inner(low, high);
    let (mut at_a, mut at_b) = (value(a)?, value(b)?);
    for _ in 2..SECTIONS {
        if at_a > at_b {
            (high, b, at_b) = (b, a, at_a);
            a = inner(low, high).0;
            at_a = value(a)?;
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = inner(low, high).1;
            at_b = value(b)?;
        }
    }
    Ok(())
}
