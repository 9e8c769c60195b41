//! One auto-encoder of digits or of a folder of pictures, trained by settings of one's own: what `minvel train vae|wae` does.
//!
//! **Source.** docs/math §4.6, §4.7. **Checked by** crates/cli/tests/train.rs, crates/cli/tests/pictures.rs.

mod choice;
mod quality;

pub use choice::{Choices, Chosen, choices};

use super::image_models::{Frame, ImageModels, Source, Trained, Variant, curves, given};
use super::{Config, Entry, Experiment, Findings, Runner};
use crate::plot::Dash;
use crate::report::{Figure, Row};
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Single {
    data: String,
    seed: u64,
    seeds: usize,
    frame: Frame,
    model: AutoencoderSettings,
    evaluation: Evaluation,
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
        let this: Single = config.read()?;
        if this.seeds == 0 {
            return Err(config.refuse("seeds", "must be positive"));
        }
        if this.evaluation.images > 0 && (this.evaluation.chains == 0 || this.evaluation.temperatures < 2) {
            return Err(config.refuse("evaluation", "needs at least one chain and two temperatures, or no images"));
        }
        if this.evaluation.samples == 1 {
            return Err(config.refuse("evaluation.samples", "must be at least 2, or 0 for none"));
        }
        if this.frame.side > 0 {
            this.frame.check(config)?;
        }
        this.cell().learning()?;
        Ok(this)
    }

    /// MNIST, CIFAR-10, or pictures that are to be framed.
    fn source(&self) -> Source {
        match self.data.as_str() {
            "mnist" => Source::Mnist(None),
            "cifar10" => Source::Cifar(None),
            folder if self.frame.side > 0 => self.frame.of(folder),
            folder => Source::Mnist(given(folder)),
        }
    }

    fn cell(&self) -> Variant {
        let AutoencoderSettings { latent, posterior, matching, .. } = &self.model;
        let title = format!("{posterior} posterior on {latent}, {} matching", matching.kind);
        let (name, image, settings) = ("model".into(), self.source().image(), self.model.clone());
        Variant { name, title, method: "model".into(), dash: Dash::Solid, image, settings, every: 0, shown: true }
    }

    fn scores(&self, cell: &Variant, image_models: &ImageModels, runner: &mut Runner) -> Result<Scores, Error> {
        let Evaluation { images, chains, temperatures, codes, .. } = self.evaluation;
        let folder = runner.folder().to_path_buf();
        runner.unit("likelihood", |context| {
            let (model, state) = (cell.model()?, cell.state(&folder)?);
            let images = image_models.shown(images, model.decoder.likelihood)?;
            let means = |all: Vec<Vec<f64>>| -> Vec<f64> {
                all.iter().map(|own| -own.iter().sum::<f64>() / own.len() as f64).collect()
            };
            let annealing = Evidence::on(&model.latent, temperatures, chains, GROUP);
            let annealed = means(annealing.log_likelihoods(&model, &state, &images, self.seed, context)?);
            let bound = match codes {
                0 => None,
                codes => ImportanceBound { codes, group: GROUP }.bounds(&model, &state, &images, self.seed, context)?,
            };
            Ok(Scores { annealed, bound: bound.map(means) })
        })
    }
}

impl Experiment for Single {
    fn ready(&self) -> Result<(), Error> {
        ImageModels::new(self.source(), self.seed).check()
    }

    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        let image_models = ImageModels::new(self.source(), self.seed);
        let cell = self.cell();
        let Evaluation { images, samples, .. } = self.evaluation;
        runner.plan(2 + usize::from(images > 0) + if samples > 0 { 2 } else { 0 });
        let trained: Trained = cell.train(runner, &image_models, (self.seed, self.seeds))?;
        let mut rows = quality::reconstruction(&cell, &image_models, (self.seed, self.seeds), runner)?;
        let mut notes: Vec<String> = trained.training.divergences.iter().map(ToString::to_string).collect();
        if images > 0 {
            let estimate = |values: &[f64]| Estimate::of(values.iter().copied());
            let row = |name: &str, values: &[f64]| Row::new(name, estimate(values), self.seeds).unit("nats");
            let scores = self.scores(&cell, &image_models, runner)?;
            rows.push(row("−log p(x) of test images, by annealing", &scores.annealed));
            if let Some(bound) = &scores.bound {
                rows.push(row("−log p(x) of test images, importance-weighted bound", bound));
            }
        }
        if samples > 0 {
            let (found, more) = quality::fid(&cell, &image_models, (samples, self.seed), runner)?;
            rows.extend(found);
            notes.extend(more);
        }
        let caption = "Loss of encoder and decoder, mean over seeds. Where a learnt energy is part of the loss, its \
                       log Z is missing: the trend is meaningful, the value is not.";
        let mut figures = trained.figures(&cell);
        figures.push(Figure::new("learning", caption, curves("", &[(&cell, &trained)])));
        notes.extend(image_models.notes()?);
        Ok(Findings { rows, figures, notes })
    }
}
