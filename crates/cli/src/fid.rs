//! `minvel fid`: how far apart two sets of images are.

use crate::progress::Bars;
use crate::{Failure, place};
use clap::{Args, ValueEnum};
use minvel::data::folder::{self, Pictures, Skipped};
use minvel::data::{Images, catalogue};
use minvel::eval::{Features, Gathering, Inception, Lenet, Statistics};
use minvel::report::format;
use minvel::train::{Desk, Observer};
use minvel::{Device, DeviceError, Error, file};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Measure the Fréchet distance between the features of two sets of images.
///
/// A and B are folders of PNG and JPEG images, statistics as pytorch-fid writes them (.npz with mu and sigma), or known
/// data sets: mnist:train, mnist:test, cifar10:train, cifar10:test. Images may differ in size. Files that cannot be read
/// are named and left out. Distances compare only at the same numbers of images.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel fid photographs samples                 two folders of pictures
  minvel fid photographs --save photographs.npz  their statistics, once,
  minvel fid photographs.npz samples             and then only the samples
  minvel fid cifar10:train cifar10:test          a check of all of it: about 3.15")]
pub struct Arguments {
    /// Reference images.
    #[arg(value_name = "A")]
    reference: String,
    /// Images to compare with them; may be left out with --save.
    #[arg(value_name = "B", required_unless_present = "save")]
    samples: Option<String>,
    /// Network whose features are compared.
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Network::Inception)]
    network: Network,
    /// File of its weights [default: see `minvel data path inception`, or what `minvel train lenet` wrote].
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Also write the statistics of A, to be given in its place later (.npz).
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Images that go through the network at once; distances do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1024))]
    batch: u32,
    /// Where the network runs: auto, cpu, cuda or cuda:NUMBER; `minvel devices` lists them.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    device: Device,
    /// Threads; all cores if not given.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// Seed of networks that draw black and white.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Network {
    /// That of FID on photographs.
    Inception,
    /// That of the paper's FID on MNIST.
    Lenet,
}

/// A network that threads share.
type Shared = Arc<dyn Features + Send + Sync>;

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
            return Err(Error::content(&path, "is neither a folder of images nor an .npz file of statistics"));
        }
        match catalogue::list()?.iter().any(|known| name.split(':').next() == Some(&known.name)) {
            true => Images::named(name).map(Source::Known),
            false => Err(Error::content(&path, "is not there; give a folder, an .npz file, or a name as cifar10:test")),
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
    desk: &'a Desk<'a>,
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
                let pictures = Pictures::new(files, self.desk.threads(), move |picture| inner.intensities(&picture));
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
        network: &(dyn Features + Send + Sync),
        pictures: impl Iterator<Item = Result<Vec<f32>, Skipped>>,
        count: usize,
        stream: u32,
    ) -> Result<Measured, Failure> {
        let at_once = (self.arguments.batch as usize).min(count.next_multiple_of(16));
        let gathering = Gathering::new(network, at_once, stream, self.arguments.seed, &self.desk.options(1));
        let failed = |why: DeviceError| Failure::Work(why.into());
        let mut gathering = gathering.map_err(failed)?;
        let mut skipped = vec![];
        self.bars.begin(name, count as u64, "images");
        for picture in pictures {
            match picture {
                Ok(intensities) => gathering.extend(&intensities).map_err(failed)?,
                Err(file) => skipped.push(file),
            }
            self.desk.go_on().map_err(Failure::of_work)?;
            self.bars.advance((gathering.count() + skipped.len()) as u64, "");
        }
        self.bars.end();
        if count < skipped.len() + 2 {
            let first = skipped.first().map_or(String::new(), |s| format!(": {} {}", s.path.display(), s.why));
            let what = format!("has {} readable images, and a covariance takes two{first}", count - skipped.len());
            return Err(Failure::Input(Error::content(Path::new(name), what)));
        }
        Ok(Measured { statistics: gathering.finish().map_err(failed)?, skipped })
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    place::check_device(arguments.device).map_err(Failure::Input)?;
    if let Some(path) = arguments.save.as_deref().filter(|path| path.extension().is_none_or(|e| e != "npz")) {
        let what = format!("{}: statistics are written as .npz", path.display());
        return Err(Failure::Input(Error::config(what)));
    }
    arguments.save.as_deref().map_or(Ok(()), file::check_place).map_err(Failure::Input)?;
    let (begun, stop) = (Instant::now(), crate::stop::on_signal());
    let names = std::iter::once(&arguments.reference).chain(&arguments.samples);
    let sources = names.clone().map(|name| Source::of(name)).collect::<Result<Vec<_>, _>>().map_err(Failure::Input)?;
    let images = sources.iter().any(|s| !matches!(s, Source::Statistics(_)));
    let weights = images.then(|| Weights::of(arguments)).transpose().map_err(Failure::Input)?;
    let bars = Bars::new("fid");
    let mut desk = Desk::watched(&bars, stop);
    (desk.threads, desk.device) = (arguments.threads, arguments.device);
    let work = Work { arguments, weights: weights.as_ref(), desk: &desk, bars: &bars };
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
        note!("left out: {} {}", file.path.display(), file.why);
    }
    if !skipped.is_empty() {
        let images = if skipped.len() == 1 { "image was" } else { "images were" };
        note!("{} {images} left out", skipped.len());
    }
    if let Some(fid) = &fid {
        say!("FID {fid}");
        let few = [fid.reference, fid.samples].into_iter().filter(|n| (1..10000).contains(n)).min();
        if let Some(few) = few {
            say!("With {few} images it is much larger than with 50000: compare only with distances of as many.");
        }
    }
    if let Some(path) = &arguments.save {
        say!("Statistics of {} images: {}", first.count, path.display());
    }
    say!("{}", format::duration(seconds));
    Ok(())
}
