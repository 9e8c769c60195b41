//! The funnel: a scale that is itself random.
//!
//! **Statement.** x₀ ~ N(0, 4), x_i ~ N(0, v), v = min(e^{−x₀}, 10), i ≥ 1:
//! E = x₀²/8 + Σ_i (x_i²/2v + ½ log v), Z = 2(2π)^{d/2}. With P = Φ(½ log 10):
//! I(p) = ¼ + (d−1)(P/2 + e²Φ(½(log 10 + 4)) + (1−P)/10).
//! **Source.** docs/math §4.1; wenliang2018dkef. **Conventions.** 4 is a variance, as their deviation is 2. **Error.** E
//! has a kink at x₀ = −log 10. **Checked by** tests/theory/energy_laws.rs.

use super::super::Energy;
use crate::special::normal_cdf;
use minvel_engine::{Draw, Expr, Graph, concat};
use std::f64::consts::{LN_2, LN_10, TAU};

/// In d ≥ 2 dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Funnel(pub usize);

fn variance(x0: Expr) -> Expr {
    (-x0).exp().min(10.0)
}

impl Energy for Funnel {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let others = self.0 - 1;
        let (x0, rest) = (x.at(-1, 0), x.slice(-1, 1, others));
        // log v, without the exponential.
        let log_v = (-x0).min(LN_10);
        x0.square() / 8.0 + 0.5 * rest.square().sum(-1) / variance(x0) + 0.5 * others as f64 * log_v
    }

    fn log_partition(&self) -> Option<f64> {
        Some(LN_2 + 0.5 * self.0 as f64 * TAU.ln())
    }

    fn sample<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Option<Expr<'g>> {
        let z = graph.random_rows(Draw::Normal, stream, rows, [self.0]);
        let x0 = 2.0 * z.slice(-1, 0, 1);
        Some(concat(&[x0, variance(x0).sqrt() * z.slice(-1, 1, self.0 - 1)], -1))
    }

    fn fisher_information(&self) -> Option<f64> {
        let open = normal_cdf(0.5 * LN_10);
        let precision = 2f64.exp() * normal_cdf(0.5 * (LN_10 + 4.0)) + 0.1 * (1.0 - open);
        Some(0.25 + (self.0 as f64 - 1.0) * (0.5 * open + precision))
    }
}
