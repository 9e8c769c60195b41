//! Splits of rows, and rows that repeat others.
//!
//! **Statement.** Row π(i) is a test row for i < n/10, a validation row for i < 2n/10, else a training row; π is the
//! permutation of 0..n keyed by the seed.
//! Groups of rows are undivided: they are permuted instead of rows. **Conventions.** Points are equal if all their numbers are (0 and −0 too). Tenths are rounded to the nearest.
//! **Checked by** crates/lab/tests/lab/data_points.rs.

use crate::density::Sample;
use crate::density::repeats::{Known, first_rows};
use minvel_engine::random::{Draw, Key, Site, fill_rows};
use std::collections::HashMap;

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

/// What a row is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The model is made of it.
    Train,
    /// It stops the training and chooses the share of the correction.
    Validation,
    /// It is scored once.
    Test,
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

    /// The split that says of each row what it is for.
    pub fn by_parts(parts: &[Part]) -> Split {
        let of = |part: Part| (0..parts.len()).filter(|&row| parts[row] == part).collect();
        Split { train: of(Part::Train), validation: of(Part::Validation), test: of(Part::Test) }
    }

    /// What each row is for, if it splits all rows.
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = vec![Part::Train; self.train.len() + self.validation.len() + self.test.len()];
        self.validation.iter().for_each(|&row| parts[row] = Part::Validation);
        self.test.iter().for_each(|&row| parts[row] = Part::Test);
        parts
    }

    /// The same split with groups undivided: each goes where its first row is. `groups` has a number for each row.
    pub fn together(&self, groups: &[u32]) -> Split {
        let parts = self.parts();
        let mut first = HashMap::new();
        let whole = |(row, group)| *first.entry(group).or_insert(parts[row]);
        Split::by_parts(&groups.iter().enumerate().map(whole).collect::<Vec<_>>())
    }

    /// Splits the points of a sample, groups undivided: a group goes where the points before it, in the order of the permutation
    /// of groups, have not filled a part. Single points are split as [`Split::new`] does. A group of more than a tenth of the points is
    /// for training.
    pub fn of(sample: &Sample, ambient: usize, seed: u64) -> Split {
        let rows = sample.rows(ambient);
        if sample.groups().is_empty() {
            return Split::new(rows, seed);
        }
        let (tenth, members) = ((rows + 5) / 10, members(sample, rows));
        let mut split = Split { train: vec![], validation: vec![], test: vec![] };
        for group in permutation(members.len(), seed, STREAM) {
            let own = &members[group];
            let part = match (split.test.len() < tenth, split.validation.len() < tenth) {
                _ if own.len() > tenth.max(1) => &mut split.train,
                (true, _) => &mut split.test,
                (false, true) => &mut split.validation,
                (false, false) => &mut split.train,
            };
            part.extend_from_slice(own);
        }
        // Large groups may leave a part without rows: it gets the smallest group of the training rows.
        let Split { train, validation, test } = &mut split;
        for part in [&mut *test, &mut *validation] {
            if part.is_empty() {
                let left = members.iter().filter(|own| train.contains(&own[0]) && own.len() < train.len());
                let smallest = left.min_by_key(|own| own.len()).cloned().unwrap_or_default();
                train.retain(|row| !smallest.contains(row));
                *part = smallest;
            }
        }
        [train, validation, test].into_iter().for_each(|part| part.sort_unstable());
        split
    }
}

/// The points of each group, in the order of its first point.
fn members(sample: &Sample, rows: usize) -> Vec<Vec<usize>> {
    let (mut places, mut members) = (HashMap::new(), vec![]);
    for i in 0..rows {
        let place = *places.entry(sample.group(i)).or_insert(members.len());
        if place == members.len() {
            members.push(vec![]);
        }
        members[place].push(i);
    }
    members
}

/// The points of a sample dealt into at most `count` parts of about equal size, groups undivided; single points as [`folds`] deals them.
///
/// Without any one part there are still two groups, if there are three in all: large groups go to parts of their own for that.
pub(super) fn folds_of(sample: &Sample, ambient: usize, count: usize, seed: u64) -> Vec<Vec<usize>> {
    let rows = sample.rows(ambient);
    let members = members(sample, rows);
    let order = permutation(members.len(), seed, FOLDS);
    let (mut parts, mut before) = (vec![vec![]; count], 0);
    for &group in &order {
        let part = (0..count).rposition(|k| k * rows / count <= before).expect("the first part starts at 0");
        parts[part].push(group);
        before += members[group].len();
    }
    if parts.iter().any(|part| part.len() + 2 > members.len()) {
        let mut sizes = vec![0; count.max(3)];
        parts = vec![vec![]; sizes.len()];
        for &group in &order {
            let least = (0..sizes.len()).min_by_key(|&k| sizes[k]).expect("some part");
            parts[least].push(group);
            sizes[least] += members[group].len();
        }
    }
    parts.retain(|part| !part.is_empty());
    let mut parts: Vec<Vec<usize>> =
        parts.iter().map(|part| part.iter().flat_map(|&g| &members[g]).copied().collect()).collect();
    parts.iter_mut().for_each(|part| part.sort_unstable());
    parts
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
