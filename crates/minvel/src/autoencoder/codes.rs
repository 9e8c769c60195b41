//! Posteriors: laws of the code given the image.
//!
//! **Statement.** point: z = h(x). implicit: z = h(x, ε), ε ~ N(0, I): any law, whose density nobody knows.
//! gaussian: N(μ(x), diag σ²(x)), σ = softplus, KL = ½Σ(μ² + σ² − 1) − log σ. von-mises-fisher: μ = h/|h|,
//! κ = 1 + softplus, KL of docs/math §5.
//! **Source.** docs/math §4.6, §5. **Conventions.** KL is to the base law of the manifold.
//! **Error.** Samples are exact and their gradients unbiased (with [`Reparameterisation::Official`] neither is).
//! **Checked by** tests/theory/autoencoder.rs, tests/theory/vmf_gradients.rs.

use crate::energy::von_mises_fisher::Reparameterisation;
use crate::manifold::Manifold;
use minvel_engine::Expr;
use std::fmt;

/// The family of q(z|x).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posterior {
    /// One code for each image.
    Point,
    /// Whatever a network makes of image and noise.
    Implicit {
        /// Noise inputs.
        noise: usize,
    },
    /// Independent normal coordinates, on Rⁿ.
    Gaussian,
    /// Von Mises–Fisher, on a sphere.
    VonMisesFisher {
        /// How its concentration is differentiated.
        gradient: Reparameterisation,
    },
}

impl Posterior {
    /// Outputs of the network: how many for each head.
    pub(super) fn heads(self, latent: &dyn Manifold) -> Vec<usize> {
        let m = latent.ambient();
        match self {
            Posterior::Point | Posterior::Implicit { .. } => vec![m],
            Posterior::Gaussian => vec![m, m],
            Posterior::VonMisesFisher { .. } => vec![m, 1],
        }
    }

    /// Whether its mean is known: where it is not, codes are draws.
    pub fn has_mean(self) -> bool {
        !matches!(self, Posterior::Implicit { .. })
    }

    /// Noise inputs of the network.
    pub(super) fn noise(self) -> usize {
        if let Posterior::Implicit { noise } = self { noise } else { 0 }
    }
}

impl fmt::Display for Posterior {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Posterior::Point => "point",
            Posterior::Implicit { .. } => "implicit",
            Posterior::Gaussian => "gaussian",
            Posterior::VonMisesFisher { .. } => "von-mises-fisher",
        })
    }
}

/// A code of each image, with what is known of its law.
#[derive(Clone, Copy, Debug)]
pub struct Code<'g> {
    /// z ~ q(z|x), `rows × [m]`.
    pub at: Expr<'g>,
    /// KL(q(z|x)‖p(z)) and log q(z|x) at the code, `rows × []` both, where the family is explicit.
    pub law: Option<(Expr<'g>, Expr<'g>)>,
}
