//! Annealed importance sampling: log Z of an energy, from below and from above.
//!
//! **Statement.** z_0 ~ e^{−E_0}; for k = 1 … K: log w ← log w − (β_k − β_{k−1})V(z), V = E_1 − E_0, then moves that leave
//! e^{−E_0−β_kV} as it is. E w = Z_1/Z_0. From points of the target with the β reversed, E w = Z_0/Z_1.
//! **Source.** docs/math §4.6; neal2001ais; grosse2015sandwiching (both directions). **Conventions.** E_0 is the normalised
//! energy of the manifold's base law (normal or uniform), so Z_0 = 1; for a posterior V = −log p(x|z). Weights are taken
//! before the move. Rows are chains; ε is shared by the chains of a replica and keeps adapting. V and ∂V are kept between
//! temperatures, so that each costs one evaluation for each proposal.
//! **Error.** w is unbiased, so E log(mean w) ≤ log Z forward and −E log(mean w) ≥ log Z in reverse: a bracket.
//! **Checked by** tests/theory/annealed.rs, tests/theory/sampler_facts.rs (F47–F50).

use super::chains::STREAM;
use super::{Adaptation, AnnealingSchedule, ChainDivergence, Hamiltonian, Metropolis, Sampler, Spot};
use crate::Error;
use crate::energy::Energy;
use crate::estimate::{Estimate, log_mean_exp, weighted_sample_size};
use crate::flow::EnergyOf;
use crate::manifold::Manifold;
use minvel_engine::math::Real;
use minvel_engine::{Clock, DeviceError, Expr, Graph, Options, Program, State};
use std::sync::Arc;

/// How to go from the base law to a target.
#[derive(Clone, Debug)]
pub struct Annealing {
    /// A sampler with a Metropolis test.
    pub sampler: Arc<dyn Sampler>,
    /// Its steps at each temperature.
    pub moves: usize,
    /// The temperatures.
    pub schedule: AnnealingSchedule,
    /// Whether to go from the target to the base law.
    pub reversed: bool,
    /// ε to start with.
    pub step: f64,
    /// How ε follows the acceptance.
    pub adaptation: Adaptation,
}

impl Annealing {
    /// Trajectories of 11 leapfrog steps at each of 1000 temperatures; ε from 0.01, in [10⁻⁴, 0.5], for an acceptance of
    /// 0.65.
    pub fn hamiltonian(manifold: Arc<dyn Manifold>) -> Self {
        Annealing {
            sampler: Arc::new(Hamiltonian::on(manifold, Hamiltonian::LEAPFROGS)),
            moves: 1,
            schedule: AnnealingSchedule::Sigmoid { count: 1000 },
            reversed: false,
            step: 0.01,
            adaptation: Adaptation::Multiplicative { target: 0.65, bounds: (1e-4, 0.5) },
        }
    }

    /// Five corrected Langevin steps at each of 1000 temperatures; ε from 0.02, in [10⁻⁴, 0.2], for an acceptance of 0.65.
    pub fn langevin(manifold: Arc<dyn Manifold>) -> Self {
        Annealing {
            sampler: Arc::new(Metropolis::on(manifold.clone())),
            moves: 5,
            step: 0.02,
            adaptation: Adaptation::Multiplicative { target: 0.65, bounds: (1e-4, 0.2) },
            ..Self::hamiltonian(manifold)
        }
    }

    /// The same way back.
    pub fn reversed(self) -> Self {
        Annealing { reversed: !self.reversed, ..self }
    }

    /// β in the order of this direction.
    pub fn betas(&self) -> Vec<f64> {
        let mut betas = self.schedule.betas();
        if self.reversed {
            betas.reverse();
        }
        betas
    }

    /// The program for V = E_1 − E_0 given in the graph (it may have inputs, a row for each chain).
    pub fn compile<'g, T: Real>(
        &self,
        graph: &'g Graph,
        extra: EnergyOf<'_, 'g>,
        chains: usize,
        options: &Options,
    ) -> Result<Annealed<T>, DeviceError> {
        let manifold = self.sampler.manifold();
        let betas = self.betas();
        let rises: Vec<f64> = (0..betas.len()).map(|k| if k == 0 { 0.0 } else { betas[k] - betas[k - 1] }).collect();
        let now = |table: &[f64]| graph.table(table, [table.len()]).gather(graph.step());
        let (beta, rise) = (now(&betas), now(&rises));
        // V and ∂V do not depend on β: they are kept from one temperature to the next, and E_0 costs little.
        let tempered = |x: Expr<'g>, (v, slope): (Expr<'g>, Expr<'g>)| {
            let base = Spot::of(&|x| manifold.base_energy(x), x);
            Spot {
                energy: base.energy + beta * v,
                gradient: base.gradient + beta.expand(-1) * slope,
                part: Some((v, slope)),
                ..base
            }
        };
        let own = |x: Expr<'g>| {
            let own = Spot::of(extra, x);
            (own.energy, own.gradient)
        };
        let target = |x: Expr<'g>| tempered(x, own(x));

        let at = graph.variable_rows("annealed.at", chains, [manifold.ambient()]);
        let kept = (
            graph.variable_rows("annealed.extra", chains, []),
            graph.variable_rows("annealed.extra_gradient", chains, [manifold.ambient()]),
        );
        let log_weight = graph.variable_rows("annealed.log_weight", chains, []);
        let first = graph.variable_rows("annealed.first", chains, []);
        let pace = (graph.variable("annealed.step", []), graph.variable("annealed.running", []));

        let weighed = log_weight - rise * kept.0;
        let (mut spot, mut accepted) = (tempered(at, kept), graph.scalar(0.0));
        for k in 0..self.moves {
            let moved = self.sampler.transition(&target, spot, pace.0, STREAM + k as u32);
            let acceptance = moved.acceptance.expect("annealing needs a sampler that leaves each law as it is");
            (spot, accepted) = (moved.to, accepted + acceptance.mean_rows());
        }
        let (step, running) = self.adaptation.next(pace, accepted * (1.0 / self.moves as f64), graph.step());
        let watched = ChainDivergence::watch(first, Spot { energy: spot.energy + weighed, ..spot }, graph.step());
        let (v, slope) = spot.part.expect("samplers pass on what the target gives");
        let start = own(at);
        let updates = [
            (at, spot.at),
            (kept.0, v),
            (kept.1, slope),
            (log_weight, weighed),
            (pace.0, step),
            (pace.1, running),
            (first, watched),
        ];
        Ok(Annealed {
            annealing: self.clone(),
            chains,
            base: graph.try_compile(&[manifold.sample_base(graph, chains, STREAM)], &[], options)?,
            arrive: graph.try_compile(&[], &[(kept.0, start.0), (kept.1, start.1)], options)?,
            advance: graph.try_compile(&[], &updates, options)?,
        })
    }

    /// Log weights for log Z of an energy; in reverse from `points` of its law.
    pub fn run<T: Real>(
        &self,
        energy: &dyn Energy,
        chains: usize,
        options: &Options,
        parameters: &State<T>,
        points: Option<&[T]>,
        seed: u64,
    ) -> Result<LogWeights, Error> {
        let graph = Graph::new();
        let manifold = self.sampler.manifold();
        let extra = |x| energy.energy(x) - manifold.base_energy(x);
        self.compile(&graph, &extra, chains, options)?.run(&mut parameters.clone(), &[], points, seed)
    }
}

/// A compiled annealing.
pub struct Annealed<T: Real> {
    annealing: Annealing,
    chains: usize,
    base: Program<T>,
    arrive: Program<T>,
    advance: Program<T>,
}

impl<T: Real> Annealed<T> {
    /// All temperatures, from given points of the law it starts from; where there are none, from fresh ones of the base law.
    pub fn run(
        &mut self,
        state: &mut State<T>,
        inputs: &[(&str, &[T])],
        points: Option<&[T]>,
        seed: u64,
    ) -> Result<LogWeights, Error> {
        let Annealing { reversed, step, adaptation, ref sampler, ref schedule, .. } = self.annealing;
        assert!(!reversed || points.is_some(), "annealing: the way back starts from points of the target");
        let (rows, m) = (self.chains, sampler.manifold().ambient());
        if points.is_none() {
            self.base.try_run(state, &[], Clock { seed, step: 0 })?;
        }
        state.set("annealed.at", points.map_or_else(|| self.base.try_output(0), Ok)?, rows * m);
        state.set("annealed.extra", &vec![T::ZERO; rows], rows);
        state.set("annealed.extra_gradient", &vec![T::ZERO; rows * m], rows * m);
        state.set("annealed.log_weight", &vec![T::ZERO; rows], rows);
        state.set("annealed.first", &vec![-T::ONE; rows], rows);
        state.set("annealed.step", &[T::from_f64(step)], 1);
        state.set("annealed.running", &[T::from_f64(adaptation.target())], 1);
        self.arrive.try_run(state, inputs, Clock { seed, step: 0 })?;
        self.advance.try_run_steps(state, inputs, seed, 1..schedule.betas().len() as u32)?;
        state.fetch()?;
        ChainDivergence::noted(state, "annealed.first", rows)?;
        let numbers = |name| state.get(name).expect("set above").iter().map(|x| x.to_f64()).collect();
        Ok(LogWeights {
            values: numbers("annealed.log_weight"),
            replicas: state.replicas(),
            reversed,
            acceptance: numbers("annealed.running"),
            steps: numbers("annealed.step"),
        })
    }
}

/// Logarithms of importance weights, one for each chain.
#[derive(Clone, Debug, PartialEq)]
pub struct LogWeights {
    /// log w, replica after replica.
    pub values: Vec<f64>,
    /// Replicas.
    pub replicas: usize,
    /// Whether E w is Z_0/Z_1.
    pub reversed: bool,
    /// The running acceptance of each replica at the end.
    pub acceptance: Vec<f64>,
    /// ε of each replica at the end.
    pub steps: Vec<f64>,
}

impl LogWeights {
    /// log Z_1/Z_0 from all chains of all replicas, its error to first order.
    pub fn log_partition(&self) -> Estimate {
        self.towards_target(log_mean_exp(&self.values))
    }

    /// log Z_1/Z_0 from each group of so many successive chains (the chains of one image, of one replica).
    pub fn log_partitions(&self, group: usize) -> Vec<Estimate> {
        assert!(self.values.len().is_multiple_of(group), "{} chains are not groups of {group}", self.values.len());
        self.values.chunks(group).map(|chains| self.towards_target(log_mean_exp(chains))).collect()
    }

    /// Chains that all chains are worth, (Σw)²/Σw².
    pub fn effective(&self) -> f64 {
        weighted_sample_size(&self.values)
    }

    fn towards_target(&self, estimate: Estimate) -> Estimate {
        if self.reversed { -estimate } else { estimate }
    }
}
