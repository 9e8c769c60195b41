//! A density of local kernels: each centre spreads its mass as far, and in the directions, as its neighbours lie.
//!
//! **Statement.** p(x) = π₀/vol + Σ_s π_s (1/N) Σ_i N(v_i(x); 0, c_s Σ_i^{(s)})·|dv/dvol|, v_i the normal coordinates about
//! centre i; Σ_i^{(s)} is σ_s² I (fixed widths) or the second moments of the k_s nearest points about i, shrunk towards
//! round. Beside them stand mixtures, of normal laws (`components`) and of natural ones (`natural_mixture`). The shares π maximise the likelihood of points that were left out, a concave problem, solved by EM.
//! **Source.** vincent2003manifold (local covariances); mardia2000directional (wrapped laws). The shares are ours.
//! **Conventions.** Folds keep repeated points together, so that repeats of a point do not call for ever narrower kernels.
//! **Error.** On a manifold that is no product of model spaces coordinates and volumes come from its own exp and log
//! ([`Manifold::exp_log_volume`]), else all is the same. Widths stop at an eighth of the injectivity radius, and kernels on curved spaces at nine tenths of it: what is
//! lost is e⁻²⁶ in two dimensions; otherwise rounding. Scores are exact but on hyperbolic space, where differences of coordinates err by about 10⁻⁹.
//! **Checked by** tests/densities/local_kernels.rs.

mod card;
mod classes;
mod clusters;
mod components;
mod coordinates;
mod draws;
mod folds;
mod geometry;
mod groups;
mod index;
mod kernels;
mod kit;
mod lanes;
mod layer;
mod linkage;
mod natural_mixture;
mod neighbours;
mod octet;
mod part;
mod places;
mod plain;
mod reweighted;
mod shape;
mod shares;
mod slope;
mod starts;
mod sums;

pub use kernels::{Family, Kind, LocalKernels};
pub(crate) use linkage::{Sets, link, nearest};
pub(crate) use reweighted::Reweighted;
pub(crate) use shape::cholesky;

use super::sample::Sample;
use super::{FEW_AT_ONCE, side_by_side};
use crate::train::{Context, Fingerprint, lists};
use crate::{Error, Manifold};
use clusters::Clusters;
use folds::Folds;
use kit::{Kit, Planned};
use neighbours::Neighbours;
use serde::{Deserialize, Serialize};
use shares::{ROUNDS, Rows, log_mean, shares};
use std::sync::Arc;

/// How a density of local kernels is made of points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalSettings {
    /// Neighbours whose second moments shape a kernel, for each dimension.
    pub neighbours: Vec<f64>,
    /// Factors c of the local covariances.
    pub factors: Vec<f64>,
    /// How many fixed widths there are.
    pub widths: usize,
    /// How far covariances are shrunk towards round ones, from 0 to 1.
    pub shrinkage: f64,
    /// Parts into which points are split to find the shares.
    pub folds: usize,
    /// Centres at most: of more points, means of clusters of them.
    pub centres: usize,
    /// Points from which wide kernels stand on groups of them.
    #[serde(default = "LocalSettings::before_there_were_groups")]
    pub grouped: usize,
    /// Classes of kernels by how near their neighbours are, each with shares of its own, where there are rows enough.
    #[serde(default = "LocalSettings::before_there_were_classes")]
    pub classes: usize,
    /// Components of mixtures that stand beside the kernels, where there are points enough.
    #[serde(default)]
    pub mixtures: Vec<usize>,
    /// What families of kernels that are left out may cost in all, in nats of the held-out log density of a point.
    #[serde(default)]
    pub worth: f64,
    /// Relative error of sums over kernels; 0 adds up everything.
    #[serde(default = "LocalSettings::before_there_was_an_index")]
    pub tolerance: f64,
}

impl Default for LocalSettings {
    fn default() -> Self {
        LocalSettings {
            neighbours: vec![3.0, 12.0],
            factors: vec![0.03, 0.1, 0.3, 1.0, 2.0],
            widths: 12,
            shrinkage: 0.003,
            folds: 5,
            centres: 2_000_000,
            grouped: 2000,
            classes: 4,
            mixtures: vec![1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256],
            worth: 2e-4,
            tolerance: kernels::TOLERANCE,
        }
    }
}

/// Rows that are known by parts of them.
pub(crate) struct RowParts {
    /// Points that stand for the rows of each part in equal shares, row-major, part after part.
    pub points: Vec<f64>,
    /// How many of them each part has.
    pub stand_ins: Vec<usize>,
    /// Rows of each part.
    pub rows: Vec<u64>,
}

/// What comes of points: the density, and for each point what the others say about it.
#[derive(Clone, Debug)]
pub struct LocalFit {
    /// The density of all points.
    pub density: LocalKernels,
    /// log p at each of the points [`LocalSettings::scored`] by the density of the other folds, with the same shares.
    pub held_out: Vec<f64>,
    /// ∂ log p at each of them by the density of the other folds, in coordinates, where asked for.
    pub derivative: Vec<f64>,
}

impl LocalSettings {
    fn before_there_were_groups() -> usize {
        usize::MAX
    }

    fn before_there_were_classes() -> usize {
        1
    }

    fn before_there_was_an_index() -> f64 {
        kernels::TOLERANCE
    }

    /// The density of points of a manifold; from the context's checkpoint if there is one.
    pub fn fit<'p>(
        &self,
        manifold: &Arc<dyn Manifold>,
        points: impl Into<Sample<'p>>,
        seed: u64,
        context: &Context,
        with_derivative: bool,
    ) -> Result<LocalFit, Error> {
        let sample = &points.into();
        let inputs = inputs(self, sample, seed).and(&[f64::from(with_derivative)]);
        let (lists, families) = context.kept("kernels", inputs, || {
            let LocalFit { density, held_out, derivative } =
                self.made(manifold, sample, seed, context, with_derivative)?;
            let tensors = density.tensors();
            let tensors = tensors.iter().map(|(name, values)| (name.as_str(), *values));
            let more = [("held-out", held_out.as_slice()), ("derivative", derivative.as_slice())];
            Ok((lists(tensors.chain(more)), density.families))
        })?;
        let list = |name: &str| lists.get(name).unwrap_or_default();
        let density = LocalKernels::from_tensors(manifold, &families, |name| lists.get(name));
        let density = density.expect("the lists of a density").with_tolerance(self.tolerance);
        Ok(LocalFit { density, held_out: list("held-out").to_vec(), derivative: list("derivative").to_vec() })
    }

    fn made(
        &self,
        manifold: &Arc<dyn Manifold>,
        sample: &Sample,
        seed: u64,
        context: &Context,
        with_derivative: bool,
    ) -> Result<LocalFit, Error> {
        let (m, points) = (manifold.ambient(), sample.points());
        let blank = LocalKernels::blank(manifold)?.with_tolerance(self.tolerance);
        let by_point = Folds::new(sample, m, self.folds, seed);
        let (clusters, by_cluster) = match points.len() / m > self.centres {
            false => (Clusters::rows(sample), None),
            true => context.stage("clusters", self.centres, "clusters", || {
                let (clusters, folds) = Clusters::of(&blank, sample, (&by_point, self.folds), self.centres, context)?;
                Ok((clusters, Some(folds)))
            })?,
        };
        let kit = Kit::new(self, blank, &clusters, context)?;
        let folds = by_cluster.as_ref().unwrap_or(&by_point);
        let scored = self.scored(points.len() / m);
        let rows = scored.len();
        let weights = sample.select(&scored, m);
        let weights = weights.weights();
        // The scored points of a fold, which they are, and the density of the others.
        let part = |fold: usize, plan: &[Planned], context: &Context| {
            let inside: Vec<usize> = (0..rows).filter(|&k| by_point.of(scored[k]) == fold).collect();
            let own: Vec<f64> = inside.iter().flat_map(|&k| &points[scored[k] * m..][..m]).copied().collect();
            let others = folds.parts(fold).1;
            Ok::<_, Error>((own, inside, kit.build(&others, &|i| folds.of(i) == fold, plan, context)?))
        };
        let plan = kit.plan();
        let (kept, ()) = context.kept("shares", inputs(self, sample, seed), || {
            let uniform_first = kit.blank.log_volume().is_some();
            let (running, logs) = context.stage("kernels", rows, "rows", || {
                let (own, inside, density) = part(0, &plan, context)?;
                let own = sample_of(&own, &inside, weights);
                let (shares, density) = self.first_shares(density, &own, uniform_first, context)?;
                let running = with_shares(&plan, &shares);
                let mut said = vec![(inside, density.log_families(own.points(), context)?)];
                drop(density);
                said.extend(self.other_folds(rows, context, |fold, context| {
                    let (own, inside, density) = part(fold, &running, context)?;
                    Ok((inside, density.log_families(&own, context)?))
                })?);
                let logs = in_their_order(rows, running.len(), &said);
                Ok((running, logs))
            })?;
            let equal = vec![1.0 / running.len() as f64; running.len()];
            let rows = Rows { logs: &logs, weights, uniform_first };
            let found = shares(&rows, equal, ROUNDS, self.worth, context)?;
            let held_out: Vec<f64> = logs.chunks(running.len()).map(|row| log_mean(row, &found)).collect();
            let share = |planned| running.iter().position(|own| own == planned).map_or(0.0, |k| found[k]);
            let shares: Vec<f64> = plan.iter().map(share).collect();
            Ok((lists([("shares", shares.as_slice()), ("held-out", held_out.as_slice())]), ()))
        })?;
        let list = |name: &str| kept.get(name).expect("kept under this name");
        let all: Vec<usize> = (0..clusters.points.len() / m).collect();
        let found: Vec<f64> = list("shares").iter().copied().filter(|share| *share > 0.0).collect();
        let plan = with_shares(&plan, list("shares"));
        let density = kit.build(&all, &|_| false, &plan, context)?.with_shares(&found);
        let derivative = match with_derivative {
            false => vec![],
            true => context.stage("folds", rows, "rows", || {
                let slopes = |fold: usize, context: &Context| {
                    let (own, inside, density) = part(fold, &plan, context)?;
                    Ok((inside, density.with_shares(&found).derivative(&own, context)?))
                };
                let mut said = vec![slopes(0, context)?];
                said.extend(self.other_folds(rows, context, slopes)?);
                Ok(in_their_order(rows, m, &said))
            })?,
        };
        Ok(LocalFit { density, held_out: list("held-out").to_vec(), derivative })
    }

    /// What comes of each fold but the first: of several at a time where points are few enough that the memory of all of them together does
    /// not matter.
    fn other_folds<T: Send>(
        &self,
        rows: usize,
        context: &Context,
        work: impl Fn(usize, &Context) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        if rows > TOGETHER {
            return (1..self.folds).map(|fold| work(fold, context)).collect();
        }
        side_by_side(self.folds - 1, FEW_AT_ONCE, context, |k, context| work(k + 1, context))
    }

    /// Shares by some of the points of the first fold, where there are many, and the density with them: families that have none are
    /// out of the running. Looking at all families from all points is what costs most; in many dimensions, where kernels reach
    /// far, a few points say first which families are worth a look from more.
    fn first_shares(
        &self,
        density: LocalKernels,
        own: &Sample,
        uniform_first: bool,
        context: &Context,
    ) -> Result<(Vec<f64>, LocalKernels), Error> {
        let (m, rows) = (density.ambient(), own.rows(density.ambient()));
        let equal = |density: &LocalKernels| vec![1.0 / density.families.len() as f64; density.families.len()];
        if self.worth == 0.0 || rows <= FIRST {
            return Ok((equal(&density), density));
        }
        let told = |density: &LocalKernels, points: usize| -> Result<Vec<f64>, Error> {
            let some = own.select(&(0..points).map(|k| k * rows / points).collect::<Vec<usize>>(), m);
            let logs = density.log_families(some.points(), &context.quiet())?;
            let rows = Rows { logs: &logs, weights: some.weights(), uniform_first };
            shares(&rows, equal(density), ROUNDS, self.worth, context)
        };
        if density.dim() <= FEW_DIMENSIONS {
            let found = told(&density, FIRST)?;
            let density = density.with_shares(&found);
            return Ok((found, density));
        }
        let mut found = told(&density, GLANCE)?;
        // What is quickly looked at is judged by the many points alone.
        for (family, share) in found.iter_mut().enumerate() {
            if *share == 0.0 && density.kernels_of(family) <= LIGHT {
                *share = 1.0 / density.families.len() as f64;
            }
        }
        let density = density.with_shares(&found);
        let second = told(&density, FIRST)?;
        // The families that the glance has left, in their order.
        found.iter_mut().filter(|share| **share > 0.0).zip(&second).for_each(|(share, own)| *share = *own);
        Ok((found, density.with_shares(&second)))
    }

    /// The density of clusters of points, or of the points where they are few, with the shares that others of the same law ask
    /// for: no folds are needed where there are as many points as one likes.
    pub(crate) fn of_many<'p>(
        &self,
        manifold: &Arc<dyn Manifold>,
        points: impl Into<Sample<'p>>,
        others: &[f64],
        context: &Context,
    ) -> Result<LocalKernels, Error> {
        let blank = LocalKernels::blank(manifold)?.with_tolerance(self.tolerance);
        let sample = points.into();
        let rows = sample.rows(manifold.ambient());
        let together = Folds::known(vec![0; rows]);
        let clusters = match rows > self.centres {
            true => Clusters::of(&blank, &sample, (&together, 1), self.centres, context)?.0,
            false => Clusters::rows(&sample),
        };
        self.of_clusters(blank, &clusters, &others.into(), context)
    }

    /// The density of rows that are known by parts of them, with the shares that others of the same law ask for.
    pub(crate) fn of_parts(
        &self,
        manifold: &Arc<dyn Manifold>,
        parts: &RowParts,
        others: &Sample,
        context: &Context,
    ) -> Result<LocalKernels, Error> {
        let blank = LocalKernels::blank(manifold)?.with_tolerance(self.tolerance);
        let (order, mut ends): (Vec<usize>, _) = ((0..parts.points.len() / manifold.ambient()).collect(), vec![0]);
        parts.stand_ins.iter().for_each(|count| ends.push(ends[ends.len() - 1] + count));
        let counts = parts.rows.iter().map(|rows| u32::try_from(*rows).unwrap_or(u32::MAX)).collect();
        let masses = parts.rows.iter().map(|rows| *rows as f64).collect();
        let sample = Sample::from(&parts.points);
        let clusters = Clusters::gathered(&blank, &sample, (&order, &ends), (counts, masses), context)?;
        self.of_clusters(blank, &clusters, others, context)
    }

    fn of_clusters(
        &self,
        blank: LocalKernels,
        clusters: &Clusters,
        others: &Sample,
        context: &Context,
    ) -> Result<LocalKernels, Error> {
        let m = blank.ambient();
        let kit = Kit::new(self, blank, clusters, context)?;
        let all: Vec<usize> = (0..clusters.points.len() / m).collect();
        let density = kit.build(&all, &|_| false, &kit.plan(), context)?;
        let logs =
            context.stage("kernels", others.rows(m), "rows", || density.log_families(others.points(), context))?;
        let equal: Vec<f64> = density.families.iter().map(|family| family.share).collect();
        let rows = Rows { logs: &logs, weights: others.weights(), uniform_first: density.log_volume().is_some() };
        let shares = shares(&rows, equal, ROUNDS, self.worth, context)?;
        Ok(density.with_shares(&shares))
    }

    /// Which of so many points tell the shares, each by kernels that have not seen it: all, or some at equal distances in
    /// their order where the kernels stand on clusters.
    pub fn scored(&self, points: usize) -> Vec<usize> {
        let some = if points > self.centres { SCORED.min(points) } else { points };
        (0..some).map(|k| (k as u128 * points as u128 / some as u128) as usize).collect()
    }

    /// The part of them without needles: kernels shaped by many neighbours, and not much narrower than these lie.
    pub fn smooth(&self) -> LocalSettings {
        const NEIGHBOURS: f64 = 10.0;
        const FACTOR: f64 = 0.3;
        let least = |all: &[f64], least: f64| all.iter().copied().filter(|x| *x >= least).collect();
        let (neighbours, factors) = (least(&self.neighbours, NEIGHBOURS), least(&self.factors, FACTOR));
        LocalSettings { neighbours, factors, widths: 0, ..self.clone() }
    }

    /// Widths in equal ratios, from the distance of near neighbours to the spread of all points.
    fn widths_of(&self, blank: &LocalKernels, neighbours: &Neighbours) -> Vec<f64> {
        let n = blank.dim() as f64;
        let top = blank.widest().min(neighbours.spread / n.sqrt());
        let bottom = (neighbours.near / n.sqrt()).min(0.5 * top);
        let ratio = |k: usize| k as f64 / (self.widths.max(2) - 1) as f64;
        (0..self.widths).map(|k| bottom * (top / bottom).powf(ratio(k))).collect()
    }
}

/// Numbers of rows that stand elsewhere, `width` for each, in the order of the rows.
fn in_their_order(rows: usize, width: usize, parts: &[(Vec<usize>, Vec<f64>)]) -> Vec<f64> {
    let mut all = vec![0.0; rows * width];
    for (places, values) in parts {
        for (value, &i) in values.chunks(width).zip(places) {
            all[i * width..][..width].copy_from_slice(value);
        }
    }
    all
}

/// Points of which several folds are made at a time: those of more fill all threads one after another.
const TOGETHER: usize = 200_000;
/// Points that tell the shares of kernels on clusters: some dozens of shares are known by them to 10⁻⁴ nats.
const SCORED: usize = 500_000;

/// Points of the first fold that tell which families are in the running: one that is worth 5·10⁻⁴ nats is missed by them.
const FIRST: usize = 10_000;
/// Points that tell before, in many dimensions, which families are looked at by those: one that is worth 10⁻³ nats is missed by them.
const GLANCE: usize = 2000;
/// Families of at most so many kernels, as mixtures, are quickly looked at.
const LIGHT: usize = 1000;
/// Up to so many dimensions most kernels reach few of many points.
pub(crate) const FEW_DIMENSIONS: usize = 3;

/// Points of a fold, with the weights of theirs among those of all scored points.
fn sample_of(points: &[f64], inside: &[usize], weights: &[f64]) -> Sample<'static> {
    let own: Vec<f64> = if weights.is_empty() { vec![] } else { inside.iter().map(|&k| weights[k]).collect() };
    Sample::new(points.to_vec(), &own, vec![])
}

/// The families that have a share.
fn with_shares(plan: &[Planned], shares: &[f64]) -> Vec<Planned> {
    plan.iter().zip(shares).filter(|(_, share)| **share > 0.0).map(|(planned, _)| *planned).collect()
}

/// Tells fits of other points or with other settings apart.
pub(crate) fn inputs(settings: &LocalSettings, sample: &Sample, seed: u64) -> Fingerprint {
    let LocalSettings { neighbours, factors, widths, shrinkage, folds, centres, grouped, classes, .. } = settings;
    let LocalSettings { mixtures, worth, tolerance, .. } = settings;
    let counts = [*widths, *folds, *centres, *grouped, *classes].map(|count| count as f64);
    let counts = [counts.as_slice(), &[*shrinkage, *worth, *tolerance, f64::from_bits(seed)]].concat();
    let components: Vec<f64> = mixtures.iter().map(|count| *count as f64).collect();
    let groups: Vec<f64> = sample.groups().iter().map(|group| (*group).into()).collect();
    let rows = Fingerprint::new().and(sample.points()).and(sample.weights()).and(&groups);
    rows.and(neighbours).and(factors).and(&counts).and(&components)
}

/// The same points in an order in which near ones stand together, `each` of them at least: halves of halves along the longest
/// coordinate.
fn together(points: &[f64], m: usize, each: usize, mut of: Vec<usize>) -> Vec<usize> {
    fn halve(points: &[f64], m: usize, each: usize, of: &mut [usize]) {
        if of.len() <= each {
            return;
        }
        let longest = longest(points, m, of);
        // Whole blocks on the left, so that only the last block of all is short.
        let middle = (of.len() / 2).next_multiple_of(each);
        let by = |i: &usize| points[i * m + longest];
        of.select_nth_unstable_by(middle, |a, b| by(a).total_cmp(&by(b)).then(a.cmp(b)));
        let (left, right) = of.split_at_mut(middle);
        halve(points, m, each, left);
        halve(points, m, each, right);
    }
    halve(points, m, each, &mut of);
    of
}

/// The coordinate in which some points lie farthest apart.
fn longest(points: &[f64], m: usize, of: &[usize]) -> usize {
    let mut ends = vec![(f64::INFINITY, f64::NEG_INFINITY); m];
    for &i in of {
        for (end, x) in ends.iter_mut().zip(&points[i * m..][..m]) {
            *end = (end.0.min(*x), end.1.max(*x));
        }
    }
    let length = |j: usize| ends[j].1 - ends[j].0;
    (0..m).max_by(|&a, &b| length(a).total_cmp(&length(b))).expect("a point has coordinates")
}
