//! Coordinates that people read: degrees for angles, latitude and longitude, rotation vectors.
//!
//! **Checked by** tests/lab/plot_density.rs.

use crate::plot::Axis;
use minvel::manifold::{Manifold, Space};

/// The coordinates in which points of a manifold are shown.
pub(super) struct Coordinates {
    /// Its model spaces; `None` where it is another manifold, whose numbers are shown as they are.
    spaces: Option<Vec<Space>>,
    ambient: usize,
}

impl Coordinates {
    pub fn of(manifold: &dyn Manifold) -> Self {
        Coordinates { spaces: manifold.spaces(), ambient: manifold.ambient() }
    }

    /// The one model space that the manifold is.
    pub fn single(&self) -> Option<Space> {
        match self.spaces.as_deref() {
            Some([space]) => Some(*space),
            _ => None,
        }
    }

    /// Whether a factor is this model space.
    pub fn contain(&self, space: Space) -> bool {
        self.spaces.iter().flatten().any(|own| *own == space)
    }

    /// S² beside a single line or angle: where each is among the numbers of a point, and among those shown.
    pub fn sphere_and_line(&self) -> Option<(Place, Place)> {
        let [one, two] = self.spaces.as_deref()? else { return None };
        let places = [
            Place { space: *one, first: 0, shown: 0 },
            Place { space: *two, first: one.ambient(), shown: axes(*one).len() },
        ];
        let line = |space: Space| matches!(space, Space::Euclidean(1) | Space::Torus(1) | Space::Sphere(1));
        match places {
            [sphere, other] if sphere.space == Space::Sphere(2) && line(other.space) => Some((sphere, other)),
            [other, sphere] if sphere.space == Space::Sphere(2) && line(other.space) => Some((sphere, other)),
            _ => None,
        }
    }

    /// The coordinates that are shown, with the ranges they have by nature.
    pub fn axes(&self) -> Vec<Axis> {
        match &self.spaces {
            Some(spaces) => spaces.iter().flat_map(|space| axes(*space)).collect(),
            None => axes(Space::Euclidean(self.ambient)),
        }
    }

    /// The coordinates of a point.
    pub fn at(&self, point: &[f64]) -> Vec<f64> {
        let Some(spaces) = &self.spaces else { return point.to_vec() };
        let mut rest = point;
        let take = |space: &Space| {
            let (own, others) = rest.split_at(space.ambient());
            rest = others;
            coordinates(*space, own)
        };
        spaces.iter().flat_map(take).collect()
    }
}

/// A factor of a product.
#[derive(Clone, Copy)]
pub(super) struct Place {
    space: Space,
    /// Its first number in a point.
    pub first: usize,
    /// Its first number among those shown.
    pub shown: usize,
}

impl Place {
    /// Puts the value that is shown of a line or angle into a point.
    pub fn put(&self, shown: f64, point: &mut [f64]) {
        let angle = shown.to_radians();
        match self.space {
            Space::Sphere(1) => point[self.first..][..2].copy_from_slice(&[angle.cos(), angle.sin()]),
            Space::Torus(1) => point[self.first] = angle,
            _ => point[self.first] = shown,
        }
    }
}

fn axes(space: Space) -> Vec<Axis> {
    let angle = |name: &str| Axis::linear(&format!("{name} (°)")).over(-180.0, 180.0).every(60.0);
    let numbered = |letter: &str, n: usize| (1..=n).map(|i| format!("{letter}{}", below(i))).collect::<Vec<_>>();
    let plain = |names: Vec<String>| names.iter().map(|name| Axis::linear(name)).collect();
    match space {
        Space::Euclidean(1) => vec![Axis::linear("x")],
        Space::Euclidean(n) => plain(numbered("x", n)),
        Space::Hyperbolic(n) => plain(numbered("y", n)),
        Space::Sphere(2) | Space::Projective(2) => {
            vec![angle("longitude"), Axis::linear("latitude (°)").over(-90.0, 90.0).every(30.0)]
        }
        Space::Sphere(1) | Space::Projective(1) | Space::Torus(1) => vec![angle("angle")],
        Space::Sphere(n) | Space::Projective(n) => {
            numbered("x", n + 1).iter().map(|name| Axis::linear(name).over(-1.0, 1.0)).collect()
        }
        Space::Torus(n) => numbered("θ", n).iter().map(|name| angle(name)).collect(),
        Space::So3 => {
            let vector = ["rotation x", "rotation y", "rotation z"].map(angle);
            let turn = Axis::linear("angle (°)").over(0.0, 180.0).every(60.0);
            vector.into_iter().chain([turn]).collect()
        }
    }
}

fn coordinates(space: Space, point: &[f64]) -> Vec<f64> {
    match space {
        Space::Sphere(1) | Space::Projective(1) => vec![point[1].atan2(point[0]).to_degrees()],
        Space::Sphere(2) | Space::Projective(2) => {
            let latitude = point[2].atan2(point[0].hypot(point[1]));
            vec![point[1].atan2(point[0]).to_degrees(), latitude.to_degrees()]
        }
        Space::Euclidean(_) | Space::Hyperbolic(_) | Space::Sphere(_) | Space::Projective(_) => point.to_vec(),
        Space::Torus(_) => point.iter().map(|a| turned(a.to_degrees())).collect(),
        Space::So3 => rotation(point),
    }
}

/// Degrees in [−180, 180).
fn turned(degrees: f64) -> f64 {
    (degrees + 180.0).rem_euclid(360.0) - 180.0
}

/// Axis times angle, and the angle, in degrees: q = (sin(θ/2)·axis, cos(θ/2)), of ±q the one with θ ≤ 180°.
fn rotation(q: &[f64]) -> Vec<f64> {
    let sign = if q[3] < 0.0 { -1.0 } else { 1.0 };
    let sine = (q[0] * q[0] + q[1] * q[1] + q[2] * q[2]).sqrt();
    let angle = 2.0 * sine.atan2(sign * q[3]).to_degrees();
    let scale = if sine > 0.0 { sign * angle / sine } else { 0.0 };
    vec![scale * q[0], scale * q[1], scale * q[2], angle]
}

/// A whole number as index: ₁₂.
fn below(i: usize) -> String {
    i.to_string().chars().map(|c| char::from_u32('₀' as u32 + c as u32 - '0' as u32).expect("a digit")).collect()
}
