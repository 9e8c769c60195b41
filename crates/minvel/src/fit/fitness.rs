//! Whether rows may come from a model, and how much of them lies where the model says.
//!
//! **Statement.** The kernel Stein test and the two-sample test of rows against draws, each over all scales
//! ([`crate::density::stein_test`], [`crate::density::two_sample_test`]); together p = min(1, 2·min(p_S, p_T)). Coverage: the share of rows
//! whose highest-density level is below α, for α = 50, 90 and 95 %. **Conventions.** In standard units, so that units of the data
//! do not matter; up to four times as many draws as rows ([`TestPlan::draws`]). **Error.** That of the tests. The ± of a coverage is its standard deviation under the
//! model, √(α(1 − α)(1/N + 1/D)) for N rows and D draws behind the levels.
//! **Checked by** crates/lab/tests/lab/fit.rs, tests/densities/goodness.rs.

use super::levels::Levels;
use super::model::Model;
use crate::Error;
use crate::density::{Goodness, Sample, TestPlan, Witness, stein_test, two_sample_test};
use crate::estimate::Estimate;
use crate::train::Context;
use serde::{Deserialize, Serialize};

/// The fewest rows that are tested: of fewer, the signs of the bootstrap allow no p-value below 0.01.
pub const LEAST_TESTED: usize = 8;

/// Masses of the regions whose coverage is looked at.
pub const REGIONS: [f64; 3] = [0.5, 0.9, 0.95];

/// The seed of the draws is that of the fit and this: other seeds near it are taken.
const DRAW_SEED: u64 = 6;

/// Whether rows may come from the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fitness {
    /// Of both tests together; NaN where there was none.
    #[serde(with = "crate::estimate::number")]
    pub p_value: f64,
    /// Points that were used.
    pub points: usize,
    /// The kernel Stein test; none where the manifold is no product of model spaces.
    #[serde(default)]
    pub stein: Option<Goodness>,
    /// The rows against draws of the model.
    #[serde(default)]
    pub two_sample: Option<Goodness>,
    /// MMD² between rows and draws, of a Gaussian kernel as wide as their root-mean-square distance.
    #[serde(default)]
    pub mmd: Option<Estimate>,
}

/// How many rows lie in the smallest region that should hold a share of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// What the region should hold.
    pub mass: f64,
    /// What it holds.
    pub share: Estimate,
}

/// Draws of a model that rows are compared with, in the units of the data.
pub(super) struct Draws {
    pub points: Vec<f64>,
    pub levels: Levels,
}

impl Draws {
    /// So many.
    pub fn of(model: &Model, count: usize, seed: u64, context: &Context) -> Result<Self, Error> {
        context.stage("draws", count + model.rows_of_draws(count), "rows", || {
            let points = model.sample(count, seed.wrapping_add(DRAW_SEED), context)?.points;
            let levels = Levels::of_draws(model, &points, context)?;
            Ok(Draws { points, levels })
        })
    }
}

/// Rows in each of the regions, by their levels.
pub(super) fn inside(levels: impl Iterator<Item = f64>) -> [u64; 3] {
    levels.fold([0; 3], |mut counts, level| {
        counts.iter_mut().zip(REGIONS).for_each(|(count, mass)| *count += u64::from(level < mass));
        counts
    })
}

/// The share of a sample in each of the regions, by the levels of its rows.
pub(super) fn share_inside(rows: &Sample, levels: &[f64]) -> [f64; 3] {
    REGIONS.map(|mass| rows.mean(&levels.iter().map(|level| f64::from(*level < mass)).collect::<Vec<f64>>()))
}

impl Coverage {
    /// Of shares of so many rows, or of as many effective ones, with levels from so many draws.
    pub(super) fn of(inside: [f64; 3], rows: f64, draws: usize) -> Vec<Coverage> {
        if rows == 0.0 {
            return vec![];
        }
        let coverage = |(mean, mass): (f64, f64)| {
            let variance = mass * (1.0 - mass) * (rows.recip() + (draws as f64).recip());
            Coverage { mass, share: Estimate { mean, std_error: variance.sqrt(), count: rows.round() as u64 } }
        };
        inside.into_iter().zip(REGIONS).map(coverage).collect()
    }
}

impl Fitness {
    /// Of rows against at least as many draws of the model (or as many as are chosen of them), both given as points in the
    /// units of the data; a few say nothing.
    pub fn of(model: &Model, points: &[f64], draws: &[f64], plan: &TestPlan, context: &Context) -> Result<Self, Error> {
        let m = model.manifold().ambient();
        if points.len() / m < LEAST_TESTED {
            return Ok(Fitness::none());
        }
        // Scores of the rows that the test chooses suffice.
        let chosen = plan.chosen(points, m);
        let (scores, standard) =
            context.stage("scores", chosen.len() / m, "rows", || model.standard_scores(&chosen, context))?;
        Self::of_scores(model, &standard, &scores, &model.standardised(draws), plan, context)
    }

    fn none() -> Self {
        Fitness { p_value: f64::NAN, points: 0, stein: None, two_sample: None, mmd: None }
    }

    /// Of rows in standard units with these gradients of log p, and of draws in standard units.
    pub(super) fn of_scores(
        model: &Model,
        rows: &[f64],
        scores: &[f64],
        draws: &[f64],
        plan: &TestPlan,
        context: &Context,
    ) -> Result<Self, Error> {
        let (manifold, m) = (&**model.manifold(), model.manifold().ambient());
        let (used, scores) = (plan.chosen(rows, m), plan.chosen(scores, m));
        let points = used.len() / m;
        if points < LEAST_TESTED {
            return Ok(Fitness::none());
        }
        // Stein fields are known on products of model spaces.
        let tests = 1 + usize::from(manifold.spaces().is_some());
        context.stage("testing", tests * plan.scales, "scales", || {
            let stein = manifold.spaces().map(|_| stein_test(manifold, &used, &scores, plan, context)).transpose()?;
            let two_sample = two_sample_test(manifold, &used, against(draws, m, plan.draws(points)), plan, context)?;
            let least = stein.as_ref().map_or(two_sample.goodness.p_value, |stein| {
                (2.0 * stein.p_value.min(two_sample.goodness.p_value)).min(1.0)
            });
            let (mmd, two_sample) = (Some(two_sample.mmd), Some(two_sample.goodness));
            Ok(Fitness { p_value: least, points, stein, two_sample, mmd })
        })
    }

    /// Where rows are too many or too few: the witness on the scale that rejects most, of the rows and draws (in the units of
    /// the data) that were tested. None where nothing was.
    pub(super) fn witness(&self, model: &Model, rows: &[f64], draws: &[f64], plan: &TestPlan) -> Option<Witness> {
        let scale = self.two_sample.as_ref()?.strongest().scale;
        let m = model.manifold().ambient();
        let used = model.standardised(&plan.chosen(rows, m));
        let draws = model.standardised(draws);
        Some(Witness::new(&**model.manifold(), &used, against(&draws, m, plan.draws(used.len() / m)), scale))
    }
}

/// The first so many draws of `m` numbers, or all.
fn against(draws: &[f64], m: usize, count: usize) -> &[f64] {
    &draws[..(count * m).min(draws.len())]
}
