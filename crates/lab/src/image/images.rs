//! Images: many of one size, as bytes.
//!
//! **Conventions.** An image is `[height, width, channels]`, as the engine's convolutions take it; a byte p is the
//! intensity p/255. **Checked by** tests/lab/data_images.rs.

use super::{Picture, cifar, mnist};
use minvel::Error;
use std::ops::Range;
use std::path::Path;

/// Images of one size, and where they come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// How many.
    pub count: usize,
    /// Pixels from top to bottom.
    pub height: usize,
    /// Pixels from left to right.
    pub width: usize,
    /// 1 for grey, 3 for red, green and blue.
    pub channels: usize,
    /// Row-major `[count, height, width, channels]`.
    pub pixels: Vec<u8>,
    /// Which file or folder, without those above it.
    pub name: String,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
}

impl Images {
    /// Numbers of one image.
    pub fn features(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// The pixels of one image.
    pub fn image(&self, index: usize) -> &[u8] {
        &self.pixels[index * self.features()..][..self.features()]
    }

    /// Some of the images, one after another.
    pub fn part(&self, range: Range<usize>) -> Images {
        let d = self.features();
        let pixels = self.pixels[range.start * d..range.end * d].to_vec();
        let (name, sha256) = (self.name.clone(), self.sha256.clone());
        Images { count: range.len(), pixels, name, sha256, ..*self }
    }

    /// Of a known data set and its part, as `mnist:test` or `cifar10:train`.
    pub fn named(name: &str) -> Result<Images, Error> {
        let labelled = match name {
            "mnist:train" => mnist::train(None),
            "mnist:test" => mnist::test(None),
            "cifar10:train" => cifar::train(None),
            "cifar10:test" => cifar::test(None),
            _ => Err(Error::config(format!(
                "there are no images `{name}`; expected mnist:train, mnist:test, cifar10:train or cifar10:test"
            ))),
        };
        labelled.map(|labelled| labelled.images)
    }

    /// One image as a picture; grey as three equal channels.
    pub fn picture(&self, index: usize) -> Picture {
        let repeats = if self.channels == 1 { 3 } else { 1 };
        let pixels = self.image(index).iter().flat_map(|p| std::iter::repeat_n(*p, repeats)).collect();
        Picture { height: self.height, width: self.width, pixels }
    }

    /// The same in three channels, or in one ([`Picture::bytes`]).
    pub fn in_channels(self, channels: usize) -> Images {
        if channels == self.channels {
            return self;
        }
        let pixels = (0..self.count).flat_map(|k| self.picture(k).bytes(channels)).collect();
        Images { channels, pixels, ..self }
    }

    /// Intensities p/255 in [0, 1].
    pub fn intensities(&self) -> Vec<f32> {
        intensities(&self.pixels)
    }
}

/// Intensities p/255 in [0, 1] of bytes p.
pub fn intensities(pixels: &[u8]) -> Vec<f32> {
    pixels.iter().map(|p| *p as f32 / 255.0).collect()
}

/// Images with what they show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// The images.
    pub images: Images,
    /// The class of each.
    pub labels: Vec<u8>,
}

impl Labelled {
    /// Images and labels that were read from different files; `path` is that of the labels.
    pub fn new(images: Images, labels: Vec<u8>, path: &Path) -> Result<Self, Error> {
        if images.count == labels.len() {
            return Ok(Labelled { images, labels });
        }
        let what = format!("has {} labels for the {} images of {}", labels.len(), images.count, images.name);
        Err(Error::content(path, what))
    }

    /// Some of the images and their labels.
    pub fn part(&self, range: Range<usize>) -> Labelled {
        Labelled { images: self.images.part(range.clone()), labels: self.labels[range].to_vec() }
    }
}
