//! The door: points in, a normalised density out.

use super::crossvalidation;
use super::evaluation::Evaluation;
use super::leak::Leak;
use super::model::Model;
use super::procedure::{Procedure, Record};
use super::rows::{About, Given};
use super::settings::{FewSettings, FitSettings, Geometry, Goal, LearningSettings, NetworkSettings};
use super::sketch::Sketch;
use super::split::{Part, Split, folds_of, leaked_share};
use super::uncertainty::Uncertainty;
use crate::density::{Density, LocalSettings, Sample};
use crate::estimate::Estimate;
use crate::train::Context;
use crate::{Device, Error, Manifold};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::path::Path;
use std::sync::Arc;

/// The fewest points that a density is fitted to: without one of them there are still two, by which a width is chosen.
pub const LEAST_POINTS: usize = 3;
/// The fewest training points of a split: part of them are for validation where none are given.
const LEAST_TRAINING: usize = 5;

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
    pub(super) manifold: Arc<dyn Manifold>,
    pub(super) settings: FitSettings,
    threads: usize,
    device: Device,
    context: Option<&'a Context<'a>>,
    about: About,
    split: Option<Vec<Part>>,
}

impl Fit<'static> {
    /// A density on a manifold, with the default settings.
    pub fn on(manifold: impl IntoManifold) -> Self {
        let (settings, device) = (FitSettings::default(), Context::bare().device);
        let (about, split) = (About::default(), None);
        Fit { manifold: manifold.into_manifold(), settings, threads: 0, device, context: None, about, split }
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

    /// What each row stands for, up to a factor: weight 2 is the row twice, and weight 0 is no row. Default: all are equal.
    ///
    /// ```
    /// use minvel::fit::Fit;
    /// use minvel::manifold::Euclidean;
    /// let xs: Vec<f64> = (0..20).map(|k| (k as f64).sin()).collect();
    /// let weights: Vec<f64> = (0..20).map(|k| f64::from(k % 3)).collect();
    /// let repeated: Vec<f64> = (0..20).flat_map(|k| vec![xs[k]; k % 3]).collect();
    /// let [one, other] = [Fit::on(Euclidean(1)).weights(&weights).points(&xs)?, Fit::on(Euclidean(1)).points(&repeated)?];
    /// assert!((one.log_density(&[0.3])?[0] - other.log_density(&[0.3])?[0]).abs() < 1e-9);
    /// # Ok::<(), minvel::Error>(())
    /// ```
    pub fn weights(mut self, weights: &[f64]) -> Self {
        self.about.weights = Some(weights.to_vec());
        self
    }

    /// The group of each row, by a label: rows of a group stay together in every split and fold, and errors are those over groups.
    pub fn groups<G: Hash + Eq>(mut self, labels: &[G]) -> Self {
        let mut numbers = HashMap::new();
        let number = |label| {
            let next = numbers.len() as u32;
            *numbers.entry(label).or_insert(next)
        };
        self.about.groups = Some(labels.iter().map(number).collect());
        self
    }

    /// Rows within this geodesic distance of each other, in the units of the manifold, and all that they are linked to stay together
    /// as a group.
    pub fn block(mut self, distance: f64) -> Self {
        self.about.block = Some(distance);
        self
    }

    /// What each row is for, in place of a split by the seed; few rows are then not cross-validated either. Without validation rows a
    /// tenth of the training rows serve as such.
    pub fn split(mut self, parts: &[Part]) -> Self {
        self.split = Some(parts.to_vec());
        self
    }

    /// Fits the density to points, row-major in the coordinates of the manifold; they are checked first.
    ///
    /// Rows with equal points are one point that counts as many times: they stay together in splits and folds.
    pub fn points(&self, points: &[f64]) -> Result<Fitted, Error> {
        let own = self.own_context();
        let context = self.context.unwrap_or(&own);
        let given = self.given(points, context)?;
        let rows = points.len() / self.manifold.ambient();
        let (model, record) = match &self.split {
            Some(parts) => self.learn_by(&given, self.parts(parts, rows)?, points, context)?,
            None => self.learn(&given, points, context)?,
        };
        Ok(Fitted { model, record: Some(record) })
    }

    /// Fits the density to rows of which there is a summary: the model depends on these rows, the settings and the plan of the summary,
    /// and not on the parts that the rows came in.
    ///
    /// Of few rows, which a summary keeps all, this is [`Fit::points`] of them, in the order of their hashes. Weights, groups and a split are refused.
    pub fn sketch(&self, sketch: &Sketch) -> Result<Fitted, Error> {
        if self.about.is_some() || self.split.is_some() {
            return Err(Error::config(
                "a summary of rows has no weights, groups, blocks or given split: fit the rows themselves",
            ));
        }
        let own = self.own_context();
        let context = self.context.unwrap_or(&own);
        if let Some((points, counts)) = sketch.all_rows() {
            let weights: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
            return self.clone().weights(&weights).context(context).points(&points);
        }
        if let Some((key, what)) = self.settings.fault() {
            return Err(Error::config(format!("`{key}` {what}")));
        }
        let (model, record) = self.learn_sketch(sketch, context)?;
        Ok(Fitted { model, record: Some(record) })
    }

    fn own_context(&self) -> Context<'static> {
        let mut own = Context::of_threads(self.threads);
        own.device = self.device;
        own
    }

    /// An error where [`Fit::points`] would refuse the points, or what is said about them, before it learns anything.
    pub fn check(&self, points: &[f64]) -> Result<(), Error> {
        let given = self.given(points, self.context.unwrap_or(&Context::bare()))?;
        if let Some(parts) = &self.split {
            self.parts(parts, points.len() / self.manifold.ambient())?;
        }
        enough(&given.distinct(&given.rows).sample, self.manifold.ambient(), LEAST_POINTS)
    }

    /// The rows that count, all checked.
    fn given<'p>(&self, points: &'p [f64], context: &Context) -> Result<Given<'p>, Error> {
        if let Some((key, what)) = self.settings.fault() {
            return Err(Error::config(format!("`{key}` {what}")));
        }
        check(&*self.manifold, points)?;
        let rows = points.len() / self.manifold.ambient();
        if rows < LEAST_POINTS {
            return Err(Error::config(format!("a density needs at least {LEAST_POINTS} points, not {rows}")));
        }
        self.settings.check(&*self.manifold, rows)?;
        Given::new(&self.manifold, points, &self.about, context)
    }

    fn learn(&self, given: &Given, points: &[f64], context: &Context) -> Result<(Model, Record), Error> {
        let Fit { manifold, settings, .. } = self;
        let split = {
            let (all, m) = (given.distinct(&given.rows), manifold.ambient());
            enough(&all.sample, m, LEAST_POINTS)?;
            if all.sample.rows(m) < settings.few.rows {
                return crossvalidation::learn(manifold, settings, &all.sample, context);
            }
            let Split { train, validation, test } = Split::of(&all.sample, m, settings.seed);
            let [train, validation, test] = [train, validation, test].map(|part| all.given(&part));
            Split { train, validation, test }
        };
        self.learn_by(given, split, points, context)
    }

    /// Learns from rows whose parts are known.
    fn learn_by(
        &self,
        given: &Given,
        split: Split,
        points: &[f64],
        context: &Context,
    ) -> Result<(Model, Record), Error> {
        let Fit { manifold, settings, .. } = self;
        let m = manifold.ambient();
        let [train, validation, test] = [&split.train, &split.validation, &split.test].map(|part| given.distinct(part));
        enough(&train.sample, m, LEAST_TRAINING)?;
        let (mut train, mut validation, test) = (train, validation, test.sample);
        let mut split = split;
        if validation.sample.points().is_empty() {
            let parts = folds_of(&train.sample, m, 10, settings.seed);
            split.validation = train.given(&parts[0]);
            split.train = train.given(&parts[1..].concat());
            (train, validation) = (given.distinct(&split.train), given.distinct(&split.validation));
        }
        let (train, validation) = (train.sample, validation.sample);
        let (model, history) = Model::learn(manifold.clone(), settings, &train, &validation, context)?;
        let evaluation = Evaluation::of(&model, &test, settings.seed, context)?;
        let leak = Leak::of(manifold, settings, &train, Some(&test), context)?;
        let [train, validation, test] = [train, validation, test].map(|part| part.rows(m));
        let procedure = Procedure::Split { train, validation, test };
        let leaked_share = leaked_share(points, m, &split);
        Ok((model, Record { history, evaluation, procedure, leaked_share, leak, split: Some(split) }))
    }

    /// The split that was given.
    fn parts(&self, parts: &[Part], rows: usize) -> Result<Split, Error> {
        if parts.len() != rows {
            let what = format!("there are {} parts for {rows} rows: give one for each row", parts.len());
            return Err(Error::config(what));
        }
        let split = Split::by_parts(parts);
        for (name, part) in [("training", &split.train), ("test", &split.test)] {
            let weighed = |row: &usize| self.about.weights.as_ref().is_none_or(|weights| weights[*row] > 0.0);
            if !part.iter().any(weighed) {
                return Err(Error::config(format!("the given split has no {name} rows")));
            }
        }
        Ok(split)
    }
}

/// An error where there are fewer different points, or groups, than a density needs.
fn enough(sample: &Sample, ambient: usize, least: usize) -> Result<(), Error> {
    let rows = sample.rows(ambient);
    if rows < least {
        let of = if least == LEAST_TRAINING { "training points of a split" } else { "points" };
        let what = format!("a density needs at least {least} different {of} of positive weight, not {rows}");
        return Err(Error::config(what));
    }
    let groups = match sample.groups() {
        [] => rows,
        groups => groups.iter().collect::<HashSet<&u32>>().len(),
    };
    if groups < least {
        return Err(Error::config(format!(
            "the {rows} points are in {groups} groups, and at least {least} are needed to judge a model by other groups: group by less, or block by a shorter distance"
        )));
    }
    Ok(())
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

    /// log p at points, and the standard error of each by a bootstrap over groups of the training rows, infinite where there are no data
    /// ([`super::Uncertainty`]).
    pub fn log_density_and_error(&self, points: &[f64]) -> Result<(Vec<f64>, Vec<f64>), Error> {
        let (logs, context) = (self.log_density(points)?, Context::bare());
        Ok((logs, Uncertainty::of(&self.model, &context)?.errors(points, &context)?))
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
