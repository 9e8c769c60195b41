//! Two models on the same rows.
//!
//! **Statement.** The mean of log p_A(x) − log p_B(x) over rows, with the standard error of these differences and those of
//! both log Z; z is their quotient, p = P(|N(0, 1)| ≥ |z|). **Conventions.** Positive: the first is better. Nats.
//! **Error.** The normal law of z needs some tens of rows. **Checked by** crates/lab/tests/lab/fit_use.rs.

use super::Model;
use crate::Error;
use crate::estimate::{Estimate, number};
use crate::train::Context;
use serde::Serialize;

/// How two models compare.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Rows looked at.
    pub rows: usize,
    /// Mean log density of the first model, and of the second.
    pub log_density: [Estimate; 2],
    /// The first less the second, row by row.
    pub difference: Estimate,
    /// The difference in its standard errors; NaN where they are not known.
    #[serde(with = "number")]
    pub z: f64,
    /// Two-sided p-value of no difference.
    #[serde(with = "number")]
    pub p_value: f64,
    /// Share of the rows that the first finds likelier; equal ones count half.
    pub win_share: f64,
    /// Share of the rows that each model's kernels stand on: its score on them is too good.
    pub known_share: [f64; 2],
}

impl Comparison {
    /// Of two models on rows given as points in the units of the data.
    pub fn of(models: [&Model; 2], points: &[f64], context: &Context) -> Result<Self, Error> {
        let logs = [models[0].log_density(points, context)?, models[1].log_density(points, context)?];
        // the error of log Z, as a number to add: zero, known to so many nats
        let errors = models.map(|model| Estimate { mean: 0.0, count: u64::MAX, ..model.log_z().value });
        let own = |k: usize| Estimate::of(logs[k].iter().copied()) + errors[k];
        let difference = Estimate::paired(&logs[0], &logs[1]) + errors[0] + errors[1];
        let nothing = Estimate::exact(0.0);
        let won = logs[0].iter().zip(&logs[1]).map(|(a, b)| if a == b { 0.5 } else { f64::from(a > b) });
        Ok(Comparison {
            rows: logs[0].len(),
            log_density: [own(0), own(1)],
            difference,
            z: difference.z(nothing),
            p_value: difference.p_value(nothing),
            win_share: won.sum::<f64>() / logs[0].len().max(1) as f64,
            known_share: models.map(|model| model.share_known(points)),
        })
    }
}
