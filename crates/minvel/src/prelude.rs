//! What most programs name: `use minvel::prelude::*;`.

pub use crate::Error;
pub use crate::density::{Density, EnergyDensity};
pub use crate::energy::{Energy, Formula, Mlp, Toy, ToyLaw, points};
pub use crate::estimate::Estimate;
pub use crate::fit::{FewSettings, Fit, Goal};
pub use crate::flow::{Flow, FlowForm, Langevin, RiemannianLangevin, Stein};
pub use crate::manifold::{Euclidean, Hyperbolic, Manifold, Product, Projective, So3, Sphere, Torus};
pub use crate::network::{Activation, Features};
pub use crate::objective::{MinimumVelocity, Objective, ScoreMatching};
pub use crate::sampler::{Chains, Hamiltonian, Metropolis, Sampler};
pub use crate::train::{Context, Learner};
pub use minvel_engine::optim::Optimiser;
pub use minvel_engine::{Draw, Expr, Graph};
