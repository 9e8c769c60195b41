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

mod coordinates;
mod draws;
mod folds;
mod groups;
mod index;
mod kernels;
mod lanes;
mod layer;
mod neighbours;
mod part;
mod plain;
mod shape;
mod slope;
mod sums;

pub use kernels::{Family, Kind, LocalKernels};
pub(super) use shape::cholesky;

use crate::density::by_rows;
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

/// Shares below this are dropped, and the others made to add up to one.
const NEGLIGIBLE: f64 = 1e-3;
/// The uniform law keeps at least this share, so that no place has density zero.
const LEAST_UNIFORM: f64 = 1e-4;

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

/// What densities of some of the points are built with.
struct Kit<'a> {
    settings: &'a LocalSettings,
    points: &'a [f64],
    blank: LocalKernels,
    neighbours: Neighbours,
    /// Neighbours of each shape.
    counts: Vec<usize>,
    widths: Vec<f64>,
    /// Whether wide kernels stand on groups of points.
    grouped: bool,
}

impl<'a> Kit<'a> {
    fn new(
        settings: &'a LocalSettings,
        manifold: &Arc<dyn Manifold>,
        points: &'a [f64],
        context: &Context,
    ) -> Result<Self, Error> {
        let blank = LocalKernels::blank(manifold)?.with_tolerance(settings.tolerance);
        let counts: Vec<usize> =
            settings.neighbours.iter().map(|k| (k * manifold.dim() as f64).ceil() as usize).collect();
        let longest = counts.iter().copied().max().unwrap_or(1);
        let rows = points.len() / manifold.ambient();
        let neighbours =
            context.stage("neighbours", rows, "rows", || Neighbours::of(&blank, points, 2 * longest + 8, context))?;
        let widths = settings.widths_of(&blank, &neighbours);
        let grouped = rows >= settings.grouped && blank.foreign.is_none();
        Ok(Kit { settings, points, blank, neighbours, counts, widths, grouped })
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
        let (points, neighbours, m) = (self.points, &self.neighbours, self.blank.ambient());
        let of = &self.ordered(of);
        let mut density = self.blank.with_centres(points, of);
        let around = shape::Surroundings { points, neighbours, outside, shrinkage: *shrinkage, widest };
        for &count in &self.counts {
            density.add_shape(0, of, count, &around, context)?;
        }
        let mut fixed: Vec<Kind> = self.widths.iter().map(|&width| Kind::Fixed { width }).collect();
        if self.grouped {
            for (kind, sites) in fixed.iter_mut().zip(groups::grouped(&self.blank, points, of, &self.widths, context)?)
            {
                if let (Kind::Fixed { width }, Some(sites)) = (*kind, sites) {
                    density.sites.push(sites);
                    *kind = Kind::Grouped { group: density.sites.len() - 2, width };
                }
            }
            for count in self.coarse() {
                let (sites, members) = groups::grouped_by(&self.blank, points, of, count / SHARED, context);
                let mut order: Vec<usize> = (0..members.len()).collect();
                order.sort_by_key(|&k| self.class(members[k]));
                density.sites.push(sites.reordered(&order, m));
                let members: Vec<usize> = order.iter().map(|&k| members[k]).collect();
                density.add_shape(density.sites.len() - 1, &members, count, &around, context)?;
            }
        }
        density.families = self.families(&density, fixed);
        Ok(density.laid_out())
    }

    /// Neighbours of the shapes that have a second list of kernels, about groups.
    fn coarse(&self) -> impl Iterator<Item = usize> {
        self.counts.iter().copied().filter(|count| self.grouped && count / SHARED >= 2)
    }

    /// All kinds of kernels, with equal shares.
    fn families(&self, density: &LocalKernels, fixed: Vec<Kind>) -> Vec<Family> {
        let uniform = density.log_volume().map(|_| Kind::Uniform);
        let factors = &self.settings.factors;
        let mut kinds: Vec<Kind> = uniform.into_iter().chain(fixed).collect();
        for (shape, count) in self.counts.iter().enumerate() {
            let coarse = self.coarse().any(|c| c == *count);
            let own = factors.iter().filter(|factor| !coarse || **factor < 1.0);
            kinds.extend(own.map(|&factor| Kind::Local { shape, factor }));
        }
        for (k, _) in self.coarse().enumerate() {
            let own = factors.iter().filter(|factor| **factor >= 1.0);
            kinds.extend(own.map(|&factor| Kind::Local { shape: self.counts.len() + k, factor }));
        }
        let share = 1.0 / kinds.len() as f64;
        kinds.into_iter().map(|kind| Family { kind, share }).collect()
    }
}

/// Kernels that are shaped by so many neighbours and not narrower than these lie are shared by the sixth part of them.
const SHARED: usize = 6;

impl Kit<'_> {
    /// Points whose kernels reach about as far, and of these near ones, together: a wide kernel among narrow ones would have
    /// all of them looked at from afar.
    fn ordered(&self, of: &[usize]) -> Vec<usize> {
        let mut of = of.to_vec();
        of.sort_by_key(|&i| self.class(i));
        let classes = of.chunk_by(|a, b| self.class(*a) == self.class(*b));
        classes.flat_map(|own| together(self.points, self.blank.ambient(), own.to_vec())).collect()
    }

    /// How far the kernels of a point reach, in powers of four.
    fn class(&self, i: usize) -> i64 {
        (self.neighbours.reach[i].max(f64::MIN_POSITIVE).log2() / 2.0).floor() as i64
    }
}

/// Tells fits of other points or with other settings apart.
pub(crate) fn inputs(settings: &LocalSettings, points: &[f64], seed: u64) -> Fingerprint {
    let LocalSettings { neighbours, factors, widths, shrinkage, folds, centres, grouped, tolerance } = settings;
    let counts = [*widths, *folds, *centres, *grouped].map(|count| count as f64);
    let counts = [counts.as_slice(), &[*shrinkage, *tolerance, f64::from_bits(seed)]].concat();
    Fingerprint::new().and(neighbours).and(factors).and(&counts).and(points)
}

/// The same points in an order in which near ones stand together: halves of halves along the longest coordinate.
fn together(points: &[f64], m: usize, mut of: Vec<usize>) -> Vec<usize> {
    fn halve(points: &[f64], m: usize, of: &mut [usize]) {
        if of.len() <= lanes::BLOCK {
            return;
        }
        let longest = longest(points, m, of);
        // Whole blocks on the left, so that only the last block of all is short.
        let middle = (of.len() / 2).next_multiple_of(lanes::BLOCK);
        let by = |i: &usize| points[i * m + longest];
        of.select_nth_unstable_by(middle, |a, b| by(a).total_cmp(&by(b)).then(a.cmp(b)));
        let (left, right) = of.split_at_mut(middle);
        halve(points, m, left);
        halve(points, m, right);
    }
    halve(points, m, &mut of);
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

/// Rounds of EM at most.
const ROUNDS: usize = 300;
/// More rows than this are at first represented by as many, at equal distances in their order.
const REPRESENTED: usize = 50_000;
/// Rounds with all of them then.
const LAST_ROUNDS: usize = 40;

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
    let rounds = rounds.min(ROUNDS);
    if rows > REPRESENTED {
        let some = |k: usize| &logs[k * rows / REPRESENTED * count..][..count];
        let some: Vec<f64> = (0..REPRESENTED).flat_map(some).copied().collect();
        shares = rounds_of_em(&some, shares, rounds, context)?;
    }
    let rounds = if rows > REPRESENTED { rounds.min(LAST_ROUNDS) } else { rounds };
    shares = rounds_of_em(logs, shares, rounds, context)?;
    shares.iter_mut().filter(|s| **s < NEGLIGIBLE).for_each(|s| *s = 0.0);
    if uniform_first {
        shares[0] = shares[0].max(LEAST_UNIFORM);
    }
    let kept: f64 = shares.iter().sum();
    Ok(shares.iter().map(|s| s / kept).collect())
}

fn rounds_of_em(logs: &[f64], mut shares: Vec<f64>, rounds: usize, context: &Context) -> Result<Vec<f64>, Error> {
    // Sums of so many rows each, whatever the threads, so that rounding does not depend on them.
    const EACH: usize = 4096;
    let count = shares.len();
    let rows = logs.len() / count;
    let likelihoods = by_rows(rows, count, &context.quiet(), |first, out| {
        for (row, out) in logs[first * count..].chunks(count).zip(out.chunks_mut(count)) {
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            out.iter_mut().zip(row).for_each(|(out, x)| *out = (x - top).exp());
        }
    })?;
    for _ in 0..rounds {
        let sums = by_rows(rows.div_ceil(EACH), count, &context.quiet(), |first, out| {
            for (part, next) in (first..).zip(out.chunks_mut(count)) {
                let rows = &likelihoods[part * EACH * count..((part + 1) * EACH).min(rows) * count];
                for row in rows.chunks(count) {
                    let total: f64 = row.iter().zip(&shares).map(|(l, s)| l * s).sum();
                    next.iter_mut().zip(row).for_each(|(next, l)| *next += l / total);
                }
            }
        })?;
        for (k, share) in shares.iter_mut().enumerate() {
            *share *= sums.iter().skip(k).step_by(count).sum::<f64>() / rows as f64;
        }
    }
    Ok(shares)
}

/// log Σ_k π_k e^{logs_k}.
fn log_mean(logs: &[f64], shares: &[f64]) -> f64 {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    top + logs.iter().zip(shares).map(|(log, share)| share * (log - top).exp()).sum::<f64>().ln()
}
