//! The flat torus Tⁿ = (R/2πZ)ⁿ.
//!
//! **Statement.** Points are n angles, G = I, exp_x(v) = x + v up to multiples of 2π, b = 0.
//! **Source.** docs/math §3.4. **Conventions.** Settled angles lie in [−π, π); features are (cos θ₁ … cos θ_n, sin θ₁ … sin θ_n).
//! **Error.** Rounding; the grid is uniform, of spectral accuracy for smooth functions. **Checked by**
//! tests/theory/manifold_laws.rs.

use super::{Grid, Manifold, Metric, Space, check_numbers, quadrature, radial};
use minvel_engine::{Draw, Expr, Graph, concat};
use std::f64::consts::{PI, TAU};
use std::fmt;

/// Tⁿ in angles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torus(pub usize);

/// The angle in [−π, π) that is equal up to multiples of 2π.
fn wrap(angle: Expr) -> Expr {
    angle - TAU * ((angle + PI) * (1.0 / TAU)).floor()
}

impl fmt::Display for Torus {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "torus:{}", self.0)
    }
}

impl Manifold for Torus {
    fn dim(&self) -> usize {
        self.0
    }

    fn ambient(&self) -> usize {
        self.0
    }

    fn origin(&self) -> Vec<f64> {
        vec![0.0; self.0]
    }

    fn injectivity(&self) -> f64 {
        PI
    }

    fn inner<'g>(&self, _: Expr<'g>, u: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        u.dot(v)
    }

    fn project<'g>(&self, _: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        v
    }

    fn gradient<'g>(&self, _: Expr<'g>, derivative: Expr<'g>) -> Expr<'g> {
        derivative
    }

    fn tangent_normal<'g>(&self, _: Expr<'g>, z: Expr<'g>) -> Expr<'g> {
        z
    }

    /// v itself: the angle x + v is not wrapped, so that differences see a short step.
    fn exp_delta<'g>(&self, _: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        v
    }

    fn log<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        wrap(y - x)
    }

    fn distance<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        radial::norm(wrap(y - x).square().sum(-1))
    }

    fn settle<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        wrap(x)
    }

    fn charts(&self) -> usize {
        1
    }

    fn choose_chart<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        x.graph().fill(1.0, x.shape().with_dims([1]))
    }

    fn to_chart<'g>(&self, x: Expr<'g>, _: Expr<'g>) -> Expr<'g> {
        x
    }

    fn from_chart<'g>(&self, y: Expr<'g>, _: Expr<'g>) -> Expr<'g> {
        y
    }

    fn metric<'g>(&self, y: Expr<'g>) -> Metric<'g> {
        Metric::flat(y)
    }

    fn features<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        concat(&[x.cos(), x.sin()], -1)
    }

    /// (2π)ⁿ.
    fn volume(&self) -> Option<f64> {
        Some(TAU.powi(self.0 as i32))
    }

    fn sample_base<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Expr<'g> {
        (TAU * (graph.random_rows(Draw::Uniform, stream, rows, [self.0]) - 0.5)).stop_gradient()
    }

    fn base_energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        x.graph().fill(self.0 as f64 * TAU.ln(), x.shape().with_dims([]))
    }

    fn grid(&self, resolution: usize, _: f64) -> Option<Grid> {
        (1..=3).contains(&self.0).then(|| quadrature::tensor(quadrature::angles(resolution), self.0))
    }

    fn spaces(&self) -> Option<Vec<Space>> {
        Some(vec![Space::Torus(self.0)])
    }

    /// Any angles will do: they are taken up to multiples of 2π.
    fn check(&self, point: &[f64]) -> Result<(), String> {
        check_numbers(self, point)
    }
}
