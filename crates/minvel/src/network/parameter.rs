//! Variables of models: their names, shapes and start values.

use minvel_engine::init::Init;
use minvel_engine::math::Real;
use minvel_engine::{Expr, Graph, State};

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

    /// Gives it its start value: each replica from its own key, each variable from a stream of its own name, so that two
    /// models of one run never start alike.
    pub fn start<T: Real>(&self, state: &mut State<T>, seed: u64) {
        self.init.set(state, &self.name, &self.dims, seed, crate::stream::named(&self.name));
    }
}
