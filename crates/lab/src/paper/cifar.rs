//! Wasserstein auto-encoders of photographs with convolutional networks and spherical codes of several dimensions.
//!
//! **Statement.** Fréchet distance between features of samples and of test images, against the dimension of the code, along the
//! training and at its end. **Source.** wang2020mvl; docs/math §4.8, §4.9. **Conventions.** FeatureMap are the 2048 of
//! Inception; all test images are the reference, where the paper's code leaves out the last 16 of 10 000.
//! **Error.** ± is over seeds; methods share seeds, so that differences are paired by seed. Equivalence has a stated margin,
//! 5 % of the other's distance, and is decided by Student's test. The bias of so many samples is the same for all.
//! **Checked by** its own claims, tests/lab/experiment_cifar.rs.

use super::image_models::{Frame, ImageModels, Judging, Rates, Source, Trained, Variant, curves, divergences, given};
use crate::catalogue;
use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use crate::fid::{FeatureMap, Fid, Inception, Thumbnail};
use crate::image::cifar;
use crate::plot::{Axis, Dash, Figure, Lines, Plot, Series};
use crate::report::{Claim, Row, student};
use minvel::Error;
use minvel::autoencoder::{MatchKind, PosteriorKind};
use minvel::estimate::{Estimate, format};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// The line in the list.
pub const ENTRY: Entry = Entry {
    name: "cifar",
    source: "The paper's CIFAR-10 figure",
    about: "Fréchet distance of CIFAR-10 under Wasserstein auto-encoders of several dimensions: ours, adversarial and MMD",
    settings: include_str!("../../experiments/cifar.toml"),
    check: |config| Ok(Box::new(Sweep::check(config)?)),
    hidden: false,
};

/// Methods and dimensions of codes, on CIFAR-10 or, with a frame, on a folder of pictures.
pub(super) struct Sweep {
    settings: Settings,
    source: Source,
    /// With their dimension.
    cells: Vec<(usize, Variant)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    folder: String,
    frame: Option<Frame>,
    features: Judge,
    seed: u64,
    seeds: usize,
    latent: String,
    dimensions: Vec<usize>,
    methods: Vec<MatchKind>,
    samples: usize,
    every: u32,
    learning: Rates,
}

/// The features that judge.
#[derive(Deserialize)]
#[serde(from = "String")]
enum Judge {
    Thumbnail,
    Inception,
    /// Inception with weights of one's own.
    File(PathBuf),
}

impl From<String> for Judge {
    fn from(name: String) -> Self {
        match name.as_str() {
            "thumbnail" => Judge::Thumbnail,
            "inception" => Judge::Inception,
            _ => Judge::File(PathBuf::from(name)),
        }
    }
}

impl fmt::Display for Judge {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Judge::Thumbnail => f.write_str("thumbnail"),
            Judge::Inception => f.write_str("inception"),
            Judge::File(path) => path.display().fmt(f),
        }
    }
}

/// Ours is as good as another, or better, if it is surely not worse by more than this share of the other's distance.
const MARGIN: f64 = 0.05;

/// Distances of all seeds after some steps.
#[derive(Serialize, Deserialize)]
struct Measured {
    step: u32,
    distances: Vec<Fid>,
}

/// A cell of the figure.
struct Value {
    method: MatchKind,
    dimension: usize,
    measured: Vec<Measured>,
}

impl Value {
    /// At the end.
    fn fid(&self) -> Estimate {
        self.measured.last().map_or(Estimate::single(f64::NAN), |m| Fid::across(&m.distances))
    }

    fn title(&self) -> String {
        format!("{}, {} dimensions", self.method, self.dimension)
    }

    /// The mean over seeds of its distance less a multiple of another's, at the end.
    fn less(&self, factor: f64, other: &Value) -> Estimate {
        match (self.measured.last(), other.measured.last()) {
            (Some(own), Some(other)) => Fid::paired(&own.distances, factor, &other.distances),
            _ => Estimate::single(f64::NAN),
        }
    }

    /// The difference from another, with the claim that it is not worse beyond the margin.
    fn beside(&self, other: &Value) -> Row {
        let (difference, excess) = (self.less(1.0, other), self.less(1.0 + MARGIN, other));
        let freedom = excess.count.saturating_sub(1);
        let sigmas = student::critical(student::CONFIDENCE, freedom);
        let [low, high] = [-1.0, 1.0].map(|sign| {
            let end = difference.mean + sign * sigmas * difference.std_error;
            if end.is_nan() { "unknown".to_string() } else { format::plain((10.0 * end).round() / 10.0) }
        });
        let (name, percent) = (format!("FID, {} minus {}", self.title(), other.method), 100.0 * MARGIN);
        let claim = format!(
            "at {} dimensions {} is not worse than {} by more than {percent} %",
            self.dimension, self.method, other.method
        );
        let rule = format!(
            "upper end of the 95 % interval of ours − {}·other below 0, paired by seed ({}; 95 % interval of the \
             difference {low} to {high})",
            1.0 + MARGIN,
            student::words(excess.mean, excess.std_error, freedom)
        );
        let holds = Claim::SurelyBelow { limit: 0.0, sigmas }.holds(excess.mean, excess.std_error);
        Row::new(&name, difference, difference.count as usize).decided(&claim, &rule, holds)
    }
}

impl Sweep {
    pub(super) fn check(config: &Config) -> Result<Self, Error> {
        let this: Settings = config.read()?;
        let demand = |key: &str, ok: bool, what: &str| if ok { Ok(()) } else { Err(config.refuse(key, what)) };
        demand("seeds", this.seeds > 0, "must be positive")?;
        demand("samples", this.samples > 1, "must be at least 2")?;
        demand("dimensions", !this.dimensions.is_empty(), "needs at least one dimension")?;
        demand("dimensions", this.dimensions.iter().all(|&n| n > 0), "must be positive")?;
        demand("methods", !this.methods.is_empty(), "needs at least one method")?;
        demand("learning.filters", !this.learning.is_dense(), "needs at least one number, each at least 1")?;
        if let Some(frame) = this.frame {
            frame.check(config)?;
        }
        let source = this.source();
        let mut cells = vec![];
        for &dimension in &this.dimensions {
            for &method in &this.methods {
                cells.push((dimension, this.cell(method, dimension, source.image())?));
            }
        }
        Ok(Sweep { settings: this, source, cells })
    }

    /// The network that judges.
    fn judge(&self) -> Result<Box<dyn FeatureMap>, Error> {
        let image @ [height, width, _] = self.source.image();
        Ok(match &self.settings.features {
            Judge::Thumbnail => Box::new(Thumbnail::of(image)),
            Judge::Inception => Box::new(Inception::find()?.of([height, width])),
            Judge::File(path) => Box::new(Inception::read(path)?.of([height, width])),
        })
    }

    fn judging(&self) -> Judging {
        Judging { samples: self.settings.samples, seed: self.settings.seed }
    }

    /// The distance of each seed's samples from the test images, for each model that was kept.
    fn distances(&self, cell: &Variant, reference: &Path, runner: &mut Runner) -> Result<Vec<Measured>, Error> {
        let folder = runner.folder().to_path_buf();
        runner.unit(&format!("{}.fid", cell.name), |context| {
            let (judge, kept) = (self.judge()?, cell.kept());
            let seeds = self.settings.seeds;
            context.begin("fid", (kept.len() * seeds) as u64, 0);
            let mut measured: Vec<Measured> = vec![];
            for step in kept {
                let model = (cell, cell.state_after(&folder, step)?);
                let before = measured.len() * seeds;
                let distances = self.judging().distances(&*judge, reference, model, context, before)?;
                measured.push(Measured { step, distances });
            }
            context.end();
            Ok(measured)
        })
    }
}

impl Settings {
    fn source(&self) -> Source {
        match self.frame {
            None => Source::Cifar(given(&self.folder)),
            Some(frame) => frame.of(&self.folder),
        }
    }

    fn cell(&self, method: MatchKind, dimension: usize, image: [usize; 3]) -> Result<Variant, Error> {
        let settings = self.learning.settings((&self.latent, dimension), PosteriorKind::Point, method)?;
        let (name, title) = (format!("{method}-{dimension}"), format!("{method}, {dimension} dimensions"));
        let (method, dash, learning) = (method.to_string(), self.dash(dimension), settings.learning(image)?);
        Ok(Variant { name, title, method, dash, image, settings, learning, every: self.every, shown: true })
    }

    /// Dimensions differ in how lines are broken.
    fn dash(&self, dimension: usize) -> Dash {
        let rank = self.dimensions.iter().position(|&d| d == dimension).unwrap_or(0);
        [Dash::Solid, Dash::Dashed, Dash::Dotted][rank % 3]
    }
}

impl Experiment for Sweep {
    fn ready(&self) -> Result<(), Error> {
        let Settings { frame, folder, features, seed, .. } = &self.settings;
        if frame.is_some() && folder.is_empty() {
            return Err(Error::config("`folder`: give a folder of pictures with `--set folder=DIR`"));
        }
        let no_images = matches!(self.source, Source::Cifar(None)) && !cifar::is_here();
        let no_weights = matches!(features, Judge::Inception) && Inception::home().is_err();
        let missing = [("cifar10", no_images), ("inception", no_weights)];
        let missing: Vec<&str> = missing.into_iter().filter(|(_, missing)| *missing).map(|(name, _)| name).collect();
        catalogue::refuse_without(&missing)?;
        self.judge()?;
        ImageModels::new(self.source.clone(), *seed).check()
    }

    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        let Settings { seed, seeds, .. } = self.settings;
        let image_models = ImageModels::new(self.source.clone(), seed);
        runner.plan(1 + 2 * self.cells.len());
        let reference = self.judging().reference("reference", || self.judge(), &image_models, runner);
        let reference = runner.if_finished(reference)?;
        let (mut cells, mut values) = (vec![], vec![]);
        for &(dimension, ref cell) in &self.cells {
            let trained = cell.train(runner, &image_models, (seed, seeds));
            let Some(trained) = runner.if_finished(trained)? else { continue };
            let Some(reference) = &reference else { continue };
            let measured = self.distances(cell, reference, runner);
            let Some(measured) = runner.if_finished(measured)? else { continue };
            values.push(Value { method: cell.settings.matching.kind, dimension, measured });
            cells.push((cell.clone(), trained));
        }
        let mut findings = self.findings(&cells, &values);
        findings.notes.extend(image_models.notes()?);
        Ok(findings)
    }
}

impl Sweep {
    fn findings(&self, cells: &[(Variant, Trained)], values: &[Value]) -> Findings {
        let Settings { seeds, ref features, samples, ref learning, .. } = self.settings;
        let mut rows: Vec<Row> =
            values.iter().map(|v| Row::new(&format!("FID, {}", v.title()), v.fid(), seeds)).collect();
        let is_ours = |v: &&Value| v.method == MatchKind::Velocity;
        for ours in values.iter().filter(is_ours) {
            for other in values.iter().filter(|v| v.dimension == ours.dimension && !is_ours(v)) {
                rows.push(ours.beside(other));
            }
        }
        let pairs: Vec<(&Variant, &Trained)> = cells.iter().map(|(c, t)| (c, t)).collect();
        let caption =
            "Loss of encoder and decoder, means over seeds; the matching term is scaled differently in each method.";
        let mut figures = vec![self.against_dimension(values)];
        if values.iter().any(|v| v.measured.len() > 1) {
            figures.push(self.along(values));
        }
        figures.push(Figure::new("learning", caption, curves("", &pairs)));
        figures.extend(cells.iter().flat_map(|(cell, trained)| trained.figures(cell)));
        let mut notes = vec![
            format!(
                "FID with the features `{features}`: {samples} samples of each model against all test images; {} \
                 iterations with batches of {}.",
                learning.iterations, learning.batch
            ),
            "± is the standard error over seeds; methods share seeds, and differences are paired by seed.".into(),
            format!(
                "The margin of equivalence is {} % of the other's distance. A claim that fails is undecided, unless the \
                 interval lies above the margin: few seeds have wide intervals (with two, 12.7 standard errors).",
                100.0 * MARGIN
            ),
        ];
        notes.extend(divergences(cells));
        Findings { rows, figures, notes }
    }

    fn against_dimension(&self, values: &[Value]) -> Figure {
        let mut lines = Lines::new("", Axis::log("dimension of the code"), Axis::linear("Fréchet distance"));
        for method in &self.settings.methods {
            let (own, name) = (values.iter().filter(|v| v.method == *method), method.to_string());
            lines = lines.with(Series::new(&name, &name).estimates(own.map(|v| (v.dimension as f64, v.fid()))));
        }
        let caption = "FID at the end of training against the dimension of the code; bands are 95 % intervals of the mean over seeds.";
        Figure::new("dimension", caption, Plot::Lines(lines))
    }

    fn along(&self, values: &[Value]) -> Figure {
        let mut lines = Lines::new("", Axis::linear("iterations"), Axis::linear("Fréchet distance"));
        for value in values {
            let points = value.measured.iter().map(|m| (f64::from(m.step), Fid::across(&m.distances)));
            let series = Series::new(&value.title(), &value.method.to_string());
            let series = series.dashed(self.settings.dash(value.dimension));
            lines = lines.with(series.estimates(points));
        }
        Figure::new("progress", "FID during training.", Plot::Lines(lines))
    }
}
