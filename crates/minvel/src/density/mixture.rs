//! Mixtures of the natural exponential family of the manifold, by expectation–maximisation.
//!
//! **Statement.** p(x) = Σ_k π_k exp(⟨η_k, T(x)⟩ − A(η_k)); E: r_ik ∝ π_k p(x_i; η_k); M: π_k = n_k/N, η_k from
//! Σ_i r_ik T(x_i)/n_k, n_k = Σ_i r_ik. On products T and η stand one after another.
//! **Source.** dempster1977em; banerjee2005vmf (spheres); arthur2007kmeans (first centres). **Conventions.** Coordinates of
//! Rⁿ are standardised first. Each spread is pulled by one point's worth towards the spread of all data times K^{−2/n}, as if
//! K components tiled it. Components 1, 2, 4, … by the likelihood of validation points.
//! **Error.** A local maximum: the best of several starts by training likelihood. **Checked by** tests/densities/density_fit.rs.

use super::cloud::exp_below_zero;
use super::component::Component;
use super::family::Natural;
use super::sample::{Sample, weight};
use super::{
    Bump, Density, MANY_AT_ONCE, blend, blended_draws, by_rows, draw, rows, share, side_by_side, summed_together,
    uniform_points,
};
use crate::manifold::Space;
use crate::train::Context;
use crate::{Error, Manifold};
use minvel_engine::random::{Key, Stream};
use std::sync::Arc;

/// Σ_k π_k p(x; η_k), with a share of the uniform law.
#[derive(Clone, Debug)]
pub struct Mixture {
    bump: Bump,
    standard: Standard,
    components: usize,
    /// Row-major `[width of T, K]`.
    parameters: Vec<f64>,
    /// log π_k − A(η_k).
    constants: Vec<f64>,
    share: Option<(f64, f64)>,
}

/// How a mixture is looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixtureSearch {
    /// The largest number of components tried, a power of two.
    pub most: usize,
    /// Starts for each number of components.
    pub starts: usize,
    /// Rounds of expectation–maximisation, at most.
    pub rounds: usize,
    /// What first centres are drawn by.
    pub seed: u64,
    /// u, the share of the uniform law where the volume is finite.
    pub uniform: f64,
}

impl Default for MixtureSearch {
    fn default() -> Self {
        MixtureSearch { most: 64, starts: 2, rounds: 200, seed: 0, uniform: 0.01 }
    }
}

/// Rounds end when the mean log-likelihood grows by less.
const ENOUGH: f64 = 1e-5;

/// x ↦ (x − shift)·rate, which is the identity but on Rⁿ.
#[derive(Clone, Debug, PartialEq)]
struct Standard {
    shift: Vec<f64>,
    rate: Vec<f64>,
}

impl Standard {
    fn of(bump: &Bump, sample: &Sample) -> Self {
        let (m, points) = (bump.ambient(), sample.points());
        let flat = bump.spaces().iter().flat_map(|s| vec![matches!(s, Space::Euclidean(_)); s.ambient()]);
        let moments = flat.enumerate().map(|(j, flat)| {
            let column: Vec<f64> = points.iter().skip(j).step_by(m).copied().collect();
            let mean = sample.mean(&column);
            let squares: Vec<f64> = column.iter().map(|x| (x - mean).powi(2)).collect();
            let deviation = sample.mean(&squares).sqrt();
            if flat { (mean, if deviation > 0.0 { 1.0 / deviation } else { 1.0 }) } else { (0.0, 1.0) }
        });
        let (shift, rate) = moments.unzip();
        Standard { shift, rate }
    }

    fn apply(&self, points: &[f64]) -> Vec<f64> {
        let m = self.shift.len();
        points.iter().enumerate().map(|(i, x)| (x - self.shift[i % m]) * self.rate[i % m]).collect()
    }

    fn undo(&self, points: &[f64]) -> Vec<f64> {
        let m = self.shift.len();
        points.iter().enumerate().map(|(i, x)| x / self.rate[i % m] + self.shift[i % m]).collect()
    }

    /// log of the volume of its image over that of the set.
    fn log_rate(&self) -> f64 {
        self.rate.iter().map(|r| r.ln()).sum()
    }
}

/// The statistics of the points, and what components are pulled towards.
struct Task<'a> {
    bump: &'a Bump,
    /// Standardised points.
    points: Vec<f64>,
    /// T, row-major.
    statistics: Vec<f64>,
    count: usize,
    /// What each point counts, none where all are 1; and all together.
    weights: Vec<f64>,
    mass: f64,
    width: usize,
    /// Spreads of all points, for each space.
    spreads: Vec<Vec<f64>>,
}

/// One mixture under way: parameters `[width, K]` and constants.
struct Guess {
    parameters: Vec<f64>,
    constants: Vec<f64>,
}

/// The numbers T of which every t is linear, row by row.
pub(super) fn statistics_of(bump: &Bump, points: &[f64]) -> Vec<f64> {
    let mut out = vec![];
    for point in points.chunks(bump.ambient()) {
        let mut start = 0;
        for space in bump.spaces() {
            space.sufficient(&point[start..start + space.ambient()], &mut out);
            start += space.ambient();
        }
    }
    out
}

/// log π_k p(x; η_k) for all k, and their log sum; the components turn into their shares.
fn expectation(guess: &Guess, statistics: &[f64], out: &mut [f64]) -> f64 {
    let k = out.len();
    out.copy_from_slice(&guess.constants);
    for (t, row) in statistics.iter().zip(guess.parameters.chunks(k)) {
        out.iter_mut().zip(row).for_each(|(out, eta)| *out += t * eta);
    }
    let top = out.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    out.iter_mut().for_each(|x| *x = exp_below_zero(*x - top));
    let sum: f64 = out.iter().sum();
    out.iter_mut().for_each(|x| *x /= sum);
    top + sum.ln()
}

impl<'a> Task<'a> {
    fn new(bump: &'a Bump, sample: &Sample) -> Self {
        let points = sample.points().to_vec();
        let statistics = statistics_of(bump, &points);
        let count = rows(&points, bump.ambient());
        let (width, weights) = (statistics.len() / count, sample.weights().to_vec());
        let mass = sample.total(bump.ambient());
        let column = |j: usize| statistics.iter().skip(j).step_by(width).copied().collect::<Vec<f64>>();
        let mean: Vec<f64> = (0..width).map(|j| sample.mean(&column(j))).collect();
        let mut rest = &mean[..];
        let mut spreads = vec![];
        for space in bump.spaces() {
            let (own, others) = rest.split_at(space.sufficient_width());
            spreads.push(space.spreads(own));
            rest = others;
        }
        Task { bump, points, statistics, count, weights, mass, width, spreads }
    }

    /// Centres by k-means++ in −t, and each point given to the nearest: Σ r and Σ r T, `[1 + width, K]`.
    fn start(&self, components: usize, stream: &mut Stream) -> Vec<f64> {
        let cloud = self.bump.cloud(&self.points);
        let mut nearest = vec![f64::NEG_INFINITY; self.count];
        let (mut owner, mut statistics) = (vec![0; self.count], vec![0.0; self.count]);
        for k in 0..components {
            let part = |(i, t): (usize, &f64)| weight(&self.weights, i) * if t.is_finite() { -t } else { 1.0 };
            let total: f64 = nearest.iter().enumerate().map(part).sum();
            let mut left = draw::uniform(stream) * total;
            let mut chosen = nearest.iter().enumerate().map(part);
            let chosen = chosen.position(|w| {
                left -= w;
                left < 0.0
            });
            cloud.statistics(&cloud.row(chosen.unwrap_or(self.count - 1)), &mut statistics);
            for ((best, owner), t) in nearest.iter_mut().zip(&mut owner).zip(&statistics) {
                if *t > *best {
                    (*best, *owner) = (*t, k);
                }
            }
        }
        let mut sums = vec![0.0; (1 + self.width) * components];
        for (i, (owner, t)) in owner.iter().zip(self.statistics.chunks(self.width)).enumerate() {
            let weight = weight(&self.weights, i);
            sums[*owner] += weight;
            t.iter().enumerate().for_each(|(j, t)| sums[(1 + j) * components + owner] += weight * t);
        }
        sums
    }

    /// Parameters from Σ r and Σ r T.
    fn maximised(&self, sums: &[f64], components: usize) -> Guess {
        let k_scale = (components as f64).powf(-2.0 / self.bump.dim() as f64);
        let mut guess = Guess { parameters: vec![0.0; self.width * components], constants: vec![0.0; components] };
        for k in 0..components {
            let weight = sums[k];
            let mean = |j: usize| sums[(1 + j) * components + k] / weight.max(1e-300);
            guess.constants[k] = (weight.max(1e-12) / self.mass).ln();
            let mut start = 0;
            for (space, spreads) in self.bump.spaces().iter().zip(&self.spreads) {
                let own: Vec<f64> = (start..start + space.sufficient_width()).map(mean).collect();
                let prior: Vec<f64> = spreads.iter().map(|s| k_scale * s.max(1e-9)).collect();
                // A component without points keeps its place out of the way, as wide as the data.
                let law =
                    if weight > 1e-6 { space.fitted(&own, &prior, 1.0 / (1.0 + weight)) } else { flat(own.len()) };
                guess.constants[k] += law.constant;
                for (j, eta) in law.parameter.iter().enumerate() {
                    guess.parameters[(start + j) * components + k] = *eta;
                }
                start += own.len();
            }
        }
        guess
    }

    /// Σ r and Σ r T under a guess, and the mean log-likelihood.
    fn expected(&self, guess: &Guess, context: &Context) -> Result<(Vec<f64>, f64), Error> {
        let k = guess.constants.len();
        let length = (1 + self.width) * k + 1;
        let each = summed_together(self.count);
        let all = by_rows(self.count.div_ceil(each), length, context, |first, parts| {
            let mut shares = vec![0.0; k];
            for (part, sums) in (first..).zip(parts.chunks_mut(length)) {
                for i in part * each..((part + 1) * each).min(self.count) {
                    let statistics = &self.statistics[i * self.width..][..self.width];
                    let weight = weight(&self.weights, i);
                    sums[length - 1] += weight * expectation(guess, statistics, &mut shares);
                    shares.iter_mut().for_each(|share| *share *= weight);
                    sums.iter_mut().zip(&shares).for_each(|(sum, r)| *sum += r);
                    for (t, sums) in statistics.iter().zip(sums[k..].chunks_mut(k)) {
                        sums.iter_mut().zip(&shares).for_each(|(sum, r)| *sum += t * r);
                    }
                }
            }
        })?;
        let mut sums = vec![0.0; length];
        all.chunks(length).for_each(|part| sums.iter_mut().zip(part).for_each(|(sum, x)| *sum += x));
        let likelihood = sums.pop().unwrap_or(f64::NAN) / self.mass;
        Ok((sums, likelihood))
    }

    /// The best of several starts.
    fn solve(&self, components: usize, search: &MixtureSearch, context: &Context) -> Result<Guess, Error> {
        let run = |start: usize, context: &Context| {
            let mut stream = Stream::new(Key::new(search.seed, start as u32), 0x4D49_5800 + components as u32);
            let mut guess = self.maximised(&self.start(components, &mut stream), components);
            let mut before = f64::NEG_INFINITY;
            for _ in 0..search.rounds {
                let (sums, likelihood) = self.expected(&guess, context)?;
                guess = self.maximised(&sums, components);
                if likelihood - before < ENOUGH {
                    break;
                }
                before = likelihood;
            }
            let likelihood = self.expected(&guess, context)?.1;
            Ok((guess, likelihood))
        };
        let starts = if components == 1 { 1 } else { search.starts.max(1) };
        let all = side_by_side(starts, MANY_AT_ONCE, context, run)?;
        let best = all.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        Ok(best.expect("there is a start").0)
    }
}

/// A law that no point belongs to.
fn flat(width: usize) -> Natural {
    Natural { parameter: vec![0.0; width], constant: -700.0 }
}

impl Mixture {
    /// A mixture with a given number of components.
    pub fn fitted<'p>(
        manifold: &dyn Manifold,
        points: impl Into<Sample<'p>>,
        components: usize,
        search: &MixtureSearch,
        context: &Context,
    ) -> Result<Self, Error> {
        let (bump, sample) = (Bump::new(manifold)?, &points.into());
        assert!(components > 0 && rows(sample.points(), bump.ambient()) > 0, "a mixture needs components and points");
        let standard = Standard::of(&bump, sample);
        let task = Task::new(&bump, &sample.with_points(standard.apply(sample.points())));
        let guess = task.solve(components, search, context)?;
        let share = share(search.uniform, bump.log_volume());
        let Guess { parameters, constants } = guess;
        Ok(Mixture { components, parameters, constants, share, standard, bump })
    }

    /// The mixture of 1, 2, 4, … components under which the validation points are likeliest; doubling ends when it has
    /// been worse twice, or leaves fewer than two points for each component.
    pub fn selected<'p>(
        manifold: &dyn Manifold,
        train: impl Into<Sample<'p>>,
        validation: impl Into<Sample<'p>>,
        search: &MixtureSearch,
        context: &Context,
    ) -> Result<Self, Error> {
        let (train, validation) = (&train.into(), &validation.into());
        let mut best: Option<(f64, Mixture)> = None;
        let (mut components, mut worse) = (1, 0);
        while components <= search.most && 2 * components <= train.rows(manifold.ambient()) + 1 && worse < 2 {
            context.note(&format!("{components} components"));
            let mixture = Mixture::fitted(manifold, train, components, search, context)?;
            let likelihood = validation.mean(&mixture.log_density(validation.points(), context)?);
            match &best {
                Some((before, _)) if *before >= likelihood => worse += 1,
                _ => (best, worse) = (Some((likelihood, mixture)), 0),
            }
            components *= 2;
        }
        Ok(best.expect("one component is tried").1)
    }

    /// The same after some more rounds of expectation and maximisation, on these points.
    pub fn refined<'p>(self, points: impl Into<Sample<'p>>, rounds: usize, context: &Context) -> Result<Self, Error> {
        let sample = &points.into();
        let task = Task::new(&self.bump, &sample.with_points(self.standard.apply(sample.points())));
        let mut guess = Guess { parameters: self.parameters, constants: self.constants };
        let mut before = f64::NEG_INFINITY;
        for _ in 0..rounds {
            let (sums, likelihood) = task.expected(&guess, context)?;
            if likelihood - before < ENOUGH {
                break;
            }
            guess = task.maximised(&sums, self.components);
            before = likelihood;
        }
        let Guess { parameters, constants } = guess;
        let Mixture { bump, standard, components, share, .. } = self;
        Ok(Mixture { bump, standard, components, parameters, constants, share })
    }

    /// π_k and the laws of the factors, for each component.
    fn drawable(&self) -> Vec<(f64, Vec<Component>)> {
        let one = |k: usize| {
            let eta: Vec<f64> = self.parameters.iter().skip(k).step_by(self.components).copied().collect();
            let mut rest = eta.as_slice();
            let laws: Vec<Component> = self
                .bump
                .spaces()
                .iter()
                .map(|space| {
                    let (own, after) = rest.split_at(space.sufficient_width());
                    rest = after;
                    Component::of(*space, own)
                })
                .collect();
            let log_partition: f64 = laws.iter().map(|law| law.log_partition).sum();
            ((self.constants[k] + log_partition).exp(), laws)
        };
        (0..self.components).map(one).collect()
    }

    /// How many components there are.
    pub fn components(&self) -> usize {
        self.components
    }
}

impl Density for Mixture {
    fn name(&self) -> &str {
        "mixture"
    }

    fn manifold(&self) -> Arc<dyn Manifold> {
        self.bump.manifold()
    }

    fn log_density(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let count = rows(points, self.bump.ambient());
        let statistics = statistics_of(&self.bump, &self.standard.apply(points));
        let width = self.parameters.len() / self.components;
        let guess = Guess { parameters: self.parameters.clone(), constants: self.constants.clone() };
        by_rows(count, 1, context, |first, out| {
            let mut shares = vec![0.0; self.components];
            for (t, out) in statistics[first * width..].chunks(width).zip(out) {
                *out = blend(expectation(&guess, t, &mut shares) + self.standard.log_rate(), self.share);
            }
        })
    }

    fn sample(&self, count: usize, seed: u64, context: &Context) -> Result<Vec<f64>, Error> {
        let m = self.bump.ambient();
        let components = self.drawable();
        let weights: Vec<f64> = components.iter().map(|(weight, _)| *weight).collect();
        let mut stream = Stream::new(Key::new(seed, 0), 0x4d49_5831);
        let spread = uniform_points(&*self.manifold(), count, seed, context)?;
        Ok(blended_draws(self.share, &spread, m, &mut stream, |stream| {
            let mut point = vec![];
            let (_, laws) = &components[draw::weighted(&weights, stream)];
            laws.iter().for_each(|law| law.draw(stream, &mut point));
            self.standard.undo(&point)
        }))
    }
}
