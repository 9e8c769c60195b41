//! Shares of the families, by expectation and maximisation.
//!
//! **Statement.** The shares π that maximise Σ_rows w log Σ_s π_s e^{l_s}, w the weight of a row, l_s the log density of family s at a row that it has not
//! seen; concave, so that rounds of EM lead there. Then families are dropped one after another, each time the one that would be
//! missed least, as long as the mean falls by no more than `worth` in all: every family costs time wherever it is summed.
//! **Source.** dempster1977em. **Conventions.** Families below a share of 10⁻³ are dropped; the uniform law keeps 10⁻⁴. **Checked by** tests/densities/local_kernels.rs.

use crate::Error;
use crate::density::cloud::exp_below_zero;
use crate::density::sample::weight;
use crate::density::{by_rows, summed_together};
use crate::train::Context;

/// Shares below this are dropped, and the others made to add up to one.
const NEGLIGIBLE: f64 = 1e-3;
/// The uniform law keeps at least this share, so that no place has density zero.
const LEAST_UNIFORM: f64 = 1e-4;

/// Likelihoods below e^this of the largest are none.
const NONE: f64 = -600.0;

/// Rounds of EM at most.
pub(super) const ROUNDS: usize = 300;
/// More rows than this are at first represented by as many, at equal distances in their order.
const REPRESENTED: usize = 50_000;
/// Rounds with all of them then.
const LAST_ROUNDS: usize = 40;

/// What families say about rows.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// log densities, `[rows, families]`.
    pub logs: &'a [f64],
    /// What each row counts; none where all are equal.
    pub weights: &'a [f64],
    /// Whether the first family is the uniform law.
    pub uniform_first: bool,
}

/// Likelihoods of some families at rows, relative to that of the likeliest of all families.
struct Likelihoods<'a> {
    /// `[rows, families]`.
    values: Vec<f64>,
    /// log of what they are relative to.
    tops: Vec<f64>,
    /// Which families they are.
    families: Vec<usize>,
    weights: &'a [f64],
    /// Σ w.
    mass: f64,
}

impl<'a> Likelihoods<'a> {
    /// Of the families that have a share.
    fn of(rows: &Rows<'a>, shares: &[f64], context: &Context) -> Result<Self, Error> {
        let (all, families) = (shares.len(), (0..shares.len()).filter(|k| shares[*k] > 0.0).collect::<Vec<usize>>());
        let count = rows.logs.len() / all;
        let top = |row: &[f64]| row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let tops: Vec<f64> = rows.logs.chunks(all).map(top).collect();
        let values = by_rows(count, families.len(), &context.quiet(), |first, out| {
            let logs = rows.logs[first * all..].chunks(all).zip(&tops[first..]);
            for ((row, top), out) in logs.zip(out.chunks_mut(families.len())) {
                for (out, &family) in out.iter_mut().zip(&families) {
                    let log = row[family] - top;
                    *out = if log > NONE { exp_below_zero(log) } else { 0.0 };
                }
            }
        })?;
        let mass = if rows.weights.is_empty() { count as f64 } else { rows.weights.iter().sum() };
        Ok(Likelihoods { values, tops, families, weights: rows.weights, mass })
    }

    /// Without family number k of these.
    fn without(&self, k: usize) -> Self {
        let kept = |(own, _): &(usize, &f64)| *own % self.families.len() != k;
        let values = self.values.iter().enumerate().filter(kept).map(|(_, value)| *value).collect();
        let mut families = self.families.clone();
        families.remove(k);
        Likelihoods { values, families, tops: self.tops.clone(), ..*self }
    }

    /// The shares of these families.
    fn own(&self, shares: &[f64]) -> Vec<f64> {
        self.families.iter().map(|family| shares[*family]).collect()
    }

    /// The mean of log Σ_s π_s e^{l_s}. Terms by several threads, added in the order of the rows.
    fn mean(&self, shares: &[f64], context: &Context) -> Result<f64, Error> {
        let (count, own) = (self.families.len(), self.own(shares));
        let terms = by_rows(self.tops.len(), 1, &context.quiet(), |first, out| {
            for (i, (row, out)) in (first..).zip(self.values[first * count..].chunks(count).zip(out)) {
                let sum: f64 = row.iter().zip(&own).map(|(l, s)| l * s).sum();
                *out = weight(self.weights, i) * (self.tops[i] + sum.ln());
            }
        })?;
        Ok(terms.iter().sum::<f64>() / self.mass)
    }

    /// What the mean falls by without each of the families, the others in the same ratios.
    fn falls(&self, shares: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let (count, own) = (self.families.len(), self.own(shares));
        let falls = by_rows(self.tops.len(), count, &context.quiet(), |first, out| {
            let rows = self.values[first * count..].chunks(count).zip(out.chunks_mut(count));
            for (i, (row, out)) in (first..).zip(rows) {
                let all: f64 = row.iter().zip(&own).map(|(l, s)| l * s).sum();
                for ((out, l), s) in out.iter_mut().zip(row).zip(&own) {
                    *out = weight(self.weights, i) * (1.0 - l * s / all).max(f64::MIN_POSITIVE).ln();
                }
            }
        })?;
        let mut missed = vec![0.0; count];
        for row in falls.chunks(count) {
            missed.iter_mut().zip(row).for_each(|(missed, fall)| *missed -= fall);
        }
        Ok(missed.iter().zip(&own).map(|(missed, share)| missed / self.mass + (1.0 - share).ln()).collect())
    }

    /// Rounds of EM.
    fn rounds(&self, mut shares: Vec<f64>, rounds: usize, context: &Context) -> Result<Vec<f64>, Error> {
        let (count, rows) = (self.families.len(), self.tops.len());
        let each = summed_together(rows);
        for _ in 0..rounds {
            let own = self.own(&shares);
            let sums = by_rows(rows.div_ceil(each), count, &context.quiet(), |first, out| {
                for (part, next) in (first..).zip(out.chunks_mut(count)) {
                    let rows = &self.values[part * each * count..((part + 1) * each).min(rows) * count];
                    for (i, row) in (part * each..).zip(rows.chunks(count)) {
                        let total: f64 = row.iter().zip(&own).map(|(l, s)| l * s).sum();
                        let factor = weight(self.weights, i) / total;
                        next.iter_mut().zip(row).for_each(|(next, l)| *next += l * factor);
                    }
                }
            })?;
            for (k, family) in self.families.iter().enumerate() {
                shares[*family] *= sums.iter().skip(k).step_by(count).sum::<f64>() / self.mass;
            }
        }
        Ok(shares)
    }
}

/// The shares that maximise Σ_rows w log Σ_s π_s e^{logs}, by rounds of EM from given ones.
pub(super) fn shares(
    all: &Rows,
    mut shares: Vec<f64>,
    rounds: usize,
    worth: f64,
    context: &Context,
) -> Result<Vec<f64>, Error> {
    let count = shares.len();
    let rows = all.logs.len() / count;
    let rounds = rounds.min(ROUNDS);
    let (represented, weights): (Vec<f64>, Vec<f64>);
    let mut some = *all;
    if rows > REPRESENTED {
        let place = |k: usize| k * rows / REPRESENTED;
        represented = (0..REPRESENTED).flat_map(|k| &all.logs[place(k) * count..][..count]).copied().collect();
        weights = (0..REPRESENTED).filter_map(|k| all.weights.get(place(k))).copied().collect();
        some = Rows { logs: &represented, weights: &weights, ..*all };
    }
    let likelihoods = Likelihoods::of(&some, &shares, context)?;
    shares = likelihoods.rounds(shares, rounds, context)?;
    shares = fewest(likelihoods, shares, worth, all.uniform_first, context)?;
    if rows > REPRESENTED {
        shares = Likelihoods::of(all, &shares, context)?.rounds(shares, rounds.min(LAST_ROUNDS), context)?;
    }
    shares.iter_mut().filter(|s| **s < NEGLIGIBLE).for_each(|s| *s = 0.0);
    if all.uniform_first {
        shares[0] = shares[0].max(LEAST_UNIFORM);
    }
    let kept: f64 = shares.iter().sum();
    Ok(shares.iter().map(|s| s / kept).collect())
}

/// Rounds after a family was dropped.
const AGAIN: usize = 20;

/// The shares without families that are hardly missed.
fn fewest(
    mut of: Likelihoods,
    mut shares: Vec<f64>,
    worth: f64,
    uniform_first: bool,
    context: &Context,
) -> Result<Vec<f64>, Error> {
    let least = if worth > 0.0 { of.mean(&shares, context)? - worth } else { return Ok(shares) };
    loop {
        context.go_on()?;
        let falls = of.falls(&shares, context)?;
        let kept = |k: &usize| shares[of.families[*k]] > 0.0 && !(uniform_first && of.families[*k] == 0);
        let left: Vec<usize> = (0..falls.len()).filter(kept).collect();
        let Some(&next) = left.iter().min_by(|a, b| falls[**a].total_cmp(&falls[**b])).filter(|_| left.len() > 1)
        else {
            return Ok(shares);
        };
        let mut without = shares.clone();
        without[of.families[next]] = 0.0;
        let sum: f64 = without.iter().sum();
        without.iter_mut().for_each(|share| *share /= sum);
        let others = of.without(next);
        without = others.rounds(without, AGAIN, context)?;
        // Rows that only this family says anything about make it no number.
        if others.mean(&without, context)?.partial_cmp(&least).is_none_or(std::cmp::Ordering::is_lt) {
            return Ok(shares);
        }
        (shares, of) = (without, others);
    }
}

/// log Σ_k π_k e^{logs_k}.
pub(super) fn log_mean(logs: &[f64], shares: &[f64]) -> f64 {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    top + logs.iter().zip(shares).map(|(log, share)| share * (log - top).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two families that explain a half of the rows each, twins of both that are a little worse, and the uniform law.
    fn logs(rows: usize) -> Vec<f64> {
        let row = |i: usize| {
            let (a, b) = if i.is_multiple_of(2) { (0.0, -3.0) } else { (-3.0, 0.0) };
            let wobble = 0.01 * ((i % 7) as f64 - 3.0);
            [-6.0, a, b, a - 0.02 + wobble, b - 0.02 - wobble]
        };
        (0..rows).flat_map(row).collect()
    }

    #[test]
    fn families_that_are_hardly_missed_are_left_out_and_the_others_are_not() {
        let (logs, context) = (logs(1000), Context::bare());
        let rows = Rows { logs: &logs, weights: &[], uniform_first: true };
        let found = |worth: f64| shares(&rows, vec![0.2; 5], ROUNDS, worth, &context).unwrap();
        let mean = |shares: &[f64]| logs.chunks(5).map(|row| log_mean(row, shares)).sum::<f64>() / 1000.0;
        let (all, few) = (found(0.0), found(1e-3));
        let kept = |shares: &[f64]| (0..5).filter(|k| shares[*k] > 0.0).collect::<Vec<usize>>();
        assert_eq!(kept(&few), [0, 1, 2], "{few:?}");
        assert!(kept(&all).len() > 3, "{all:?}: there is nothing to leave out");
        assert!(mean(&all) - mean(&few) < 1.2e-3, "{} and {}", mean(&all), mean(&few));
        assert!((few.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        // One row that a single family reaches keeps that family, whatever it is worth.
        let mut alone = self::logs(1000);
        (alone[0], alone[1], alone[2], alone[4]) = (f64::NEG_INFINITY, -9.0, f64::NEG_INFINITY, f64::NEG_INFINITY);
        alone[3] = f64::NEG_INFINITY;
        let rows = Rows { logs: &alone, weights: &[], uniform_first: false };
        let found_alone = shares(&rows, vec![0.2; 5], ROUNDS, 0.5, &context).unwrap();
        assert!(found_alone[1] > 0.0 && found_alone.iter().all(|share| share.is_finite()), "{found_alone:?}");
        // A family that half of the rows need is not for sale.
        assert_eq!(kept(&found(0.05)), [0, 1, 2]);
    }

    #[test]
    fn shares_are_those_of_plain_rounds_of_em() {
        let (logs, count) = (logs(3000), 5);
        let weights: Vec<f64> = (0..3000).map(|i| 1.0 + 0.5 * (i % 3) as f64).collect();
        let rows = Rows { logs: &logs, weights: &weights, uniform_first: false };
        let found = shares(&rows, vec![0.2; count], 30, 0.0, &Context::of_threads(2)).unwrap();
        let mut plain = vec![0.2; count];
        for _ in 0..30 {
            let mut next = vec![0.0; count];
            for (row, weight) in logs.chunks(count).zip(&weights) {
                let total: f64 = row.iter().zip(&plain).map(|(l, s)| s * l.exp()).sum();
                for k in 0..count {
                    next[k] += weight * plain[k] * row[k].exp() / total;
                }
            }
            let mass: f64 = weights.iter().sum();
            plain = next.iter().map(|share| share / mass).collect();
        }
        // Small shares are dropped in the end.
        plain.iter_mut().filter(|share| **share < NEGLIGIBLE).for_each(|share| *share = 0.0);
        let kept: f64 = plain.iter().sum();
        for (found, plain) in found.iter().zip(&plain) {
            assert!((found - plain / kept).abs() < 1e-12, "{found} instead of {}", plain / kept);
        }
    }
}
