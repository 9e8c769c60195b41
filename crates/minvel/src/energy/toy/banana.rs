//! The banana: a bent normal law.
//!
//! **Statement.** x₀ ~ N(0, σ²), x₁ = n + b(x₀² − σ²): E = x₀²/2σ² + r²/2, r = x₁ − b(x₀² − σ²), Z = 2πσ,
//! I(p) = 1/σ² + 4b²σ² + 1. **Source.** docs/math §4.1; wenliang2018dkef. **Conventions.** b = 0.2 and σ = 2.
//! **Error.** None. **Checked by** tests/theory/energy_laws.rs, tests/theory/energy_facts.rs (F17).

use super::super::Energy;
use minvel_engine::{Draw, Expr, Graph, concat};
use std::f64::consts::TAU;

/// σ = 2 and b = 0.2, unless told otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Banana {
    /// b.
    pub bananicity: f64,
    /// σ.
    pub deviation: f64,
}

impl Default for Banana {
    fn default() -> Self {
        Banana { bananicity: 0.2, deviation: 2.0 }
    }
}

impl Banana {
    /// b(x₀² − σ²).
    fn bend<'g>(&self, x0: Expr<'g>) -> Expr<'g> {
        self.bananicity * (x0.square() - self.deviation.powi(2))
    }
}

impl Energy for Banana {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let (x0, x1) = (x.at(-1, 0), x.at(-1, 1));
        x0.square() * (0.5 / self.deviation.powi(2)) + 0.5 * (x1 - self.bend(x0)).square()
    }

    fn log_partition(&self) -> Option<f64> {
        Some((TAU * self.deviation).ln())
    }

    fn sample<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Option<Expr<'g>> {
        let z = graph.random_rows(Draw::Normal, stream, rows, [2]);
        let x0 = self.deviation * z.slice(-1, 0, 1);
        Some(concat(&[x0, z.slice(-1, 1, 1) + self.bend(x0)], -1))
    }

    fn fisher_information(&self) -> Option<f64> {
        let (b, s) = (self.bananicity, self.deviation);
        Some(s.powi(-2) + 4.0 * b * b * s * s + 1.0)
    }
}
