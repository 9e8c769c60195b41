//! Exact draws from the natural laws, in plain code.
//!
//! **Statement.** A point falls short of its centre by −t and lies in a uniform direction from it. −t has density
//! Sⁿ: e^{−κf}(f(2−f))^{n/2−1} on [0, 2]; Hⁿ: e^{−κf}(f(2+f))^{n/2−1} on [0, ∞); RPⁿ (and SO(3), n = 3):
//! e^{−κf}f^{n/2−1}(1−f)^{−1/2} on [0, 1].
//! **Source.** wood1994 and ulrich1984 (Sⁿ; on S¹ it is the rule of Best and Fisher, on S² the law is inverted);
//! devroye1986 (mixtures as envelopes: Hⁿ); kent2013bingham (angular central Gaussian envelope: RPⁿ, SO(3)).
//! **Conventions.** Numbers come from a stream of Philox, as many as the rejection needs.
//! **Error.** None but rounding, and uniform numbers of 46 bits. **Checked by** tests/densities/density.rs (E t against
//! d log N/dκ, with a twin).

use crate::manifold::{Hyperbolic, Space, moebius};
use crate::special::dot;
use minvel_engine::random::Stream;
use std::f64::consts::SQRT_2;

/// A uniform number on (0, 1) of 46 bits.
pub(super) fn uniform(stream: &mut Stream) -> f64 {
    let coarse = stream.uniform();
    coarse + (stream.uniform() - 0.5) * 2f64.powi(-23)
}

/// An index with probabilities that add up to one.
pub(super) fn weighted(weights: &[f64], stream: &mut Stream) -> usize {
    let mut left = uniform(stream);
    let found = weights.iter().position(|w| {
        left -= w;
        left < 0.0
    });
    found.unwrap_or(weights.len() - 1)
}

fn scaled_to_one(mut x: Vec<f64>) -> Vec<f64> {
    let length = dot(&x, &x).sqrt();
    x.iter_mut().for_each(|x| *x /= length);
    x
}

fn normals(count: usize, stream: &mut Stream) -> Vec<f64> {
    (0..count).map(|_| stream.normal()).collect()
}

/// χ² with a whole number of degrees of freedom.
fn chi_square(freedom: usize, stream: &mut Stream) -> f64 {
    (0..freedom).map(|_| stream.normal().powi(2)).sum()
}

/// 1 − ⟨x, c⟩ under von Mises–Fisher on Sⁿ; all differences from 1 are taken exactly.
fn sphere_fall(n: usize, kappa: f64, stream: &mut Stream) -> f64 {
    if n == 2 {
        return -(uniform(stream) * (-2.0 * kappa).exp_m1()).ln_1p() / kappa;
    }
    let freedom = n as f64;
    let b = freedom / (2.0 * kappa + (2.0 * kappa).hypot(freedom));
    let short = 2.0 * b / (1.0 + b); // 1 − x₀
    let level = (short * (2.0 - short)).ln(); // log(1 − x₀²)
    loop {
        let (left, right) = (chi_square(n, stream), chi_square(n, stream));
        let fall = 2.0 * b * left / (right + b * left);
        let gain = kappa * (short - fall) + freedom * ((short + (1.0 - short) * fall).ln() - level);
        if gain >= uniform(stream).ln() {
            return fall;
        }
    }
}

/// cosh d(x, c) − 1 on Hⁿ: (f + 2)^a = (f + 2)^⌊a⌋ or that times √(f + 2) ≤ √2 + √f, so that the envelope is a mixture of
/// gamma laws of half-integer shape.
fn hyperbolic_rise(n: usize, kappa: f64, stream: &mut Stream) -> f64 {
    if n == 1 {
        loop {
            let rise = 0.5 * chi_square(1, stream) / kappa;
            if uniform(stream).powi(2) * (rise + 2.0) <= 2.0 {
                return rise;
            }
        }
    }
    let (whole, odd) = ((n - 2) / 2, n % 2 == 1);
    // Weights of the gamma laws with n + 2j (+ 1) degrees of freedom: coefficient · Γ(shape)/κ^shape, relative to j = 0.
    let mut terms = vec![];
    let (mut binomial, mut shift) = (1.0, 0.0);
    for j in 0..=whole {
        let freedom = n + 2 * j;
        if j > 0 {
            binomial *= (whole - j + 1) as f64 / j as f64 / 2.0;
            shift += ((0.5 * freedom as f64 - 1.0) / kappa).ln();
        }
        let log = f64::ln(binomial) + shift;
        terms.push((freedom, log));
        if odd {
            use crate::special::log_gamma;
            let half = log_gamma(0.5 * (freedom + 1) as f64) - log_gamma(0.5 * freedom as f64) - 0.5 * kappa.ln();
            terms.push((freedom + 1, log + half - 0.5 * std::f64::consts::LN_2));
        }
    }
    let top = terms.iter().fold(f64::MIN, |a, t| a.max(t.1));
    let total: f64 = terms.iter().map(|t| (t.1 - top).exp()).sum();
    loop {
        let mut left = uniform(stream) * total;
        let chosen = terms.iter().find(|t| {
            left -= (t.1 - top).exp();
            left <= 0.0
        });
        let rise = 0.5 * chi_square(chosen.unwrap_or(&terms[terms.len() - 1]).0, stream) / kappa;
        if !odd || uniform(stream) * (SQRT_2 + rise.sqrt()) <= (rise + 2.0).sqrt() {
            return rise;
        }
    }
}

/// c ⊕ y, the isometry that carries the origin to c, kept off the edge.
fn carried(c: &[f64], y: &[f64]) -> Vec<f64> {
    let mut x = vec![0.0; c.len()];
    moebius(c, 1.0, y, &mut x);
    let factor = (Hyperbolic::EDGE / dot(&x, &x).sqrt()).min(1.0);
    x.into_iter().map(|x| x * factor).collect()
}

/// An axis near c, of m = n + 1 coordinates: the angular central Gaussian law with matrix I + (2κ/b)(I − ccᵀ),
/// 1/b + n/(b + 2κ) = 1, and e^{−κf} ≤ e^{−(m−b)/2}(m/b)^{m/2}(1 + 2κf/b)^{−m/2}.
fn axis(c: &[f64], kappa: f64, stream: &mut Stream) -> Vec<f64> {
    let m = c.len() as f64;
    let root = ((kappa - 0.5 * m).powi(2) + 2.0 * kappa).sqrt();
    let b = if kappa < 0.5 * m { 0.5 * m - kappa + root } else { 2.0 * kappa / (root + kappa - 0.5 * m) };
    let stretch = 1.0 + 2.0 * kappa / b;
    loop {
        let z = normals(c.len(), stream);
        let along = dot(&z, c);
        let aside: Vec<f64> = z.iter().zip(c).map(|(z, c)| (z - along * c) / stretch.sqrt()).collect();
        let short = dot(&aside, &aside);
        let fall = short / (short + along * along);
        let gain = -kappa * fall + 0.5 * (m - b) + 0.5 * m * (b / m * (1.0 + 2.0 * kappa * fall / b)).ln();
        if gain >= uniform(stream).ln() {
            return scaled_to_one(aside.iter().zip(c).map(|(a, c)| a + along * c).collect());
        }
    }
}

impl Space {
    /// A point of the law e^{κt(x,c)}/N(κ).
    pub(super) fn draw(self, c: &[f64], kappa: f64, stream: &mut Stream) -> Vec<f64> {
        match self {
            Space::Euclidean(_) => c.iter().map(|c| c + stream.normal() / kappa.sqrt()).collect(),
            Space::Sphere(n) => {
                let fall = sphere_fall(n, kappa, stream);
                let z = normals(n + 1, stream);
                let along = dot(&z, c);
                let aside = scaled_to_one(z.iter().zip(c).map(|(z, c)| z - along * c).collect());
                let sine = (fall * (2.0 - fall)).sqrt();
                scaled_to_one(aside.iter().zip(c).map(|(a, c)| sine * a + (1.0 - fall) * c).collect())
            }
            Space::Torus(_) => {
                let turn = |c: &f64| {
                    let angle = 2.0 * (0.5 * sphere_fall(1, kappa, stream)).sqrt().min(1.0).asin();
                    let side = if stream.uniform() < 0.5 { -1.0 } else { 1.0 };
                    let x = c + side * angle;
                    x - std::f64::consts::TAU * ((x + std::f64::consts::PI) / std::f64::consts::TAU).floor()
                };
                c.iter().map(turn).collect()
            }
            Space::Hyperbolic(n) => {
                let rise = hyperbolic_rise(n, kappa, stream);
                let reach = (rise / (rise + 2.0)).sqrt(); // tanh of half the distance
                let aside = scaled_to_one(normals(n, stream));
                carried(c, &aside.iter().map(|a| reach * a).collect::<Vec<f64>>())
            }
            Space::Projective(_) | Space::So3 => axis(c, kappa, stream),
        }
    }
}
