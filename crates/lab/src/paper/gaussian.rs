//! The one-dimensional Gaussian, where mean, variance and minimum are known for every step size.
//!
//! **Statement.** p = N(0, s²), E = a·x²/2: E L̂ = a²s²(1 − εa/4) − 2a;
//! Var L̂ = 2a⁴s⁴(1 − εa/4)² + 2εa⁴s² + 8a² with control variate, 2a⁴s⁴(1 − εa/4)² + 8a² + 2εs²(a² − 2a/ε)² without.
//! **Source.** docs/math §1.4. **Checked by** its own claims, tests/lab/experiment.rs.

use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use crate::plot::{Axis, Dash, Figure, Lines, Plot, Series};
use crate::report::{Claim, Row};
use minvel::Error;
use minvel::estimate::{Estimate, Line, Moments};
use minvel::flow::{Langevin, Law, Noise};
use minvel::objective::{MinimumVelocity, Objective, Reduction};
use minvel::train::{Context, Learner, Step};
use minvel_engine::optim::{Optimiser, RateSchedule};
use minvel_engine::{Clock, Draw, Expr, Graph, State};
use serde::{Deserialize, Serialize};

/// The line in the list.
pub const ENTRY: Entry = Entry {
    name: "gaussian",
    source: "a closed form",
    about: "Mean and variance of the minimum-velocity loss of a Gaussian against their closed forms",
    settings: include_str!("../../experiments/gaussian.toml"),
    check: |config| Ok(Box::new(Gaussian::check(config)?)),
    hidden: true,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gaussian {
    seed: u64,
    seeds: usize,
    deviation: f64,
    precision: f64,
    step_sizes: Vec<f64>,
    samples: usize,
    learning: Learning,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Learning {
    iterations: u32,
    batch: usize,
    rate: f64,
    step_size: f64,
}

/// Samples of the loss at one step size.
#[derive(Serialize, Deserialize)]
struct Sampled {
    reduced: Moments,
    plain: Moments,
}

/// Rows of one program; more samples take more steps.
const ROWS: usize = 20_000;
/// How sure a statistical claim must be. With some ten of them a true one is missed once in a thousand runs.
const SIGMAS: f64 = 4.0;

impl Gaussian {
    fn check(config: &Config) -> Result<Self, Error> {
        let this: Gaussian = config.read()?;
        let positive = |key: &str, x: f64| if x > 0.0 { Ok(()) } else { Err(config.refuse(key, "must be positive")) };
        positive("deviation", this.deviation)?;
        positive("precision", this.precision)?;
        positive("seeds", this.seeds as f64)?;
        positive("learning.batch", this.learning.batch as f64)?;
        positive("learning.iterations", this.learning.iterations as f64)?;
        this.step_sizes.iter().chain([&this.learning.step_size]).try_for_each(|&e| positive("step_sizes", e))?;
        if this.step_sizes.len() < 3 {
            return Err(config.refuse("step_sizes", "needs at least three for a slope"));
        }
        if this.samples < ROWS {
            return Err(config.refuse("samples", &format!("must be at least {ROWS}")));
        }
        Ok(this)
    }

    /// The loss of each row at step ε.
    fn rows<'g>(&self, a: Expr<'g>, rows: usize, step: f64, reduction: Reduction) -> Expr<'g> {
        let x = self.deviation * a.graph().random_rows(Draw::Normal, 0, rows, [1]);
        let energy = |x: Expr<'g>| 0.5 * a * x.square().sum(-1);
        let objective = MinimumVelocity { reduction, ..MinimumVelocity::new(Langevin, step) };
        objective.rows(&energy, x.into(), Noise::drawn(Law::Gaussian, 1))
    }

    fn sample(&self, step: f64, number: usize, context: &Context) -> Result<Sampled, Error> {
        let g = Graph::new();
        let a = g.scalar(self.precision);
        let losses = [Reduction::ControlVariate, Reduction::None].map(|r| self.rows(a, ROWS, step, r));
        let mut program = g.try_compile::<f64>(&losses, &[], &context.options(1))?;
        let mut sampled = Sampled { reduced: Moments::default(), plain: Moments::default() };
        let rounds = self.samples.div_ceil(ROWS);
        context.begin("samples", rounds as u64, 0);
        for round in 0..rounds {
            context.go_on()?;
            // Each step size has noise of its own, so that their errors are independent.
            let clock = Clock { seed: self.seed, step: (number * rounds + round) as u32 };
            program.try_run(&mut State::new(1), &[], clock)?;
            sampled.reduced.extend(program.try_output(0)?.iter().copied());
            sampled.plain.extend(program.try_output(1)?.iter().copied());
            context.advance(round as u64 + 1, "");
        }
        context.end();
        Ok(sampled)
    }

    /// a learnt by each seed.
    fn learn(&self, context: &Context) -> Result<Vec<f64>, Error> {
        let Learning { iterations, batch, rate, step_size } = self.learning;
        let g = Graph::new();
        let a = g.variable("a", []);
        let loss = self.rows(a, batch, step_size, Reduction::ControlVariate).mean_rows();
        let schedule = RateSchedule::Cosine { steps: iterations, floor: 0.0 };
        let step = Step::minimise(loss, &[a], &Optimiser { schedule, ..Optimiser::adam(rate) });
        let mut state = State::new(self.seeds);
        state.set("a", &[0.1], 1);
        let mut learner = Learner::<f32>::from_state(&g, &step, state, self.seed, context)?;
        learner.train("a", iterations, context)?.all_finite()?;
        let state = learner.into_state();
        Ok(state.get("a").expect("it was set").iter().map(|&a| a as f64).collect())
    }

    fn mean(&self, step: f64) -> f64 {
        let (a, s) = (self.precision, self.deviation);
        a * a * s * s * (1.0 - step * a / 4.0) - 2.0 * a
    }

    fn variance(&self, step: f64, reduced: bool) -> f64 {
        let (a, s) = (self.precision, self.deviation);
        let common = 2.0 * (a * s).powi(4) * (1.0 - step * a / 4.0).powi(2) + 8.0 * a * a;
        let cross = if reduced { a * a } else { a * a - 2.0 * a / step };
        common + 2.0 * step * (s * cross).powi(2)
    }

    /// Where the loss of step ε is least: 2as² − ¾εa²s² = 2.
    fn minimum(&self, step: f64) -> f64 {
        let (b, s) = (0.75 * step, self.deviation);
        (1.0 - (1.0 - 2.0 * b / (s * s)).sqrt()) / b
    }
}

impl Experiment for Gaussian {
    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        runner.plan(self.step_sizes.len() + 1);
        let sampled = runner.each(self.step_sizes.iter().enumerate(), |runner, (number, &step)| {
            Ok((step, runner.unit(&format!("step={step:e}"), |context| self.sample(step, number, context))?))
        });
        let sampled = runner.if_finished(sampled)?;
        let learnt = Estimate::of(runner.unit("learning", |context| self.learn(context))?);
        let sampled = sampled.ok_or(Error::Interrupted)?;

        let reduced: Vec<_> = sampled.iter().map(|(e, s)| (*e, s.reduced.variance())).collect();
        let plain: Vec<_> = sampled.iter().map(|(e, s)| (*e, s.plain.variance())).collect();
        let mut rows = vec![];
        for (step, s) in &sampled {
            let near = |of: f64| Claim::Sigmas { of: Estimate::exact(of), sigmas: SIGMAS };
            let mean = Row::new(&format!("mean of L̂ at ε = {step:e}"), s.reduced.mean(), 1);
            rows.push(mean.claim("The mean of the loss is its closed form", near(self.mean(*step))));
            let variance = Row::new(&format!("variance of L̂ at ε = {step:e}"), s.reduced.variance(), 1);
            rows.push(variance.claim("The variance of the loss is its closed form", near(self.variance(*step, true))));
        }
        let slope = |points: &[(f64, Estimate)]| Line::power(points).slope;
        rows.push(
            Row::new("slope of the variance with control variate", slope(&reduced), 1)
                .claim("With the control variate the variance does not grow", Claim::Within { of: 0.0, by: 0.1 }),
        );
        rows.push(
            Row::new("slope of the variance without control variate", slope(&plain), 1)
                .claim("Without the control variate the variance grows like 1/ε", Claim::Within { of: -1.0, by: 0.1 }),
        );
        let of = Estimate::exact(self.minimum(self.learning.step_size));
        rows.push(
            Row::new("precision learnt", learnt, self.seeds)
                .claim("Learning finds the minimum of the loss", Claim::Sigmas { of, sigmas: SIGMAS }),
        );
        Ok(Findings { rows, figures: vec![self.figure(&reduced, &plain)], notes: vec![] })
    }
}

impl Gaussian {
    fn figure(&self, reduced: &[(f64, Estimate)], plain: &[(f64, Estimate)]) -> Figure {
        let title = "Variance of the loss of a Gaussian";
        let (first, last) = (plain[0], plain[plain.len() - 1]);
        let plot = Lines::new(title, Axis::log("step size ε"), Axis::log("variance of L̂ (one sample)"))
            .with(Series::new("MVL with control variate", "mvl").estimates(reduced.iter().copied()))
            .with(Series::new("MVL without", "mvl").dashed(Dash::Dashed).estimates(plain.iter().copied()))
            .level(self.variance(0.0f64, true), "limit ε → 0")
            .power(-1.0, [(first.0 * last.0).sqrt(), 3.0 * (first.1.mean * last.1.mean).sqrt()], "∝ 1/ε");
        let caption = "Variance of one sample of the loss against step size; bands are 95 % intervals. Without the \
                       control variate it grows like 1/ε; with it, it stays bounded.";
        Figure::new("variance", caption, Plot::Lines(plot))
    }
}
