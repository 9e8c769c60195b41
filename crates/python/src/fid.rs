//! Fréchet distances between sets of images, as `minvel fid` measures them; and pictures of folders.

use crate::error::{raised, refused};
use crate::work::{Place, perform};
use minvel::Error;
use minvel::train::Context;
use minvel_lab::fid::{FeatureMap, Gathering, Inception, Lenet, Statistics, Thumbnail};
use minvel_lab::image::Images;
use minvel_lab::image::folder::{self, Folder, Framing, Pictures};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Images that go through a network at once.
const AT_ONCE: usize = 128;

type Shared = Arc<dyn FeatureMap + Send + Sync>;

/// Images in bytes, one after another, of (height, width, channels).
#[derive(FromPyObject)]
pub struct Pixels<'py> {
    #[pyo3(item("pixels"))]
    pixels: PyReadonlyArray1<'py, u8>,
    #[pyo3(item("shape"))]
    shape: [usize; 3],
}

impl Pixels<'_> {
    fn images(&self) -> PyResult<Images> {
        let [height, width, channels] = self.shape;
        let pixels = self.pixels.as_slice()?.to_vec();
        let count = pixels.len() / (height * width * channels).max(1);
        Ok(Images { count, height, width, channels, pixels, name: String::new(), sha256: String::new() })
    }
}

/// One of the two sets: an array, or the path of a folder or of statistics (.npz).
#[derive(FromPyObject)]
pub enum Source<'py> {
    Images(Pixels<'py>),
    Path(PathBuf),
}

/// The same without Python.
enum Set {
    Images(Images),
    Folder(Vec<PathBuf>),
    Statistics(PathBuf),
}

impl Source<'_> {
    fn set(&self) -> PyResult<Set> {
        match self {
            Source::Images(pixels) => pixels.images().map(Set::Images),
            Source::Path(path) if path.extension().is_some_and(|e| e == "npz") => Ok(Set::Statistics(path.clone())),
            Source::Path(path) => folder::list(path).map(Set::Folder).map_err(raised),
        }
    }
}

/// The distance of two sets of images, and how it was measured, as JSON; and what was skipped, in words.
#[pyfunction]
#[pyo3(signature = (a, b, *, network, weights, seed, threads, device, watch))]
pub fn fid(
    py: Python,
    a: Source,
    b: Source,
    network: &str,
    weights: Option<PathBuf>,
    seed: u64,
    threads: usize,
    device: &str,
    watch: Option<&Bound<PyAny>>,
) -> PyResult<(String, Vec<String>)> {
    let (place, sets) = (Place::new(threads, device)?, [a.set()?, b.set()?]);
    let images = sets.iter().any(|set| !matches!(set, Set::Statistics(_)));
    let network = images.then(|| Network::found(network, weights.as_deref())).transpose()?;
    let (fid, skipped) = perform(py, place, watch, |context| {
        let mut skipped = vec![];
        let mut of = |set: &Set, stream: u32| match (set, &network) {
            (Set::Statistics(path), _) => Statistics::read(path),
            (Set::Images(images), Some(network)) => of_images(network, images, stream, seed, context),
            (Set::Folder(files), Some(network)) => {
                of_folder(network, files.clone(), stream, seed, &mut skipped, context)
            }
            (_, None) => unreachable!("a network is found where there are images"),
        };
        let (reference, samples) = (of(&sets[0], Statistics::REFERENCE)?, of(&sets[1], Statistics::SAMPLES)?);
        samples.check(&reference, Path::new("b"))?;
        Ok((reference.fid(&samples), skipped))
    })?;
    Ok((serde_json::to_string(&fid).expect("a distance is plain data"), skipped))
}

/// A network, for images of any size.
enum Network {
    Inception(Inception),
    Lenet(Shared),
    Thumbnail,
}

impl Network {
    fn found(name: &str, weights: Option<&Path>) -> PyResult<Network> {
        match name {
            "inception" => {
                weights.map_or_else(Inception::find, Inception::read).map(Network::Inception).map_err(raised)
            }
            "lenet" => {
                let network = weights.map_or_else(Lenet::find, Lenet::read).map_err(raised)?;
                Ok(Network::Lenet(Arc::new(network)))
            }
            "thumbnail" => Ok(Network::Thumbnail),
            other => Err(refused(format!("network is {other:?}: expected \"inception\", \"lenet\" or \"thumbnail\""))),
        }
    }

    /// For images of one size.
    fn of(&self, [height, width, channels]: [usize; 3]) -> Shared {
        match self {
            Network::Inception(network) => Arc::new(network.clone().of([height, width])),
            Network::Lenet(network) => network.clone(),
            Network::Thumbnail => Arc::new(Thumbnail::of([height, width, channels])),
        }
    }

    /// For pictures of any sizes.
    fn of_any(&self) -> Result<Shared, Error> {
        match self {
            Network::Inception(network) => Ok(Arc::new(network.clone())),
            Network::Lenet(network) => Ok(network.clone()),
            Network::Thumbnail => Err(Error::config("thumbnails need images of one size")),
        }
    }
}

fn of_images(
    network: &Network,
    images: &Images,
    stream: u32,
    seed: u64,
    context: &Context,
) -> Result<Statistics, Error> {
    let network = network.of([images.height, images.width, images.channels]);
    let pictures = (0..images.count).map(|i| {
        let wrong = |why| Error::config(format!("image {i} (counted from 0) {why}"));
        network.intensities(&images.picture(i)).map_err(wrong)
    });
    measure(&*network, pictures, images.count, stream, seed, context)
}

/// Pictures in their own sizes, as `minvel fid` takes them.
fn of_folder(
    network: &Network,
    files: Vec<PathBuf>,
    stream: u32,
    seed: u64,
    skipped: &mut Vec<String>,
    context: &Context,
) -> Result<Statistics, Error> {
    let (network, count, before) = (network.of_any()?, files.len(), skipped.len());
    let inner = network.clone();
    let pictures = Pictures::new(files, context.threads(), move |picture| inner.intensities(&picture));
    let readable = pictures.filter_map(|picture| {
        let why = picture.as_ref().err().map(|file| format!("skipped {}, which {}", file.path.display(), file.why));
        skipped.extend(why);
        picture.ok().map(Ok)
    });
    let statistics = measure(&*network, readable, count, stream, seed, context)?;
    match count - (skipped.len() - before) {
        0 | 1 => {
            Err(Error::config(format!("a folder has fewer than two readable images: {}", skipped[before..].join("; "))))
        }
        _ => Ok(statistics),
    }
}

fn measure(
    network: &(dyn FeatureMap + Send + Sync),
    pictures: impl Iterator<Item = Result<Vec<f32>, Error>>,
    count: usize,
    stream: u32,
    seed: u64,
    context: &Context,
) -> Result<Statistics, Error> {
    let at_once = AT_ONCE.min(count.next_multiple_of(16));
    context.stage("images", count, "images", || {
        let mut gathering = Gathering::new(network, at_once, stream, seed, &context.options(1))?;
        for picture in pictures {
            context.go_on()?;
            gathering.extend(&picture?)?;
            context.worked(1);
        }
        Ok(gathering.finish()?)
    })
}

/// Pictures of a folder, scaled to squares: bytes, and (side, side, 3).
#[pyfunction]
pub fn images_of_folder<'py>(
    py: Python<'py>,
    folder: PathBuf,
    side: usize,
    threads: usize,
) -> PyResult<(Bound<'py, PyArray1<u8>>, [usize; 3])> {
    let place = Place { threads, device: minvel::Device::Cpu };
    let read = perform(py, place, None, |context| {
        Folder::read(&folder, Framing { crop: None, side }, context.threads(), None, |_, _| {})
    })?;
    Ok((read.images.pixels.into_pyarray(py), [side, side, 3]))
}
