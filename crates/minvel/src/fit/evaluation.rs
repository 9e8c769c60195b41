//! How good a model is on rows that it has not seen, beside densities that need no training.
//!
//! **Statement.** NLL = −mean log p; its error is that of the mean over rows, and that of log Z. Differences to baselines
//! are taken row by row; rows count by their weights, and errors are those over groups. **Conventions.** Baselines are made of the points that the kernels stand on (means of
//! clusters of rows count as their rows do): the uniform law
//! where the volume is finite, the kernel density with one bandwidth by ten-fold cross-validation (and 1 % uniform), and
//! the mixture by EM whose size does best on a tenth of those points. From 20 000 points on the bandwidth and the size are
//! chosen by a part of them, at equal distances. In more than three dimensions baselines are compared on 20 000 rows at most.
//! **Checked by** crates/lab/tests/lab/fit.rs.

use super::Model;
use super::expert::Expert;
use super::fitness::{Coverage, Draws, Fitness, share_inside};
use super::levels::Levels;
use crate::density::{
    Bump, Density, FEW_DIMENSIONS, KernelDensity, Mixture, MixtureSearch, OneWidth, Sample, Search, TestPlan, Uniform,
    WrappedMixture,
};
use crate::estimate::Estimate;
use crate::train::{Context, lists};
use crate::{Error, Manifold};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// What held-out rows say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Rows looked at.
    pub test_rows: usize,
    /// Negative log-likelihood per row, in nats, with the error of log Z.
    pub test_nll: Estimate,
    /// That of the kernels without correction.
    pub kernels_nll: Estimate,
    /// Densities to compare with.
    pub baselines: Vec<Baseline>,
    /// Whether the rows may come from the model, by a kernel Stein test and against its draws.
    pub goodness: Fitness,
    /// Rows in the regions that should hold given shares of them; summaries of earlier versions have none.
    #[serde(default)]
    pub coverage: Vec<Coverage>,
    /// Kernels and energies by themselves, where there are energies; none of evaluations by blocks or folds.
    #[serde(default)]
    pub ingredients: Vec<Ingredient>,
    /// The model's negative log-likelihood less that of the best model without energies of minimum velocity, row by row:
    /// what these add, negative where they help; none where no such energy was tried.
    #[serde(default)]
    pub velocity: Option<Estimate>,
}

/// A density that the model is made of, by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ingredient {
    /// What it is.
    pub name: String,
    /// Its weight.
    pub weight: f64,
    /// Its negative log-likelihood per row, in nats, with the error of its log Z.
    pub nll: Estimate,
    /// The model's less this one's, row by row.
    pub difference: Estimate,
}

/// A density to compare with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// What it is.
    pub name: String,
    /// The method, for its colour.
    pub method: String,
    /// Its negative log-likelihood per row, in nats.
    pub nll: Estimate,
    /// The model's less this one's, row by row.
    pub difference: Estimate,
}

/// A model beside everything that it is compared with, on the same rows.
#[derive(Clone, Debug)]
pub struct Families {
    /// Negative log-likelihood per row, in nats, with the error of log Z.
    pub nll: Estimate,
    /// That of the kernels alone.
    pub kernels_nll: Estimate,
    /// Densities that need no training.
    pub baselines: Vec<Baseline>,
    /// Kernels and energies by themselves, where there are energies.
    pub ingredients: Vec<Ingredient>,
    /// What energies of minimum velocity add, as in [`Evaluation`].
    pub velocity: Option<Estimate>,
    /// The model's log density at each row, in the units of the data.
    pub log_density: Vec<f64>,
}

impl Families {
    /// Of a model, on rows given as points in the units of the data.
    pub fn of<'p>(model: &Model, points: impl Into<Sample<'p>>, seed: u64, context: &Context) -> Result<Self, Error> {
        let (sample, m) = (&points.into(), model.manifold().ambient());
        let rows = sample.rows(m);
        let standard = model.standardised(sample.points());
        let parts = context.stage("test rows", rows, "rows", || model.parts(&standard, true, context))?;
        let shift = model.log_unit();
        let shifted = |logs: &[f64]| logs.iter().map(|l| l + shift).collect::<Vec<f64>>();
        let (own, anchor) = (shifted(&model.sum(&parts, true)), shifted(&parts.anchor));
        let nll = |logs: &[f64]| sample.estimate(&logs.iter().map(|l| -l).collect::<Vec<f64>>());
        let paired = |a: &[f64], b: &[f64]| sample.estimate(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<f64>>());
        // The error of log Z, as a number to add: zero, known to so many nats.
        let error = Estimate { mean: 0.0, count: u64::MAX, ..model.log_z().value };
        let mut baselines = vec![];
        let chosen = compared_rows(model.manifold().dim(), rows);
        let some = &if chosen.len() < rows { sample.select(&chosen, m) } else { sample.clone() };
        let (asked, own_of_some) =
            (model.standardised(some.points()), chosen.iter().map(|&i| own[i]).collect::<Vec<f64>>());
        for other in COMPARED {
            let Some((name, logs)) = other.log_densities(model, &asked, seed, context)? else { continue };
            let logs: Vec<f64> = logs.iter().map(|l| l + shift).collect();
            let pairs: Vec<f64> = logs.iter().zip(&own_of_some).map(|(other, own)| other - own).collect();
            let nll = some.estimate(&logs.iter().map(|l| -l).collect::<Vec<f64>>());
            let (method, difference) = (other.method().to_string(), some.estimate(&pairs) + error);
            baselines.push(Baseline { name, method, nll, difference });
        }
        let mut ingredients = vec![];
        let mut ingredient = |name: String, weight: f64, logs: &[f64], own_error: f64| {
            let own_error = Estimate { mean: 0.0, count: u64::MAX, std_error: own_error };
            let logs = shifted(logs);
            let (nll, difference) = (nll(&logs) + own_error, paired(&logs, &own) + error + own_error);
            ingredients.push(Ingredient { name, weight, nll, difference });
        };
        if !model.experts().is_empty() {
            ingredient("kernels".into(), model.kernels_weight(), &parts.anchor, 0.0);
        }
        for (expert, logs) in model.experts().iter().zip(&parts.experts) {
            ingredient(expert.name(), expert.weight(), logs, expert.log_z().value.std_error);
        }
        let velocity = model.experts().iter().any(Expert::is_of_velocity).then(|| {
            let without = shifted(&model.sum(&parts, false));
            paired(&without, &own) + error
        });
        Ok(Families {
            nll: nll(&own) + error,
            kernels_nll: nll(&anchor),
            baselines,
            ingredients,
            velocity,
            log_density: own,
        })
    }
}

impl Evaluation {
    /// Of a model, on rows given as points in the units of the data.
    pub fn of<'p>(model: &Model, points: impl Into<Sample<'p>>, seed: u64, context: &Context) -> Result<Self, Error> {
        let (sample, m) = (&points.into(), model.manifold().ambient());
        let Families { nll, kernels_nll, baselines, ingredients, velocity, log_density } =
            Families::of(model, sample.clone(), seed, context)?;
        let draws = Draws::of(model, Levels::DRAWS, seed, context)?;
        let levels: Vec<f64> = log_density.iter().map(|l| draws.levels.at(*l)).collect();
        let plan = TestPlan::seeded(seed);
        Ok(Evaluation {
            ingredients,
            velocity,
            test_rows: sample.rows(m),
            test_nll: nll,
            kernels_nll,
            baselines,
            goodness: Fitness::of(model, &plan.thinned(sample, m), &draws.points, &plan, context)?,
            coverage: Coverage::of(share_inside(sample, &levels), sample.total(m), Levels::DRAWS),
        })
    }

    /// By how many nats a row is better described than by the uniform law, where there is one.
    pub fn below_uniform(&self) -> Option<Estimate> {
        self.baselines.iter().find(|b| b.method == Compared::Uniform.method()).map(|b| -b.difference)
    }
}

/// Rows on which baselines are compared, at most, in more than three dimensions: there a kernel density of many points takes long.
const COMPARED_ROWS: usize = 20_000;

/// Which of so many rows baselines are compared on: all, or some at equal distances in their order.
fn compared_rows(dim: usize, rows: usize) -> Vec<usize> {
    let some = if dim > FEW_DIMENSIONS { rows.min(COMPARED_ROWS) } else { rows };
    (0..some).map(|k| k * rows / some).collect()
}

/// Of more points, baselines choose their widths and numbers by as many, and are then made of all.
const MANY: usize = 20_000;
/// Rounds of a mixture with all points then.
const REFINED: usize = 20;

/// Densities to compare with.
#[derive(Clone, Copy)]
pub(super) enum Compared {
    Uniform,
    KernelDensity,
    Mixture,
}

pub(super) const COMPARED: [Compared; 3] = [Compared::Uniform, Compared::KernelDensity, Compared::Mixture];

impl Compared {
    /// The method, for its colour.
    pub fn method(self) -> &'static str {
        match self {
            Compared::Uniform => "uniform",
            Compared::KernelDensity => "kde",
            Compared::Mixture => "vmf-mixture",
        }
    }

    /// Whether there is such a density where the model's points live.
    pub fn applies(self, model: &Model) -> bool {
        !matches!(self, Compared::Uniform) || Uniform::new(model.manifold()).is_some()
    }

    /// Its name, and log densities at points, both in standard units; from the context's checkpoint if there is one. `None`
    /// where there is no such density.
    pub fn log_densities(
        self,
        model: &Model,
        points: &[f64],
        seed: u64,
        context: &Context,
    ) -> Result<Option<(String, Vec<f64>)>, Error> {
        if !self.applies(model) {
            return Ok(None);
        }
        let inputs = model.fingerprint().and(points).and(&[f64::from_bits(seed)]);
        let (logs, name) = context.kept(&format!("baseline-{}", self.method()), inputs, || {
            let (stage, rows) = self.work(model, points);
            context.stage(stage, rows, "rows", || {
                let density = self.density(model, seed, context)?;
                let logs = density.log_density(points, context)?;
                Ok((lists([("logs", logs.as_slice())]), density.name().to_string()))
            })
        })?;
        Ok(Some((name, logs.get("logs").expect("kept under this name").to_vec())))
    }

    /// Its stage, and the rows it looks at; nobody knows how often a mixture looks at them.
    pub fn work(self, model: &Model, points: &[f64]) -> (&'static str, usize) {
        let rows = points.len() / model.manifold().ambient();
        match self {
            Compared::Uniform => ("baselines: uniform", rows),
            Compared::KernelDensity => {
                let centres = model.kernels().centres();
                let looks = if centres > MANY { OneWidth::work(centres) } else { Search::PASSES * centres };
                ("baselines: kernel density", looks + rows)
            }
            Compared::Mixture => ("baselines: mixture", 0),
        }
    }

    /// Of the points that the kernels stand on, in standard units. Repeats of a point stay together, as in the folds of the kernels.
    pub fn density(self, model: &Model, seed: u64, context: &Context) -> Result<Box<dyn Density>, Error> {
        let (manifold, rows) = (&**model.manifold(), model.kernels().made_of());
        let m = manifold.ambient();
        let Ok(bump) = Bump::new(manifold) else {
            return self.wrapped(model.manifold(), &rows.repeats_together(m), seed, context);
        };
        let centres = &rows.select(&bump.outwards(rows.points()), m).repeats_together(m);
        Ok(match self {
            Compared::Uniform => Box::new(Uniform::new(model.manifold()).expect("looked for before")),
            Compared::KernelDensity => {
                let search = Search { seed, ..Search::default() };
                if centres.rows(m) > MANY {
                    return Ok(Box::new(OneWidth::natural(model.manifold(), centres, &search, context)?));
                }
                Box::new(KernelDensity::cross_validated(bump, centres, None, &search, context)?.0)
            }
            Compared::Mixture => {
                let rows = centres.rows(m);
                let some: Vec<usize> = (0..rows).step_by(rows.div_ceil(MANY)).collect();
                let [to_fit, to_choose] = dealt(&centres.select(&some, m), m);
                let search = MixtureSearch { seed, ..MixtureSearch::default() };
                let mixture = Mixture::selected(manifold, &to_fit, &to_choose, &search, context)?;
                Box::new(if rows > MANY { mixture.refined(centres, REFINED, context)? } else { mixture })
            }
        })
    }

    /// The same on a manifold that is no product of model spaces.
    fn wrapped(
        self,
        manifold: &Arc<dyn Manifold>,
        centres: &Sample,
        seed: u64,
        context: &Context,
    ) -> Result<Box<dyn Density>, Error> {
        Ok(match self {
            Compared::Uniform => Box::new(Uniform::new(manifold).expect("looked for before")),
            Compared::KernelDensity => Box::new(OneWidth::wrapped(manifold, centres, context)?),
            Compared::Mixture => {
                let [to_fit, to_choose] = dealt(centres, manifold.ambient());
                let search = MixtureSearch { seed, ..MixtureSearch::default() };
                Box::new(WrappedMixture::selected(manifold, &to_fit, &to_choose, &search, context)?)
            }
        })
    }
}

/// Nine points (or groups) to fit a mixture, the tenth to choose its size by.
fn dealt(sample: &Sample, ambient: usize) -> [Sample<'static>; 2] {
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    let mut number = |i: usize| {
        let next = numbers.len();
        *numbers.entry(sample.group(i)).or_insert(next)
    };
    let (to_choose, to_fit): (Vec<usize>, Vec<usize>) = (0..sample.rows(ambient)).partition(|&i| number(i) % 10 == 9);
    [to_fit, to_choose].map(|part| sample.select(&part, ambient))
}
