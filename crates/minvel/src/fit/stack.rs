//! Weights of densities that are added up: p = Σ wₖ pₖ.
//!
//! **Statement.** w maximises the mean of log Σ wₖ e^{l_k} over rows that no density has seen, a concave problem, by EM. Then
//! densities are left out one after another, each time the one that is missed least, as long as it is missed by no more than 1.64
//! standard errors of what it adds (which chance exceeds once in twenty), or 1/N: the first density always stays.
//! **Source.** smyth1999stacking; dempster1977em; 1/N is what a fitted number gains by chance (akaike1974identification).
//! **Conventions.** Nats per row; the first weight is at least 10⁻³, so that the sum is nowhere far below the first density.
//! **Error.** What a density adds is known to the noise of these rows. **Checked by** tests/densities/experts.rs.

use crate::density::Sample;

/// Rounds of EM.
const ROUNDS: usize = 400;
/// The least weight of the first density.
const LEAST: f64 = 1e-3;
/// Weights below are none.
const NEGLIGIBLE: f64 = 1e-3;

/// Standard errors that what a density adds has to exceed.
const SIGMAS: f64 = 1.64;

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

/// The best weights of the densities in `used`, the others 0.
pub(super) fn em(logs: Logs, used: &[bool], judges: &Sample) -> Vec<f64> {
    let (count, rows) = (used.iter().filter(|u| **u).count(), logs[0].len());
    let mut weights: Vec<f64> = used.iter().map(|u| if *u { 1.0 / count as f64 } else { 0.0 }).collect();
    if count == 1 || rows == 0 {
        return only_first(logs.len());
    }
    for _ in 0..ROUNDS {
        let total = log_sum(logs, &weights);
        let share =
            |k: usize| judges.mean(&logs[k].iter().zip(&total).map(|(l, t)| (l - t).exp()).collect::<Vec<f64>>());
        let next: Vec<f64> =
            weights.iter().enumerate().map(|(k, w)| if *w > 0.0 { w * share(k) } else { 0.0 }).collect();
        let change = next.iter().zip(&weights).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        weights = next;
        if change < 1e-9 {
            break;
        }
    }
    weights.iter_mut().skip(1).filter(|w| **w < NEGLIGIBLE).for_each(|w| *w = 0.0);
    weights[0] = weights[0].max(LEAST);
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| w / sum).collect()
}

fn only_first(count: usize) -> Vec<f64> {
    (0..count).map(|k| f64::from(k == 0)).collect()
}

/// The weights of the densities that are worth it; of `allowed` ones only.
pub(super) fn weights(logs: Logs, allowed: &[bool], judges: &Sample) -> Vec<f64> {
    let rows = if judges.weights().is_empty() { logs[0].len() as f64 } else { judges.weights().iter().sum() };
    let mut used = allowed.to_vec();
    used[0] = true;
    loop {
        let now = em(logs, &used, judges);
        used.iter_mut().zip(&now).skip(1).for_each(|(u, w)| *u &= *w > 0.0);
        let whole = log_sum(logs, &now);
        let missed = |k: usize| {
            let mut without = used.clone();
            without[k] = false;
            let less = log_sum(logs, &em(logs, &without, judges));
            judges.estimate(&whole.iter().zip(&less).map(|(a, b)| a - b).collect::<Vec<f64>>())
        };
        let candidates = (1..logs.len()).filter(|k| used[*k]).map(|k| (k, missed(k)));
        let least = candidates.min_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
        match least {
            // an unknown error is no reason to keep it
            Some((k, gain)) if gain.mean.is_nan() || gain.mean <= (SIGMAS * gain.std_error).max(1.0 / rows) => {
                used[k] = false;
            }
            _ => return now,
        }
    }
}
