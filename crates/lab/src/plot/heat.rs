//! Functions of the plane as colours, with lines of equal height and dots: Ramachandran plots and their like.
//!
//! **Checked by** tests/lab/plot_fields.rs.

use super::axis::Axis;
use super::cloud::Cloud;
use super::field::Field;
use super::panel::{self, Ticks};
use super::scene::{Area, Scene};
use super::shades::{self, BAR, CONTOUR, Shades};
use serde::{Deserialize, Serialize};

/// A function of the plane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heat {
    /// Title; may be empty.
    pub title: String,
    /// Across, with its range.
    pub x: Axis,
    /// Up, with its range.
    pub y: Axis,
    /// The numbers over both ranges.
    pub field: Field,
    /// What the colours measure; lines are drawn at its marks.
    pub shades: Shades,
    /// Dots over it.
    #[serde(default, skip_serializing_if = "Cloud::is_empty")]
    pub points: Cloud,
    /// Whether the frame is a square, as for two angles.
    #[serde(default)]
    pub square: bool,
}

/// Side of a square frame.
const SIDE: f64 = 460.0;

impl Heat {
    fn frame_height(&self, width: f64) -> f64 {
        if self.square { SIDE.min(width - 90.0) } else { (0.6 * width).clamp(260.0, SIDE) }
    }

    fn top(&self) -> f64 {
        if self.title.is_empty() { 10.0 } else { panel::TITLE }
    }

    pub(super) fn height(&self, width: f64) -> f64 {
        self.top() + self.frame_height(width) + panel::BELOW + 8.0 + self.shades.above() + BAR
    }

    pub(super) fn draw(&self, scene: &mut Scene, area: Area) {
        let bounds = self.shades.bounds(self.field.values.iter().map(|v| *v as f64));
        let height = self.top() + self.frame_height(area.width) + panel::BELOW;
        let mut part = Area { height, ..area };
        let mut frame = panel::measure(part, &self.title, (&self.x, &[]), (&self.y, &[]));
        if self.square {
            // The frame as wide as high, in the middle of the page.
            let spare = frame.area.width - frame.area.height;
            part = part.inside(0.5 * spare - 20.0, 0.0, 0.5 * spare + 20.0, 0.0);
            frame = panel::measure(part, &self.title, (&self.x, &[]), (&self.y, &[]));
        }
        scene.picture(shades::picture(frame.area, bounds, |v| move |u| self.field.at(u, 1.0 - v)));
        let shown = |x: f64, y: f64| frame.shows(x, y).then(|| frame.place(x, y));
        scene.dots(self.points.dots(frame.area.height, shown));
        for height in self.shades.lines() {
            for line in self.field.contours(height) {
                let Area { x, width, height, .. } = frame.area;
                let place = |(u, v): (f64, f64)| (x + u * width, frame.area.bottom() - v * height);
                scene.line(line.into_iter().map(place).collect(), CONTOUR);
            }
        }
        frame.rule(scene, Ticks::Outside);
        frame.name(scene, part, &self.title, (&self.x.label, &self.y.label));
        self.shades.draw(scene, area.inside(0.0, height + 8.0, 0.0, 0.0), bounds);
    }
}
