//! Shares of the families, by expectation and maximisation.
//!
//! **Statement.** The shares π that maximise Σ_rows log Σ_s π_s e^{l_s}, l_s the log density of family s at a row that it has not
//! seen; concave, so that rounds of EM lead there. **Source.** dempster1977em. **Conventions.** Families below a share of 10⁻³ are
//! dropped; the uniform law keeps 10⁻⁴. **Checked by** tests/densities/local_kernels.rs.

use crate::Error;
use crate::density::by_rows;
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

/// The shares that maximise Σ_rows log Σ_s π_s e^{logs}, by rounds of EM from given ones; the uniform law, if any, is the first.
pub(super) fn shares(
    logs: &[f64],
    mut shares: Vec<f64>,
    uniform_first: bool,
    rounds: usize,
    context: &Context,
) -> Result<Vec<f64>, Error> {
    let count = shares.len();
    let rows = logs.len() / count;
    let rounds = rounds.min(ROUNDS);
    if rows > REPRESENTED {
        let some = |k: usize| &logs[k * rows / REPRESENTED * count..][..count];
        let some: Vec<f64> = (0..REPRESENTED).flat_map(some).copied().collect();
        shares = rounds_of_em(&some, shares, rounds, context)?;
    }
    let rounds = if rows > REPRESENTED { rounds.min(LAST_ROUNDS) } else { rounds };
    shares = rounds_of_em(logs, shares, rounds, context)?;
    shares.iter_mut().filter(|s| **s < NEGLIGIBLE).for_each(|s| *s = 0.0);
    if uniform_first {
        shares[0] = shares[0].max(LEAST_UNIFORM);
    }
    let kept: f64 = shares.iter().sum();
    Ok(shares.iter().map(|s| s / kept).collect())
}

fn rounds_of_em(logs: &[f64], mut shares: Vec<f64>, rounds: usize, context: &Context) -> Result<Vec<f64>, Error> {
    // Sums of so many rows each, whatever the threads, so that rounding does not depend on them.
    const EACH: usize = 4096;
    let count = shares.len();
    let rows = logs.len() / count;
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
                for row in rows.chunks(count) {
                    let total: f64 = row.iter().zip(&shares).map(|(l, s)| l * s).sum();
                    next.iter_mut().zip(row).for_each(|(next, l)| *next += l / total);
                }
            }
        })?;
        for (k, share) in shares.iter_mut().enumerate() {
            *share *= sums.iter().skip(k).step_by(count).sum::<f64>() / rows as f64;
        }
    }
    Ok(shares)
}

/// log Σ_k π_k e^{logs_k}.
pub(super) fn log_mean(logs: &[f64], shares: &[f64]) -> f64 {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    top + logs.iter().zip(shares).map(|(log, share)| share * (log - top).exp()).sum::<f64>().ln()
}
