//! Energies: unnormalised models p ∝ exp(−E) w.r.t. the volume of the manifold.
//!
//! **Statement.** p = e^{−E}/Z, Z = ∫ e^{−E} dvol. Closed forms know log Z, can be sampled exactly and know
//! I(p) = E‖grad E‖² (so that min L = −I(p)); networks have parameters and know none of these.
//! **Source.** docs/math §0, §4.0, §4.1. **Conventions.** Points are in the coordinates of [`crate::manifold`].
//! **Checked by** tests/theory/energy_laws.rs (one suite over every energy: gradient, normalisation by quadrature, samples,
//! parameters), tests/theory/energy_facts.rs.

mod bingham;
mod conditional;
pub mod draw;
mod formula;
mod gaussian;
mod hyperboloid;
mod independent;
mod mixture;
mod mlp;
pub mod toy;
mod von_mises;
pub mod von_mises_fisher;
mod wrapped_normal;

pub use bingham::Bingham;
pub use conditional::{Condition, Conditional};
pub use formula::Formula;
pub use gaussian::Gaussian;
pub use hyperboloid::Hyperboloid;
pub use independent::Independent;
pub use mixture::MixtureEnergy;
pub use mlp::{Head, Mlp};
pub use toy::{Toy, ToyLaw};
pub use von_mises::VonMises;
pub use von_mises_fisher::VonMisesFisher;
pub use wrapped_normal::{HyperbolicNormal, TorusNormal};

use crate::network::Parameter;
use minvel_engine::math::Real;
use minvel_engine::{Clock, Device, Expr, Graph, Options, State};
use std::fmt;

/// A function E of a point, with or without parameters.
pub trait Energy: fmt::Debug + Send + Sync {
    /// E(x), `rows × [m]` → `rows × []`.
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g>;

    /// log ∫ e^{−E} dvol, where it is known.
    fn log_partition(&self) -> Option<f64> {
        None
    }

    /// Exact and independent points of the law e^{−E}/Z, `rows × [m]`, fresh at every step of the program, where we
    /// know how. Draws beyond the first come from [`crate::stream::substream`]s, so that the next stream is free for the caller.
    fn sample<'g>(&self, _graph: &'g Graph, _rows: usize, _stream: u32) -> Option<Expr<'g>> {
        None
    }

    /// I(p) = E‖grad E‖² = E ΔE under its own law, where it is known and finite: L ≥ −I(p), with equality for the
    /// truth.
    fn fisher_information(&self) -> Option<f64> {
        None
    }

    /// The parameters θ that are learnt (closed forms have none).
    fn parameters(&self) -> Vec<Parameter> {
        vec![]
    }

    /// Variables that follow the parameters without being learnt (vectors of a power iteration).
    fn followers(&self) -> Vec<Parameter> {
        vec![]
    }

    /// The new values of the followers, to be updated with every step.
    fn follow<'g>(&self, _graph: &'g Graph) -> Vec<(Expr<'g>, Expr<'g>)> {
        vec![]
    }
}

/// The parameters of an energy as expressions, to differentiate by.
pub fn parameters<'g>(energy: &dyn Energy, graph: &'g Graph) -> Vec<Expr<'g>> {
    energy.parameters().iter().map(|p| p.variable(graph)).collect()
}

/// log p(x) = −E(x) − log Z, `rows × []`, where Z is known.
pub fn log_prob<'g>(energy: &dyn Energy, x: Expr<'g>) -> Option<Expr<'g>> {
    Some(-energy.energy(x) - energy.log_partition()?)
}

/// A fixed set of points of the energy's law, row-major `[count, m]`: what step 0 of stream 0 of a program with this
/// seed would draw.
pub fn points(energy: &dyn Energy, count: usize, seed: u64) -> Option<Vec<f64>> {
    let graph = Graph::new();
    let sample = energy.sample(&graph, count, 0)?;
    let mut program = graph.compile::<f64>(&[sample], &[], &Options { device: Device::Cpu, ..Options::default() });
    program.run(&mut State::new(1), &[], Clock { seed, step: 0 });
    Some(program.output(0).to_vec())
}

/// Gives parameters and followers their start values ([`Parameter::start`]).
pub fn initialise<T: Real>(energy: &dyn Energy, state: &mut State<T>, seed: u64) {
    energy.parameters().iter().chain(&energy.followers()).for_each(|p| p.start(state, seed));
}
