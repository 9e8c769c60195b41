//! Exact score matching, on Rⁿ or on a manifold.
//!
//! **Statement.** J = ½|grad E|² − Δ_gE; in a chart |grad E|² = g^{ij}∂_iE∂_jE, Δ_gE = g^{ij}∂_i∂_jE + b^i∂_iE.
//! **Source.** hyvarinen2005; mardia2016 (manifolds); docs/math §2.1, §2.6.
//! **Conventions.** Scale J. min J = −½I(p), at q = p.
//! **Error.** None, and no noise: the variance is that of J over the data. Costs one Hessian product per dimension.
//! **Checked by** tests/theory/objective_facts.rs (F1, F33–F40), tests/theory/golden.rs.

use super::Objective;
use crate::flow::{EnergyOf, Noise, Particles, leaf};
use crate::manifold::{Manifold, Metric};
use minvel_engine::{Expr, grad, jvp};
use std::sync::Arc;

/// J itself.
#[derive(Clone, Debug, Default)]
pub struct ScoreMatching {
    /// Where the points live; flat space if not given.
    pub manifold: Option<Arc<dyn Manifold>>,
}

impl ScoreMatching {
    /// In flat space.
    pub fn new() -> Self {
        Self::default()
    }

    /// On a manifold.
    pub fn on(manifold: impl Manifold + 'static) -> Self {
        ScoreMatching { manifold: Some(Arc::new(manifold)) }
    }

    /// |grad E|² and Δ_gE at each point, `rows × []`.
    pub fn derivatives<'g>(&self, energy: EnergyOf<'_, 'g>, x: Expr<'g>) -> (Expr<'g>, Expr<'g>) {
        match &self.manifold {
            None => {
                let x = leaf(x);
                let (first, second) = first_and_second(energy(x), x);
                (first.square().sum(-1), second.sum(-1))
            }
            Some(manifold) => {
                let choice = manifold.choose_chart(x);
                let y = leaf(manifold.to_chart(x, choice));
                let (first, second) = first_and_second(energy(manifold.from_chart(y, choice)), y);
                let Metric { inverse, brownian, .. } = manifold.metric(y);
                ((inverse * first.square()).sum(-1), (inverse * second + brownian * first).sum(-1))
            }
        }
    }
}

/// ∂_iE and ∂_i∂_iE, `rows × [n]`.
fn first_and_second<'g>(value: Expr<'g>, y: Expr<'g>) -> (Expr<'g>, Expr<'g>) {
    let first = grad(value, &[y])[0];
    let n = y.shape().dims[0];
    let second = (0..n).map(|i| {
        let along: Vec<f64> = (0..n).map(|k| f64::from(k == i)).collect();
        let along = y.graph().table(&along, [n]).broadcast(&y.shape());
        jvp(&[first.slice(-1, i, 1)], &[(y, along)])[0]
    });
    (first, minvel_engine::concat(&second.collect::<Vec<_>>(), -1))
}

impl Objective for ScoreMatching {
    fn rows<'g>(&self, energy: EnergyOf<'_, 'g>, data: Particles<'g>, _: Noise<'g>) -> Expr<'g> {
        let (squared_gradient, laplacian) = self.derivatives(energy, data.at);
        0.5 * squared_gradient - laplacian
    }

    fn scale(&self) -> f64 {
        1.0
    }
}
