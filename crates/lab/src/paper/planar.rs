//! Energies in the plane: the paper's network, and how it is trained on synthetic data.
//!
//! **Statement.** E(x) = ⟨x, ψ(x)⟩, ψ: 2 → h → h → 2 with swish, hidden layers normalised spectrally; θ ← TF-RMSProp on
//! mean loss/scale, so that all objectives have the size of J. **Source.** wang2020mvl; docs/math §4.0, §4.2, §4.3, §9.
//! **Checked by** tests/lab/experiment_planar.rs.

use crate::experiment::Config;
use minvel::Error;
use minvel::energy::{Energy, Mlp};
use minvel::estimate::Estimate;
use minvel::flow::{Law, Noise};
use minvel::network::{Activation, Features};
use minvel::objective::{Objective, ScoreMatching, Sliced};
use minvel::train::{Context, Learner};
use minvel_engine::math::Real;
use minvel_engine::optim::Optimiser;
use minvel_engine::{Clock, Device, Graph, Options, State};
use serde::{Deserialize, Serialize};

/// How a network is trained.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Learning {
    /// h.
    pub hidden: usize,
    /// Points of each step.
    pub batch: usize,
    /// Of TF-RMSProp.
    pub rate: f64,
}

impl Learning {
    /// Refuses numbers that make no sense.
    pub fn check(&self, config: &Config) -> Result<(), Error> {
        let numbers = [("hidden", self.hidden as f64), ("batch", self.batch as f64), ("rate", self.rate)];
        match numbers.into_iter().find(|(_, x)| x.is_nan() || *x <= 0.0) {
            Some((key, _)) => Err(config.refuse(&format!("learning.{key}"), "must be positive")),
            None => Ok(()),
        }
    }
}

/// Where the points of a step come from.
#[derive(Clone, Copy)]
pub(super) enum Data<'a> {
    /// A law: fresh points at every step.
    Fresh(&'a dyn Energy),
    /// A fixed set, row-major, in an order that is shuffled for each epoch.
    Fixed(&'a [f64]),
}

/// Streams of the programs.
const NOISE: u32 = 1;
const POINTS: u32 = 2;

/// The paper's energy.
pub(super) fn network(hidden: usize) -> Mlp {
    Mlp::new("energy", Features::of_point(2), &[hidden, hidden], Activation::Silu).spectral()
}

/// Points of a law that no training sees.
pub(super) fn points(law: &dyn Energy, count: usize, seed: u64) -> Vec<f64> {
    let g = Graph::new();
    let sample = law.sample(&g, count, POINTS).expect("synthetic data can be sampled");
    let mut program = g.compile::<f64>(&[sample], &[], &Options { device: Device::Cpu, ..Options::default() });
    program.run(&mut State::new(1), &[], Clock { seed, step: 0 });
    program.output(0).to_vec()
}

/// Networks that were trained side by side, one for each seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Models {
    hidden: usize,
    seeds: usize,
    variables: Vec<(String, Vec<f32>)>,
}

impl Models {
    /// Trains so many networks on an objective; one that diverges is left as it is, and its numbers are NaN.
    pub fn train(
        objective: &dyn Objective,
        data: Data,
        learning: &Learning,
        iterations: u32,
        (seed, seeds): (u64, usize),
        context: &Context,
    ) -> Result<Self, Error> {
        let model = network(learning.hidden);
        let learner = Learner::of(&model, objective).batch(learning.batch).replicas(seeds).seed(seed);
        let learner = match data {
            Data::Fresh(law) => learner.fresh(law),
            Data::Fixed(points) => learner.points(points, 2),
        };
        let mut learner = learner.optimiser(Optimiser::rmsprop_tf(learning.rate)).start(context)?;
        learner.train("energy", iterations, context)?;
        let state = learner.into_state();
        let kept = model.parameters().into_iter().chain(model.followers());
        let variables = kept.map(|p| (p.name.clone(), state.get(&p.name).expect("it was trained").to_vec()));
        Ok(Models { hidden: learning.hidden, seeds, variables: variables.collect() })
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.seeds
    }

    /// The first of them alone.
    pub fn first(&self) -> Self {
        let own = |values: &Vec<f32>| values[..values.len() / self.seeds].to_vec();
        let variables = self.variables.iter().map(|(name, values)| (name.clone(), own(values))).collect();
        Models { seeds: 1, variables, ..self.clone() }
    }

    /// The energy as a function of points, with its parameters as variables.
    pub fn energy(&self) -> Mlp {
        network(self.hidden)
    }

    /// The parameters, for programs in any precision.
    pub fn state<T: Real>(&self) -> State<T> {
        let mut state = State::new(self.seeds);
        for (name, values) in &self.variables {
            let values: Vec<T> = values.iter().map(|x| T::from_f64(f64::from(*x))).collect();
            state.set(name, &values, values.len() / self.seeds);
        }
        state
    }

    /// The mean over given points of J, exact, and of one sample of SSM each: for each seed.
    pub fn scores(&self, points: &[f64], seed: u64, context: &Context) -> Result<Vec<[Estimate; 2]>, Error> {
        let (g, model, rows) = (Graph::new(), self.energy(), points.len() / 2);
        let x = g.input_rows("x", rows, [2]);
        let objectives: [&dyn Objective; 2] = [&ScoreMatching::new(), &Sliced { reduced: false }];
        let noise = Noise::drawn(Law::Gaussian, NOISE);
        let losses = objectives.map(|o| o.rows(&|x| model.energy(x), x.into(), noise));
        let mut program = g.try_compile::<f64>(&losses, &[], &context.options(self.seeds))?;
        program.try_run(&mut self.state(), &[("x", points)], Clock { seed, step: u32::MAX })?;
        let both = program.try_output(0)?.chunks(rows).zip(program.try_output(1)?.chunks(rows));
        Ok(both.map(|(exact, sliced)| [exact, sliced].map(|own| Estimate::of(own.iter().copied()))).collect())
    }
}
