//! FeatureMap of many images as one normal law: what FID compares, gathered image by image or read from a file.
//!
//! **Conventions.** Files are those of pytorch-fid: NPZ with `mu` `[d]` and `sigma` `[d, d]`. Ours say in further arrays how
//! many images there were (`count`) and by which network and preprocessing (`network`, `sha256`, `preprocessing`, as bytes
//! of text); others are taken for what the user says they are. **Checked by** tests/lab/statistics.rs.

use super::{Extractor, FeatureMap, Fid, Normal, Scatter};
use crate::bytes::hexadecimal;
use crate::image::intensities;
use crate::table::npz;
use crate::table::npz::{Array, Npz};
use minvel::Error;
use minvel_engine::{DeviceError, Options};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// The law of features, and what it must agree in to be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Mean and covariance of the features.
    pub law: Normal,
    /// Images; 0 where it is not known.
    pub count: usize,
    /// Name of the network; empty where it is not known, as are the others.
    pub network: String,
    /// SHA-256 of its weights.
    pub sha256: String,
    /// SHA-256 of the words of its preprocessing.
    pub preprocessing: String,
}

/// Images that go through a network at once.
const AT_ONCE: usize = 250;

impl Statistics {
    /// Stream of networks that draw, for reference images.
    pub const REFERENCE: u32 = 0;
    /// The same for samples.
    pub const SAMPLES: u32 = 1;

    /// Of images one after another, at least two; programs run as the options say, what is drawn depends on seed and stream.
    pub fn of(
        network: &dyn FeatureMap,
        images: &[f32],
        stream: u32,
        seed: u64,
        options: &Options,
    ) -> Result<Self, DeviceError> {
        let mut gathering = Gathering::of(network, images.len(), stream, seed, options)?;
        gathering.extend(images)?;
        gathering.finish()
    }

    /// As [`Statistics::of`], of images in bytes.
    pub fn of_bytes(
        network: &dyn FeatureMap,
        images: &[u8],
        stream: u32,
        seed: u64,
        options: &Options,
    ) -> Result<Self, DeviceError> {
        let mut gathering = Gathering::of(network, images.len(), stream, seed, options)?;
        for part in images.chunks(AT_ONCE * gathering.pixels) {
            gathering.extend(&intensities(part))?;
        }
        gathering.finish()
    }

    /// The distance of samples from these.
    pub fn fid(&self, samples: &Statistics) -> Fid {
        let known = |own: &str, other: &str| if own.is_empty() { other.to_string() } else { own.to_string() };
        Fid {
            value: self.law.frechet(&samples.law),
            reference: self.count,
            samples: samples.count,
            network: known(&self.network, &samples.network),
            sha256: known(&self.sha256, &samples.sha256),
            preprocessing: known(&self.preprocessing, &samples.preprocessing),
        }
    }

    /// An error that says why two do not compare, if so; `path` is that of the file at fault.
    pub fn check(&self, other: &Statistics, path: &Path) -> Result<(), Error> {
        let (own, more) = (self.law.mean.len(), other.law.mean.len());
        if own != more {
            return Err(Error::content(path, format!("has statistics of {own} features, but the other has {more}")));
        }
        let differ = |a: &str, b: &str| !a.is_empty() && !b.is_empty() && a != b;
        if differ(&self.sha256, &other.sha256) || differ(&self.preprocessing, &other.preprocessing) {
            let what = "was made with another network, other weights or other preprocessing: the distance would be \
                 meaningless";
            return Err(Error::content(path, what));
        }
        Ok(())
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Statistics, Error> {
        let mut file = Npz::open(path)?;
        let mut needed = |name: &str| {
            let missing = || Error::content(path, format!("has no array `{name}`; expected `mu` and `sigma`"));
            file.array(name)?.ok_or_else(missing)
        };
        let (mu, sigma) = (needed("mu")?, needed("sigma")?);
        let d = mu.values.len();
        if d == 0 || mu.shape.len() != 1 || sigma.shape != [d, d] {
            let what = format!("has `mu` of shape {:?} and `sigma` of {:?}", mu.shape, sigma.shape);
            return Err(Error::content(path, what));
        }
        if !mu.values.iter().chain(&sigma.values).all(|x| x.is_finite()) {
            return Err(Error::content(path, "has numbers that are not finite"));
        }
        let mut text = |name: &str| {
            let bytes = file.array(name)?.map_or(vec![], |a| a.values);
            Ok::<_, Error>(String::from_utf8_lossy(&bytes.iter().map(|b| *b as u8).collect::<Vec<u8>>()).into_owned())
        };
        let (network, sha256, preprocessing) = (text("network")?, text("sha256")?, text("preprocessing")?);
        let count = file.array("count")?.and_then(|a| a.values.first().copied()).unwrap_or(0.0) as usize;
        let law = Normal { mean: mu.values, covariance: sigma.values };
        Ok(Statistics { law, count, network, sha256, preprocessing })
    }

    /// Writes a file.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let d = self.law.mean.len();
        let array = |shape: &[usize], values: &[f64]| Array { shape: shape.to_vec(), values: values.to_vec() };
        let text = |text: &str| array(&[text.len()], &text.bytes().map(f64::from).collect::<Vec<_>>());
        let arrays = [
            ("mu", array(&[d], &self.law.mean)),
            ("sigma", array(&[d, d], &self.law.covariance)),
            ("count", array(&[1], &[self.count as f64])),
            ("network", text(&self.network)),
            ("sha256", text(&self.sha256)),
            ("preprocessing", text(&self.preprocessing)),
        ];
        npz::write(path, &arrays)
    }
}

/// Images on their way through a network, while their features are summed up beside.
pub struct Gathering {
    extractor: Extractor,
    at_once: usize,
    pixels: usize,
    waiting: Vec<f32>,
    count: usize,
    /// What is known before the first image.
    blank: Statistics,
    send: SyncSender<Vec<f32>>,
    scatter: JoinHandle<Scatter>,
}

/// Rows that are summed up at once: always so many, so that sums do not depend on how many images go at once.
const ROWS: usize = 1024;

impl Gathering {
    /// For images of so many numbers together.
    fn of(
        network: &dyn FeatureMap,
        len: usize,
        stream: u32,
        seed: u64,
        options: &Options,
    ) -> Result<Self, DeviceError> {
        let count = len / network.image().iter().product::<usize>();
        Gathering::new(network, AT_ONCE.min(count.next_multiple_of(16)), stream, seed, options)
    }

    /// So many images go through the network at once; what is drawn depends on seed and stream.
    pub fn new(
        network: &dyn FeatureMap,
        at_once: usize,
        stream: u32,
        seed: u64,
        options: &Options,
    ) -> Result<Self, DeviceError> {
        let extractor = Extractor::new(network, at_once, stream, seed, options)?;
        let (send, receive) = sync_channel::<Vec<f32>>(4);
        let d = network.count();
        let scatter = std::thread::spawn(move || {
            let (mut scatter, mut rows) = (Scatter::new(d), vec![]);
            for features in receive {
                rows.extend(features);
                let whole = rows.len() / (ROWS * d) * ROWS * d;
                scatter.extend(&rows[..whole]);
                rows.drain(..whole);
            }
            scatter.extend(&rows);
            scatter
        });
        let blank = Statistics {
            law: Normal { mean: vec![], covariance: vec![] },
            count: 0,
            network: network.name().to_string(),
            sha256: network.sha256().to_string(),
            preprocessing: hexadecimal(&Sha256::digest(network.preprocessing())),
        };
        let pixels = network.image().iter().product();
        Ok(Gathering { extractor, at_once, pixels, waiting: vec![], count: 0, blank, send, scatter })
    }

    /// More images, one after another.
    pub fn extend(&mut self, images: &[f32]) -> Result<(), DeviceError> {
        let size = self.at_once * self.pixels;
        let mut rest = images;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(size - self.waiting.len()));
            self.waiting.extend(now);
            rest = later;
            if self.waiting.len() == size {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        let features = self.extractor.features(&self.waiting)?.to_vec();
        self.count += self.waiting.len() / self.pixels;
        self.waiting.clear();
        self.send.send(features).expect("sums are waited for");
        Ok(())
    }

    /// Images that went through the network so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The law of all features; it takes two images at least.
    pub fn finish(mut self) -> Result<Statistics, DeviceError> {
        if !self.waiting.is_empty() {
            self.flush()?;
        }
        let Gathering { blank, send, scatter, count, .. } = self;
        drop(send);
        let law = scatter.join().expect("sums do not fail").normal();
        Ok(Statistics { law, count, ..blank })
    }
}
