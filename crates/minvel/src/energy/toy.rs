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
use crate::manifold::{Euclidean, Manifold, Space};
use minvel_engine::{Expr, Graph};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Which of the laws with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToyLaw {
    /// A bent normal law: [`Banana`].
    Banana,
    /// A wave with normal noise across: [`Cosine`].
    Cosine,
    /// A scale that is itself random: [`Funnel`].
    Funnel,
    /// One ring: [`Ring::single`].
    Ring,
    /// Rings inside each other: [`Ring::multiple`].
    Multiring,
    /// Two normal distributions, far apart.
    Grid,
    /// The uniform law on a square: [`Square`].
    Square,
    /// A spiral of three arms: [`Spiral`].
    Spiral,
    /// A narrow and a wide normal distribution on the line.
    Mog,
    /// Two von Mises distributions on S¹, with the concentrations of the paper's code: [`circle`].
    Circle,
    /// The same with the concentrations of the paper's text (erratum P16): [`circle_as_printed`].
    CirclePrinted,
    /// Four von Mises–Fisher distributions on S²: [`sphere`].
    Sphere,
}

impl ToyLaw {
    /// All of them.
    pub const ALL: [ToyLaw; 12] = [
        ToyLaw::Banana,
        ToyLaw::Cosine,
        ToyLaw::Funnel,
        ToyLaw::Ring,
        ToyLaw::Multiring,
        ToyLaw::Grid,
        ToyLaw::Square,
        ToyLaw::Spiral,
        ToyLaw::Mog,
        ToyLaw::Circle,
        ToyLaw::CirclePrinted,
        ToyLaw::Sphere,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ToyLaw::Banana => "banana",
            ToyLaw::Cosine => "cosine",
            ToyLaw::Funnel => "funnel",
            ToyLaw::Ring => "ring",
            ToyLaw::Multiring => "multiring",
            ToyLaw::Grid => "grid",
            ToyLaw::Square => "square",
            ToyLaw::Spiral => "spiral",
            ToyLaw::Mog => "mog",
            ToyLaw::Circle => "circle",
            ToyLaw::CirclePrinted => "circle-printed",
            ToyLaw::Sphere => "sphere",
        }
    }

    /// Where its points live, in its usual dimension.
    pub fn space(self) -> Space {
        match self {
            ToyLaw::Banana | ToyLaw::Cosine | ToyLaw::Funnel | ToyLaw::Ring | ToyLaw::Multiring => Space::Euclidean(2),
            ToyLaw::Grid | ToyLaw::Square | ToyLaw::Spiral => Space::Euclidean(2),
            ToyLaw::Mog => Space::Euclidean(1),
            ToyLaw::Circle | ToyLaw::CirclePrinted => Space::Sphere(1),
            ToyLaw::Sphere => Space::Sphere(2),
        }
    }
}

impl fmt::Display for ToyLaw {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ToyLaw {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|law| law.name() == name);
        let known = || Self::ALL.map(ToyLaw::name).join(", ");
        found.ok_or_else(|| format!("unknown toy distribution `{name}`; expected {}", known()))
    }
}

/// A law with a name, and what is known about it.
#[derive(Clone, Debug)]
pub struct Toy {
    /// Which it is.
    pub kind: ToyLaw,
    /// Where its points live.
    pub manifold: Arc<dyn Manifold>,
    /// The law.
    pub law: Arc<dyn Energy>,
    /// I(p), where it is finite: min L = −I(p), min J = −I(p)/2.
    pub information: Option<f64>,
}

impl Toy {
    /// A law in its usual dimension.
    pub fn new(kind: ToyLaw) -> Self {
        let normal = |mean: &[f64], deviation| -> Arc<dyn Energy> { Arc::new(Gaussian::isotropic(mean, deviation)) };
        let (law, constant): (Arc<dyn Energy>, Option<f64>) = match kind {
            ToyLaw::Banana => (Arc::new(Banana::default()), None),
            ToyLaw::Cosine => (Arc::new(Cosine::default()), None),
            ToyLaw::Funnel => (Arc::new(Funnel(2)), None),
            ToyLaw::Ring => (Arc::new(Ring::single()), None),
            ToyLaw::Multiring => (Arc::new(Ring::multiple()), None),
            ToyLaw::Grid => {
                let halves = vec![(0.5, normal(&[4.0, 0.0], 0.5)), (0.5, normal(&[-4.0, 0.0], 0.5))];
                (Arc::new(MixtureEnergy::new(halves)), Some(7.999_999_999_999_501))
            }
            ToyLaw::Square => (Arc::new(Square { half: 3.0, dims: 2 }), None),
            ToyLaw::Spiral => (Arc::new(Spiral::default()), None),
            ToyLaw::Mog => {
                let parts = vec![(0.3, normal(&[-1.0], 0.2)), (0.7, normal(&[1.0], 1.0))];
                (Arc::new(MixtureEnergy::new(parts)), Some(5.990_625_035_372_74))
            }
            ToyLaw::Circle => (Arc::new(circle()), Some(1.019160631620768)),
            ToyLaw::CirclePrinted => (Arc::new(circle_as_printed()), Some(0.01167354896015733)),
            ToyLaw::Sphere => (Arc::new(sphere()), Some(5.160876066070)),
        };
        let information = constant.or(law.fisher_information());
        Toy { kind, manifold: kind.space().manifold(), law, information }
    }

    /// The law in a larger Euclidean dimension, as in wenliang2018dkef: more uniform or funnelled coordinates, else
    /// independent N(0, 1) ones (N(0, 0.2²) for the rings).
    pub fn in_dimension(self, d: usize) -> Result<Self, String> {
        let own = self.manifold.ambient();
        if d == own {
            return Ok(self);
        }
        let refused = || Err(format!("the toy distribution `{}` cannot have dimension {d}", self.kind));
        if d < own {
            return refused();
        }
        let beside = |deviation: f64| -> Arc<dyn Energy> {
            let rest = Arc::new(Gaussian::isotropic(&vec![0.0; d - own], deviation));
            Arc::new(Independent::new(vec![(own, Arc::new(self.clone())), (d - own, rest)]))
        };
        let law: Arc<dyn Energy> = match self.kind {
            ToyLaw::Square => Arc::new(Square { half: 3.0, dims: d }),
            ToyLaw::Funnel => Arc::new(Funnel(d)),
            ToyLaw::Ring | ToyLaw::Multiring => beside(0.2),
            ToyLaw::Banana | ToyLaw::Cosine | ToyLaw::Grid | ToyLaw::Spiral | ToyLaw::Mog => beside(1.0),
            ToyLaw::Circle | ToyLaw::CirclePrinted | ToyLaw::Sphere => return refused(),
        };
        let information = law.fisher_information();
        Ok(Toy { kind: self.kind, manifold: Arc::new(Euclidean(d)), law, information })
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
