//! Energies learnt by likelihood against draws, or by the speed of transport, birth and death; stopped by validation rows.
//!
//! **Statement.** Likelihood: min E_p f + log E_m[(β/m)e^{−f}], β the base (kernels a or wide law b), m draws of both. Speed:
//! min ½E_p[2H₃(r − r̄)] + c·J(E) + κ·½E_b[2H₃(r − r̄)], r = E + log p̂: p̂ the kernels of the other folds at rows, all kernels at
//! draws of b, where nothing else holds E. c is half the squared radius of a ball that holds 12n rows at the typical density.
//! **Source.** wang2020mvl; docs/math §2.14. **Conventions.** The network kept is that of the look with the best validation
//! likelihood, Z by draws of m; beside it those that parts of the validation rows would have kept. **Error.** Log Ê e^{−f} of a batch is too small by about its relative variance/2, the same way in all
//! steps. **Checked by** tests/densities/experts.rs.

use super::correction::{Curve, Learnt, filled_up, one_replica, room_for, silence};
use super::expert::{Base, network};
use super::settings::{FitSettings, Goal, NetworkSettings};
use super::wide::Pool;
use crate::density::Sample;
use crate::energy::{Energy, Mlp};
use crate::flow::{DensityEstimate, FlowForm, Law, Noise, Particles, RiemannianLangevin};
use crate::objective::{MinimumVelocity, Objective, TransportReaction};
use crate::train::{Context, Fingerprint, Learner, Step, Trainer, lists};
use crate::{Divergence, Error, Manifold, energy, special, stream};
use minvel_engine::optim::{Optimiser, RateSchedule};
use minvel_engine::{Clock, Draw, Expr, Graph, Program, State};
use std::sync::Arc;

/// An energy that is to be learnt.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub base: Base,
    pub goal: Goal,
    pub network: NetworkSettings,
    pub seeds: usize,
    pub steps: u32,
    pub batch: usize,
    pub rate: f64,
    /// c.
    pub transport: f64,
    /// κ.
    pub off: f64,
}

/// Looks at the validation rows.
const LOOKS: u32 = 12;
/// A training ends where its best network is so many nats behind the kernels after so many looks.
const HOPELESS: [(u32, f64); 2] = [(3, 1.0), (6, 0.3)];
/// And where so many looks in a row found none better: its networks learn their rows by heart.
const PATIENCE: u32 = 6;
/// δ of Huber's function.
const BOUND: f64 = 3.0;
/// Draws of a step, for each of its rows.
const DRAWS: usize = 2;
/// Draws and rows of a look at most.
pub(super) const JUDGED: usize = 20_000;
/// ε of the flow, as a part of c.
const STEP: f64 = 0.1;
/// Neighbours in the ball of c, for each dimension.
const NEIGHBOURS: f64 = 12.0;

/// c: half the squared radius of a ball that holds 12n of so many rows where the density is e^{−nll}.
pub(super) fn squared_width(n: usize, rows: usize, nll: f64) -> f64 {
    let n = n as f64;
    // log volume of the unit ball
    let ball = 0.5 * n * std::f64::consts::PI.ln() - special::log_gamma(0.5 * n + 1.0);
    0.5 * ((2.0 / n) * ((NEIGHBOURS * n / rows as f64).ln() + nll - ball)).exp()
}

/// Rows to learn from: a row of weight w is there ⌈w⌉ times, with equal parts of it.
pub(super) struct Seen {
    points: Vec<f64>,
    /// log p̂ by the kernels of the other folds.
    held_out: Vec<f64>,
    /// What each counts; none where all are equal.
    weights: Vec<f64>,
}

impl Seen {
    pub fn of(sample: &Sample, held_out: &[f64]) -> Self {
        let m = sample.points().len() / held_out.len();
        let turns = |i: usize| (sample.weight(i) - 1e-9).ceil().max(1.0) as usize;
        let places: Vec<usize> = (0..held_out.len()).flat_map(|i| std::iter::repeat_n(i, turns(i))).collect();
        let equal = sample.weights().is_empty();
        Seen {
            points: places.iter().flat_map(|&i| &sample.points()[i * m..][..m]).copied().collect(),
            held_out: places.iter().map(|&i| held_out[i]).collect(),
            weights: if equal { vec![] } else { places.iter().map(|&i| sample.weight(i) / turns(i) as f64).collect() },
        }
    }
}

/// How an energy is learnt.
pub(super) struct Lesson<'a> {
    pub manifold: &'a Arc<dyn Manifold>,
    pub settings: &'a FitSettings,
    pub plan: &'a Plan,
    pub pool: &'a Pool,
    /// How far the base is behind the kernels on the validation rows, in nats.
    pub behind: f64,
}

impl Lesson<'_> {
    fn log_weights(&self) -> Vec<f64> {
        self.pool.log_weights(match self.plan.base {
            Base::Anchor => &self.pool.log_anchor,
            Base::Wide => &self.pool.log_wide,
        })
    }

    /// E_p f + log E_m[(β/m)e^{−f}].
    fn likelihood<'g>(network: &Mlp, rows: Particles<'g>, draws: Expr<'g>, weights: Expr<'g>) -> Expr<'g> {
        let count = draws.shape().rows.expect("draws are rows") as f64;
        rows.mean(network.energy(rows.at)) + (weights - network.energy(draws)).logsumexp_rows() - count.ln()
    }

    /// The speed of the flow at rows with log p̂, and the residual at draws of the wide law with log a.
    fn speed<'g>(&self, network: &Mlp, rows: Particles<'g>, held_out: Expr<'g>, off: [Expr<'g>; 2]) -> Expr<'g> {
        let (manifold, c) = (self.manifold, self.plan.transport);
        let flow = RiemannianLangevin { manifold: manifold.clone(), form: FlowForm::Geodesic };
        let transport = MinimumVelocity { adaptive: true, ..MinimumVelocity::new(flow, STEP * c) };
        let objective =
            TransportReaction { bound: BOUND, ..TransportReaction::new(transport, 1.0 / c, DensityEstimate::Given) };
        let energy = |x: Expr<'g>| network.energy(x) + manifold.base_energy(x);
        let on = objective.loss(&energy, rows.with_log_density(held_out), Noise::drawn(Law::Gaussian, stream::NOISE));
        let centre = rows.mean(energy(rows.at) + held_out);
        let residual = energy(off[0]) + off[1] - centre;
        0.5 * (c * on + self.plan.off * objective.penalty(residual).mean_rows())
    }

    /// Learns from rows, looks at validation rows, of all of which and of each of these parts the best look is kept.
    pub fn learn(
        &self,
        seen: &Seen,
        validation: &Sample,
        parts: &[Vec<usize>],
        context: &Context,
    ) -> Result<Learnt, Error> {
        let Plan { goal, seeds, steps, rate, .. } = *self.plan;
        let (m, seed) = (self.manifold.ambient(), self.settings.seed);
        let network = network(self.manifold, &self.plan.network, seed);
        let single = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        let (count, many) = (seen.held_out.len(), self.pool.log_m.len());
        let g = Graph::new();
        let batch = self.plan.batch.min(count);
        let order = g.random_rows(Draw::Epoch(count as u32), stream::DATA, batch, []);
        let points = g.input("points", [count, m]).gather(order);
        let rows = match seen.weights.is_empty() {
            true => Particles::from(points),
            false => {
                let weights = g.input("counts", [count]).gather(order);
                Particles::weighted(points, weights / weights.sum_rows())
            }
        };
        let loss = if goal == Goal::Likelihood {
            let some = g.random_rows(Draw::Integer(many as u32), stream::DRAWS, DRAWS * batch, []);
            let draws = g.input("draws", [many, m]).gather(some);
            Self::likelihood(&network, rows, draws, g.input("weights", [many]).gather(some))
        } else {
            let wide = self.pool.wide;
            let some = g.random_rows(Draw::Integer(wide as u32), stream::DRAWS, batch, []);
            let off = [g.input("draws", [wide, m]).gather(some), g.input("anchor", [wide]).gather(some)];
            self.speed(&network, rows, g.input("held_out", [count]).gather(order), off)
        };
        let optimiser = Optimiser { schedule: RateSchedule::Cosine { steps, floor: 0.0 }, ..Optimiser::adam(rate) };
        let step = Step::of_energy(&network, loss, &optimiser);
        let mut state = State::new(seeds);
        energy::initialise(&network, &mut state, seed);
        silence(&network, &mut state);
        let mut learner = Learner::from_state(&g, &step, state, seed, context)?.input("points", single(&seen.points));
        if !seen.weights.is_empty() {
            learner = learner.input("counts", single(&seen.weights));
        }
        learner = match goal {
            Goal::Likelihood => {
                learner.input("draws", single(&self.pool.points)).input("weights", single(&self.log_weights()))
            }
            _ => {
                let first = many - self.pool.wide;
                let (off, anchor) = (&self.pool.points[first * m..], &self.pool.log_anchor[first..]);
                learner
                    .input("draws", single(off))
                    .input("anchor", single(anchor))
                    .input("held_out", single(&seen.held_out))
            }
        };

        let mut judge = Judge::new(self, &network, validation, parts, context)?;
        let start = judge.scores("look-0", learner.state_mut(), context)?;
        let first = |scores: &Vec<f64>| (0..seeds).map(|r| (scores[r], 0, one_replica(learner.state(), r))).collect();
        let mut best: Vec<Vec<(f64, u32, State<f32>)>> = start.iter().map(first).collect();
        let (nothing, start) = (vec![f64::NAN; seeds], start[0].clone());
        let mut curves = vec![Curve { step: 0, train: nothing, validation: start.clone(), score: start }];
        let mut divergences: Vec<Divergence> = vec![];
        let looks = LOOKS.min(steps);
        let ends: Vec<u32> = (0..=looks).map(|k| (steps as u64 * k as u64 / looks as u64) as u32).collect();
        for (look, ends) in ends.windows(2).enumerate() {
            let name = format!("learning-{look}");
            let block = (ends[1] - ends[0]).div_ceil(5).min(100);
            let trainer = Trainer { name, from: ends[0], steps: ends[1], block, seed, loss: 0 };
            let training = learner.run(&trainer, context)?;
            for divergence in training.divergences {
                if divergences.iter().all(|known| known.replica != divergence.replica) {
                    divergences.push(divergence);
                }
            }
            let scores = judge.scores(&format!("look-{}", look + 1), learner.state_mut(), context)?;
            for (best, scores) in best.iter_mut().zip(&scores) {
                for (r, best) in best.iter_mut().enumerate() {
                    if scores[r] < best.0 {
                        *best = (scores[r], ends[1], one_replica(learner.state(), r));
                    }
                }
            }
            let last = training.looks.last().map(|l| l.loss.clone()).unwrap_or_default();
            curves.push(Curve { step: ends[1], train: last, validation: scores[0].clone(), score: scores[0].clone() });
            let least = best[0].iter().map(|b| b.0).fold(f64::INFINITY, f64::min);
            let newest = best.iter().flatten().map(|b| b.1).max().expect("there is a network");
            if ends[1] - newest >= PATIENCE * (steps / looks) {
                break;
            }
            if HOPELESS.iter().any(|(looks, nats)| look as u32 + 1 == *looks && least + self.behind > *nats) {
                break;
            }
        }
        let best_step = best[0].iter().map(|b| b.1).collect();
        let networks = |best: Vec<(f64, u32, State<f32>)>| best.into_iter().map(|b| b.2).collect();
        let mut best = best.into_iter().map(networks);
        let whole = best.next().expect("all rows are judges");
        Ok(Learnt { best: whole, best_step, by_parts: best.collect(), curves, divergences })
    }
}

/// What each network adds to the negative log-likelihood of validation rows, and of parts of them, Z by draws.
struct Judge {
    program: Program<f32>,
    inputs: Vec<(String, Vec<f32>)>,
}

impl Judge {
    fn new(
        lesson: &Lesson,
        network: &Mlp,
        rows: &Sample,
        parts: &[Vec<usize>],
        context: &Context,
    ) -> Result<Self, Error> {
        let m = lesson.manifold.ambient();
        // Draws at equal distances, so that those of both laws are there in their ratio.
        let every = |rows: usize| at_equal_distances(rows, JUDGED);
        let pick = |all: &[f64], width: usize| -> Vec<f32> {
            every(all.len() / width).flat_map(|i| &all[i * width..][..width]).map(|&x| x as f32).collect()
        };
        let (mut points, draws, weights) =
            (pick(rows.points(), m), pick(&lesson.pool.points, m), pick(&lesson.log_weights(), 1));
        let (room, first) = (room_for(points.len() / m), points[..m].to_vec());
        points = filled_up(points, room * m, &first);
        let judges = |is_one: &dyn Fn(usize) -> bool| {
            let weight = |i: usize| if is_one(i) { rows.weight(i) } else { 0.0 };
            let counts: Vec<f64> = every(rows.rows(m)).map(weight).collect();
            let (total, room) = (counts.iter().sum::<f64>(), room_for(counts.len()));
            filled_up(counts.iter().map(|w| (w / total) as f32).collect(), room, &[0.0])
        };
        let part = |part: &Vec<usize>| judges(&|i| part.binary_search(&i).is_ok());
        let counts = std::iter::once(judges(&|_| true)).chain(parts.iter().map(part));
        let counts: Vec<(String, Vec<f32>)> = counts.enumerate().map(|(k, own)| (format!("counts-{k}"), own)).collect();
        let g = Graph::new();
        let (at, many) = (g.input_rows("points", points.len() / m, [m]), weights.len());
        let (drawn, of_draws) = (g.input_rows("draws", many, [m]), g.input_rows("weights", many, []));
        let loss = |(name, own): &(String, Vec<f32>)| {
            let rows = Particles::weighted(at, g.input_rows(name, own.len(), []));
            Lesson::likelihood(network, rows, drawn, of_draws)
        };
        let losses: Vec<Expr> = counts.iter().map(loss).collect();
        let program = g.try_compile::<f32>(&losses, &[], &context.options(lesson.plan.seeds))?;
        let others = [("points", points), ("draws", draws), ("weights", weights)];
        let inputs = others.map(|(name, values)| (name.to_string(), values)).into_iter().chain(counts).collect();
        Ok(Judge { program, inputs })
    }

    /// Of each network, by all rows and by each part, under a name of its own; from the context's checkpoint if there is one.
    fn scores(&mut self, name: &str, state: &mut State<f32>, context: &Context) -> Result<Vec<Vec<f64>>, Error> {
        let wide = |values: &[f32]| values.iter().map(|&x| x.into()).collect::<Vec<f64>>();
        let inputs = state.iter().fold(Fingerprint::new(), |all, (_, values)| all.and(&wide(values)));
        let (kept, ()) = context.kept(name, inputs, || {
            context.go_on()?;
            let inputs: Vec<(&str, &[f32])> = self.inputs.iter().map(|(n, v)| (n.as_str(), v.as_slice())).collect();
            self.program.try_run(state, &inputs, Clock { seed: u64::MAX, step: 0 })?;
            let mut scores = vec![];
            for judge in 0..self.judges() {
                scores.extend(wide(self.program.try_output(judge)?));
            }
            Ok((lists([("scores", scores.as_slice())]), ()))
        })?;
        let scores = kept.get("scores").expect("kept under this name");
        Ok(scores.chunks(scores.len() / self.judges()).map(<[f64]>::to_vec).collect())
    }

    /// All rows, and each part of them.
    fn judges(&self) -> usize {
        self.inputs.iter().filter(|(name, _)| name.starts_with("counts")).count()
    }
}

/// At most so many of `rows` numbers, at equal distances.
pub(super) fn at_equal_distances(rows: usize, most: usize) -> impl Iterator<Item = usize> {
    (0..rows).step_by(rows.div_ceil(most).max(1))
}
