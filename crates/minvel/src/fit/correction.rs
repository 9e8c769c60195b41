//! The correction f: networks learnt side by side, each stopped where its validation objective is lowest.
//!
//! **Statement.** With a the anchor, s = ∂ log a at data that a has not seen, and mobility w = 1/(1 + (a/ã)^{2/n}), ã the
//! median of a at the data: min_f E_p[w(½|∇f|² − Δf − (1 − (2/n)(1−w))⟨s, ∇f⟩)], the objective J of −log a + f for the
//! flow dx = (w∇log p + ∇w)dt + √(2w)dB, up to a constant (∇w = −(2/n)w(1−w)s). w = 1 without mobility.
//! **Source.** wang2020mvl; the mobility is ours: it is the squared width of a kernel of that density, so that sharp
//! features do not drown the rest. **Conventions.** The anchor enters as the linear energy −⟨s′, y⟩, whose gradient at
//! the data is right; its Laplacian does not depend on f. **Error.** Bias O(ε) of the objective, as MVL has it.
//! **Checked by** crates/lab/tests/lab/fit.rs.

use super::expert;
use super::settings::{FitSettings, Geometry, Goal};
use crate::density::Sample;
use crate::energy::{Energy, Mlp};
use crate::flow::{EnergyOf, FlowForm, Law, Noise, RiemannianLangevin};
use crate::objective::{Denoising, MinimumVelocity, Objective, ScoreMatching};
use crate::train::{Context, Fingerprint, Learner, Step, Trainer, lists};
use crate::{Divergence, Error, Manifold, energy, stream};
use minvel_engine::optim::{Optimiser, RateSchedule};
use minvel_engine::{Clock, Draw, Expr, Graph, Program, State};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Points, what the anchor says at them, and how fast the flow moves there.
pub(super) struct Rows {
    pub points: Vec<f64>,
    /// s′, in the coordinates of the points.
    pub pull: Vec<f64>,
    /// w.
    pub mobility: Vec<f64>,
    /// What each point counts.
    pub weights: Vec<f64>,
}

impl Rows {
    /// From log a and ∂ log a at points that a has not seen.
    pub fn new(sample: &Sample, log_anchor: &[f64], derivative: &[f64], median: Option<f64>, dim: usize) -> Self {
        let (n, points) = (dim as f64, sample.points());
        let m = points.len() / log_anchor.len();
        let mobility: Vec<f64> = log_anchor
            .iter()
            .map(|log| median.map_or(1.0, |median| 1.0 / (1.0 + ((log - median) * 2.0 / n).exp())))
            .collect();
        let slope = |w: f64| 1.0 - 2.0 / n * (1.0 - w);
        let pull = derivative.iter().enumerate().map(|(k, s)| slope(mobility[k / m]) * s).collect();
        let weights = (0..log_anchor.len()).map(|i| sample.weight(i)).collect();
        Rows { points: points.to_vec(), pull, mobility, weights }
    }

    /// The same rows for batches that take each in turn: a row of weight w is there ⌈w⌉ times, with equal parts of it, so that no
    /// row of a batch counts more than 1. Rows of weight 1 are as they are.
    pub fn in_turns(self) -> Self {
        let m = self.points.len() / self.weights.len();
        // Rounding of weights makes no further turn.
        let turns: Vec<usize> = self.weights.iter().map(|w| (w - 1e-9).ceil().max(1.0) as usize).collect();
        let places: Vec<usize> = (0..turns.len()).flat_map(|i| std::iter::repeat_n(i, turns[i])).collect();
        let rows = |all: &[f64]| places.iter().flat_map(|&i| &all[i * m..][..m]).copied().collect();
        Rows {
            points: rows(&self.points),
            pull: rows(&self.pull),
            mobility: places.iter().map(|&i| self.mobility[i]).collect(),
            weights: places.iter().map(|&i| self.weights[i] / turns[i] as f64).collect(),
        }
    }
}

/// What the validation objective was after each look, seed by seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Steps made.
    pub step: u32,
    /// Objective of the training rows in the last step; NaN before the first.
    #[serde(with = "crate::estimate::number::list")]
    pub train: Vec<f64>,
    /// Objective of the validation rows.
    #[serde(with = "crate::estimate::number::list")]
    pub validation: Vec<f64>,
    /// What the whole correction adds to the negative log-likelihood of the validation rows, in nats, with Z from draws of
    /// the kernels.
    #[serde(with = "crate::estimate::number::list")]
    pub score: Vec<f64>,
}

/// Networks that were learnt.
pub(super) struct Learnt {
    /// All variables of each seed at its best look, one seed after another.
    pub best: Vec<State<f32>>,
    /// After how many steps that was.
    pub best_step: Vec<u32>,
    /// The same where parts of the validation rows alone choose the look; none where there are no parts.
    pub by_parts: Vec<Vec<State<f32>>>,
    pub curves: Vec<Curve>,
    /// Networks that left the finite numbers, the first time that each did.
    pub divergences: Vec<Divergence>,
}

/// How corrections are learnt.
pub(super) struct Correction<'a> {
    pub manifold: Arc<dyn Manifold>,
    pub settings: &'a FitSettings,
}

impl Correction<'_> {
    /// The network, one output.
    pub fn network(&self) -> Mlp {
        expert::network(&self.manifold, &self.settings.network, self.settings.seed)
    }

    fn objective(&self) -> Box<dyn Objective> {
        let form = match self.settings.flow {
            Geometry::Langevin => FlowForm::Geodesic,
            Geometry::Chart => FlowForm::Chart,
        };
        let flow = RiemannianLangevin { manifold: self.manifold.clone(), form };
        match self.settings.objective {
            Goal::ScoreMatching => Box::new(ScoreMatching { manifold: Some(self.manifold.clone()) }),
            Goal::Denoising => Box::new(Denoising::new(self.settings.step_size)),
            _ => Box::new(MinimumVelocity { adaptive: true, ..MinimumVelocity::new(flow, self.settings.step_size) }),
        }
    }

    /// The loss in the scale of J: of `rows`, or minus the log-likelihood with draws of the anchor.
    fn loss<'g>(&self, goal: Goal, network: &Mlp, rows: [Expr<'g>; 4], draws: Expr<'g>) -> Expr<'g> {
        let [points, pull, mobility, weights] = rows;
        if goal == Goal::Likelihood {
            let count = draws.shape().rows.expect("draws are rows") as f64;
            let energy = (weights * network.energy(points)).mean_rows() / weights.mean_rows();
            return energy + (-network.energy(draws)).logsumexp_rows() - count.ln();
        }
        let objective = self.objective();
        let rows = |energy: EnergyOf<'_, 'g>| {
            objective.rows(energy, points.into(), Noise::drawn(Law::Gaussian, stream::NOISE))
        };
        // What the anchor alone would give, with the same noise, does not depend on f and is taken off: it is large.
        let anchor = |y: Expr<'g>| -pull.dot(y);
        let gained = rows(&|y| network.energy(y) + anchor(y)) - rows(&anchor).stop_gradient();
        let mobility = mobility * weights;
        (mobility * gained).mean_rows() / (objective.scale() * mobility.mean_rows())
    }

    /// Learns from `train`, looks at `validation`; `draws` are points of the anchor.
    pub fn learn(&self, train: &Rows, validation: &Rows, draws: &[f64], context: &Context) -> Result<Learnt, Error> {
        let FitSettings { seed, seeds, learning, .. } = self.settings;
        let m = self.manifold.ambient();
        let network = self.network();
        let single = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        let (count, many) = (train.mobility.len(), draws.len() / m);
        let g = Graph::new();
        let batch = learning.batch.min(count);
        let order = g.random_rows(Draw::Epoch(count as u32), stream::DATA, batch, []);
        let pick = |name: &str, dims: &[usize]| g.input(name, [&[count], dims].concat()).gather(order);
        let rows = [pick("points", &[m]), pick("pull", &[m]), pick("mobility", &[]), pick("weights", &[])];
        let some = g.random_rows(Draw::Integer(many as u32), stream::DRAWS, batch, []);
        let anchor = g.input("draws", [many, m]).gather(some);
        let square = network.energy(rows[0]).square();
        let scale = learning.penalty * (rows[3] * square).mean_rows() / rows[3].mean_rows();
        let loss = self.loss(self.settings.objective, &network, rows, anchor);
        let schedule = RateSchedule::Cosine { steps: learning.steps, floor: 0.0 };
        let optimiser = Optimiser { schedule, ..Optimiser::adam(learning.rate) };
        let step = Step { outputs: vec![loss], ..Step::of_energy(&network, loss + scale, &optimiser) };
        let mut state = State::new(*seeds);
        energy::initialise(&network, &mut state, *seed);
        silence(&network, &mut state);
        let mut learner = Learner::from_state(&g, &step, state, *seed, context)?
            .input("points", single(&train.points))
            .input("pull", single(&train.pull))
            .input("mobility", single(&train.mobility))
            .input("weights", single(&train.weights))
            .input("draws", single(draws));

        let mut judge = Judge::new(self, self.settings.objective, &network, validation, draws, context)?;
        let mut score = Judge::new(self, Goal::Likelihood, &network, validation, draws, context)?;
        let (mut curves, mut divergences): (Vec<Curve>, Vec<Divergence>) = (vec![], vec![]);
        let start = judge.losses("look-0", learner.state_mut(), context)?;
        let mut best: Vec<(f64, u32, State<f32>)> =
            (0..*seeds).map(|r| (start[r], 0, one_replica(learner.state(), r))).collect();
        let begun = score.losses("score-0", learner.state_mut(), context)?;
        curves.push(Curve { step: 0, train: vec![f64::NAN; *seeds], validation: start, score: begun });
        let ends: Vec<u32> =
            (0..=learning.looks).map(|k| (learning.steps as u64 * k as u64 / learning.looks as u64) as u32).collect();
        for (look, ends) in ends.windows(2).enumerate() {
            let name = format!("correction-{look}");
            // Between two blocks it can be stopped and kept.
            let block = (ends[1] - ends[0]).div_ceil(5).min(100);
            let trainer = Trainer { name, from: ends[0], steps: ends[1], block, seed: *seed, loss: 0 };
            let training = learner.run(&trainer, context)?;
            let fresh = |d: &Divergence| divergences.iter().all(|known| known.replica != d.replica);
            let fresh: Vec<Divergence> = training.divergences.iter().filter(|d| fresh(d)).cloned().collect();
            divergences.extend(fresh);
            let losses = judge.losses(&format!("look-{}", look + 1), learner.state_mut(), context)?;
            for (r, best) in best.iter_mut().enumerate() {
                if losses[r] < best.0 {
                    *best = (losses[r], ends[1], one_replica(learner.state(), r));
                }
            }
            let last = training.looks.last().map(|l| l.loss.clone()).unwrap_or_default();
            let score = score.losses(&format!("score-{}", look + 1), learner.state_mut(), context)?;
            curves.push(Curve { step: ends[1], train: last, validation: losses, score });
        }
        let best_step = best.iter().map(|b| b.1).collect();
        let best = best.into_iter().map(|b| b.2).collect();
        Ok(Learnt { best, best_step, by_parts: vec![], curves, divergences })
    }
}

/// Sets the last layer to zero: the correction begins as none.
pub(super) fn silence(network: &Mlp, state: &mut State<f32>) {
    let parameters = network.parameters();
    for p in &parameters[parameters.len() - 2..] {
        let len: usize = p.dims.iter().product();
        state.set(&p.name, &vec![0.0; len], len);
    }
}

/// The variables of one replica.
pub(super) fn one_replica(state: &State<f32>, r: usize) -> State<f32> {
    let mut own = State::new(1);
    for (name, values) in state.iter() {
        let len = values.len() / state.replicas();
        own.set(name, &values[r * len..][..len], len);
    }
    own
}

/// An objective on the validation rows, with noise of its own that stays the same.
struct Judge {
    program: Program<f32>,
    inputs: Vec<(&'static str, Vec<f32>)>,
    rounds: u32,
}

impl Judge {
    /// Noise drawn for each row.
    const ROUNDS: u32 = 8;

    fn new(
        correction: &Correction,
        goal: Goal,
        network: &Mlp,
        rows: &Rows,
        draws: &[f64],
        context: &Context,
    ) -> Result<Self, Error> {
        let m = correction.manifold.ambient();
        let g = Graph::new();
        let (room, many) = (room_for(rows.mobility.len()), (draws.len() / m).min(20_000));
        let given = |name: &str, dims: &[usize]| g.input_rows(name, room, dims.to_vec());
        let anchor = g.input_rows("draws", many, [m]);
        let given = [given("points", &[m]), given("pull", &[m]), given("mobility", &[]), given("weights", &[])];
        let loss = correction.loss(goal, network, given, anchor);
        let program = g.try_compile::<f32>(&[loss], &[], &context.options(correction.settings.seeds))?;
        let single = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        let repeated =
            |values: &[f64], width: usize| filled_up(single(values), room * width, &single(&values[..width]));
        let inputs = vec![
            ("points", repeated(&rows.points, m)),
            ("pull", repeated(&rows.pull, m)),
            ("mobility", repeated(&rows.mobility, 1)),
            ("weights", filled_up(single(&rows.weights), room, &[0.0])),
            ("draws", single(&draws[..many * m])),
        ];
        let noisy = goal != Goal::Likelihood;
        Ok(Judge { program, inputs, rounds: if noisy { Self::ROUNDS } else { 1 } })
    }

    /// Of each seed, under a name of its own; from the context's checkpoint if there is one.
    fn losses(&mut self, name: &str, state: &mut State<f32>, context: &Context) -> Result<Vec<f64>, Error> {
        let wide = |values: &[f32]| values.iter().map(|&x| x.into()).collect::<Vec<f64>>();
        let inputs = state.iter().fold(Fingerprint::new(), |all, (_, values)| all.and(&wide(values)));
        let (kept, ()) = context.kept(name, inputs, || {
            let losses = self.losses_now(state, context)?;
            Ok((lists([("losses", losses.as_slice())]), ()))
        })?;
        Ok(kept.get("losses").expect("kept under this name").to_vec())
    }

    fn losses_now(&mut self, state: &mut State<f32>, context: &Context) -> Result<Vec<f64>, Error> {
        let inputs: Vec<(&str, &[f32])> = self.inputs.iter().map(|(n, v)| (*n, v.as_slice())).collect();
        let mut sums = vec![0.0; state.replicas()];
        for step in 0..self.rounds {
            context.go_on()?;
            self.program.try_run(state, &inputs, Clock { seed: u64::MAX, step })?;
            sums.iter_mut().zip(self.program.try_output(0)?).for_each(|(s, x)| *s += *x as f64);
        }
        Ok(sums.into_iter().map(|s| s / self.rounds as f64).collect())
    }
}

/// Rows of a program for so many: the same for numbers of rows that are near each other, so that a GPU finds the kernels of the last file.
pub(super) fn room_for(rows: usize) -> usize {
    rows.max(1).next_power_of_two()
}

/// A list with more of the same row at its end, to this length.
pub(super) fn filled_up(mut values: Vec<f32>, length: usize, row: &[f32]) -> Vec<f32> {
    values.extend(row.iter().cycle().take(length - values.len()));
    values
}

/// A function of points, averaged over networks: compiled once, for many points.
pub(super) struct Averaged {
    program: Program<f32>,
    states: Vec<State<f32>>,
    batch: Vec<f32>,
    /// Numbers of a point, and of the function there.
    m: usize,
    width: usize,
}

impl Averaged {
    /// Points that are worked on at once.
    pub const ROWS: usize = 4096;

    /// A function of `width` numbers, for so many points.
    pub fn of(
        states: &[State<f32>],
        m: usize,
        width: usize,
        count: usize,
        context: &Context,
        value: impl for<'g> Fn(Expr<'g>) -> Expr<'g>,
    ) -> Result<Self, Error> {
        let rows = Self::ROWS.min(room_for(count.min(Self::ROWS)));
        let g = Graph::new();
        let program = g.try_compile::<f32>(&[value(g.input_rows("x", rows, [m]))], &[], &context.options(1))?;
        Ok(Averaged { program, states: states.to_vec(), batch: vec![0f32; rows * m], m, width })
    }

    /// The function at points, which count as rows of the open stage.
    pub fn at(&mut self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let mut all = Vec::with_capacity(points.len() / self.m * self.width);
        for chunk in points.chunks(self.batch.len()) {
            context.go_on()?;
            all.extend(self.at_once(chunk)?);
            context.worked(chunk.len() / self.m);
        }
        Ok(all)
    }

    /// The function at no more points than a batch.
    pub fn at_once(&mut self, points: &[f64]) -> Result<Vec<f64>, Error> {
        // The last batch is filled up with its own first point.
        for (k, to) in self.batch.iter_mut().enumerate() {
            *to = (if k < points.len() { points[k] } else { points[k % self.m] }) as f32;
        }
        let mut sums = vec![0.0; points.len() / self.m * self.width];
        let share = 1.0 / self.states.len() as f64;
        for state in &mut self.states {
            self.program.try_run(state, &[("x", &self.batch)], Clock { seed: 0, step: 0 })?;
            sums.iter_mut().zip(self.program.try_output(0)?).for_each(|(s, f)| *s += share * *f as f64);
        }
        Ok(sums)
    }
}
