//! Learners: energy, objective, optimiser and data, made into something that steps, is watched, stopped and resumed.
//!
//! **Statement.** θ ← θ − optimiser(∂/∂θ L(θ; batch, noise)), L the objective over its [`scale`](Objective::scale), so that all
//! losses have the size of J; followers of θ (vectors of power iterations) go along.
//! **Conventions.** Data and noise are drawn from the streams [`stream::DATA`] and [`stream::NOISE`], keyed by seed and step.
//! **Checked by** tests/theory/learner.rs.

use super::{Checkpoint, Context, Scalar, Trainer, Training};
use crate::energy::{self, Energy};
use crate::flow::{Law, Noise};
use crate::network::Parameter;
use crate::objective::Objective;
use crate::{Error, stream};
use minvel_engine::optim::{Optimiser, Updates};
use minvel_engine::{Draw, Expr, Graph, Program, State};
use std::borrow::Cow;
use std::path::Path;

/// One step of learning as expressions: what is put out, first of all the loss, and what is updated.
pub struct Step<'g> {
    /// The loss, then whatever else is watched.
    pub outputs: Vec<Expr<'g>>,
    /// What optimisers do.
    pub updates: Vec<Updates<'g>>,
    /// Variables that follow without being learnt, and their new values.
    pub following: Vec<(Expr<'g>, Expr<'g>)>,
}

impl<'g> Step<'g> {
    /// A loss that some variables minimise.
    pub fn minimise(loss: Expr<'g>, variables: &[Expr<'g>], optimiser: &Optimiser) -> Self {
        Step { outputs: vec![loss], updates: vec![optimiser.minimise(loss, variables)], following: vec![] }
    }

    /// A loss that the parameters of an energy minimise; its followers follow.
    pub fn of_energy(energy: &dyn Energy, loss: Expr<'g>, optimiser: &Optimiser) -> Self {
        let graph = loss.graph();
        let step = Self::minimise(loss, &energy::parameters(energy, graph), optimiser);
        Step { following: energy.follow(graph), ..step }
    }

    /// All updates.
    pub fn all_updates(&self) -> Vec<(Expr<'g>, Expr<'g>)> {
        self.updates.iter().flat_map(|u| &u.updates).chain(&self.following).copied().collect()
    }

    /// Start values of the optimisers' variables.
    pub fn initialise<T: Scalar>(&self, state: &mut State<T>) {
        self.updates.iter().for_each(|u| u.initialise(state));
    }
}

/// A compiled step with its variables and inputs.
pub struct Learner<'a, T: Scalar = f32> {
    program: Program<T>,
    state: State<T>,
    inputs: Vec<(&'a str, Cow<'a, [T]>)>,
    bytes: Vec<(&'a str, &'a [u8])>,
    seed: u64,
    done: u32,
}

impl<'a> Learner<'a> {
    /// The parameters of an energy, learnt by an objective. Give it data, then [`start`](Learning::start) it.
    ///
    /// ```
    /// use minvel::energy::{Gaussian, Mlp};
    /// use minvel::flow::Langevin;
    /// use minvel::network::{Activation, Features};
    /// use minvel::objective::MinimumVelocity;
    /// use minvel::train::{Context, Learner};
    /// let (law, model) = (Gaussian::standard(2), Mlp::new("e", Features::of_point(2), &[8], Activation::Silu));
    /// let objective = MinimumVelocity::new(Langevin, 1e-3);
    /// let mut learner = Learner::of(&model, &objective).fresh(&law).batch(64).seed(1).start(&Context::bare())?;
    /// let training = learner.train("energy", 20, &Context::bare())?;
    /// assert!(training.looks.iter().all(|look| look.loss[0].is_finite()));
    /// # Ok::<(), minvel::Error>(())
    /// ```
    pub fn of(energy: &'a dyn Energy, objective: &'a dyn Objective) -> Learning<'a> {
        let optimiser = Optimiser::adam(1e-3);
        Learning { energy, objective, optimiser, data: Data::None, batch: 256, replicas: 1, seed: 1 }
    }
}

impl<'a, T: Scalar> Learner<'a, T> {
    /// Of a step of one's own; parameters get their start values, and `replicas` are learnt side by side.
    pub fn new(
        graph: &Graph,
        step: &Step,
        parameters: &[Parameter],
        (seed, replicas): (u64, usize),
        context: &Context,
    ) -> Result<Self, Error> {
        let mut state = State::new(replicas);
        parameters.iter().for_each(|p| p.start(&mut state, seed));
        Self::from_state(graph, step, state, seed, context)
    }

    /// Of a step of one's own and variables that have their start values, but for those of the optimisers.
    pub fn from_state(
        graph: &Graph,
        step: &Step,
        mut state: State<T>,
        seed: u64,
        context: &Context,
    ) -> Result<Self, Error> {
        let options = context.options(state.replicas());
        let program = graph.try_compile::<T>(&step.outputs, &step.all_updates(), &options)?;
        step.initialise(&mut state);
        Ok(Learner { program, state, inputs: vec![], bytes: vec![], seed, done: 0 })
    }

    /// With values of an input.
    pub fn input(mut self, name: &'a str, values: impl Into<Cow<'a, [T]>>) -> Self {
        self.inputs.push((name, values.into()));
        self
    }

    /// With values of an input of bytes.
    pub fn bytes(mut self, name: &'a str, values: &'a [u8]) -> Self {
        self.bytes.push((name, values));
        self
    }

    /// Makes steps until so many are made in all: watched, stopped and resumed by the context under this name.
    pub fn train(&mut self, name: &str, until: u32, context: &Context) -> Result<Training, Error> {
        self.run(&Trainer { from: self.done, ..Trainer::new(name, until, self.seed) }, context)
    }

    /// Makes the steps of a trainer.
    pub fn run(&mut self, trainer: &Trainer, context: &Context) -> Result<Training, Error> {
        let inputs: Vec<(&str, &[T])> = self.inputs.iter().map(|(name, values)| (*name, &**values)).collect();
        let mut program = self.program.loaded(&inputs).with_bytes(&self.bytes);
        let training = trainer.run_loaded(&mut program, &mut self.state, context)?;
        self.done = trainer.steps;
        Ok(training)
    }

    /// One more step; the loss of each replica.
    pub fn step(&mut self) -> Result<Vec<f64>, Error> {
        let inputs: Vec<(&str, &[T])> = self.inputs.iter().map(|(name, values)| (*name, &**values)).collect();
        let mut program = self.program.loaded(&inputs).with_bytes(&self.bytes);
        program.try_run_steps(&mut self.state, self.seed, self.done..self.done + 1)?;
        let loss = program.try_output(0)?.iter().map(|x| x.to_f64()).collect();
        self.done += 1;
        Ok(loss)
    }

    /// Steps made.
    pub fn steps(&self) -> u32 {
        self.done
    }

    /// All variables: parameters, followers, and those of the optimiser.
    pub fn state(&self) -> &State<T> {
        &self.state
    }

    /// The variables, to be changed.
    pub fn state_mut(&mut self) -> &mut State<T> {
        &mut self.state
    }

    /// The variables alone.
    pub fn into_state(self) -> State<T> {
        self.state
    }

    /// Writes variables and steps made, wholly or not at all.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        self.state.fetch()?;
        Checkpoint::new(self.state.clone(), self.done, PURPOSE, &()).write(path)
    }

    /// Goes on where [`save`](Self::save) was: the next steps give the bits of a learner that never stopped.
    pub fn restore(&mut self, path: &Path) -> Result<(), Error> {
        let kept = Checkpoint::<T>::read(path)?;
        kept.belongs_to(path, PURPOSE, &self.state)?;
        (self.done, self.state) = (kept.step, kept.state);
        Ok(())
    }
}

const PURPOSE: &str = "a learner";

/// Points of a step, drawn in a graph, of so many rows.
pub type Drawing<'a> = dyn for<'g> Fn(&'g Graph, usize) -> Expr<'g> + 'a;

/// Where the points of a step come from.
enum Data<'a> {
    None,
    Fresh(&'a dyn Energy),
    Points(&'a [f64], usize),
    Drawn(Box<Drawing<'a>>),
}

/// What a learner is made of.
pub struct Learning<'a> {
    energy: &'a dyn Energy,
    objective: &'a dyn Objective,
    optimiser: Optimiser,
    data: Data<'a>,
    batch: usize,
    replicas: usize,
    seed: u64,
}

impl<'a> Learning<'a> {
    /// Fresh points of a law that can be sampled, at every step.
    pub fn fresh(self, law: &'a dyn Energy) -> Self {
        Learning { data: Data::Fresh(law), ..self }
    }

    /// A fixed set of points, row-major with `ambient` numbers each, in an order that is shuffled for each epoch.
    pub fn points(self, points: &'a [f64], ambient: usize) -> Self {
        Learning { data: Data::Points(points, ambient), ..self }
    }

    /// Points drawn by an expression.
    pub fn drawn(self, draw: impl for<'g> Fn(&'g Graph, usize) -> Expr<'g> + 'a) -> Self {
        Learning { data: Data::Drawn(Box::new(draw)), ..self }
    }

    /// Points of a step. Default: 256.
    pub fn batch(self, batch: usize) -> Self {
        Learning { batch, ..self }
    }

    /// Default: Adam with rate 10⁻³.
    pub fn optimiser(self, optimiser: Optimiser) -> Self {
        Learning { optimiser, ..self }
    }

    /// Models that are learnt side by side, from start values and noise of their own. Default: 1.
    pub fn replicas(self, replicas: usize) -> Self {
        Learning { replicas, ..self }
    }

    /// Of start values, data and noise. Default: 1.
    pub fn seed(self, seed: u64) -> Self {
        Learning { seed, ..self }
    }

    /// Compiles the step and gives all variables their start values.
    pub fn start(self, context: &Context) -> Result<Learner<'static>, Error> {
        let graph = Graph::new();
        let points = self.rows(&graph)?;
        let noise = Noise::drawn(Law::Gaussian, stream::NOISE);
        let energy = |x| self.energy.energy(x);
        let loss = self.objective.loss(&energy, points.into(), noise) / self.objective.scale();
        let step = Step::of_energy(self.energy, loss, &self.optimiser);
        let parameters = [self.energy.parameters(), self.energy.followers()].concat();
        let learner = Learner::new(&graph, &step, &parameters, (self.seed, self.replicas), context)?;
        Ok(match self.data {
            Data::Points(points, _) => learner.input("data", points.iter().map(|x| *x as f32).collect::<Vec<f32>>()),
            _ => learner,
        })
    }

    /// The points of a step.
    fn rows<'g>(&self, graph: &'g Graph) -> Result<Expr<'g>, Error> {
        match &self.data {
            Data::None => Err(Error::config("a learner needs data: give it points, a law, or an expression")),
            Data::Fresh(law) => law
                .sample(graph, self.batch, stream::DATA)
                .ok_or_else(|| Error::config("this law cannot be sampled: give the learner points of it")),
            Data::Points(points, ambient) => {
                let count = points.len() / ambient;
                if count == 0 {
                    return Err(Error::config("a learner needs at least one point"));
                }
                let order = graph.random_rows(Draw::Epoch(count as u32), stream::DATA, self.batch, []);
                Ok(graph.input("data", [count, *ambient]).gather(order))
            }
            Data::Drawn(draw) => Ok(draw(graph, self.batch)),
        }
    }
}
