//! A density of local kernels: each centre spreads its mass as far, and in the directions, as its neighbours lie.
//!
//! **Statement.** p(x) = π₀/vol + Σ_s π_s (1/N) Σ_i N(v_i(x); 0, c_s Σ_i^{(s)})·|dv/dvol|, v_i the normal coordinates about
//! centre i; Σ_i^{(s)} is σ_s² I (fixed widths) or the second moments of the k_s nearest points about i, shrunk towards
//! round. The shares π maximise the likelihood of points that were left out, a concave problem, solved by EM.
//! **Source.** vincent2003manifold (local covariances); mardia2000directional (wrapped laws). The shares are ours.
//! **Conventions.** Folds keep repeated points together, so that repeats of a point do not call for ever narrower kernels.
//! **Error.** Widths stop at an eighth of the injectivity radius, and kernels on curved spaces at nine tenths of it: what is
//! lost is e⁻²⁶ in two dimensions; otherwise rounding. Scores are exact but for differences of coordinates of order 10⁻⁹.
//! **Checked by** tests/local_kernels.rs.

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

use crate::Manifold;
use folds::Folds;
use neighbours::Neighbours;
use serde::{Deserialize, Serialize};

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
    /// The density of points of a manifold whose model spaces are known.
    pub fn fit(
        &self,
        manifold: &dyn Manifold,
        points: &[f64],
        seed: u64,
        threads: usize,
        with_derivative: bool,
    ) -> LocalFit {
        let blank = LocalKernels::blank(manifold);
        let m = manifold.ambient();
        assert!(points.len() / m <= self.centres, "local kernels: more points than centres; choose some of them");
        let folds = Folds::new(points, m, self.folds, seed);
        let counts: Vec<usize> = self.neighbours.iter().map(|k| (k * manifold.dim() as f64).ceil() as usize).collect();
        let longest = counts.iter().copied().max().unwrap_or(1);
        let neighbours = Neighbours::of(&blank, points, 2 * longest + 8, threads);
        let widths = self.widths_of(&blank, &neighbours);
        // The largest factor must not take a kernel over the cut locus.
        let widest = blank.widest() / self.factors.iter().copied().fold(1.0, f64::max).sqrt();
        let build = |of: &[usize], outside: &dyn Fn(usize) -> bool| {
            let of = &together(points, m, of.to_vec());
            let mut density = blank.with_centres(points, of);
            for &count in &counts {
                density.add_shape(points, of, &neighbours, count, self.shrinkage, widest, outside);
            }
            density.families = families(&density, &widths, counts.len(), &self.factors);
            density.bounded()
        };
        let parts: Vec<(Vec<usize>, LocalKernels)> = (0..self.folds)
            .map(|fold| {
                let (inside, others) = folds.parts(fold);
                let density = build(&others, &|i| folds.of(i) == fold);
                (inside, density)
            })
            .collect();

        let count = parts[0].1.families.len();
        let mut logs = vec![0.0; points.len() / m * count];
        for (inside, density) in &parts {
            let own: Vec<f64> = inside.iter().flat_map(|&i| &points[i * m..][..m]).copied().collect();
            let values = density.log_families(&own, threads);
            for (row, &i) in values.chunks(count).zip(inside) {
                logs[i * count..][..count].copy_from_slice(row);
            }
        }
        let shares = shares(&logs, count, blank.log_volume().is_some());
        let all: Vec<usize> = (0..points.len() / m).collect();
        let density = build(&all, &|_| false).with_shares(&shares);
        let mut held_out = vec![0.0; all.len()];
        let mut derivative = vec![0.0; if with_derivative { points.len() } else { 0 }];
        for (inside, part) in parts {
            let part = part.with_shares(&shares);
            let own: Vec<f64> = inside.iter().flat_map(|&i| &points[i * m..][..m]).copied().collect();
            for (value, &i) in part.log_density_of(&own, threads).iter().zip(&inside) {
                held_out[i] = *value;
            }
            if with_derivative {
                for (row, &i) in part.derivative(&own, threads).chunks(m).zip(&inside) {
                    derivative[i * m..][..m].copy_from_slice(row);
                }
            }
        }
        LocalFit { density, held_out, derivative }
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

/// The shares that maximise Σ_rows log Σ_s π_s e^{logs}, by EM from equal ones; the uniform law, if any, is the first.
fn shares(logs: &[f64], count: usize, uniform_first: bool) -> Vec<f64> {
    const ROUNDS: usize = 300;
    let rows = logs.len() / count;
    let likelihoods: Vec<f64> = logs
        .chunks(count)
        .flat_map(|row| {
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter().map(move |x| (x - top).exp())
        })
        .collect();
    let mut shares = vec![1.0 / count as f64; count];
    for _ in 0..ROUNDS {
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
    shares.iter().map(|s| s / kept).collect()
}
