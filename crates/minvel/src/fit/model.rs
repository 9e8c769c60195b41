//! The model: kernels, correction, partition function; and how it is made.

use super::correction::{Averaged, Correction, Curve, Rows};
use super::outliers::Reference;
use super::partition::{LogZ, UNKNOWN};
use super::settings::{FitSettings, Goal};
use super::standard::Standard;
use crate::density::repeats::Known;
use crate::density::{Density, LocalKernels, slope};
use crate::energy::{Energy, Mlp};
use crate::estimate::{Estimate, log_mean_exp};
use crate::network::Parameter;
use crate::train::{Context, Fingerprint, lists};
use crate::{Divergence, Error, Manifold};
use minvel_engine::State;
use minvel_engine::random::{Key, Stream};
use std::fmt;
use std::sync::Arc;

/// A fitted density. Points are in the units of the data, as rows of the manifold.
pub struct Model {
    pub(super) manifold: Arc<dyn Manifold>,
    pub(super) settings: FitSettings,
    pub(super) standard: Standard,
    pub(super) anchor: LocalKernels,
    /// Training rows; the centres are these, or means of clusters of them.
    pub(super) rows: usize,
    /// Variables of the networks, one state for each; none without correction.
    pub(super) networks: Vec<State<f32>>,
    /// t.
    pub(super) share: f64,
    /// log Z = log E_a e^{−t f}.
    pub(super) log_z: LogZ,
    /// Rows that it has not seen; files of earlier versions have none.
    pub(super) reference: Option<Reference>,
}

/// How the model came about.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct History {
    /// Objectives while learning.
    pub curves: Vec<Curve>,
    /// Step at which each seed stopped.
    pub best_step: Vec<u32>,
    /// Negative log-likelihood of the validation rows by share of the correction.
    pub shares: Vec<(f64, f64)>,
    /// What a reader should know about it.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Shares of the correction that are tried.
const SHARES: usize = 21;
/// Proposals of a chain.
const ROUNDS: u64 = 20;
/// Draws of the anchor to learn with.
const DRAWS: usize = 50_000;

impl Model {
    /// Learns from `train` and stops by `validation`, both row-major points of the manifold.
    pub fn learn(
        manifold: Arc<dyn Manifold>,
        settings: &FitSettings,
        train: &[f64],
        validation: &[f64],
        context: &Context,
    ) -> Result<(Model, History), Error> {
        let rows = train.len() / manifold.ambient();
        let standard = Standard::of(&*manifold, train);
        let train = standard.apply(train);
        let validation = standard.apply(validation);
        let seed = settings.seed;
        let with_correction = settings.objective != Goal::None;
        let fit = settings.kernels.fit(&manifold, &train, seed, context, with_correction)?;
        let mut model = Model::of_kernels(manifold.clone(), settings, standard, fit.density, rows);
        let mut history = History::default();
        let inputs = model.fingerprint().and(&validation).and(&[f64::from(with_correction)]);
        let (kept, ()) = context.kept("validation", inputs, || {
            let rows = validation.len() / manifold.ambient();
            let (logs, slope) = context.stage("validation rows", rows, "rows", || match with_correction {
                true => model.anchor.with_derivative(&validation, context),
                false => Ok((model.anchor.log_density_of(&validation, context)?, vec![])),
            })?;
            Ok((lists([("logs", logs.as_slice()), ("slope", slope.as_slice())]), ()))
        })?;
        let at_validation = kept.get("logs").expect("kept under this name");
        if !with_correction {
            history.shares = vec![(0.0, -Estimate::of(at_validation.iter().copied()).mean)];
            model.set_reference(at_validation, &vec![0.0; at_validation.len()]);
            return Ok((model, history));
        }

        let (n, m) = (manifold.dim(), manifold.ambient());
        let scored = settings.kernels.scored(rows);
        let train: Vec<f64> = scored.iter().flat_map(|&i| &train[i * m..][..m]).copied().collect();
        let median = settings.mobility.then(|| median(&fit.held_out));
        let seen = Rows::new(&train, &fit.held_out, &fit.derivative, median, n);
        let slope = kept.get("slope").expect("kept under this name");
        let unseen = Rows::new(&validation, at_validation, slope, median, n);
        let draws = model.anchor.sample(DRAWS, seed);
        let learnt = context.stage("learning the correction", settings.learning.steps as usize, "steps", || {
            Correction { manifold, settings }.learn(&seen, &unseen, &draws, context)
        })?;
        model.networks = learnt.best;
        (history.curves, history.best_step) = (learnt.curves, learnt.best_step);

        let rows = at_validation.len() + DRAWS;
        let (f, at_draws) = context.stage("share of the correction", rows, "rows", || {
            Ok((model.correction(&validation, context)?, model.correction(&draws, context)?))
        })?;
        let score = |t: f64| {
            let likelihood: Vec<f64> = at_validation.iter().zip(&f).map(|(a, f)| a - t * f).collect();
            let weights: Vec<f64> = at_draws.iter().map(|f| -t * f).collect();
            log_mean_exp(&weights).mean - likelihood.iter().sum::<f64>() / likelihood.len() as f64
        };
        history.shares = (0..SHARES).map(|k| k as f64 / (SHARES - 1) as f64).map(|t| (t, score(t))).collect();
        let best = history.shares.iter().min_by(|a, b| a.1.total_cmp(&b.1)).expect("some share");
        model.share = best.0;
        history.warnings.extend(diverged(&learnt.divergences, settings, model.share));
        history.warnings.extend(model.normalise(context)?);
        model.set_reference(at_validation, &f);
        Ok((model, history))
    }

    /// Keeps the log densities of rows by log a (in standard units) and f.
    fn set_reference(&mut self, anchor: &[f64], f: &[f64]) {
        let energy: Vec<f64> = anchor.iter().zip(f).map(|(a, f)| self.share * f - a).collect();
        self.reference = Reference::new(self.log_density_of_energy(&energy));
    }

    /// A model without correction, of kernels that were made of so many rows.
    pub(super) fn of_kernels(
        manifold: Arc<dyn Manifold>,
        settings: &FitSettings,
        standard: Standard,
        anchor: LocalKernels,
        rows: usize,
    ) -> Model {
        let anchor = anchor.with_tolerance(settings.kernels.tolerance);
        let (settings, networks, log_z) = (settings.clone(), vec![], LogZ::of_kernels());
        Model { manifold, settings, standard, anchor, rows, networks, share: 0.0, log_z, reference: None }
    }

    /// Finds log Z; where it cannot be found the correction is dropped, which is what is said then.
    pub(super) fn normalise(&mut self, context: &Context) -> Result<Option<String>, Error> {
        let found = self.partition(context)?;
        let error = found.value.std_error;
        if error <= UNKNOWN {
            self.log_z = found;
            return Ok(None);
        }
        let share = std::mem::replace(&mut self.share, 0.0);
        self.log_z = LogZ::of_kernels();
        Ok(Some(format!(
            "The correction was dropped: with {share} of it log Z is known to {error:.3} only (by {}), and a density that does not \
             integrate to one has no score. What is left are the kernels.",
            found.method
        )))
    }

    /// Tells kernels apart.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let shares: Vec<f64> = self.anchor.families().iter().map(|family| family.share).collect();
        self.anchor.tensors().iter().fold(Fingerprint::new().and(&shares), |all, (_, values)| all.and(values))
    }

    /// Where the points live.
    pub fn manifold(&self) -> &Arc<dyn Manifold> {
        &self.manifold
    }

    /// t, the share of the correction.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Training rows; where they are more than the settings allow centres, the kernels stand on clusters of them.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Log densities of rows that it has not seen: what p-values of outliers refer to. None in files of earlier versions.
    pub fn reference(&self) -> Option<&Reference> {
        self.reference.as_ref()
    }

    /// log Z, and how it was found.
    pub fn log_z(&self) -> &LogZ {
        &self.log_z
    }

    /// f at points in standard units.
    pub(super) fn correction(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let m = self.manifold.ambient();
        if self.networks.is_empty() {
            return Ok(vec![0.0; points.len() / m]);
        }
        Averaged::value(&self.network(), &self.networks, m, points.len() / m, context)?.at(points, context)
    }

    fn network(&self) -> Mlp {
        Correction { manifold: self.manifold.clone(), settings: &self.settings }.network()
    }

    /// Whether every network has all its parameters.
    pub(super) fn has_networks(&self) -> bool {
        let network = self.network();
        let whole = |p: &Parameter, state: &State<f32>| {
            state.get(&p.name).is_some_and(|values| values.len() == p.dims.iter().product::<usize>())
        };
        self.networks.iter().all(|state| network.parameters().iter().all(|p| whole(p, state)))
    }

    /// E at points in the units of the data.
    pub fn energy(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        Ok(self.energy_and_anchor(points, context)?.0)
    }

    /// E and log a (in standard units) at points in the units of the data.
    fn energy_and_anchor(&self, points: &[f64], context: &Context) -> Result<(Vec<f64>, Vec<f64>), Error> {
        let m = self.manifold.ambient();
        let points = self.standard.apply(points);
        let averaged = || Averaged::value(&self.network(), &self.networks, m, points.len() / m, context);
        let mut f = (self.share > 0.0).then(averaged).transpose()?;
        // Many points at once lie close together, and share the work on the kernels.
        let anchor = self.anchor.log_density_of(&points, context)?;
        let mut energy: Vec<f64> = anchor.iter().map(|a| -a).collect();
        if let Some(f) = &mut f {
            let batches = points.chunks(Averaged::ROWS * m).zip(energy.chunks_mut(Averaged::ROWS));
            for (points, energy) in batches {
                energy.iter_mut().zip(f.at_once(points)?).for_each(|(e, f)| *e += self.share * f);
            }
        }
        Ok((energy, anchor))
    }

    /// log p, and the log density of the kernels alone, at points in the units of the data.
    pub(super) fn log_densities(&self, points: &[f64], context: &Context) -> Result<(Vec<f64>, Vec<f64>), Error> {
        let (energy, anchor) = self.energy_and_anchor(points, context)?;
        let shift = self.standard.log_volume();
        Ok((self.log_density_of_energy(&energy), anchor.into_iter().map(|a| a + shift).collect()))
    }

    /// log p at points in the units of the data.
    pub fn log_density(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        Ok(self.log_density_of_energy(&self.energy(points, context)?))
    }

    /// log p of points with these energies.
    pub fn log_density_of_energy(&self, energy: &[f64]) -> Vec<f64> {
        let shift = self.standard.log_volume() - self.log_z.value.mean;
        energy.iter().map(|e| shift - e).collect()
    }

    /// The density of the kernels alone, in the units of the data.
    pub fn log_anchor(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let shift = self.standard.log_volume();
        let points = self.standard.apply(points);
        Ok(self.anchor.log_density_of(&points, context)?.into_iter().map(|a| a + shift).collect())
    }

    /// grad log p in standard units at points of the data, and the points in standard units: what the Stein test takes,
    /// so that units of the data do not matter.
    pub(super) fn standard_scores(&self, points: &[f64], context: &Context) -> Result<(Vec<f64>, Vec<f64>), Error> {
        let m = self.manifold.ambient();
        let points = self.standard.apply(points);
        let mut derivative = self.anchor.derivative(&points, context)?;
        if self.share > 0.0 {
            let mut slope = Averaged::derivative(&self.network(), &self.networks, m, points.len() / m, context)?;
            let batch = Averaged::ROWS * m;
            for (points, derivative) in points.chunks(batch).zip(derivative.chunks_mut(batch)) {
                derivative.iter_mut().zip(slope.at_once(points)?).for_each(|(d, f)| *d -= self.share * f);
            }
        }
        Ok((slope::gradient(&*self.manifold, &points, &derivative, context)?, points))
    }

    /// grad log p at points in the units of the data, in their coordinates.
    pub fn score(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        Ok(self.standard.undo_slopes(&self.standard_scores(points, context)?.0))
    }

    /// The points that the kernels stand on, in the units of the data.
    pub fn centres(&self) -> Vec<f64> {
        self.standard.undo(self.anchor.points())
    }

    /// Points in standard units.
    pub fn standardised(&self, points: &[f64]) -> Vec<f64> {
        self.standard.apply(points)
    }

    /// What log densities in standard units gain in those of the data.
    pub fn log_unit(&self) -> f64 {
        self.standard.log_volume()
    }

    /// The kernels.
    pub fn kernels(&self) -> &LocalKernels {
        &self.anchor
    }

    /// The settings it was learnt with.
    pub fn settings(&self) -> &FitSettings {
        &self.settings
    }

    /// The share of points that the kernels stand on, bit for bit.
    pub fn share_known(&self, points: &[f64]) -> f64 {
        let m = self.manifold.ambient();
        let known = Known::new(self.anchor.points(), m, 0..self.anchor.centres());
        let points = self.standard.apply(points);
        let found = points.chunks(m).filter(|p| known.holds(p)).count();
        found as f64 / (points.len() / m).max(1) as f64
    }

    /// Rows that so many draws take: each point, and each proposal for it, is one.
    pub fn rows_of_draws(&self, count: usize) -> usize {
        if self.share > 0.0 { count * (ROUNDS as usize + 1) } else { 0 }
    }

    /// Draws by an independence chain for each: proposals of the kernels, each accepted with probability
    /// min(1, e^{−t(f′ − f)}).
    pub fn sample(&self, count: usize, seed: u64, context: &Context) -> Result<Drawn, Error> {
        let m = self.manifold.ambient();
        let seed = seed.wrapping_mul(ROUNDS + 1);
        let mut points = self.anchor.sample(count, seed);
        if self.share == 0.0 {
            return Ok(Drawn { points: self.standard.undo(&points), acceptance: 1.0, moved: 1.0 });
        }
        let network = self.network();
        let mut correction = Averaged::value(&network, &self.networks, m, count, context)?;
        let mut f = correction.at(&points, context)?;
        let mut coins = Stream::new(Key::new(seed, 1), 1);
        let mut moves = vec![0u64; count];
        for round in 1..=ROUNDS {
            let proposals = self.anchor.sample(count, seed.wrapping_add(round));
            let new = correction.at(&proposals, context)?;
            for i in 0..count {
                if coins.uniform().ln() < self.share * (f[i] - new[i]) {
                    points[i * m..][..m].copy_from_slice(&proposals[i * m..][..m]);
                    f[i] = new[i];
                    moves[i] += 1;
                }
            }
        }
        let all = count.max(1) as f64;
        let acceptance = moves.iter().sum::<u64>() as f64 / (all * ROUNDS as f64);
        let moved = moves.iter().filter(|moves| **moves > 0).count() as f64 / all;
        Ok(Drawn { points: self.standard.undo(&points), acceptance, moved })
    }
}

impl Density for Model {
    fn name(&self) -> &str {
        "fit"
    }

    fn manifold(&self) -> Arc<dyn Manifold> {
        self.manifold.clone()
    }

    fn log_density(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        Model::log_density(self, points, context)
    }

    fn score(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        Model::score(self, points, context)
    }

    fn sample(&self, count: usize, seed: u64, context: &Context) -> Result<Vec<f64>, Error> {
        Ok(Model::sample(self, count, seed, context)?.points)
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Model { manifold, rows, share, .. } = self;
        write!(f, "Model({manifold}, {rows} rows, share {share})")
    }
}

/// Points of a model, and how the chains went.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// In the units of the data, row-major.
    pub points: Vec<f64>,
    /// Share of the proposals that were accepted.
    pub acceptance: f64,
    /// Share of the chains that accepted at least one: the others are draws of the kernels alone.
    pub moved: f64,
}

/// What is said about networks whose training diverged.
fn diverged(divergences: &[Divergence], settings: &FitSettings, share: f64) -> Option<String> {
    let first = divergences.first()?;
    let what = if share > 0.0 { "each is used as it was at its best before" } else { "the correction was dropped" };
    Some(format!(
        "The training of {} of {} networks diverged ({} is not finite at step {}): {what}. A smaller learning.rate may help.",
        divergences.len(),
        settings.seeds,
        first.where_,
        first.step
    ))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
