//! LeNet: the small network of the paper's FID on MNIST, trained by ourselves.
//!
//! **Statement.** x ∈ {−½, ½}^{28×28} → 5×5 convolution to 32 channels, 2×2 maximum, ReLU → 5×5 convolution to 64, 2×2
//! maximum, ReLU → 512 ReLU (the features) → 10 logits. Loss: mean cross-entropy + 5·10⁻⁴·½(|W|² + |b|²) of the dense layers.
//! **Source.** docs/math §4.7; lecun1998lenet; srivastava2014dropout. **Conventions.** Learnt from grey images p/255 − ½, the
//! first 5 000 of the training set held out; used on binary ones, drawn from the intensities. ReLU and the bias come after
//! the maximum, which is the same and less work. Weights are kept with channels first, `[out, in·5·5]` and, of the first
//! dense layer, `[64·7·7, 512]`, as files have them. Epochs are shuffled; the rate falls with whole steps of an epoch.
//! **Error.** The paper's own weights are not known: distances compare with its numbers in order and ratio only.
//! **Checked by** tests/lab/lenet.rs, tests/real_data/digits.rs.

use super::FeatureMap;
use crate::catalogue;
use crate::image::{Images, Labelled};
use minvel::Error;
use minvel::network::Parameter;
use minvel::train::{Checkpoint, Context, Learner, Scalar, Step};
use minvel_engine::init::Init;
use minvel_engine::optim::{Optimiser, RateSchedule, UpdateRule};
use minvel_engine::{Clock, DeviceError, Draw, Expr, Graph, Options, State, Window};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// What checkpoints of it are for.
const PURPOSE: &str = "lenet";
/// Side of an image.
const SIDE: usize = 28;
/// Pixels of an image.
const PIXELS: usize = SIDE * SIDE;
/// FeatureMap of an image.
const FEATURES: usize = 512;
/// Kinds of digits.
const CLASSES: usize = 10;
/// 5 × 5 with zeros around, so that the image keeps its size.
const WINDOW: Window = Window::square(5, 1, [2, 2]);
/// Images that are judged at once.
const AT_ONCE: usize = 250;
/// Streams of the training.
const ORDER: u32 = 0;
const DROPOUT: u32 = 1;

/// How it is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schooling {
    /// Seed of the start values, the order and the dropout.
    pub seed: u64,
    /// Passes over the images.
    pub epochs: u32,
    /// Images of a step.
    pub batch: usize,
    /// Images at the beginning of the training set that are held out.
    pub held_out: usize,
}

impl Default for Schooling {
    /// As the paper's code does.
    fn default() -> Self {
        Schooling { seed: 1, epochs: 10, batch: 64, held_out: 5000 }
    }
}

/// Where weights come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// How they were trained.
    pub schooling: Schooling,
    /// Steps made.
    pub steps: u32,
    /// SHA-256 of the file of training images.
    pub data: String,
    /// Share of the held-out images that it takes for another digit.
    pub held_out_error: f64,
    /// Share of the test images that it takes for another digit.
    pub test_error: f64,
}

/// The network with its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Lenet {
    weights: State<f32>,
    sha256: String,
    /// Where the weights come from.
    pub origin: Origin,
}

/// Weights and biases in their order.
fn parameters() -> Vec<Parameter> {
    let parameter = |name: &str, dims: &[usize], init| Parameter { name: name.into(), dims: dims.to_vec(), init };
    let weight = Init::TruncatedNormal(0.1);
    vec![
        parameter("lenet/conv1/weights", &[32, 25], weight),
        parameter("lenet/conv1/biases", &[32], Init::ZEROS),
        parameter("lenet/conv2/weights", &[64, 32 * 25], weight),
        parameter("lenet/conv2/biases", &[64], Init::Constant(0.1)),
        parameter("lenet/dense1/weights", &[64 * PIXELS / 16, FEATURES], weight),
        parameter("lenet/dense1/biases", &[FEATURES], Init::Constant(0.1)),
        parameter("lenet/dense2/weights", &[FEATURES, CLASSES], weight),
        parameter("lenet/dense2/biases", &[CLASSES], Init::Constant(0.1)),
    ]
}

fn variables(graph: &Graph) -> Vec<Expr<'_>> {
    parameters().iter().map(|p| p.variable(graph)).collect()
}

/// The larger of every two by two of `[height, width, channels]`.
fn pooled(x: Expr) -> Expr {
    let [h, w, c] = x.shape().dims[..] else { panic!("pooled: {} is not an image", x.shape()) };
    x.reshape([h / 2, 2, w / 2, 2, c]).max_over(3).max_over(1)
}

/// 512 features of images in ±½.
fn hidden<'g>(images: Expr<'g>) -> Expr<'g> {
    let v = variables(images.graph());
    let layer = |x: Expr<'g>, weights: Expr<'g>, biases: Expr<'g>| {
        let (input, out) = (x.shape().dims[2], biases.shape().dims[0]);
        let turned = weights.reshape([out, input, 25]).transpose(&[2, 1, 0]).reshape([25 * input, out]);
        (pooled(x.conv2d(turned, WINDOW)) + biases).relu()
    };
    let first = layer(images.reshape([SIDE, SIDE, 1]), v[0], v[1]);
    let second = layer(first, v[2], v[3]).transpose(&[2, 0, 1]);
    (second.reshape([64 * PIXELS / 16]).matmul(v[4]) + v[5]).relu()
}

/// Scores of the digits, from features.
fn logits<'g>(hidden: Expr<'g>) -> Expr<'g> {
    let v = variables(hidden.graph());
    hidden.matmul(v[6]) + v[7]
}

/// Intensities around 0: (p − 127.5)/255.
fn centred(images: &Images) -> Vec<f32> {
    images.pixels.iter().map(|p| (*p as f32 - 127.5) / 255.0).collect()
}

impl Lenet {
    /// Trains it on the training set and judges it on the rest and on the test set.
    pub fn train(train: &Labelled, test: &Labelled, schooling: &Schooling, context: &Context) -> Result<Lenet, Error> {
        let Schooling { seed, epochs, batch, held_out } = *schooling;
        let sizes = [&train.images, &test.images].map(|i| [i.height, i.width, i.channels]);
        if sizes != [[SIDE, SIDE, 1]; 2] || train.images.count < held_out + batch {
            return Err(Error::config(format!(
                "LeNet is trained on grey images of 28 × 28 pixels, with {held_out} held out"
            )));
        }
        let own = train.part(held_out..train.images.count);
        let steps = (epochs as usize * own.images.count / batch) as u32;
        let mut state = State::new(1);
        for (stream, p) in parameters().iter().enumerate() {
            p.init.set(&mut state, &p.name, &p.dims, seed, stream as u32);
        }
        let g = Graph::new();
        let (loss, labels) = (loss(&g, own.images.count, batch), own.labels.iter().map(|l| *l as f32));
        let every = (own.images.count / batch) as u32;
        let schedule = RateSchedule::Steps { every, factor: 0.95 };
        let optimiser = Optimiser { schedule, ..Optimiser::new(UpdateRule::Sgd { momentum: 0.9 }, 0.01) };
        let step = Step::minimise(loss, &variables(&g), &optimiser);
        let (images, labels) = (centred(&own.images), labels.collect::<Vec<f32>>());
        let learner = Learner::from_state(&g, &step, state, seed, context)?;
        let mut learner = learner.input("images", images).input("labels", labels);
        learner.train("lenet", steps, context)?.all_finite()?;
        let state = learner.into_state();
        let mut weights = State::new(1);
        for p in parameters() {
            let values = state.get(&p.name).expect("it was trained").to_vec();
            weights.set(&p.name, &values, values.len());
        }
        let judged = |set: &Labelled| error_share(&weights, set, &context.options(1));
        let origin = Origin {
            schooling: *schooling,
            steps,
            data: train.images.sha256.clone(),
            held_out_error: judged(&train.part(0..held_out))?,
            test_error: judged(test)?,
        };
        Ok(Lenet { sha256: digest(&weights), weights, origin })
    }

    /// Writes the weights and where they come from.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        Checkpoint::new(self.weights.clone(), self.origin.steps, PURPOSE, &self.origin).write(path)
    }

    /// Reads them back.
    pub fn read(path: &Path) -> Result<Lenet, Error> {
        let checkpoint = Checkpoint::<f32>::read(path)?;
        let mut expected = State::new(1);
        parameters().iter().for_each(|p| p.init.set(&mut expected, &p.name, &p.dims, 0, 0));
        checkpoint.belongs_to(path, PURPOSE, &expected)?;
        let origin = checkpoint.note(path)?;
        Ok(Lenet { sha256: digest(&checkpoint.state), weights: checkpoint.state, origin })
    }

    /// Where `minvel train lenet` puts the weights: the user's cache folder.
    pub fn home() -> Option<PathBuf> {
        catalogue::cache().map(|root| root.join("weights").join("lenet.safetensors"))
    }

    /// The weights of the first root that has them: `$MINVEL_DATA`, then the user's cache folder.
    pub fn find() -> Result<Lenet, Error> {
        let mut paths = catalogue::roots().into_iter().map(|root| root.join("weights").join("lenet.safetensors"));
        let missing =
            || Error::config("LeNet's weights are not on this machine: create them with `minvel train lenet`");
        Lenet::read(&paths.find(|path| path.is_file()).ok_or_else(missing)?)
    }

    /// Share of images that it takes for another digit, seen in grey as in its training.
    pub fn error(&self, set: &Labelled, options: &Options) -> Result<f64, DeviceError> {
        error_share(&self.weights, set, options)
    }
}

/// The loss on a minibatch of the inputs `images` and `labels`.
fn loss(g: &Graph, count: usize, batch: usize) -> Expr<'_> {
    let order = g.random_rows(Draw::Epoch(count as u32), ORDER, batch, []);
    let images = g.input("images", [count, PIXELS]).gather(order);
    let label = g.input("labels", [count]).gather(order);
    let features = hidden(images);
    let kept = g.draw_like(Draw::Uniform, DROPOUT, features).less(0.5) * 2.0;
    let scores = logits(features * kept);
    let digits = g.table(&(0..CLASSES).map(|d| d as f64).collect::<Vec<_>>(), [CLASSES]);
    let right = (label.expand(-1).equal(digits) * scores).sum(-1);
    let decay = variables(g)[4..].iter().map(|v| v.square().sum_all()).reduce(|a, b| a + b).expect("four");
    (scores.logsumexp(-1) - right).mean_rows() + 5e-4 * 0.5 * decay
}

fn error_share(weights: &State<f32>, set: &Labelled, options: &Options) -> Result<f64, DeviceError> {
    let g = Graph::new();
    let scores = logits(hidden(g.input_rows("images", AT_ONCE, [PIXELS])));
    let mut program = g.try_compile::<f32>(&[scores], &[], options)?;
    let (mut state, images) = (weights.clone(), centred(&set.images));
    let mut wrong = 0;
    for (part, labels) in images.chunks(AT_ONCE * PIXELS).zip(set.labels.chunks(AT_ONCE)) {
        let mut whole = part.to_vec();
        whole.resize(AT_ONCE * PIXELS, 0.0);
        program.try_run(&mut state, &[("images", &whole)], Clock { seed: 0, step: 0 })?;
        let best = |scores: &[f32]| (0..CLASSES).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap_or(0);
        let said = program.try_output(0)?.chunks(CLASSES).map(best);
        wrong += said.zip(labels).filter(|(said, label)| *said != **label as usize).count();
    }
    Ok(wrong as f64 / set.labels.len() as f64)
}

/// SHA-256 of all weights in their order.
fn digest(weights: &State<f32>) -> String {
    let mut hash = Sha256::new();
    parameters().iter().for_each(|p| hash.update(f32::bytes(weights.get(&p.name).expect("weights are whole"))));
    crate::bytes::hexadecimal(&hash.finalize())
}

impl FeatureMap for Lenet {
    fn name(&self) -> &str {
        "lenet"
    }

    fn sha256(&self) -> &str {
        &self.sha256
    }

    fn preprocessing(&self) -> &str {
        "drawn black or white by their intensity, ∓½"
    }

    fn count(&self) -> usize {
        FEATURES
    }

    fn image(&self) -> [usize; 3] {
        [SIDE, SIDE, 1]
    }

    fn features<'g>(&self, images: Expr<'g>, stream: u32) -> Expr<'g> {
        hidden(images.bernoulli(stream) - 0.5)
    }

    fn set(&self, state: &mut State<f32>) {
        self.weights.iter().for_each(|(name, values)| state.set(name, values, values.len()));
    }
}
