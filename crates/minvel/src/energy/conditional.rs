//! Energies of a point given a context: E(z | c).
//!
//! **Statement.** E(z|c) = ⟨f(z), ψ([f(z), c])⟩. The first layer is affine, f(z)W_z + (cW_c + b), and the part in
//! brackets is the same for every z: it is computed once. **Source.** docs/math §4.0 (order [z, x]), §4.6.
//! **Conventions.** One matrix W₀ holds W_z above W_c, so that parameters are those of the plain network on [f(z), c].
//! **Error.** Rounding. **Checked by** tests/theory/energy_laws.rs (equal to the plain network, parameter counts).
//!
//! ```
//! use minvel::energy::Conditional;
//! use minvel::network::{Activation, Features};
//! use minvel_engine::Graph;
//! let g = Graph::new();
//! let energy = Conditional::new("e", Features::of_point(8), 784, &[256, 256], Activation::Tanh);
//! let image = g.input_rows("image", 128, [784]);
//! let (z, other) = (g.input_rows("z", 128, [8]), g.input_rows("other", 128, [8]));
//! let context = energy.context(image);
//! let change = energy.energy(z, context) - energy.energy(other, context);
//! assert_eq!(change.shape().to_string(), "128 rows × []");
//! ```

use super::{Energy, Head};
use crate::network::{Activation, Features, Layer, Network, Parameter};
use minvel_engine::{Expr, Graph, concat};

/// A network as energy of a point given a context.
#[derive(Clone, Debug)]
pub struct Conditional {
    features: Features,
    context: usize,
    head: Head,
    network: Network,
}

/// The context's part of the first layer, `rows × [h]`.
#[derive(Clone, Copy, Debug)]
pub struct Condition<'g>(Expr<'g>);

impl Conditional {
    /// A network of hidden widths on features of the point and `context` numbers, with the paper's head.
    pub fn new(name: &str, features: Features, context: usize, hidden: &[usize], activation: Activation) -> Self {
        Self::with_head(name, features, context, hidden, activation, Head::Inner)
    }

    /// With a head of choice.
    pub fn with_head(
        name: &str,
        features: Features,
        context: usize,
        hidden: &[usize],
        activation: Activation,
        head: Head,
    ) -> Self {
        Self::layered(name, features, context, &Layer::dense(hidden), activation, head)
    }

    /// With hidden layers of any kind, of which the first is dense.
    pub fn layered(
        name: &str,
        features: Features,
        context: usize,
        hidden: &[Layer],
        activation: Activation,
        head: Head,
    ) -> Self {
        let inputs = features.count();
        let layers = [hidden, &[Layer::Dense(head.outputs(inputs))]].concat();
        assert!(matches!(layers[..], [Layer::Dense(_), ..]), "a conditional energy begins with a dense layer");
        Conditional { features, context, head, network: Network::of(name, inputs + context, layers, activation) }
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

    /// What the context contributes, `rows × [context]` → to be used at any number of points.
    pub fn context<'g>(&self, context: Expr<'g>) -> Condition<'g> {
        let (w, b) = self.network.layer(context.graph(), 0);
        let inputs = self.network.inputs - self.context;
        Condition(context.matmul(w.slice(0, inputs, self.context)) + b)
    }

    /// E(z|c), `rows × [m]` → `rows × []`.
    pub fn energy<'g>(&self, z: Expr<'g>, context: Condition<'g>) -> Expr<'g> {
        let f = self.features.apply(z);
        let (w, _) = self.network.layer(z.graph(), 0);
        let inputs = self.network.inputs - self.context;
        self.head.energy(f, self.network.after_first(f.matmul(w.slice(0, 0, inputs)) + context.0))
    }
}

/// As a function of [z, c] in one row: it has the same parameters, so that what serves any energy serves this one.
impl Energy for Conditional {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let m = self.features.coordinates();
        let f = self.features.apply(x.slice(-1, 0, m));
        self.head.energy(f, self.network.apply(concat(&[f, x.slice(-1, m, self.context)], -1)))
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
