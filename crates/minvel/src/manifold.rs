//! Manifolds: where points live, how gradients and noise live on them, and how to move.
//!
//! **Statement.** A point is a row of [`Manifold::ambient`] numbers. A tangent vector at x is written in the same
//! coordinates. The model density of an energy is w.r.t. the Riemannian volume.
//! **Source.** METHODS 3.1: generator Δ_g f + ⟨grad log π, grad f⟩; in a chart, dy = (g^{ij}∂_j log π + b^i)dt + √(2G⁻¹)dB.
//! **Checked by** tests/manifold_laws.rs: one suite of laws over every manifold.

use minvel_engine::{Expr, Graph};
use std::fmt;

/// The metric of a chart at given coordinates. All our charts are conformal factor by factor, so G is diagonal.
#[derive(Clone, Copy)]
pub struct Metric<'g> {
    /// g^{ii}, `rows × [n]`.
    pub inverse: Expr<'g>,
    /// log det G, `rows × []`.
    pub log_det: Expr<'g>,
    /// ∂_j g^{ij}, `rows × [n]`.
    pub divergence: Expr<'g>,
    /// Brownian drift b^i = ½ g^{ij} ∂_j log det G + ∂_j g^{ij} = Δ_g y^i, `rows × [n]`.
    pub brownian: Expr<'g>,
}

/// Points and weights with Σ w f(x) ≈ ∫ f dvol.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Points, row-major `[count, ambient]`.
    pub points: Vec<f64>,
    /// Weights; they add up to the volume where it is finite.
    pub weights: Vec<f64>,
}

/// A Riemannian manifold. All `Expr` arguments are row values `rows × [ambient]` (points and tangent vectors) unless said otherwise.
pub trait Manifold: fmt::Debug + fmt::Display + Send + Sync {
    /// Intrinsic dimension n.
    fn dim(&self) -> usize;

    /// Numbers per point, m.
    fn ambient(&self) -> usize;

    /// ⟨u, v⟩_x, `rows × []`.
    fn inner<'g>(&self, x: Expr<'g>, u: Expr<'g>, v: Expr<'g>) -> Expr<'g>;

    /// The orthogonal projection of coordinates v onto the tangent space at x.
    fn project<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g>;

    /// The Riemannian gradient from the derivative in coordinates, dE: ⟨grad E, v⟩_x = dE·v for tangent v.
    fn gradient<'g>(&self, x: Expr<'g>, derivative: Expr<'g>) -> Expr<'g>;

    /// A tangent vector with the standard normal law of the metric at x, from independent normals z `rows × [m]`.
    fn tangent_normal<'g>(&self, x: Expr<'g>, z: Expr<'g>) -> Expr<'g>;

    /// exp_x(v) − x, without cancellation for short v.
    fn exp_delta<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g>;

    /// exp_x(v), brought back onto the manifold to rounding.
    fn exp<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        self.settle(x + self.exp_delta(x, v))
    }

    /// The shortest tangent vector v at x with exp_x(v) = y.
    fn log<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g>;

    /// Geodesic distance, `rows × []`.
    fn distance<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g>;

    /// Removes rounding drift: normalises, wraps angles, keeps the ball open.
    fn settle<'g>(&self, x: Expr<'g>) -> Expr<'g>;

    /// Which chart is used at x, `rows × [k]` (constant in differentiation); `rows × [1]` of ones where one chart covers.
    fn choose_chart<'g>(&self, x: Expr<'g>) -> Expr<'g>;

    /// Chart coordinates `rows × [n]` of x.
    fn to_chart<'g>(&self, x: Expr<'g>, choice: Expr<'g>) -> Expr<'g>;

    /// The point with chart coordinates y.
    fn from_chart<'g>(&self, y: Expr<'g>, choice: Expr<'g>) -> Expr<'g>;

    /// The metric at chart coordinates y (the same formula in every chart of ours).
    fn metric<'g>(&self, y: Expr<'g>) -> Metric<'g>;

    /// Smooth functions of x to feed a network, so that energies are functions on the manifold (angles as cos, sin;
    /// quaternions up to sign); `rows × [k]`.
    fn features<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        x
    }

    /// Total volume, where it is finite.
    fn volume(&self) -> Option<f64>;

    /// Points of the uniform law where the manifold is compact, else of the standard (wrapped) normal law.
    fn sample_base<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Expr<'g>;

    /// −log density of [`Manifold::sample_base`] w.r.t. the volume, `rows × []`.
    fn base_energy<'g>(&self, x: Expr<'g>) -> Expr<'g>;

    /// A quadrature grid with about `resolution` points per dimension, for n ≤ 3 (`None` otherwise).
    /// On unbounded manifolds it covers geodesic distance up to `radius` from the origin.
    fn grid(&self, resolution: usize, radius: f64) -> Option<Grid>;

    /// What is wrong with a point given by a user, if anything (off the manifold, out of range).
    fn check(&self, point: &[f64]) -> Result<(), String>;
}
