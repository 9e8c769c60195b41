//! Shares of the families, by expectation and maximisation.
//!
//! **Statement.** The shares π that maximise Σ_rows w log Σ_s π_s e^{l_s}, w the weight of a row, l_s the log density of family s at a row that it has not
//! seen; concave, so that rounds of EM lead there. Then families are dropped one after another, each time the one that would be
//! missed least, as long as the mean falls by no more than `worth` in all: every family costs time wherever it is summed.
//! **Source.** dempster1977em. **Conventions.** Families below a share of 10⁻³ are dropped; the uniform law keeps 10⁻⁴. **Checked by** tests/densities/local_kernels.rs.

use crate::Error;
use crate::density::by_rows;
use crate::density::sample::weight;
use crate::train::Context;

/// Shares below this are dropped, and the others made to add up to one.
const NEGLIGIBLE: f64 = 1e-3;
/// The uniform law keeps at least this share, so that no place has density zero.
const LEAST_UNIFORM: f64 = 1e-4;

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

impl Rows<'_> {
    /// The sum of the weights of so many rows.
    fn mass(&self, rows: usize) -> f64 {
        if self.weights.is_empty() { rows as f64 } else { self.weights.iter().sum() }
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
    shares = rounds_of_em(&some, shares, rounds, context)?;
    shares = fewest(&some, shares, worth, context)?;
    if rows > REPRESENTED {
        shares = rounds_of_em(all, shares, rounds.min(LAST_ROUNDS), context)?;
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
fn fewest(of: &Rows, mut shares: Vec<f64>, worth: f64, context: &Context) -> Result<Vec<f64>, Error> {
    let &Rows { logs, weights, uniform_first } = of;
    let count = shares.len();
    let mass = of.mass(logs.len() / count);
    let (rows, quiet) = (logs.len() / count, &context.quiet());
    // Terms by several threads, and added in the order of the rows.
    let mean = |shares: &[f64]| -> Result<f64, Error> {
        let terms = by_rows(rows, 1, quiet, |first, out| {
            for (i, (row, out)) in (first..).zip(logs[first * count..].chunks(count).zip(out)) {
                *out = weight(weights, i) * log_mean(row, shares);
            }
        })?;
        Ok(terms.iter().sum::<f64>() / mass)
    };
    let least = if worth > 0.0 { mean(&shares)? - worth } else { return Ok(shares) };
    loop {
        context.go_on()?;
        // What the mean falls by without each of them, the others in the same ratios.
        let falls = by_rows(rows, count, quiet, |first, out| {
            for (i, (row, out)) in (first..).zip(logs[first * count..].chunks(count).zip(out.chunks_mut(count))) {
                let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                out.iter_mut().zip(row).zip(&shares).for_each(|((part, l), s)| *part = s * (l - top).exp());
                let all: f64 = out.iter().sum();
                out.iter_mut().for_each(|x| *x = weight(weights, i) * (1.0 - *x / all).max(f64::MIN_POSITIVE).ln());
            }
        })?;
        let mut missed = vec![0.0; count];
        for row in falls.chunks(count) {
            missed.iter_mut().zip(row).for_each(|(missed, fall)| *missed -= fall);
        }
        let kept = |k: &usize| shares[*k] > 0.0 && !(uniform_first && *k == 0);
        let fall = |k: usize| missed[k] / mass + (1.0 - shares[k]).ln();
        let left: Vec<usize> = (0..count).filter(kept).collect();
        let Some(&next) = left.iter().min_by(|a, b| fall(**a).total_cmp(&fall(**b))).filter(|_| left.len() > 1) else {
            return Ok(shares);
        };
        let mut without = shares.clone();
        without[next] = 0.0;
        let sum: f64 = without.iter().sum();
        without.iter_mut().for_each(|share| *share /= sum);
        without = rounds_of_em(of, without, AGAIN, context)?;
        // Rows that only this family says anything about make it no number.
        if mean(&without)?.partial_cmp(&least).is_none_or(std::cmp::Ordering::is_lt) {
            return Ok(shares);
        }
        shares = without;
    }
}

fn rounds_of_em(of: &Rows, mut shares: Vec<f64>, rounds: usize, context: &Context) -> Result<Vec<f64>, Error> {
    // Sums of so many rows each, whatever the threads, so that rounding does not depend on them.
    const EACH: usize = 4096;
    let (count, logs) = (shares.len(), of.logs);
    let rows = logs.len() / count;
    let mass = of.mass(rows);
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
                for (i, row) in (part * EACH..).zip(rows.chunks(count)) {
                    let total = row.iter().zip(&shares).map(|(l, s)| l * s).sum::<f64>() / weight(of.weights, i);
                    next.iter_mut().zip(row).for_each(|(next, l)| *next += l / total);
                }
            }
        })?;
        for (k, share) in shares.iter_mut().enumerate() {
            *share *= sums.iter().skip(k).step_by(count).sum::<f64>() / mass;
        }
    }
    Ok(shares)
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
}
