//! One p-value of several statistics that were resampled together.
//!
//! **Statement.** T_s(b) is the statistic of scale s, b = 0 as observed, b = 1…B resampled; Z_s(b) is the normal number that T_s(b) is a
//! cubic of ([`Cubic`]), M(b) = max_s Z_s(b), and p = #{b: M(b) ≥ M(0)}/(B + 1): the scale that is furthest out, which the same resamples
//! calibrate. **Source.** westfall1993resampling (the extreme of several tests by resampling), schrab2023mmdagg (several kernels),
//! wilson1931chisquare (cube roots of χ² are nearly normal). **Conventions.** T = wᵀGw for a symmetric G without diagonal: w are signs
//! (Stein) or permuted weights (two samples). Ranks instead of Z would be equal for the outermost resample of each scale, however
//! far out it is: of eight scales, p could hardly be below 8/(B + 1).
//! **Error.** Where T(0), …, T(B) are exchangeable, P(p ≤ α) ≤ α for any number of scales, since a cubic is a symmetric function of
//! all T_s(b); how normal Z is matters for power only. **Checked by** tests/densities/goodness.rs.

use super::Goodness;
use crate::Error;
use crate::density::{by_pieces, by_rows};
use crate::train::Context;
use minvel_engine::{Loop, widest};

/// Resamples that are worked on together, and rows of G: their sums fit into the registers.
const LANES: usize = 16;
const ROWS: usize = 4;

/// Weights w of the observed statistic and of its resamples, `[piece, point, lane]`.
pub(super) struct Weights {
    points: usize,
    count: usize,
    lanes: Vec<[f64; LANES]>,
}

impl Weights {
    /// Of so many points: the first as observed, then B others.
    pub fn new(
        observed: &[f64],
        resamples: usize,
        resample: impl Fn(usize) -> Vec<f64> + Sync,
        context: &Context,
    ) -> Result<Self, Error> {
        let (points, count) = (observed.len(), 1 + resamples);
        let lanes = by_rows(count.div_ceil(LANES), points, &context.quiet(), |first, out| {
            for (piece, lanes) in (first..).zip(out.chunks_mut(points)) {
                for (lane, b) in (piece * LANES..((piece + 1) * LANES).min(count)).enumerate() {
                    let weights = if b == 0 { observed.to_vec() } else { resample(b - 1) };
                    assert_eq!(weights.len(), points, "a weight for each point");
                    lanes.iter_mut().zip(weights).for_each(|(all, w): (&mut [f64; LANES], f64)| all[lane] = w);
                }
            }
        })?;
        Ok(Weights { points, count, lanes })
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
        for first in (0..n).step_by(ROWS) {
            let rows = ROWS.min(n - first);
            let mut sums = [[0.0; LANES]; ROWS];
            // The columns that all rows of the block have: a weight that was loaded meets each of them. Rows that are missing repeat the last.
            let own: [&[f64]; ROWS] = std::array::from_fn(|r| &self.gram[(first + r.min(rows - 1)) * n..][..first]);
            for (j, w) in self.weights[..first].iter().enumerate() {
                for r in 0..ROWS {
                    let g = own[r][j];
                    for l in 0..LANES {
                        sums[r][l] += g * w[l];
                    }
                }
            }
            for (i, sum) in (first..n).zip(&mut sums) {
                for (g, w) in self.gram[i * n..][first..i].iter().zip(&self.weights[first..i]) {
                    sum.iter_mut().zip(w).for_each(|(sum, w)| *sum += g * w);
                }
                for l in 0..LANES {
                    total[l] += 2.0 * sum[l] * self.weights[i][l];
                }
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

/// T = m + β((1 + cZ)³ − 1) with a median m and normal Z, as sums of squares of normal numbers nearly are.
struct Cubic {
    median: f64,
    beta: f64,
    /// c; 0 where T itself is normal, with the standard deviation β.
    bend: f64,
}

/// The normal number that 95 % are below.
const Z95: f64 = 1.644_853_626_951_472_7;
/// (q₉₅ − m)/(m − q₅) of the most bent cubic: a cubic through quantiles with a ratio of 13.9 is not increasing between them.
const MOST_BENT: f64 = 13.0;

impl Cubic {
    /// Through the 5, 50 and 95 % of values in increasing order: few values far out, as what is tested may be, do not change it.
    fn through(sorted: &[f64]) -> Self {
        let quantile = |share: f64| sorted[(share * (sorted.len() - 1) as f64).round() as usize];
        let [low, median, high] = [0.05, 0.5, 0.95].map(quantile);
        // u = c·Z95 solves (q₉₅ − m)/(m − q₅) = ((1 + u)³ − 1)/(1 − (1 − u)³)
        let ratio = ((high - median) / (median - low)).clamp(MOST_BENT.recip(), MOST_BENT);
        let (sum, difference) = (3.0 * (ratio + 1.0), ratio - 1.0);
        let u = 6.0 * difference / (sum + (sum * sum - 12.0 * difference * difference).sqrt());
        if u.is_nan() || u.abs() < 1e-3 {
            return Cubic { median, beta: (high - low) / (2.0 * Z95), bend: 0.0 };
        }
        Cubic { median, beta: (high - low) / (6.0 * u + 2.0 * u.powi(3)), bend: u / Z95 }
    }

    /// Z of a value; of what is equal to the median 0, also where all values are.
    fn normal(&self, value: f64) -> f64 {
        let away = value - self.median;
        if away == 0.0 {
            0.0
        } else if self.bend == 0.0 {
            away / self.beta
        } else {
            ((1.0 + away / self.beta).cbrt() - 1.0) / self.bend
        }
    }
}

/// p-values of each scale's observed statistic, and the one of all of them.
pub(super) fn aggregate(statistics: &[Resampled]) -> (Vec<f64>, f64) {
    let count = statistics.first().map_or(1, |s| s.values.len());
    let (mut p_values, mut furthest, mut observed) = (vec![], vec![f64::NEG_INFINITY; count], f64::NEG_INFINITY);
    for statistic in statistics {
        let mut sorted = statistic.values.clone();
        sorted.sort_by(f64::total_cmp);
        // equal within rounding is as extreme
        let least = statistic.values[0] - statistic.rounding;
        p_values.push((count - sorted.partition_point(|t| *t < least)) as f64 / count as f64);
        let cubic = Cubic::through(&sorted);
        observed = observed.max(cubic.normal(least));
        furthest.iter_mut().zip(&statistic.values).for_each(|(z, t)| *z = z.max(cubic.normal(*t)));
    }
    (p_values, furthest.iter().filter(|z| **z >= observed).count() as f64 / count as f64)
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

    /// The median and the upper 0.1 % of a law of T, whose values are given by those of many normal numbers.
    fn tail(law: impl Fn(&mut Stream) -> f64) -> [f64; 2] {
        let mut stream = Stream::new(Key::new(7, 0), 0);
        let mut values: Vec<f64> = (0..100_000).map(|_| law(&mut stream)).collect();
        values.sort_by(f64::total_cmp);
        let cubic = Cubic::through(&values);
        [50_000, 99_900].map(|rank| cubic.normal(values[rank]))
    }

    #[test]
    fn values_of_a_cubic_are_nearly_normal_far_beyond_the_quantiles_that_it_goes_through() {
        // 3.09 is the normal number with 0.1 % above it; the standard error of its rank is a tenth of that share
        for (law, within) in [("normal", 0.06), ("two squares", 0.25), ("one square", 0.4)] {
            let squares = |stream: &mut Stream, n: usize| (0..n).map(|_| stream.normal().powi(2)).sum::<f64>();
            let [median, far] = tail(|stream| match law {
                "normal" => 3.0 + 0.1 * stream.normal(),
                "two squares" => squares(stream, 2),
                _ => squares(stream, 1),
            });
            println!("{law}: median {median:.3}, upper 0.1 % {far:.2}");
            assert!(median == 0.0 && (far - 3.09).abs() < within, "{law}: {far}");
        }
    }

    #[test]
    fn what_is_far_out_on_one_scale_is_not_hidden_by_the_outermost_resamples_of_others() {
        // The story: with the least rank instead of Z, ten scales tied the observed with ten resamples.
        let mut stream = Stream::new(Key::new(3, 0), 0);
        let mut scale = |observed: f64| {
            let resampled = (0..999).map(|_| stream.normal());
            Resampled { values: std::iter::once(observed).chain(resampled).collect(), rounding: 0.0 }
        };
        let all: Vec<Resampled> = (0..10).map(|k| scale(if k == 4 { 8.0 } else { 0.0 })).collect();
        assert_eq!(aggregate(&all).1, 0.001, "nothing else is as far out");
    }

    #[test]
    fn forms_by_blocks_are_those_of_plain_sums() {
        let mut stream = Stream::new(Key::new(11, 0), 0);
        for n in [1, 2, 4, 5, 31, 64] {
            let mut normal = |count: usize| (0..count).map(|_| stream.normal()).collect::<Vec<f64>>();
            let (gram, all) = (normal(n * n), normal(n * 40));
            let own = |b: usize| all[b * n..(b + 1) * n].to_vec();
            let weights = Weights::new(&own(0), 39, |b| own(b + 1), &Context::of_threads(2)).unwrap();
            let forms = weights.forms(&gram, &Context::of_threads(2)).unwrap().values;
            assert_eq!(forms.len(), 40);
            for (b, form) in forms.iter().enumerate() {
                let w = own(b);
                let pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
                let terms: Vec<f64> = pairs.map(|(i, j)| 2.0 * w[i] * gram[i * n + j] * w[j]).collect();
                let (plain, size) = (terms.iter().sum::<f64>(), terms.iter().map(|t| t.abs()).sum::<f64>());
                assert!((form - plain).abs() <= (n * n) as f64 * f64::EPSILON * size, "{n}: {form} and {plain}");
            }
        }
    }

    #[test]
    fn equal_statistics_are_no_evidence() {
        let all = [Resampled { values: vec![2.0; 100], rounding: 1e-12 }];
        assert_eq!(aggregate(&all), (vec![1.0], 1.0));
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
