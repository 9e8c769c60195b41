//! One auto-encoder of digits or of a folder of pictures, trained by settings of one's own: what `minvel train vae|wae` does.
//!
//! **Source.** docs/math §4.6, §4.7. **Checked by** crates/cli/tests/program/train.rs, crates/cli/tests/program/pictures.rs.

mod choice;
mod quality;

pub use choice::{Choices, Chosen, choices};

use super::image_models::{Frame, ImageModels, Source, Trained, Variant, curves, given};
use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use crate::plot::{Dash, Figure};
use crate::report::Row;
use minvel::Error;
use minvel::autoencoder::{AutoencoderSettings, Evidence, ImportanceBound};
use minvel::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// A variational auto-encoder.
pub const VAE: Entry = Entry {
    name: "train-vae",
    source: "as in the paper's table 1",
    about: "A variational auto-encoder of digits or pictures, with codes on any manifold",
    settings: include_str!("../../experiments/train-vae.toml"),
    check: |config| Ok(Box::new(Single::check(config)?)),
    hidden: true,
};

/// A Wasserstein auto-encoder.
pub const WAE: Entry = Entry {
    name: "train-wae",
    source: "as in the paper's table 2",
    about: "A Wasserstein auto-encoder of digits or pictures, with codes on any manifold",
    settings: include_str!("../../experiments/train-wae.toml"),
    ..VAE
};

/// One auto-encoder, its images and how it is judged.
struct Single {
    settings: Settings,
    source: Source,
    cell: Variant,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    data: Data,
    seed: u64,
    seeds: usize,
    frame: Frame,
    model: AutoencoderSettings,
    evaluation: Evaluation,
}

/// What is learnt from.
#[derive(Deserialize)]
#[serde(from = "String")]
enum Data {
    Mnist,
    Cifar,
    /// Of pictures, or of MNIST's files.
    Folder(String),
}

impl From<String> for Data {
    fn from(name: String) -> Self {
        match name.as_str() {
            "" | "mnist" => Data::Mnist,
            "cifar10" => Data::Cifar,
            _ => Data::Folder(name),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Evaluation {
    images: usize,
    chains: usize,
    temperatures: usize,
    codes: usize,
    samples: usize,
}

/// −log p of test digits: by annealing, and the importance-weighted bound; means of each seed.
#[derive(Serialize, Deserialize)]
struct Scores {
    #[serde(with = "minvel::estimate::number::list")]
    annealed: Vec<f64>,
    bound: Option<Vec<f64>>,
}

/// Digits of one program: chains of this many fit any memory.
const GROUP: usize = 100;

impl Single {
    fn check(config: &Config) -> Result<Self, Error> {
        let settings: Settings = config.read()?;
        if settings.seeds == 0 {
            return Err(config.refuse("seeds", "must be positive"));
        }
        let Evaluation { images, chains, temperatures, samples, .. } = settings.evaluation;
        if images > 0 && (chains == 0 || temperatures < 2) {
            return Err(config.refuse("evaluation", "needs at least one chain and two temperatures, or no images"));
        }
        if samples == 1 {
            return Err(config.refuse("evaluation.samples", "must be at least 2, or 0 for none"));
        }
        if settings.frame.side > 0 {
            settings.frame.check(config)?;
        }
        let source = settings.source();
        let cell = settings.cell(source.image())?;
        Ok(Single { settings, source, cell })
    }

    fn scores(&self, image_models: &ImageModels, runner: &mut Runner) -> Result<Scores, Error> {
        let Single { settings: Settings { seed, ref evaluation, .. }, ref cell, .. } = *self;
        let Evaluation { images, chains, temperatures, codes, .. } = *evaluation;
        let folder = runner.folder().to_path_buf();
        runner.unit("likelihood", |context| {
            let (model, state) = (cell.model(), cell.state(&folder)?);
            let images = image_models.shown(images, model.decoder.likelihood)?;
            let means = |all: Vec<Vec<f64>>| -> Vec<f64> {
                all.iter().map(|own| -own.iter().sum::<f64>() / own.len() as f64).collect()
            };
            let annealing = Evidence::on(&model.latent, temperatures, chains, GROUP);
            let annealed = means(annealing.log_likelihoods(model, &state, &images, seed, context)?);
            let bound = match codes {
                0 => None,
                codes => ImportanceBound { codes, group: GROUP }.bounds(model, &state, &images, seed, context)?,
            };
            Ok(Scores { annealed, bound: bound.map(means) })
        })
    }
}

impl Settings {
    /// MNIST, CIFAR-10, or pictures that are to be framed.
    fn source(&self) -> Source {
        match &self.data {
            Data::Mnist => Source::Mnist(None),
            Data::Cifar => Source::Cifar(None),
            Data::Folder(folder) if self.frame.side > 0 => self.frame.of(folder),
            Data::Folder(folder) => Source::Mnist(given(folder)),
        }
    }

    fn cell(&self, image: [usize; 3]) -> Result<Variant, Error> {
        let AutoencoderSettings { latent, posterior, matching, .. } = &self.model;
        let title = format!("{posterior} posterior on {latent}, {} matching", matching.kind);
        let (name, settings, learning) = ("model".into(), self.model.clone(), self.model.learning(image)?);
        let (method, dash) = ("model".into(), Dash::Solid);
        Ok(Variant { name, title, method, dash, image, settings, learning, every: 0, shown: true })
    }
}

impl Experiment for Single {
    fn ready(&self) -> Result<(), Error> {
        ImageModels::new(self.source.clone(), self.settings.seed).check()
    }

    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        let Single { settings: Settings { seed, seeds, ref evaluation, .. }, ref source, ref cell } = *self;
        let image_models = ImageModels::new(source.clone(), seed);
        let Evaluation { images, samples, .. } = *evaluation;
        runner.plan(2 + usize::from(images > 0) + if samples > 0 { 2 } else { 0 });
        let trained: Trained = cell.train(runner, &image_models, (seed, seeds))?;
        let mut rows = quality::reconstruction(cell, &image_models, (seed, seeds), runner)?;
        let mut notes: Vec<String> = trained.training.divergences.iter().map(ToString::to_string).collect();
        if images > 0 {
            let estimate = |values: &[f64]| Estimate::of(values.iter().copied());
            let row = |name: &str, values: &[f64]| Row::new(name, estimate(values), seeds).unit("nats");
            let scores = self.scores(&image_models, runner)?;
            rows.push(row("−log p(x) of test images, by annealing", &scores.annealed));
            if let Some(bound) = &scores.bound {
                rows.push(row("−log p(x) of test images, importance-weighted bound", bound));
            }
        }
        if samples > 0 {
            let (found, more) = quality::fid(cell, &image_models, (samples, seed), runner)?;
            rows.extend(found);
            notes.extend(more);
        }
        let caption = "Loss of encoder and decoder, mean over seeds. Where a learnt energy is part of the loss, its \
                       log Z is missing: the trend is meaningful, the value is not.";
        let mut figures = trained.figures(cell);
        figures.push(Figure::new("learning", caption, curves("", &[(cell, &trained)])));
        notes.extend(image_models.notes()?);
        Ok(Findings { rows, figures, notes })
    }
}
