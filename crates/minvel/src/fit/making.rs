//! How a model is made: kernels, the correction, further energies, and the weights of all.
//!
//! **Statement.** Kernels of the training rows; the correction f of minimum velocity, with the share t of it that the validation
//! rows ask for; with [`Effort`](super::Effort) also energies by likelihood, anchored and free, and a free one by transport, birth and death;
//! each normalised, and all learnt side by side, since none needs another. Without further energies the correction has weight one or none; else the weights are those of
//! [`stack`](super::stack). **Conventions.** Validation rows stop, temper and weigh; what weighs an energy at a row is one that the half
//! of the validation rows without it has stopped and tempered: of a dozen looks the best at some rows flatters there. Test rows are never looked at. A correction whose
//! log Z is not known to 0.01, or that makes the validation rows worse once log Z is known, is dropped, which is said.
//! **Checked by** tests/densities/experts.rs, crates/lab/tests/lab/fit.rs.

use super::correction::{Correction, Learnt, Rows};
use super::expert::{Base, Expert, Tried, is_of_velocity};
use super::learning::{JUDGED, Lesson, Plan, Seen, at_equal_distances, squared_width};
use super::model::{History, Model};
use super::outliers::Reference;
use super::partition::{LogZ, UNKNOWN};
use super::settings::{Effort, EnergySettings, FitSettings, Goal, NetworkSettings};
use super::split::folds_of;
use super::stack;
use super::standard::Standard;
use super::wide::{Pool, Wide};
use crate::density::Sample;
use crate::estimate::{Estimate, log_mean_exp};
use crate::train::{Context, FEW_AT_ONCE, lists, side_by_side};
use crate::{Divergence, Error, Manifold};
use std::sync::Arc;

/// Shares of an anchored energy that are tried.
const SHARES: usize = 21;
/// Draws of the anchor that the correction learns with.
const DRAWS: usize = 50_000;
/// The wide law's share of the draws that energies learn with: in few dimensions, and beyond.
const WIDE: [f64; 2] = [0.5, 0.1];
/// Factor of the steps with thorough effort, and networks of each energy.
const LONGER: u32 = 3;
const MORE: usize = 2;
/// Folds of the validation rows that judge the sum of all densities.
const FOLDS: usize = 5;
/// How often less of an anchored energy is tried where its log Z is not known, and how much less.
const RETRIES: usize = 2;
const LESS: f64 = 0.75;
/// Anchored energies soon learn their rows by heart: two networks for each of the settings. Free ones take longer and bear
/// larger rates.
const ANCHORED: usize = 2;
const FREE_STEPS: u32 = 2;
const FREE_RATE: f64 = 3.0;

/// Training rows in standard units, and what the kernels of the other folds say about them.
struct Trained {
    sample: Sample<'static>,
    held_out: Vec<f64>,
    derivative: Vec<f64>,
}

/// Validation rows in standard units, and what the kernels say about them.
struct Validated<'a> {
    sample: Sample<'a>,
    logs: Vec<f64>,
    slope: Vec<f64>,
}

impl Validated<'_> {
    /// Some of them, without slopes.
    fn part(&self, of: &[usize], ambient: usize) -> Validated<'static> {
        let logs = of.iter().map(|&i| self.logs[i]).collect();
        Validated { sample: self.sample.select(of, ambient), logs, slope: vec![] }
    }
}

/// What energies beside the correction have in common.
struct Beside {
    pool: Pool,
    /// How far the wide law is behind the kernels on the validation rows, in nats.
    behind: f64,
    /// Halves of the validation rows, each of which chooses for the other; none where that cannot be.
    halves: Vec<Vec<usize>>,
}

impl Beside {
    fn of(model: &Model, unseen: &Validated, context: &Context) -> Result<Self, Error> {
        let EnergySettings { draws, free, .. } = model.settings.energies;
        let few = model.manifold.dim() <= free;
        let wide = Wide::of(&model.manifold);
        let pool = context.stage("draws to learn with", 0, "rows", || {
            Pool::new(&model.anchor, &wide, draws, WIDE[usize::from(!few)], model.settings.seed, context)
        })?;
        let (at, judges) = (wide.log_density(unseen.sample.points(), context)?, &unseen.sample);
        let behind = judges.mean(&unseen.logs) - judges.mean(&at);
        let mut halves = folds_of(judges, model.manifold.ambient(), 2, model.settings.seed);
        if let [_, rest @ ..] = halves.as_mut_slice() {
            // Large groups make more than two parts; a single group makes one, and then the energies judge themselves.
            let mut rest = rest.concat();
            rest.sort_unstable();
            halves.truncate(1);
            halves.extend((!rest.is_empty()).then_some(rest));
        }
        let halves = if halves.len() == 2 { halves } else { vec![] };
        Ok(Beside { pool, behind, halves })
    }
}

/// An energy that is in the running.
struct Candidate {
    expert: Expert,
    /// Its log densities at the validation rows,
    logs: Vec<f64>,
    /// and those of energies that were stopped and tempered without the row, by which it is judged.
    judged: Vec<f64>,
    best_step: Vec<u32>,
}

impl Model {
    /// Learns from `train` and stops by `validation`, both row-major points of the manifold.
    pub fn learn<'p>(
        manifold: Arc<dyn Manifold>,
        settings: &FitSettings,
        train: impl Into<Sample<'p>>,
        validation: impl Into<Sample<'p>>,
        context: &Context,
    ) -> Result<(Model, History), Error> {
        let (train, judges) = (&train.into(), &validation.into());
        let m = manifold.ambient();
        let rows = train.rows(m);
        let standard = Standard::of(&*manifold, train);
        let train = train.with_points(standard.apply(train.points()));
        let with_energies = settings.objective != Goal::None;
        let fit = settings.kernels.fit(&manifold, &train, settings.seed, context, with_energies)?;
        let model = Model::of_kernels(manifold, settings, standard, fit.density, rows);
        let seen = || {
            let scored = settings.kernels.scored(rows);
            Trained { sample: train.select(&scored, m), held_out: fit.held_out, derivative: fit.derivative }
        };
        model.learnt(seen, judges, context)
    }

    /// The kernels with energies learnt from rows that they were not made of, both in the units of the data.
    pub(super) fn learn_beside(
        self,
        rows: &Sample,
        judges: &Sample,
        context: &Context,
    ) -> Result<(Model, History), Error> {
        let standard = self.standard.apply(rows.points());
        let (held_out, derivative) = match self.settings.objective {
            Goal::None => (vec![], vec![]),
            _ => context.stage("rows to learn from", rows.rows(self.manifold.ambient()), "rows", || {
                self.anchor.with_derivative(&standard, context)
            })?,
        };
        let sample = Sample::new(standard, rows.weights(), vec![]);
        self.learnt(|| Trained { sample, held_out, derivative }, judges, context)
    }

    /// The kernels with energies, of rows of which others have told the kernels.
    fn learnt(
        self,
        seen: impl FnOnce() -> Trained,
        judges: &Sample,
        context: &Context,
    ) -> Result<(Model, History), Error> {
        let (mut model, mut history) = (self, History::default());
        let (m, with_energies) = (model.manifold.ambient(), model.settings.objective != Goal::None);
        let validation = model.standard.apply(judges.points());
        let inputs = model.fingerprint().and(&validation).and(judges.weights()).and(&[f64::from(with_energies)]);
        let (kept, ()) = context.kept("validation", inputs, || {
            let rows = validation.len() / m;
            let (logs, slope) = context.stage("validation rows", rows, "rows", || match with_energies {
                true => model.anchor.with_derivative(&validation, context),
                false => Ok((model.anchor.log_density_of(&validation, context)?, vec![])),
            })?;
            Ok((lists([("logs", logs.as_slice()), ("slope", slope.as_slice())]), ()))
        })?;
        let list = |name: &str| kept.get(name).unwrap_or_default().to_vec();
        let sample = judges.with_points(validation);
        let unseen = Validated { sample, logs: list("logs"), slope: list("slope") };
        if !with_energies {
            history.shares = vec![(0.0, -judges.mean(&unseen.logs))];
            model.set_reference(judges, &unseen.logs);
            return Ok((model, history));
        }
        let (found, learnt) = model.energies(&seen(), &unseen, context)?;
        history = found;
        let of_model = model.weigh(learnt, &unseen, &mut history);
        model.set_reference(judges, &of_model);
        Ok((model, history))
    }

    /// The correction of minimum velocity (or what else is set), normalised; none where it is of no use.
    fn correction(
        &self,
        seen: &Trained,
        unseen: &Validated,
        history: &mut History,
        context: &Context,
    ) -> Result<Option<Candidate>, Error> {
        let (settings, n) = (&self.settings, self.manifold.dim());
        let median = settings.mobility.then(|| seen.sample.quantile(&seen.held_out, 0.5));
        let train = Rows::new(&seen.sample, &seen.held_out, &seen.derivative, median, n).in_turns();
        let validation = Rows::new(&unseen.sample, &unseen.logs, &unseen.slope, median, n);
        let draws = self.anchor.sample(DRAWS, settings.seed);
        let learnt =
            Correction { manifold: self.manifold.clone(), settings }.learn(&train, &validation, &draws, context)?;
        let network = settings.network.clone();
        let expert = unweighted(settings.objective, Base::Anchor, network, &learnt);
        history.curves = learnt.curves;
        history.best_step = learnt.best_step.clone();
        let (zeros, context) = (vec![0.0; DRAWS], &context.quiet());
        let (expert, f) = self.tempered(expert, unseen, (&draws, &zeros), &mut history.shares, context)?;
        history.warnings.extend(diverged(&learnt.divergences, settings.seeds, expert.share));
        self.normalised(expert, f, learnt.best_step, unseen, history, context)
    }

    /// An anchored energy with the share that the validation rows ask for, and U at these; Z by draws with log weights.
    fn tempered(
        &self,
        mut expert: Expert,
        unseen: &Validated,
        (draws, weights): (&[f64], &[f64]),
        shares: &mut Vec<(f64, f64)>,
        context: &Context,
    ) -> Result<(Expert, Vec<f64>), Error> {
        let mut energy = self.energy_of(&expert, usize::MAX, context)?;
        let (f, at_draws) = (energy.at(unseen.sample.points(), context)?, energy.at(draws, context)?);
        if expert.base == Base::Wide {
            return Ok((expert, f));
        }
        let score = |t: f64| {
            let likelihood: Vec<f64> = unseen.logs.iter().zip(&f).map(|(a, f)| a - t * f).collect();
            let weights: Vec<f64> = at_draws.iter().zip(weights).map(|(f, w)| w - t * f).collect();
            log_mean_exp(&weights).mean - unseen.sample.mean(&likelihood)
        };
        *shares = (0..SHARES).map(|k| k as f64 / (SHARES - 1) as f64).map(|t| (t, score(t))).collect();
        expert.share = shares.iter().min_by(|a, b| a.1.total_cmp(&b.1)).expect("some share").0;
        Ok((expert, f))
    }

    /// The energy with its log Z, and its log densities at the validation rows; none where log Z cannot be found, or where it
    /// shows that the kernels alone are better.
    fn normalised(
        &self,
        mut expert: Expert,
        energy: Vec<f64>,
        best_step: Vec<u32>,
        unseen: &Validated,
        history: &mut History,
        context: &Context,
    ) -> Result<Option<Candidate>, Error> {
        if expert.share == 0.0 {
            return Ok(None);
        }
        expert.log_z = self.partition(&expert, context)?;
        let mut retries = if self.settings.energies.effort == Effort::None { 0 } else { RETRIES };
        while retries > 0 && expert.base == Base::Anchor && expert.log_z.value.std_error > UNKNOWN {
            retries -= 1;
            expert.share *= LESS;
            expert.log_z = self.partition(&expert, context)?;
        }
        let LogZ { value: Estimate { mean, std_error, .. }, method, .. } = &expert.log_z;
        let what = if expert.base == Base::Anchor { "correction" } else { "energy" };
        // not known, or NaN
        if std_error.is_nan() || *std_error > UNKNOWN {
            history.warnings.push(format!(
                "The {what} was dropped ({}): with {} of it log Z is known to {std_error:.3} only (by {method}), and a density that \
                 does not integrate to one has no score. What is left are the kernels.",
                expert.name(), expert.share
            ));
            return Ok(None);
        }
        let logs: Vec<f64> = unseen.logs.iter().zip(energy).map(|(a, u)| expert.unnormalised(*a, u) - mean).collect();
        if expert.base == Base::Anchor && unseen.sample.mean(&logs) <= unseen.sample.mean(&unseen.logs) {
            history.warnings.push(format!(
                "The {what} was dropped ({}): with log Z = {mean:.3} (by {method}) the validation rows are better without it.",
                expert.name()
            ));
            return Ok(None);
        }
        Ok(Some(Candidate { expert, judged: logs.clone(), logs, best_step }))
    }

    /// Log densities of an energy at the validation rows, each as stopped and tempered by the half without the row. What quadrature or a
    /// bridge has found of log Z beyond a part of the draws is taken over from the energy itself.
    fn judged(
        &self,
        expert: &Expert,
        learnt: &Learnt,
        halves: &[Vec<usize>],
        (unseen, pool): (&Validated, &Pool),
        context: &Context,
    ) -> Result<Vec<f64>, Error> {
        let (m, mut logs) = (self.manifold.ambient(), vec![0.0; unseen.logs.len()]);
        let draws: Vec<usize> = at_equal_distances(pool.log_m.len(), JUDGED).collect();
        let points: Vec<f64> = draws.iter().flat_map(|&i| &pool.points[i * m..][..m]).copied().collect();
        let by_draws = |expert: &Expert| -> Result<f64, Error> {
            let energy = self.energy_of(expert, draws.len(), context)?.at(&points, context)?;
            let weight = |(&i, u): (&usize, f64)| expert.unnormalised(pool.log_anchor[i], u) - pool.log_m[i];
            Ok(log_mean_exp(&draws.iter().zip(energy).map(weight).collect::<Vec<f64>>()).mean)
        };
        let beyond = expert.log_z.value.mean - by_draws(expert)?;
        let log_weights: Vec<f64> = draws.iter().map(|&i| pool.log_anchor[i] - pool.log_m[i]).collect();
        for (half, networks) in learnt.by_parts.iter().enumerate() {
            let (own, others) = (unseen.part(&halves[half], m), &halves[1 - half]);
            let other = Expert { networks: networks.clone(), share: 1.0, ..expert.clone() };
            let (mut other, _) = self.tempered(other, &own, (&points, &log_weights), &mut vec![], context)?;
            // where less of the energy was taken, since log Z of more was not known
            other.share = other.share.min(expert.share);
            let log_z = by_draws(&other)? + beyond;
            let rest = unseen.part(others, m);
            let energy = self.energy_of(&other, others.len(), context)?.at(rest.sample.points(), context)?;
            for ((&i, a), u) in others.iter().zip(&rest.logs).zip(energy) {
                logs[i] = other.unnormalised(*a, u) - log_z;
            }
        }
        Ok(logs)
    }

    /// The correction and further energies, learnt side by side.
    fn energies(
        &self,
        seen: &Trained,
        unseen: &Validated,
        context: &Context,
    ) -> Result<(History, Vec<Candidate>), Error> {
        let further = self.settings.energies.effort != Effort::None;
        let beside = further.then(|| Beside::of(self, unseen, context)).transpose()?;
        let plans = beside.as_ref().map_or(vec![], |_| self.plans(-seen.sample.mean(&seen.held_out)));
        // Each counts its steps; what it takes to normalise it is not told.
        let steps = self.settings.learning.steps + plans.iter().map(|plan| plan.steps).sum::<u32>();
        let count = 1 + plans.len();
        let mut each = context.stage("learning energies", steps as usize, "steps", || {
            // The correction comes first and takes least, so it is learnt last.
            side_by_side(count, FEW_AT_ONCE, context, |k, context| {
                let (mut history, number) = (History::default(), count - 1 - k);
                let found = match (&beside, number.checked_sub(1)) {
                    (Some(beside), Some(k)) => {
                        let own = context.within(&format!("energy-{k}"));
                        self.further(&plans[k], seen, unseen, beside, &mut history, &own)?
                    }
                    _ => self.correction(seen, unseen, &mut history, context)?,
                };
                Ok((history, found))
            })
        })?;
        each.reverse();
        let (mut history, mut learnt) = (History::default(), vec![]);
        for (k, (own, found)) in each.into_iter().enumerate() {
            if k == 0 {
                history = own;
            } else {
                history.warnings.extend(own.warnings);
            }
            learnt.extend(found);
        }
        Ok((history, learnt))
    }

    /// An energy beside the correction; none where it is of no use.
    fn further(
        &self,
        plan: &Plan,
        seen: &Trained,
        unseen: &Validated,
        beside: &Beside,
        history: &mut History,
        context: &Context,
    ) -> Result<Option<Candidate>, Error> {
        let Beside { pool, halves, .. } = beside;
        let behind = if plan.base == Base::Anchor { 0.0 } else { beside.behind };
        let lesson = Lesson { manifold: &self.manifold, settings: &self.settings, plan, pool, behind };
        let rows = Seen::of(&seen.sample, &seen.held_out);
        let learnt = lesson.learn(&rows, &unseen.sample, halves, context)?;
        let (expert, context) = (unweighted(plan.goal, plan.base, plan.network.clone(), &learnt), &context.quiet());
        let weights = pool.log_weights(&pool.log_anchor);
        let (expert, energy) = self.tempered(expert, unseen, (&pool.points, &weights), &mut vec![], context)?;
        history.warnings.extend(diverged(&learnt.divergences, plan.seeds, expert.share));
        let found = self.normalised(expert, energy, learnt.best_step.clone(), unseen, history, context)?;
        let Some(mut candidate) = found else { return Ok(None) };
        if !halves.is_empty() {
            candidate.judged = self.judged(&candidate.expert, &learnt, halves, (unseen, pool), context)?;
        }
        Ok(Some(candidate))
    }

    /// What is learnt, with a typical density of e^{−nll}.
    fn plans(&self, nll: f64) -> Vec<Plan> {
        let EnergySettings { effort, free, seeds, network, steps, batch, rate, off, .. } = &self.settings.energies;
        let (n, thorough) = (self.manifold.dim(), *effort == Effort::Thorough);
        let frequency = network.frequency * (2.0 / n as f64).sqrt();
        let plan = Plan {
            base: Base::Anchor,
            goal: Goal::Likelihood,
            network: NetworkSettings { frequency, ..network.clone() },
            seeds: if thorough { seeds * MORE } else { *seeds },
            steps: if thorough { steps * LONGER } else { *steps },
            batch: *batch,
            rate: *rate,
            transport: squared_width(n, self.rows, nll),
            off: *off,
        };
        let mut plans = vec![Plan { seeds: ANCHORED * plan.seeds, ..plan.clone() }];
        if n <= *free {
            let free = Plan { base: Base::Wide, steps: FREE_STEPS * plan.steps, rate: FREE_RATE * plan.rate, ..plan };
            plans.push(free.clone());
            plans.push(Plan { goal: Goal::TransportReaction, ..free });
        }
        if thorough {
            let finer: Vec<Plan> = plans
                .iter()
                .cloned()
                .map(|plan| {
                    let network = NetworkSettings { frequency: 2.5 * plan.network.frequency, ..plan.network };
                    Plan { network, transport: 0.25 * plan.transport, ..plan }
                })
                .collect();
            plans.extend(finer);
        }
        plans
    }

    /// Gives each energy its weight; the model's log densities at the validation rows.
    fn weigh(&mut self, candidates: Vec<Candidate>, unseen: &Validated, history: &mut History) -> Vec<f64> {
        let (kernels, judges) = (unseen.logs.as_slice(), &unseen.sample);
        let logs: Vec<&[f64]> =
            std::iter::once(kernels).chain(candidates.iter().map(|c| c.judged.as_slice())).collect();
        let stacked = self.settings.energies.effort != Effort::None;
        let (weights, without) = if stacked {
            let any = vec![true; logs.len()];
            let velocity = |c: &Candidate| !is_of_velocity(c.expert.goal);
            let others: Vec<bool> = std::iter::once(true).chain(candidates.iter().map(velocity)).collect();
            let folds = folds_of(judges, self.manifold.ambient(), FOLDS, self.settings.seed);
            (stack::weights(&logs, &any, judges, &folds), stack::weights(&logs, &others, judges, &folds))
        } else {
            // the correction as it is, or nothing
            let only: Vec<f64> = (0..logs.len()).map(|k| f64::from(k + 1 == logs.len())).collect();
            let none = (0..logs.len()).map(|k| f64::from(k == 0)).collect();
            (only, none)
        };
        let own: Vec<&[f64]> = std::iter::once(kernels).chain(candidates.iter().map(|c| c.logs.as_slice())).collect();
        let of_model = stack::log_sum(&own, &weights);
        let tried = |k: usize, name: String, goal: Option<Goal>, best_step: Vec<u32>| Tried {
            name,
            goal,
            validation_nll: -judges.estimate(logs[k]),
            gain: judges.estimate(&logs[k].iter().zip(kernels).map(|(a, b)| a - b).collect::<Vec<f64>>()),
            weight: weights[k],
            best_step,
        };
        if !candidates.is_empty() {
            history.tried.push(tried(0, "kernels".into(), None, vec![]));
        }
        for (k, c) in candidates.iter().enumerate() {
            history.tried.push(tried(k + 1, c.expert.name(), Some(c.expert.goal), c.best_step.clone()));
        }
        history.judged = logs.iter().map(|logs| logs.to_vec()).collect();
        self.tried = history.tried.clone();
        self.experts = candidates.into_iter().map(|c| c.expert).collect();
        for (k, expert) in self.experts.iter_mut().enumerate() {
            (expert.weight, expert.without) = (weights[k + 1], without[k + 1]);
        }
        self.settle_log_z();
        of_model
    }

    /// Finds log Z of all energies again, for other kernels; those where it cannot be found are dropped, which is what is said then.
    pub(super) fn normalise(&mut self, context: &Context) -> Result<Vec<String>, Error> {
        let mut warnings = vec![];
        for mut expert in std::mem::take(&mut self.experts) {
            expert.log_z = self.partition(&expert, context)?;
            let error = expert.log_z.value.std_error;
            if error <= UNKNOWN {
                self.experts.push(expert);
                continue;
            }
            warnings.push(format!(
                "The correction was dropped: with {} of it log Z is known to {error:.3} only (by {}), and a density that does not \
                 integrate to one has no score. What is left are the kernels.",
                expert.share, expert.log_z.method
            ));
        }
        self.settle_log_z();
        Ok(warnings)
    }

    /// Keeps log densities of rows that it has not seen, in standard units.
    fn set_reference(&mut self, rows: &Sample, logs: &[f64]) {
        let shift = self.standard.log_volume();
        self.reference = Reference::new(rows, &logs.iter().map(|log| log + shift).collect::<Vec<f64>>());
    }
}

/// Networks as an energy without weight.
fn unweighted(goal: Goal, base: Base, network: NetworkSettings, learnt: &Learnt) -> Expert {
    let (networks, log_z) = (learnt.best.clone(), LogZ::of_kernels());
    Expert { goal, base, network, networks, share: 1.0, log_z, weight: 0.0, without: 0.0 }
}

/// What is said about networks whose training diverged.
fn diverged(divergences: &[Divergence], networks: usize, share: f64) -> Option<String> {
    let first = divergences.first()?;
    let what = if share > 0.0 { "each is used as it was at its best before" } else { "the correction was dropped" };
    Some(format!(
        "The training of {} of {networks} networks diverged ({} is not finite at step {}): {what}. A smaller learning.rate may help.",
        divergences.len(),
        first.where_,
        first.step
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::{Bump, LocalSettings};
    use crate::fit::LearningSettings;
    use crate::manifold::parse;
    use minvel_engine::random::{Key, Stream};

    /// The story: on T⁴ an energy that was stopped by 250 rows gained there, got nearly all of the weight, and lost 0.04 nats on fresh rows.
    #[test]
    fn rows_that_stopped_an_energy_flatter_it_and_those_that_judge_it_do_not() {
        let (context, manifold) = (Context::bare(), parse("torus:2").unwrap());
        let bump = Bump::new(&*manifold).unwrap();
        let points = |count: usize, seed: u64| -> Vec<f64> {
            let mut stream = Stream::new(Key::new(seed, 0), 9);
            let mut point = |k: usize| bump.sample(&[k as f64, 0.5 * k as f64], [3.0, 6.0, 12.0][k], &mut stream);
            (0..count).flat_map(|i| point(i % 3)).collect()
        };
        let quick = FitSettings::quick();
        // Steps so large that looks differ by chance.
        let network = NetworkSettings { hidden: vec![32, 32], waves: 16, frequency: 1.0, ..quick.energies.network };
        let settings = FitSettings {
            kernels: LocalSettings {
                neighbours: vec![12.0],
                factors: vec![1.0],
                widths: 2,
                mixtures: vec![],
                ..quick.kernels
            },
            learning: LearningSettings { steps: 2, looks: 2, ..quick.learning },
            energies: EnergySettings {
                effort: Effort::Normal,
                free: 0,
                steps: 120,
                rate: 0.03,
                batch: 128,
                draws: 20_000,
                network,
                ..quick.energies
            },
            ..quick
        };
        let (mut own, mut judged, mut pairs) = (vec![], vec![], vec![]);
        for seed in 1..=12 {
            let [train, validation, fresh] = [(500, 0), (80, 1), (4000, 2)].map(|(n, k)| points(n, 10 * seed + k));
            let (model, history) = Model::learn(manifold.clone(), &settings, &train, &validation, &context).unwrap();
            let Some(k) = model.experts.iter().position(|expert| expert.goal == Goal::Likelihood) else { continue };
            let gain = |rows: &[f64]| {
                let parts = model.parts(&model.standardised(rows), true, &context).unwrap();
                Estimate::paired(&parts.experts[k], &parts.anchor).mean
            };
            let (there, elsewhere) = (gain(&validation), gain(&fresh));
            let tried = history.tried.iter().find(|tried| tried.goal == Some(Goal::Likelihood)).unwrap();
            own.push(there - elsewhere);
            judged.push(tried.gain.mean - elsewhere);
            pairs.push(there - tried.gain.mean);
        }
        let [own, judged, pairs] = [own, judged, pairs].map(Estimate::of);
        println!(
            "beyond gains on fresh rows: {own} at rows that stopped, {judged} as judged, {pairs} less, {} energies",
            own.count
        );
        assert!(pairs.mean > 3.0 * pairs.std_error, "nothing flatters: {pairs}");
        assert!(judged.mean < 2.0 * judged.std_error, "the judges are flattered: {judged}");
    }
}
