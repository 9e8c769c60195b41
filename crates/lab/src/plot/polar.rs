//! Densities around a circle: the distance from the ring is the density.

use super::axis::Axis;
use super::colour;
use super::scene::{Anchor, Area, Paint, SMALL, Scene, Stroke};
use super::series::{Dash, Key, Series, legend, legend_height};
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// A density on the circle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolarCurve {
    /// Its name in the legend.
    pub name: String,
    /// The method, which decides its colour.
    pub method: String,
    /// How its line is broken.
    #[serde(default)]
    pub dash: Dash,
    /// Densities at equal angles, from 0 (right) counter-clockwise.
    pub density: Vec<f64>,
}

impl PolarCurve {
    /// How its line looks.
    pub(super) fn series(&self) -> Series {
        Series::new(&self.name, &self.method).dashed(self.dash)
    }
}

/// Densities around a circle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Polar {
    /// Title; may be empty.
    pub title: String,
    /// Quantity and unit of the distance from the ring.
    pub label: String,
    /// The densities; the first is filled.
    pub curves: Vec<PolarCurve>,
}

const TOP: f64 = 30.0;
/// Radius of the ring as a share of the largest radius.
const RING: f64 = 0.42;

impl Polar {
    fn keys(&self) -> Vec<Key> {
        self.curves.iter().map(|c| Key::line(&c.series(), false)).collect()
    }

    fn names(&self, width: f64) -> f64 {
        legend_height(&self.keys(), width - 30.0)
    }

    pub(super) fn height(&self, width: f64) -> f64 {
        width.min(460.0) + TOP + 26.0 + self.names(width)
    }

    pub(super) fn draw(&self, scene: &mut Scene, area: Area) {
        let names = self.names(area.width);
        let inner = area.inside(50.0, TOP + 14.0, 50.0, names + 48.0);
        let (centre, reach) = (inner.centre(), 0.5 * inner.width.min(inner.height));
        let all = self.curves.iter().flat_map(|c| c.density.iter().copied());
        let top = all.filter(|d| d.is_finite()).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let ruler = Axis::linear(&self.label).over(0.0, 1.02 * top).ruler(std::iter::empty(), (RING * reach, reach));
        let at = |angle: f64, radius: f64| (centre.0 + radius * angle.cos(), centre.1 - radius * angle.sin());

        let ticks: Vec<_> = ruler.ticks(4);
        for tick in &ticks {
            scene.circle(centre, tick.place, None, Some(Stroke::new(Paint::Faint, 1.0)));
        }
        for (i, name) in ["0", "π/4", "π/2", "3π/4", "±π", "−3π/4", "−π/2", "−π/4"].iter().enumerate() {
            let angle = TAU * i as f64 / 8.0;
            scene.line(vec![at(angle, RING * reach), at(angle, reach)], Stroke::new(Paint::Faint, 1.0));
            let (x, y) = at(angle, reach + 8.0);
            let anchor = match angle.cos() {
                c if c > 0.1 => Anchor::Start,
                c if c < -0.1 => Anchor::End,
                _ => Anchor::Middle,
            };
            let down = if angle.sin() < -0.9 { 9.0 } else { 4.0 * (1.0 - angle.sin()) };
            scene.text((x, y + down), name, SMALL, anchor);
        }
        for (k, curve) in self.curves.iter().enumerate() {
            let n = curve.density.len();
            let angle = |i: usize| TAU * i as f64 / n as f64;
            let outline: Vec<_> = (0..n).map(|i| at(angle(i), ruler.place(curve.density[i]))).collect();
            if k == 0 {
                // Back along the ring, since its inside belongs to no density.
                let back = (0..=n).rev().map(|i| at(angle(i), RING * reach));
                let between = outline.iter().copied().chain([outline[0]]).chain(back).collect();
                scene.region(between, Some(Paint::Veil(colour::of_method(&curve.method))), None);
            }
            scene.region(outline, None, Some(curve.series().stroke(if k == 0 { 3.0 } else { 2.0 })));
        }
        scene.circle(centre, RING * reach, None, Some(Stroke::new(Paint::Ink, 1.2)));
        for tick in ticks {
            // Just outside its circle, along a ray that is steep, so that the numbers stand one below another; zero inside
            // the ring, since low densities run along it outside.
            let zero = tick.label.as_deref() == Some("0");
            let (x, y) = at(TAU * 0.69, tick.place + if zero { -10.0 } else { 9.0 });
            scene.remark((x, y + 4.0), tick.label.as_deref().unwrap_or(""), SMALL, Anchor::Middle);
        }
        scene.text((centre.0, centre.1 + 4.0), &self.label, SMALL, Anchor::Middle);
        if !self.title.is_empty() {
            scene.title((centre.0, area.y + 20.0), area.width - 20.0, &self.title);
        }
        let below = Area { x: area.x + 20.0, y: area.bottom() - names - 4.0, width: area.width - 30.0, height: names };
        legend(scene, &self.keys(), below);
    }
}
