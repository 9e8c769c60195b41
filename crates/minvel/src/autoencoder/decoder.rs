//! Decoders: from a code to the law of an image.
//!
//! **Statement.** p(x|z) = likelihood(x | ψ(f(z))). **Source.** METHODS 3.7, 4.6. **Error.** Rounding.
//! **Checked by** tests/autoencoder.rs (parameter counts, likelihoods).

use super::{Likelihood, latent_features};
use crate::energy::{Activation, Features, Network, Parameter};
use crate::manifold::Manifold;
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
        let features = latent_features(latent);
        let mut widths = vec![features.count()];
        widths.extend(hidden);
        widths.push(pixels);
        Decoder { likelihood, features, network: Network::new("decoder", &widths, activation) }
    }

    /// Pixels of an image.
    pub fn pixels(&self) -> usize {
        *self.network.widths.last().expect("a network has an output")
    }

    /// Its parameters.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.network.parameters()
    }

    /// The network's output, `rows × [m]` → `rows × [pixels]`.
    pub fn output<'g>(&self, z: Expr<'g>) -> Expr<'g> {
        self.network.apply(self.features.apply(z))
    }

    /// Mean pixels given the code.
    pub fn mean<'g>(&self, z: Expr<'g>) -> Expr<'g> {
        self.likelihood.mean(self.output(z))
    }

    /// log p(x|z), `rows × []`.
    pub fn log_prob<'g>(&self, x: Expr<'g>, z: Expr<'g>) -> Expr<'g> {
        self.likelihood.log_prob(x, self.output(z))
    }
}
