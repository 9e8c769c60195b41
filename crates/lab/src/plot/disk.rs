//! Functions of the hyperbolic plane in Poincaré's disk, with geodesics as grid.
//!
//! **Statement.** The geodesics at right angles to a diameter at distance d from the middle are arcs of circles with
//! centre 1/tanh d on it and radius 1/sinh d. **Conventions.** Curvature −1: distance d is at radius tanh(d/2).
//! **Checked by** tests/lab/plot_fields.rs.

use super::cloud::Cloud;
use super::field::Field;
use super::panel::TITLE;
use super::scene::{Area, Paint, SMALL, Scene, Stroke};
use super::shades::{self, BAR, CONTOUR, Shades, white};
use serde::{Deserialize, Serialize};
use std::f64::consts::FRAC_PI_2;

/// A function of the hyperbolic plane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// Title; may be empty.
    pub title: String,
    /// The numbers over [−1, 1]².
    pub field: Field,
    /// What the colours measure.
    pub shades: Shades,
    /// Dots over it.
    #[serde(default, skip_serializing_if = "Cloud::is_empty")]
    pub points: Cloud,
}

/// Diameter of the disk.
const SIZE: f64 = 500.0;

/// The geodesic at right angles to the first axis at distance d ≠ 0 from the middle, from edge to edge.
pub fn geodesic(d: f64) -> Vec<(f64, f64)> {
    let (centre, radius) = (1.0 / d.tanh(), 1.0 / d.sinh().abs());
    // The angle at the arc's centre under which it meets the edge, at right angles.
    let half = FRAC_PI_2 - radius.atan();
    let point = |i: i32| {
        let (sin, cos) = (half * i as f64 / 40.0).sin_cos();
        (centre - d.signum() * radius * cos, radius * sin)
    };
    (-40..=40).map(point).collect()
}

impl Disk {
    fn top(&self) -> f64 {
        if self.title.is_empty() { 10.0 } else { TITLE + 4.0 }
    }

    fn size(width: f64) -> f64 {
        SIZE.min(width - 20.0)
    }

    pub(super) fn height(&self, width: f64) -> f64 {
        self.top() + Self::size(width) + 16.0 + self.shades.above() + BAR
    }

    pub(super) fn draw(&self, scene: &mut Scene, area: Area) {
        let bounds = self.shades.bounds(self.field.values.iter().map(|v| *v as f64));
        let size = Self::size(area.width);
        let disk = Area { x: area.centre().0 - 0.5 * size, y: area.y + self.top(), width: size, height: size };
        let at = |x: f64, y: f64| (disk.centre().0 + 0.5 * size * x, disk.centre().1 - 0.5 * size * y);
        let value = |u: f64, v: f64| {
            let outside = (2.0 * u - 1.0).hypot(2.0 * v - 1.0) > 1.0;
            if outside { f64::NAN } else { self.field.at(u, 1.0 - v) }
        };
        scene.picture(shades::picture(disk, bounds, |v| move |u| value(u, v)));
        scene.line(vec![at(-1.0, 0.0), at(1.0, 0.0)], white(70, 1.0));
        scene.line(vec![at(0.0, -1.0), at(0.0, 1.0)], white(70, 1.0));
        for d in (-4..=4).filter(|d| *d != 0) {
            let arc = geodesic(d as f64);
            scene.line(arc.iter().map(|&(x, y)| at(x, y)).collect(), white(70, 1.0));
            scene.line(arc.iter().map(|&(x, y)| at(y, x)).collect(), white(70, 1.0));
        }
        for line in self.shades.lines().flat_map(|height| self.field.contours(height)) {
            let place = |(u, v): (f64, f64)| (2.0 * u - 1.0, 2.0 * v - 1.0);
            // Corners of the grid lie outside the disk.
            let mut pieces = line.into_iter().map(place).collect::<Vec<_>>();
            pieces.retain(|(x, y)| x.hypot(*y) < 1.0);
            scene.line(pieces.into_iter().map(|(x, y)| at(x, y)).collect(), CONTOUR);
        }
        let inside = |x: f64, y: f64| (x.hypot(y) < 1.0).then(|| at(x, y));
        scene.dots(self.points.dots(size, inside));
        for d in 1..=3 {
            let r = (0.5 * d as f64).tanh();
            scene.inlay((at(r, 0.0).0, at(r, 0.0).1 + 0.36 * (SMALL - 1.0)), &d.to_string(), SMALL - 1.0);
        }
        scene.circle(disk.centre(), 0.5 * size, None, Some(Stroke::new(Paint::Ink, 1.2)));
        if !self.title.is_empty() {
            scene.title((disk.centre().0, area.y + 20.0), area.width - 20.0, &self.title);
        }
        self.shades.draw(scene, area.inside(0.0, self.top() + size + 16.0, 0.0, 0.0), bounds);
    }
}
