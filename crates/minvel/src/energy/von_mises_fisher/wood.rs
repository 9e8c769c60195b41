//! Wood's sampler of the von Mises–Fisher law.
//!
//! **Statement.** e ~ Beta((m−1)/2, (m−1)/2), 1 − w = 2be/(1 − (1−b)e), accepted with probability
//! exp((m−1)(log(1+δ) − δ)), δ = (1−b)(e − ½)/(1 − (1−b)e); then z = wμ + √(1−w²)v, v uniform across μ.
//! **Source.** docs/math §5; wood1994, ulrich1984. **Conventions.** w = μ·z; 1 − w is what is computed.
//! **Error.** m = 3 by its inverse distribution function; else the 10⁻⁹ of [`draw`]. **Checked by**
//! tests/theory/energy_facts.rs (F43–F45).

use super::super::draw;
use crate::special::{log_gamma, log_mean_exp, log_sphere_area};
use minvel_engine::{Draw, Expr, Graph, concat};
use std::f64::consts::LN_2;

/// How the envelope of the rejection sampler is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Envelope {
    /// b = (m−1)/(2κ + c), c = √(4κ² + (m−1)²): no cancellation for any κ.
    Exact,
    /// The paper's code: from κ = 10 to 11 b is replaced by (m−1)/(4κ), which breaks the bound of the acceptance test.
    /// Only to replicate its numbers: docs/math §5.
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
/// It can be differentiated with the random numbers held fixed. In the mean that is exact. In κ it ignores how the
/// acceptance depends on κ: exact for m = 3, biased otherwise (by 8 % at m = 9, κ = 10: docs/math §5); what has no bias for
/// any m is [`VmfPosterior`](super::VmfPosterior).
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

    /// With the defect of the paper's code; it accepts more often than the exact one.
    pub fn official(coordinates: usize) -> Self {
        Wood { envelope: Envelope::Official, ..Self::any(coordinates) }
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
        // At the corners the slope is that of the constants, to which ties go as the first arguments.
        let blend = kappa.like(1.0).min(kappa.like(0.0).max(kappa - 10.0));
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
        let across = self.across(graph, rows, mean, stream);
        // Not below zero's root, whose slope is infinite.
        draw::direction((1.0 - fall) * mean + (fall * (2.0 - fall)).max(1e-30).sqrt() * across)
    }

    /// Uniform directions `rows × [m]` orthogonal to the mean; `stream` is that of [`Wood::fall`].
    pub fn across<'g>(&self, graph: &'g Graph, rows: usize, mean: Expr<'g>, stream: u32) -> Expr<'g> {
        let stream = crate::stream::substream(stream, 1);
        if self.coordinates == 2 {
            // One of two directions: projecting noise would lose all its digits where it is parallel to the mean.
            let side = graph.random_rows(Draw::Rademacher, stream, rows, [1]);
            return side * concat(&[-mean.slice(-1, 1, 1), mean.slice(-1, 0, 1)], -1);
        }
        let z = graph.random_rows(Draw::Normal, stream, rows, [self.coordinates]);
        draw::direction(z - z.dot(mean).expand(-1) * mean)
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
