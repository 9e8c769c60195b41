//! An auto-encoder and its learning as settings: what a TOML file says.

use super::{Architecture, Autoencoder, AutoencoderLearning, Likelihood, Match, Posterior};
use crate::energy::von_mises_fisher::Reparameterisation;
use crate::energy::{Conditional, Head, Mlp};
use crate::flow::{Blend, Flow, FlowForm, Langevin, RiemannianLangevin, Stein};
use crate::manifold::Manifold;
use crate::matching::{Adversarial, Discrepancy, Velocity};
use crate::network::{Activation, latent_features};
use crate::objective::MinimumVelocity;
use crate::{Error, manifold};
use minvel_engine::optim::Optimiser;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// AutoencoderSettings of one auto-encoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AutoencoderSettings {
    /// Manifold of the codes, as `sphere:8`.
    pub latent: String,
    /// `point`, `implicit` or `explicit`.
    pub posterior: String,
    /// `bernoulli` (pixels become 0 or 1 with their probability at every step), `gaussian` (they are taken as they are) or
    /// `dequantised` (gaussian between −1 and 1, with uniform noise between bytes).
    pub likelihood: String,
    /// σ of the gaussian and the dequantised likelihood.
    pub deviation: f64,
    /// `dense` or `convolutional`.
    pub network: String,
    /// Channels after each convolution, from the image on; none in dense networks.
    pub filters: Vec<usize>,
    /// Hidden widths of all networks; of convolutional ones those between the convolutions and the code.
    pub hidden: Vec<usize>,
    /// `tanh`, `relu`, `softplus`, `silu` or `elu`, of encoder and decoder; energies use tanh, convolutional ones softplus.
    pub activation: String,
    /// AutoencoderLearning rate of RMSProp.
    pub rate: f64,
    /// Images of a step.
    pub batch: usize,
    /// Steps.
    pub iterations: u32,
    /// What keeps codes near the prior.
    pub matching: Matched,
    /// Whether an explicit spherical posterior is sampled and differentiated as in the official code, which is biased.
    pub official: bool,
}

/// What keeps codes near the prior.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matched {
    /// `divergence` (KL, explicit posteriors only), `conditional` (velocity, an energy of code and image), `velocity` (an
    /// energy of the code), `adversarial` or `discrepancy`.
    pub kind: String,
    /// λ.
    pub weight: f64,
    /// ε of minimum velocity.
    pub step: f64,
    /// Weight of the squared energies or outputs, at the scale the paper quotes.
    pub penalty: f64,
    /// `chart` (the paper's), `geodesic`, or `spos` (Stein particles and Langevin by halves; Euclidean codes, `velocity`).
    pub flow: String,
    /// Whether hidden layers of the energy or critic are normalised spectrally.
    pub spectral: bool,
}

/// The scale at which penalties are quoted: the loss of an energy is this times L̂ (half the paper's step of 10⁻³).
const SCALE: f64 = 0.5e-3;
/// What the paper's code multiplies MMD² by, beside λ.
const DISCREPANCY: f64 = 100.0;

impl AutoencoderSettings {
    /// The learning of images of `[height, width, channels]`; an error names the setting.
    pub fn learning(&self, image: [usize; 3]) -> Result<AutoencoderLearning, Error> {
        let refuse = |key: &str, why: String| Error::config(format!("`{key}`: {why}"));
        let latent = manifold::parse(&self.latent).map_err(|why| refuse("latent", why))?;
        let mut posterior = Posterior::parse(&self.posterior, &*latent).map_err(|why| refuse("posterior", why))?;
        if let (Posterior::VonMisesFisher { gradient }, true) = (&mut posterior, self.official) {
            *gradient = Reparameterisation::Official;
        }
        let activation = Activation::parse(&self.activation).map_err(|why| refuse("activation", why))?;
        let deviation = self.deviation;
        let likelihood = match self.likelihood.as_str() {
            "bernoulli" => Likelihood::Bernoulli,
            "gaussian" => Likelihood::Gaussian { deviation },
            "dequantised" => Likelihood::Dequantised { deviation },
            other => {
                return Err(refuse("likelihood", format!("must be bernoulli, gaussian or dequantised, not `{other}`")));
            }
        };
        let architecture = self.architecture()?;
        if let Some((key, why)) = architecture.refuses(image) {
            return Err(refuse(key, why));
        }
        let positive = |key: &str, x: f64| if x > 0.0 { Ok(()) } else { Err(refuse(key, "must be positive".into())) };
        if likelihood != Likelihood::Bernoulli {
            positive("deviation", deviation)?;
        }
        positive("rate", self.rate)?;
        positive("batch", self.batch as f64)?;
        positive("iterations", f64::from(self.iterations))?;
        Ok(AutoencoderLearning {
            pull: self.pull(&latent, posterior, image, &architecture)?,
            model: Autoencoder::new(latent, posterior, likelihood, image, &architecture, activation),
            weight: self.matching.weight,
            batch: self.batch,
            optimiser: Optimiser::rmsprop_tf(self.rate),
        })
    }

    fn architecture(&self) -> Result<Architecture, Error> {
        let (filters, hidden) = (self.filters.clone(), self.hidden.clone());
        match self.network.as_str() {
            "dense" if filters.is_empty() => Ok(Architecture::Dense(hidden)),
            "dense" => Err(Error::config("`filters`: only convolutional networks have filters, and this one is dense")),
            "convolutional" => Ok(Architecture::Convolutional { filters, hidden }),
            other => Err(Error::config(format!("`network`: must be dense or convolutional, not `{other}`"))),
        }
    }

    fn pull(
        &self,
        latent: &Arc<dyn Manifold>,
        posterior: Posterior,
        image: [usize; 3],
        architecture: &Architecture,
    ) -> Result<Match, Error> {
        let refuse = |key: &str, why: String| Error::config(format!("`matching.{key}`: {why}"));
        let Matched { kind, penalty, step, spectral, .. } = &self.matching;
        let (hidden, smooth) = (architecture.energy(image), architecture.smooth());
        let explicit = matches!(posterior, Posterior::Gaussian | Posterior::VonMisesFisher { .. });
        if explicit != (kind == "divergence") {
            let why = format!("{kind} cannot be combined with the posterior {}", self.posterior);
            return Err(refuse(
                "kind",
                format!("{why}: explicit posteriors need divergence, and only they can use it"),
            ));
        }
        for (key, value) in [("weight", self.matching.weight), ("penalty", *penalty)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(refuse(key, "must not be negative".into()));
            }
        }
        let velocity = || -> Result<MinimumVelocity, Error> {
            if !(*step > 0.0 && step.is_finite()) {
                return Err(refuse("step", "must be positive".into()));
            }
            let flow = self.flow(latent)?;
            let mut objective = MinimumVelocity { flow, ..MinimumVelocity::new(Langevin, *step) };
            (objective.adaptive, objective.penalty) = (true, penalty / SCALE);
            Ok(objective)
        };
        let features = latent_features(latent);
        Ok(match kind.as_str() {
            "divergence" => Match::Divergence,
            "conditional" => {
                if self.matching.flow == "spos" {
                    let why = "spos needs one distribution of codes, and each image has its own: use chart or geodesic";
                    return Err(refuse("flow", why.into()));
                }
                if posterior == Posterior::Point {
                    let why = "one code per image has no entropy to learn: use posterior = \"implicit\", or velocity";
                    return Err(refuse("kind", why.into()));
                }
                let pixels = image.iter().product();
                let energy = Conditional::layered("energy", features, pixels, &hidden, smooth, Head::Inner);
                let energy = if *spectral { energy.spectral() } else { energy };
                Match::Learnt(Arc::new(Velocity::of_each(latent.clone(), energy, velocity()?, SCALE)))
            }
            "velocity" => {
                let energy = Mlp::layered("energy", features, &hidden, smooth, Head::Inner);
                let energy = if *spectral { energy.spectral() } else { energy };
                Match::Learnt(Arc::new(Velocity::of_all(latent.clone(), energy, velocity()?, SCALE)))
            }
            "adversarial" => {
                let critic = Adversarial::layered(latent.clone(), &hidden, smooth, *penalty);
                Match::Learnt(Arc::new(if *spectral { critic.spectral() } else { critic }))
            }
            "discrepancy" => Match::Learnt(Arc::new(Discrepancy { latent: latent.clone(), factor: DISCREPANCY })),
            other => {
                let known = "divergence, conditional, velocity, adversarial or discrepancy";
                return Err(refuse("kind", format!("unknown kind `{other}`; expected {known}")));
            }
        })
    }

    fn flow(&self, latent: &Arc<dyn Manifold>) -> Result<Arc<dyn Flow>, Error> {
        let on = |form| Arc::new(RiemannianLangevin { manifold: latent.clone(), form });
        let flat = self.latent.starts_with("euclidean:");
        match self.matching.flow.as_str() {
            // On Rⁿ the same step, but with N = |∇E|² of the adaptive step (docs/math §1.6), where a chart has |drift|².
            "chart" | "geodesic" if flat => Ok(Arc::new(Langevin)),
            "chart" => Ok(on(FlowForm::Chart)),
            "geodesic" => Ok(on(FlowForm::Geodesic)),
            "spos" if flat => Ok(Arc::new(Blend::convex(0.5, Stein::default()))),
            "spos" => Err(Error::config("`matching.flow`: spos needs a Euclidean latent space: use chart or geodesic")),
            other => {
                Err(Error::config(format!("`matching.flow`: unknown flow `{other}`; expected chart, geodesic or spos")))
            }
        }
    }
}
