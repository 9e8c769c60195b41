//! A spiral of three arms that widen outwards.
//!
//! **Statement.** a ~ U(0, 1), arm j of k at angle πa + 2πj/k and radius 1.5πa, deviation 0.5a + 0.1 in each
//! coordinate: p(x) = (1/k) Σ_j ∫₀¹ N(x; c_j(a), (0.5a + 0.1)²I) da. **Source.** docs/math §4.1; wenliang2018dkef.
//! **Conventions.** Angles turn counter-clockwise.
//! **Error.** The integral is taken by 64 Gauss–Legendre nodes for each arm, to rounding: neighbouring nodes are less
//! than 0.7 deviations apart. **Checked by** tests/theory/energy_laws.rs.

use super::super::Energy;
use crate::manifold::quadrature;
use minvel_engine::{Draw, Expr, Graph, concat};
use std::f64::consts::{PI, TAU};

/// Nodes of the integral over a.
const NODES: usize = 64;

/// Three arms, unless told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spiral {
    /// k.
    pub arms: usize,
}

impl Default for Spiral {
    fn default() -> Self {
        Spiral { arms: 3 }
    }
}

impl Energy for Spiral {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let (nodes, weights) = quadrature::interval(0.0, 1.0, NODES);
        let (mut centres, mut constants, mut precisions) = (vec![], vec![], vec![]);
        for (j, (a, w)) in (0..self.arms).flat_map(|j| nodes.iter().zip(&weights).map(move |node| (j, node))) {
            let angle = PI * a + TAU * j as f64 / self.arms as f64;
            let (radius, deviation) = (1.5 * PI * a, 0.5 * a + 0.1);
            centres.extend([radius * angle.cos(), radius * angle.sin()]);
            constants.push((w / (self.arms as f64 * TAU * deviation * deviation)).ln());
            precisions.push(deviation.powi(-2));
        }
        let (g, count) = (x.graph(), constants.len());
        let squares = x.squared_distances(g.table(&centres, [count, 2]));
        -(g.table(&constants, [count]) - 0.5 * squares * g.table(&precisions, [count])).logsumexp(-1)
    }

    fn log_partition(&self) -> Option<f64> {
        Some(0.0)
    }

    fn sample<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Option<Expr<'g>> {
        let a = graph.random_rows(Draw::Uniform, crate::stream::substream(stream, 1), rows, [1]);
        let arm = graph.random_rows(Draw::Integer(self.arms as u32), crate::stream::substream(stream, 2), rows, [1]);
        let angle = PI * a + (TAU / self.arms as f64) * arm;
        let centre = 1.5 * PI * a * concat(&[angle.cos(), angle.sin()], -1);
        Some(centre + (0.5 * a + 0.1) * graph.random_rows(Draw::Normal, stream, rows, [2]))
    }
}
