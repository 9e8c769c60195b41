//! The von Mises–Fisher law on S^{m−1}, and mixtures of it.
//!
//! **Statement.** E(z) = −κμ·z, log Z = −log C_m(κ), I(p) = (m−1)κA_m(κ); a mixture has
//! E(z) = −log Σ_k w_k C_m(κ_k) e^{κ_kμ_k·z} and log Z = 0.
//! **Source.** docs/math §3.1, §5; wood1994, ulrich1984 (sampler). **Conventions.** Unit vectors in m coordinates.
//! **Error.** m = 3 is sampled by its inverse distribution function; any other m by rejection ([`draw`]).
//! **Checked by** tests/theory/energy_laws.rs, tests/theory/energy_facts.rs (F41–F46).
//!
//! Where concentrations are learnt: [`VmfPosterior`] samples with gradients, [`divergence`] is KL to the uniform law.

mod divergence;
mod reparameterisation;
mod wood;

pub use divergence::{Resultant, divergence};
pub use reparameterisation::{Reparameterisation, VmfPosterior, angle_slope};
pub use wood::{Envelope, Wood, acceptance};

use super::{Energy, draw};
use crate::special::{log_vmf_constant, mean_resultant};
use minvel_engine::{Draw, Expr, Graph};

/// A mixture of von Mises–Fisher laws; mostly of one.
#[derive(Clone, Debug, PartialEq)]
pub struct VonMisesFisher {
    weights: Vec<f64>,
    /// Row-major `[k, m]`.
    means: Vec<f64>,
    concentrations: Vec<f64>,
    sampler: Wood,
}

impl VonMisesFisher {
    /// Mean direction μ (brought to length 1) and concentration κ ≥ 0.
    pub fn new(mean: &[f64], concentration: f64) -> Self {
        Self::mixture(&[(1.0, mean, concentration)])
    }

    /// Components (weight, mean direction, concentration).
    pub fn mixture(components: &[(f64, &[f64], f64)]) -> Self {
        let m = components.first().expect("a mixture has at least one component").1.len();
        let total: f64 = components.iter().map(|(w, ..)| w).sum();
        let mut law = VonMisesFisher {
            weights: components.iter().map(|(w, ..)| w / total).collect(),
            means: vec![],
            concentrations: components.iter().map(|(.., kappa)| *kappa).collect(),
            sampler: Wood { coordinates: m, trials: 1, envelope: Envelope::Exact },
        };
        for (w, mean, kappa) in components {
            let length = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
            assert!(*w >= 0.0 && *kappa >= 0.0, "weights and concentrations are not negative: {w}, {kappa}");
            assert!(mean.len() == m && length > 0.0, "{mean:?} is not a direction in {m} coordinates");
            law.means.extend(mean.iter().map(|x| x / length));
        }
        law.sampler = Wood::new(m, &law.concentrations);
        law
    }

    /// The same law, sampled with the defect of the paper's code ([`Envelope::Official`]).
    pub fn replicating_the_official_sampler(mut self) -> Self {
        self.sampler = Wood::official(self.sampler.coordinates);
        self
    }

    fn single(&self) -> Option<f64> {
        (self.weights.len() == 1).then(|| self.concentrations[0])
    }
}

impl Energy for VonMisesFisher {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let (m, count) = (self.sampler.coordinates, self.weights.len());
        // κ_kμ_k as columns.
        let column = |i: usize| self.concentrations[i % count] * self.means[i % count * m + i / count];
        let pull: Vec<f64> = (0..m * count).map(column).collect();
        let inner = x.matmul(x.graph().table(&pull, [m, count]));
        if self.single().is_some() {
            return -inner.at(-1, 0);
        }
        let constant = |k: usize| self.weights[k].ln() + log_vmf_constant(m, self.concentrations[k]);
        let constants: Vec<f64> = (0..count).map(constant).collect();
        -(inner + x.graph().table(&constants, [count])).logsumexp(-1)
    }

    fn log_partition(&self) -> Option<f64> {
        Some(self.single().map_or(0.0, |kappa| -log_vmf_constant(self.sampler.coordinates, kappa)))
    }

    fn sample<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Option<Expr<'g>> {
        let (m, count) = (self.sampler.coordinates, self.weights.len());
        if let Some(kappa) = self.single() {
            return Some(self.sampler.sample(graph, rows, graph.table(&self.means, [m]), graph.scalar(kappa), stream));
        }
        let u = graph.random_rows(Draw::Uniform, crate::stream::substream(stream, 2), rows, []);
        let index = draw::choose(u, &self.weights);
        let mean = draw::lookup(graph, &self.means, &[count, m], index);
        let kappa = draw::lookup(graph, &self.concentrations, &[count], index);
        Some(self.sampler.sample(graph, rows, mean, kappa, stream))
    }

    fn fisher_information(&self) -> Option<f64> {
        let m = self.sampler.coordinates;
        self.single().map(|kappa| (m as f64 - 1.0) * kappa * mean_resultant(m, kappa))
    }
}
