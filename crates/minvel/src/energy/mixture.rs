//! Mixtures of any laws with known partition functions.
//!
//! **Statement.** E(x) = −log Σ_k w_k e^{−E_k(x)}/Z_k, log Z = 0. **Source.** docs/math §4.1.
//! **Conventions.** Weights add up to one, or are made to. **Error.** None; a sample is drawn from every component and
//! one of them is chosen.
//! **Checked by** tests/theory/energy_laws.rs.

use super::{Energy, draw, log_prob};
use minvel_engine::{Draw, Expr, Graph, concat};
use std::sync::Arc;

/// Σ_k w_k p_k.
#[derive(Clone, Debug)]
pub struct MixtureEnergy {
    weights: Vec<f64>,
    components: Vec<Arc<dyn Energy>>,
}

impl MixtureEnergy {
    /// Components with their weights. Each must know its partition function and have no parameters.
    pub fn new(components: Vec<(f64, Arc<dyn Energy>)>) -> Self {
        assert!(!components.is_empty(), "a mixture has at least one component");
        let total: f64 = components.iter().map(|(w, _)| w).sum();
        for (w, c) in &components {
            assert!(*w >= 0.0 && total > 0.0, "a mixture's weights are not negative and not all zero, not {w}");
            assert!(
                c.log_partition().is_some(),
                "a mixture's components know their partition functions, {c:?} does not"
            );
        }
        let (weights, components) = components.into_iter().map(|(w, c)| (w / total, c)).unzip();
        MixtureEnergy { weights, components }
    }
}

impl Energy for MixtureEnergy {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let term = |(w, c): (&f64, &Arc<dyn Energy>)| {
            let log_prob = log_prob(&**c, x).expect("checked when the mixture was made");
            (log_prob + w.ln()).expand(-1)
        };
        let terms: Vec<Expr> = self.weights.iter().zip(&self.components).map(term).collect();
        -concat(&terms, -1).logsumexp(-1)
    }

    fn log_partition(&self) -> Option<f64> {
        Some(0.0)
    }

    fn sample<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Option<Expr<'g>> {
        let index = draw::choose(graph.random_rows(Draw::Uniform, stream, rows, [1]), &self.weights);
        let mut chosen = self.components[0].sample(graph, rows, crate::stream::substream(stream, 1))?;
        for (k, component) in self.components.iter().enumerate().skip(1) {
            let other = component.sample(graph, rows, crate::stream::substream(stream, k as u32 + 1))?;
            chosen = index.equal(k as f64).select(other, chosen);
        }
        Some(chosen)
    }
}
