//! Normal laws of a tangent space, carried to the manifold by the exponential map.
//!
//! **Statement.** Hⁿ: E(x) = d²/2σ² + (n−1) log(sinh d/d), d = d(x, μ), log Z = (n/2) log 2πσ². Tⁿ:
//! p(θ) = Π_i Σ_k N(θ_i + 2πk; μ_i, σ²), log Z = 0. **Source.** nagano2019wrapped; mardia2000directional.
//! **Conventions.** Isotropic: σ is the deviation of the tangent vector in the metric at μ.
//! **Error.** Hⁿ: exact. Tⁿ: images beyond 8.5σ are left out, 10⁻¹⁶ of the mass. **Checked by** tests/theory/energy_laws.rs.

use super::Energy;
use crate::manifold::{Hyperbolic, Manifold, Torus, radial};
use minvel_engine::{Draw, Expr, Graph};
use std::f64::consts::{PI, TAU};

/// The wrapped normal law on Hⁿ.
#[derive(Clone, Debug, PartialEq)]
pub struct HyperbolicNormal {
    mean: Vec<f64>,
    deviation: f64,
}

impl HyperbolicNormal {
    /// Mean μ, a point of the ball, and deviation σ > 0.
    pub fn new(mean: &[f64], deviation: f64) -> Self {
        Hyperbolic(mean.len()).check(mean).unwrap_or_else(|why| panic!("wrapped normal law: {why}"));
        assert!(deviation > 0.0, "a deviation is positive, not {deviation}");
        HyperbolicNormal { mean: mean.to_vec(), deviation }
    }
}

impl Energy for HyperbolicNormal {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let n = self.mean.len();
        let mean = x.graph().table(&self.mean, [n]);
        let depth = 1.0 - self.mean.iter().map(|x| x * x).sum::<f64>();
        // q = sinh² d/2: d = 2√q·arsinhc q and sinh d = 2√q·√(1+q).
        let q = (x - mean).square().sum(-1) / ((1.0 - x.square().sum(-1)) * depth);
        let ratio = radial::asinhc(q);
        let square = 4.0 * q * ratio.square();
        square * (0.5 / self.deviation.powi(2)) + (n as f64 - 1.0) * (0.5 * q.log1p() - ratio.log())
    }

    fn log_partition(&self) -> Option<f64> {
        Some(0.5 * self.mean.len() as f64 * (TAU * self.deviation.powi(2)).ln())
    }

    fn sample<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Option<Expr<'g>> {
        let n = self.mean.len();
        let space = Hyperbolic(n);
        let z = graph.random_rows(Draw::Normal, stream, rows, [n]) * self.deviation;
        let mean = graph.table(&self.mean, [n]).broadcast(&z.shape());
        Some(space.exp(mean, space.tangent_normal(mean, z)))
    }
}

/// The isotropic wrapped normal law on Tⁿ.
#[derive(Clone, Debug, PartialEq)]
pub struct TorusNormal {
    means: Vec<f64>,
    deviation: f64,
}

impl TorusNormal {
    /// Mean angles and deviation σ > 0 of each angle.
    pub fn new(means: &[f64], deviation: f64) -> Self {
        assert!(deviation > 0.0, "a deviation is positive, not {deviation}");
        TorusNormal { means: means.to_vec(), deviation }
    }

    /// Images on either side that are within 8.5σ of some angle in [−π, π).
    fn images(&self) -> i32 {
        ((8.5 * self.deviation + PI) / TAU).ceil() as i32
    }
}

impl Energy for TorusNormal {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let (g, n) = (x.graph(), self.means.len());
        let y = Torus(n).settle(x - g.table(&self.means, [n]));
        let shifts: Vec<f64> = (-self.images()..=self.images()).map(|k| TAU * k as f64).collect();
        let square = (y.expand(-1) + g.table(&shifts, [shifts.len()])).square();
        let log_sum = (square * (-0.5 / self.deviation.powi(2))).logsumexp(-1);
        0.5 * n as f64 * (TAU * self.deviation.powi(2)).ln() - log_sum.sum(-1)
    }

    fn log_partition(&self) -> Option<f64> {
        Some(0.0)
    }

    fn sample<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Option<Expr<'g>> {
        let n = self.means.len();
        let z = graph.random_rows(Draw::Normal, stream, rows, [n]) * self.deviation;
        Some(Torus(n).settle(graph.table(&self.means, [n]) + z))
    }
}
