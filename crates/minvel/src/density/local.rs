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
use folds::Folds;
use kit::{Kit, SHARED};
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
    /// Centres at most: a random part of the points beyond.
    pub centres: usize,
    /// Points from which wide kernels stand on groups of them.
    #[serde(default = "LocalSettings::before_there_were_groups")]
    pub grouped: usize,
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
            tolerance: kernels::TOLERANCE,
        }
    }
}

/// What comes of points: the density, and for each point what the others say about it.
#[derive(Clone, Debug)]
pub struct LocalFit {
    /// The density of all points.
    pub density: LocalKernels,
    /// log p at each point by the density of the other folds, with the same shares.
    pub held_out: Vec<f64>,
    /// ∂ log p at each point by the density of the other folds, in coordinates, where asked for.
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
        let density = density.expect("the lists of a density");
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
        let (m, rows) = (manifold.ambient(), points.len() / manifold.ambient());
        assert!(rows <= self.centres, "local kernels: more points than centres; choose some of them");
        let kit = Kit::new(self, manifold, points, context)?;
        let folds = Folds::new(points, m, self.folds, seed);
        let own = |inside: &[usize]| inside.iter().flat_map(|&i| &points[i * m..][..m]).copied().collect::<Vec<f64>>();
        let part = |fold: usize| {
            let (inside, others) = folds.parts(fold);
            Ok::<_, Error>((own(&inside), inside, kit.build(&others, &|i| folds.of(i) == fold, context)?))
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
            let shares = shares(&logs, equal, kit.blank.log_volume().is_some(), ROUNDS, context)?;
            let held_out: Vec<f64> = logs.chunks(count).map(|row| log_mean(row, &shares)).collect();
            Ok((lists([("shares", shares.as_slice()), ("held-out", held_out.as_slice())]), ()))
        })?;
        let list = |name: &str| kept.get(name).expect("kept under this name");
        let all: Vec<usize> = (0..rows).collect();
        let density = kit.build(&all, &|_| false, context)?.with_shares(list("shares"));
        let mut derivative = vec![0.0; if with_derivative { points.len() } else { 0 }];
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

    /// Neighbours that shaped the covariances of a number, on a manifold of so many dimensions.
    pub fn neighbours_of(&self, shape: usize, dim: usize) -> usize {
        let counts = || self.neighbours.iter().map(|k| (k * dim as f64).ceil() as usize);
        let mut coarse = counts().filter(|count| count / SHARED >= 2);
        counts().nth(shape).or_else(|| coarse.nth(shape - self.neighbours.len())).unwrap_or(0)
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

/// Tells fits of other points or with other settings apart.
pub(crate) fn inputs(settings: &LocalSettings, points: &[f64], seed: u64) -> Fingerprint {
    let LocalSettings { neighbours, factors, widths, shrinkage, folds, centres, grouped, tolerance } = settings;
    let counts = [*widths, *folds, *centres, *grouped].map(|count| count as f64);
    let counts = [counts.as_slice(), &[*shrinkage, *tolerance, f64::from_bits(seed)]].concat();
    Fingerprint::new().and(neighbours).and(factors).and(&counts).and(points)
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
