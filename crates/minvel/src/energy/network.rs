//! Dense networks: affine maps and activations in turn, with spectral normalisation on request.
//!
//! **Statement.** ψ(x) = h_L W_L + b_L, h_{k+1} = φ(h_k W_k + b_k), h_0 = x. With spectral normalisation hidden weights
//! are W/σ, σ = v W uᵀ, v = uWᵀ/|·|, u⁺ = vW/|·| (one power iteration per step, u and v constant in differentiation, u⁺
//! kept).
//! **Source.** METHODS 4.0; glorot2010, miyato2018spectral.
//! **Conventions.** W is `[in, out]`; names are `name/w0`, `name/b0`, …, `name/u0` for the power iteration.
//! **Error.** σ converges to the largest singular value like (σ₂/σ₁)^{2·steps}. **Checked by** tests/energy_laws.rs
//! (F56, gradients, parameter counts), tests/energy_facts.rs (section 7).

use super::Parameter;
use minvel_engine::init::Init;
use minvel_engine::{Expr, Graph};

/// The function between two affine maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// (METHODS 2.13).
    Relu,
    /// sin h.
    Sin,
}

impl Activation {
    /// The function of a name.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "tanh" => Ok(Activation::Tanh),
            "silu" => Ok(Activation::Silu),
            "softplus" => Ok(Activation::Softplus),
            "elu" => Ok(Activation::Elu),
            "relu" => Ok(Activation::Relu),
            "sin" => Ok(Activation::Sin),
            _ => Err(format!("`{name}` is not an activation: known are tanh, silu, softplus, elu, relu and sin")),
        }
    }

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

/// A dense network.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// What the names of its variables begin with.
    pub name: String,
    /// Input, hidden and output widths.
    pub widths: Vec<usize>,
    /// Between affine maps.
    pub activation: Activation,
    /// Whether hidden layers (not the last) are normalised spectrally.
    pub spectral: bool,
}

impl Network {
    /// Widths are input, hidden, …, output.
    pub fn new(name: &str, widths: &[usize], activation: Activation) -> Self {
        assert!(
            widths.len() >= 2 && !widths.contains(&0),
            "a network has an input and an output, not widths {widths:?}"
        );
        Network { name: name.into(), widths: widths.to_vec(), activation, spectral: false }
    }

    /// Affine maps.
    pub fn layers(&self) -> usize {
        self.widths.len() - 1
    }

    /// Weights and biases, layer after layer: Glorot-uniform and zero.
    pub fn parameters(&self) -> Vec<Parameter> {
        (0..self.layers()).flat_map(|k| [self.weight(k), self.bias(k)]).collect()
    }

    fn weight(&self, k: usize) -> Parameter {
        let dims = vec![self.widths[k], self.widths[k + 1]];
        Parameter { name: format!("{}/w{k}", self.name), dims, init: Init::GlorotUniform }
    }

    fn bias(&self, k: usize) -> Parameter {
        Parameter { name: format!("{}/b{k}", self.name), dims: vec![self.widths[k + 1]], init: Init::ZEROS }
    }

    /// u of the power iteration of layer k.
    fn follower(&self, k: usize) -> Parameter {
        let dims = vec![self.widths[k + 1]];
        Parameter { name: format!("{}/u{k}", self.name), dims, init: Init::Normal(1.0) }
    }

    fn normalised(&self) -> usize {
        if self.spectral { self.layers() - 1 } else { 0 }
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
        let w = self.weight(k).variable(graph);
        let v = normalise(self.follower(k).variable(graph).matmul(w.t())).stop_gradient();
        let u = normalise(v.matmul(w)).stop_gradient();
        (u, v.matmul(w).dot(u))
    }

    /// W of layer k as it is used, and b.
    pub fn layer<'g>(&self, graph: &'g Graph, k: usize) -> (Expr<'g>, Expr<'g>) {
        let (w, b) = (self.weight(k).variable(graph), self.bias(k).variable(graph));
        if k < self.normalised() { (w / self.iterate(graph, k).1, b) } else { (w, b) }
    }

    /// ψ(x), `rows × [in]` → `rows × [out]`.
    pub fn apply<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let (w, b) = self.layer(x.graph(), 0);
        self.after_first(x.matmul(w) + b)
    }

    /// ψ(x), given x W₀ + b₀.
    pub fn after_first<'g>(&self, first: Expr<'g>) -> Expr<'g> {
        (1..self.layers()).fold(first, |h, k| {
            let (w, b) = self.layer(first.graph(), k);
            self.activation.apply(h).matmul(w) + b
        })
    }
}

/// x/√max(|x|², 10⁻¹²).
fn normalise(x: Expr) -> Expr {
    x * x.square().sum(-1).max(1e-12).rsqrt()
}
