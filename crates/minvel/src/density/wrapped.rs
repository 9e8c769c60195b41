//! Mixtures of wrapped normal laws, on any manifold.
//!
//! **Statement.** N(x; c, Σ) = (2π)^{−n/2} det Σ^{−1/2} e^{−vᵀΣ⁻¹v/2} |dv/dvol|, v the normal coordinates of x about c. The
//! mixture Σ_k π_k N(x; c_k, Σ_k) is found by expectation and maximisation: c_k moves to exp_{c_k}(mean of v), then Σ_k is the
//! mean of vvᵀ about it. **Source.** dempster1977em; docs/math §3.1 (normal coordinates).
//! **Conventions.** As for [`Mixture`](super::Mixture): each Σ is pulled by one point's worth towards the spread of all data
//! times K^{−2/n}; components 1, 2, 4, … by the likelihood of validation points.
//! Each law ends at the largest ellipsoid vᵀΣ⁻¹v ≤ q² within 0.9 injectivity radii, and is divided by its mass P(χ²_n ≤ q²).
//! **Error.** Rounding; the steps of c and Σ leave out the end, and how |dv/dvol| changes with c: likelihoods are a little
//! below the best. **Checked by** tests/densities/foreign.rs.

use super::{Density, MixtureSearch, Sample, blend, blended_draws, by_rows, draw, rows, share};
use crate::manifold::{InNumbers, Pairs};
use crate::special::{Eigen, erf, log_gamma};
use crate::train::Context;
use crate::{Error, Manifold};
use minvel_engine::random::{Key, Stream};
use std::f64::consts::TAU;
use std::sync::Arc;

/// Laws end at this share of the injectivity radius, and no deviation is more than this share of it.
const END: f64 = 0.9;
const WIDEST: f64 = 1.0 / 3.0;
/// Rounds end when the mean log-likelihood grows by less, or after so many.
const ENOUGH: f64 = 1e-4;
const ROUNDS: usize = 50;
const LEAST: usize = 10;
/// log density where a law has ended.
const NOWHERE: f64 = -1e4;

/// Σ_k π_k N(x; c_k, Σ_k), with a share of the uniform law.
#[derive(Clone, Debug)]
pub struct WrappedMixture {
    space: Arc<InNumbers>,
    centres: Vec<f64>,
    frames: Vec<f64>,
    /// Lower Cholesky factors of Σ_k, row-major `[n, n]`.
    factors: Vec<f64>,
    /// log π_k − (n/2) log 2π − ½ log det Σ_k − log P(χ²_n ≤ q_k²).
    constants: Vec<f64>,
    /// q_k².
    ends: Vec<f64>,
    share: Option<(f64, f64)>,
}

impl WrappedMixture {
    /// With a given number of components.
    pub fn fitted<'p>(
        manifold: &Arc<dyn Manifold>,
        points: impl Into<Sample<'p>>,
        components: usize,
        search: &MixtureSearch,
        context: &Context,
    ) -> Result<Self, Error> {
        let sample = &points.into();
        assert!(
            components > 0 && rows(sample.points(), manifold.ambient()) > 0,
            "a mixture needs components and points"
        );
        let space = Arc::new(InNumbers::new(manifold)?);
        Self::solved(&space, sample, components, search, context)
    }

    /// The mixture of 1, 2, 4, … components under which the validation points are likeliest; doubling ends when it has
    /// been worse twice, or leaves fewer than two points for each component.
    pub fn selected<'p>(
        manifold: &Arc<dyn Manifold>,
        train: impl Into<Sample<'p>>,
        validation: impl Into<Sample<'p>>,
        search: &MixtureSearch,
        context: &Context,
    ) -> Result<Self, Error> {
        let (train, validation) = (&train.into(), &validation.into());
        let space = Arc::new(InNumbers::new(manifold)?);
        let mut best: Option<(f64, WrappedMixture)> = None;
        let (mut components, mut worse) = (1, 0);
        while components <= search.most && 2 * components <= train.rows(space.ambient) + 1 && worse < 2 {
            context.note(&format!("{components} components"));
            let mixture = Self::solved(&space, train, components, search, context)?;
            let likelihood = validation.mean(&mixture.log_density(validation.points(), context)?);
            match &best {
                Some((before, _)) if *before >= likelihood => worse += 1,
                _ => (best, worse) = (Some((likelihood, mixture)), 0),
            }
            components *= 2;
        }
        Ok(best.expect("one component is tried").1)
    }

    /// π_k.
    fn weight(&self, k: usize) -> f64 {
        let n = self.space.dim;
        let log_det: f64 = (0..n).map(|a| self.factors[k * n * n + a * n + a].ln()).sum();
        let inside = chi_square_below(n, self.ends[k]);
        (self.constants[k] + 0.5 * n as f64 * TAU.ln() + log_det + inside.ln()).exp()
    }

    /// How many components there are.
    pub fn components(&self) -> usize {
        self.constants.len()
    }

    fn solved(
        space: &Arc<InNumbers>,
        sample: &Sample,
        components: usize,
        search: &MixtureSearch,
        context: &Context,
    ) -> Result<Self, Error> {
        let points = sample.points();
        let (mut mixture, mut shares) = Self::start(space, sample, components, search);
        let mut before = f64::NEG_INFINITY;
        for round in 0..search.rounds.min(ROUNDS) {
            mixture.maximise(points, &shares, context)?;
            let logs = mixture.log_components(points, context)?;
            let mut likelihood = 0.0;
            for (i, (row, shares)) in logs.chunks(components).zip(shares.chunks_mut(components)).enumerate() {
                let weight = sample.weight(i);
                let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = row.iter().map(|l| (l - top).exp()).sum();
                shares.iter_mut().zip(row).for_each(|(s, l)| *s = weight * ((l - top).exp() / sum));
                likelihood += weight * (top + sum.ln());
            }
            likelihood /= sample.total(space.ambient);
            // Bounded widths make the first rounds uneven.
            if likelihood - before < ENOUGH && round >= LEAST {
                break;
            }
            before = likelihood;
        }
        Ok(mixture)
    }

    /// Centres by k-means++ in squared distance, and each point given to the nearest.
    fn start(space: &Arc<InNumbers>, sample: &Sample, components: usize, search: &MixtureSearch) -> (Self, Vec<f64>) {
        let (n, m, points) = (space.dim, space.ambient, sample.points());
        let count = sample.rows(m);
        let mut stream = Stream::new(Key::new(search.seed, 0), 0x5752_5000 + components as u32);
        let (mut nearest, mut owner) = (vec![f64::INFINITY; count], vec![0; count]);
        let (mut squares, mut centres) = (vec![0.0; count], vec![]);
        for k in 0..components {
            let part = |(i, s): (usize, &f64)| sample.weight(i) * if s.is_finite() { *s } else { 1.0 };
            let mut left = draw::uniform(&mut stream) * nearest.iter().enumerate().map(part).sum::<f64>();
            let chosen = nearest.iter().enumerate().map(part).position(|part| {
                left -= part;
                left < 0.0
            });
            let centre = &points[chosen.unwrap_or(count - 1) * m..][..m];
            space.squares(points, centre, &mut squares);
            centres.extend_from_slice(centre);
            for ((best, owner), square) in nearest.iter_mut().zip(&mut owner).zip(&squares) {
                if *square < *best {
                    (*best, *owner) = (*square, k);
                }
            }
        }
        let mut shares = vec![0.0; count * components];
        owner.iter().enumerate().for_each(|(i, k)| shares[i * components + k] = sample.weight(i));
        let (factors, constants, ends) = (vec![0.0; components * n * n], vec![0.0; components], vec![0.0; components]);
        let share = share(search.uniform, space.volume.map(f64::ln));
        let frames = space.frames(&centres);
        (WrappedMixture { space: space.clone(), centres, frames, factors, constants, ends, share }, shares)
    }

    /// Moves each component to where its shares of the points lie.
    fn maximise(&mut self, points: &[f64], shares: &[f64], context: &Context) -> Result<(), Error> {
        let (n, m, count) = (self.space.dim, self.space.ambient, self.components());
        let means = self.moments(points, shares, context)?;
        for (k, sums) in means.chunks(1 + n + n * n).enumerate() {
            let mean: Vec<f64> = sums[1..1 + n].iter().map(|s| s / sums[0].max(1e-300)).collect();
            let (centre, frame) = (&self.centres[k * m..][..m], &self.frames[k * n * m..][..n * m]);
            let moved = self.space.points(centre, frame, &mean);
            if moved.iter().all(|x| x.is_finite()) {
                self.centres[k * m..][..m].copy_from_slice(&moved);
            }
        }
        self.frames = self.space.frames(&self.centres);
        let second = self.moments(points, shares, context)?;
        let total: f64 = second.chunks(1 + n + n * n).map(|s| s[0]).sum();
        let trace = |s: &[f64]| (0..n).map(|a| s[1 + n + a * n + a]).sum::<f64>();
        let spread = second.chunks(1 + n + n * n).map(trace).sum::<f64>() / (total * n as f64);
        let prior = spread.max(1e-12) * (count as f64).powf(-2.0 / n as f64);
        for (k, sums) in second.chunks(1 + n + n * n).enumerate() {
            let (weight, pull) = (sums[0], 1.0 / (1.0 + sums[0]));
            let own = &mut self.factors[k * n * n..][..n * n];
            for (ab, c) in own.iter_mut().enumerate() {
                let round = if ab / n == ab % n { prior } else { 0.0 };
                *c = (1.0 - pull) * sums[1 + n + ab] / weight.max(1e-300) + pull * round;
            }
            let largest = Eigen::new(own, n).values.iter().copied().fold(0.0, f64::max);
            let scale = ((WIDEST * self.space.injectivity).powi(2) / largest).min(1.0);
            own.iter_mut().for_each(|c| *c *= scale);
            super::local::cholesky(own, n);
            let log_det: f64 = (0..n).map(|a| own[a * n + a].ln()).sum();
            self.ends[k] = (END * self.space.injectivity).powi(2) / (scale * largest);
            let inside = chi_square_below(n, self.ends[k]);
            self.constants[k] = (weight.max(1e-12) / total).ln() - 0.5 * n as f64 * TAU.ln() - log_det - inside.ln();
        }
        Ok(())
    }

    /// Σ r, Σ r v and Σ r vvᵀ of each component.
    fn moments(&self, points: &[f64], shares: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let (n, m, count) = (self.space.dim, self.space.ambient, self.components());
        let width = 1 + n + n * n;
        by_rows(count, width, context, |first, out| {
            let total = points.len() / m;
            let (mut v, mut logs) = (vec![0.0; total * n], vec![0.0; total]);
            for (k, sums) in (first..).zip(out.chunks_mut(width)) {
                let centres = &self.centres[k * m..][..m];
                let frames = &self.frames[k * n * m..][..n * m];
                self.space.coordinates(Pairs { centres, frames, points }, &mut v, &mut logs);
                for (i, v) in v.chunks(n).enumerate().filter(|(i, _)| logs[*i].is_finite()) {
                    let r = shares[i * count + k];
                    sums[0] += r;
                    (0..n).for_each(|a| sums[1 + a] += r * v[a]);
                    (0..n * n).for_each(|ab| sums[1 + n + ab] += r * v[ab / n] * v[ab % n]);
                }
            }
        })
    }

    /// log π_k N(x; c_k, Σ_k), `[points, K]`.
    fn log_components(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let (n, m, count) = (self.space.dim, self.space.ambient, self.components());
        by_rows(points.len() / m, count, context, |first, out| {
            let (mut v, mut logs, mut y) = (vec![0.0; count * n], vec![0.0; count], vec![0.0; n]);
            for (i, out) in (first..).zip(out.chunks_mut(count)) {
                let pairs = Pairs { centres: &self.centres, frames: &self.frames, points: &points[i * m..][..m] };
                self.space.coordinates(pairs, &mut v, &mut logs);
                for (k, out) in out.iter_mut().enumerate() {
                    let (v, factor) = (&v[k * n..][..n], &self.factors[k * n * n..][..n * n]);
                    for a in 0..n {
                        let rest: f64 = (0..a).map(|b| factor[a * n + b] * y[b]).sum();
                        y[a] = (v[a] - rest) / factor[a * n + a];
                    }
                    let square: f64 = y.iter().map(|y| y * y).sum();
                    let inside = square <= self.ends[k] && logs[k].is_finite();
                    *out = if inside { self.constants[k] - 0.5 * square - logs[k] } else { NOWHERE };
                }
            }
        })
    }
}

/// P(χ²_n ≤ s): from one or two degrees of freedom up, by P(a + 1, x) = P(a, x) − xᵃe⁻ˣ/Γ(a + 1).
fn chi_square_below(n: usize, s: f64) -> f64 {
    if s == f64::INFINITY {
        return 1.0;
    }
    let x = 0.5 * s;
    let (mut a, mut p) = if n % 2 == 1 { (0.5, erf(x.sqrt())) } else { (1.0, -(-x).exp_m1()) };
    while a < 0.5 * n as f64 {
        p -= (a * x.ln() - x - log_gamma(a + 1.0)).exp();
        a += 1.0;
    }
    p.max(f64::MIN_POSITIVE)
}

impl Density for WrappedMixture {
    fn name(&self) -> &str {
        "mixture"
    }

    fn manifold(&self) -> Arc<dyn Manifold> {
        self.space.manifold.clone()
    }

    fn log_density(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let mixed = |row: &[f64]| {
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            blend(top + row.iter().map(|l| (l - top).exp()).sum::<f64>().ln(), self.share)
        };
        Ok(self.log_components(points, context)?.chunks(self.components()).map(mixed).collect())
    }

    fn sample(&self, count: usize, seed: u64, _: &Context) -> Result<Vec<f64>, Error> {
        let (n, m) = (self.space.dim, self.space.ambient);
        let weights: Vec<f64> = (0..self.components()).map(|k| self.weight(k)).collect();
        let mut stream = Stream::new(Key::new(seed, 0), 0x4d49_5832);
        let spread = self.space.base(count, seed);
        Ok(blended_draws(self.share, &spread, m, &mut stream, |stream| {
            let k = draw::weighted(&weights, stream);
            let z = loop {
                let z: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
                if z.iter().map(|z| z * z).sum::<f64>() <= self.ends[k] {
                    break z;
                }
            };
            let factor = &self.factors[k * n * n..][..n * n];
            let v: Vec<f64> = (0..n).map(|a| (0..=a).map(|b| factor[a * n + b] * z[b]).sum()).collect();
            let (centre, frame) = (&self.centres[k * m..][..m], &self.frames[k * n * m..][..n * m]);
            self.space.points(centre, frame, &v)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables: the medians of χ² with 1, 2, 3 and 6 degrees of freedom, and 95 % of that with 4.
    #[test]
    fn chi_squares_are_those_of_tables() {
        let cases =
            [(1, 0.454_936, 0.5), (2, 1.386_294, 0.5), (3, 2.365_974, 0.5), (6, 5.348_121, 0.5), (4, 9.487_729, 0.95)];
        for (n, s, p) in cases {
            assert!((chi_square_below(n, s) - p).abs() < 1e-6, "{n} degrees of freedom");
        }
    }
}
