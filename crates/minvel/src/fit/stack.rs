//! Weights of densities that are added up: p = Σ wₖ pₖ.
//!
//! **Statement.** The candidates are the densities pₖ and their sum Σ vₖ pₖ, v of largest likelihood (EM). With S_c = N·mean log p_c over rows that no
//! density has seen, candidate c gets ∫₀¹ π_c e^{f·S_c}/Σ π e^{f·S} df: its probability after a part f of the rows, in the mean over f. π is ½ for the
//! first density and the same for the others. The candidate Σ vₖ pₖ is judged at each row by a v that is found without its fold.
//! **Source.** smyth1999stacking; dempster1977em; yang2000mixing and catoni2004learning (averages over numbers of rows: in expectation a loss is at most
//! log(1/π_c)/N behind that of any candidate; f·S_c stands for the sum of f·N rows in random order).
//! **Conventions.** Nats per row; N is the number of rows by weight, or of groups. Densities that are nearly the first one, and weights
//! below 0.05, are left out; the first weight is at least 10⁻³, so that the sum is nowhere far below the first density.
//! How this rule was chosen: bench/stack_rules.py. **Error.** What a density adds is known to the noise of these rows.
//! **Checked by** the tests below, tests/densities/experts.rs.

use crate::density::Sample;
use std::collections::HashSet;

/// Rounds of EM.
const ROUNDS: usize = 400;
/// The least weight of the first density.
const LEAST: f64 = 1e-3;
/// Weights of EM below are none.
const NEGLIGIBLE: f64 = 1e-3;
/// Weights of candidates below are none.
const SMALL: f64 = 0.05;
/// A density whose logarithm differs from the first one's by less in the root of the mean square is the first: if it is the truth, it gains
/// half of the square, 2·10⁻⁴ nats.
const EQUAL: f64 = 0.02;
/// The most a row can say for or against a density, in nats.
const LOUDEST: f64 = 700.0;
/// Parts of the rows, at equal distances.
const PARTS: usize = 256;

/// Log densities of rows: one list for each density.
pub(super) type Logs<'a> = &'a [&'a [f64]];

/// log Σ wₖ e^{l_k} at each row.
pub(super) fn log_sum(logs: Logs, weights: &[f64]) -> Vec<f64> {
    let row = |i: usize| {
        let used = || logs.iter().zip(weights).filter(|(_, w)| **w > 0.0);
        let top = used().map(|(l, _)| l[i]).fold(f64::NEG_INFINITY, f64::max);
        if top == f64::NEG_INFINITY {
            return top;
        }
        top + used().map(|(l, w)| w * (l[i] - top).exp()).sum::<f64>().ln()
    };
    match weights.iter().position(|w| *w == 1.0) {
        Some(only) => logs[only].to_vec(),
        None => (0..logs[0].len()).map(row).collect(),
    }
}

/// The weights of largest likelihood.
fn em(logs: Logs, judges: &Sample) -> Vec<f64> {
    let mut weights = vec![1.0 / logs.len() as f64; logs.len()];
    for _ in 0..ROUNDS {
        let total = log_sum(logs, &weights);
        let share =
            |k: usize| judges.mean(&logs[k].iter().zip(&total).map(|(l, t)| ratio(*l, *t).exp()).collect::<Vec<f64>>());
        let next: Vec<f64> =
            weights.iter().enumerate().map(|(k, w)| if *w > 0.0 { w * share(k) } else { 0.0 }).collect();
        let change = next.iter().zip(&weights).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        weights = next;
        if change < 1e-9 {
            break;
        }
    }
    without_small(weights, NEGLIGIBLE)
}

/// Weights that add up to one, those below `least` left out but for the first.
fn without_small(mut weights: Vec<f64>, least: f64) -> Vec<f64> {
    weights.iter_mut().skip(1).filter(|w| **w < least).for_each(|w| *w = 0.0);
    weights[0] = weights[0].max(LEAST);
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| w / sum).collect()
}

fn only_first(count: usize) -> Vec<f64> {
    (0..count).map(|k| f64::from(k == 0)).collect()
}

/// The weights of the densities, of `allowed` ones only; their best sum is judged by `folds` of the rows, and is no candidate without.
pub(super) fn weights(logs: Logs, allowed: &[bool], judges: &Sample, folds: &[Vec<usize>]) -> Vec<f64> {
    let differs = |k: &usize| {
        let square = |(a, b): (&f64, &f64)| ratio(*a, *b).powi(2);
        judges.mean(&logs[*k].iter().zip(logs[0]).map(square).collect::<Vec<f64>>()) > EQUAL * EQUAL
    };
    let used: Vec<usize> = std::iter::once(0).chain((1..logs.len()).filter(|k| allowed[*k]).filter(differs)).collect();
    if used.len() == 1 || logs[0].is_empty() {
        return only_first(logs.len());
    }
    let own: Vec<&[f64]> = used.iter().map(|k| logs[*k]).collect();
    let of_sum = if folds.len() > 1 { vec![held_out_sum(&own, judges, folds)] } else { vec![] };
    let candidates: Vec<&[f64]> = own.iter().copied().chain(views(&of_sum)).collect();
    let mut found = mean_posterior(&candidates, judges);
    let of_sum = found.get(own.len()).copied();
    found.truncate(own.len());
    if let Some(share) = of_sum {
        found.iter_mut().zip(em(&own, judges)).for_each(|(found, best)| *found += share * best);
    }
    let mut weights = vec![0.0; logs.len()];
    used.iter().zip(without_small(found, SMALL)).for_each(|(k, w)| weights[*k] = w);
    weights
}

/// a − b, where densities of zero are equal.
fn ratio(a: f64, b: f64) -> f64 {
    if a == b { 0.0 } else { (a - b).clamp(-LOUDEST, LOUDEST) }
}

fn views(lists: &[Vec<f64>]) -> Vec<&[f64]> {
    lists.iter().map(Vec::as_slice).collect()
}

/// The log density of the best sum at each row, with weights from the other folds.
fn held_out_sum(logs: Logs, judges: &Sample, folds: &[Vec<usize>]) -> Vec<f64> {
    let mut sums = vec![0.0; logs[0].len()];
    let width = judges.points().len() / sums.len();
    for own in folds {
        let others: Vec<usize> = (0..sums.len()).filter(|i| own.binary_search(i).is_err()).collect();
        let at =
            |rows: &[usize]| -> Vec<Vec<f64>> { logs.iter().map(|l| rows.iter().map(|&i| l[i]).collect()).collect() };
        let weights = em(&views(&at(&others)), &judges.select(&others, width));
        for (&i, sum) in own.iter().zip(log_sum(&views(&at(own)), &weights)) {
            sums[i] = sum;
        }
    }
    sums
}

/// The probability of each candidate after a part of the rows, in the mean over parts.
fn mean_posterior(logs: Logs, judges: &Sample) -> Vec<f64> {
    let rows = match judges.groups() {
        [] => judges.total(judges.points().len() / logs[0].len()),
        // Rows of a group are no more than one.
        groups => groups.iter().collect::<HashSet<_>>().len() as f64,
    };
    let against_first = |own: &&[f64]| -> f64 {
        rows * judges.mean(&own.iter().zip(logs[0]).map(|(a, b)| ratio(*a, *b)).collect::<Vec<f64>>())
    };
    let sums: Vec<f64> = logs.iter().map(against_first).collect();
    let others = 0.5 / (logs.len() - 1) as f64;
    let mut mean = vec![0.0; logs.len()];
    for part in 0..PARTS {
        let part = (part as f64 + 0.5) / PARTS as f64;
        let prior = |k: usize| if k == 0 { 0.5f64.ln() } else { others.ln() };
        let logs: Vec<f64> = sums.iter().enumerate().map(|(k, sum)| prior(k) + part * sum).collect();
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let own: Vec<f64> = logs.iter().map(|log| (log - top).exp()).collect();
        let all = PARTS as f64 * own.iter().sum::<f64>();
        mean.iter_mut().zip(own).for_each(|(mean, own)| *mean += own / all);
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::split::folds_of;
    use minvel_engine::random::{Key, Stream};

    /// log densities of normal laws at draws of the first, and the draws.
    fn normals(
        rows: usize,
        laws: &[(f64, f64)],
        truth: impl Fn(f64, f64) -> f64,
        seed: u64,
    ) -> (Vec<Vec<f64>>, Vec<f64>) {
        let mut stream = Stream::new(Key::new(seed, 0), 3);
        let points: Vec<f64> = (0..rows).map(|_| truth(stream.normal(), stream.uniform())).collect();
        let log = |x: f64, (mean, deviation): (f64, f64)| -0.5 * ((x - mean) / deviation).powi(2) - deviation.ln();
        (laws.iter().map(|law| points.iter().map(|x| log(*x, *law)).collect()).collect(), points)
    }

    fn of(logs: &[Vec<f64>], points: &[f64]) -> Vec<f64> {
        let judges = Sample::from(points);
        weights(&views(logs), &vec![true; logs.len()], &judges, &folds_of(&judges, 1, 5, 1))
    }

    /// What the sum loses to the best of the densities, on the mean over many samples of a few rows.
    #[test]
    fn in_expectation_the_sum_is_not_behind_the_best_density_by_more_than_the_bound() {
        const ROWS: usize = 100;
        // The first is nearly the truth, or far from it; the others are wider, narrower and shifted.
        for first in [(0.0, 1.05), (0.3, 1.4)] {
            let laws = [first, (0.05, 1.0), (0.0, 1.3), (0.4, 1.0)];
            let (fresh, _) = normals(20_000, &laws, |z, _| z, 99);
            let score = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
            let alone: Vec<f64> = fresh.iter().map(|logs| score(logs)).collect();
            let lost = |k: usize| {
                let losses = (0..200).map(|seed| {
                    let (logs, points) = normals(ROWS, &laws, |z, _| z, seed);
                    alone[k] - score(&log_sum(&views(&fresh), &of(&logs, &points)))
                });
                losses.sum::<f64>() / 200.0
            };
            for (k, prior) in [(0, 0.5f64), (1, 0.125)] {
                let (lost, bound) = (lost(k), -prior.ln() / ROWS as f64);
                println!("first {first:?}: {lost:.5} nats behind density {k}, bound {bound:.5}");
                assert!(lost < bound, "{lost} and {bound}");
            }
            // A twin that takes the others alone is beyond the bound where the first is nearly the truth.
            let others = alone[0].max(alone[1]) - alone[3];
            assert!(others > 0.5f64.ln().abs() / ROWS as f64, "every rule would pass: {others}");
        }
    }

    #[test]
    fn densities_that_complete_each_other_are_added_up_and_equal_ones_are_not() {
        // Half of the rows about −3, half about 3, and a density for either.
        let two = |z: f64, u: f64| z + if u < 0.5 { -3.0 } else { 3.0 };
        let (logs, points) = normals(1000, &[(-3.0, 1.0), (3.0, 1.0)], two, 1);
        let found = of(&logs, &points);
        assert!((found[0] - 0.5).abs() < 0.05 && (found[0] + found[1] - 1.0).abs() < 1e-12, "{found:?}");
        // A copy of the first adds nothing, whatever its prior.
        let copies = [logs[0].clone(), logs[0].iter().map(|l| l + 1e-5).collect(), logs[1].clone()];
        assert_eq!(of(&copies, &points)[1], 0.0);
        // One that is far behind has no weight, and one that is not allowed neither.
        let (logs, points) = normals(1000, &[(0.0, 1.0), (3.0, 1.0)], |z, _| z, 2);
        assert_eq!(of(&logs, &points), [1.0, 0.0]);
        let judges = Sample::from(&points);
        let other_way = [logs[1].as_slice(), logs[0].as_slice()];
        assert_eq!(weights(&other_way, &[true, false], &judges, &[]), [1.0, 0.0]);
        assert!(weights(&other_way, &[true, true], &judges, &[])[1] > 0.99);
    }

    #[test]
    fn rows_that_no_density_reaches_decide_nothing() {
        let (mut logs, points) = normals(500, &[(0.0, 1.0), (0.2, 1.0)], |z, _| z, 3);
        logs.iter_mut().for_each(|own| own[7] = f64::NEG_INFINITY);
        let found = of(&logs, &points);
        assert!(found.iter().all(|w| w.is_finite()) && (found.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{found:?}");
        // One that says a row cannot be is not used alone.
        logs[1][8] = f64::NEG_INFINITY;
        assert!(of(&logs, &points)[0] > 0.5);
    }
}
