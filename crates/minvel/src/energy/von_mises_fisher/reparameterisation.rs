//! Gradients through samples of the von Mises–Fisher law.
//!
//! **Statement.** z = cos θ μ + sin θ v with the density f(θ) ∝ sin^{m−2}θ e^{κ cos θ} and v uniform across μ; exactly
//! dθ/dκ = −∂_κF(θ)/f(θ) = −∫₀^θ (cos t − A) f(t) dt/f(θ) = −∫_θ^π (A − cos t) f(t) dt/f(θ).
//! Of the two integrals the one whose integrand is positive throughout is taken: the first for cos θ > A. With σ = 1 for
//! the first and −1 for the second, t = θ − 2σa and Δ = 2 sin(θ − σa) sin a, it is
//! ∫ (|cos θ − A| + Δ)(1 − 2σ cos(θ − σa) sin a/sin θ)^{m−2} e^{σκΔ} 2da. **Source.** docs/math §5; figurnov2018.
//! **Conventions.** Random numbers are held fixed in the gradient in μ, θ in that in κ.
//! **Error.** No bias beyond that of the rule, which is below 10⁻⁶ relatively in f64 and 3·10⁻⁵ in f32, for m from 2 to
//! 1000, κ from 10⁻³ to 10⁴ and θ where the density is above e^{−20} of its largest value.
//! **Checked by** tests/theory/vmf_gradients.rs.

use super::{Resultant, Wood};
use crate::energy::draw;
use crate::manifold::quadrature;
use crate::special::log_sphere_area;
use minvel_engine::Expr;

/// How the gradient in the concentration is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reparameterisation {
    /// Exact samples with the implicit gradient, which has no bias.
    #[default]
    Exact,
    /// The paper's code: its sampler ([`super::Envelope::Official`]), differentiated with its random numbers held fixed.
    Official,
}

/// The von Mises–Fisher law as an encoder uses it: mean and concentration differ from row to row and are learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmfPosterior {
    /// m, coordinates of a point.
    pub coordinates: usize,
    /// Choice of sampler and gradient.
    pub gradient: Reparameterisation,
}

impl VmfPosterior {
    /// Points `rows × [m]` for unit vectors `rows × [m]` and concentrations `rows × []`, differentiable in both.
    pub fn sample<'g>(&self, mean: Expr<'g>, kappa: Expr<'g>, stream: u32) -> Expr<'g> {
        let (m, graph) = (self.coordinates, mean.graph());
        let rows = mean.shape().rows.or(kappa.shape().rows).expect("a posterior has rows");
        if self.gradient == Reparameterisation::Official {
            return Wood::official(m).sample(graph, rows, mean, kappa, stream);
        }
        let (wood, constant) = (Wood::any(m), kappa.stop_gradient());
        let fall = wood.fall(graph, rows, constant, stream).stop_gradient();
        let slope = angle_slope(m, constant, fall);
        let angle = (angle(fall) + slope * (kappa - constant)).expand(-1);
        draw::direction(angle.cos() * mean + angle.sin() * wood.across(graph, rows, mean, stream))
    }

    /// KL to the uniform law, `rows × []`: [`super::divergence()`].
    pub fn divergence<'g>(&self, kappa: Expr<'g>) -> Expr<'g> {
        super::divergence(self.coordinates, kappa)
    }

    /// log density of z w.r.t. the area, `rows × []`: κ(μ·z − A) + KL − log|S|; not to be differentiated in κ.
    pub fn log_prob<'g>(&self, mean: Expr<'g>, kappa: Expr<'g>, z: Expr<'g>) -> Expr<'g> {
        let at = Resultant::new(self.coordinates, kappa);
        kappa * (mean.dot(z) - at.mean) + at.divergence - log_sphere_area(self.coordinates)
    }
}

/// Nodes of the Gauss–Legendre rule.
const NODES: usize = 32;

/// The rule ends where the density has fallen by e^{−DECAY}, or at the pole.
const DECAY: f64 = 22.0;

/// θ from 1 − cos θ; at least 10⁻¹⁵, so that it can be divided by.
fn angle(fall: Expr) -> Expr {
    (2.0 * fall.sqrt().atan2((2.0 - fall).sqrt())).max(1e-15)
}

/// dθ/dκ at a fixed value of the distribution function, for κ and 1 − cos θ of one shape; a constant to differentiation.
pub fn angle_slope<'g>(m: usize, kappa: Expr<'g>, fall: Expr<'g>) -> Expr<'g> {
    let (power, kappa, fall) = (m as f64 - 2.0, kappa.stop_gradient().max(1e-6), fall.stop_gradient());
    let theta = angle(fall);
    let sine = (fall * (2.0 - fall)).sqrt().max(1e-15);
    let complement = Resultant::new(m, kappa).complement;
    let side = fall.less_equal(complement).select(fall.like(1.0), fall.like(-1.0));
    let length = reach(power, kappa, side, theta, fall);

    let (nodes, weights) = quadrature::interval(0.0, 1.0, NODES);
    let graph = fall.graph();
    let half = 0.5 * length.expand(-1) * graph.table(&nodes, [NODES]);
    let [theta, sine, kappa, side, gap] =
        [theta, sine, kappa, side, (complement - fall).abs()].map(|row| row.expand(-1));
    let middle = theta - side * half;
    let difference = 2.0 * middle.sin() * half.sin();
    let mut exponent = side * kappa * difference;
    if m > 2 {
        // Above −1, whatever rounding does close to the pole.
        let growth = (-2.0 * side * middle.cos() * half.sin() / sine).max(-0.999_999_9);
        exponent = exponent + power * growth.log1p();
    }
    let integrand = (gap + difference) * exponent.exp();
    (-length * integrand.dot(graph.table(&weights, [NODES]))).stop_gradient()
}

/// How far from θ the integral must go: to where log f has fallen by [`DECAY`], at most to the pole. Its fall over a length
/// L is λL + ½cL², λ the slope at θ and c the mean curvature with the weight L − s: about that at θ + L/3.
fn reach<'g>(power: f64, kappa: Expr<'g>, side: Expr<'g>, theta: Expr<'g>, fall: Expr<'g>) -> Expr<'g> {
    let rest = 2.0 * (2.0 - fall).sqrt().atan2(fall.sqrt());
    let span = side.less(0.0).select(rest, theta);
    let (sine, cosine) = (theta.sin().max(1e-6), theta.cos());
    let slope = side * (power * cosine / sine - kappa * sine);
    let curvature = |t: Expr<'g>| (power / t.sin().max(1e-6).square() + kappa * t.cos()).max(0.0);
    let end = |curvature: Expr<'g>| {
        let root = (slope.square() + 2.0 * DECAY * curvature).sqrt();
        span.min(2.0 * DECAY / (slope + root).max(1e-12))
    };
    let guess = end(curvature(theta));
    (0..2).fold(guess, |length, _| end(curvature(theta - side * length * (1.0 / 3.0))))
}
