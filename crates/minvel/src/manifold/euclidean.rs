//! Flat space Rⁿ.
//!
//! **Statement.** G = I, exp_x(v) = x + v, b = 0. **Source.** docs/math §1.2. **Conventions.** The base law is N(0, I).
//! **Error.** None but rounding; the grid is the midpoint rule in the box [−radius, radius]ⁿ. **Checked by**
//! tests/theory/manifold_laws.rs.

use super::{Grid, Manifold, Metric, Space, check_numbers, quadrature, radial};
use minvel_engine::{Draw, Expr, Graph};
use std::f64::consts::TAU;
use std::fmt;

/// Rⁿ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Euclidean(pub usize);

impl fmt::Display for Euclidean {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "euclidean:{}", self.0)
    }
}

impl Manifold for Euclidean {
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
        f64::INFINITY
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

    fn exp_delta<'g>(&self, _: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        v
    }

    fn log<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        y - x
    }

    fn distance<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        radial::norm((y - x).square().sum(-1))
    }

    fn settle<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        x
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

    fn volume(&self) -> Option<f64> {
        None
    }

    fn sample_base<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Expr<'g> {
        graph.random_rows(Draw::Normal, stream, rows, [self.0])
    }

    /// |x|²/2 + (n/2) log 2π.
    fn base_energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        0.5 * x.square().sum(-1) + 0.5 * self.0 as f64 * TAU.ln()
    }

    fn grid(&self, resolution: usize, radius: f64) -> Option<Grid> {
        let line = || quadrature::midpoint(-radius, radius, resolution);
        (1..=3).contains(&self.0).then(|| quadrature::tensor(line(), self.0))
    }

    fn spaces(&self) -> Option<Vec<Space>> {
        Some(vec![Space::Euclidean(self.0)])
    }

    fn check(&self, point: &[f64]) -> Result<(), String> {
        check_numbers(self, point)
    }
}
