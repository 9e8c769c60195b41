//! Encoders: from an image to the law of its code.
//!
//! **Statement.** z = land(head(ψ([χ(x), ε]))) where the law is implicit; else parameters of an explicit one ([`Posterior`]). ψ
//! is dense, χ is made of convolutions or x itself.
//! **Source.** docs/math §4.6, §4.8. **Conventions.** Inputs in the order [x, ε]. Each head is an affine map of its own, so that
//! its start values are those of a layer of its own. **Error.** Rounding.
//! **Checked by** tests/theory/autoencoder.rs (parameter counts, moments of codes), tests/theory/convolution.rs.

use super::{Architecture, Code, Posterior};
use crate::energy::von_mises_fisher as vmf;
use crate::manifold::Manifold;
use crate::network::{Activation, Network, Parameter};
use minvel_engine::{Draw, Expr};
use std::f64::consts::TAU;
use std::sync::Arc;

/// A network from images to codes.
#[derive(Clone, Debug)]
pub struct Encoder {
    /// The family of q(z|x).
    pub posterior: Posterior,
    latent: Arc<dyn Manifold>,
    eye: Option<Network>,
    body: Network,
    heads: Vec<Network>,
}

impl Encoder {
    /// A dense one.
    pub fn dense(
        latent: Arc<dyn Manifold>,
        posterior: Posterior,
        pixels: usize,
        hidden: &[usize],
        activation: Activation,
    ) -> Self {
        Self::new(latent, posterior, [1, pixels, 1], &Architecture::Dense(hidden.to_vec()), activation)
    }

    /// For images of `[height, width, channels]`.
    pub fn new(
        latent: Arc<dyn Manifold>,
        posterior: Posterior,
        image: [usize; 3],
        architecture: &Architecture,
        activation: Activation,
    ) -> Self {
        let pixels = image.iter().product();
        let (eye, hidden) = architecture.encoder(image);
        let eye = (!eye.is_empty()).then(|| Network::of("encoder/eye", pixels, eye, activation));
        let last = *hidden.last().expect("an encoder has a hidden layer");
        let mut widths = vec![eye.as_ref().map_or(pixels, Network::outputs) + posterior.noise()];
        widths.extend(hidden);
        let head =
            |(k, outputs): (usize, &usize)| Network::new(&format!("encoder/head{k}"), &[last, *outputs], activation);
        let heads = posterior.heads(&*latent).iter().enumerate().map(head).collect();
        Encoder { posterior, latent, eye, body: Network::new("encoder/body", &widths, activation), heads }
    }

    /// Its parameters.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.eye.iter().chain([&self.body]).chain(&self.heads).flat_map(Network::parameters).collect()
    }

    /// Codes of images `rows × [pixels]`, with noise of a stream and its substreams.
    pub fn encode<'g>(&self, x: Expr<'g>, stream: u32) -> Code<'g> {
        let h = self.seen(x, stream);
        let head = |k: usize| self.heads[k].apply(h);
        match self.posterior {
            Posterior::Point | Posterior::Implicit { .. } => Code { at: self.latent.land(head(0)), law: None },
            Posterior::Gaussian => gaussian(head(0), head(1).softplus(), stream),
            Posterior::VonMisesFisher { gradient } => {
                let (mean, kappa) = (self.latent.land(head(0)), 1.0 + head(1).softplus().at(-1, 0));
                let law = vmf::VmfPosterior { coordinates: self.latent.ambient(), gradient };
                let at = law.sample(mean, kappa, stream);
                Code { at, law: Some((law.divergence(kappa), law.log_prob(mean, kappa, at))) }
            }
        }
    }

    /// The mean of the code, on spheres its direction; a family must have one ([`Posterior::has_mean`]).
    pub fn mean<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        assert!(self.posterior.has_mean(), "mean: a posterior that is {} has none", self.posterior);
        self.latent.land(self.heads[0].apply(self.seen(x, 0)))
    }
}

impl Encoder {
    /// The last hidden layer.
    fn seen<'g>(&self, x: Expr<'g>, stream: u32) -> Expr<'g> {
        let seen = self.eye.as_ref().map_or(x, |eye| eye.activation.apply(eye.apply(x)));
        self.body.activation.apply(self.body.after_first(self.first(seen, stream)))
    }

    /// [x, ε]W₀ + b₀, as two products: nothing is copied.
    fn first<'g>(&self, x: Expr<'g>, stream: u32) -> Expr<'g> {
        let (w, b) = self.body.layer(x.graph(), 0);
        let (pixels, noise) = (x.shape().features(), self.posterior.noise());
        if noise == 0 {
            return x.matmul(w) + b;
        }
        let rows = x.shape().rows.expect("images are rows");
        let drawn = x.graph().random_rows(Draw::Normal, crate::stream::substream(stream, 1), rows, [noise]);
        x.matmul(w.slice(0, 0, pixels)) + drawn.matmul(w.slice(0, pixels, noise)) + b
    }
}

/// z = μ + σε, KL to N(0, I) and log density at z.
fn gaussian<'g>(mean: Expr<'g>, deviation: Expr<'g>, stream: u32) -> Code<'g> {
    let noise = mean.graph().normal_like(stream, mean);
    let log_deviation = deviation.log();
    let divergence = (0.5 * (mean.square() + deviation.square() - 1.0) - log_deviation).sum(-1);
    let log_prob = (-0.5 * noise.square() - log_deviation - 0.5 * TAU.ln()).sum(-1);
    Code { at: mean + deviation * noise, law: Some((divergence, log_prob)) }
}
