//! Highest-density levels: how much of a model's mass is denser than a place.
//!
//! **Statement.** level(x) = P(p(X) > p(x)) for X of the model; x lies in the smallest region that holds the share α of the
//! mass if level(x) < α. For draws of the model itself levels are uniform on [0, 1].
//! **Source.** hyndman1996 (regions of highest density from draws). **Error.** √(level(1 − level)/N) of N draws, at most 0.005
//! for [`Levels::DRAWS`]. **Checked by** crates/lab/tests/lab/fit_use.rs.

use super::Model;
use crate::Error;
use crate::train::Context;

/// The log densities of draws of a model, in order.
pub struct Levels(Vec<f64>);

impl Levels {
    /// Draws that they are estimated from.
    pub const DRAWS: usize = 10_000;

    /// Of a model; the same for the same seed.
    pub fn of(model: &Model, seed: u64, context: &Context) -> Result<Self, Error> {
        Self::of_draws(model, &model.sample(Self::DRAWS, seed, context)?.points, context)
    }

    /// Of a model and draws of it.
    pub(super) fn of_draws(model: &Model, draws: &[f64], context: &Context) -> Result<Self, Error> {
        let mut logs = model.log_density(draws, context)?;
        logs.sort_by(f64::total_cmp);
        Ok(Levels(logs))
    }

    /// The level of a place with this log density.
    pub fn at(&self, log_density: f64) -> f64 {
        let denser = self.0.len() - self.0.partition_point(|own| *own <= log_density);
        denser as f64 / self.0.len() as f64
    }
}
