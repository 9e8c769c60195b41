//! What experiments with auto-encoders of images share: the data, training many seeds side by side, and pictures.

use super::{Bench, Config};
use crate::Error;
use crate::autoencoder::{Autoencoder, Learning, Likelihood, Settings, Views};
use crate::data::folder::{self, Folder, Framing};
use crate::data::{Images, cifar, mnist};
use crate::plot::{Axis, Dash, Grid, Lines, Plot, Series};
use crate::report::Figure;
use crate::train::{Checkpoint, Desk, Look, Trainer, Training};
use minvel_engine::random::{Draw, Key, Stream};
use minvel_engine::{Graph, State};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// Looks at the loss of a training: each of them copies the data to the device.
const LOOKS: u32 = 40;

/// Where images come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// MNIST, of a folder or where the catalogue finds it.
    Mnist(Option<PathBuf>),
    /// CIFAR-10, of a folder or where the catalogue finds it.
    Cifar(Option<PathBuf>),
    /// Pictures of a folder: the first of them to learn from, the last to test with.
    Folder {
        /// Which folder.
        folder: PathBuf,
        /// How they come to one size.
        framing: Framing,
        /// Share to learn from.
        train: f64,
        /// Share to test with.
        test: f64,
    },
}

/// How pictures of a folder are cut and divided.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Frame {
    crop: usize,
    pub side: usize,
    train: f64,
    test: f64,
}

impl Frame {
    /// An error names the setting.
    pub fn check(&self, config: &Config) -> Result<(), Error> {
        let Frame { side, train, test, .. } = *self;
        let demand = |key: &str, ok: bool, what: &str| if ok { Ok(()) } else { Err(config.refuse(key, what)) };
        demand("frame.side", side > 0 && side.is_multiple_of(4), "must be a multiple of 4")?;
        demand("frame.train", train > 0.0 && train <= 1.0, "must be a share between 0 and 1")?;
        demand("frame.test", test > 0.0 && train + test <= 1.0, "must be a share, at most what `train` leaves")
    }

    /// The pictures of a folder in it.
    pub fn of(&self, folder: &str) -> Source {
        let framing = Framing { crop: (self.crop > 0).then_some(self.crop), side: self.side };
        Source::Folder { folder: PathBuf::from(folder), framing, train: self.train, test: self.test }
    }
}

/// Images to learn from or to test with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Train,
    Test,
}

impl Source {
    /// Channels, height and width.
    pub fn image(&self) -> [usize; 3] {
        match self {
            Source::Mnist(_) => [1, 28, 28],
            Source::Cifar(_) => [3, 32, 32],
            Source::Folder { framing, .. } => [3, framing.side, framing.side],
        }
    }

    fn read(&self, part: Part) -> Result<Images, Error> {
        let labelled = match (self, part) {
            (Source::Mnist(folder), Part::Train) => mnist::train(folder.as_deref()),
            (Source::Mnist(folder), Part::Test) => mnist::test(folder.as_deref()),
            (Source::Cifar(folder), Part::Train) => cifar::train(folder.as_deref()),
            (Source::Cifar(folder), Part::Test) => cifar::test(folder.as_deref()),
            (Source::Folder { folder, framing, train, test }, part) => {
                let images = decoded(folder, *framing)?.images;
                let share = |of: f64| (of * images.count as f64).floor() as usize;
                let range = match part {
                    Part::Train => 0..share(*train),
                    Part::Test => images.count - share(*test)..images.count,
                };
                let few = || Error::content(folder, format!("has {} pictures, too few to be divided", images.count));
                return if range.is_empty() { Err(few()) } else { Ok(images.part(range)) };
            }
        };
        Ok(labelled?.images)
    }
}

/// Pictures of a folder, or what was decoded of them before.
fn decoded(folder: &Path, framing: Framing) -> Result<Folder, Error> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Folder::read(folder, framing, threads, folder::cache().as_deref(), |_, _| ())
}

/// A folder that was named, if one was.
pub(super) fn given(folder: &str) -> Option<PathBuf> {
    (!folder.is_empty()).then(|| PathBuf::from(folder))
}

/// Images, read when they are first asked for.
#[derive(Debug)]
pub(super) struct Gallery {
    source: Source,
    seed: u64,
    train: OnceCell<Vec<f32>>,
    test: OnceCell<Vec<f32>>,
}

impl Gallery {
    /// Of a source; the seed is that of binary pixels.
    pub fn new(source: Source, seed: u64) -> Self {
        Gallery { source, seed, train: OnceCell::new(), test: OnceCell::new() }
    }

    /// Whether the files are there.
    pub fn check(&self) -> Result<(), Error> {
        match &self.source {
            Source::Mnist(folder) => mnist::check(folder.as_deref()),
            Source::Cifar(_) => self.test().map(drop),
            Source::Folder { folder, .. } if folder.as_os_str().is_empty() => {
                Err(Error::config("a folder of pictures is wanted: name it"))
            }
            Source::Folder { folder, .. } => folder::list(folder).map(drop),
        }
    }

    /// Intensities of the images to learn from.
    pub fn train(&self) -> Result<&[f32], Error> {
        read(&self.train, || Ok(self.source.read(Part::Train)?.intensities()))
    }

    /// Intensities of the images to test with.
    pub fn test(&self) -> Result<&[f32], Error> {
        read(&self.test, || Ok(self.source.read(Part::Test)?.intensities()))
    }

    /// What a reader should know of the files.
    pub fn notes(&self) -> Result<Vec<String>, Error> {
        let Source::Folder { folder, framing, .. } = &self.source else { return Ok(vec![]) };
        let Folder { images, skipped } = decoded(folder, *framing)?;
        let mut notes = vec![format!("{} pictures of the folder were used.", images.count)];
        if let Some(first) = skipped.first() {
            let (count, path, why) = (skipped.len(), first.path.display(), &first.why);
            notes.push(format!("{count} files could not be read and were left out; the first, {path}, {why}."));
        }
        Ok(notes)
    }

    /// So many test images, spread evenly over all (the second half of MNIST is harder than the first).
    fn some(&self, count: usize) -> Result<Vec<f32>, Error> {
        Ok(spread(self.test()?, self.pixels(), count))
    }

    /// So many test images as [`Gallery::some`], their pixels 0 or 1 with their probability: the same ones whenever the seed
    /// is the same.
    pub fn binarised(&self, count: usize) -> Result<Vec<f32>, Error> {
        let uniform = Stream::new(Key::new(self.seed, 0), crate::energy::draw::stream_of("binarised"));
        let bits: Vec<f32> = self
            .test()?
            .iter()
            .zip(uniform.samples(Draw::Uniform))
            .map(|(&p, u)| if u < f64::from(p) { 1.0 } else { 0.0 })
            .collect();
        Ok(spread(&bits, self.pixels(), count))
    }

    /// So many test images as a likelihood has them.
    pub fn shown(&self, count: usize, likelihood: Likelihood) -> Result<Vec<f32>, Error> {
        if likelihood == Likelihood::Bernoulli { self.binarised(count) } else { self.some(count) }
    }

    fn pixels(&self) -> usize {
        self.source.image().iter().product()
    }
}

fn spread(all: &[f32], pixels: usize, count: usize) -> Vec<f32> {
    let total = all.len() / pixels;
    let chosen = (0..count.min(total)).map(|k| k * total / count.min(total));
    chosen.flat_map(|k| all[k * pixels..][..pixels].iter().copied()).collect()
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
    /// Channels, height and width of its images.
    pub image: [usize; 3],
    /// How it is made and learnt.
    pub settings: Settings,
    /// Steps of the training between two models that are kept, beside the last; 0 for none.
    pub every: u32,
    /// Whether the report shows what it makes of images.
    pub shown: bool,
}

/// What a training leaves for the report; the parameters are in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Trained {
    /// Learning curve and divergences.
    pub training: Training,
    /// What it makes of images, where the report shows it.
    pictures: Option<Pictures>,
}

/// What the first seed makes of images.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Pictures {
    /// Images of the prior.
    samples: Album,
    /// Test images and what becomes of them, in turn.
    reconstructions: Album,
    /// Geodesics between codes of test images, a path after another.
    paths: Album,
    /// The whole latent sphere, where it is S².
    sphere: Option<Album>,
}

/// Images as bytes, written in hexadecimal.
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
    fn plot(&self, image: [usize; 3], columns: usize) -> Plot {
        Plot::Grid(Grid::new(image, columns, self.bytes()))
    }
}

impl Cell {
    /// What is learnt.
    pub fn learning(&self) -> Result<Learning, Error> {
        self.settings.learning(self.image)
    }

    /// The model, without what was learnt beside it.
    pub fn model(&self) -> Result<Autoencoder, Error> {
        Ok(self.learning()?.model)
    }

    fn pixels(&self) -> usize {
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

    /// The parameters of all seeds after so many steps, one of [`Cell::kept`].
    pub fn state_after(&self, folder: &Path, step: u32) -> Result<State<f32>, Error> {
        let path = self.file(folder, step);
        let found = Checkpoint::read_if_there(&path)?.map(|checkpoint| checkpoint.state);
        let what = format!(
            "is not there, though the training is finished: delete units/{}.train.json to repeat it",
            self.name
        );
        found.ok_or_else(|| Error::content(&path, what))
    }

    /// Trains all seeds side by side, as a unit of the bench.
    pub fn train(&self, bench: &mut Bench, gallery: &Gallery, (seed, seeds): (u64, usize)) -> Result<Trained, Error> {
        let folder = bench.folder().to_path_buf();
        bench.unit(&format!("{}.train", self.name), |desk| {
            crate::file::create_folder(&folder.join("models"))?;
            let training = self.learn(gallery.train()?, (seed, seeds), &folder, desk)?;
            let show = || self.look(&mut self.state(&folder)?, gallery, seed, desk);
            Ok(Trained { training, pictures: self.shown.then(show).transpose()? })
        })
    }

    /// Trains from one model that is kept to the next.
    fn learn(
        &self,
        images: &[f32],
        (seed, seeds): (u64, usize),
        folder: &Path,
        desk: &Desk,
    ) -> Result<Training, Error> {
        let learning = self.learning()?;
        let g = Graph::new();
        let lesson = learning.step(&g, images.len() / self.pixels());
        let mut program = g.compile::<f32>(&lesson.outputs, &lesson.updates(), &desk.options(seeds));
        let mut state = learning.start(seeds, seed);
        lesson.initialise(&mut state);
        let (mut whole, mut from) = (Training::default(), 0);
        for steps in self.kept() {
            let name =
                if steps == self.settings.iterations { self.name.clone() } else { format!("{}-{steps}", self.name) };
            let block = (self.settings.iterations / LOOKS).max(1);
            let trainer = Trainer { from, block, ..Trainer::new(&name, steps, seed) };
            let training = trainer.run(&mut program, &mut state, &[("images", images)], desk)?;
            whole.looks.extend(training.looks);
            let known: Vec<usize> = whole.divergences.iter().map(|d| d.replica).collect();
            whole.divergences.extend(training.divergences.into_iter().filter(|d| !known.contains(&d.replica)));
            self.keep(&learning, &state, folder, steps, desk)?;
            from = steps;
        }
        Ok(whole)
    }

    /// Writes what was learnt, without what the optimiser needs.
    fn keep(
        &self,
        learning: &Learning,
        state: &State<f32>,
        folder: &Path,
        step: u32,
        desk: &Desk,
    ) -> Result<(), Error> {
        let mut kept = State::new(state.replicas());
        for p in [learning.parameters(), learning.followers()].concat() {
            let values = state.get(&p.name).expect("it was trained");
            kept.set(&p.name, values, values.len() / state.replicas());
        }
        let purpose = desk.purpose(&self.name);
        Checkpoint::new(kept, step, &purpose, &self.settings).write(&self.file(folder, step))
    }

    fn look(&self, state: &mut State<f32>, gallery: &Gallery, seed: u64, desk: &Desk) -> Result<Pictures, Error> {
        let model = self.model()?;
        let views = Views { model: &model, options: desk.options(state.replicas()), seed };
        let pixels = self.pixels();
        let first = |all: Vec<f32>, count: usize| Album::of(&all[..count * pixels]);
        let shown = gallery.shown(PAIRS, model.decoder.likelihood)?;
        let paths = PATHS.min(shown.len() / pixels / 2);
        let again = views.reconstructions(state, &shown);
        let pairs: Vec<f32> =
            shown.chunks(pixels).zip(again.chunks(pixels)).flat_map(|(a, b)| [a, b].concat()).collect();
        let (from, to) = shown.split_at(paths * pixels);
        let sphere = (self.settings.latent == "sphere:2").then(|| {
            let codes = globe();
            first(views.decoded(state, &codes, codes.len() / 3), codes.len() / 3)
        });
        Ok(Pictures {
            samples: first(views.samples(state, SAMPLES), SAMPLES),
            reconstructions: Album::of(&pairs),
            paths: first(views.paths(state, from, &to[..paths * pixels], POINTS), paths * POINTS),
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
        let Cell { name, title, image, .. } = cell;
        let figure = |what: &str, caption: String, plot: Plot| Figure::new(&format!("{name}-{what}"), &caption, plot);
        let mut figures = vec![
            figure(
                "samples",
                format!("{title}: means of pixels for codes of the prior."),
                samples.plot(*image, COLUMNS),
            ),
            figure(
                "reconstructions",
                format!("{title}: test images and, to the right of each, what becomes of them."),
                reconstructions.plot(*image, COLUMNS),
            ),
            figure(
                "paths",
                format!("{title}: along the geodesic between the codes of two test images, a path in each row."),
                paths.plot(*image, POINTS),
            ),
        ];
        if let Some(sphere) = sphere {
            let caption = format!("{title}: the whole latent sphere, by longitude and height (equal areas).");
            figures.push(figure("sphere", caption, sphere.plot(*image, GLOBE.0)));
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
