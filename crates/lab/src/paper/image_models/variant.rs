//! Auto-encoders of one kind, trained side by side.

use super::ImageModels;
use super::pictures::Pictures;
use crate::experiment::Runner;
use crate::plot::{Axis, Dash, Figure, Lines, Plot, Series};
use minvel::Error;
use minvel::autoencoder::{Autoencoder, AutoencoderLearning, AutoencoderSettings, Codec, Latent, ModelCard};
use minvel::manifold::Space;
use minvel::train::{Checkpoint, Context, Learner, Look, Trainer, Training};
use minvel_engine::{Graph, State};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Looks at the loss of a training.
const LOOKS: u32 = 40;

/// One kind of auto-encoder.
#[derive(Clone, Debug)]
pub(in crate::paper) struct Variant {
    /// Part of the names of its units and files.
    pub name: String,
    /// In words.
    pub title: String,
    /// What decides its colour.
    pub method: String,
    /// How its lines are broken.
    pub dash: Dash,
    /// Height, width and channels of its images.
    pub image: [usize; 3],
    /// How it is made and learnt: as written,
    pub settings: AutoencoderSettings,
    /// and as built for its images.
    pub learning: AutoencoderLearning,
    /// Steps of the training between two models that are kept, beside the last; 0 for none.
    pub every: u32,
    /// Whether the report shows what it makes of images.
    pub shown: bool,
}

/// What a training leaves for the report; the parameters are in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::paper) struct Trained {
    /// Learning curve and divergences.
    pub training: Training,
    /// What it makes of images, where the report shows it.
    pictures: Option<Pictures>,
}

impl Variant {
    /// The model, without what was learnt beside it.
    pub fn model(&self) -> &Autoencoder {
        &self.learning.model
    }

    pub(super) fn pixels(&self) -> usize {
        self.image.iter().product()
    }

    /// The file of the model after so many steps; the last has no number.
    fn file(&self, folder: &Path, step: u32) -> PathBuf {
        let number = if step == self.settings.iterations { String::new() } else { format!("-{step}") };
        folder.join("models").join(format!("{}{number}.safetensors", self.name))
    }

    /// Steps after which the model is kept, the last of all at the end.
    pub fn kept(&self) -> Vec<u32> {
        let last = self.settings.iterations;
        let between = (1..).map(|k| k * self.every).take_while(|step| self.every > 0 && *step < last);
        between.chain([last]).collect()
    }

    /// The trained parameters of all seeds.
    pub fn state(&self, folder: &Path) -> Result<State<f32>, Error> {
        self.state_after(folder, self.settings.iterations)
    }

    /// The parameters of all seeds after so many steps, one of [`Variant::kept`].
    pub fn state_after(&self, folder: &Path, step: u32) -> Result<State<f32>, Error> {
        let path = self.file(folder, step);
        let found = Checkpoint::read_if_there(&path)?.map(|checkpoint| checkpoint.state);
        let what = format!(
            "is missing, although the training is finished: delete units/{}.train.json to repeat it",
            self.name
        );
        found.ok_or_else(|| Error::content(&path, what))
    }

    /// One of the trained models, by the number of its seed, ready for use.
    pub fn codec(&self, folder: &Path, replica: usize) -> Result<Codec, Error> {
        Codec::read(&self.file(folder, self.settings.iterations), replica)
    }

    fn card(&self, image_models: &ImageModels, images: usize, seed: u64) -> ModelCard {
        let (settings, image, source) = (self.settings.clone(), self.image, image_models.source());
        let version = env!("CARGO_PKG_VERSION").to_string();
        ModelCard { version, settings, image, crop: source.crop(), data: source.name(), images, seed }
    }

    /// Trains all seeds side by side, as a unit of the runner.
    pub fn train(
        &self,
        runner: &mut Runner,
        image_models: &ImageModels,
        (seed, seeds): (u64, usize),
    ) -> Result<Trained, Error> {
        let folder = runner.folder().to_path_buf();
        runner.unit(&format!("{}.train", self.name), |context| {
            minvel::file::create_folder(&folder.join("models"))?;
            let training = self.learn(image_models, (seed, seeds), &folder, context)?;
            let show = || Pictures::of(self, &mut self.codec(&folder, 0)?, image_models, seed, context);
            Ok(Trained { training, pictures: self.shown.then(show).transpose()? })
        })
    }

    /// Trains from one model that is kept to the next.
    fn learn(
        &self,
        image_models: &ImageModels,
        (seed, seeds): (u64, usize),
        folder: &Path,
        context: &Context,
    ) -> Result<Training, Error> {
        let (learning, images) = (&self.learning, image_models.train()?);
        let card = self.card(image_models, images.len() / self.pixels(), seed);
        let g = Graph::new();
        let step = learning.step(g.input_bytes("images", [images.len() / self.pixels(), self.pixels()]));
        let mut learner = Learner::from_state(&g, &step, learning.start(seeds, seed), seed, context)?;
        learner = learner.bytes("images", images);
        let (mut whole, mut from) = (Training::default(), 0);
        for steps in self.kept() {
            let name =
                if steps == self.settings.iterations { self.name.clone() } else { format!("{}-{steps}", self.name) };
            let block = (self.settings.iterations / LOOKS).max(1);
            let trainer = Trainer { from, block, ..Trainer::new(&name, steps, seed) };
            let training = learner.run(&trainer, context)?;
            whole.looks.extend(training.looks);
            let known: Vec<usize> = whole.divergences.iter().map(|d| d.replica).collect();
            whole.divergences.extend(training.divergences.into_iter().filter(|d| !known.contains(&d.replica)));
            self.keep(&card, learner.state(), folder, steps, context)?;
            from = steps;
        }
        Ok(whole)
    }

    /// Writes what was learnt, without what the optimiser needs.
    fn keep(
        &self,
        card: &ModelCard,
        state: &State<f32>,
        folder: &Path,
        step: u32,
        context: &Context,
    ) -> Result<(), Error> {
        let mut kept = State::new(state.replicas());
        for p in [self.learning.parameters(), self.learning.followers()].concat() {
            let values = state.get(&p.name).expect("it was trained");
            kept.set(&p.name, values, values.len() / state.replicas());
        }
        let purpose = context.purpose(&self.name);
        Checkpoint::new(kept, step, &purpose, card).write(&self.file(folder, step))
    }
}

impl Trained {
    /// What one looks at: samples, reconstructions, paths, the sphere.
    pub fn figures(&self, cell: &Variant) -> Vec<Figure> {
        self.pictures.as_ref().map_or(vec![], |pictures| pictures.figures(cell))
    }
}

/// Which seeds of which cells left the finite numbers, in words.
pub(in crate::paper) fn divergences(cells: &[(Variant, Trained)]) -> Vec<String> {
    let of_cell = |(cell, trained): &(Variant, Trained)| -> Vec<String> {
        trained.training.divergences.iter().map(|d| format!("{}: {d}", cell.title)).collect()
    };
    cells.iter().flat_map(of_cell).collect()
}

/// Of codes in flat space or not: how lines are broken where both are shown.
pub(in crate::paper) fn dash_of(latent: &Latent) -> Dash {
    if let Some(Space::Euclidean(_)) = latent.space() { Dash::Dashed } else { Dash::Solid }
}

/// Learning curves of several cells.
pub(in crate::paper) fn curves(title: &str, cells: &[(&Variant, &Trained)]) -> Plot {
    let x = Axis::linear("iterations");
    let mut lines = Lines::new(title, x, Axis::linear("loss of encoder and decoder on a batch (nats)"));
    for (cell, trained) in cells {
        let mean = |look: &Look| (f64::from(look.step), look.loss.iter().sum::<f64>() / look.loss.len() as f64);
        let series = Series::new(&cell.title, &cell.method).dashed(cell.dash);
        lines = lines.with(series.values(trained.training.looks.iter().map(mean)));
    }
    Plot::Lines(lines)
}
