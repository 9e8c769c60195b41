//! The uniform law on a cube.
//!
//! **Statement.** E = 0 for |x_i| ≤ h, else ∞; Z = (2h)ᵈ. **Source.** docs/math §4.1; wenliang2018dkef.
//! **Conventions.** The walls belong to it.
//! **Error.** The density jumps at the walls: I(p) is infinite. **Checked by** tests/theory/energy_laws.rs.

use super::super::Energy;
use minvel_engine::{Draw, Expr, Graph};

/// U(−h, h)ᵈ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Square {
    /// h.
    pub half: f64,
    /// d.
    pub dims: usize,
}

impl Energy for Square {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let outside = x.like(self.half).less(x.abs()).sum(-1);
        outside.select(x.graph().scalar(f64::INFINITY), x.graph().scalar(0.0))
    }

    fn log_partition(&self) -> Option<f64> {
        Some(self.dims as f64 * (2.0 * self.half).ln())
    }

    fn sample<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Option<Expr<'g>> {
        Some(self.half * (2.0 * graph.random_rows(Draw::Uniform, stream, rows, [self.dims]) - 1.0))
    }
}
