//! What a run of chains returns: the draws, or where a chain left the finite numbers.
//!
//! **Statement.** Draw t of chain c of replica r is a point; a statistic f has one trace f(x_1), f(x_2), … per chain.
//! **Conventions.** Numbers are f64 whatever the program ran in. Rows that are one population (Stein, birth and death) are
//! not independent chains: means over replicas are ([`Draws::replica_means`]).
//! **Error.** That of [`ChainSummary`]. **Checked by** tests/theory/sampler_laws.rs, tests/theory/sampler_moments.rs.

use super::Spot;
use crate::estimate::{ChainSummary, Estimate};
use crate::{ChainDivergence, Error};
use minvel_engine::math::Real;
use minvel_engine::{Expr, State};

impl ChainDivergence {
    /// What to keep in `first` (−1 before any trouble): the step after which a chain stopped being finite.
    pub(super) fn watch<'g>(first: Expr<'g>, spot: Spot<'g>, step: Expr<'g>) -> Expr<'g> {
        let size = spot.at.abs().sum(-1) + spot.gradient.abs().sum(-1) + spot.energy.abs();
        let fine = size.less_equal(1e37);
        let known = first.like(0.0).less_equal(first);
        known.select(first, fine.select(first.like(-1.0), step.broadcast(&first.shape())))
    }

    /// The earliest trouble that was noted in a variable, if any.
    pub(super) fn noted<T: Real>(state: &State<T>, name: &str, chains: usize) -> Result<(), Error> {
        let first = state.try_get(name)?.expect("the variable was set before the first step");
        let steps = first.iter().enumerate().filter(|(_, step)| **step >= T::ZERO);
        match steps.min_by(|a, b| a.1.to_f64().total_cmp(&b.1.to_f64())) {
            Some((i, step)) => {
                Err(ChainDivergence { step: step.to_f64() as u32, replica: i / chains, chain: i % chains }.into())
            }
            None => Ok(()),
        }
    }
}

/// Draws of many chains.
#[derive(Clone, Debug, PartialEq)]
pub struct Draws {
    /// Row-major `[draws, replicas, chains, m]`.
    pub points: Vec<f64>,
    /// How many of each: draws, replicas, chains, and m numbers a point.
    pub shape: [usize; 4],
    /// Mean acceptance of each replica over the draws; empty where nothing is tested.
    pub acceptance: Vec<f64>,
    /// ε of each replica.
    pub steps: Vec<f64>,
}

impl Draws {
    /// A point.
    pub fn point(&self, draw: usize, replica: usize, chain: usize) -> &[f64] {
        let [_, replicas, chains, m] = self.shape;
        let at = ((draw * replicas + replica) * chains + chain) * m;
        &self.points[at..at + m]
    }

    /// All points after the last step, row-major `[replicas, chains, m]`: where another run can go on.
    pub fn last(&self) -> &[f64] {
        let [draws, replicas, chains, m] = self.shape;
        &self.points[(draws - 1) * replicas * chains * m..]
    }

    /// f along each chain, replica after replica.
    pub fn traces(&self, f: impl Fn(&[f64]) -> f64) -> Vec<Vec<f64>> {
        let [draws, replicas, chains, _] = self.shape;
        let trace = |i: usize| (0..draws).map(|t| f(self.point(t, i / chains, i % chains))).collect();
        (0..replicas * chains).map(trace).collect()
    }

    /// The mean of f over all draws, its error, and what the chains say about it.
    pub fn summary(&self, f: impl Fn(&[f64]) -> f64) -> ChainSummary {
        ChainSummary::of(&self.traces(f))
    }

    /// The mean of f over the draws of each replica, and of these: with an honest error also for interacting particles.
    pub fn replica_means(&self, f: impl Fn(&[f64]) -> f64) -> Estimate {
        let [draws, replicas, chains, m] = self.shape;
        let mut totals = vec![0.0; replicas];
        for (i, point) in self.points.chunks(m).enumerate() {
            totals[i / chains % replicas] += f(point);
        }
        Estimate::of(totals.iter().map(|total| total / (draws * chains) as f64))
    }
}
