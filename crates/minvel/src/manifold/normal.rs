//! Normal coordinates, in plain numbers.
//!
//! **Statement.** v ∈ Rⁿ with exp_c(Σ v_j e_j) = x for an orthonormal frame e at c, and log|dvol/dv|: 0 where the space is
//! flat, (n−1) log(sin r/r) on Sⁿ and RPⁿ, (n−1) log(sinh r/r) on Hⁿ, 2 log(sin(r/2)/(r/2)) on SO(3), r = |v|.
//! **Source.** docs/math §3.1, §3.5, §3.6. **Conventions.** Frames: on the sphere the columns of the Householder reflection that
//! sends the last axis to ±c; elsewhere those of the coordinates. Which frame it is matters to nobody, as long as it is
//! the same for the same c. **Error.** Rounding; near the cut locus the direction is that of one of the shortest paths.
//! **Checked by** tests/densities/local_kernels.rs.

use super::Space;
use crate::special::dot;
use std::f64::consts::{FRAC_PI_2, PI, TAU};

impl Space {
    /// Writes the normal coordinates of x about c to `v` and gives log|dvol/dv| there.
    pub fn to_normal(self, c: &[f64], x: &[f64], v: &mut [f64]) -> f64 {
        match self {
            Space::Euclidean(n) => {
                (0..n).for_each(|j| v[j] = x[j] - c[j]);
                0.0
            }
            Space::Torus(n) => {
                (0..n).for_each(|j| v[j] = wrap(x[j] - c[j]));
                0.0
            }
            Space::Sphere(n) => {
                let angle = sphere_to_normal(c, x, v, 1.0);
                (n as f64 - 1.0) * log_sinc(angle)
            }
            Space::Projective(n) => {
                let angle = sphere_to_normal(c, x, v, side(c, x));
                (n as f64 - 1.0) * log_sinc(angle)
            }
            Space::So3 => {
                let angle = sphere_to_normal(c, x, v, side(c, x));
                v.iter_mut().for_each(|v| *v *= 2.0);
                2.0 * log_sinc(angle)
            }
            Space::Hyperbolic(n) => {
                moebius(c, -1.0, x, v);
                let r = dot(v, v).sqrt();
                let distance = 2.0 * r.atanh();
                let stretch = if r > 0.0 { distance / r } else { 2.0 };
                v.iter_mut().for_each(|v| *v *= stretch);
                (n as f64 - 1.0) * log_sinhc(distance)
            }
        }
    }

    /// Writes the point with normal coordinates v about c to `x`.
    pub fn from_normal(self, c: &[f64], v: &[f64], x: &mut [f64]) {
        match self {
            Space::Euclidean(n) => (0..n).for_each(|j| x[j] = c[j] + v[j]),
            Space::Torus(n) => (0..n).for_each(|j| x[j] = wrap(c[j] + v[j])),
            Space::Sphere(_) | Space::Projective(_) => sphere_from_normal(c, v, 1.0, x),
            Space::So3 => sphere_from_normal(c, v, 0.5, x),
            Space::Hyperbolic(n) => {
                let distance = dot(v, v).sqrt();
                let shrink = if distance > 0.0 { (0.5 * distance).tanh() / distance } else { 0.5 };
                let w: Vec<f64> = v[..n].iter().map(|v| shrink * v).collect();
                moebius(c, 1.0, &w, x);
            }
        }
    }

    /// A square that is cheap and at most that of the geodesic distance: the same where the space is flat, that of the
    /// chord where it is curved.
    pub fn chord_squared(self, c: &[f64], x: &[f64]) -> f64 {
        let square = || c.iter().zip(x).map(|(c, x)| (x - c) * (x - c)).sum::<f64>();
        match self {
            Space::Euclidean(_) | Space::Sphere(_) => square(),
            Space::Torus(_) => c.iter().zip(x).map(|(c, x)| wrap(x - c).powi(2)).sum(),
            // 2(1 − |⟨c, x⟩|), four times that for rotations, without the cancellation that would keep equal ones apart.
            Space::So3 => 4.0 * Space::Projective(3).chord_squared(c, x),
            Space::Projective(_) => {
                let side = side(c, x);
                c.iter().zip(x).map(|(c, x)| (side * x - c).powi(2)).sum()
            }
            // sinh(d/2) = |x − c|/√((1−|c|²)(1−|x|²)): the distance itself.
            Space::Hyperbolic(_) => (2.0 * (square() / ((1.0 - dot(c, c)) * (1.0 - dot(x, x)))).sqrt().asinh()).powi(2),
        }
    }

    /// Coordinates of a ball within which v ↦ x is one-to-one: each |v_j| (torus) or |v| is below this.
    pub fn injectivity(self) -> f64 {
        match self {
            Space::Euclidean(_) | Space::Hyperbolic(_) => f64::INFINITY,
            Space::Sphere(_) | Space::Torus(_) | Space::So3 => PI,
            Space::Projective(_) => FRAC_PI_2,
        }
    }
}

/// −1 where −x is nearer to c than x.
pub(crate) fn side(c: &[f64], x: &[f64]) -> f64 {
    if dot(c, x) < 0.0 { -1.0 } else { 1.0 }
}

/// The angle in [−π, π) that differs by whole turns.
#[inline(always)]
pub(crate) fn wrap(angle: f64) -> f64 {
    // A product: divisions take several times as long.
    angle - TAU * (angle * (1.0 / TAU) + 0.5).floor()
}

/// log(sin r/r).
fn log_sinc(r: f64) -> f64 {
    if r < 1e-4 { -r * r / 6.0 } else { (r.sin().max(f64::MIN_POSITIVE) / r).ln() }
}

/// log(sinh r/r).
fn log_sinhc(r: f64) -> f64 {
    match r {
        r if r < 1e-4 => r * r / 6.0,
        r if r < 20.0 => (r.sinh() / r).ln(),
        r => r - (2.0 * r).ln(),
    }
}

/// Coordinates of side·x about c and the angle between: the reflection x − 2u⟨u, x⟩ with u ∝ c ± e_n, chosen so that
/// nothing cancels, sends c to ∓e_n.
fn sphere_to_normal(c: &[f64], x: &[f64], v: &mut [f64], side: f64) -> f64 {
    let n = c.len() - 1;
    let sign = if c[n] < 0.0 { -1.0 } else { 1.0 };
    let along = (dot(c, x) + sign * x[n]) / (1.0 + sign * c[n]);
    let mut sine2 = 0.0;
    for j in 0..n {
        v[j] = side * (x[j] - c[j] * along);
        sine2 += v[j] * v[j];
    }
    let sine = sine2.sqrt();
    let cosine = side * sign * (along * (c[n] + sign) - x[n]);
    let angle = sine.atan2(cosine);
    if sine > 1e-12 {
        v[..n].iter_mut().for_each(|v| *v *= angle / sine);
    } else if cosine < 0.0 {
        // All directions lead to the antipode.
        v[0] = angle;
    }
    angle
}

/// The point at `scale`·v.
fn sphere_from_normal(c: &[f64], v: &[f64], scale: f64, x: &mut [f64]) {
    let n = c.len() - 1;
    let sign = if c[n] < 0.0 { -1.0 } else { 1.0 };
    let angle = scale * dot(v, v).sqrt();
    let shrink = if angle > 1e-12 { scale * angle.sin() / angle } else { scale };
    (0..n).for_each(|j| x[j] = shrink * v[j]);
    x[n] = -sign * angle.cos();
    let along = (dot(c, x) + sign * x[n]) / (1.0 + sign * c[n]);
    (0..n).for_each(|j| x[j] -= c[j] * along);
    x[n] -= (c[n] + sign) * along;
    let length = dot(x, x).sqrt();
    x.iter_mut().for_each(|x| *x /= length);
}

/// (sign·c) ⊕ x: Möbius addition of the Poincaré ball.
pub(crate) fn moebius(c: &[f64], sign: f64, x: &[f64], out: &mut [f64]) {
    let (cx, c2, x2) = (sign * dot(c, x), dot(c, c), dot(x, x));
    let below = 1.0 + 2.0 * cx + c2 * x2;
    for j in 0..c.len() {
        out[j] = ((1.0 + 2.0 * cx + x2) * sign * c[j] + (1.0 - c2) * x[j]) / below;
    }
}
