//! Settings that suit pictures: what `minvel train vae|wae DIR` chooses where the user says nothing.
//!
//! **Conventions.** At most [`LOOKED_AT`] pictures are looked at, spread evenly over all. Choices follow their size, their
//! number, whether they have colours, and whether they are nearly black and white; each says why. **Checked by**
//! crates/cli/tests/program/pictures.rs.

use super::{Data, Settings};
use crate::experiment::Config;
use crate::image::folder::Pictures;
use crate::image::{Picture, folder};
use minvel::Error;
use minvel::autoencoder::{LikelihoodKind, NetworkKind, PosteriorKind};
use std::path::Path;

/// A setting that suits the pictures, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Which setting.
    pub key: &'static str,
    /// Its value, as TOML.
    pub value: String,
    /// Why, in a few words.
    pub why: String,
}

/// What was found about pictures, and the settings that suit them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// The pictures, in words.
    pub about: String,
    /// The settings, but for those that the user fixed.
    pub chosen: Vec<Chosen>,
}

/// Pictures that are looked at.
const LOOKED_AT: usize = 64;
/// Differences of channels that are no colour, as JPEG leaves them in grey pictures.
const GREY: u8 = 8;
/// Bytes this far from black or white, at most, are nearly so.
const NEARLY: u8 = 40;
/// Share of nearly black or white pixels from which a picture is nearly binary; digits of MNIST have 0.9.
const BINARY: f64 = 0.85;
/// σ at which a likelihood is the sum of squares: what the weight of the matching was tuned for in the paper.
const SUM_OF_SQUARES: &str = "0.7071";

/// What pictures are like.
struct Survey {
    count: usize,
    /// Median of the shorter sides.
    side: usize,
    grey: bool,
    /// Share of pixels that are nearly black or white.
    binary: f64,
}

/// What one picture is like.
struct Looks {
    side: usize,
    grey: bool,
    binary: f64,
}

impl Looks {
    fn of(picture: &Picture) -> Looks {
        let pixels = picture.pixels.as_chunks::<3>().0;
        let plain = |[r, g, b]: &[u8; 3]| r.max(g).max(b) - r.min(g).min(b) <= GREY;
        let extreme = picture.pixels.iter().filter(|p| **p <= NEARLY || **p >= 255 - NEARLY).count();
        let binary = extreme as f64 / picture.pixels.len() as f64;
        Looks { side: picture.height.min(picture.width), grey: pixels.iter().all(plain), binary }
    }
}

impl Survey {
    const CIFAR: Survey = Survey { count: 50_000, side: 32, grey: false, binary: 0.0 };

    fn of(folder: &Path) -> Result<Survey, Error> {
        let paths = folder::list(folder)?;
        let count = paths.len();
        let looked = (0..count.min(LOOKED_AT)).map(|k| paths[k * count / count.min(LOOKED_AT)].clone()).collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let (mut looks, mut first) = (vec![], None);
        for picture in Pictures::new(looked, threads, |picture| Ok(Looks::of(&picture))) {
            match picture {
                Ok(found) => looks.push(found),
                Err(file) => first = first.or(Some(file)),
            }
        }
        if let (true, Some(first)) = (looks.is_empty(), first) {
            let what = format!("has no readable picture; the first, {}, {}", first.path.display(), first.why);
            return Err(Error::content(folder, what));
        }
        looks.sort_by_key(|l| l.side);
        let binary = looks.iter().map(|l| l.binary).sum::<f64>() / looks.len() as f64;
        Ok(Survey { count, side: looks[looks.len() / 2].side, grey: looks.iter().all(|l| l.grey), binary })
    }

    fn is_binary(&self) -> bool {
        self.grey && self.binary >= BINARY
    }

    fn words(&self) -> String {
        let Survey { count, side, .. } = self;
        let looks = if self.is_binary() {
            "nearly black and white"
        } else if self.grey {
            "grey"
        } else {
            "in colour"
        };
        format!("{count} pictures, {looks}, with a median short side of {side} pixels")
    }
}

/// The settings that suit the pictures that settings name, but for those that are fixed; `None` for MNIST, whose settings
/// are the defaults.
pub fn choices(config: &Config, fixed: &dyn Fn(&str) -> bool) -> Result<Option<Choices>, Error> {
    let settings: Settings = config.read()?;
    let survey = match &settings.data {
        Data::Mnist => return Ok(None),
        Data::Cifar => Survey::CIFAR,
        Data::Folder(folder) if is_mnist(Path::new(folder)) => return Ok(None),
        Data::Folder(folder) if !Path::new(folder).is_dir() => {
            let what = "is not a folder; expected a folder of pictures or of MNIST's files, or mnist or cifar10";
            return Err(Error::content(Path::new(folder), what));
        }
        Data::Folder(folder) => Survey::of(Path::new(folder))?,
    };
    let mut chosen = Suiting { settings: &settings, survey: &survey, fixed }.all();
    chosen.retain(|c| !fixed(c.key));
    Ok(Some(Choices { about: survey.words(), chosen }))
}

/// Whether a folder holds MNIST, or what is published in its form.
fn is_mnist(folder: &Path) -> bool {
    let parts = ["train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"];
    parts.iter().any(|name| folder.join(name).is_file())
}

/// The rules.
struct Suiting<'a> {
    settings: &'a Settings,
    survey: &'a Survey,
    fixed: &'a dyn Fn(&str) -> bool,
}

impl Suiting<'_> {
    fn all(&self) -> Vec<Chosen> {
        let (frame, side, channels) = (&self.settings.frame, self.side(), self.channels());
        let total = self.survey.count;
        let known = matches!(self.settings.data, Data::Cifar);
        let training = if known { total } else { (frame.train * total as f64) as usize };
        let held_out = if known { 10_000 } else { (frame.test * total as f64) as usize };
        let pictures = format!("for {training} training pictures");
        let conv = self.convolutional(side, channels);
        let filters = if conv { filters(side, training) } else { vec![] };
        let likelihood = self.likelihood();
        let batch = training.clamp(1, if conv { 64 } else { 128 });
        let batch = 1usize << batch.ilog2();
        let most = if conv { 50_000 } else { 100_000 };
        let steps = (200 * training / batch).clamp(3_000, most);
        let dimension = match training {
            _ if !conv => 8,
            0..5_000 => 16,
            5_000..20_000 => 32,
            _ => 64,
        };
        let mut list = vec![];
        let mut say = |key, value: String, why: &str| list.push(Chosen { key, value, why: why.to_string() });
        if !known {
            say("frame.side", side.to_string(), &self.why_side());
            let why = if channels == 1 { "no picture has colours" } else { "the pictures have colours" };
            say("frame.channels", channels.to_string(), why);
        }
        say("model.likelihood", format!("\"{likelihood}\""), self.why_likelihood(likelihood));
        let point = self.settings.model.posterior == PosteriorKind::Point;
        if likelihood != LikelihoodKind::Bernoulli {
            let (value, why) = match point {
                true => (SUM_OF_SQUARES, "σ at which the likelihood is the sum of squares"),
                false => ("0.2", "σ of a pixel between −1 and 1"),
            };
            say("model.deviation", value.into(), why);
        }
        let (network, why) = match conv {
            true => (NetworkKind::Convolutional, "uses the neighbourhood of pixels"),
            false => (NetworkKind::Dense, "enough for small grey pictures"),
        };
        say("model.network", format!("\"{network}\""), why);
        say(
            "model.filters",
            format!("{filters:?}"),
            if conv { "halve the side at each step" } else { "none if dense" },
        );
        say("model.hidden", if conv { "[256]" } else { "[256, 256]" }.into(), "widths of the dense layers");
        let why = if conv { "usual with convolutions" } else { "as in the paper" };
        say("model.activation", format!("{:?}", if conv { "relu" } else { "tanh" }), why);
        say("model.latent", format!("\"sphere:{dimension}\""), &pictures);
        let rate = if conv && steps > 10_000 { "3e-4" } else { "1e-3" };
        say("model.rate", rate.into(), "of RMSProp");
        say("model.batch", batch.to_string(), &pictures);
        let epochs = steps * batch / training.max(1);
        say("model.iterations", steps.to_string(), &format!("{epochs} times through {training} training pictures"));
        if conv && point {
            say("model.matching.penalty", "1e-4".into(), "as in the paper for convolutions");
        }
        if conv && !point {
            say("evaluation.images", "0".into(), "likelihoods by annealing take hours with convolutions");
        }
        let (samples, why) = match held_out {
            0..100 => (0, "FID is meaningless with fewer than 100 test pictures"),
            n => (n.min(1_000), "samples for FID, as many as test pictures, up to 1000"),
        };
        say("evaluation.samples", samples.to_string(), why);
        list
    }

    fn side(&self) -> usize {
        let Survey { count, side, .. } = *self.survey;
        match self.settings.frame.side {
            0 => match side {
                28 => 28,
                64.. if count >= 1_000 => 64,
                24.. => 32,
                12.. => 16,
                _ => 8,
            },
            fixed => fixed,
        }
    }

    fn why_side(&self) -> String {
        let Survey { count, side, .. } = *self.survey;
        match side {
            64.. if count < 1_000 => "fewer than 1000 pictures do not support more detail".into(),
            _ => format!("their short side is {side}"),
        }
    }

    fn channels(&self) -> usize {
        match ((self.fixed)("frame.channels"), self.survey.grey) {
            (true, _) => self.settings.frame.channels,
            (false, grey) => {
                if grey {
                    1
                } else {
                    3
                }
            }
        }
    }

    fn convolutional(&self, side: usize, channels: usize) -> bool {
        let model = &self.settings.model;
        if (self.fixed)("model.network") {
            model.network == NetworkKind::Convolutional
        } else if (self.fixed)("model.filters") {
            !model.filters.is_empty()
        } else {
            channels == 3 || side > 32
        }
    }

    fn likelihood(&self) -> LikelihoodKind {
        if (self.fixed)("model.likelihood") {
            self.settings.model.likelihood
        } else if self.survey.is_binary() && self.channels() == 1 {
            LikelihoodKind::Bernoulli
        } else {
            LikelihoodKind::Dequantised
        }
    }

    fn why_likelihood(&self, likelihood: LikelihoodKind) -> &'static str {
        match likelihood {
            LikelihoodKind::Bernoulli => "pixels are nearly black or white",
            LikelihoodKind::Gaussian | LikelihoodKind::Dequantised => "pixels have shades",
        }
    }
}

/// Channels of the convolutions: doubled while the side is halved, down to 4 or an odd side.
fn filters(side: usize, training: usize) -> Vec<usize> {
    let first = match training {
        0..1_000 => 16,
        1_000..10_000 => 32,
        _ => 64,
    };
    let halvings = (1..).take_while(|k| side.is_multiple_of(1 << k) && side >> k >= 4);
    halvings.map(|k| first << (k - 1)).collect()
}
