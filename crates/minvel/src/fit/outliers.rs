//! Outliers: how unusual a row is among rows that the model has not seen, and which rows may be called so.
//!
//! **Statement.** With the log densities l_1…l_n of reference rows, p(x) = (1 + #{i: l_i ≤ log p(x)})/(n + 1): for a row of the same
//! law P(p ≤ α) ≤ α, whatever the model is worth. Where rows come in groups, every group counts once, and its rows in equal parts (by
//! their weights): p(x) = (1 + Σ_g mean_{i∈g} 1{l_i ≤ log p(x)})/(G + 1), and P(p ≤ α) ≤ α for a row of a *new* group, if groups are
//! exchangeable. Weighted rows without groups count by their weights, which add up to the effective number. Of N rows those with p ≤ qk/N are flagged, k the largest number for which there
//! are k of them: at most a share q of the flagged rows are none, on average.
//! **Source.** vovk2005algorithmic (conformal p-values); lee2023hierarchical (groups); benjamini1995controlling; bates2023outliers (their rule holds for p-values that
//! share the reference). **Conventions.** Reference rows are the validation rows; of few rows, all of them, each under the model that had not seen it.
//! P-values have n + 1 values, so that counts of them are all that the rule needs.
//! **Error.** None where reference rows (or groups) are exchangeable with the row and independent of the model; with unequal weights p-values are
//! right on average over the weighted rows, not exactly so for each n. Validation rows choose the share of a correction (one number), and
//! models of folds stand on a tenth less rows than the one they are used for: both shift p-values by little.
//! **Checked by** tests/densities/outliers.rs.

use crate::density::Sample;
use std::collections::HashMap;

/// What is wrong with a model that keeps no reference rows.
pub const NO_REFERENCE: &str =
    "this model keeps no reference rows, which p-values of outliers need: fit it again with this version";

/// Log densities of reference rows, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    logs: Vec<f64>,
    /// What each counts; none where that is 1.
    masses: Vec<f64>,
    /// What the first k of them count together, for k from 0 on.
    below: Vec<f64>,
}

impl Reference {
    /// Of the log densities of rows that the model has not seen; none of no rows.
    pub(super) fn new(rows: &Sample, logs: &[f64]) -> Option<Self> {
        let mut sums: HashMap<usize, f64> = HashMap::new();
        (0..logs.len()).for_each(|i| *sums.entry(rows.group(i)).or_default() += rows.weight(i));
        let mass = |i: usize| match rows.groups() {
            [] => rows.weight(i),
            _ => rows.weight(i) / sums[&rows.group(i)],
        };
        let mut order: Vec<usize> = (0..logs.len()).collect();
        order.sort_by(|a, b| logs[*a].total_cmp(&logs[*b]));
        let plain = rows.weights().is_empty() && rows.groups().is_empty();
        let masses = if plain { vec![] } else { order.iter().map(|&i| mass(i)).collect() };
        Self::kept(&order.iter().map(|&i| logs[i]).collect::<Vec<f64>>(), &masses).filter(|_| !logs.is_empty())
    }

    /// Of what was kept; none where that is out of order.
    pub(super) fn kept(logs: &[f64], masses: &[f64]) -> Option<Self> {
        let sound = masses.is_empty() || masses.len() == logs.len() && masses.iter().all(|mass| *mass > 0.0);
        let mut below = vec![0.0];
        (0..logs.len()).for_each(|i| below.push(below[i] + masses.get(i).copied().unwrap_or(1.0)));
        let (whole, sorted) = (below[logs.len()].is_finite(), logs.is_sorted_by(|a, b| a <= b));
        (sound && whole && sorted).then(|| Reference { logs: logs.to_vec(), masses: masses.to_vec(), below })
    }

    /// The log densities, in order.
    pub fn log_densities(&self) -> &[f64] {
        &self.logs
    }

    /// What each reference row counts; none where each counts 1.
    pub fn masses(&self) -> &[f64] {
        &self.masses
    }

    /// How many rows or groups they count as: no p-value is below one over one more.
    pub fn count(&self) -> f64 {
        self.below[self.logs.len()]
    }

    /// How many reference rows are at most as likely as a row of this log density.
    pub fn rank(&self, log_density: f64) -> usize {
        self.logs.partition_point(|own| *own <= log_density)
    }

    /// The p-value of a row of this log density.
    pub fn p_value(&self, log_density: f64) -> f64 {
        self.p_value_of_rank(self.rank(log_density))
    }

    fn p_value_of_rank(&self, rank: usize) -> f64 {
        (1.0 + self.below[rank]) / (1.0 + self.count())
    }

    /// No row to count yet.
    pub fn counts(&self) -> RankCounts<'_> {
        RankCounts { reference: self, rows: vec![0; self.logs.len() + 1] }
    }
}

/// How many rows have each rank.
pub struct RankCounts<'a> {
    reference: &'a Reference,
    rows: Vec<u64>,
}

impl RankCounts<'_> {
    /// A row of this log density.
    pub fn add(&mut self, log_density: f64) {
        self.rows[self.reference.rank(log_density)] += 1;
    }

    /// Rows of lower rank than this are flagged, with a share of false ones of at most `level` on average; 0: none is.
    pub fn flagged_below(&self, level: f64) -> usize {
        let (all, mut lower, mut flagged) = (self.rows.iter().sum::<u64>() as f64, 0, 0);
        for (rank, count) in self.rows.iter().enumerate() {
            lower += count;
            if *count > 0 && self.reference.p_value_of_rank(rank) * all <= level * lower as f64 {
                flagged = rank + 1;
            }
        }
        flagged
    }
}
