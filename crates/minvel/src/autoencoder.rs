//! Auto-encoders: laws of images that come from a code on a manifold, learnt together with the way back.
//!
//! **Statement.** p(x) = ∫ p(x|z) p(z) dz; −log p(x) ≤ E_q[−log p(x|z)] + KL(q(z|x)‖p(z)) for any q. The prior p(z) is the
//! base law of the latent manifold (normal; uniform where it is compact; wrapped normal in hyperbolic space).
//! **Source.** docs/math §3.7, §4.0, §4.6–§4.9; kingma2014vae, tolstikhin2018wae, davidson2018hyperspherical, wang2020mvl.
//! **Conventions.** Images are rows of intensities in [0, 1]; what networks see of them is said by the [`Likelihood`].
//! Networks are fed features of the code ([`latent_features`](crate::network::latent_features)): angles as cos and sin, unit vectors times √m. Variables are named `encoder/…`, `decoder/…`, and `energy/…` or
//! `critic/…` for what is learnt beside them.
//! **Checked by** tests/theory/autoencoder.rs, tests/theory/autoencoder_facts.rs.

mod architecture;
mod codec;
mod codes;
mod decoder;
mod encoder;
mod evidence;
mod kinds;
mod learning;
mod likelihood;
mod settings;
mod views;

pub use architecture::Architecture;
pub use codec::{Codec, ModelCard, Reading, bytes};
pub use codes::{Code, Posterior};
pub use decoder::Decoder;
pub use encoder::Encoder;
pub use evidence::{Evidence, ImportanceBound};
pub use kinds::{FlowKind, Latent, LikelihoodKind, MatchKind, NetworkKind, PosteriorKind};
pub use learning::{AutoencoderLearning, Match};
pub use likelihood::Likelihood;
pub use settings::{AutoencoderSettings, Matched};
pub use views::Views;

use crate::manifold::Manifold;
use crate::network::{Activation, Parameter};
use minvel_engine::State;
use minvel_engine::math::Real;
use std::sync::Arc;

/// Encoder, code and decoder.
#[derive(Clone, Debug)]
pub struct Autoencoder {
    /// Where codes live; its base law is the prior.
    pub latent: Arc<dyn Manifold>,
    /// From images to codes.
    pub encoder: Encoder,
    /// From codes to images.
    pub decoder: Decoder,
}

impl Autoencoder {
    /// Dense networks with the given hidden widths on both sides, for images of so many pixels.
    pub fn dense(
        latent: Arc<dyn Manifold>,
        posterior: Posterior,
        likelihood: Likelihood,
        pixels: usize,
        hidden: &[usize],
        activation: Activation,
    ) -> Self {
        Self::new(latent, posterior, likelihood, [1, pixels, 1], &Architecture::Dense(hidden.to_vec()), activation)
    }

    /// Networks of an architecture on both sides, for images of `[height, width, channels]`.
    pub fn new(
        latent: Arc<dyn Manifold>,
        posterior: Posterior,
        likelihood: Likelihood,
        image: [usize; 3],
        architecture: &Architecture,
        activation: Activation,
    ) -> Self {
        let encoder = Encoder::new(latent.clone(), posterior, image, architecture, activation);
        let decoder = Decoder::new(&latent, likelihood, image, architecture, activation);
        Autoencoder { latent, encoder, decoder }
    }

    /// Parameters of encoder and decoder.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.encoder.parameters().into_iter().chain(self.decoder.parameters()).collect()
    }
}

/// Gives parameters their start values ([`Parameter::start`]).
pub fn initialise<T: Real>(parameters: &[Parameter], state: &mut State<T>, seed: u64) {
    parameters.iter().for_each(|p| p.start(state, seed));
}
