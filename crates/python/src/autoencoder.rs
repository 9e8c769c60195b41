//! Auto-encoders of images in bytes: trained, kept in the files of `minvel train`, and used.

use crate::error::raised;
use crate::work::{Place, perform};
use minvel::Error;
use minvel::autoencoder::{AutoencoderSettings, Codec, ModelCard, Reading};
use minvel::file;
use minvel::train::{Checkpoint, Context, Learner, Trainer};
use minvel_engine::{Graph, State};
use minvel_lab::index;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Looks at the loss of a training.
const LOOKS: u32 = 40;
/// What its file says it is for.
const PURPOSE: &str = "an auto-encoder trained from Python";
/// Images that are encoded or decoded together.
const IMAGES: usize = 4096;

/// A trained auto-encoder.
#[pyclass(frozen, module = "minvel._native")]
pub struct ImageCodec {
    codec: Codec,
    state: State<f32>,
    losses: Vec<(u32, f64)>,
}

/// The settings of `minvel train` by its name, `train-vae` or `train-wae`, as JSON.
#[pyfunction]
pub fn training_settings(name: &str) -> PyResult<String> {
    let config = index::find(name).and_then(|entry| entry.config()).map_err(raised)?;
    Ok(config.json()["model"].to_string())
}

#[pymethods]
impl ImageCodec {
    /// Trains one on images of (height, width, channels), with the settings of a model as JSON.
    #[staticmethod]
    #[pyo3(signature = (images, shape, settings, seed, *, threads, device, watch))]
    fn train(
        py: Python,
        images: PyReadonlyArray1<u8>,
        shape: [usize; 3],
        settings: &str,
        seed: u64,
        threads: usize,
        device: &str,
        watch: Option<&Bound<PyAny>>,
    ) -> PyResult<ImageCodec> {
        let place = Place::new(threads, device)?;
        let settings: AutoencoderSettings = serde_json::from_str(settings).map_err(crate::error::refused)?;
        let images = images.as_slice()?.to_vec();
        perform(py, place, watch, |context| learn(&images, shape, settings, seed, context))
    }

    /// Reads the file of a model, or the first of a run folder.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<ImageCodec> {
        let read = || {
            let path = Codec::locate(&path)?;
            let state = Checkpoint::<f32>::read(&path)?.state;
            Ok(ImageCodec { codec: Codec::read(&path, 0)?, state, losses: vec![] })
        };
        read().map_err(raised)
    }

    /// Writes the file of the model; `minvel encode`, `decode` and `sample` read it.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        let write = || {
            file::check_place(&path)?;
            Checkpoint::new(self.state.clone(), self.codec.steps, PURPOSE, &self.codec.card).write(&path)
        };
        write().map_err(raised)
    }

    /// Height, width and channels of an image.
    #[getter]
    fn shape(&self) -> [usize; 3] {
        self.codec.card.image
    }

    /// What its file says of it, as JSON.
    #[getter]
    fn card(&self) -> String {
        serde_json::to_string(&self.codec.card).expect("a card is plain data")
    }

    /// Step and loss while it was trained.
    #[getter]
    fn losses(&self) -> Vec<(u32, f64)> {
        self.losses.clone()
    }

    /// Codes of images: the mean of each posterior where it is known, else a draw.
    #[pyo3(signature = (images, seed, *, mean, threads, device, watch))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        images: PyReadonlyArray1<u8>,
        seed: u64,
        mean: bool,
        threads: usize,
        device: &str,
        watch: Option<&Bound<PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (place, images) = (Place::new(threads, device)?, images.as_slice()?.to_vec());
        let (mut codec, width) = (self.codec.clone(), self.codec.model.latent.ambient());
        let reading = if mean { Reading::Mean } else { Reading::Draw(0) };
        let pixels = codec.pixels();
        let codes = perform(py, place, watch, |context| {
            in_parts(&images, pixels, "images", context, |part, quiet| codec.encode(part, reading, seed, quiet))
        })?;
        let count = codes.len() / width;
        codes.into_pyarray(py).reshape([count, width])
    }

    /// Images of codes, in bytes, one after another.
    #[pyo3(signature = (codes, *, threads, device, watch))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        codes: PyReadonlyArray1<f32>,
        threads: usize,
        device: &str,
        watch: Option<&Bound<PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let (place, codes, mut codec) = (Place::new(threads, device)?, codes.as_slice()?.to_vec(), self.codec.clone());
        let width = codec.model.latent.ambient();
        let pixels = perform(py, place, watch, |context| {
            in_parts(&codes, width, "codes", context, |part, quiet| codec.decode(part, quiet))
        })?;
        Ok(pixels.into_pyarray(py))
    }

    /// New images, in bytes, one after another.
    #[pyo3(signature = (count, seed, *, threads, device, watch))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        seed: u64,
        threads: usize,
        device: &str,
        watch: Option<&Bound<PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let (place, mut codec) = (Place::new(threads, device)?, self.codec.clone());
        Ok(perform(py, place, watch, |context| codec.sample(count, seed, context))?.into_pyarray(py))
    }

    /// Whether the mean of a posterior is known.
    #[getter]
    fn has_mean(&self) -> bool {
        self.codec.model.encoder.posterior.has_mean()
    }
}

/// A function of rows of some numbers, some rows at a time.
fn in_parts<T, U>(
    all: &[T],
    width: usize,
    unit: &str,
    context: &Context,
    mut function: impl FnMut(&[T], &Context) -> Result<Vec<U>, Error>,
) -> Result<Vec<U>, Error> {
    context.stage("networks", all.len() / width, unit, || {
        let (mut values, quiet) = (vec![], context.quiet());
        for part in all.chunks(IMAGES * width) {
            context.go_on()?;
            values.extend(function(part, &quiet)?);
            context.worked(part.len() / width);
        }
        Ok(values)
    })
}

fn learn(
    images: &[u8],
    image: [usize; 3],
    settings: AutoencoderSettings,
    seed: u64,
    context: &Context,
) -> Result<ImageCodec, Error> {
    let (pixels, iterations) = (image.iter().product::<usize>(), settings.iterations);
    let (learning, count) = (settings.learning(image)?, images.len() / pixels);
    let g = Graph::new();
    let step = learning.step(g.input_bytes("images", [count, pixels]));
    let mut learner = Learner::from_state(&g, &step, learning.start(1, seed), seed, context)?.bytes("images", images);
    let block = (iterations / LOOKS).max(1);
    let training = learner.run(&Trainer { block, ..Trainer::new("training", iterations, seed) }, context)?;
    if let Some(divergence) = training.divergences.first() {
        return Err(divergence.clone().into());
    }
    let mut state = State::new(1);
    for p in [learning.parameters(), learning.followers()].concat() {
        let values = learner.state().get(&p.name).expect("it was trained");
        state.set(&p.name, values, values.len());
    }
    let version = env!("CARGO_PKG_VERSION").to_string();
    let data = "images of a numpy array".to_string();
    let card = ModelCard { version, settings, image, crop: None, data, images: count, seed };
    let losses = training.looks.iter().map(|look| (look.step, look.loss[0])).collect();
    Ok(ImageCodec { codec: Codec::of(card, &state, 0, iterations)?, state, losses })
}
