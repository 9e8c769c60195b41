//! A histogram with densities over it.
//!
//! **Checked by** tests/lab/plot_fields.rs.

use super::axis::Axis;
use super::colour;
use super::panel::{self, Panel};
use super::scene::{Area, Paint, Scene, Stroke};
use super::series::{Key, PATCH, Sample, Series, legend, legend_height};
use serde::{Deserialize, Serialize};

/// Densities in bins of equal width.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bins {
    /// Their name in the legend.
    pub name: String,
    /// Whose they are, which decides their colour.
    pub method: String,
    /// Where the first begins and the last ends.
    pub range: [f64; 2],
    /// Density in each: its share of all numbers by its width.
    pub density: Vec<f64>,
}

impl Bins {
    /// The densities of numbers in so many bins over a range; numbers outside count in the total.
    pub fn of(name: &str, method: &str, values: &[f64], count: usize, range: [f64; 2]) -> Self {
        let width = (range[1] - range[0]) / count as f64;
        let mut density = vec![0.0; count];
        for x in values {
            let k = ((x - range[0]) / width).floor();
            if k >= 0.0 && (k as usize) < count {
                density[k as usize] += 1.0;
            } else if *x == range[1] {
                density[count - 1] += 1.0;
            }
        }
        let unit = values.len().max(1) as f64 * width;
        density.iter_mut().for_each(|d| *d /= unit);
        Bins { name: name.to_string(), method: method.to_string(), range, density }
    }

    /// Borders of bin k.
    pub fn borders(&self, k: usize) -> (f64, f64) {
        let [from, to] = self.range;
        let width = (to - from) / self.density.len() as f64;
        (from + k as f64 * width, from + (k + 1) as f64 * width)
    }

    /// The outline of the bins from left to right, along the floor at both ends.
    pub(super) fn outline(&self, place: impl Fn(f64, f64) -> (f64, f64)) -> Vec<(f64, f64)> {
        let step = |(k, d): (usize, &f64)| {
            let (a, b) = self.borders(k);
            [(a, *d), (b, *d)]
        };
        let steps = self.density.iter().enumerate().flat_map(step);
        let [from, to] = self.range;
        std::iter::once((from, 0.0)).chain(steps).chain([(to, 0.0)]).map(|(x, y)| place(x, y)).collect()
    }
}

/// A histogram with curves over it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Title; may be empty.
    pub title: String,
    /// Across.
    pub x: Axis,
    /// Up: a density with its unit.
    pub y: Axis,
    /// The bins.
    pub bins: Bins,
    /// The curves.
    pub curves: Vec<Series>,
}

impl Histogram {
    fn keys(&self) -> Vec<Key> {
        let bins = Key::new(Sample::Patch, &self.bins.name, &self.bins.method);
        std::iter::once(bins).chain(self.curves.iter().map(|c| Key::line(c, false))).collect()
    }

    fn names(&self, width: f64) -> f64 {
        legend_height(&self.keys(), width - 30.0)
    }

    pub(super) fn height(&self, width: f64) -> f64 {
        (0.5 * width).clamp(280.0, 380.0) + panel::TITLE + panel::BELOW + self.names(width) + 8.0
    }

    pub(super) fn draw(&self, scene: &mut Scene, area: Area) {
        let names = self.names(area.width);
        let part = area.inside(0.0, 0.0, 0.0, names + 8.0);
        let curves = self.curves.iter().flat_map(|c| &c.points).map(|p| p.y);
        let top = self.bins.density.iter().copied().chain(curves).filter(|y| y.is_finite()).fold(0.0, f64::max);
        let up = self.y.clone().over(0.0, 1.06 * top.max(f64::MIN_POSITIVE));
        let frame = panel::frame(scene, part, &self.title, (&self.x, &self.bins.range), (&up, &[]));
        fill(scene, &self.bins, |x, y| frame.place(x, y), 0.8);
        for curve in &self.curves {
            let shown = curve.points.iter().filter(|p| p.y.is_finite() && frame.x.shows(p.x));
            scene.line(shown.map(|p| frame.place(p.x, p.y)).collect(), curve.stroke(2.2));
        }
        edge(scene, &frame);
        let below = Area { x: area.x + 20.0, y: part.bottom(), width: area.width - 30.0, height: names };
        legend(scene, &self.keys(), below);
    }
}

/// The floor and walls again, over what was drawn.
fn edge(scene: &mut Scene, frame: &Panel) {
    scene.rectangle(frame.area, None, Some(Stroke::new(Paint::Ink, 1.0)));
}

/// Bars as filled steps.
pub(super) fn fill(scene: &mut Scene, bins: &Bins, place: impl Fn(f64, f64) -> (f64, f64), width: f64) {
    let colour = colour::of_method(&bins.method);
    let outline = bins.outline(place);
    scene.region(outline, Some(Paint::Glass(colour, PATCH)), Some(Stroke::new(Paint::Solid(colour), width)));
}
