//! Rings around the origin.
//!
//! **Statement.** Angle uniform, radius r_k + sn with probability ∝ r_k: p(x) = Σ_k w_k [N(r; r_k, s²) + N(−r; r_k,
//! s²)]/2πr.
//! **Source.** docs/math §4.1; wenliang2018dkef, whose density divides by r_k instead of r. **Conventions.** A negative
//! radius (probability 3·10⁻⁷ at r_k = 1) is a point on the other side. **Error.** p ~ 1/r at the origin, so that I(p)
//! is infinite there, although the mass is not to be seen. **Checked by** tests/theory/energy_laws.rs.

use super::super::{Energy, draw};
use minvel_engine::{Draw, Expr, Graph, concat};
use std::f64::consts::TAU;

/// Radii with weights proportional to themselves, and the radial deviation s.
#[derive(Clone, Debug, PartialEq)]
pub struct Ring {
    /// r_k > 0.
    pub radii: Vec<f64>,
    /// s.
    pub deviation: f64,
}

impl Ring {
    /// One ring of radius 5.
    pub fn single() -> Self {
        Ring { radii: vec![5.0], deviation: 0.2 }
    }

    /// Rings of radius 1, 3 and 5.
    pub fn multiple() -> Self {
        Ring { radii: vec![1.0, 3.0, 5.0], deviation: 0.2 }
    }
}

impl Energy for Ring {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let (g, total) = (x.graph(), self.radii.iter().sum::<f64>());
        let signed: Vec<f64> = self.radii.iter().flat_map(|r| [*r, -r]).collect();
        let weight = |r: &f64| (r.abs() / (total * TAU.sqrt() * self.deviation)).ln();
        let weights: Vec<f64> = signed.iter().map(weight).collect();
        let square = x.square().sum(-1).max(1e-30);
        let gap = square.sqrt().expand(-1) - g.table(&signed, [signed.len()]);
        let terms = g.table(&weights, [signed.len()]) - gap.square() * (0.5 / self.deviation.powi(2));
        0.5 * square.log() + TAU.ln() - terms.logsumexp(-1)
    }

    fn log_partition(&self) -> Option<f64> {
        Some(0.0)
    }

    fn sample<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Option<Expr<'g>> {
        let u = graph.random_rows(Draw::Uniform, crate::stream::substream(stream, 1), rows, [2]);
        let radius =
            draw::lookup(graph, &self.radii, &[self.radii.len()], draw::choose(u.slice(-1, 0, 1), &self.radii));
        let r = radius + self.deviation * graph.random_rows(Draw::Normal, stream, rows, [1]);
        let angle = TAU * u.slice(-1, 1, 1);
        Some(concat(&[r * angle.cos(), r * angle.sin()], -1))
    }
}
