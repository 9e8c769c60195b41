//! Adversarial matching: a critic tells codes from points of the prior.
//!
//! **Statement.** The critic D minimises −mean log(σ(D(z_p)) + 10⁻⁷) − mean log(1 − σ(D(z_q)) + 10⁻⁷) + 2c·mean D(z_q)²;
//! the pull is −mean log σ(D(z_q)), which does not saturate. **Source.** docs/math §4.7 (WAE-GAN); tolstikhin2018wae,
//! goodfellow2014gan. **Conventions.** D sees the features of the code ([`latent_features`]).
//! **Error.** None is known: the pull is a divergence for the best critic only.
//! **Checked by** tests/theory/matching.rs.

use super::Matching;
use crate::manifold::Manifold;
use crate::network::{Activation, Features, Layer, Network, Parameter, latent_features};
use minvel_engine::{Expr, Graph};
use std::sync::Arc;

/// A critic.
#[derive(Clone, Debug)]
pub struct Adversarial {
    latent: Arc<dyn Manifold>,
    features: Features,
    critic: Network,
    penalty: f64,
}

/// What is added to probabilities before their logarithm is taken.
const FLOOR: f64 = 1e-7;

impl Adversarial {
    /// A critic of the given hidden widths, with weight c of its squared outputs.
    pub fn new(latent: Arc<dyn Manifold>, hidden: &[usize], activation: Activation, penalty: f64) -> Self {
        Self::layered(latent, &Layer::dense(hidden), activation, penalty)
    }

    /// A critic with hidden layers of any kind.
    pub fn layered(latent: Arc<dyn Manifold>, hidden: &[Layer], activation: Activation, penalty: f64) -> Self {
        let features = latent_features(&latent);
        let layers = [hidden, &[Layer::Dense(1)]].concat();
        Adversarial { critic: Network::of("critic", features.count(), layers, activation), latent, features, penalty }
    }

    /// With spectral normalisation of the hidden layers.
    pub fn spectral(mut self) -> Self {
        self.critic.spectral = true;
        self
    }

    /// D(z), the logit of being of the prior, `rows × []`.
    pub fn logit<'g>(&self, z: Expr<'g>) -> Expr<'g> {
        self.critic.apply(self.features.apply(z)).at(-1, 0)
    }
}

impl Matching for Adversarial {
    fn pull<'g>(&self, codes: Expr<'g>, _: Expr<'g>, _: u32) -> Expr<'g> {
        (-self.logit(codes)).softplus().mean_rows()
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.critic.parameters()
    }

    fn followers(&self) -> Vec<Parameter> {
        self.critic.followers()
    }

    fn follow<'g>(&self, graph: &'g Graph) -> Vec<(Expr<'g>, Expr<'g>)> {
        self.critic.follow(graph)
    }

    fn loss<'g>(&self, codes: Expr<'g>, _: Expr<'g>, stream: u32) -> Option<Expr<'g>> {
        let rows = codes.shape().rows.expect("codes are rows");
        let prior = self.latent.sample_base(codes.graph(), rows, stream);
        let (real, own) = (self.logit(prior), self.logit(codes));
        let told = (real.sigmoid() + FLOOR).log() + ((-own).sigmoid() + FLOOR).log();
        Some((2.0 * self.penalty * own.square() - told).mean_rows())
    }
}
