//! The von Mises–Fisher law on S^{m−1}, and mixtures of it.
//!
//! **Statement.** E(z) = −κμ·z, log Z = −log C_m(κ), I(p) = (m−1)κA_m(κ); a mixture has
//! E(z) = −log Σ_k w_k C_m(κ_k) e^{κ_kμ_k·z} and log Z = 0.
//! **Source.** METHODS 3.1, 5; wood1994, ulrich1984 (sampler). **Conventions.** Unit vectors in m coordinates.
//! **Error.** m = 3 is sampled by its inverse distribution function; any other m by rejection ([`draw`]).
//! **Checked by** tests/energy_laws.rs, tests/energy_facts.rs (F41–F46).

use super::{Energy, draw};
use crate::special::{log_gamma, log_mean_exp, log_sphere_area, log_vmf_constant, mean_resultant};
use minvel_engine::{Draw, Expr, Graph, concat};
use std::f64::consts::LN_2;

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
        self.sampler.envelope = Envelope::Official;
        self.sampler.trials = draw::trials(0.1);
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
        let u = graph.random_rows(Draw::Uniform, draw::substream(stream, 2), rows, []);
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

/// How the envelope of the rejection sampler is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Envelope {
    /// b = (m−1)/(2κ + c), c = √(4κ² + (m−1)²): no cancellation for any κ.
    Exact,
    /// The paper's code: from κ = 10 to 11 b is replaced by (m−1)/(4κ), which breaks the bound of the acceptance test.
    /// Only to replicate its numbers: METHODS 5.
    Official,
}

impl Envelope {
    /// (a, b) of Ulrich's envelope, with a(1−b) = κ and 4ab/(1+b) = m−1 for the exact one.
    pub fn constants(self, m: usize, kappa: f64) -> (f64, f64) {
        let n = m as f64 - 1.0;
        let c = (4.0 * kappa * kappa + n * n).sqrt();
        let exact = n / (2.0 * kappa + c);
        let blend = if self == Envelope::Official { (kappa - 10.0).clamp(0.0, 1.0) } else { 0.0 };
        let b = if blend > 0.0 { blend * n / (4.0 * kappa) + (1.0 - blend) * exact } else { exact };
        ((n + 2.0 * kappa + c) / 4.0, b)
    }
}

/// Sampler of w = μ·z and of z, with concentrations that may differ from row to row.
///
/// **Statement.** e ~ Beta((m−1)/2, (m−1)/2), 1 − w = 2be/(1 − (1−b)e), accepted with probability
/// exp((m−1)(log(1+δ) − δ)), δ = (1−b)(e − ½)/(1 − (1−b)e). It can be differentiated with the random numbers held
/// fixed; in κ that ignores how the acceptance depends on it (exact for m = 3, a few percent off otherwise: METHODS 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wood {
    /// m, coordinates of a point.
    pub coordinates: usize,
    /// Proposals made at once.
    pub trials: usize,
    /// Choice of b.
    pub envelope: Envelope,
}

impl Wood {
    /// For given concentrations: as many trials as they need.
    pub fn new(coordinates: usize, concentrations: &[f64]) -> Self {
        let worst = concentrations.iter().fold(1.0, |a: f64, &kappa| a.min(acceptance(coordinates, kappa)));
        Wood { coordinates, trials: draw::trials(worst), envelope: Envelope::Exact }
    }

    /// For concentrations that are not known before (the acceptance rate falls with κ, to a limit near ⅔).
    pub fn any(coordinates: usize) -> Self {
        Self::new(coordinates, &[1e4 * coordinates as f64])
    }

    /// A proposal from e and 1 − e: (1 − w, log of its acceptance probability).
    pub fn propose<'g>(&self, kappa: Expr<'g>, (e, rest): (Expr<'g>, Expr<'g>)) -> (Expr<'g>, Expr<'g>) {
        let n = self.coordinates as f64 - 1.0;
        let c = (4.0 * kappa.square() + n * n).sqrt();
        let exact = n / (2.0 * kappa + c);
        if self.envelope == Envelope::Exact {
            let below = rest + exact * e;
            let delta = 0.5 * (1.0 - exact) * (e - rest) / below;
            return (2.0 * exact * e / below, n * (delta.log1p() - delta));
        }
        let blend = (kappa - 10.0).max(0.0).min(1.0);
        let b = blend * (n / (4.0 * kappa.max(10.0))) + (1.0 - blend) * exact;
        let a = (n + 2.0 * kappa + c) / 4.0;
        let below = rest + b * e;
        let t = 2.0 * a * b / below;
        let bound = 4.0 * a * b / (1.0 + b) - n * n.ln();
        (2.0 * b * e / below, n * t.log() - t + bound)
    }

    /// 1 − w for each concentration, `rows × [shape of kappa]`, without cancellation near the mean.
    pub fn fall<'g>(&self, graph: &'g Graph, rows: usize, kappa: Expr<'g>, stream: u32) -> Expr<'g> {
        let mut dims = kappa.shape().dims;
        if self.coordinates == 3 {
            let u = graph.random_rows(Draw::Uniform, stream, rows, dims);
            let kappa = kappa.max(1e-30);
            return -(u * (-2.0 * kappa).expm1()).log1p() / kappa;
        }
        dims.splice(0..0, [3, self.trials]);
        let u = graph.random_rows(Draw::Uniform, stream, rows, dims);
        let (fall, log_accept) = self.propose(kappa, draw::symmetric_beta(self.coordinates, u.at(0, 0), u.at(0, 1)));
        draw::first_accepted(u.at(0, 2).log().less_equal(log_accept), fall)
    }

    /// Points `rows × [m]` with mean directions `[m]` and concentrations `[]`, which may differ from row to row.
    pub fn sample<'g>(&self, graph: &'g Graph, rows: usize, mean: Expr<'g>, kappa: Expr<'g>, stream: u32) -> Expr<'g> {
        let fall = self.fall(graph, rows, kappa, stream).expand(-1);
        let stream = draw::substream(stream, 1);
        let across = if self.coordinates == 2 {
            // One of two directions: projecting noise would lose all its digits where it is parallel to the mean.
            let side = graph.random_rows(Draw::Rademacher, stream, rows, [1]);
            side * concat(&[-mean.slice(-1, 1, 1), mean.slice(-1, 0, 1)], -1)
        } else {
            let z = graph.random_rows(Draw::Normal, stream, rows, [self.coordinates]);
            draw::direction(z - z.dot(mean).expand(-1) * mean)
        };
        draw::direction((1.0 - fall) * mean + (fall * (2.0 - fall)).sqrt() * across)
    }
}

/// The rate at which proposals with the exact envelope are accepted: ∫ f/sup(f/g) for f = (1−w²)^{(m−3)/2} e^{κw} and
/// the density g = 2b^{(m−1)/2}/B((m−1)/2, (m−1)/2) · (1−w²)^{(m−3)/2}/(1+b−(1−b)w)^{m−1} of proposals.
pub fn acceptance(m: usize, kappa: f64) -> f64 {
    let n = m as f64 - 1.0;
    let (_, b) = Envelope::Exact.constants(m, kappa);
    let log_integral = log_mean_exp(m, kappa) + log_sphere_area(m) - log_sphere_area(m - 1);
    let log_beta = 2.0 * log_gamma(0.5 * n) - log_gamma(n);
    let peak = kappa * (1.0 - b) / (1.0 + b) + n * (4.0 * b / (1.0 + b)).ln();
    (log_integral - log_beta + LN_2 + 0.5 * n * b.ln() - peak).exp().min(1.0)
}

/// STUB
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reparameterisation {
    /// e
    Exact,
    /// o
    Official,
}
/// STUB
pub struct Posterior {
    /// m
    pub coordinates: usize,
    /// g
    pub gradient: Reparameterisation,
}
impl Posterior {
    /// s
    pub fn sample<'g>(&self, mean: Expr<'g>, kappa: Expr<'g>, stream: u32) -> Expr<'g> {
        Wood::any(self.coordinates).sample(mean.graph(), mean.shape().rows.unwrap(), mean, kappa, stream)
    }
    /// d
    pub fn divergence<'g>(&self, kappa: Expr<'g>) -> Expr<'g> {
        kappa
    }
    /// l
    pub fn log_prob<'g>(&self, mean: Expr<'g>, kappa: Expr<'g>, z: Expr<'g>) -> Expr<'g> {
        kappa * mean.dot(z)
    }
}
