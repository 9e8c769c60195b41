//! Decoders: from a code to the law of an image.
//!
//! **Statement.** p(x|z) = likelihood(x | ψ(f(z))). **Source.** docs/math §3.7, §4.6, §4.8. **Error.** Rounding.
//! **Checked by** tests/theory/autoencoder.rs (parameter counts, likelihoods), tests/theory/convolution.rs.

use super::{Architecture, Likelihood};
use crate::manifold::Manifold;
use crate::network::{Activation, Features, Network, Parameter, latent_features};
use minvel_engine::Expr;
use std::sync::Arc;

/// A network from codes to images.
#[derive(Clone, Debug)]
pub struct Decoder {
    /// What its output means.
    pub likelihood: Likelihood,
    features: Features,
    network: Network,
}

impl Decoder {
    /// A dense one.
    pub fn dense(
        latent: &Arc<dyn Manifold>,
        likelihood: Likelihood,
        pixels: usize,
        hidden: &[usize],
        activation: Activation,
    ) -> Self {
        Self::new(latent, likelihood, [1, pixels, 1], &Architecture::Dense(hidden.to_vec()), activation)
    }

    /// To images of `[height, width, channels]`.
    pub fn new(
        latent: &Arc<dyn Manifold>,
        likelihood: Likelihood,
        image: [usize; 3],
        architecture: &Architecture,
        activation: Activation,
    ) -> Self {
        let features = latent_features(latent);
        let network = Network::of("decoder", features.count(), architecture.decoder(image), activation);
        Decoder { likelihood, features, network }
    }

    /// Pixels of an image.
    pub fn pixels(&self) -> usize {
        self.network.outputs()
    }

    /// Its parameters.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.network.parameters()
    }

    /// The network's output, `rows × [m]` → `rows × [pixels]`.
    pub fn output<'g>(&self, z: Expr<'g>) -> Expr<'g> {
        self.network.apply(self.features.apply(z))
    }

    /// Mean intensities given the code.
    pub fn mean<'g>(&self, z: Expr<'g>) -> Expr<'g> {
        self.likelihood.mean(self.output(z))
    }

    /// log p(x|z), `rows × []`, of pixels as the likelihood has them.
    pub fn log_prob<'g>(&self, x: Expr<'g>, z: Expr<'g>) -> Expr<'g> {
        self.likelihood.log_prob(x, self.output(z))
    }
}
