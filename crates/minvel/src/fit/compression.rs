//! A smaller model of the same density, without training rows.
//!
//! **Statement.** q: kernels on N clusters of M independent draws of p, M = 50 N and at least 200 000, with the shares that
//! 100 000 further draws ask for. It costs KL(p‖q) = E_p(log p − log q), which [`Comparison`](super::Comparison) estimates by
//! draws that q has not seen.
//! **Conventions.** q has no correction; that of p is in its draws. Each centre of q is a mean of some dozens of draws: no
//! number of it is one of a training row, though where many rows repeat a point, their mean comes near it.
//! **Error.** That of the draws of p: none, or that of chains where p has a correction. **Checked by** tests/densities/clusters.rs.

use super::model::Model;
use super::settings::Goal;
use crate::Error;
use crate::density::LocalSettings;
use crate::train::Context;

/// M/N.
const DRAWS_OF_A_CENTRE: usize = 50;
/// M at least.
const LEAST_DRAWS: usize = 200_000;
/// Draws that tell the shares.
const SHARING: usize = 100_000;

impl Model {
    /// The numbers of centres that a compressed model may have.
    pub const COMPRESSED: std::ops::RangeInclusive<usize> = 10..=100_000;

    /// A model of the same density on so many centres; panics where so many are not [allowed](Self::COMPRESSED).
    pub fn compressed(&self, centres: usize, seed: u64, context: &Context) -> Result<Model, Error> {
        assert!(Self::COMPRESSED.contains(&centres), "{centres} centres of a compressed model");
        let count = (DRAWS_OF_A_CENTRE * centres).max(LEAST_DRAWS);
        let draw = || self.sample(count + SHARING, seed, context);
        let draws = context.stage("samples", self.rows_of_draws(count + SHARING), "rows", draw)?.points;
        let mut settings = self.settings().clone();
        settings.objective = Goal::None;
        settings.kernels = LocalSettings { centres, tolerance: settings.kernels.tolerance, ..LocalSettings::default() };
        let draws = self.standardised(&draws);
        let (draws, others) = draws.split_at(count * self.manifold().ambient());
        let density = settings.kernels.of_many(self.manifold(), draws, others, context)?;
        Ok(Model::of_kernels(self.manifold().clone(), &settings, self.standard.clone(), density, self.rows()))
    }
}
