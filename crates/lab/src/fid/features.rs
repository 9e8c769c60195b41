//! FeatureMap of images: what a network makes of them before it judges.
//!
//! **Conventions.** Images are intensities in [0, 1], `[height, width, channels]`; what a network wants instead (shifts,
//! sizes, binary pixels) is its own business. A new network is a file here. **Checked by** tests/lab/lenet.rs, tests/lab/fid.rs,
//! tests/real_data/inception.rs.

mod grey;
mod inception;
mod lenet;
mod thumbnail;

pub use grey::Grey;
pub use inception::Inception;
pub use lenet::{Lenet, Origin, Schooling};
pub use thumbnail::Thumbnail;

use crate::image::Picture;
use minvel_engine::{Clock, DeviceError, Expr, Graph, Options, Program, State};

/// A network whose features are compared.
pub trait FeatureMap {
    /// What it is called.
    fn name(&self) -> &str;
    /// SHA-256 of its weights: distances of different networks do not compare.
    fn sha256(&self) -> &str;
    /// What is done to intensities before the network sees them, in words: another way gives another distance.
    fn preprocessing(&self) -> &str {
        "none"
    }
    /// How many features an image has.
    fn count(&self) -> usize;
    /// Height, width and channels of its images.
    fn image(&self) -> [usize; 3];
    /// The intensities of a picture, as many as an image has; an error in words where the network cannot take it.
    fn intensities(&self, picture: &Picture) -> Result<Vec<f32>, String> {
        let ([height, width, channels], pixels) = (self.image(), &picture.pixels);
        if (picture.height, picture.width) != (height, width) {
            let (w, h, name) = (picture.width, picture.height, self.name());
            return Err(format!("has {w} × {h} pixels; {name} expects {width} × {height}"));
        }
        if channels == 1 && pixels.as_chunks().0.iter().any(|[red, green, blue]| red != green || red != blue) {
            return Err(format!("is in colour; {} expects grey images", self.name()));
        }
        Ok(pixels.iter().step_by(3 / channels).map(|p| *p as f32 / 255.0).collect())
    }
    /// The features in a program, `rows × [height·width·channels]` → `rows × [count]`; the stream is for networks that draw.
    fn features<'g>(&self, images: Expr<'g>, stream: u32) -> Expr<'g>;
    /// Gives a state the weights, which the program has as variables.
    fn set(&self, state: &mut State<f32>);

    /// The features of images one after another, so many at a time; what is drawn depends on seed and stream.
    fn apply(
        &self,
        images: &[f32],
        at_once: usize,
        stream: u32,
        seed: u64,
        options: &Options,
    ) -> Result<Vec<f32>, DeviceError> {
        let mut extractor = Extractor::new(self, at_once, stream, seed, options)?;
        let mut all = vec![];
        for part in images.chunks(at_once * extractor.pixels) {
            all.extend_from_slice(extractor.features(part)?);
        }
        Ok(all)
    }
}

/// A network in a program, for so many images at once.
pub struct Extractor {
    program: Program<f32>,
    state: State<f32>,
    name: String,
    at_once: usize,
    pixels: usize,
    count: usize,
    clock: Clock,
}

impl Extractor {
    /// Compiles a network; what is drawn depends on seed and stream.
    pub fn new<N: FeatureMap + ?Sized>(
        network: &N,
        at_once: usize,
        stream: u32,
        seed: u64,
        options: &Options,
    ) -> Result<Self, DeviceError> {
        let pixels = network.image().iter().product::<usize>();
        let g = Graph::new();
        let features = network.features(g.input_rows("images", at_once, [pixels]), stream);
        let program = g.try_compile::<f32>(&[features], &[], &Options { replicas: 1, ..options.clone() })?;
        let mut state = State::new(1);
        network.set(&mut state);
        let (name, count) = (network.name().to_string(), network.count());
        Ok(Extractor { program, state, name, at_once, pixels, count, clock: Clock { seed, step: 0 } })
    }

    /// FeatureMap of the next images, at most so many as go at once.
    pub fn features(&mut self, images: &[f32]) -> Result<&[f32], DeviceError> {
        let Extractor { at_once, pixels, count, .. } = *self;
        let given = images.len() / pixels;
        let fits = images.len() == given * pixels && given <= at_once;
        assert!(fits, "{}: {} numbers are not up to {at_once} images of {pixels}", self.name, images.len());
        // the last ones are filled up with black images
        let mut whole = vec![];
        let inputs: &[f32] = if given < at_once {
            whole.extend_from_slice(images);
            whole.resize(at_once * pixels, 0.0);
            &whole
        } else {
            images
        };
        self.program.try_run(&mut self.state, &[("images", inputs)], self.clock)?;
        self.clock.step += 1;
        Ok(&self.program.try_output(0)?[..given * count])
    }
}
