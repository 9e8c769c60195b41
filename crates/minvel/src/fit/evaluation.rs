//! How good a model is on rows that it has not seen, beside densities that need no training.
//!
//! **Statement.** NLL = −mean log p; its error is that of the mean over rows, and that of log Z. Differences to baselines
//! are taken row by row. **Conventions.** Baselines are made of the points that the kernels stand on (where these are means of
//! clusters of rows, each counts the same, as clusters have equally many): the uniform law
//! where the volume is finite, the kernel density with one bandwidth by ten-fold cross-validation (and 1 % uniform), and
//! the mixture by EM whose size does best on a tenth of those points. From 20 000 points on the bandwidth and the size are
//! chosen by a part of them, at equal distances.
//! **Checked by** crates/lab/tests/lab/fit.rs.

use super::Model;
use super::fitness::{Coverage, Draws, Fitness, inside};
use super::levels::Levels;
use crate::Error;
use crate::density::{
    Bump, Density, KernelDensity, Mixture, MixtureSearch, OneWidth, Search, TestPlan, Uniform, WrappedMixture,
};
use crate::estimate::Estimate;
use crate::train::{Context, lists};
use serde::{Deserialize, Serialize};

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

impl Evaluation {
    /// Of a model, on rows given as points in the units of the data.
    pub fn of(model: &Model, points: &[f64], seed: u64, context: &Context) -> Result<Self, Error> {
        let rows = points.len() / model.manifold().ambient();
        let (own, anchor) = context.stage("test rows", rows, "rows", || model.log_densities(points, context))?;
        let nll = |logs: &[f64]| Estimate::of(logs.iter().map(|l| -l));
        // The error of log Z, as a number to add: zero, known to so many nats.
        let error = Estimate { mean: 0.0, count: u64::MAX, ..model.log_z().value };
        let mut baselines = vec![];
        let shift = model.log_unit();
        let standard = model.standardised(points);
        for other in COMPARED {
            let Some((name, logs)) = other.log_densities(model, &standard, seed, context)? else { continue };
            let logs: Vec<f64> = logs.iter().map(|l| l + shift).collect();
            let pairs: Vec<f64> = logs.iter().zip(&own).map(|(other, own)| other - own).collect();
            let (method, difference) = (other.method().to_string(), Estimate::of(pairs) + error);
            baselines.push(Baseline { name, method, nll: nll(&logs), difference });
        }
        let draws = Draws::of(model, Levels::DRAWS, seed, context)?;
        Ok(Evaluation {
            test_rows: rows,
            test_nll: nll(&own) + error,
            kernels_nll: nll(&anchor),
            baselines,
            goodness: Fitness::of(model, points, &draws.points, &TestPlan::seeded(seed), context)?,
            coverage: Coverage::of(inside(own.iter().map(|l| draws.levels.at(*l))), rows as u64, Levels::DRAWS),
        })
    }

    /// By how many nats a row is better described than by the uniform law, where there is one.
    pub fn below_uniform(&self) -> Option<Estimate> {
        self.baselines.iter().find(|b| b.method == Compared::Uniform.method()).map(|b| -b.difference)
    }
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

    /// Of the points that the kernels stand on, in standard units.
    pub fn density(self, model: &Model, seed: u64, context: &Context) -> Result<Box<dyn Density>, Error> {
        let manifold = &**model.manifold();
        let Ok(bump) = Bump::new(manifold) else { return self.wrapped(model, seed, context) };
        let centres = &bump.outwards(model.kernels().points());
        Ok(match self {
            Compared::Uniform => Box::new(Uniform::new(model.manifold()).expect("looked for before")),
            Compared::KernelDensity => {
                let search = Search { seed, ..Search::default() };
                if centres.len() / manifold.ambient() > MANY {
                    return Ok(Box::new(OneWidth::natural(model.manifold(), centres, &search, context)?));
                }
                Box::new(KernelDensity::cross_validated(bump, centres, None, &search, context)?.0)
            }
            Compared::Mixture => {
                let m = manifold.ambient();
                let rows = centres.len() / m;
                let some: Vec<f64> = centres.chunks(m).step_by(rows.div_ceil(MANY)).flatten().copied().collect();
                let [to_fit, to_choose] = dealt(&some, m);
                let search = MixtureSearch { seed, ..MixtureSearch::default() };
                let mixture = Mixture::selected(manifold, &to_fit, &to_choose, &search, context)?;
                Box::new(if rows > MANY { mixture.refined(centres, REFINED, context)? } else { mixture })
            }
        })
    }

    /// The same on a manifold that is no product of model spaces.
    fn wrapped(self, model: &Model, seed: u64, context: &Context) -> Result<Box<dyn Density>, Error> {
        let (manifold, centres) = (&**model.manifold(), model.kernels().points());
        Ok(match self {
            Compared::Uniform => Box::new(Uniform::new(model.manifold()).expect("looked for before")),
            Compared::KernelDensity => Box::new(OneWidth::wrapped(model.manifold(), centres, context)?),
            Compared::Mixture => {
                let [to_fit, to_choose] = dealt(centres, manifold.ambient());
                let search = MixtureSearch { seed, ..MixtureSearch::default() };
                Box::new(WrappedMixture::selected(model.manifold(), &to_fit, &to_choose, &search, context)?)
            }
        })
    }
}

/// Nine points to fit a mixture, the tenth to choose its size by.
fn dealt(points: &[f64], ambient: usize) -> [Vec<f64>; 2] {
    let (mut to_fit, mut to_choose) = (vec![], vec![]);
    for (i, point) in points.chunks(ambient).enumerate() {
        if i % 10 == 9 { to_choose.extend_from_slice(point) } else { to_fit.extend_from_slice(point) }
    }
    [to_fit, to_choose]
}
