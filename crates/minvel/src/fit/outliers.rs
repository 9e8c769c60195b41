//! Outliers: how unusual a row is among rows that the model has not seen, and which rows may be called so.
//!
//! **Statement.** With the log densities l_1…l_n of reference rows, p(x) = (1 + #{i: l_i ≤ log p(x)})/(n + 1): for a row of the same
//! law P(p ≤ α) ≤ α, whatever the model is worth. Of N rows those with p ≤ qk/N are flagged, k the largest number for which there
//! are k of them: at most a share q of the flagged rows are none, on average.
//! **Source.** vovk2005algorithmic (conformal p-values); benjamini1995controlling; bates2023outliers (their rule holds for p-values that
//! share the reference). **Conventions.** Reference rows are the validation rows; of few rows, all of them, each under the model that had not seen it.
//! P-values have n + 1 values, so that counts of them are all that the rule needs. Groups of rows are not known here: rows that come in
//! groups need reference rows of other groups.
//! **Error.** None where reference rows are independent of the model. Validation rows choose the share of a correction (one number), and
//! models of folds stand on a tenth less rows than the one they are used for: both shift p-values by little.
//! **Checked by** tests/densities/outliers.rs.

/// What is wrong with a model that keeps no reference rows.
pub const NO_REFERENCE: &str =
    "this model keeps no reference rows, which p-values of outliers need: fit it again with this version";

/// Log densities of reference rows, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference(Vec<f64>);

impl Reference {
    /// Of the log densities of rows that the model has not seen; none of no rows.
    pub(super) fn new(mut logs: Vec<f64>) -> Option<Self> {
        logs.sort_by(f64::total_cmp);
        (!logs.is_empty()).then_some(Reference(logs))
    }

    /// Of what was kept; none where that is out of order.
    pub(super) fn kept(logs: &[f64]) -> Option<Self> {
        logs.is_sorted_by(|a, b| a <= b).then(|| Reference(logs.to_vec()))
    }

    /// The log densities, in order.
    pub fn log_densities(&self) -> &[f64] {
        &self.0
    }

    /// How many reference rows are at most as likely as a row of this log density.
    pub fn rank(&self, log_density: f64) -> usize {
        self.0.partition_point(|own| *own <= log_density)
    }

    /// The p-value of a row of this log density.
    pub fn p_value(&self, log_density: f64) -> f64 {
        self.p_value_of_rank(self.rank(log_density))
    }

    fn p_value_of_rank(&self, rank: usize) -> f64 {
        (1 + rank) as f64 / (1 + self.0.len()) as f64
    }

    /// No row to count yet.
    pub fn counts(&self) -> RankCounts<'_> {
        RankCounts { reference: self, rows: vec![0; self.0.len() + 1] }
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
