//! Independent von Mises laws on the torus.
//!
//! **Statement.** E(θ) = −Σ κ_i cos(θ_i − μ_i), log Z = Σ log 2πI₀(κ_i), I(p) = Σ κ_iA₂(κ_i).
//! **Source.** docs/math §3.4, F40. **Conventions.** Angles, taken up to multiples of 2π. **Error.** Samples by rejection
//! ([`draw`]), as those of von Mises–Fisher on S¹. **Checked by** tests/theory/energy_laws.rs.

use super::Energy;
use super::von_mises_fisher::Wood;
use crate::manifold::{Manifold, Torus};
use crate::special::{log_vmf_constant, mean_resultant};
use minvel_engine::{Draw, Expr, Graph};

/// Π_i vM(μ_i, κ_i) on Tⁿ.
#[derive(Clone, Debug, PartialEq)]
pub struct VonMises {
    means: Vec<f64>,
    concentrations: Vec<f64>,
}

impl VonMises {
    /// Mean angles and concentrations ≥ 0.
    pub fn new(means: &[f64], concentrations: &[f64]) -> Self {
        assert!(means.len() == concentrations.len(), "{} means, {} concentrations", means.len(), concentrations.len());
        assert!(concentrations.iter().all(|&x| x >= 0.0), "concentrations are not negative: {concentrations:?}");
        VonMises { means: means.to_vec(), concentrations: concentrations.to_vec() }
    }
}

impl Energy for VonMises {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let (g, n) = (x.graph(), self.means.len());
        -(x - g.table(&self.means, [n])).cos().dot(g.table(&self.concentrations, [n]))
    }

    fn log_partition(&self) -> Option<f64> {
        Some(self.concentrations.iter().map(|&kappa| -log_vmf_constant(2, kappa)).sum())
    }

    /// The angle from the mean is ±2 arcsin √((1 − cos)/2).
    fn sample<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Option<Expr<'g>> {
        let n = self.means.len();
        let kappa = graph.table(&self.concentrations, [n]);
        let fall = Wood::new(2, &self.concentrations).fall(graph, rows, kappa, stream);
        let side = graph.random_rows(Draw::Rademacher, crate::stream::substream(stream, 1), rows, [n]);
        let angle = 2.0 * (0.5 * fall).sqrt().atan2((1.0 - 0.5 * fall).sqrt());
        Some(Torus(n).settle(graph.table(&self.means, [n]) + side * angle))
    }

    fn fisher_information(&self) -> Option<f64> {
        Some(self.concentrations.iter().map(|&kappa| kappa * mean_resultant(2, kappa)).sum())
    }
}
