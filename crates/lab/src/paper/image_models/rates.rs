//! What the tables `learning` of experiments with auto-encoders have in common.

use minvel::Error;
use minvel::autoencoder::{
    AutoencoderSettings, FlowKind, LikelihoodKind, MatchKind, Matched, NetworkKind, PosteriorKind,
};
use minvel::network::Activation;
use serde::Deserialize;

/// How auto-encoders of one experiment are learnt; what its TOML does not have cannot be set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::paper) struct Rates {
    /// Filters of convolutions; none: networks are dense.
    #[serde(default)]
    filters: Vec<usize>,
    hidden: Vec<usize>,
    pub iterations: u32,
    pub batch: usize,
    rate: f64,
    #[serde(default = "one")]
    weight: f64,
    step: f64,
    penalty: f64,
    flow: FlowKind,
    #[serde(default)]
    spectral: bool,
}

/// σ at which a likelihood is the sum of squares.
const SUM_OF_SQUARES: f64 = std::f64::consts::FRAC_1_SQRT_2;

fn one() -> f64 {
    1.0
}

impl Rates {
    /// Whether there are no convolutions.
    pub fn is_dense(&self) -> bool {
        self.filters.is_empty()
    }

    /// The settings of a cell, in the form that the paper has: binary pixels and tanh for dense networks, the sum of squares and
    /// ReLU for convolutions; codes are on a manifold of a family and a dimension.
    pub fn settings(
        &self,
        (family, dimension): (&str, usize),
        posterior: PosteriorKind,
        kind: MatchKind,
    ) -> Result<AutoencoderSettings, Error> {
        let latent = format!("{family}:{dimension}").parse();
        let latent = latent.map_err(|why| Error::config(format!("`latent`: {why}")))?;
        let Rates { filters, hidden, iterations, batch, rate, weight, step, penalty, flow, spectral } = self.clone();
        let (network, likelihood, activation) = if self.is_dense() {
            (NetworkKind::Dense, LikelihoodKind::Bernoulli, Activation::Tanh)
        } else {
            (NetworkKind::Convolutional, LikelihoodKind::Dequantised, Activation::Relu)
        };
        Ok(AutoencoderSettings {
            latent,
            posterior,
            likelihood,
            deviation: SUM_OF_SQUARES,
            network,
            filters,
            hidden,
            activation,
            rate,
            batch,
            iterations,
            matching: Matched { kind, weight, step, penalty, flow, spectral },
            official: false,
        })
    }
}
