//! Synthetic data: laws with a name, exact samples, known densities and constants.
//!
//! **Statement.** Each file its own density; E = −log p or up to a known Z. **Source.** docs/math §4.1 (wenliang2018dkef),
//! §4.4, §4.5 (wang2020mvl). **Conventions.** Samples are fresh at every step of a program ([`Energy::sample`]) or a
//! fixed set ([`super::points`]). **Error.** Exact. **Checked by** tests/theory/energy_laws.rs, tests/theory/energy_facts.rs
//! (F17, F41).

mod banana;
mod cosine;
mod directions;
mod funnel;
mod ring;
mod spiral;
mod square;

pub use banana::Banana;
pub use cosine::Cosine;
pub use directions::{circle, circle_as_printed, sphere};
pub use funnel::Funnel;
pub use ring::Ring;
pub use spiral::Spiral;
pub use square::Square;

use super::{Energy, Gaussian, Independent, MixtureEnergy};
use crate::manifold::{Euclidean, Manifold, Sphere};
use minvel_engine::{Expr, Graph};
use std::sync::Arc;

/// A named law and what is known about it.
#[derive(Clone, Debug)]
pub struct Toy {
    /// Its name, one of [`Toy::NAMES`].
    pub name: &'static str,
    /// Where its points live.
    pub manifold: Arc<dyn Manifold>,
    /// The law.
    pub law: Arc<dyn Energy>,
    /// I(p), where it is finite: min L = −I(p), min J = −I(p)/2.
    pub information: Option<f64>,
}

impl Toy {
    /// All names. `circle-printed` has the concentrations of the paper's text, `circle` those of its code (erratum
    /// P16).
    pub const NAMES: [&'static str; 12] = [
        "banana",
        "cosine",
        "funnel",
        "ring",
        "multiring",
        "grid",
        "square",
        "spiral",
        "mog",
        "circle",
        "circle-printed",
        "sphere",
    ];

    /// The law of a name, in its usual dimension.
    pub fn named(name: &str) -> Result<Self, String> {
        let &name = Self::NAMES
            .iter()
            .find(|n| **n == name)
            .ok_or_else(|| format!("unknown toy distribution `{name}`; expected {}", Self::NAMES.join(", ")))?;
        let normal = |mean: &[f64], deviation| -> Arc<dyn Energy> { Arc::new(Gaussian::isotropic(mean, deviation)) };
        let (law, constant): (Arc<dyn Energy>, Option<f64>) = match name {
            "banana" => (Arc::new(Banana::default()), None),
            "cosine" => (Arc::new(Cosine::default()), None),
            "funnel" => (Arc::new(Funnel(2)), None),
            "ring" => (Arc::new(Ring::single()), None),
            "multiring" => (Arc::new(Ring::multiple()), None),
            "grid" => {
                let halves = vec![(0.5, normal(&[4.0, 0.0], 0.5)), (0.5, normal(&[-4.0, 0.0], 0.5))];
                (Arc::new(MixtureEnergy::new(halves)), Some(7.999_999_999_999_501))
            }
            "square" => (Arc::new(Square { half: 3.0, dims: 2 }), None),
            "spiral" => (Arc::new(Spiral::default()), None),
            "mog" => {
                let parts = vec![(0.3, normal(&[-1.0], 0.2)), (0.7, normal(&[1.0], 1.0))];
                (Arc::new(MixtureEnergy::new(parts)), Some(5.990_625_035_372_74))
            }
            "circle" => (Arc::new(circle()), Some(1.019160631620768)),
            "circle-printed" => (Arc::new(circle_as_printed()), Some(0.01167354896015733)),
            _ => (Arc::new(sphere()), Some(5.160876066070)),
        };
        let manifold: Arc<dyn Manifold> = match name {
            "mog" => Arc::new(Euclidean(1)),
            "circle" | "circle-printed" => Arc::new(Sphere(1)),
            "sphere" => Arc::new(Sphere(2)),
            _ => Arc::new(Euclidean(2)),
        };
        let information = constant.or(law.fisher_information());
        Ok(Toy { name, manifold, law, information })
    }

    /// The law in a larger Euclidean dimension, as in wenliang2018dkef: more uniform or funnelled coordinates, else
    /// independent N(0, 1) ones (N(0, 0.2²) for the rings).
    pub fn in_dimension(self, d: usize) -> Result<Self, String> {
        let own = self.manifold.ambient();
        if d == own {
            return Ok(self);
        }
        if d < own || self.name.starts_with("circle") || self.name == "sphere" {
            return Err(format!("the toy distribution `{}` cannot have dimension {d}", self.name));
        }
        let law: Arc<dyn Energy> = match self.name {
            "square" => Arc::new(Square { half: 3.0, dims: d }),
            "funnel" => Arc::new(Funnel(d)),
            name => {
                let deviation = if name.ends_with("ring") { 0.2 } else { 1.0 };
                let rest = Arc::new(Gaussian::isotropic(&vec![0.0; d - own], deviation));
                Arc::new(Independent::new(vec![(own, Arc::new(self.clone())), (d - own, rest)]))
            }
        };
        let information = law.fisher_information();
        Ok(Toy { name: self.name, manifold: Arc::new(Euclidean(d)), law, information })
    }
}

impl Energy for Toy {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        self.law.energy(x)
    }

    fn log_partition(&self) -> Option<f64> {
        self.law.log_partition()
    }

    fn sample<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Option<Expr<'g>> {
        self.law.sample(graph, rows, stream)
    }

    fn fisher_information(&self) -> Option<f64> {
        self.information
    }
}
