//! Energies given by a network.
//!
//! **Statement.** E(x) = ⟨f(x), ψ(f(x))⟩ (the paper's head) or E(x) = ψ(f(x)) with one output.
//! **Source.** docs/math §4.0; wang2020mvl. **Conventions.** p ∝ e^{−E}: the network's sign is not flipped.
//! **Error.** Rounding. **Checked by** tests/theory/energy_laws.rs, tests/theory/energy_facts.rs (docs/math §7),
//! tests/theory/convolution.rs.

use super::Energy;
use crate::network::{Activation, Features, Layer, Network, Parameter};
use minvel_engine::{Expr, Graph};

/// How a network's output becomes a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// ⟨f, ψ(f)⟩: as many outputs as features.
    Inner,
    /// ψ(f) itself: one output.
    Scalar,
}

impl Head {
    /// Outputs of a network on the given number of features.
    pub(super) fn outputs(self, features: usize) -> usize {
        if self == Head::Inner { features } else { 1 }
    }

    /// The energy from features and output.
    pub(super) fn energy<'g>(self, features: Expr<'g>, output: Expr<'g>) -> Expr<'g> {
        match self {
            Head::Inner => features.dot(output),
            Head::Scalar => output.at(-1, 0),
        }
    }
}

/// A network as energy.
#[derive(Clone, Debug)]
pub struct Mlp {
    features: Features,
    head: Head,
    network: Network,
}

impl Mlp {
    /// A network of hidden widths on the given features, with the paper's head.
    pub fn new(name: &str, features: Features, hidden: &[usize], activation: Activation) -> Self {
        Self::with_head(name, features, hidden, activation, Head::Inner)
    }

    /// With a head of choice.
    pub fn with_head(name: &str, features: Features, hidden: &[usize], activation: Activation, head: Head) -> Self {
        Self::layered(name, features, &Layer::dense(hidden), activation, head)
    }

    /// With hidden layers of any kind.
    pub fn layered(name: &str, features: Features, hidden: &[Layer], activation: Activation, head: Head) -> Self {
        let inputs = features.count();
        let layers = [hidden, &[Layer::Dense(head.outputs(inputs))]].concat();
        Mlp { features, head, network: Network::of(name, inputs, layers, activation) }
    }

    /// With spectral normalisation of the hidden layers.
    pub fn spectral(mut self) -> Self {
        self.network.spectral = true;
        self
    }

    /// The network ψ.
    pub fn network(&self) -> &Network {
        &self.network
    }
}

impl Energy for Mlp {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let f = self.features.apply(x);
        self.head.energy(f, self.network.apply(f))
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.network.parameters()
    }

    fn followers(&self) -> Vec<Parameter> {
        self.network.followers()
    }

    fn follow<'g>(&self, graph: &'g Graph) -> Vec<(Expr<'g>, Expr<'g>)> {
        self.network.follow(graph)
    }
}
