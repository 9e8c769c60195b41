//! Splits of rows, and rows that repeat others.
//!
//! **Statement.** Row π(i) is a test row for i < n/10, a validation row for i < 2n/10, else a training row; π is the
//! permutation of 0..n keyed by the seed.
//! **Conventions.** Points are equal if all their numbers are (0 and −0 too). Tenths are rounded to the nearest.
//! **Checked by** crates/lab/tests/lab/data_points.rs.

use crate::density::repeats::{Known, first_rows};
use minvel_engine::random::{Draw, Key, Site, fill_rows};

/// The stream of the permutation: no training draws from it, since keys differ by replica only.
const STREAM: u32 = 0x5b1_1700;
/// And that of folds.
const FOLDS: u32 = 0x5b1_1701;

/// Rows of a data set, each in one of three parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// To learn from.
    pub train: Vec<usize>,
    /// To choose by.
    pub validation: Vec<usize>,
    /// To report.
    pub test: Vec<usize>,
}

impl Split {
    /// Splits rows 80/10/10, the same way for the same seed; rows of a part stand in order.
    pub fn new(rows: usize, seed: u64) -> Split {
        let order = permutation(rows, seed, STREAM);
        let tenth = (rows + 5) / 10;
        let part = |range: std::ops::Range<usize>| {
            let mut part = order[range].to_vec();
            part.sort_unstable();
            part
        };
        Split { test: part(0..tenth), validation: part(tenth..2 * tenth), train: part(2 * tenth..rows) }
    }
}

/// Rows dealt into `count` parts of about equal size, the same way for the same seed; rows of a part stand in order.
pub fn folds(rows: usize, count: usize, seed: u64) -> Vec<Vec<usize>> {
    let order = permutation(rows, seed, FOLDS);
    (0..count)
        .map(|k| {
            let mut part = order[k * rows / count..(k + 1) * rows / count].to_vec();
            part.sort_unstable();
            part
        })
        .collect()
}

/// The permutation of rows that a seed and a stream name.
fn permutation(rows: usize, seed: u64, stream: u32) -> Vec<usize> {
    let n = u32::try_from(rows).expect("fewer than 2^32 rows");
    let mut order = vec![0.0f64; rows];
    if n > 0 {
        let site = Site { key: Key::new(seed, 0), stream, step: 0, rows: n };
        fill_rows(Draw::Permutation(n), &site, 0..n, 0..1, &mut order, rows);
    }
    order.into_iter().map(|row| row as usize).collect()
}

/// Rows that repeat no earlier one.
pub fn distinct_indices(points: &[f64], ambient: usize) -> Vec<usize> {
    let first = first_rows(points, ambient);
    (0..first.len()).filter(|&row| first[row] as usize == row).collect()
}

/// How many different points there are.
pub fn distinct_rows(points: &[f64], ambient: usize) -> usize {
    first_rows(points, ambient).into_iter().enumerate().filter(|(row, first)| *first as usize == *row).count()
}

/// The share of test rows whose point is that of a training row, bit for bit.
pub fn leaked_share(points: &[f64], ambient: usize, split: &Split) -> f64 {
    let known = Known::new(points, ambient, split.train.iter().copied());
    let leaked = split.test.iter().filter(|row| known.holds(&points[*row * ambient..][..ambient])).count();
    if split.test.is_empty() { 0.0 } else { leaked as f64 / split.test.len() as f64 }
}
