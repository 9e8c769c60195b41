//! A density of local kernels: each centre spreads its mass as far, and in the directions, as its neighbours lie.
//!
//! **Statement.** p(x) = π₀/vol + Σ_s π_s (1/N) Σ_i N(v_i(x); 0, c_s Σ_i^{(s)})·|dv/dvol|, v_i the normal coordinates about
//! centre i; Σ_i^{(s)} is σ_s² I (fixed widths) or the second moments of the k_s nearest points about i, shrunk towards
//! round. The shares π maximise the likelihood of points that were left out, a concave problem, solved by EM.
//! **Source.** vincent2003manifold (local covariances); mardia2000directional (wrapped laws). The shares are ours.
//! **Conventions.** Folds keep repeated points together, so that repeats of a point do not call for ever narrower kernels.
//! **Error.** On a manifold that is no product of model spaces coordinates and volumes come from its own exp and log
//! ([`Manifold::exp_log_volume`]), else all is the same. Widths stop at an eighth of the injectivity radius, and kernels on curved spaces at nine tenths of it: what is
//! lost is e⁻²⁶ in two dimensions; otherwise rounding. Scores are exact but for differences of coordinates of order 10⁻⁹.
//! **Checked by** tests/densities/local_kernels.rs.

mod coordinates;
mod draws;
mod folds;
mod kernels;
mod neighbours;
mod part;
mod plain;
mod shape;
mod slope;
mod work;

pub use kernels::{Family, Kind, LocalKernels};
pub(super) use shape::cholesky;

use crate::train::{Context, Fingerprint, lists};
use crate::{Error, Manifold};
use folds::Folds;
use neighbours::Neighbours;
use serde::{Deserialize, Serialize};
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
}

impl Default for LocalSettings {
    fn default() -> Self {
        LocalSettings {
            neighbours: vec![3.0, 12.0],
            factors: vec![0.03, 0.1, 0.3, 1.0, 2.0],
            widths: 12,
            shrinkage: 0.05,
            folds: 5,
            centres: 20_000,
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

/// Shares below this are dropped, and the others made to add up to one.
const NEGLIGIBLE: f64 = 1e-3;
/// The uniform law keeps at least this share, so that no place has density zero.
const LEAST_UNIFORM: f64 = 1e-4;

impl LocalSettings {
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
            Ok((inside, kit.build(&others, &|i| folds.of(i) == fold, context)?))
        };
        let parts: Vec<(Vec<usize>, LocalKernels)> = (0..self.folds).map(part).collect::<Result<_, Error>>()?;

        let shares = context.kept("shares", inputs(self, points, seed), || {
            let count = parts[0].1.families.len();
            let mut logs = vec![0.0; rows * count];
            context.stage("kernels", rows, "rows", || {
                parts.iter().try_for_each(|(inside, density)| {
                    let values = density.log_families(&own(inside), context)?;
                    for (row, &i) in values.chunks(count).zip(inside) {
                        logs[i * count..][..count].copy_from_slice(row);
                    }
                    Ok(())
                })
            })?;
            let equal = vec![1.0 / count as f64; count];
            let shares = shares(&logs, equal, kit.blank.log_volume().is_some(), ROUNDS, context)?;
            Ok((lists([("shares", shares.as_slice())]), ()))
        })?;
        let shares = shares.0.get("shares").expect("kept under this name");
        let all: Vec<usize> = (0..rows).collect();
        let density = kit.build(&all, &|_| false, context)?.with_shares(shares);
        let mut held_out = vec![0.0; rows];
        let mut derivative = vec![0.0; if with_derivative { points.len() } else { 0 }];
        context.stage("folds", rows, "rows", || {
            for (inside, part) in parts {
                let (part, own) = (part.with_shares(shares), own(&inside));
                let (logs, slopes) = match with_derivative {
                    true => part.with_derivative(&own, context)?,
                    false => (part.log_density_of(&own, context)?, vec![]),
                };
                inside.iter().zip(logs).for_each(|(&i, log)| held_out[i] = log);
                for (row, &i) in slopes.chunks(m).zip(&inside) {
                    derivative[i * m..][..m].copy_from_slice(row);
                }
            }
            Ok(())
        })?;
        Ok(LocalFit { density, held_out, derivative })
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

/// What densities of some of the points are built with.
struct Kit<'a> {
    settings: &'a LocalSettings,
    points: &'a [f64],
    blank: LocalKernels,
    neighbours: Neighbours,
    /// Neighbours of each shape.
    counts: Vec<usize>,
    widths: Vec<f64>,
}

impl<'a> Kit<'a> {
    fn new(
        settings: &'a LocalSettings,
        manifold: &Arc<dyn Manifold>,
        points: &'a [f64],
        context: &Context,
    ) -> Result<Self, Error> {
        let blank = LocalKernels::blank(manifold)?;
        let counts: Vec<usize> =
            settings.neighbours.iter().map(|k| (k * manifold.dim() as f64).ceil() as usize).collect();
        let longest = counts.iter().copied().max().unwrap_or(1);
        let rows = points.len() / manifold.ambient();
        let neighbours =
            context.stage("neighbours", rows, "rows", || Neighbours::of(&blank, points, 2 * longest + 8, context))?;
        let widths = settings.widths_of(&blank, &neighbours);
        Ok(Kit { settings, points, blank, neighbours, counts, widths })
    }

    /// The density of the points `of`, with equal shares; those `outside` do not shape it.
    fn build(
        &self,
        of: &[usize],
        outside: &(dyn Fn(usize) -> bool + Sync),
        context: &Context,
    ) -> Result<LocalKernels, Error> {
        let LocalSettings { factors, shrinkage, .. } = self.settings;
        // The largest factor must not take a kernel over the cut locus.
        let widest = self.blank.widest() / factors.iter().copied().fold(1.0, f64::max).sqrt();
        let of = &together(self.points, self.blank.ambient(), of.to_vec());
        let mut density = self.blank.with_centres(self.points, of);
        for &count in &self.counts {
            density.add_shape(self.points, of, &self.neighbours, count, *shrinkage, widest, outside, context)?;
        }
        density.families = families(&density, &self.widths, self.counts.len(), factors);
        Ok(density.bounded())
    }
}

/// Tells fits of other points or with other settings apart.
pub(crate) fn inputs(settings: &LocalSettings, points: &[f64], seed: u64) -> Fingerprint {
    let LocalSettings { neighbours, factors, widths, shrinkage, folds, centres } = settings;
    let counts = [*widths as f64, *shrinkage, *folds as f64, *centres as f64, f64::from_bits(seed)];
    Fingerprint::new().and(neighbours).and(factors).and(&counts).and(points)
}

/// The same points in an order in which near ones stand together: halves of halves along the longest coordinate.
fn together(points: &[f64], m: usize, mut of: Vec<usize>) -> Vec<usize> {
    fn halve(points: &[f64], m: usize, of: &mut [usize]) {
        if of.len() <= kernels::BLOCK {
            return;
        }
        let length = |j: usize| {
            let all = of.iter().map(|&i| points[i * m + j]);
            all.clone().fold(f64::NEG_INFINITY, f64::max) - all.fold(f64::INFINITY, f64::min)
        };
        let longest = (0..m).max_by(|&a, &b| length(a).total_cmp(&length(b))).expect("a point has coordinates");
        // Whole blocks on the left, so that only the last block of all is short.
        let middle = (of.len() / 2).next_multiple_of(kernels::BLOCK);
        let by = |i: &usize| points[i * m + longest];
        of.select_nth_unstable_by(middle, |a, b| by(a).total_cmp(&by(b)).then(a.cmp(b)));
        let (left, right) = of.split_at_mut(middle);
        halve(points, m, left);
        halve(points, m, right);
    }
    halve(points, m, &mut of);
    of
}

/// All kinds of kernels, with equal shares.
fn families(density: &LocalKernels, widths: &[f64], shapes: usize, factors: &[f64]) -> Vec<Family> {
    let uniform = density.log_volume().map(|_| Kind::Uniform);
    let fixed = widths.iter().map(|&width| Kind::Fixed { width });
    let local = (0..shapes).flat_map(|shape| factors.iter().map(move |&factor| Kind::Local { shape, factor }));
    let kinds: Vec<Kind> = uniform.into_iter().chain(fixed).chain(local).collect();
    let share = 1.0 / kinds.len() as f64;
    kinds.into_iter().map(|kind| Family { kind, share }).collect()
}

/// Rounds of EM at most.
const ROUNDS: usize = 300;

/// The shares that maximise Σ_rows log Σ_s π_s e^{logs}, by rounds of EM from given ones; the uniform law, if any, is the first.
fn shares(
    logs: &[f64],
    mut shares: Vec<f64>,
    uniform_first: bool,
    rounds: usize,
    context: &Context,
) -> Result<Vec<f64>, Error> {
    let count = shares.len();
    let rows = logs.len() / count;
    let likelihoods: Vec<f64> = logs
        .chunks(count)
        .flat_map(|row| {
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter().map(move |x| (x - top).exp())
        })
        .collect();
    for _ in 0..rounds.min(ROUNDS) {
        context.go_on()?;
        let mut next = vec![0.0; count];
        for row in likelihoods.chunks(count) {
            let total: f64 = row.iter().zip(&shares).map(|(l, s)| l * s).sum();
            next.iter_mut().zip(row).zip(&shares).for_each(|((next, l), s)| *next += l * s / total);
        }
        shares = next.into_iter().map(|x| x / rows as f64).collect();
    }
    shares.iter_mut().filter(|s| **s < NEGLIGIBLE).for_each(|s| *s = 0.0);
    if uniform_first {
        shares[0] = shares[0].max(LEAST_UNIFORM);
    }
    let kept: f64 = shares.iter().sum();
    Ok(shares.iter().map(|s| s / kept).collect())
}
