//! Wind roses: directions in bins around a circle, with densities over them.
//!
//! **Statement.** A density ρ reaches to the radius r with r² = r₀² + cρ: equal areas are equal shares of the directions.
//! **Checked by** tests/lab/plot_fields.rs.

use super::axis::Axis;
use super::bars::Bins;
use super::colour;
use super::polar::PolarCurve;
use super::scene::{Anchor, Area, Paint, SMALL, Scene, Stroke};
use super::series::{Key, PATCH, Sample, legend, legend_height};
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// How directions are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bearings {
    /// Degrees counter-clockwise from the right.
    #[default]
    Degrees,
    /// Clockwise from north, with the names of a compass.
    Compass,
    /// Clockwise from midnight, with the hours of a day.
    Hours,
    /// Clockwise from the top, with numbers from 0 to a full turn.
    Period {
        /// The number after which everything repeats.
        turn: f64,
    },
}

impl Bearings {
    /// Direction of an angle on the page, y down.
    fn direction(self, angle: f64) -> (f64, f64) {
        let (sin, cos) = angle.sin_cos();
        match self {
            Bearings::Degrees => (cos, -sin),
            Bearings::Compass | Bearings::Hours | Bearings::Period { .. } => (sin, -cos),
        }
    }

    /// Names of rays at equal angles.
    fn names(self) -> Vec<String> {
        match self {
            Bearings::Degrees => (0..8).map(|i| format!("{}°", 45 * i)).collect(),
            Bearings::Compass => ["N", "NE", "E", "SE", "S", "SW", "W", "NW"].map(String::from).to_vec(),
            Bearings::Hours => (0..8).map(|i| format!("{} h", 3 * i)).collect(),
            Bearings::Period { turn } => {
                // Whole steps if there are any.
                let whole = |rays: &usize| turn % *rays as f64 == 0.0;
                let rays = [8, 12, 6, 10, 7, 9, 11, 5].into_iter().find(whole).unwrap_or(8);
                (0..rays).map(|i| short(turn * i as f64 / rays as f64)).collect()
            }
        }
    }

    /// A full turn in the units of the names and what densities by these units are called; radians where names are of
    /// directions.
    pub(super) fn by_unit(self) -> (f64, &'static str) {
        match self {
            Bearings::Degrees | Bearings::Compass => (TAU, "density (1/rad)"),
            Bearings::Hours => (24.0, "density (1/h)"),
            Bearings::Period { turn } => (turn, "density by unit"),
        }
    }
}

/// A number in at most four digits, without zeros at its end.
fn short(x: f64) -> String {
    let digits = (3 - x.abs().log10().floor().max(-9.0) as i32).clamp(0, 9) as usize;
    let text = format!("{x:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// A wind rose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rose {
    /// Title; may be empty.
    pub title: String,
    /// Quantity and unit of the rings.
    pub label: String,
    /// How directions are named.
    #[serde(default)]
    pub bearings: Bearings,
    /// The bins, over a whole turn in radians.
    pub bins: Bins,
    /// The densities, in the units of the label.
    pub curves: Vec<PolarCurve>,
}

const TOP: f64 = 42.0;
/// Radius of the hole as a share of the largest radius.
const HOLE: f64 = 0.16;

impl Rose {
    fn keys(&self) -> Vec<Key> {
        let bins = Key::new(Sample::Patch, &self.bins.name, &self.bins.method);
        std::iter::once(bins).chain(self.curves.iter().map(|c| Key::line(&c.series(), false))).collect()
    }

    fn names(&self, width: f64) -> f64 {
        legend_height(&self.keys(), width - 30.0)
    }

    pub(super) fn height(&self, width: f64) -> f64 {
        width.min(480.0) + TOP + 26.0 + self.names(width)
    }

    pub(super) fn draw(&self, scene: &mut Scene, area: Area) {
        let names = self.names(area.width);
        let inner = area.inside(50.0, TOP + 14.0, 50.0, names + 54.0);
        let (centre, reach) = (inner.centre(), 0.5 * inner.width.min(inner.height));
        let curves = self.curves.iter().flat_map(|c| c.density.iter().copied());
        let all = self.bins.density.iter().copied().chain(curves).filter(|d| d.is_finite());
        let top = 1.02 * all.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let radius =
            |density: f64| reach * (HOLE * HOLE + (1.0 - HOLE * HOLE) * (density / top).clamp(0.0, 1.0)).sqrt();
        let at = |angle: f64, r: f64| {
            let (x, y) = self.bearings.direction(angle);
            (centre.0 + r * x, centre.1 + r * y)
        };
        let arc = |from: f64, to: f64, r: f64| {
            (0..=24).map(move |i| from + (to - from) * i as f64 / 24.0).map(move |a| at(a, r)).collect::<Vec<_>>()
        };
        self.grid(scene, reach, &at);
        let colour = colour::of_method(&self.bins.method);
        for (k, &density) in self.bins.density.iter().enumerate().filter(|(_, d)| **d > 0.0) {
            let (from, to) = self.bins.borders(k);
            let back = arc(to, from, HOLE * reach);
            let wedge = arc(from, to, radius(density)).into_iter().chain(back).collect();
            scene.region(wedge, Some(Paint::Glass(colour, PATCH)), Some(Stroke::new(Paint::Solid(colour), 0.7)));
        }
        for curve in &self.curves {
            let n = curve.density.len();
            let outline = (0..n).map(|i| at(TAU * i as f64 / n as f64, radius(curve.density[i]))).collect();
            scene.region(outline, None, Some(curve.series().stroke(2.4)));
        }
        let ruler = Axis::linear("").over(0.0, top).ruler(std::iter::empty(), (0.0, top));
        let rings: Vec<_> = ruler.ticks(4).into_iter().filter(|t| t.place > 0.0).collect();
        for tick in &rings {
            scene.circle(centre, radius(tick.place), None, Some(Stroke::new(Paint::Faint, 1.0)));
        }
        self.numbers(scene, &rings.iter().map(|t| (t.place, t.label.clone())).collect::<Vec<_>>(), &radius, &at);
        scene.circle(centre, HOLE * reach, None, Some(Stroke::new(Paint::Ink, 1.0)));
        if !self.title.is_empty() {
            scene.title((centre.0, area.y + 20.0), area.width - 20.0, &self.title);
        }
        scene.remark((centre.0, area.bottom() - names - 14.0), &self.label, SMALL, Anchor::Middle);
        let below = Area { x: area.x + 20.0, y: area.bottom() - names - 4.0, width: area.width - 30.0, height: names };
        legend(scene, &self.keys(), below);
    }

    /// Rays with their names.
    fn grid(&self, scene: &mut Scene, reach: f64, at: &impl Fn(f64, f64) -> (f64, f64)) {
        let names = self.bearings.names();
        for (i, name) in names.iter().enumerate() {
            let angle = TAU * i as f64 / names.len() as f64;
            scene.line(vec![at(angle, HOLE * reach), at(angle, reach)], Stroke::new(Paint::Faint, 1.0));
            let ((x, y), (right, down)) = (at(angle, reach + 9.0), self.bearings.direction(angle));
            let anchor = match right {
                r if r > 0.1 => Anchor::Start,
                r if r < -0.1 => Anchor::End,
                _ => Anchor::Middle,
            };
            scene.text((x, y + 0.36 * SMALL * (1.0 + down)), name, SMALL + 1.0, anchor);
        }
    }

    /// Numbers of the rings, along the ray between two names where the density is lowest.
    fn numbers(
        &self,
        scene: &mut Scene,
        rings: &[(f64, Option<String>)],
        radius: &impl Fn(f64) -> f64,
        at: &impl Fn(f64, f64) -> (f64, f64),
    ) {
        let height = |angle: f64| {
            let near = |i: usize, n: usize| (angle - TAU * (i as f64 + 0.5) / n as f64).cos() > 0.96;
            let most = |d: &[f64]| (0..d.len()).filter(|i| near(*i, d.len())).map(|i| d[i]).fold(0.0, f64::max);
            self.curves.iter().map(|c| most(&c.density)).fold(most(&self.bins.density), f64::max)
        };
        let count = self.bearings.names().len();
        let rays = (0..count).map(|i| TAU * (i as f64 + 0.5) / count as f64);
        let ray = rays.min_by(|a, b| height(*a).total_cmp(&height(*b))).expect("at least five rays");
        for (density, label) in rings {
            let (x, y) = at(ray, radius(*density));
            scene.text((x, y + 4.0), label.as_deref().unwrap_or(""), SMALL - 1.0, Anchor::Middle);
        }
    }
}
