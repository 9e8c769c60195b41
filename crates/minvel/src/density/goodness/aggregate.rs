//! One p-value of several statistics that were resampled together.
//!
//! **Statement.** T_s(b) is the statistic of scale s, b = 0 as observed, b = 1…B resampled. p_s(b) = #{b′: T_s(b′) ≥ T_s(b)}/(B + 1),
//! M(b) = (min_s p_s(b), Σ_s log p_s(b)) in lexicographic order, and p = #{b: M(b) ≤ M(0)}/(B + 1): the least of the p-values, which
//! the same resamples calibrate; the sum breaks its many ties.
//! **Source.** westfall1993resampling (the least p-value by resampling), schrab2023mmdagg (several kernels). **Conventions.** T = wᵀGw for a
//! symmetric G without diagonal: w are signs (Stein) or permuted weights (two samples).
//! **Error.** Where T(0), …, T(B) are exchangeable, P(p ≤ α) ≤ α for any number of scales. **Checked by** tests/densities/goodness.rs.

use super::Goodness;
use crate::Error;
use crate::density::by_pieces;
use crate::train::Context;
use minvel_engine::{Loop, widest};

/// Resamples that are worked on together.
const LANES: usize = 32;

/// Weights w of the observed statistic and of its resamples, `[piece, point, lane]`.
pub(super) struct Weights {
    points: usize,
    count: usize,
    lanes: Vec<[f64; LANES]>,
}

impl Weights {
    /// Of so many points: the first as observed, then B others.
    pub fn new(points: usize, observed: &[f64], resamples: usize, resample: impl Fn(usize) -> Vec<f64>) -> Self {
        let count = 1 + resamples;
        let mut lanes = vec![[0.0; LANES]; points * count.div_ceil(LANES)];
        let mut put = |b: usize, weights: &[f64]| {
            assert_eq!(weights.len(), points, "a weight for each point");
            let piece = &mut lanes[b / LANES * points..][..points];
            piece.iter_mut().zip(weights).for_each(|(lane, w)| lane[b % LANES] = *w);
        };
        put(0, observed);
        (1..count).for_each(|b| put(b, &resample(b - 1)));
        Weights { points, count, lanes }
    }

    /// wᵀGw for each; of G (row-major, square) only what is below the diagonal is looked at.
    pub fn forms(&self, gram: &[f64], context: &Context) -> Result<Resampled, Error> {
        let n = self.points;
        let largest = self.lanes[..n].iter().map(|lane| lane[0].abs()).fold(0.0, f64::max);
        let rounding = 16.0 * f64::EPSILON * largest * largest * gram.iter().map(|g| g.abs()).sum::<f64>();
        let values = by_pieces(self.count, 1, LANES, context, |first, out| {
            for (piece, out) in (first / LANES..).zip(out.chunks_mut(LANES)) {
                let forms = widest(Forms { gram, weights: &self.lanes[piece * n..][..n] });
                out.copy_from_slice(&forms[..out.len()]);
            }
        })?;
        Ok(Resampled { values, rounding })
    }
}

/// wᵀGw of the weights of one piece.
struct Forms<'a> {
    gram: &'a [f64],
    weights: &'a [[f64; LANES]],
}

impl Loop for Forms<'_> {
    type Output = [f64; LANES];

    #[inline(always)]
    fn run(self) -> [f64; LANES] {
        let (n, mut total) = (self.weights.len(), [0.0; LANES]);
        for (i, own) in self.weights.iter().enumerate() {
            let mut sum = [0.0; LANES];
            for (g, w) in self.gram[i * n..][..i].iter().zip(self.weights) {
                for l in 0..LANES {
                    sum[l] += g * w[l];
                }
            }
            for l in 0..LANES {
                total[l] += 2.0 * sum[l] * own[l];
            }
        }
        total
    }
}

/// A resampled statistic, and the rounding errors within which its values are equal.
pub(super) struct Resampled {
    pub values: Vec<f64>,
    pub rounding: f64,
}

impl Resampled {
    /// p_s(b) for each b.
    fn by_rank(&self) -> Vec<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let below = |t: &f64| sorted.partition_point(|s| *s < t - self.rounding);
        self.values.iter().map(|t| (count - below(t)) as f64 / count as f64).collect()
    }
}

/// p-values of each scale's observed statistic, and the one of all of them.
pub(super) fn aggregate(statistics: &[Resampled]) -> (Vec<f64>, f64) {
    let ranks: Vec<Vec<f64>> = statistics.iter().map(Resampled::by_rank).collect();
    let count = ranks.first().map_or(1, Vec::len);
    let least = |b: usize| {
        let own = ranks.iter().map(|p| p[b]);
        own.fold((1.0, 0.0), |(least, sum): (f64, f64), p| (least.min(p), sum + p.ln()))
    };
    let all: Vec<(f64, f64)> = (0..count).map(least).collect();
    let as_extreme = all.iter().filter(|m| **m <= all[0]).count();
    (ranks.iter().map(|p| p[0]).collect(), as_extreme as f64 / count as f64)
}

impl Goodness {
    /// A test of so many points on given scales: `gram` fills the lower half of G of a scale and tells the statistic that is
    /// reported.
    pub(super) fn of_scales(
        points: usize,
        scales: Vec<f64>,
        weights: &Weights,
        context: &Context,
        mut gram: impl FnMut(f64, &mut Vec<f64>) -> Result<f64, Error>,
    ) -> Result<Goodness, Error> {
        let (mut values, mut statistics, mut reported) = (vec![], vec![], vec![]);
        for &scale in &scales {
            reported.push(gram(scale, &mut values)?);
            statistics.push(weights.forms(&values, &context.quiet())?);
            context.worked(1);
        }
        let (p_values, p_value) = aggregate(&statistics);
        let all = scales.into_iter().zip(reported).zip(p_values);
        let scales = all.map(|((scale, statistic), p_value)| super::ScaleTest { scale, statistic, p_value });
        Ok(Goodness { p_value, points, scales: scales.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minvel_engine::random::{Key, Stream};

    /// Statistics of ten scales that have half of their variance in common, all exchangeable.
    fn p_values(seed: u64) -> (Vec<f64>, f64) {
        let mut stream = Stream::new(Key::new(seed, 0), 0);
        let common: Vec<f64> = (0..100).map(|_| stream.normal()).collect();
        let scale = |stream: &mut Stream| Resampled {
            values: common.iter().map(|c| c + stream.normal()).collect(),
            rounding: 0.0,
        };
        let all: Vec<Resampled> = (0..10).map(|_| scale(&mut stream)).collect();
        aggregate(&all)
    }

    #[test]
    fn the_level_is_kept_for_any_number_of_scales() {
        let tests: Vec<(Vec<f64>, f64)> = (0..2000).map(p_values).collect();
        for level in [0.05, 0.1, 0.3] {
            let share = |p: Vec<f64>| p.iter().filter(|p| **p <= level + 1e-9).count() as f64 / 2000.0;
            let kept = share(tests.iter().map(|test| test.1).collect());
            let least = share(tests.iter().map(|test| test.0.iter().copied().fold(1.0, f64::min)).collect());
            let z = (kept - level) / (level * (1.0 - level) / 2000.0f64).sqrt();
            println!("{level}: {kept:.3} (z = {z:+.1}); the least p-value as it is: {least:.3}");
            assert!(z.abs() < 4.0, "{kept} at level {level}");
            assert!(least > 2.0 * level, "the twin has no power");
        }
    }
}
