//! The cosine: a wave with normal noise across.
//!
//! **Statement.** x₀ ~ U(−h, h), x₁ = A cos ωx₀ + n: E = ½(x₁ − A cos ωx₀)² for |x₀| ≤ h, else ∞; Z = 2h√2π.
//! **Source.** docs/math §4.1, §4.3; wenliang2018dkef. **Conventions.** A = 3, ω = 2, h = 4. **Error.** The density jumps
//! at ±h, where integration by parts leaves a term: I(p) is infinite and J has no lower bound. Use it to compare
//! estimators only. **Checked by** tests/theory/energy_laws.rs.

use super::super::Energy;
use minvel_engine::{Draw, Expr, Graph, concat};
use std::f64::consts::TAU;

/// A = 3, ω = 2, h = 4, unless told otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cosine {
    /// A.
    pub amplitude: f64,
    /// ω.
    pub frequency: f64,
    /// h.
    pub half: f64,
}

impl Default for Cosine {
    fn default() -> Self {
        Cosine { amplitude: 3.0, frequency: 2.0, half: 4.0 }
    }
}

impl Cosine {
    fn wave<'g>(&self, x0: Expr<'g>) -> Expr<'g> {
        self.amplitude * (self.frequency * x0).cos()
    }

    /// E‖∇ log p‖² of the inside alone: (Aω)²(½ − sin 2ωh/4ωh) + 1.
    pub fn interior_information(&self) -> f64 {
        let phase = 2.0 * self.frequency * self.half;
        (self.amplitude * self.frequency).powi(2) * 0.5 * (1.0 - phase.sin() / phase) + 1.0
    }
}

impl Energy for Cosine {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let (x0, x1) = (x.at(-1, 0), x.at(-1, 1));
        let inside = x0.abs().less_equal(self.half);
        inside.select(0.5 * (x1 - self.wave(x0)).square(), x.graph().scalar(f64::INFINITY))
    }

    fn log_partition(&self) -> Option<f64> {
        Some((2.0 * self.half * TAU.sqrt()).ln())
    }

    fn sample<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Option<Expr<'g>> {
        let u = graph.random_rows(Draw::Uniform, crate::stream::substream(stream, 1), rows, [1]);
        let x0 = self.half * (2.0 * u - 1.0);
        Some(concat(&[x0, self.wave(x0) + graph.random_rows(Draw::Normal, stream, rows, [1])], -1))
    }
}
