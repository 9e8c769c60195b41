//! The door: points in, a normalised density out.

use super::crossvalidation;
use super::evaluation::Evaluation;
use super::model::Model;
use super::procedure::{Procedure, Record};
use super::settings::{FewSettings, FitSettings, Geometry, Goal, LearningSettings, NetworkSettings};
use super::split::{Split, leaked_share};
use crate::density::{Density, LocalSettings};
use crate::estimate::Estimate;
use crate::train::Context;
use crate::{Device, Error, Manifold};
use std::path::Path;
use std::sync::Arc;

/// The fewest points that a density is fitted to.
pub const LEAST_POINTS: usize = 5;

/// Something that is a manifold, or shares one.
pub trait IntoManifold {
    /// The manifold, shared.
    fn into_manifold(self) -> Arc<dyn Manifold>;
}

impl<M: Manifold + 'static> IntoManifold for M {
    fn into_manifold(self) -> Arc<dyn Manifold> {
        Arc::new(self)
    }
}

impl IntoManifold for Arc<dyn Manifold> {
    fn into_manifold(self) -> Arc<dyn Manifold> {
        self
    }
}

impl IntoManifold for &Arc<dyn Manifold> {
    fn into_manifold(self) -> Arc<dyn Manifold> {
        self.clone()
    }
}

/// A fit to be made: settings with defaults, each changed by a method of its name.
///
/// ```
/// use minvel::fit::Fit;
/// use minvel::manifold::Sphere;
/// let ring: Vec<f64> = (0..60).map(|k| k as f64 / 9.5).flat_map(|a: f64| [a.cos(), a.sin(), 0.0]).collect();
/// let fitted = Fit::on(Sphere(2)).seed(1).points(&ring)?;
/// let logs = fitted.log_density(&[1.0, 0.0, 0.0, 0.0, 0.0, 1.0])?;
/// assert!(logs[0] > logs[1], "the pole is far from the ring");
/// assert_eq!(fitted.sample(5, 1)?.len(), 15);
/// # Ok::<(), minvel::Error>(())
/// ```
#[derive(Clone)]
pub struct Fit<'a> {
    manifold: Arc<dyn Manifold>,
    settings: FitSettings,
    threads: usize,
    device: Device,
    context: Option<&'a Context<'a>>,
}

impl Fit<'static> {
    /// A density on a manifold, with the default settings.
    pub fn on(manifold: impl IntoManifold) -> Self {
        let (settings, device) = (FitSettings::default(), Context::bare().device);
        Fit { manifold: manifold.into_manifold(), settings, threads: 0, device, context: None }
    }
}

impl<'a> Fit<'a> {
    /// All settings at once.
    pub fn settings(self, settings: FitSettings) -> Self {
        Fit { settings, ..self }
    }

    /// Fewer networks, trained for a shorter time ([`FitSettings::quick`]); the seed is kept.
    pub fn quick(self) -> Self {
        let seed = self.settings.seed;
        Fit { settings: FitSettings { seed, ..FitSettings::quick() }, ..self }
    }

    /// Random seed: split, folds, initial values, batches and noise. Default: 1.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Networks of the correction, trained concurrently, of which the mean is used. Default: 4.
    pub fn networks(mut self, count: usize) -> Self {
        self.settings.seeds = count;
        self
    }

    /// What the correction minimises; [`Goal::None`] leaves the kernels alone. Default: the minimum velocity.
    pub fn objective(mut self, objective: Goal) -> Self {
        self.settings.objective = objective;
        self
    }

    /// The flow of that objective. Default: Riemannian Langevin along geodesics.
    pub fn flow(mut self, flow: Geometry) -> Self {
        self.settings.flow = flow;
        self
    }

    /// ε of the flow, in squared units of the coordinates. Default: 10⁻³.
    pub fn step_size(mut self, step_size: f64) -> Self {
        self.settings.step_size = step_size;
        self
    }

    /// Whether the flow scales with the local width of the kernels. Default: true.
    pub fn mobility(mut self, mobility: bool) -> Self {
        self.settings.mobility = mobility;
        self
    }

    /// The kernels that the correction starts from.
    pub fn kernels(mut self, kernels: LocalSettings) -> Self {
        self.settings.kernels = kernels;
        self
    }

    /// The network of the correction. Default: two hidden layers of 64, silu, 64 random Fourier features.
    pub fn network(mut self, network: NetworkSettings) -> Self {
        self.settings.network = network;
        self
    }

    /// The training of the correction. Default: 1000 steps of Adam.
    pub fn learning(mut self, learning: LearningSettings) -> Self {
        self.settings.learning = learning;
        self
    }

    /// Draws of the kernels for log Z, where quadrature does not reach. Default: 200 000.
    pub fn partition_draws(mut self, draws: usize) -> Self {
        self.settings.partition.draws = draws;
        self
    }

    /// What is done with few rows. Default: below 2000 rows cross-validation, and a model of all rows.
    pub fn few(mut self, few: FewSettings) -> Self {
        self.settings.few = few;
        self
    }

    /// Threads; 0 means all cores. Results do not depend on it.
    pub fn threads(self, threads: usize) -> Self {
        Fit { threads, ..self }
    }

    /// Where networks learn. Default: the CPU.
    pub fn device(self, device: Device) -> Self {
        Fit { device, ..self }
    }

    /// Progress, a request to stop, checkpoints; its threads and device are used instead of those given here.
    pub fn context<'b>(self, context: &'b Context<'b>) -> Fit<'b> {
        Fit { context: Some(context), ..self }
    }

    /// Fits the density to points, row-major in the coordinates of the manifold; they are checked first.
    pub fn points(&self, points: &[f64]) -> Result<Fitted, Error> {
        if let Some((key, what)) = self.settings.fault() {
            return Err(Error::config(format!("`{key}` {what}")));
        }
        check(&*self.manifold, points)?;
        let rows = points.len() / self.manifold.ambient();
        if rows < LEAST_POINTS {
            return Err(Error::config(format!("a density needs at least {LEAST_POINTS} points, not {rows}")));
        }
        self.settings.check_room(&*self.manifold, rows)?;
        let mut own = Context::of_threads(self.threads);
        own.device = self.device;
        let (model, record) = self.learn(points, self.context.unwrap_or(&own))?;
        Ok(Fitted { model, record: Some(record) })
    }

    fn learn(&self, points: &[f64], context: &Context) -> Result<(Model, Record), Error> {
        let Fit { manifold, settings, .. } = self;
        let m = manifold.ambient();
        let rows = points.len() / m;
        if rows < settings.few.rows {
            return crossvalidation::learn(manifold, settings, points, context);
        }
        let split = Split::new(rows, settings.seed);
        let part = |rows: &[usize]| rows.iter().flat_map(|&i| &points[i * m..][..m]).copied().collect::<Vec<f64>>();
        let (train, validation, test) = (part(&split.train), part(&split.validation), part(&split.test));
        let (model, history) = Model::learn(manifold.clone(), settings, &train, &validation, context)?;
        let evaluation = Evaluation::of(&model, &test, settings.seed, context)?;
        let (train, validation, test) = (split.train.len(), split.validation.len(), split.test.len());
        let procedure = Procedure::Split { train, validation, test };
        Ok((model, Record { history, evaluation, procedure, leaked_share: leaked_share(points, m, &split) }))
    }
}

/// An error that names the first row which is no point of the manifold.
pub(super) fn check(manifold: &dyn Manifold, points: &[f64]) -> Result<(), Error> {
    let m = manifold.ambient();
    if !points.len().is_multiple_of(m) {
        let what = format!("a point of {manifold} has {m} numbers: {} numbers are no whole points", points.len());
        return Err(Error::config(what));
    }
    for (row, point) in points.chunks(m).enumerate() {
        manifold.check(point).map_err(|why| Error::config(format!("row {row} (counted from 0): {why}")))?;
    }
    Ok(())
}

/// A fitted density.
pub struct Fitted {
    model: Model,
    record: Option<Record>,
}

impl Fitted {
    /// log p at points, row-major, in nats.
    pub fn log_density(&self, points: &[f64]) -> Result<Vec<f64>, Error> {
        check(&**self.model.manifold(), points)?;
        self.model.log_density(points, &Context::bare())
    }

    /// grad log p at points, as tangent vectors in their coordinates.
    pub fn score(&self, points: &[f64]) -> Result<Vec<f64>, Error> {
        check(&**self.model.manifold(), points)?;
        self.model.score(points, &Context::bare())
    }

    /// Independent draws, row-major; the same ones for the same seed.
    pub fn sample(&self, count: usize, seed: u64) -> Result<Vec<f64>, Error> {
        Density::sample(&self.model, count, seed, &Context::bare())
    }

    /// log Z, with its error: that of every log density, common to all points.
    pub fn log_z(&self) -> Estimate {
        self.model.log_z().value
    }

    /// Conformal p-values of points: how unusual they are among rows that the model has not seen ([`super::Reference`]).
    ///
    /// An error of a model that an earlier version saved: it keeps no such rows.
    pub fn p_values(&self, points: &[f64]) -> Result<Vec<f64>, Error> {
        let reference = self.model.reference().ok_or_else(|| Error::config(super::NO_REFERENCE))?;
        Ok(self.log_density(points)?.into_iter().map(|log| reference.p_value(log)).collect())
    }

    /// Writes the model to a file, wholly or not at all; `minvel score`, `sample` and `plot` read it too.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let manifold = self.model.manifold().to_string();
        self.model.write(path, &serde_json::json!({ "manifold": manifold }))
    }

    /// Reads a model that was saved, by this library or by `minvel fit`.
    pub fn load(path: &Path) -> Result<Fitted, Error> {
        let (model, _) = Model::read::<serde_json::Value>(path)?;
        Ok(Fitted { model, record: None })
    }

    /// Reads a model on a manifold of one's own.
    pub fn load_on(path: &Path, manifold: impl IntoManifold) -> Result<Fitted, Error> {
        let manifold = manifold.into_manifold();
        let named = |name: &str| {
            if name == manifold.to_string() {
                Ok(manifold.clone())
            } else {
                Err(format!("the model lives on {name}, not on {manifold}"))
            }
        };
        let (model, _) = Model::read_on::<serde_json::Value>(path, named)?;
        Ok(Fitted { model, record: None })
    }

    /// How it was fitted and what held-out rows say; `None` of a model that was loaded.
    pub fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    /// The model: kernels, correction, log Z, and methods that take a [`Context`].
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The model and its record.
    pub fn into_parts(self) -> (Model, Option<Record>) {
        (self.model, self.record)
    }
}
