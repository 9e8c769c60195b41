//! Bias and variance of minimum velocity learning and denoising score matching against the step size.
//!
//! **Statement.** At the scale of J, for an energy learnt from the banana: without control variate Var MVL ~ (2/ε)E|∇E|²
//! and Var DSM ~ d/2ε²; with it both tend to Var SSM-VR; the squared bias is O(ε²).
//! **Source.** wang2020mvl Figure 1; docs/math §1.3, §2.3, §4.2, §8.
//! **Conventions.** f64 throughout, since at ε = 10⁻⁵ the bias is some 10⁻⁶ of a sample, and f32 makes errors of
//! 10⁻⁷/√ε even with exact differences; what rounding to f32 does is measured apart.
//! **Checked by** its own claims, tests/lab/experiment_planar.rs.

mod claims;
mod figures;
mod measure;

use super::planar::{Data, Learning, Models, points};
use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use measure::{Measured, Sampling, measure, over_models, rounding};
use minvel::Error;
use minvel::energy::toy::Banana;
use minvel::estimate::Estimate;
use minvel::flow::{Langevin, Law};
use minvel::objective::{Denoising, MinimumVelocity, Objective, Reduction};
use minvel::train::Context;
use serde::{Deserialize, Serialize};

/// The line in the list.
pub const ENTRY: Entry = Entry {
    name: "bias-variance",
    source: "Figure 1",
    about: "Squared bias and variance of MVL and DSM against step size, with and without control variate",
    settings: include_str!("../../experiments/bias-variance.toml"),
    check: |config| Ok(Box::new(BiasVariance::check(config)?)),
    hidden: false,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BiasVariance {
    seed: u64,
    seeds: usize,
    points: usize,
    noises: usize,
    variant_noises: usize,
    step_sizes: Vec<f64>,
    test_step: f64,
    fresh_points: usize,
    iterations: u32,
    training_step: f64,
    learning: Learning,
}

/// What the training gave.
#[derive(Serialize, Deserialize)]
struct Learnt {
    models: Models,
    /// J on fresh data, for each seed.
    losses: Vec<Estimate>,
}

/// Our additions at one step size: with antithetic noise for each model, the others for the first.
#[derive(Serialize, Deserialize)]
struct Variants {
    antithetic: Vec<Measured>,
    rademacher: Vec<Measured>,
    rounding: Vec<Vec<Estimate>>,
}

/// All that is known at one step size.
struct At {
    step: f64,
    sliced: Measured,
    sliced_reduced: Measured,
    mvl: Measured,
    mvl_plain: Measured,
    dsm: Measured,
    dsm_plain: Measured,
    antithetic: Measured,
    rademacher: Measured,
    rounding: Rounding,
}

/// Mean square of what f32 changes in one sample of MVL.
struct Rounding {
    /// E(x⁻) − E(x) subtracted as it stands.
    ordinary: Estimate,
    /// The difference propagated operation by operation.
    exact: Estimate,
    /// The same, antithetic.
    antithetic: Estimate,
}

/// Noises for each point when rounding is measured.
const ROUNDED: usize = 100;

fn mvl(step: f64, reduction: Reduction, exact_difference: bool) -> Box<dyn Objective> {
    Box::new(MinimumVelocity { reduction, exact_difference, ..MinimumVelocity::new(Langevin, step) })
}

fn dsm(step: f64, reduction: Reduction) -> Box<dyn Objective> {
    Box::new(Denoising { reduction, ..Denoising::new(step) })
}

impl BiasVariance {
    fn check(config: &Config) -> Result<Self, Error> {
        let this: BiasVariance = config.read()?;
        this.learning.check(config)?;
        let positive = |key: &str, x: f64| if x > 0.0 { Ok(()) } else { Err(config.refuse(key, "must be positive")) };
        positive("seeds", this.seeds as f64)?;
        positive("points", this.points as f64)?;
        positive("iterations", this.iterations.into())?;
        positive("training_step", this.training_step)?;
        this.step_sizes.iter().try_for_each(|&e| positive("step_sizes", e))?;
        let two = |key: &str, n: usize| if n > 1 { Ok(()) } else { Err(config.refuse(key, "must be at least 2")) };
        two("noises", this.noises)?;
        two("variant_noises", this.variant_noises)?;
        two("fresh_points", this.fresh_points)?;
        if this.step_sizes.len() < 3 || !this.step_sizes.is_sorted() {
            return Err(config.refuse("step_sizes", "needs at least three for a slope, from small to large"));
        }
        if !this.step_sizes.contains(&this.test_step) {
            return Err(config.refuse("test_step", "must be one of `step_sizes`"));
        }
        Ok(this)
    }

    fn train(&self, context: &Context) -> Result<Learnt, Error> {
        let (law, seeds) = (Banana::default(), (self.seed, self.seeds));
        let objective = mvl(self.training_step, Reduction::ControlVariate, true);
        let models = Models::train(&*objective, Data::Fresh(&law), &self.learning, self.iterations, seeds, context)?;
        let fresh = points(&law, self.points + self.fresh_points, self.seed).split_off(2 * self.points);
        let losses = models.scores(&fresh, self.seed, context)?.iter().map(|s| s[0]).collect();
        Ok(Learnt { models, losses })
    }

    /// The noise of a step size is its own, so that errors are independent.
    fn sampling(&self, number: usize, noises: usize, law: Law) -> Sampling {
        Sampling { law, noises, seed: self.seed, number: number as u32 }
    }

    /// SSM, SSM-VR, MVL with and without control variate, DSM with and without: for a model.
    fn estimators(&self, models: &Models, number: usize, context: &Context) -> Result<Vec<Vec<Measured>>, Error> {
        let (step, points) = (self.step_sizes[number], points(&Banana::default(), self.points, self.seed));
        let (reduced, plain) = (Reduction::ControlVariate, Reduction::None);
        let objectives = [mvl(step, reduced, true), mvl(step, plain, true), dsm(step, reduced), dsm(step, plain)];
        measure(models, &points, &objectives, self.sampling(number, self.noises, Law::Gaussian), context)
    }

    /// With antithetic noise there is next to no noise in the bias, so that all models can be measured.
    fn variants(&self, models: &Models, number: usize, context: &Context) -> Result<Variants, Error> {
        let (step, points) = (self.step_sizes[number], points(&Banana::default(), self.points, self.seed));
        let first = models.first();
        let sampling = |noises, law| self.sampling(self.step_sizes.len() + number, noises, law);
        let measured = |models, objective, law| {
            let sampling = sampling(self.variant_noises, law);
            Ok::<_, Error>(
                measure(models, &points, &[objective], sampling, context)?.pop().expect("SSM, SSM-VR and it"),
            )
        };
        let (reduced, antithetic) = (Reduction::ControlVariate, Reduction::Antithetic);
        let objectives = [mvl(step, reduced, false), mvl(step, reduced, true), mvl(step, antithetic, true)];
        Ok(Variants {
            antithetic: measured(models, mvl(step, antithetic, true), Law::Gaussian)?,
            rademacher: measured(&first, mvl(step, reduced, true), Law::Rademacher)?,
            rounding: rounding(&first, &points, &objectives, sampling(ROUNDED, Law::Gaussian), context)?,
        })
    }
}

impl At {
    /// The mean over models of what two units found.
    fn new(step: f64, paper: &[Vec<Measured>], ours: &Variants) -> Self {
        let of = |k: usize| Measured::over(&paper[k]);
        let rounded = |k: usize| over_models(&ours.rounding[k]);
        At {
            step,
            sliced: of(0),
            sliced_reduced: of(1),
            mvl: of(2),
            mvl_plain: of(3),
            dsm: of(4),
            dsm_plain: of(5),
            antithetic: Measured::over(&ours.antithetic),
            rademacher: Measured::over(&ours.rademacher),
            rounding: Rounding { ordinary: rounded(0), exact: rounded(1), antithetic: rounded(2) },
        }
    }
}

impl Experiment for BiasVariance {
    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        runner.plan(1 + 2 * self.step_sizes.len());
        let learnt = runner.unit("training", |context| self.train(context))?;
        let first = learnt.models.first();
        let table = runner.each(self.step_sizes.iter().enumerate(), |runner, (number, &step)| {
            let paper = runner.unit(&format!("step={step:e}"), |context| self.estimators(&first, number, context));
            let paper = runner.if_finished(paper)?;
            let ours = runner
                .unit(&format!("variants.step={step:e}"), |context| self.variants(&learnt.models, number, context))?;
            Ok(At::new(step, &paper.ok_or(Error::Interrupted)?, &ours))
        })?;
        let rows = claims::all(self, &learnt, &table);
        let notes = vec![
            "All values are at the scale of J = ½|∇E|² − ΔE and in f64, except where f32 is stated.".into(),
            "The bound on the squared bias contains noise of the difference, Var/M. Where more than a quarter of it \
             is noise, it counts as not resolved; slopes are fitted to the rest, with the noise subtracted."
                .into(),
        ];
        Ok(Findings { rows, figures: figures::all(&table), notes })
    }
}
