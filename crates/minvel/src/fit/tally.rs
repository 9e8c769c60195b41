//! The score of all test rows, added up in whole numbers: the same bits for any parts of the rows, in any order.
//!
//! **Statement.** q = round(2³⁰ l), l the log density of a row in nats; N, Σq and Σq² of the test rows among those given. NLL = −Σq/(2³⁰N),
//! with the error √(s²/N). **Conventions.** Which rows are test rows is the [plan](SketchPlan)'s.
//! **Error.** 2⁻³¹ nats for each row. A row that the model holds for impossible, or less likely than e^(−2²⁰), makes the score infinite.
//! **Checked by** tests/densities/sketches.rs.

use super::model::Model;
use super::sketch::SketchPlan;
use crate::Error;
use crate::estimate::Estimate;
use crate::train::Context;
use serde::{Deserialize, Serialize};

/// log₂ of the whole numbers of a nat.
const FINE: i32 = 30;
/// Log densities beyond these are none, in nats.
const WIDEST: f64 = (1u64 << 20) as f64;

/// Sums over test rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Rows that were given.
    pub given: u64,
    /// Test rows among them.
    pub rows: u64,
    /// Test rows that are impossible.
    impossible: u64,
    own: Sums,
    kernels: Sums,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Sums {
    /// Σq and Σq², in halves of 64 bits, which every format can write.
    sum: (i64, u64),
    square: (i64, u64),
}

impl Sums {
    fn add(&mut self, q: i128, square: i128) {
        self.sum = halves(whole(self.sum) + q);
        self.square = halves(whole(self.square) + square);
    }

    /// The mean of −l.
    fn mean(&self, rows: u64) -> Estimate {
        let (n, unit) = (rows as f64, f64::powi(2.0, FINE));
        let (sum, square) = (whole(self.sum), whole(self.square));
        let mean = sum as f64 / n;
        // In whole numbers nothing cancels; they suffice but for very many rows.
        let exact = i128::from(rows).checked_mul(square).zip(sum.checked_mul(sum)).and_then(|(a, b)| a.checked_sub(b));
        let about = exact.map_or_else(|| square as f64 - n * mean * mean, |whole| whole as f64 / n);
        Estimate { mean: -mean / unit, std_error: (about / (n * (n - 1.0))).sqrt() / unit, count: rows }
    }
}

fn whole((high, low): (i64, u64)) -> i128 {
    i128::from(high) << 64 | i128::from(low)
}

fn halves(x: i128) -> (i64, u64) {
    ((x >> 64) as i64, x as u64)
}

impl Tally {
    /// Looks at rows, given as points in the units of the data: the test rows among them are scored.
    pub fn add(&mut self, model: &Model, plan: &SketchPlan, points: &[f64], context: &Context) -> Result<(), Error> {
        let m = model.manifold().ambient();
        let tested = plan.test_rows(points)?;
        let (own, kernels) =
            if tested.is_empty() { (vec![], vec![]) } else { model.log_densities(&tested, context)? };
        self.given += (points.len() / m) as u64;
        self.rows += own.len() as u64;
        for (own, kernels) in own.iter().zip(&kernels) {
            if !(own.abs() < WIDEST && kernels.abs() < WIDEST) {
                self.impossible += 1;
                continue;
            }
            for (sums, l) in [(&mut self.own, own), (&mut self.kernels, kernels)] {
                let q = (l * f64::powi(2.0, FINE)).round() as i128;
                sums.add(q, q * q);
            }
        }
        Ok(())
    }

    /// Adds what another has looked at.
    pub fn merge(&mut self, other: &Tally) {
        self.given += other.given;
        self.rows += other.rows;
        self.impossible += other.impossible;
        self.own.add(whole(other.own.sum), whole(other.own.square));
        self.kernels.add(whole(other.kernels.sum), whole(other.kernels.square));
    }

    /// Negative log-likelihood per test row in nats, with the error of log Z: of the model, and of its kernels alone. Infinite where a row is impossible.
    pub fn nll(&self, model: &Model) -> [Estimate; 2] {
        let error = Estimate { mean: 0.0, count: u64::MAX, ..model.log_z().value };
        let of = |sums: &Sums| match self.impossible {
            0 => sums.mean(self.rows),
            _ => Estimate { mean: f64::INFINITY, std_error: f64::NAN, count: self.rows },
        };
        [of(&self.own) + error, of(&self.kernels)]
    }
}
