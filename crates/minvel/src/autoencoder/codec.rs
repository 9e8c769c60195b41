//! A trained auto-encoder in use: images to codes, codes to images, and new images.
//!
//! **Statement.** encode: z ~ q(z|x), or the mean of q. decode: the mean of p(x|z). sample: decode(z), z of the prior.
//! **Conventions.** Images are bytes `[count, height, width, channels]`, codes rows of coordinates of the latent manifold. All
//! randomness depends on the seed, the replica and the row alone: the figures of a training show what [`Codec::sample`] and
//! [`Codec::encode`] give for the seed of its [`ModelCard`].
//! **Error.** Rounding to bytes. **Checked by** tests/theory/codec.rs, crates/cli/tests/program/codes.rs.

use super::{Autoencoder, AutoencoderLearning, AutoencoderSettings, Views};
use crate::Error;
use crate::train::{Checkpoint, Context};
use minvel_engine::State;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What a model file says beside the parameters: all that is needed to build the model again, and what it was trained on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCard {
    /// Version of minvel that trained it.
    pub version: String,
    /// How it is made and was trained.
    pub settings: AutoencoderSettings,
    /// Height, width and channels of an image.
    pub image: [usize; 3],
    /// Side of the square that is cut out of the middle of a picture before it is scaled to that size; without it, the largest.
    pub crop: Option<usize>,
    /// What it was trained on, in words.
    pub data: String,
    /// Training images.
    pub images: usize,
    /// Seed of its training and its figures.
    pub seed: u64,
}

/// One trained auto-encoder.
#[derive(Clone, Debug)]
pub struct Codec {
    /// What its file says.
    pub card: ModelCard,
    /// The model.
    pub model: Autoencoder,
    /// Steps of its training.
    pub steps: u32,
    /// Which of the trainings side by side, from 0.
    pub replica: usize,
    /// How many of them the file holds.
    pub replicas: usize,
    learning: AutoencoderLearning,
    state: State<f32>,
}

/// Which code of an image is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A draw of the posterior, by its number from 0; a point posterior has the same code in all draws.
    Draw(u32),
    /// The mean of the posterior; on a sphere its direction.
    Mean,
}

impl Codec {
    /// Reads one of the trainings side by side of a model file.
    pub fn read(path: &Path, replica: usize) -> Result<Codec, Error> {
        let file = Checkpoint::<f32>::read(path).map_err(|error| match Checkpoint::<f64>::read(path) {
            Ok(other) => Error::content(path, format!("holds {}, not an auto-encoder", other.purpose)),
            Err(_) => error,
        })?;
        let old = |error: Error| {
            let what = match file.note::<AutoencoderSettings>(path) {
                Ok(_) => "was written by an older version of minvel, without the image size: train it again",
                Err(_) => return Error::content(path, format!("is not a trained auto-encoder ({error})")),
            };
            Error::content(path, what)
        };
        let card: ModelCard = file.note(path).map_err(old)?;
        Codec::of(card, &file.state, replica, file.step).map_err(|error| match error {
            Error::Config(what) => Error::content(path, what),
            error => error,
        })
    }

    /// One of the trainings side by side of a state.
    pub fn of(card: ModelCard, all: &State<f32>, replica: usize, steps: u32) -> Result<Codec, Error> {
        let replicas = all.replicas();
        if replica >= replicas {
            let what = match replicas {
                1 => "it holds one training: omit --replica".to_string(),
                n => format!("it holds {n} trainings: --replica must be a number from 1 to {n}"),
            };
            return Err(Error::config(what));
        }
        let [height, width, channels] = card.image;
        if height * width == 0 || (channels != 1 && channels != 3) || card.image.iter().any(|n| *n > 1 << 16) {
            return Err(Error::config(format!("the model is damaged: it has images of shape {:?}", card.image)));
        }
        let learning = card.settings.learning(card.image)?;
        let number = all.numbers().start + replica as u32;
        let mut state = State::of_replicas(number..number + 1);
        for p in learning.model.parameters() {
            let len = p.dims.iter().product::<usize>();
            let values = all.get(&p.name).filter(|values| values.len() == len * replicas);
            let missing = || Error::config(format!("the model is damaged: it has no `{}` of {len} numbers", p.name));
            state.set(&p.name, &values.ok_or_else(missing)?[replica * len..][..len], len);
        }
        let model = learning.model.clone();
        Ok(Codec { card, model, steps, replica, replicas, learning, state })
    }

    /// Bytes of an image.
    pub fn pixels(&self) -> usize {
        self.card.image.iter().product()
    }

    /// Numbers of encoder, of decoder, and of what was learnt beside them.
    pub fn parameters(&self) -> [usize; 3] {
        let count = |all: Vec<crate::network::Parameter>| all.iter().map(|p| p.dims.iter().product::<usize>()).sum();
        let [encoder, decoder]: [usize; 2] =
            [count(self.model.encoder.parameters()), count(self.model.decoder.parameters())];
        let all: usize = count(self.learning.parameters());
        [encoder, decoder, all - encoder - decoder]
    }

    /// Codes of images in bytes, `[count, m]`; an error if a mean is asked for that is not known.
    pub fn encode(&mut self, images: &[u8], reading: Reading, seed: u64, context: &Context) -> Result<Vec<f32>, Error> {
        let shown = self.model.decoder.likelihood.shown(images, seed);
        let views = Views { model: &self.model, options: context.options(1), seed };
        match reading {
            Reading::Draw(number) => Ok(views.draws(&mut self.state, &shown, number)?),
            Reading::Mean => Ok(views.means(&mut self.state, &shown).ok_or_else(|| {
                Error::config("the mean of an implicit posterior is unknown: omit --mean, or average several --draws")
            })??),
        }
    }

    /// Images of codes `[count, m]`, in bytes.
    pub fn decode(&mut self, codes: &[f32], context: &Context) -> Result<Vec<u8>, Error> {
        let count = codes.len() / self.model.latent.ambient();
        let views = Views { model: &self.model, options: context.options(1), seed: 0 };
        Ok(bytes(&views.decoded(&mut self.state, codes, count)?))
    }

    /// New images, in bytes: mean pixels of codes of the prior.
    pub fn sample(&mut self, count: usize, seed: u64, context: &Context) -> Result<Vec<u8>, Error> {
        let views = Views { model: &self.model, options: context.options(1), seed };
        Ok(bytes(&views.samples(&mut self.state, count)?))
    }

    /// Images along geodesics between the codes of pairs of images, so many points on each path with both ends.
    pub fn paths(
        &mut self,
        [from, to]: [&[u8]; 2],
        points: usize,
        seed: u64,
        context: &Context,
    ) -> Result<Vec<u8>, Error> {
        let [from, to] = [from, to].map(|images| self.model.decoder.likelihood.shown(images, seed));
        let views = Views { model: &self.model, options: context.options(1), seed };
        Ok(bytes(&views.paths(&mut self.state, &from, &to, points)?))
    }

    /// The model file that a path stands for: the file itself, or the only one of a run folder.
    pub fn locate(place: &Path) -> Result<PathBuf, Error> {
        if place.is_file() {
            return Ok(place.to_path_buf());
        }
        let wrong = |what: &str| Err(Error::content(place, what));
        if !place.is_dir() {
            return wrong("not found; expected the folder of a training, or a file in its folder models");
        }
        if place.join("model.safetensors").is_file() && !place.ends_with("models") {
            return wrong("is the folder of a fitted density, which has no encoder and no decoder");
        }
        let files = match files_of(&place.join("models"))? {
            files if files.is_empty() => files_of(place)?,
            files => files,
        };
        match &files[..] {
            [file] => Ok(file.clone()),
            [] => wrong(&nothing_in(place)),
            several => {
                let names: Vec<_> = several.iter().map(|f| format!("  {}", f.display())).collect();
                wrong(&format!("holds {} models: choose one of them.\n{}", several.len(), names.join("\n")))
            }
        }
    }
}

/// Why a folder holds no model, and where one may be.
fn nothing_in(place: &Path) -> String {
    let inside = |entry: std::fs::DirEntry| Some(entry.path()).filter(|path| path.join("models").is_dir());
    let below: Option<PathBuf> = place.read_dir().ok().and_then(|entries| entries.flatten().filter_map(inside).min());
    match below {
        Some(below) => format!("holds several experiments: give the folder of one, such as {}", below.display()),
        None if place.join("run.json").is_file() && !place.join("report.json").is_file() => {
            "holds no trained auto-encoder yet: its run is not finished; resume it with --resume".into()
        }
        None => "holds no trained auto-encoder (no models/*.safetensors)".into(),
    }
}

/// Files of finished auto-encoders in a folder, if it is one: `NAME.safetensors`, but not `NAME-STEP.safetensors`, which was
/// kept on the way, nor the network that judges digits.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    if !folder.is_dir() {
        return Ok(vec![]);
    }
    let mut stems = vec![];
    for entry in std::fs::read_dir(folder).map_err(|e| Error::file(folder, "read the folder", e))? {
        let path = entry.map_err(|e| Error::file(folder, "read the folder", e))?.path();
        if path.extension().is_some_and(|e| e == "safetensors") {
            stems.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    stems.sort();
    let early = |stem: &str| match stem.rsplit_once('-') {
        Some((name, step)) => step.bytes().all(|b| b.is_ascii_digit()) && stems.iter().any(|s| s == name),
        None => false,
    };
    let kept = stems.iter().filter(|stem| *stem != "lenet" && !early(stem));
    Ok(kept.map(|stem| folder.join(format!("{stem}.safetensors"))).collect())
}

/// Intensities as bytes; those outside [0, 1] are black or white.
pub fn bytes(intensities: &[f32]) -> Vec<u8> {
    intensities.iter().map(|p| (p.clamp(0.0, 1.0) * 255.0).round() as u8).collect()
}
