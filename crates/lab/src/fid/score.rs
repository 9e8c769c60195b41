//! FID: the Fréchet distance between the features of samples and of real images.
//!
//! **Statement.** FID = d²(N(μ_r, Σ_r), N(μ_s, Σ_s)) of features of reference images and of samples ([`Normal::frechet`]).
//! **Source.** heusel2017fid; docs/math §4.7. **Conventions.** Images are intensities in [0, 1]. Reference and samples are
//! drawn binary, where the network does that, by different streams of one seed.
//! **Error.** Biased upwards by O(d²/N) in both counts, so that a distance carries them with it; its scatter is known from
//! several sets of samples only. **Checked by** tests/lab/fid.rs.

use super::{FeatureMap, Statistics};
use minvel::estimate::Estimate;
use minvel_engine::Options;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A distance, and all that it must agree in to be compared with another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fid {
    /// The squared Fréchet distance.
    #[serde(with = "minvel::estimate::number")]
    pub value: f64,
    /// Reference images; 0 if a file of statistics does not say.
    pub reference: usize,
    /// Samples; 0 if a file of statistics does not say.
    pub samples: usize,
    /// Name of the network.
    pub network: String,
    /// SHA-256 of its weights.
    pub sha256: String,
    /// SHA-256 of the words that say what is done to images before ([`FeatureMap::preprocessing`]).
    #[serde(default)]
    pub preprocessing: String,
}

impl Fid {
    /// The mean over independent sets of samples, which must have been measured alike.
    pub fn across(sets: &[Fid]) -> Estimate {
        let measure = |f: &Fid| (f.reference, f.samples, f.sha256.clone(), f.preprocessing.clone());
        let alike = sets.windows(2).all(|pair| measure(&pair[0]) == measure(&pair[1]));
        assert!(alike, "fid: distances of different networks or numbers of images are not comparable");
        Estimate::of(sets.iter().map(|f| f.value))
    }

    /// The mean over seeds of one − factor·other, of seeds that both share: same first weights, batches and noise.
    pub fn paired(one: &[Fid], factor: f64, other: &[Fid]) -> Estimate {
        let _ = (Self::across(one), Self::across(other));
        let alike = one.first().zip(other.first()).is_none_or(|(a, b)| a.sha256 == b.sha256);
        assert!(alike, "fid: distances of different networks are not comparable");
        Estimate::of(one.iter().zip(other).map(|(a, b)| a.value - factor * b.value))
    }
}

/// As `18.36 (lenet 0f3a12bc, 10000 samples against 10000)`; numbers of images that are not known are `?`.
impl fmt::Display for Fid {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Fid { value, network, sha256, .. } = self;
        let short = &sha256[..sha256.len().min(8)];
        let [samples, reference] =
            [self.samples, self.reference].map(|n| if n > 0 { n.to_string() } else { "?".into() });
        write!(f, "{value:.2} ({network} {short}, {samples} samples against {reference})")
    }
}

/// Reference images as a network sees them: what samples are measured against.
pub struct Reference<'a> {
    network: &'a dyn FeatureMap,
    statistics: Statistics,
    seed: u64,
    options: Options,
}

impl<'a> Reference<'a> {
    /// Of images one after another; programs run as the options say, what is drawn depends on the seed.
    pub fn new(network: &'a dyn FeatureMap, images: &[f32], seed: u64, options: &Options) -> Self {
        let statistics = Statistics::of(network, images, Statistics::REFERENCE, seed, options);
        let statistics = statistics.unwrap_or_else(|why| panic!("{why}"));
        Reference { network, statistics, seed, options: options.clone() }
    }

    /// The distance of samples.
    pub fn fid(&self, samples: &[f32]) -> Fid {
        let statistics = Statistics::of(self.network, samples, Statistics::SAMPLES, self.seed, &self.options);
        self.statistics.fid(&statistics.unwrap_or_else(|why| panic!("{why}")))
    }
}
