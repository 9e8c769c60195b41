//! What experiments with auto-encoders of images share: the data, training many seeds side by side, and pictures.

mod judging;
mod pictures;
mod rates;
mod table;
mod variant;

pub(super) use judging::Judging;
pub(super) use rates::Rates;
pub(super) use table::beside_paper;
pub(super) use variant::{Trained, Variant, curves, dash_of, divergences};

use crate::experiment::Config;
use crate::image::folder::{Folder, Framing};
use crate::image::{Images, cifar, folder, mnist};
use minvel::Error;
use minvel::autoencoder::Likelihood;
use serde::Deserialize;
use std::cell::OnceCell;
use std::ops::Range;
use std::path::{Path, PathBuf};

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
        /// 3, or 1 for grey.
        channels: usize,
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
    #[serde(default = "colour")]
    pub channels: usize,
    pub train: f64,
    pub test: f64,
}

fn colour() -> usize {
    3
}

/// The largest side of a picture that is learnt from.
const LARGEST: usize = 1 << 12;

impl Frame {
    /// An error names the setting.
    pub fn check(&self, config: &Config) -> Result<(), Error> {
        let Frame { side, channels, train, test, .. } = *self;
        let demand = |key: &str, ok: bool, what: &str| if ok { Ok(()) } else { Err(config.refuse(key, what)) };
        demand(
            "frame.side",
            (1..=LARGEST).contains(&side) && side.is_multiple_of(4),
            "must be a multiple of 4, at most 4096",
        )?;
        demand("frame.channels", channels == 1 || channels == 3, "must be 3, or 1 for grey")?;
        demand("frame.train", train > 0.0 && train <= 1.0, "must be a share between 0 and 1")?;
        demand("frame.test", test > 0.0 && train + test <= 1.0, "must be a share, at most what `train` leaves")
    }

    /// The pictures of a folder in it.
    pub fn of(&self, folder: &str) -> Source {
        let framing = Framing { crop: (self.crop > 0).then_some(self.crop), side: self.side };
        let Frame { channels, train, test, .. } = *self;
        Source::Folder { folder: PathBuf::from(folder), framing, channels, train, test }
    }
}

/// Images to learn from or to test with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Train,
    Test,
}

impl Source {
    /// Height, width and channels.
    pub fn image(&self) -> [usize; 3] {
        match self {
            Source::Mnist(_) => [28, 28, 1],
            Source::Cifar(_) => [32, 32, 3],
            Source::Folder { framing, channels, .. } => [framing.side, framing.side, *channels],
        }
    }

    /// What it is, in words that name no folder above it.
    pub fn name(&self) -> String {
        match self {
            Source::Mnist(_) => "mnist".into(),
            Source::Cifar(_) => "cifar10".into(),
            Source::Folder { folder, .. } => {
                let whole = std::fs::canonicalize(folder).unwrap_or(folder.clone());
                format!("pictures of the folder {}", whole.file_name().unwrap_or_default().to_string_lossy())
            }
        }
    }

    /// Side of the square that is cut out of the middle of a picture, if not the largest.
    pub fn crop(&self) -> Option<usize> {
        if let Source::Folder { framing, .. } = self { framing.crop } else { None }
    }

    fn read(&self, part: Part) -> Result<Images, Error> {
        let labelled = match (self, part) {
            (Source::Mnist(folder), Part::Train) => mnist::train(folder.as_deref()),
            (Source::Mnist(folder), Part::Test) => mnist::test(folder.as_deref()),
            (Source::Cifar(folder), Part::Train) => cifar::train(folder.as_deref()),
            (Source::Cifar(folder), Part::Test) => cifar::test(folder.as_deref()),
            (Source::Folder { folder, framing, channels, train, test }, part) => {
                let own = |count: usize| match part {
                    Part::Train => 0..share(*train, count),
                    Part::Test => count - share(*test, count)..count,
                };
                let Folder { images, count, .. } = decoded(folder, *framing, own)?;
                return if images.count == 0 { Err(too_few(folder, count)) } else { Ok(images.in_channels(*channels)) };
            }
        };
        Ok(labelled?.images)
    }
}

/// So many of a number of pictures.
fn share(of: f64, count: usize) -> usize {
    (of * count as f64).floor() as usize
}

fn too_few(folder: &Path, count: usize) -> Error {
    let what = format!("has {count} pictures: too few for the shares `frame.train` and `frame.test`");
    Error::content(folder, format!("{what}; add pictures, or raise the shares"))
}

/// Some pictures of a folder, or what was decoded of them before.
fn decoded(folder: &Path, framing: Framing, choose: impl Fn(usize) -> Range<usize>) -> Result<Folder, Error> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Folder::read_part(folder, framing, threads, folder::cache().as_deref(), choose, |_, _| ())
}

/// A folder that was named, if one was.
pub(super) fn given(folder: &str) -> Option<PathBuf> {
    (!folder.is_empty()).then(|| PathBuf::from(folder))
}

/// Images, read when they are first asked for.
#[derive(Debug)]
pub(super) struct ImageModels {
    source: Source,
    seed: u64,
    train: OnceCell<Vec<u8>>,
    test: OnceCell<Vec<u8>>,
}

impl ImageModels {
    /// Of a source; the seed is that of binary pixels.
    pub fn new(source: Source, seed: u64) -> Self {
        ImageModels { source, seed, train: OnceCell::new(), test: OnceCell::new() }
    }

    /// Whether the files are there.
    pub fn check(&self) -> Result<(), Error> {
        match &self.source {
            Source::Mnist(folder) => mnist::check(folder.as_deref()),
            Source::Cifar(_) => self.test().map(drop),
            Source::Folder { folder, .. } if folder.as_os_str().is_empty() => {
                Err(Error::config("a folder of pictures is required"))
            }
            Source::Folder { folder, train, test, .. } => {
                let count = folder::list(folder)?.len();
                if share(*train, count).min(share(*test, count)) == 0 { Err(too_few(folder, count)) } else { Ok(()) }
            }
        }
    }

    /// Pixels of the images to learn from.
    pub fn train(&self) -> Result<&[u8], Error> {
        read(&self.train, || Ok(self.source.read(Part::Train)?.pixels))
    }

    /// Pixels of the images to test with.
    pub fn test(&self) -> Result<&[u8], Error> {
        read(&self.test, || Ok(self.source.read(Part::Test)?.pixels))
    }

    /// What a reader should know of the files.
    pub fn notes(&self) -> Result<Vec<String>, Error> {
        let Source::Folder { folder, framing, .. } = &self.source else { return Ok(vec![]) };
        let Folder { count, skipped, .. } = decoded(folder, *framing, |_| 0..0)?;
        let mut notes = vec![format!("{count} pictures of the folder were used.")];
        if let Some(first) = skipped.first() {
            let (count, path, why) = (skipped.len(), first.path.display(), &first.why);
            notes.push(format!("{count} files could not be read and were skipped; the first, {path}, {why}."));
        }
        Ok(notes)
    }

    /// So many test images, their pixels 0 or 1 with their probability, as [`ImageModels::shown`].
    pub fn binarised(&self, count: usize) -> Result<Vec<f32>, Error> {
        self.shown(count, Likelihood::Bernoulli)
    }

    /// So many test images as a likelihood has them, spread evenly over all (the second half of MNIST is harder than the first).
    pub fn shown(&self, count: usize, likelihood: Likelihood) -> Result<Vec<f32>, Error> {
        Ok(match likelihood {
            // all are drawn, so that an image has the same pixels among few and among many
            Likelihood::Bernoulli => spread(&likelihood.shown(self.test()?, self.seed), self.pixels(), count),
            _ => likelihood.shown(&spread(self.test()?, self.pixels(), count), self.seed),
        })
    }

    /// Where the images come from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    fn pixels(&self) -> usize {
        self.source.image().iter().product()
    }
}

/// Places of so many images among all, spread evenly.
pub(super) fn chosen_of(total: usize, count: usize) -> impl Iterator<Item = usize> {
    let count = count.min(total);
    (0..count).map(move |k| k * total / count)
}

fn spread<T: Copy>(all: &[T], pixels: usize, count: usize) -> Vec<T> {
    chosen_of(all.len() / pixels, count).flat_map(|k| all[k * pixels..][..pixels].iter().copied()).collect()
}

fn read(cell: &OnceCell<Vec<u8>>, load: impl Fn() -> Result<Vec<u8>, Error>) -> Result<&[u8], Error> {
    if cell.get().is_none() {
        let _ = cell.set(load()?);
    }
    Ok(cell.get().expect("just set"))
}
