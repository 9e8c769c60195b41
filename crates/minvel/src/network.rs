//! Networks: affine maps and activations in turn, with spectral normalisation on request.
//!
//! **Statement.** ψ(x) = A_L h_L, h_{k+1} = φ(A_k h_k), h_0 = x, each A a [`Layer`] with weights W and biases b. With spectral
//! normalisation hidden weights are W/σ, σ = v W uᵀ, v = uWᵀ/|·|, u⁺ = vW/|·| (one power iteration per step, u and v constant in
//! differentiation, u⁺ kept).
//! **Source.** docs/math §4.0; glorot2010, miyato2018spectral.
//! **Conventions.** For σ, W is `[inputs of an output, channels]`; names are `name/w0`, `name/b0`, …, `name/u0` for the power
//! iteration.
//! **Error.** σ converges to the largest singular value like (σ₂/σ₁)^{2·steps}. **Checked by** tests/theory/energy_laws.rs
//! (F56, gradients, parameter counts), tests/theory/energy_facts.rs (docs/math §7), tests/theory/convolution.rs.

mod features;
mod layer;
mod parameter;

pub use features::{Features, latent_features};
pub use layer::Layer;
pub use parameter::Parameter;

use minvel_engine::init::Init;
use minvel_engine::{Expr, Graph};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The function between two affine maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// tanh h.
    Tanh,
    /// swish: h·σ(h).
    Silu,
    /// log(1 + eʰ).
    Softplus,
    /// h for h > 0, else eʰ − 1.
    Elu,
    /// max(h, 0). Not for energies: ∇E jumps, and the singular part of ΔE is seen differently by SM, SSM, DSM and MVL
    /// (docs/math §2.13).
    Relu,
    /// sin h.
    Sin,
}

impl Activation {
    /// φ(h).
    pub fn apply(self, h: Expr) -> Expr {
        match self {
            Activation::Tanh => h.tanh(),
            Activation::Silu => h.silu(),
            Activation::Softplus => h.softplus(),
            Activation::Elu => h.elu(),
            Activation::Relu => h.relu(),
            Activation::Sin => h.sin(),
        }
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.serialize(f)
    }
}

/// A network.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// What the names of its variables begin with.
    pub name: String,
    /// Numbers that it takes.
    pub inputs: usize,
    /// Affine maps.
    pub layers: Vec<Layer>,
    /// Between affine maps.
    pub activation: Activation,
    /// Whether hidden layers (not the last) are normalised spectrally.
    pub spectral: bool,
}

impl Network {
    /// A dense one; widths are input, hidden, …, output.
    pub fn new(name: &str, widths: &[usize], activation: Activation) -> Self {
        let [inputs, widths @ ..] = widths else { panic!("a network has an input and an output") };
        Self::of(name, *inputs, Layer::dense(widths), activation)
    }

    /// Of layers that follow one another.
    pub fn of(name: &str, inputs: usize, layers: Vec<Layer>, activation: Activation) -> Self {
        assert!(!layers.is_empty(), "a network has an input and an output");
        let network = Network { name: name.into(), inputs, layers, activation, spectral: false };
        for (k, layer) in network.layers.iter().enumerate() {
            assert!(layer.takes(network.inputs(k)), "network: {layer:?} cannot be fed {} numbers", network.inputs(k));
        }
        network
    }

    /// Numbers that layer k takes.
    fn inputs(&self, k: usize) -> usize {
        if k == 0 { self.inputs } else { self.layers[k - 1].outputs() }
    }

    /// Numbers that it gives.
    pub fn outputs(&self) -> usize {
        self.inputs(self.layers.len())
    }

    /// Weights and biases, layer after layer: Glorot-uniform and zero.
    pub fn parameters(&self) -> Vec<Parameter> {
        (0..self.layers.len()).flat_map(|k| [self.weight(k), self.bias(k)]).collect()
    }

    fn weight(&self, k: usize) -> Parameter {
        let (dims, init) = self.layers[k].weights(self.inputs(k));
        Parameter { name: format!("{}/w{k}", self.name), dims, init }
    }

    fn bias(&self, k: usize) -> Parameter {
        let dims = vec![self.layers[k].channels()];
        Parameter { name: format!("{}/b{k}", self.name), dims, init: Init::ZEROS }
    }

    /// u of the power iteration of layer k.
    fn follower(&self, k: usize) -> Parameter {
        let dims = vec![self.layers[k].channels()];
        Parameter { name: format!("{}/u{k}", self.name), dims, init: Init::Normal(1.0) }
    }

    fn normalised(&self) -> usize {
        if self.spectral { self.layers.len() - 1 } else { 0 }
    }

    /// Vectors of the power iterations.
    pub fn followers(&self) -> Vec<Parameter> {
        (0..self.normalised()).map(|k| self.follower(k)).collect()
    }

    /// Their next values.
    pub fn follow<'g>(&self, graph: &'g Graph) -> Vec<(Expr<'g>, Expr<'g>)> {
        (0..self.normalised()).map(|k| (self.follower(k).variable(graph), self.iterate(graph, k).0)).collect()
    }

    /// One power iteration of layer k: the next u, and σ as a function of W.
    fn iterate<'g>(&self, graph: &'g Graph, k: usize) -> (Expr<'g>, Expr<'g>) {
        let w = self.layers[k].matrix(self.weight(k).variable(graph));
        let v = normalise(self.follower(k).variable(graph).matmul(w.t())).stop_gradient();
        let u = normalise(v.matmul(w)).stop_gradient();
        (u, v.matmul(w).dot(u))
    }

    /// W of layer k as it is used, and b.
    pub fn layer<'g>(&self, graph: &'g Graph, k: usize) -> (Expr<'g>, Expr<'g>) {
        let (w, b) = (self.weight(k).variable(graph), self.bias(k).variable(graph));
        if k < self.normalised() { (w / self.iterate(graph, k).1, b) } else { (w, b) }
    }

    fn map<'g>(&self, k: usize, x: Expr<'g>) -> Expr<'g> {
        let (w, b) = self.layer(x.graph(), k);
        self.layers[k].apply(x, w, b)
    }

    /// ψ(x), `rows × [in]` → `rows × [out]`.
    pub fn apply<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        self.after_first(self.map(0, x))
    }

    /// ψ(x), given what the first layer makes of x: for those who compute a part of it, x W₀ + b₀, once for many x.
    pub fn after_first<'g>(&self, first: Expr<'g>) -> Expr<'g> {
        (1..self.layers.len()).fold(first, |h, k| self.map(k, self.activation.apply(h)))
    }
}

/// x/√max(|x|², 10⁻¹²).
fn normalise(x: Expr) -> Expr {
    x * x.square().sum(-1).max(1e-12).rsqrt()
}
