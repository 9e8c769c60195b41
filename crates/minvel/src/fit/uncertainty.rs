//! How well the density is known at a point: a bootstrap over groups, without fitting anew.
//!
//! **Statement.** Replica r gives every group (every row, without groups) a weight ξ ~ Exp(1); kernels of a row, and those of groups of near rows
//! and of components of mixtures by the rows nearest to them, count ξ times as much; the error of log p(x) is the standard deviation of
//! log a_r(x) over [`REPLICAS`] replicas. **Source.** rubin1981bayesian. **Conventions.** Shapes, shares, correction and log Z stay: the error is that
//! of which rows were seen, not that of how kernels were chosen. Where the uniform law says more than half of the density there are no data,
//! and the error is infinite. **Error.** A relative 1/√(2·REPLICAS) = 13 % of the standard error itself; bias of the kernels is no part of it.
//! **Checked by** tests/densities/rows.rs.

use super::model::Model;
use crate::Error;
use crate::density::Reweighted;
use crate::estimate::Moments;
use crate::train::Context;
use minvel_engine::random::{Draw, Key, element};

/// Replicas of the weights.
pub const REPLICAS: usize = 30;
/// The stream of the weights.
const STREAM: u32 = 0x424f_4f54;

/// A model, ready to say how well its density is known.
pub struct Uncertainty<'a> {
    model: &'a Model,
    kernels: Reweighted<'a>,
}

impl<'a> Uncertainty<'a> {
    /// Of a model.
    pub fn of(model: &'a Model, context: &Context) -> Result<Self, Error> {
        Ok(Uncertainty { model, kernels: Reweighted::of(model.kernels(), context)? })
    }

    /// The standard error of log p at points in the units of the data; infinite where there are no data.
    pub fn errors(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let standard = self.model.standardised(points);
        let own = self.model.kernels().log_density_of(&standard, context)?;
        let mut moments = vec![Moments::default(); own.len()];
        for replica in 0..REPLICAS as u32 {
            context.go_on()?;
            let key = Key::new(self.model.settings().seed, replica);
            let weight = |group: usize| -element(Draw::Uniform, key, STREAM, 0, 1, group as u32, 0).ln();
            let logs = self.kernels.by(weight).log_density_of(&standard, context)?;
            // Differences to the density itself, so that their squares do not cancel.
            moments.iter_mut().zip(logs.iter().zip(&own)).for_each(|(m, (log, own))| m.push(log - own));
        }
        let empty = self.model.kernels().log_uniform_part();
        let error = |(moments, own): (&Moments, &f64)| match empty - own > 0.5f64.ln() {
            true => f64::INFINITY,
            false => moments.mean().std_error * (REPLICAS as f64).sqrt(),
        };
        Ok(moments.iter().zip(&own).map(error).collect())
    }
}
