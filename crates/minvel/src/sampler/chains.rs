//! Chains: a sampler's step compiled once, and repeated: warm-up, thinning, draws.
//!
//! **Statement.** (state, clock) → state: x_{t+1} ~ K_ε(x_t, ·), with ε adapted while t ≤ warm-up.
//! **Conventions.** The state is ordinary [`State`]: `chain.at`, `chain.energy`, `chain.gradient`, `chain.first` (rows),
//! `chain.step`, `chain.running` (one a replica), beside the parameters of the energy. Step 0 draws the start from the
//! base law, steps 1, 2, … move. One program serves warm-up and draws.
//! **Checked by** tests/theory/sampler_laws.rs.

use super::{Adaptation, ChainDivergence, Draws, Sampler, Spot};
use crate::Error;
use crate::energy::Energy;
use crate::flow::EnergyOf;
use crate::train::Context;
use minvel_engine::math::Real;
use minvel_engine::{Clock, DeviceError, Graph, Options, Program, State};
use std::ops::Range;

/// First of the streams that samplers use (they and their substreams); an energy may use those below.
pub(super) const STREAM: u32 = 1 << 20;
/// Steps between two looks whether to stop.
const LOOK: u32 = 16;

/// How many chains, how long, and with which step.
#[derive(Clone, Debug, PartialEq)]
pub struct Chains {
    /// Chains of each replica.
    pub count: usize,
    /// ε to start with.
    pub step: f64,
    /// How ε changes during the warm-up.
    pub adaptation: Adaptation,
    /// Steps before the first draw.
    pub warm_up: u32,
    /// Draws kept of each chain.
    pub draws: u32,
    /// Steps for each draw.
    pub thin: u32,
    /// Independent replicas (of the model, of ε, of the noise).
    pub replicas: usize,
    /// Threads, 0 for all.
    pub threads: usize,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Default for Chains {
    fn default() -> Self {
        Chains {
            count: 64,
            step: 0.1,
            adaptation: Adaptation::Fixed,
            warm_up: 1000,
            draws: 1000,
            thin: 1,
            replicas: 1,
            threads: 0,
            seed: 0,
        }
    }
}

impl Chains {
    /// The programs of a sampler for an energy of the graph (which may have inputs of its own).
    pub fn compile<'g, T: Real>(
        &self,
        graph: &'g Graph,
        sampler: &dyn Sampler,
        energy: EnergyOf<'_, 'g>,
    ) -> Result<Walk<T>, DeviceError> {
        assert!(self.count > 0 && self.draws > 0 && self.thin > 0, "chains: {self:?} draws no samples");
        let options = Options { replicas: self.replicas, threads: self.threads, ..Options::default() };
        let (rows, m) = (self.count, sampler.manifold().ambient());
        let spot = Spot {
            at: graph.variable_rows("chain.at", rows, [m]),
            energy: graph.variable_rows("chain.energy", rows, []),
            gradient: graph.variable_rows("chain.gradient", rows, [m]),
            part: None,
        };
        let first = graph.variable_rows("chain.first", rows, []);
        let pace = (graph.variable("chain.step", []), graph.variable("chain.running", []));
        let adapting = graph.input("chain.adapting", []);

        let here = Spot::of(energy, spot.at);
        let base = sampler.manifold().sample_base(graph, rows, STREAM);
        let moved = sampler.transition(&|x| Spot::of(energy, x), spot, pace.0, STREAM);
        let mean = moved.acceptance.map(|a| a.mean_rows());
        let mut updates =
            vec![(spot.at, moved.to.at), (spot.energy, moved.to.energy), (spot.gradient, moved.to.gradient)];
        updates.push((first, ChainDivergence::watch(first, moved.to, graph.step())));
        if let Some(mean) = mean.filter(|_| self.adaptation != Adaptation::Fixed) {
            let (step, running) = self.adaptation.next(pace, mean, graph.step());
            updates.push((pace.0, adapting.select(step, pace.0)));
            updates.push((pace.1, running));
        }
        let noted = ChainDivergence::watch(first.like(-1.0), here, graph.step());
        let arrival = [(spot.energy, here.energy), (spot.gradient, here.gradient), (first, noted)];
        Ok(Walk {
            chains: self.clone(),
            ambient: m,
            tested: mean.is_some(),
            base: graph.try_compile(&[base], &[], &options)?,
            arrive: graph.try_compile(&[], &arrival, &options)?,
            advance: graph.try_compile(mean.as_slice(), &updates, &options)?,
        })
    }

    /// Draws from the law of an energy whose parameters, if any, are in `parameters` (as many replicas as here).
    pub fn run<T: Real>(
        &self,
        sampler: &dyn Sampler,
        energy: &dyn Energy,
        parameters: &State<T>,
    ) -> Result<Draws, Error> {
        let graph = Graph::new();
        let mut walk = self.compile(&graph, sampler, &|x| energy.energy(x))?;
        walk.run(&mut parameters.clone(), &[], None)
    }
}

/// Compiled chains: pure steps on a [`State`].
pub struct Walk<T: Real> {
    chains: Chains,
    ambient: usize,
    tested: bool,
    base: Program<T>,
    arrive: Program<T>,
    advance: Program<T>,
}

impl<T: Real> Walk<T> {
    /// Puts the chains at given points (`[chains, m]`, or of all replicas), else at points of the base law, with the step
    /// size to start with.
    pub fn start(
        &mut self,
        state: &mut State<T>,
        inputs: &[(&str, &[T])],
        points: Option<&[T]>,
    ) -> Result<(), DeviceError> {
        let clock = Clock { seed: self.chains.seed, step: 0 };
        let (rows, m) = (self.chains.count, self.ambient);
        if points.is_none() {
            self.base.try_run(state, &[], clock)?;
        }
        state.set("chain.at", points.map_or_else(|| self.base.try_output(0), Ok)?, rows * m);
        state.set("chain.energy", &vec![T::ZERO; rows], rows);
        state.set("chain.gradient", &vec![T::ZERO; rows * m], rows * m);
        state.set("chain.first", &vec![-T::ONE; rows], rows);
        state.set("chain.step", &[T::from_f64(self.chains.step)], 1);
        state.set("chain.running", &[T::from_f64(self.chains.adaptation.target())], 1);
        self.arrive.try_run(state, inputs, clock)
    }

    /// Makes steps (numbers from 1 on, each only once), adapting ε or not.
    pub fn advance(
        &mut self,
        state: &mut State<T>,
        inputs: &[(&str, &[T])],
        steps: Range<u32>,
        adapting: bool,
    ) -> Result<(), Error> {
        let flag = [if adapting { T::ONE } else { T::ZERO }];
        let mut all = inputs.to_vec();
        all.push(("chain.adapting", &flag));
        self.advance.try_run_steps(state, &all, self.chains.seed, steps)?;
        ChainDivergence::noted(state, "chain.first", self.chains.count)
    }

    /// The same, some steps at a time, until it is asked to stop.
    fn stride(
        &mut self,
        state: &mut State<T>,
        inputs: &[(&str, &[T])],
        steps: Range<u32>,
        adapting: bool,
        context: &Context,
    ) -> Result<(), Error> {
        for first in steps.clone().step_by(LOOK as usize) {
            context.go_on()?;
            let part = first..steps.end.min(first + LOOK);
            self.advance(state, inputs, part.clone(), adapting)?;
            context.worked(part.len());
        }
        Ok(())
    }

    /// The acceptance of the last step, a mean for each replica; `None` where nothing is tested.
    pub fn acceptance(&self) -> Result<Option<&[T]>, DeviceError> {
        self.tested.then(|| self.advance.try_output(0)).transpose()
    }

    /// Start, warm-up, draws.
    pub fn run(&mut self, state: &mut State<T>, inputs: &[(&str, &[T])], points: Option<&[T]>) -> Result<Draws, Error> {
        self.watched(state, inputs, points, &Context::bare())
    }

    /// The same, watched and stopped by a context.
    pub fn watched(
        &mut self,
        state: &mut State<T>,
        inputs: &[(&str, &[T])],
        points: Option<&[T]>,
        context: &Context,
    ) -> Result<Draws, Error> {
        let steps = self.chains.warm_up as usize + self.chains.draws as usize * self.chains.thin as usize;
        context.stage("chains", steps, "steps", || self.walk(state, inputs, points, context))
    }

    fn walk(
        &mut self,
        state: &mut State<T>,
        inputs: &[(&str, &[T])],
        points: Option<&[T]>,
        context: &Context,
    ) -> Result<Draws, Error> {
        let Chains { warm_up, draws, thin, replicas, count, .. } = self.chains;
        let shape = [draws as usize, replicas, count, self.ambient];
        let mut kept = Vec::with_capacity(shape.iter().product());
        let mut acceptance = vec![0.0; if self.tested { replicas } else { 0 }];
        self.start(state, inputs, points)?;
        self.stride(state, inputs, 1..warm_up + 1, true, context)?;
        for draw in 0..draws {
            let before = warm_up + draw * thin;
            self.stride(state, inputs, before + 1..before + thin + 1, false, context)?;
            let at = state.try_get("chain.at")?.expect("set at the start");
            kept.extend(at.iter().map(|x| x.to_f64()));
            for (sum, last) in acceptance.iter_mut().zip(self.acceptance()?.unwrap_or_default()) {
                *sum += last.to_f64() / f64::from(draws);
            }
        }
        let steps = state.try_get("chain.step")?.expect("set at the start").iter().map(|x| x.to_f64()).collect();
        Ok(Draws { points: kept, shape, acceptance, steps })
    }
}
