//! How good a model is on rows that it has not seen, beside densities that need no training.
//!
//! **Statement.** NLL = −mean log p; its error is that of the mean over rows, and that of log Z. Differences to baselines
//! are taken row by row. **Conventions.** Baselines are made of the points that the kernels stand on: the uniform law
//! where the volume is finite, the kernel density with one bandwidth by ten-fold cross-validation (and 1 % uniform), and
//! the mixture by EM whose size does best on a tenth of those points.
//! **Checked by** tests/fit.rs.

use super::Model;
use crate::Error;
use crate::density::{Bump, Density, KernelDensity, Mixture, MixtureSearch, Search, Uniform};
use crate::eval::{Estimate, Goodness, TestPlan, goodness_of_fit};
use crate::train::Desk;
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
    /// Whether the rows may come from the model, by a kernel Stein test.
    pub goodness: Fitness,
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

/// The outcome of the Stein test; NaN where there was none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fitness {
    /// KSD².
    #[serde(with = "crate::report::number")]
    pub statistic: f64,
    /// Probability of a statistic at least as large under the model.
    #[serde(with = "crate::report::number")]
    pub p_value: f64,
    /// Points that were used.
    pub points: usize,
}

impl Evaluation {
    /// Of a model, on rows given as points in the units of the data.
    pub fn of(model: &Model, points: &[f64], seed: u64, desk: &Desk) -> Result<Self, Error> {
        let m = model.manifold().ambient();
        let own = model.log_density(points, desk);
        let nll = |logs: &[f64]| Estimate::of(logs.iter().map(|l| -l));
        // The error of log Z, as a number to add: zero, known to so many nats.
        let error = Estimate { mean: 0.0, count: u64::MAX, ..model.log_z().value };
        let mut baselines = vec![];
        let shift = model.log_unit();
        let standard = model.standardised(points);
        for (method, density) in densities(model, seed, desk)? {
            let logs: Vec<f64> = density.log_density(&standard, desk.threads()).iter().map(|l| l + shift).collect();
            let pairs: Vec<f64> = logs.iter().zip(&own).map(|(other, own)| other - own).collect();
            let difference = Estimate::of(pairs) + error;
            let (name, method) = (density.name().to_string(), method.to_string());
            baselines.push(Baseline { name, method, nll: nll(&logs), difference });
            desk.go_on()?;
        }
        Ok(Evaluation {
            test_rows: points.len() / m,
            test_nll: nll(&own) + error,
            kernels_nll: nll(&model.log_anchor(points, desk)),
            baselines,
            goodness: Fitness::of(model, points, seed, desk)?,
        })
    }
}

impl Fitness {
    /// Of rows given as points in the units of the data; a single one says nothing.
    fn of(model: &Model, points: &[f64], seed: u64, desk: &Desk) -> Result<Self, Error> {
        if points.len() / model.manifold().ambient() < 2 {
            return Ok(Fitness { statistic: f64::NAN, p_value: f64::NAN, points: 0 });
        }
        let (scores, standard) = model.scores(points, desk);
        Self::of_scores(model, &standard, &scores, seed, desk)
    }

    /// Of rows in standard units with these gradients of log p.
    pub(super) fn of_scores(
        model: &Model,
        standard: &[f64],
        scores: &[f64],
        seed: u64,
        desk: &Desk,
    ) -> Result<Self, Error> {
        let plan = TestPlan { seed, threads: desk.threads(), ..TestPlan::default() };
        let Goodness { statistic, p_value, points, .. } =
            goodness_of_fit(&**model.manifold(), standard, scores, &plan)?;
        Ok(Fitness { statistic, p_value, points })
    }
}

/// A method, for its colour, and its density.
pub(super) type Compared = (&'static str, Box<dyn Density>);

/// The baselines, in standard units.
pub(super) fn densities(model: &Model, seed: u64, desk: &Desk) -> Result<Vec<Compared>, Error> {
    let manifold = &**model.manifold();
    let m = manifold.ambient();
    let bump = Bump::new(manifold)?;
    let centres = &bump.outwards(model.kernels().points());
    let threads = desk.threads();
    let mut all: Vec<Compared> = vec![];
    if let Some(uniform) = Uniform::new(manifold) {
        all.push(("uniform", Box::new(uniform)));
    }
    desk.begin("baselines", 2, 0);
    let search = Search { seed, threads, ..Search::default() };
    let (kernel, _) = KernelDensity::cross_validated(bump, centres, None, &search);
    all.push(("kde", Box::new(kernel)));
    desk.advance(1, "kernel density");
    let (mut to_fit, mut to_choose) = (vec![], vec![]);
    for (i, point) in centres.chunks(m).enumerate() {
        if i % 10 == 9 { to_choose.extend_from_slice(point) } else { to_fit.extend_from_slice(point) }
    }
    let search = MixtureSearch { seed, threads, ..MixtureSearch::default() };
    all.push(("vmf-mixture", Box::new(Mixture::selected(manifold, &to_fit, &to_choose, &search)?)));
    desk.end();
    Ok(all)
}
