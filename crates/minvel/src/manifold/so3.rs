//! Rotations SO(3), as unit quaternions up to sign.
//!
//! **Statement.** SO(3) = S³/±1 with ⟨u, v⟩ = 4 u·v, so that geodesic distance is the angle of the rotation in between,
//! in [0, π], and the volume is 8·2π²/2 = 8π². Chart: y = tan(φ/4)·axis, G = 16/(1+r²)² I, b = −(1+r²)y/8.
//! **Source.** docs/math §3.2 for the sphere of radius 2 below. **Conventions.** Quaternions are (i, j, k, real part), so
//! that the stereographic chart of S³ is centred at the identity (modified Rodrigues parameters); q and −q are the same
//! point, tangent vectors at q and −q are each other's negatives. Features: the upper triangle of q qᵀ.
//! **Error.** Rounding. **Checked by** tests/theory/manifold_laws.rs.

use super::{Grid, Manifold, Metric, Space, Sphere, check_numbers};
use minvel_engine::{Expr, Graph, concat};
use std::f64::consts::PI;
use std::fmt;

/// SO(3) as unit quaternions up to sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct So3;

/// The cover S³: a rotation by φ is a quaternion at angle φ/2 from the identity.
const COVER: Sphere = Sphere(3);

/// ±y, whichever is nearer to x.
pub(super) fn nearer<'g>(x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
    let side = x.dot(y).less(0.0).select(x.graph().scalar(-1.0), x.graph().scalar(1.0));
    side.expand(-1) * y
}

impl fmt::Display for So3 {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "so3")
    }
}

impl Manifold for So3 {
    fn dim(&self) -> usize {
        3
    }

    fn ambient(&self) -> usize {
        4
    }

    fn inner<'g>(&self, _: Expr<'g>, u: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        4.0 * u.dot(v)
    }

    fn project<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        COVER.project(x, v)
    }

    fn gradient<'g>(&self, x: Expr<'g>, derivative: Expr<'g>) -> Expr<'g> {
        0.25 * COVER.project(x, derivative)
    }

    fn tangent_normal<'g>(&self, x: Expr<'g>, z: Expr<'g>) -> Expr<'g> {
        0.5 * COVER.project(x, z)
    }

    fn exp_delta<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        COVER.exp_delta(x, v)
    }

    fn log<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        COVER.log(x, nearer(x, y))
    }

    fn distance<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        2.0 * COVER.distance(x, nearer(x, y))
    }

    fn settle<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        COVER.settle(x)
    }

    fn land<'g>(&self, h: Expr<'g>) -> Expr<'g> {
        COVER.land(h)
    }

    fn choose_chart<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        COVER.choose_chart(x)
    }

    fn to_chart<'g>(&self, x: Expr<'g>, flip: Expr<'g>) -> Expr<'g> {
        COVER.to_chart(x, flip)
    }

    fn from_chart<'g>(&self, y: Expr<'g>, flip: Expr<'g>) -> Expr<'g> {
        COVER.from_chart(y, flip)
    }

    fn metric<'g>(&self, y: Expr<'g>) -> Metric<'g> {
        Metric::of_constant_curvature(y, 1.0, 2.0)
    }

    fn features<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let row = |i: usize| x.slice(-1, i, 1) * x.slice(-1, i, 4 - i);
        concat(&[row(0), row(1), row(2), row(3)], -1)
    }

    /// 8π².
    fn volume(&self) -> Option<f64> {
        Some(8.0 * PI * PI)
    }

    fn sample_base<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Expr<'g> {
        COVER.sample_base(graph, rows, stream)
    }

    fn base_energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        x.graph().fill((8.0 * PI * PI).ln(), x.shape().with_dims([]))
    }

    /// The grid of S³, which visits each rotation twice, with weights 2³/2: exact for even polynomials of the quaternion
    /// of degree < 2·resolution.
    fn grid(&self, resolution: usize, _: f64) -> Option<Grid> {
        let cover = COVER.grid(resolution, 0.0)?;
        Some(Grid { points: cover.points, weights: cover.weights.iter().map(|w| 4.0 * w).collect() })
    }

    fn spaces(&self) -> Option<Vec<Space>> {
        Some(vec![Space::So3])
    }

    fn check(&self, point: &[f64]) -> Result<(), String> {
        check_numbers(self, point)?;
        COVER.check(point).map_err(|why| {
            let length = point.iter().map(|x| x * x).sum::<f64>().sqrt();
            format!("the quaternion has length {length}, but rotations are unit quaternions: divide by it ({why})")
        })
    }
}
