//! Energies: unnormalised models p ∝ exp(−E) w.r.t. the volume of the manifold.
//!
//! **Checked by** tests/energy_laws.rs: gradient, normalisation by quadrature, parameters.

use minvel_engine::init::Init;
use minvel_engine::math::Real;
use minvel_engine::{Expr, Graph, State};
use std::fmt;

/// A variable of a model: its name, shape and law of start values.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name of the variable.
    pub name: String,
    /// Its shape.
    pub dims: Vec<usize>,
    /// Law of its start values.
    pub init: Init,
}

impl Parameter {
    /// The variable in a graph.
    pub fn variable<'g>(&self, graph: &'g Graph) -> Expr<'g> {
        graph.variable(&self.name, self.dims.clone())
    }
}

/// A function E of a point, with or without parameters.
pub trait Energy: fmt::Debug + Send + Sync {
    /// E(x), `rows × [m]` → `rows × []`.
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g>;

    /// log ∫ e^{−E} dvol, where it is known.
    fn log_partition(&self) -> Option<f64> {
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

/// Gives parameters and followers their start values: each replica from its own key.
pub fn initialise<T: Real>(energy: &dyn Energy, state: &mut State<T>, seed: u64) {
    for (stream, p) in energy.parameters().iter().chain(&energy.followers()).enumerate() {
        p.init.set(state, &p.name, &p.dims, seed, stream as u32);
    }
}
