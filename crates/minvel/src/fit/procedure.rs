//! How a model is made of rows, and which rows judge it.
//!
//! **Statement.** From [`FewSettings::rows`](super::FewSettings) rows on: once split 80/10/10 into training, validation and test
//! rows. Below: repeated cross-validation judges the procedure, and the model is that procedure applied to all rows.
//! **Checked by** tests/densities/few.rs, crates/lab/tests/lab/fit.rs.

use super::evaluation::Evaluation;
use super::leak::Leak;
use super::model::History;
use super::split::Split;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which rows do what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Procedure {
    /// Each row is in one of three parts; the model is made of the training rows.
    Split {
        /// Training rows, of which the model is made.
        train: usize,
        /// Validation rows, which stop the training.
        validation: usize,
        /// Test rows, which are scored once.
        test: usize,
    },
    /// Rows are scored by models of the other folds; the model is refitted on all rows.
    CrossValidation {
        /// All rows: the model is made of them.
        rows: usize,
        /// Folds of a repeat.
        folds: usize,
        /// Repeats, each with folds of its own.
        repeats: usize,
        /// What became of the correction.
        correction: Trial,
    },
}

/// What became of the correction of few rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trial {
    /// It was not tried: the rows are too few, or nobody asked for it.
    None,
    /// It was tried, and not better by more than chance.
    NotBetter,
    /// It is used: the folds find it better by more than chance.
    Used,
}

impl Procedure {
    /// Rows that the model is made of.
    pub fn fitted_rows(&self) -> usize {
        match *self {
            Procedure::Split { train, .. } => train,
            Procedure::CrossValidation { rows, .. } => rows,
        }
    }

    /// What its score is called.
    pub fn score(&self) -> &'static str {
        match self {
            Procedure::Split { .. } => "test NLL",
            Procedure::CrossValidation { .. } => "cross-validated NLL",
        }
    }
}

impl fmt::Display for Procedure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Procedure::Split { train, validation, test } => {
                write!(f, "{train} training, {validation} validation and {test} test rows")
            }
            Procedure::CrossValidation { rows, folds, repeats, correction } => {
                let folds =
                    if folds == rows { "leaving out one row at a time".into() } else { format!("{folds} folds") };
                let repeats = if *repeats > 1 { format!(", repeated {repeats} times") } else { String::new() };
                write!(
                    f,
                    "scored by cross-validation ({folds}{repeats}); the model is refitted on all {rows} rows, so that the score \
                     is that of the procedure"
                )?;
                match correction {
                    Trial::NotBetter => write!(f, "; a correction was tried, and was not better by more than chance"),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// What is known about a model besides the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// How it came about.
    pub history: History,
    /// Rows that it, or its like, had not seen, judged.
    pub evaluation: Evaluation,
    /// Which rows did what.
    pub procedure: Procedure,
    /// Share of the scored rows that repeat a row their model has seen: none, unless the split was given.
    pub leaked_share: f64,
    /// How near the scored rows lie to rows of the model; none of few rows.
    pub leak: Option<Leak>,
    /// Which of the given rows are in which part; none of a cross-validation. Rows of weight 0 are in none.
    pub split: Option<Split>,
}
