//! An auto-encoder and its learning as settings: what a TOML file says.

use super::kinds::{FlowKind, Latent, LikelihoodKind, MatchKind, NetworkKind, PosteriorKind};
use super::{Architecture, Autoencoder, AutoencoderLearning, Likelihood, Match, Posterior};
use crate::Error;
use crate::energy::von_mises_fisher::Reparameterisation;
use crate::energy::{Conditional, Head, Mlp};
use crate::flow::{Blend, Flow, FlowForm, Langevin, RiemannianLangevin, Stein};
use crate::manifold::{Manifold, Space};
use crate::matching::{Adversarial, Discrepancy, Velocity};
use crate::network::{Activation, latent_features};
use crate::objective::MinimumVelocity;
use minvel_engine::optim::Optimiser;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Settings of one auto-encoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AutoencoderSettings {
    /// Manifold of the codes, as `sphere:8`.
    pub latent: Latent,
    /// `point`, `implicit` or `explicit`.
    pub posterior: PosteriorKind,
    /// `bernoulli`, `gaussian` or `dequantised`.
    pub likelihood: LikelihoodKind,
    /// σ of the gaussian and the dequantised likelihood.
    pub deviation: f64,
    /// `dense` or `convolutional`.
    pub network: NetworkKind,
    /// Channels after each convolution, from the image on; none in dense networks.
    pub filters: Vec<usize>,
    /// Hidden widths of all networks; of convolutional ones those between the convolutions and the code.
    pub hidden: Vec<usize>,
    /// Of encoder and decoder; energies use tanh, convolutional ones softplus.
    pub activation: Activation,
    /// Learning rate of RMSProp.
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
    /// `divergence`, `conditional`, `velocity`, `adversarial` or `discrepancy`.
    pub kind: MatchKind,
    /// λ.
    pub weight: f64,
    /// ε of minimum velocity.
    pub step: f64,
    /// Weight of the squared energies or outputs, at the scale the paper quotes.
    pub penalty: f64,
    /// `chart`, `geodesic` or `spos`.
    pub flow: FlowKind,
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
        let latent = self.latent.0.clone();
        let mut posterior = self.posterior.on(&*latent).map_err(|why| refuse("posterior", why))?;
        if let (Posterior::VonMisesFisher { gradient }, true) = (&mut posterior, self.official) {
            *gradient = Reparameterisation::Official;
        }
        let likelihood = self.likelihood.with(self.deviation);
        let architecture = self.architecture()?;
        if let Some((key, why)) = architecture.refuses(image) {
            return Err(refuse(key, why));
        }
        let positive = |key: &str, x: f64| if x > 0.0 { Ok(()) } else { Err(refuse(key, "must be positive".into())) };
        if likelihood != Likelihood::Bernoulli {
            positive("deviation", self.deviation)?;
        }
        positive("rate", self.rate)?;
        positive("batch", self.batch as f64)?;
        positive("iterations", f64::from(self.iterations))?;
        Ok(AutoencoderLearning {
            pull: self.pull(&latent, posterior, image, &architecture)?,
            model: Autoencoder::new(latent, posterior, likelihood, image, &architecture, self.activation),
            weight: self.matching.weight,
            batch: self.batch,
            optimiser: Optimiser::rmsprop_tf(self.rate),
        })
    }

    fn architecture(&self) -> Result<Architecture, Error> {
        let (filters, hidden) = (self.filters.clone(), self.hidden.clone());
        match self.network {
            NetworkKind::Dense if filters.is_empty() => Ok(Architecture::Dense(hidden)),
            NetworkKind::Dense => {
                Err(Error::config("`filters`: only convolutional networks have filters, and this one is dense"))
            }
            NetworkKind::Convolutional => Ok(Architecture::Convolutional { filters, hidden }),
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
        if explicit != (*kind == MatchKind::Divergence) {
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
        Ok(match kind {
            MatchKind::Divergence => Match::Divergence,
            MatchKind::Conditional => {
                if self.matching.flow == FlowKind::Spos {
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
            MatchKind::Velocity => {
                let energy = Mlp::layered("energy", features, &hidden, smooth, Head::Inner);
                let energy = if *spectral { energy.spectral() } else { energy };
                Match::Learnt(Arc::new(Velocity::of_all(latent.clone(), energy, velocity()?, SCALE)))
            }
            MatchKind::Adversarial => {
                let critic = Adversarial::layered(latent.clone(), &hidden, smooth, *penalty);
                Match::Learnt(Arc::new(if *spectral { critic.spectral() } else { critic }))
            }
            MatchKind::Discrepancy => {
                Match::Learnt(Arc::new(Discrepancy { latent: latent.clone(), factor: DISCREPANCY }))
            }
        })
    }

    fn flow(&self, latent: &Arc<dyn Manifold>) -> Result<Arc<dyn Flow>, Error> {
        let on = |form| Arc::new(RiemannianLangevin { manifold: latent.clone(), form });
        let flat = matches!(self.latent.space(), Some(Space::Euclidean(_)));
        match self.matching.flow {
            // On Rⁿ the same step, but with N = |∇E|² of the adaptive step (docs/math §1.6), where a chart has |drift|².
            FlowKind::Chart | FlowKind::Geodesic if flat => Ok(Arc::new(Langevin)),
            FlowKind::Chart => Ok(on(FlowForm::Chart)),
            FlowKind::Geodesic => Ok(on(FlowForm::Geodesic)),
            FlowKind::Spos if flat => Ok(Arc::new(Blend::convex(0.5, Stein::default()))),
            FlowKind::Spos => {
                Err(Error::config("`matching.flow`: spos needs a Euclidean latent space: use chart or geodesic"))
            }
        }
    }
}
