//! Mixtures of natural laws, by expectation and maximisation: with one concentration for each, or one for each angle and each other factor.
//!
//! **Statement.** p(x) = Σ_k w_k Π_f exp(κ_kf t_f(x, c_k) − log N_f(κ_kf)), t that of the natural kernels ([`Bump`]), f all factors together, or
//! one after another. A round takes c_k where the mean of t under the responsibilities is largest, and κ_kf by the mean of t_f there.
//! **Source.** dempster1977em; banerjee2005vmf (spheres); mardia2000directional (independent von Mises laws); how rounds start: [`starts`](super::starts). **Conventions.** They are
//! what mixtures of normal laws cannot be: as wide as the manifold, in some directions or in all, and of few numbers each. Spreads −E t_f are pulled by one point's
//! worth towards those of all points times K^{−2/n}, as if K components tiled them. Sums are taken over pieces of a fixed length: the same bits on any number of threads.
//! **Error.** A local maximum. **Checked by** tests/densities/components.rs.
#![allow(clippy::needless_range_loop)] // iterators with closures are not inlined everywhere, and then not vectorised

use super::components::{LEAST, Rows, Weighted};
use super::kernels::{LocalKernels, Sites, sharp};
use super::lanes::{ROWS, exp};
use super::shape::Shape;
use super::starts::{Groups, best, starts};
use crate::Error;
use crate::density::mixture::statistics_of;
use crate::density::sample::weight;
use crate::density::{Bump, by_rows, natural, summed_together};
use crate::train::Context;
use minvel_engine::{Loop, widest};

/// Rounds at most; they end when the mean log-likelihood grows by less.
const ROUNDS: usize = 100;
const ENOUGH: f64 = 3e-5;
/// Steps towards the concentration of largest likelihood in a round.
const STEPS: usize = 2;
/// Rounds with all points where they are represented by some before.
const LAST_ROUNDS: usize = 2;
/// Components at most: what needs more of them is better described by normal laws with directions, and by kernels.
const MOST: usize = 64;

/// Which factors have a concentration of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rates {
    /// All have one together.
    Common,
    /// Each angle, and each other factor.
    Own,
}

/// A mixture of natural laws.
#[derive(Clone, Debug)]
pub(super) struct NaturalMixture {
    /// Row-major.
    centres: Vec<f64>,
    /// `[component, part]`.
    kappas: Vec<f64>,
    weights: Vec<f64>,
}

/// Points by the numbers T of which every t is linear.
struct Statistics<'a> {
    /// Row-major.
    values: Vec<f64>,
    width: usize,
    weights: &'a [f64],
}

impl<'a> Statistics<'a> {
    fn of(space: &LocalKernels, rows: &'a Weighted) -> Self {
        let values = statistics_of(space.bump(), &rows.points);
        Statistics { width: values.len() * space.ambient() / rows.points.len(), values, weights: &rows.weights }
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.width..][..self.width]
    }

    fn count(&self) -> usize {
        self.values.len() / self.width
    }

    /// Σ w and Σ w T over some rows.
    fn sums(&self, of: impl Iterator<Item = usize>) -> Vec<f64> {
        let mut sums = vec![0.0; 1 + self.width];
        for i in of {
            let weight = weight(self.weights, i);
            sums[0] += weight;
            sums[1..].iter_mut().zip(self.row(i)).for_each(|(sum, t)| *sum += weight * t);
        }
        sums
    }

    fn mass(&self) -> f64 {
        if self.weights.is_empty() { self.count() as f64 } else { self.weights.iter().sum() }
    }
}

/// Factors that have a concentration together, what their spread is pulled towards, and the least there is.
struct Part {
    bump: Bump,
    prior: f64,
    least: f64,
}

impl NaturalMixture {
    /// Whether so many points can bear so many components; where there is one part, both kinds of rates are the same.
    pub fn is_borne(space: &LocalKernels, rows: usize, count: usize, rates: Rates) -> bool {
        let parts = rates.parts(space).len();
        let differ = rates == Rates::Common || parts > 1;
        differ && count <= MOST && rows >= count * LEAST * (space.dim() + 1 + parts)
    }

    /// Of `count` components at most; no variance is below `floor`.
    pub fn of(
        space: &LocalKernels,
        rows: &Rows,
        count: usize,
        (rates, floor): (Rates, f64),
        context: &Context,
    ) -> Result<Self, Error> {
        let (few, some) = (Statistics::of(space, &rows.few.in_order), Statistics::of(space, &rows.some.in_order));
        let (all, tiles) = (some.sums(0..some.count()), (count as f64).powf(-2.0 / space.dim() as f64));
        let mut at = 1;
        let part = |bump: Bump| {
            let (_, spread) = centre_and_spread(&bump, all[0], &all[at..]);
            at += sufficient_width(&bump);
            Part { prior: spread * tiles, least: 0.5 * bump.dim() as f64 * floor, bump }
        };
        let parts: Vec<Part> = rates.parts(space).into_iter().map(part).collect();
        let first = |groups: &Groups| {
            let own = Statistics::of(space, groups.of);
            let mut this = NaturalMixture { centres: vec![], kappas: vec![], weights: vec![] };
            for group in &groups.each {
                this.push(&own.sums(group.iter().copied()), None, &parts);
            }
            this.even_out();
            this
        };
        let mut this = best(starts(space, rows, count), first, |this| this.round(&parts, &few, context))?;
        let mut before = f64::NEG_INFINITY;
        for _ in 0..ROUNDS {
            let likelihood;
            (this, likelihood) = this.round(&parts, &some, context)?;
            if likelihood - before < ENOUGH {
                break;
            }
            before = likelihood;
        }
        if !rows.all.points.is_empty() {
            let all = Statistics::of(space, &rows.all);
            for _ in 0..LAST_ROUNDS {
                (this, _) = this.round(&parts, &all, context)?;
            }
        }
        Ok(this)
    }

    /// A round of expectation and maximisation, and the mean log-likelihood before it.
    fn round(&self, parts: &[Part], rows: &Statistics, context: &Context) -> Result<(Self, f64), Error> {
        let (count, width) = (rows.count(), rows.width);
        let laws = Laws::of(parts, self, width);
        let length = laws.constants.len() * (1 + width) + 1;
        let each = summed_together(count);
        let pieces = by_rows(count.div_ceil(each), length, &context.quiet(), |first, out| {
            for (piece, sums) in (first..).zip(out.chunks_mut(length)) {
                let own = piece * each..((piece + 1) * each).min(count);
                widest(Expectation { laws: &laws, rows, own, sums });
            }
        })?;
        let mut sums = vec![0.0; length];
        pieces.chunks(length).for_each(|piece| sums.iter_mut().zip(piece).for_each(|(sum, x)| *sum += x));
        let likelihood = sums.pop().unwrap_or(f64::NAN) / rows.mass();
        let mut next = NaturalMixture { centres: vec![], kappas: vec![], weights: vec![] };
        for k in 0..self.weights.len() {
            let own = &sums[k * (1 + width)..][..1 + width];
            if own[0] > (parts.iter().map(|part| part.bump.dim()).sum::<usize>() + 1) as f64 {
                next.push(own, Some(&self.kappas[k * parts.len()..]), parts);
            }
        }
        next.even_out();
        Ok((if next.weights.is_empty() { self.clone() } else { next }, likelihood))
    }

    /// Adds the component of largest likelihood for Σ r and Σ r T; from known concentrations, steps towards it.
    fn push(&mut self, sums: &[f64], kappas: Option<&[f64]>, parts: &[Part]) {
        let (pull, mut at) = (1.0 / (1.0 + sums[0]), 1);
        for (k, Part { bump, prior, least }) in parts.iter().enumerate() {
            let (centre, spread) = centre_and_spread(bump, sums[0], &sums[at..]);
            at += sufficient_width(bump);
            let spread = ((1.0 - pull) * spread + pull * prior).max(*least).max(f64::MIN_POSITIVE);
            self.centres.extend(centre);
            // −E t is about n/2κ, the better the sharper the law.
            let nearer =
                |kappa: f64| (kappa * -bump.mean_statistic(kappa) / spread).clamp(natural::LEAST, natural::MOST);
            self.kappas.push(match kappas {
                None => bump.concentration(spread),
                Some(kappas) => (0..STEPS).fold(kappas[k], |kappa, _| nearer(kappa)),
            });
        }
        self.weights.push(sums[0]);
    }

    /// Weights that add up to one.
    fn even_out(&mut self) {
        let all: f64 = self.weights.iter().sum();
        self.weights.iter_mut().for_each(|w| *w /= all);
    }

    /// Centres with their weights, and for a list of that number the covariances of such laws where they are sharp.
    pub fn laid_out_as(&self, list: usize, space: &LocalKernels) -> (Sites, Shape) {
        let (n, count) = (space.dim(), self.weights.len());
        let (mut factors, mut log_det) = (vec![0.0; n * (n + 1) / 2 * count], vec![0.0; count]);
        let sharp: Vec<f64> = space.spaces.iter().flat_map(|s| vec![sharp(*s); s.dim()]).collect();
        // The part that each direction belongs to.
        let parts: Vec<usize> = match self.kappas.len() / count {
            1 => vec![0; n],
            _ => space
                .bump()
                .clone()
                .by_circle()
                .spaces()
                .iter()
                .enumerate()
                .flat_map(|(f, s)| vec![f; s.dim()])
                .collect(),
        };
        for (k, kappas) in self.kappas.chunks(self.kappas.len() / count).enumerate() {
            for a in 0..n {
                let rate = (kappas[parts[a]] / sharp[a]).sqrt();
                factors[(a * (a + 1) / 2 + a) * count + k] = rate;
                log_det[k] -= rate.ln();
            }
        }
        let sites = Sites { points: self.centres.clone(), weights: self.weights.clone(), groups: vec![] };
        (sites, Shape { list, neighbours: 0, factors, log_det })
    }
}

impl Rates {
    /// The factors that have a concentration together.
    fn parts(self, space: &LocalKernels) -> Vec<Bump> {
        match self {
            Rates::Common => vec![space.bump().clone()],
            Rates::Own => space.bump().clone().by_circle().each(),
        }
    }
}

/// Numbers of T.
fn sufficient_width(bump: &Bump) -> usize {
    bump.spaces().iter().map(|s| s.sufficient_width()).sum()
}

/// The centre of largest likelihood, and −E t about it, from Σ r and a list that begins with Σ r T.
fn centre_and_spread(bump: &Bump, mass: f64, sums: &[f64]) -> (Vec<f64>, f64) {
    let mean: Vec<f64> =
        sums.iter().take(sufficient_width(bump)).map(|sum| sum / mass.max(f64::MIN_POSITIVE)).collect();
    let (mut centre, mut spread, mut rest) = (vec![], 0.0, mean.as_slice());
    for s in bump.spaces() {
        let (own, after) = rest.split_at(s.sufficient_width());
        rest = after;
        let at = s.centre_of(own);
        let (a, b) = s.statistic_of(&at);
        spread -= a.iter().zip(own).map(|(a, t)| a * t).sum::<f64>() + b;
        centre.extend(at);
    }
    (centre, spread.max(0.0))
}

/// Components as log w + ⟨η, T⟩ − A.
struct Laws {
    /// `[component, number of T]`.
    parameters: Vec<f64>,
    constants: Vec<f64>,
}

impl Laws {
    fn of(parts: &[Part], mixture: &NaturalMixture, width: usize) -> Self {
        let mut laws = Laws { parameters: Vec::with_capacity(width * mixture.weights.len()), constants: vec![] };
        let mut centres = mixture.centres.as_slice();
        for (weight, kappas) in mixture.weights.iter().zip(mixture.kappas.chunks(parts.len())) {
            let mut constant = weight.ln();
            for (Part { bump, .. }, kappa) in parts.iter().zip(kappas) {
                constant -= bump.log_normaliser(*kappa);
                for s in bump.spaces() {
                    let (centre, rest) = centres.split_at(s.ambient());
                    centres = rest;
                    let (a, b) = s.statistic_of(centre);
                    constant += kappa * b;
                    laws.parameters.extend(a.iter().map(|a| kappa * a));
                }
            }
            laws.constants.push(constant);
        }
        laws
    }
}

/// Σ r and Σ r T of each component, `[component, 1 + width]`, then the sum of the log-likelihoods, over some rows.
struct Expectation<'a> {
    laws: &'a Laws,
    rows: &'a Statistics<'a>,
    own: std::ops::Range<usize>,
    sums: &'a mut [f64],
}

impl Loop for Expectation<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Expectation { laws, rows, own, sums } = self;
        let (count, width) = (laws.constants.len(), rows.width);
        let (mut values, mut statistics) = (vec![[0.0; ROWS]; count], vec![[0.0; ROWS]; width]);
        let (mut lanes, mut likelihood) = (vec![[0.0; ROWS]; count * (1 + width)], [0.0; ROWS]);
        for first in own.clone().step_by(ROWS) {
            // Lanes beyond the last row repeat it without weight.
            let mut weights = [0.0; ROWS];
            for l in 0..ROWS {
                let i = (first + l).min(own.end - 1);
                weights[l] = if first + l < own.end { weight(rows.weights, i) } else { 0.0 };
                for (all, t) in statistics.iter_mut().zip(rows.row(i)) {
                    all[l] = *t;
                }
            }
            let mut top = [f64::MIN; ROWS];
            for k in 0..count {
                let mut value = [laws.constants[k]; ROWS];
                for (t, &parameter) in statistics.iter().zip(&laws.parameters[k * width..][..width]) {
                    for l in 0..ROWS {
                        value[l] = parameter.mul_add(t[l], value[l]);
                    }
                }
                for l in 0..ROWS {
                    top[l] = top[l].max(value[l]);
                }
                values[k] = value;
            }
            let mut total = [0.0; ROWS];
            for value in &mut values {
                for l in 0..ROWS {
                    value[l] -= top[l];
                }
                *value = exp(*value);
                for l in 0..ROWS {
                    total[l] += value[l];
                }
            }
            let mut scale = [0.0; ROWS];
            for l in 0..ROWS {
                likelihood[l] += weights[l] * (top[l] + total[l].ln());
                scale[l] = weights[l] / total[l];
            }
            for (value, sums) in values.iter().zip(lanes.chunks_mut(1 + width)) {
                let mut share = [0.0; ROWS];
                for l in 0..ROWS {
                    share[l] = value[l] * scale[l];
                    sums[0][l] += share[l];
                }
                for (sum, t) in sums[1..].iter_mut().zip(&statistics) {
                    for l in 0..ROWS {
                        sum[l] = share[l].mul_add(t[l], sum[l]);
                    }
                }
            }
        }
        lanes.push(likelihood);
        sums.iter_mut().zip(&lanes).for_each(|(sum, lanes)| *sum = lanes.iter().sum());
    }
}
