//! Energies of independent parts of a point.
//!
//! **Statement.** E(x₁, …, x_k) = Σ E_i(x_i): p = Π p_i; log Z and I(p) add up. **Source.** docs/math §3.4.
//! **Conventions.** Parts stand one after another, as in [`crate::manifold::Product`]. **Error.** That of the parts.
//! **Checked by** tests/theory/energy_laws.rs.

use super::Energy;
use crate::network::Parameter;
use minvel_engine::{Expr, Graph, concat};
use std::sync::Arc;

/// The law of independent parts.
#[derive(Clone, Debug)]
pub struct Independent {
    factors: Vec<(usize, Arc<dyn Energy>)>,
}

impl Independent {
    /// Factors with the number of coordinates of each.
    pub fn new(factors: Vec<(usize, Arc<dyn Energy>)>) -> Self {
        assert!(!factors.is_empty(), "a product of laws has at least one factor");
        Independent { factors }
    }

    fn energies(&self) -> impl Iterator<Item = &dyn Energy> {
        self.factors.iter().map(|(_, e)| &**e)
    }
}

impl Energy for Independent {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let mut start = 0;
        let mut parts = vec![];
        for (width, energy) in &self.factors {
            parts.push(energy.energy(x.slice(-1, start, *width)));
            start += width;
        }
        assert!(x.shape().features() == start, "a product of laws on {start} coordinates is given {}", x.shape());
        parts.into_iter().reduce(|a, b| a + b).expect("there is a factor")
    }

    fn log_partition(&self) -> Option<f64> {
        self.energies().map(|e| e.log_partition()).sum()
    }

    fn sample<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Option<Expr<'g>> {
        let sample =
            |(k, e): (usize, &dyn Energy)| e.sample(graph, rows, crate::stream::substream(stream, k as u32 + 1));
        let parts: Option<Vec<Expr>> = self.energies().enumerate().map(sample).collect();
        Some(concat(&parts?, -1))
    }

    fn fisher_information(&self) -> Option<f64> {
        self.energies().map(|e| e.fisher_information()).sum()
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.energies().flat_map(|e| e.parameters()).collect()
    }

    fn followers(&self) -> Vec<Parameter> {
        self.energies().flat_map(|e| e.followers()).collect()
    }

    fn follow<'g>(&self, graph: &'g Graph) -> Vec<(Expr<'g>, Expr<'g>)> {
        self.energies().flat_map(|e| e.follow(graph)).collect()
    }
}
