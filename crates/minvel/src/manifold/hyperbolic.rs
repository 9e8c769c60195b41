//! Hyperbolic space Hⁿ of curvature −1, in the Poincaré ball.
//!
//! **Statement.** G = 4/(1−r²)² I, exp_x(v) = x ⊕ tanh(|v|/(1−r²)) v/|v| with Möbius addition, b = (n/2 − 1)(1−r²)x;
//! sinh(d/2) = |x − y|/√((1−|x|²)(1−|y|²)).
//! **Source.** docs/math §3.6. **Conventions.** Points have |x| < 1 and the chart is the identity; on the hyperboloid
//! X = (X₀, X⃗), −X₀² + |X⃗|² = −1. The base law is the normal law of the tangent space at the origin, carried by exp.
//! **Error.** Rounding. A point at distance ρ from the origin has 1 − r² ≈ 4e^{−ρ}, of which rounding r loses e^ρ/4
//! rounding errors: settled points stay within [`Hyperbolic::EDGE`], ρ ≤ 14.5.
//! **Checked by** tests/theory/manifold_laws.rs, tests/theory/manifold_facts.rs (F32).

use super::{Grid, Manifold, Metric, Space, Sphere, check_numbers, quadrature, radial};
use minvel_engine::{Draw, Expr, Graph, concat};
use std::f64::consts::TAU;
use std::fmt;

/// Hⁿ as the open unit ball.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hyperbolic(pub usize);

/// The point (X₀, X⃗) = ((1+r²), 2x)/(1−r²) of the hyperboloid, `rows × [n+1]`.
pub fn to_hyperboloid(x: Expr) -> Expr {
    let r2 = x.square().sum(-1).expand(-1);
    concat(&[1.0 + r2, 2.0 * x], -1) / (1.0 - r2)
}

/// The point x = X⃗/(1 + X₀) of the ball.
pub fn from_hyperboloid(point: Expr) -> Expr {
    let n = point.shape().features() - 1;
    point.slice(-1, 1, n) / (1.0 + point.slice(-1, 0, 1))
}

/// 1 − |x|².
fn depth(x: Expr) -> Expr {
    1.0 - x.square().sum(-1)
}

/// sinh²(d/2) of two points.
fn half_sinh_squared<'g>(x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
    (y - x).square().sum(-1) / (depth(x) * depth(y))
}

impl Hyperbolic {
    /// Settled points have |x| at most this.
    pub const EDGE: f64 = 1.0 - 1e-6;
}

impl fmt::Display for Hyperbolic {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "hyperbolic:{}", self.0)
    }
}

impl Manifold for Hyperbolic {
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

    fn inner<'g>(&self, x: Expr<'g>, u: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        (2.0 / depth(x)).square() * u.dot(v)
    }

    fn project<'g>(&self, _: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        v
    }

    fn gradient<'g>(&self, x: Expr<'g>, derivative: Expr<'g>) -> Expr<'g> {
        (0.5 * depth(x)).square().expand(-1) * derivative
    }

    fn tangent_normal<'g>(&self, x: Expr<'g>, z: Expr<'g>) -> Expr<'g> {
        0.5 * depth(x).expand(-1) * z
    }

    /// (1−|x|²)(w + |w|² x)/((1−|x|²)(1−|w|²) + |x + w|²) for w = tanh(|v|/(1−|x|²)) v/|v|: Möbius addition less x.
    fn exp_delta<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        let deep = depth(x);
        let u = v / deep.expand(-1);
        let w = radial::tanhc(u.square().sum(-1)).expand(-1) * u;
        let w2 = w.square().sum(-1);
        let below = deep * (1.0 - w2) + (x + w).square().sum(-1);
        (deep / below).expand(-1) * (w + w2.expand(-1) * x)
    }

    /// With d = y − x and q = sinh²(dist/2): arsinh√q/√q · √(1+q) · (1−|x|²)((1−|x|²)d − |d|²x)/((1−|x|²)(1−|y|²) + |d|²).
    fn log<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        let d = y - x;
        let d2 = d.square().sum(-1);
        let (deep, other) = (depth(x), depth(y));
        let q = d2 / (deep * other);
        let length = radial::asinhc(q) * (1.0 + q).sqrt() * deep / (deep * other + d2);
        length.expand(-1) * (deep.expand(-1) * d - d2.expand(-1) * x)
    }

    fn distance<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        2.0 * radial::norm(half_sinh_squared(x, y)).asinh()
    }

    fn settle<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let r2 = x.square().sum(-1).max(Self::EDGE * Self::EDGE);
        x * (Self::EDGE * r2.rsqrt()).min(1.0).expand(-1)
    }

    /// exp_0(h) = tanh|h|·h/|h|, kept off the edge.
    fn land<'g>(&self, h: Expr<'g>) -> Expr<'g> {
        self.settle(radial::tanhc(h.square().sum(-1)).expand(-1) * h)
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
        Metric::of_constant_curvature(y, -1.0, 1.0)
    }

    fn volume(&self) -> Option<f64> {
        None
    }

    /// tanh(|z|/2) z/|z| of a standard normal z: exp at the origin, where half of z is normal in the metric.
    fn sample_base<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Expr<'g> {
        let half = 0.5 * graph.random_rows(Draw::Normal, stream, rows, [self.0]);
        self.settle(radial::tanhc(half.square().sum(-1)).expand(-1) * half).stop_gradient()
    }

    /// ρ²/2 + (n/2) log 2π + (n−1) log(sinh ρ/ρ), ρ the distance from the origin.
    fn base_energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let n = self.0 as f64;
        // With q = sinh² ρ/2: ρ = 2√q·arsinhc q and sinh ρ = 2√q·√(1+q).
        let r2 = x.square().sum(-1);
        let q = r2 / (1.0 - r2);
        let ratio = radial::asinhc(q);
        2.0 * q * ratio.square() + 0.5 * n * TAU.ln() + (n - 1.0) * (0.5 * q.log1p() - ratio.log())
    }

    /// Geodesic polar coordinates: Gauss–Legendre in ρ ≤ radius with sinhⁿ⁻¹ρ, times the grid of the sphere.
    fn grid(&self, resolution: usize, radius: f64) -> Option<Grid> {
        let directions = match self.0 {
            1 => Grid { points: vec![-1.0, 1.0], weights: vec![1.0, 1.0] },
            2 | 3 => Sphere(self.0 - 1).grid(resolution, 0.0)?,
            _ => return None,
        };
        let (radii, weights) = quadrature::interval(0.0, radius, resolution);
        let mut grid = Grid { points: vec![], weights: vec![] };
        for (rho, v) in radii.iter().zip(&weights) {
            for (omega, w) in directions.points.chunks(self.0).zip(&directions.weights) {
                grid.points.extend(omega.iter().map(|x| (0.5 * rho).tanh() * x));
                grid.weights.push(v * w * rho.sinh().powi(self.0 as i32 - 1));
            }
        }
        Some(grid)
    }

    fn spaces(&self) -> Option<Vec<Space>> {
        Some(vec![Space::Hyperbolic(self.0)])
    }

    fn check(&self, point: &[f64]) -> Result<(), String> {
        check_numbers(self, point)?;
        let length = point.iter().map(|x| x * x).sum::<f64>().sqrt();
        match length <= Self::EDGE {
            true => Ok(()),
            false => Err(format!(
                "the point has length {length}, but points of {self} are in the ball of radius {}: are these \
                 hyperboloid coordinates? (x = X/(1 + X0))",
                Self::EDGE
            )),
        }
    }
}
