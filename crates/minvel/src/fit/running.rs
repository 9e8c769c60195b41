//! An evaluation of any number of rows, a block after another.
//!
//! **Statement.** As [`Evaluation::of`]: means and errors from sums that are merged block by block. The tests take the
//! rows that [`TestPlan`] ranks first: a random part of fixed size, the same whatever the blocks are. **Checked by** crates/lab/tests/lab/stream.rs.

use super::Model;
use super::evaluation::{Baseline, COMPARED, Compared, Evaluation};
use super::fitness::{Coverage, Draws, Fitness, inside};
use super::levels::Levels;
use crate::Error;
use crate::density::repeats::Known;
use crate::density::{Density, TestPlan, Witness};
use crate::estimate::{Estimate, Moments};
use crate::train::Context;
use serde::{Deserialize, Serialize};

/// A model and its baselines, ready to look at rows.
pub struct RunningEvaluation<'a> {
    model: &'a Model,
    seed: u64,
    baselines: Vec<(Compared, Box<dyn Density>)>,
    /// The points that the kernels stand on, in standard units.
    known: Known<'a>,
    draws: Draws,
}

/// What the rows looked at so far say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunningSums {
    /// Rows looked at.
    pub rows: u64,
    /// Rows that the kernels stand on, bit for bit.
    pub known: u64,
    own: Moments,
    kernels: Moments,
    /// For each baseline −log p, and its difference to the model's.
    baselines: Vec<[Moments; 2]>,
    /// Rows in each region of highest density.
    inside: [u64; 3],
    /// Rows for the tests.
    tested: Vec<Tested>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Tested {
    rank: f64,
    row: u64,
    point: Vec<f64>,
}

impl RunningSums {
    /// The rows that are tested, in the units of the data.
    pub fn tested(&self) -> Vec<f64> {
        let mut tested: Vec<&Tested> = self.tested.iter().collect();
        tested.sort_by_key(|tested| tested.row);
        tested.iter().flat_map(|tested| tested.point.iter().copied()).collect()
    }
}

impl<'a> RunningEvaluation<'a> {
    /// Makes the baselines of a model, and its draws.
    pub fn new(model: &'a Model, seed: u64, context: &Context) -> Result<Self, Error> {
        let there = COMPARED.into_iter().filter(|other| other.applies(model));
        let make = |other: Compared| {
            let (stage, _) = other.work(model, &[]);
            Ok((other, context.stage(stage, 0, "rows", || other.density(model, seed, context))?))
        };
        let baselines = there.map(make).collect::<Result<_, Error>>()?;
        let kernels = model.kernels();
        let known = Known::new(kernels.points(), kernels.ambient(), 0..kernels.centres());
        let draws = Draws::of(model, Levels::DRAWS, seed, context)?;
        Ok(RunningEvaluation { model, seed, baselines, known, draws })
    }

    fn plan(&self) -> TestPlan {
        TestPlan::seeded(self.seed)
    }

    /// Looks at further rows, given as points in the units of the data.
    pub fn add(&self, sums: &mut RunningSums, points: &[f64], context: &Context) -> Result<(), Error> {
        let (model, m) = (self.model, self.model.manifold().ambient());
        let (own, anchor) = model.log_densities(points, context)?;
        let standard = model.standardised(points);
        let compared = self.baselines.iter().map(|(_, density)| density.log_density(&standard, context));
        // nothing is counted before all of it is known: an interruption leaves the sums as they were
        let compared = compared.collect::<Result<Vec<Vec<f64>>, Error>>()?;
        sums.baselines.resize(compared.len(), Default::default());
        for (logs, [nll, difference]) in compared.iter().zip(&mut sums.baselines) {
            let logs = || logs.iter().map(|log| log + model.log_unit());
            nll.extend(logs().map(|log| -log));
            difference.extend(logs().zip(&own).map(|(other, own)| other - own));
        }
        sums.own.extend(own.iter().map(|l| -l));
        sums.kernels.extend(anchor.iter().map(|l| -l));
        let inside = inside(own.iter().map(|l| self.draws.levels.at(*l)));
        sums.inside.iter_mut().zip(inside).for_each(|(all, more)| *all += more);
        sums.known += standard.chunks(m).filter(|point| self.known.holds(point)).count() as u64;
        let plan = self.plan();
        for (row, point) in (sums.rows..).zip(points.chunks(m)) {
            let rank = plan.rank(row);
            if sums.tested.len() < plan.points || sums.tested.last().is_some_and(|last| rank < last.rank) {
                let at = sums.tested.partition_point(|other| other.rank <= rank);
                sums.tested.insert(at, Tested { rank, row, point: point.to_vec() });
                sums.tested.truncate(plan.points);
            }
        }
        sums.rows += own.len() as u64;
        Ok(())
    }

    /// What all rows say.
    pub fn finish(&self, sums: &RunningSums, context: &Context) -> Result<Evaluation, Error> {
        // The error of log Z, as a number to add: zero, known to so many nats.
        let error = Estimate { mean: 0.0, count: u64::MAX, ..self.model.log_z().value };
        let baseline =
            |((other, density), [nll, difference]): (&(Compared, Box<dyn Density>), &[Moments; 2])| Baseline {
                name: density.name().to_string(),
                method: other.method().to_string(),
                nll: nll.mean(),
                difference: difference.mean() + error,
            };
        Ok(Evaluation {
            test_rows: sums.rows as usize,
            test_nll: sums.own.mean() + error,
            kernels_nll: sums.kernels.mean(),
            baselines: self.baselines.iter().zip(&sums.baselines).map(baseline).collect(),
            goodness: Fitness::of(self.model, &sums.tested(), &self.draws.points, &self.plan(), context)?,
            ingredients: vec![],
            velocity: None,
            coverage: Coverage::of(
                sums.inside.map(|count| count as f64 / sums.rows as f64),
                sums.rows as f64,
                Levels::DRAWS,
            ),
        })
    }

    /// Where the rows that were tested are too many or too few, as an evaluation of them finds; at points in standard units.
    pub fn witness(&self, sums: &RunningSums, evaluation: &Evaluation) -> Option<Witness> {
        evaluation.goodness.witness(self.model, &sums.tested(), &self.draws.points, &self.plan())
    }
}
