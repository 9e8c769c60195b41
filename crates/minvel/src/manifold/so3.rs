//! Rotations SO(3), as unit quaternions up to sign.
//!
//! **Statement.** SO(3) = S³/±1 with ⟨u, v⟩ = 4 u·v, so that geodesic distance is the angle of the rotation in between,
//! in [0, π], and the volume is 8·2π²/2 = 8π². Chart: y = tan(φ/4)·axis, G = 16/(1+r²)² I, b = −(1+r²)y/8.
//! **Source.** docs/math §3.2 for the sphere of radius 2 below. **Conventions.** Quaternions are (i, j, k, real part), so
//! that the stereographic chart of S³ is centred at the identity (modified Rodrigues parameters); q and −q are the same
//! point, tangent vectors at q and −q are each other's negatives. Features: the upper triangle of q qᵀ.
//! **Error.** Rounding. **Checked by** tests/theory/manifold_laws.rs.

use super::sphere::{from_the_sphere_above, nearer, pole, upper_triangle};
use super::{Grid, Manifold, Metric, Space, Sphere, check_numbers};
use minvel_engine::{Expr, Graph};
use std::f64::consts::PI;
use std::fmt;

/// SO(3) as unit quaternions up to sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct So3;

/// The cover S³: a rotation by φ is a quaternion at angle φ/2 from the identity.
const COVER: Sphere = Sphere(3);

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

    fn origin(&self) -> Vec<f64> {
        pole(4)
    }

    fn injectivity(&self) -> f64 {
        PI
    }

    fn inner<'g>(&self, _: Expr<'g>, u: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        4.0 * u.dot(v)
    }

    from_the_sphere_above!(self, COVER);

    fn gradient<'g>(&self, x: Expr<'g>, derivative: Expr<'g>) -> Expr<'g> {
        0.25 * COVER.project(x, derivative)
    }

    fn tangent_normal<'g>(&self, x: Expr<'g>, z: Expr<'g>) -> Expr<'g> {
        0.5 * COVER.project(x, z)
    }

    fn distance<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        2.0 * COVER.distance(x, nearer(x, y))
    }

    fn metric<'g>(&self, y: Expr<'g>) -> Metric<'g> {
        Metric::of_constant_curvature(y, 1.0, 2.0)
    }

    /// 8π².
    fn volume(&self) -> Option<f64> {
        Some(8.0 * PI * PI)
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
