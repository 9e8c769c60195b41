//! Axes: the projective space RPⁿ of lines through the origin of R^{n+1}, as unit vectors up to sign, n ≥ 1.
//!
//! **Statement.** RPⁿ = Sⁿ/±1 with the metric of the sphere: d(x, y) = arccos|⟨x, y⟩| ≤ π/2, and half the volume, so that a
//! density integrates to one over any half of the sphere. Chart: that of Sⁿ, whose flip makes no difference here.
//! **Source.** mardia2000directional, section 9.4; docs/math §3.2 for the sphere above. **Conventions.** x and −x are the
//! same point, tangent vectors at them are each other's negatives. Features: the upper triangle of x xᵀ.
//! **Error.** Rounding. **Checked by** tests/theory/manifold_laws.rs, tests/densities/local_kernels.rs.

use super::sphere::{from_the_sphere_above, nearer, pole, upper_triangle};
use super::{Grid, Manifold, Metric, Space, Sphere, check_numbers};
use minvel_engine::{Expr, Graph};
use std::f64::consts::FRAC_PI_2;
use std::fmt;

/// RPⁿ as unit vectors of R^{n+1} up to sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projective(pub usize);

impl Projective {
    fn cover(&self) -> Sphere {
        Sphere(self.0)
    }
}

impl fmt::Display for Projective {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "projective:{}", self.0)
    }
}

impl Manifold for Projective {
    fn dim(&self) -> usize {
        self.0
    }

    fn ambient(&self) -> usize {
        self.0 + 1
    }

    fn origin(&self) -> Vec<f64> {
        pole(self.ambient())
    }

    fn injectivity(&self) -> f64 {
        FRAC_PI_2
    }

    fn inner<'g>(&self, _: Expr<'g>, u: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        u.dot(v)
    }

    from_the_sphere_above!(self, self.cover());

    fn gradient<'g>(&self, x: Expr<'g>, derivative: Expr<'g>) -> Expr<'g> {
        self.cover().project(x, derivative)
    }

    fn tangent_normal<'g>(&self, x: Expr<'g>, z: Expr<'g>) -> Expr<'g> {
        self.cover().project(x, z)
    }

    fn distance<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        self.cover().distance(x, nearer(x, y))
    }

    fn metric<'g>(&self, y: Expr<'g>) -> Metric<'g> {
        self.cover().metric(y)
    }

    fn volume(&self) -> Option<f64> {
        self.cover().volume().map(|volume| 0.5 * volume)
    }

    fn base_energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let volume = self.volume().expect("a projective space has a volume");
        x.graph().fill(volume.ln(), x.shape().with_dims([]))
    }

    /// The grid of Sⁿ, which visits each axis twice, with half its weights.
    fn grid(&self, resolution: usize, _: f64) -> Option<Grid> {
        let cover = self.cover().grid(resolution, 0.0)?;
        Some(Grid { points: cover.points, weights: cover.weights.iter().map(|w| 0.5 * w).collect() })
    }

    fn spaces(&self) -> Option<Vec<Space>> {
        Some(vec![Space::Projective(self.0)])
    }

    fn check(&self, point: &[f64]) -> Result<(), String> {
        check_numbers(self, point)?;
        self.cover().check(point)
    }
}
