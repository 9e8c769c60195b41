//! What settings of auto-encoders choose between: each a type, so that an unknown name is refused where it is read.
//!
//! **Conventions.** In TOML and JSON, and when shown, a kind is the variant's name in lower case. **Checked by**
//! tests/theory/autoencoder.rs.

use super::{Likelihood, Posterior};
use crate::energy::von_mises_fisher::Reparameterisation;
use crate::manifold::{self, Manifold, Space};
use serde::de::{self, Deserializer, IntoDeserializer};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Whether encoder and posterior have a density.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PosteriorKind {
    /// One code for each image.
    Point,
    /// Whatever a network makes of image and noise.
    Implicit,
    /// The family that is natural on the manifold.
    Explicit,
}

/// The law of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LikelihoodKind {
    /// Pixels become 0 or 1 with their probability at every step.
    Bernoulli,
    /// Pixels are taken as they are.
    Gaussian,
    /// Gaussian between −1 and 1, with uniform noise between bytes.
    Dequantised,
}

/// The kind of layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkKind {
    /// Dense layers only.
    Dense,
    /// Convolutions, then dense layers.
    Convolutional,
}

/// What keeps codes near the prior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatchKind {
    /// KL, for explicit posteriors only.
    Divergence,
    /// Velocity, with an energy of code and image.
    Conditional,
    /// Velocity, with an energy of the code.
    Velocity,
    /// A critic.
    Adversarial,
    /// MMD.
    Discrepancy,
}

/// The flow of a velocity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowKind {
    /// Riemannian Langevin in the manifold's chart, as in the paper.
    Chart,
    /// Riemannian Langevin along geodesics.
    Geodesic,
    /// Stein particles and Langevin by halves; Euclidean codes and [`MatchKind::Velocity`] only.
    Spos,
}

/// A kind is shown and parsed as serde has it.
macro_rules! kinds {
    ($($kind:ident)*) => {$(
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                self.serialize(f)
            }
        }

        impl FromStr for $kind {
            type Err = de::value::Error;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                $kind::deserialize(name.into_deserializer())
            }
        }
    )*};
}
kinds!(PosteriorKind LikelihoodKind NetworkKind MatchKind FlowKind);

impl PosteriorKind {
    /// The family on a manifold: an implicit posterior has as many noise inputs as dimensions.
    ///
    /// ```
    /// use minvel::autoencoder::{Posterior, PosteriorKind::{Explicit, Implicit}};
    /// let sphere = minvel::manifold::parse("sphere:8").unwrap();
    /// assert_eq!(Implicit.on(&*sphere).unwrap(), Posterior::Implicit { noise: 8 });
    /// assert_eq!(Explicit.on(&*sphere).unwrap().to_string(), "von-mises-fisher");
    /// let torus = minvel::manifold::parse("torus:2").unwrap();
    /// assert!(Explicit.on(&*torus).unwrap_err().contains("torus:2"));
    /// ```
    pub fn on(self, latent: &dyn Manifold) -> Result<Posterior, String> {
        match (self, latent.spaces().as_deref()) {
            (PosteriorKind::Point, _) => Ok(Posterior::Point),
            (PosteriorKind::Implicit, _) => Ok(Posterior::Implicit { noise: latent.dim() }),
            (PosteriorKind::Explicit, Some([Space::Euclidean(_)])) => Ok(Posterior::Gaussian),
            (PosteriorKind::Explicit, Some([Space::Sphere(_)])) => {
                Ok(Posterior::VonMisesFisher { gradient: Reparameterisation::Exact })
            }
            (PosteriorKind::Explicit, _) => {
                Err(format!("there is no explicit posterior on {latent}: use implicit, or euclidean:n or sphere:n"))
            }
        }
    }
}

impl LikelihoodKind {
    /// The likelihood with σ = `deviation`, where it has one.
    pub fn with(self, deviation: f64) -> Likelihood {
        match self {
            LikelihoodKind::Bernoulli => Likelihood::Bernoulli,
            LikelihoodKind::Gaussian => Likelihood::Gaussian { deviation },
            LikelihoodKind::Dequantised => Likelihood::Dequantised { deviation },
        }
    }
}

/// The manifold of the codes; in TOML and JSON its name, as `sphere:8`.
#[derive(Clone, Debug)]
pub struct Latent(pub Arc<dyn Manifold>);

impl Latent {
    /// The model space that it is; a product is none.
    pub fn space(&self) -> Option<Space> {
        match self.0.spaces()?[..] {
            [space] => Some(space),
            _ => None,
        }
    }
}

impl PartialEq for Latent {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}

impl fmt::Display for Latent {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Latent {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        manifold::parse(name).map(Latent)
    }
}

impl Serialize for Latent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Latent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
