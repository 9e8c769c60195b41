//! What experiments with auto-encoders of digits share: the data, training many seeds side by side, and pictures.

use super::Bench;
use crate::Error;
use crate::autoencoder::{Autoencoder, Learning, Settings, Views};
use crate::data::mnist;
use crate::plot::{Axis, Dash, Grid, Lines, Plot, Series};
use crate::report::Figure;
use crate::train::{Checkpoint, Desk, Look, Trainer, Training};
use minvel_engine::random::{Draw, Key, Stream};
use minvel_engine::{Graph, State};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// Width and height of a digit.
pub(super) const SIDE: usize = 28;
/// Pixels of a digit.
pub(super) const PIXELS: usize = SIDE * SIDE;
/// Looks at the loss of a training: each of them copies the data to the device.
const LOOKS: u32 = 40;

/// MNIST, read when it is first asked for.
#[derive(Debug)]
pub(super) struct Digits {
    folder: Option<PathBuf>,
    seed: u64,
    train: OnceCell<Vec<f32>>,
    test: OnceCell<Vec<f32>>,
}

impl Digits {
    /// Of a folder, or where the catalogue finds it if that is empty.
    pub fn new(folder: &str, seed: u64) -> Self {
        let folder = (!folder.is_empty()).then(|| PathBuf::from(folder));
        Digits { folder, seed, train: OnceCell::new(), test: OnceCell::new() }
    }

    /// Whether the files are there.
    pub fn check(&self) -> Result<(), Error> {
        mnist::check(self.folder.as_deref())
    }

    /// Intensities of the digits to learn from.
    pub fn train(&self) -> Result<&[f32], Error> {
        read(&self.train, || Ok(mnist::train(self.folder.as_deref())?.images.intensities()))
    }

    /// Intensities of the digits to test with.
    pub fn test(&self) -> Result<&[f32], Error> {
        read(&self.test, || Ok(mnist::test(self.folder.as_deref())?.images.intensities()))
    }

    /// So many test digits, spread evenly over all (the second half of them is harder than the first), their pixels 0 or 1
    /// with their probability: the same ones whenever the seed is the same.
    pub fn binarised(&self, count: usize) -> Result<Vec<f32>, Error> {
        let all = self.test()?;
        let uniform = Stream::new(Key::new(self.seed, 0), crate::energy::draw::stream_of("binarised"));
        let bits: Vec<f32> = all
            .iter()
            .zip(uniform.samples(Draw::Uniform))
            .map(|(&p, u)| if u < f64::from(p) { 1.0 } else { 0.0 })
            .collect();
        let total = all.len() / PIXELS;
        let chosen = (0..count.min(total)).map(|k| k * total / count.min(total));
        Ok(chosen.flat_map(|k| bits[k * PIXELS..][..PIXELS].iter().copied()).collect())
    }
}

fn read(cell: &OnceCell<Vec<f32>>, load: impl Fn() -> Result<Vec<f32>, Error>) -> Result<&[f32], Error> {
    if cell.get().is_none() {
        let _ = cell.set(load()?);
    }
    Ok(cell.get().expect("just set"))
}

/// One kind of auto-encoder.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// Part of the names of its units and files.
    pub name: String,
    /// In words.
    pub title: String,
    /// What decides its colour.
    pub method: String,
    /// How it is made and learnt.
    pub settings: Settings,
    /// Whether the report shows what it makes of digits.
    pub shown: bool,
}

/// What a training leaves for the report; the parameters are in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Trained {
    /// Learning curve and divergences.
    pub training: Training,
    /// What it makes of digits, where the report shows it.
    pictures: Option<Pictures>,
}

/// What the first seed makes of digits.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Pictures {
    /// Digits of the prior.
    samples: Album,
    /// Test digits and what becomes of them, in turn.
    reconstructions: Album,
    /// Geodesics between codes of test digits, a path after another.
    paths: Album,
    /// The whole latent sphere, where it is S².
    sphere: Option<Album>,
}

/// Digits as bytes, written in hexadecimal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Album(String);

impl Album {
    fn of(pixels: &[f32]) -> Self {
        Album(pixels.iter().map(|p| format!("{:02x}", (p.clamp(0.0, 1.0) * 255.0).round() as u8)).collect())
    }

    fn bytes(&self) -> Vec<u8> {
        (0..self.0.len() / 2).map(|k| u8::from_str_radix(&self.0[2 * k..][..2], 16).unwrap_or(0)).collect()
    }

    /// A grid of so many columns.
    fn plot(&self, columns: usize) -> Plot {
        Plot::Grid(Grid::new([1, SIDE, SIDE], columns, self.bytes()))
    }
}

impl Cell {
    /// What is learnt.
    pub fn learning(&self) -> Result<Learning, Error> {
        self.settings.learning([1, SIDE, SIDE])
    }

    /// The model, without what was learnt beside it.
    pub fn model(&self) -> Result<Autoencoder, Error> {
        Ok(self.learning()?.model)
    }

    fn file(&self, folder: &Path) -> PathBuf {
        folder.join("models").join(format!("{}.safetensors", self.name))
    }

    /// The trained parameters of all seeds.
    pub fn state(&self, folder: &Path) -> Result<State<f32>, Error> {
        let path = self.file(folder);
        let found = Checkpoint::read_if_there(&path)?.map(|checkpoint| checkpoint.state);
        let what = format!(
            "is not there, though the training is finished: delete units/{}.train.json to repeat it",
            self.name
        );
        found.ok_or_else(|| Error::content(&path, what))
    }

    /// Trains all seeds side by side, as a unit of the bench.
    pub fn train(&self, bench: &mut Bench, digits: &Digits, (seed, seeds): (u64, usize)) -> Result<Trained, Error> {
        let path = self.file(bench.folder());
        bench.unit(&format!("{}.train", self.name), |desk| {
            let (mut state, training) = self.learn(digits.train()?, (seed, seeds), desk)?;
            crate::file::create_folder(path.parent().unwrap_or(Path::new(".")))?;
            let purpose = desk.purpose(&self.name);
            Checkpoint::new(state.clone(), self.settings.iterations, &purpose, &self.settings).write(&path)?;
            let pictures = self.shown.then(|| self.look(&mut state, digits, seed, desk)).transpose()?;
            Ok(Trained { training, pictures })
        })
    }

    fn learn(&self, images: &[f32], (seed, seeds): (u64, usize), desk: &Desk) -> Result<(State<f32>, Training), Error> {
        let learning = self.learning()?;
        let g = Graph::new();
        let lesson = learning.step(&g, images.len() / PIXELS);
        let mut program = g.compile::<f32>(&lesson.outputs, &lesson.updates(), &desk.options(seeds));
        let mut state = learning.start(seeds, seed);
        lesson.initialise(&mut state);
        let iterations = self.settings.iterations;
        let trainer = Trainer { block: (iterations / LOOKS).max(1), ..Trainer::new(&self.name, iterations, seed) };
        let training = trainer.run(&mut program, &mut state, &[("images", images)], desk)?;
        let mut kept = State::new(seeds);
        for p in learning.parameters() {
            let values = state.get(&p.name).expect("it was trained");
            kept.set(&p.name, values, values.len() / seeds);
        }
        Ok((kept, training))
    }

    fn look(&self, state: &mut State<f32>, digits: &Digits, seed: u64, desk: &Desk) -> Result<Pictures, Error> {
        let model = self.model()?;
        let views = Views { model: &model, options: desk.options(state.replicas()), seed };
        let first = |all: Vec<f32>, count: usize| Album::of(&all[..count * PIXELS]);
        let shown = digits.binarised(PAIRS)?;
        let again = views.reconstructions(state, &shown);
        let pairs: Vec<f32> =
            shown.chunks(PIXELS).zip(again.chunks(PIXELS)).flat_map(|(a, b)| [a, b].concat()).collect();
        let (from, to) = shown.split_at(PATHS * PIXELS);
        let sphere = (self.settings.latent == "sphere:2").then(|| {
            let codes = globe();
            first(views.decoded(state, &codes, codes.len() / 3), codes.len() / 3)
        });
        Ok(Pictures {
            samples: first(views.samples(state, SAMPLES), SAMPLES),
            reconstructions: Album::of(&pairs),
            paths: first(views.paths(state, from, &to[..PATHS * PIXELS], POINTS), PATHS * POINTS),
            sphere,
        })
    }
}

/// Samples, reconstructions, paths and points of a path that a report shows.
const SAMPLES: usize = 64;
const PAIRS: usize = 16;
const PATHS: usize = 5;
const POINTS: usize = 12;
/// Columns of their figures: the most at which a pixel becomes a square of 3 × 3.
const COLUMNS: usize = 16;
/// Longitudes and latitudes of the map of S².
const GLOBE: (usize, usize) = (24, 13);

/// Points of S² on a grid of longitude and of height, so that all stand for the same area.
fn globe() -> Vec<f32> {
    let (columns, rows) = GLOBE;
    let point = |k: usize| {
        let longitude = ((k % columns) as f64 + 0.5) / columns as f64 * std::f64::consts::TAU;
        let height = 1.0 - 2.0 * ((k / columns) as f64 + 0.5) / rows as f64;
        let across = (1.0 - height * height).sqrt();
        [across * longitude.cos(), across * longitude.sin(), height].map(|x| x as f32)
    };
    (0..columns * rows).flat_map(point).collect()
}

impl Trained {
    /// What one looks at: samples, reconstructions, paths, the sphere.
    pub fn figures(&self, cell: &Cell) -> Vec<Figure> {
        let Some(Pictures { samples, reconstructions, paths, sphere }) = &self.pictures else { return vec![] };
        let Cell { name, title, .. } = cell;
        let figure = |what: &str, caption: String, plot: Plot| Figure::new(&format!("{name}-{what}"), &caption, plot);
        let mut figures = vec![
            figure("samples", format!("{title}: means of pixels for codes of the prior."), samples.plot(COLUMNS)),
            figure(
                "reconstructions",
                format!("{title}: test digits and, to the right of each, what becomes of them."),
                reconstructions.plot(COLUMNS),
            ),
            figure(
                "paths",
                format!("{title}: along the geodesic between the codes of two test digits, a path in each row."),
                paths.plot(POINTS),
            ),
        ];
        if let Some(sphere) = sphere {
            let caption = format!("{title}: the whole latent sphere, by longitude and height (equal areas).");
            figures.push(figure("sphere", caption, sphere.plot(GLOBE.0)));
        }
        figures
    }

    /// Loss of the last looks, for each seed.
    pub fn late_losses(&self) -> Vec<f64> {
        let looks = &self.training.looks;
        let late = &looks[looks.len() - looks.len().div_ceil(10)..];
        let seeds = looks.first().map_or(0, |look| look.loss.len());
        (0..seeds).map(|r| late.iter().map(|look| look.loss[r]).sum::<f64>() / late.len() as f64).collect()
    }
}

/// Learning curves of several cells.
pub(super) fn curves(title: &str, cells: &[(&Cell, &Trained)]) -> Plot {
    let x = Axis::linear("iterations");
    let mut lines = Lines::new(title, x, Axis::linear("loss of encoder and decoder on a batch [nats]"));
    for (cell, trained) in cells {
        let mean = |look: &Look| (f64::from(look.step), look.loss.iter().sum::<f64>() / look.loss.len() as f64);
        let series = Series::new(&cell.title, &cell.method).values(trained.training.looks.iter().map(mean));
        let flat = cell.settings.latent.starts_with("euclidean");
        lines = lines.with(if flat { series.dashed(Dash::Dashed) } else { series });
    }
    Plot::Lines(lines)
}
