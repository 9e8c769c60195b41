//! `minvel fid`: how far apart two sets of images are.

use crate::progress::Bars;
use crate::threads::Threads;
use crate::{Failure, place};
use clap::{Args, ValueEnum};
use minvel::estimate::format;
use minvel::train::{Context, Observer};
use minvel::{Device, DeviceError, Error, file};
use minvel_lab::catalogue;
use minvel_lab::fid::{FeatureMap, Gathering, Inception, Lenet, Statistics};
use minvel_lab::image::folder::{Pictures, Skipped};
use minvel_lab::image::{Images, folder};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Compute the Fréchet distance (FID) between the features of two sets of images.
///
/// A and B are folders of PNG and JPEG images, statistics in the format of pytorch-fid (.npz with mu and sigma), or data
/// sets: mnist:train, mnist:test, cifar10:train, cifar10:test. Images may differ in size. Unreadable files are listed and
/// skipped. Compare distances only at equal numbers of images.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel fid photographs samples                 two folders of pictures
  minvel fid photographs --save photographs.npz  save statistics of the reference
  minvel fid photographs.npz samples             use them instead of the pictures
  minvel fid cifar10:train cifar10:test          sanity check: about 3.15")]
pub struct Arguments {
    /// Reference images.
    #[arg(value_name = "A")]
    reference: String,
    /// Images to compare with the reference; optional with --save.
    #[arg(value_name = "B", required_unless_present = "save")]
    samples: Option<String>,
    /// Network whose features are compared.
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Network::Inception)]
    network: Network,
    /// Weights file of the network [default: from `minvel data fetch inception` or `minvel train lenet`].
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Write the statistics of A to this file (.npz), which can replace A in later calls.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Batch size; does not affect the result.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1024))]
    batch: u32,
    /// Device: auto (a GPU if available), cpu, cuda or cuda:N; see `minvel devices`.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    device: Device,
    #[command(flatten)]
    threads: Threads,
    /// Random seed for networks that binarise the images.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Network {
    /// Inception v3, the standard network of FID.
    Inception,
    /// LeNet trained on MNIST, as in the paper.
    Lenet,
}

/// A network that threads share.
type Shared = Arc<dyn FeatureMap + Send + Sync>;

/// Weights, for images of any size.
enum Weights {
    Inception(Inception),
    Lenet(Shared),
}

impl Weights {
    fn of(arguments: &Arguments) -> Result<Weights, Error> {
        let given = arguments.weights.as_deref();
        match arguments.network {
            Network::Inception => given.map_or_else(Inception::find, Inception::read).map(Weights::Inception),
            Network::Lenet => given.map_or_else(Lenet::find, Lenet::read).map(|n| Weights::Lenet(Arc::new(n))),
        }
    }

    /// For images of one size, if it is known.
    fn network(&self, size: Option<[usize; 2]>) -> Shared {
        match (self, size) {
            (Weights::Inception(network), Some(size)) => Arc::new(network.clone().of(size)),
            (Weights::Inception(network), None) => Arc::new(network.clone()),
            (Weights::Lenet(network), _) => network.clone(),
        }
    }
}

/// What was asked to be compared.
enum Source {
    Statistics(PathBuf),
    Folder(Vec<PathBuf>),
    Known(Images),
}

impl Source {
    fn of(name: &str) -> Result<Source, Error> {
        let path = PathBuf::from(name);
        if path.is_dir() {
            return folder::list(&path).map(Source::Folder);
        }
        if path.extension().is_some_and(|e| e == "npz") {
            return Ok(Source::Statistics(path));
        }
        if path.is_file() {
            return Err(Error::content(
                &path,
                "unsupported file; expected a folder of images or an .npz file of statistics",
            ));
        }
        match catalogue::list()?.iter().any(|known| name.split(':').next() == Some(&known.name)) {
            true => Images::named(name).map(Source::Known),
            false => Err(Error::content(
                &path,
                "not found; expected a folder, an .npz file, or a data set such as cifar10:test",
            )),
        }
    }
}

/// Statistics, and what was left out on the way.
struct Measured {
    statistics: Statistics,
    skipped: Vec<Skipped>,
}

/// One of the two sets on its way.
struct Work<'a> {
    arguments: &'a Arguments,
    weights: Option<&'a Weights>,
    context: &'a Context<'a>,
    bars: &'a Bars,
}

impl Work<'_> {
    fn measure(&self, name: &str, source: Source, stream: u32) -> Result<Measured, Failure> {
        match source {
            Source::Statistics(path) => {
                let statistics = Statistics::read(&path).map_err(Failure::Input)?;
                Ok(Measured { statistics, skipped: vec![] })
            }
            Source::Known(images) => {
                let network = self.network(Some([images.height, images.width]));
                let count = images.count;
                let inner = network.clone();
                let pictures = (0..count).map(move |i| {
                    let wrong = |why| Skipped { path: PathBuf::from(format!("image {i}")), why };
                    inner.intensities(&images.picture(i)).map_err(wrong)
                });
                self.gather(name, &*network, pictures, count, stream)
            }
            Source::Folder(files) => {
                let network = self.network(None);
                let (count, inner) = (files.len(), network.clone());
                let pictures = Pictures::new(files, self.context.threads(), move |picture| inner.intensities(&picture));
                self.gather(name, &*network, pictures, count, stream)
            }
        }
    }

    fn network(&self, size: Option<[usize; 2]>) -> Shared {
        self.weights.expect("weights are read where there are images").network(size)
    }

    fn gather(
        &self,
        name: &str,
        network: &(dyn FeatureMap + Send + Sync),
        pictures: impl Iterator<Item = Result<Vec<f32>, Skipped>>,
        count: usize,
        stream: u32,
    ) -> Result<Measured, Failure> {
        let at_once = (self.arguments.batch as usize).min(count.next_multiple_of(16));
        let gathering = Gathering::new(network, at_once, stream, self.arguments.seed, &self.context.options(1));
        let failed = |why: DeviceError| Failure::Work(why.into());
        let mut gathering = gathering.map_err(failed)?;
        let mut skipped = vec![];
        self.bars.begin(name, count as u64, "images");
        for picture in pictures {
            match picture {
                Ok(intensities) => gathering.extend(&intensities).map_err(failed)?,
                Err(file) => skipped.push(file),
            }
            self.context.go_on().map_err(Failure::of_work)?;
            self.bars.advance((gathering.count() + skipped.len()) as u64, "");
        }
        self.bars.end();
        if count < skipped.len() + 2 {
            let first = skipped.first().map_or(String::new(), |s| format!(": {} {}", s.path.display(), s.why));
            let what = format!("has {} readable images; expected at least two{first}", count - skipped.len());
            return Err(Failure::Input(Error::content(Path::new(name), what)));
        }
        Ok(Measured { statistics: gathering.finish().map_err(failed)?, skipped })
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    place::check_device(arguments.device).map_err(Failure::Input)?;
    if let Some(path) = arguments.save.as_deref().filter(|path| path.extension().is_none_or(|e| e != "npz")) {
        let what = format!("--save {}: unsupported file type; expected .npz", path.display());
        return Err(Failure::Input(Error::config(what)));
    }
    arguments.save.as_deref().map_or(Ok(()), file::check_place).map_err(Failure::Input)?;
    let (begun, stop) = (Instant::now(), crate::stop::on_signal());
    let names = std::iter::once(&arguments.reference).chain(&arguments.samples);
    let sources = names.clone().map(|name| Source::of(name)).collect::<Result<Vec<_>, _>>().map_err(Failure::Input)?;
    let images = sources.iter().any(|s| !matches!(s, Source::Statistics(_)));
    let weights = images.then(|| Weights::of(arguments)).transpose().map_err(Failure::Input)?;
    let bars = Bars::new("fid");
    let mut context = Context::watched(&bars, stop);
    (context.threads, context.device) = (arguments.threads.number, arguments.device);
    let work = Work { arguments, weights: weights.as_ref(), context: &context, bars: &bars };
    let measured = names.zip(sources).enumerate().map(|(i, (name, source))| work.measure(name, source, i as u32));
    let measured = measured.collect::<Result<Vec<Measured>, Failure>>();
    bars.finish();
    let measured = measured?;
    let first = &measured[0].statistics;
    if let Some(second) = measured.get(1) {
        let path = Path::new(arguments.samples.as_deref().unwrap_or_default());
        second.statistics.check(first, path).map_err(Failure::Input)?;
    }
    if let Some(path) = &arguments.save {
        first.write(path).map_err(Failure::Work)?;
    }
    let fid = measured.get(1).map(|second| first.fid(&second.statistics));
    let skipped: Vec<&Skipped> = measured.iter().flat_map(|m| &m.skipped).collect();
    let seconds = begun.elapsed().as_secs_f64();
    if arguments.json {
        say!("{}", json!({ "fid": fid, "skipped": skipped, "saved": arguments.save, "seconds": seconds }));
        return Ok(());
    }
    for file in skipped.iter().take(10) {
        note!("warning: skipped {}, which {}", file.path.display(), file.why);
    }
    if !skipped.is_empty() {
        let images = if skipped.len() == 1 { "image was" } else { "images were" };
        note!("warning: {} {images} skipped", skipped.len());
    }
    if let Some(fid) = &fid {
        say!("FID {fid}");
        let few = [fid.reference, fid.samples].into_iter().filter(|n| (1..10000).contains(n)).min();
        if let Some(few) = few {
            say!(
                "FID is biased upwards at small samples: compare {few} images only with distances at the same number."
            );
        }
    }
    if let Some(path) = &arguments.save {
        say!("Statistics of {} images: {}", first.count, path.display());
    }
    say!("{}", format::duration(seconds));
    Ok(())
}
