//! A density of local kernels: each centre spreads its mass as far, and in the directions, as its neighbours lie.
//!
//! **Statement.** p(x) = π₀/vol + Σ_s π_s (1/N) Σ_i N(v_i(x); 0, c_s Σ_i^{(s)})·|dv/dvol|, v_i the normal coordinates about
//! centre i; Σ_i^{(s)} is σ_s² I (fixed widths) or the second moments of the k_s nearest points about i, shrunk towards
//! round. The shares π maximise the likelihood of points that were left out, a concave problem, solved by EM.
//! **Source.** vincent2003manifold (local covariances); mardia2000directional (wrapped laws). The shares are ours.
//! **Conventions.** Folds keep repeated points together, so that repeats of a point do not call for ever narrower kernels.
//! **Error.** On a manifold that is no product of model spaces coordinates and volumes come from its own exp and log
//! ([`Manifold::exp_log_volume`]), else all is the same. Widths stop at an eighth of the injectivity radius, and kernels on curved spaces at nine tenths of it: what is
//! lost is e⁻²⁶ in two dimensions; otherwise rounding. Scores are exact but on hyperbolic space, where differences of coordinates err by about 10⁻⁹.
//! **Checked by** tests/densities/local_kernels.rs.

mod card;
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
mod neighbours;
mod octet;
mod part;
mod places;
mod plain;
mod shape;
mod shares;
mod slope;
mod sums;

pub use kernels::{Family, Kind, LocalKernels};
pub(super) use shape::cholesky;

use crate::train::{Context, Fingerprint, lists};
use crate::{Error, Manifold};
use clusters::Clusters;
use folds::Folds;
use kit::Kit;
use neighbours::Neighbours;
use serde::{Deserialize, Serialize};
use shares::{ROUNDS, log_mean, shares};
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
            shrinkage: 0.05,
            folds: 5,
            centres: 2_000_000,
            grouped: 5000,
            mixtures: vec![4, 16, 64, 256],
            worth: 2e-4,
            tolerance: kernels::TOLERANCE,
        }
    }
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

    fn before_there_was_an_index() -> f64 {
        kernels::TOLERANCE
    }

    /// The density of points of a manifold; from the context's checkpoint if there is one.
    pub fn fit(
        &self,
        manifold: &Arc<dyn Manifold>,
        points: &[f64],
        seed: u64,
        context: &Context,
        with_derivative: bool,
    ) -> Result<LocalFit, Error> {
        let inputs = inputs(self, points, seed).and(&[f64::from(with_derivative)]);
        let (lists, families) = context.kept("kernels", inputs, || {
            let LocalFit { density, held_out, derivative } =
                self.made(manifold, points, seed, context, with_derivative)?;
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
        points: &[f64],
        seed: u64,
        context: &Context,
        with_derivative: bool,
    ) -> Result<LocalFit, Error> {
        let m = manifold.ambient();
        let blank = LocalKernels::blank(manifold)?.with_tolerance(self.tolerance);
        let by_point = Folds::new(points, m, self.folds, seed);
        let (clusters, by_cluster) = match points.len() / m > self.centres {
            false => (Clusters::rows(points), None),
            true => context.stage("clusters", self.centres, "clusters", || {
                let (clusters, folds) = Clusters::of(&blank, points, (&by_point, self.folds), self.centres, context)?;
                Ok((clusters, Some(folds)))
            })?,
        };
        let kit = Kit::new(self, blank, &clusters, context)?;
        let folds = by_cluster.as_ref().unwrap_or(&by_point);
        let scored = self.scored(points.len() / m);
        let rows = scored.len();
        // The scored points of a fold, which they are, and the density of the others.
        let part = |fold: usize| {
            let inside: Vec<usize> = (0..rows).filter(|&k| by_point.of(scored[k]) == fold).collect();
            let own: Vec<f64> = inside.iter().flat_map(|&k| &points[scored[k] * m..][..m]).copied().collect();
            let others = folds.parts(fold).1;
            Ok::<_, Error>((own, inside, kit.build(&others, &|i| folds.of(i) == fold, context)?))
        };
        let (kept, ()) = context.kept("shares", inputs(self, points, seed), || {
            let mut logs = vec![];
            context.stage("kernels", rows, "rows", || {
                (0..self.folds).try_for_each(|fold| {
                    let (own, inside, density) = part(fold)?;
                    let count = density.families.len();
                    logs.resize(rows * count, 0.0);
                    let values = density.log_families(&own, context)?;
                    for (row, &i) in values.chunks(count).zip(&inside) {
                        logs[i * count..][..count].copy_from_slice(row);
                    }
                    Ok(())
                })
            })?;
            let count = logs.len() / rows;
            let equal = vec![1.0 / count as f64; count];
            let shares = shares(&logs, equal, kit.blank.log_volume().is_some(), ROUNDS, self.worth, context)?;
            let held_out: Vec<f64> = logs.chunks(count).map(|row| log_mean(row, &shares)).collect();
            Ok((lists([("shares", shares.as_slice()), ("held-out", held_out.as_slice())]), ()))
        })?;
        let list = |name: &str| kept.get(name).expect("kept under this name");
        let all: Vec<usize> = (0..clusters.points.len() / m).collect();
        let density = kit.build(&all, &|_| false, context)?.with_shares(list("shares"));
        let mut derivative = vec![0.0; if with_derivative { rows * m } else { 0 }];
        if with_derivative {
            context.stage("folds", rows, "rows", || {
                (0..self.folds).try_for_each(|fold| {
                    let (own, inside, density) = part(fold)?;
                    let slopes = density.with_shares(list("shares")).derivative(&own, context)?;
                    for (row, &i) in slopes.chunks(m).zip(&inside) {
                        derivative[i * m..][..m].copy_from_slice(row);
                    }
                    Ok(())
                })
            })?;
        }
        Ok(LocalFit { density, held_out: list("held-out").to_vec(), derivative })
    }

    /// The density of clusters of points, with the shares that others of the same law ask for: no folds are needed where
    /// there are as many points as one likes.
    pub(crate) fn of_many(
        &self,
        manifold: &Arc<dyn Manifold>,
        points: &[f64],
        others: &[f64],
        context: &Context,
    ) -> Result<LocalKernels, Error> {
        let blank = LocalKernels::blank(manifold)?.with_tolerance(self.tolerance);
        let together = Folds::known(vec![0; points.len() / manifold.ambient()]);
        let clusters = Clusters::of(&blank, points, (&together, 1), self.centres, context)?.0;
        let kit = Kit::new(self, blank, &clusters, context)?;
        let all: Vec<usize> = (0..clusters.points.len() / manifold.ambient()).collect();
        let density = kit.build(&all, &|_| false, context)?;
        let rows = others.len() / manifold.ambient();
        let logs = context.stage("kernels", rows, "rows", || density.log_families(others, context))?;
        let equal: Vec<f64> = density.families.iter().map(|family| family.share).collect();
        let shares = shares(&logs, equal, density.log_volume().is_some(), ROUNDS, self.worth, context)?;
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

/// Points that tell the shares of kernels on clusters: some dozens of shares are known by them to 10⁻⁴ nats.
const SCORED: usize = 500_000;

/// Tells fits of other points or with other settings apart.
pub(crate) fn inputs(settings: &LocalSettings, points: &[f64], seed: u64) -> Fingerprint {
    let LocalSettings { neighbours, factors, widths, shrinkage, folds, centres, grouped, mixtures, worth, tolerance } =
        settings;
    let counts = [*widths, *folds, *centres, *grouped].map(|count| count as f64);
    let counts = [counts.as_slice(), &[*shrinkage, *worth, *tolerance, f64::from_bits(seed)]].concat();
    let components: Vec<f64> = mixtures.iter().map(|count| *count as f64).collect();
    Fingerprint::new().and(neighbours).and(factors).and(&counts).and(&components).and(points)
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
