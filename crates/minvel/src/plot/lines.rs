//! Curves over an axis, with confidence bands, guides of known slope, and levels.

use super::axis::Axis;
use super::colour;
use super::panel::{self, Panel};
use super::scene::{Anchor, Area, Paint, SMALL, Scene, Stroke};
use super::series::{Series, legend, legend_height};
use serde::{Deserialize, Serialize};

/// Something to compare curves with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Guide {
    /// y ∝ xᵇ through a point: a straight line of known slope on logarithmic axes.
    Power {
        /// b.
        exponent: f64,
        /// A point of it.
        through: [f64; 2],
        /// What it says.
        label: String,
    },
    /// y = a number.
    Level {
        /// The number.
        at: f64,
        /// What it says.
        label: String,
    },
}

/// Curves over an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// Title; may be empty.
    pub title: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// The curves.
    pub series: Vec<Series>,
    /// What to compare them with.
    #[serde(default)]
    pub guides: Vec<Guide>,
    /// Whether points are marked.
    #[serde(default)]
    pub markers: bool,
}

impl Lines {
    /// Axes without curves yet; points are marked.
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        Lines { title: title.to_string(), x, y, series: vec![], guides: vec![], markers: true }
    }

    /// The same with one more curve.
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// The same with a line y ∝ xᵇ.
    pub fn power(mut self, exponent: f64, through: [f64; 2], label: &str) -> Self {
        self.guides.push(Guide::Power { exponent, through, label: label.to_string() });
        self
    }

    /// The same with a line at a height.
    pub fn level(mut self, at: f64, label: &str) -> Self {
        self.guides.push(Guide::Level { at, label: label.to_string() });
        self
    }

    fn entries(&self) -> Vec<&Series> {
        self.series.iter().filter(|s| !s.name.is_empty()).collect()
    }

    pub(super) fn height(&self, width: f64) -> f64 {
        let frame = (0.62 * width).clamp(300.0, 420.0);
        frame + panel::TITLE + panel::BELOW + legend_height(&self.entries(), width - 30.0) + 8.0
    }

    pub(super) fn draw(&self, scene: &mut Scene, area: Area) {
        let entries = self.entries();
        let names = legend_height(&entries, area.width - 30.0);
        let frame = area.inside(0.0, 0.0, 0.0, names + 8.0);
        let points = || self.series.iter().flat_map(|s| &s.points);
        let xs: Vec<f64> = points().map(|p| p.x).collect();
        let level = |g: &Guide| if let Guide::Level { at, .. } = g { Some(*at) } else { None };
        // Bands do not stretch a logarithmic axis: their lower border may be near zero.
        let ys: Vec<f64> = points().map(|p| p.y).chain(self.guides.iter().filter_map(level)).collect();
        let panel = panel::frame(scene, frame, &self.title, (&self.x, &xs), (&self.y, &ys));
        for guide in &self.guides {
            draw_guide(scene, &panel, guide);
        }
        for series in &self.series {
            draw_band(scene, &panel, series);
        }
        for series in &self.series {
            self.draw_curve(scene, &panel, series);
        }
        let below = Area { x: area.x + 20.0, y: frame.bottom(), width: area.width - 30.0, height: names };
        legend(scene, &entries, below, self.markers);
    }

    fn draw_curve(&self, scene: &mut Scene, panel: &Panel, series: &Series) {
        let visible = |p: &&super::Point| p.y.is_finite() && panel.x.shows(p.x);
        let places: Vec<(f64, f64)> =
            series.points.iter().filter(visible).map(|p| (panel.x.place(p.x), panel.y.place(p.y))).collect();
        if places.len() > 1 {
            scene.line(places.clone(), series.stroke(2.0));
        }
        if self.markers || places.len() == 1 {
            places.into_iter().for_each(|at| series.marker(scene, at));
        }
    }
}

fn draw_band(scene: &mut Scene, panel: &Panel, series: &Series) {
    let banded: Vec<(f64, [f64; 2])> =
        series.points.iter().filter(|p| panel.x.shows(p.x)).filter_map(|p| Some((p.x, p.band?))).collect();
    if banded.len() < 2 {
        return;
    }
    let border = |k: usize| banded.iter().map(move |(x, band)| (*x, band[k]));
    let around = border(0).chain(border(1).collect::<Vec<_>>().into_iter().rev());
    let outline = around.map(|(x, y)| (panel.x.place(x), panel.y.place(y))).collect();
    scene.region(outline, Some(Paint::Veil(colour::of_method(&series.method))), None);
}

fn draw_guide(scene: &mut Scene, panel: &Panel, guide: &Guide) {
    let stroke = Stroke::new(Paint::Soft, 1.2).dashed(&[1.5, 3.0]);
    match guide {
        Guide::Level { at, label } => {
            let y = panel.y.place(*at);
            scene.line(vec![(panel.area.x, y), (panel.area.right(), y)], stroke);
            scene.remark((panel.area.right() - 6.0, y - 5.0), label, SMALL, Anchor::End);
        }
        Guide::Power { exponent, through: [x, y], label } => {
            let on = |share: f64| {
                let at = panel.x.value(share);
                (at, y * (at / x).powf(*exponent))
            };
            let shown: Vec<(f64, f64)> = (0..=200).map(|i| on(i as f64 / 200.0)).filter(|p| panel.y.shows(p.1)).collect();
            let (Some(first), Some(last)) = (shown.first(), shown.last()) else { return };
            let place = |p: &(f64, f64)| (panel.x.place(p.0), panel.y.place(p.1));
            scene.line(vec![place(first), place(last)], stroke);
            // Above the line where it leaves the frame at the top, so that it does not stand on a curve.
            let (rising, right) = (*exponent > 0.0, place(last).0 > panel.area.right() - 60.0);
            let (x, y) = place(if rising == right || rising { last } else { first });
            let (dx, anchor) = if rising { (-8.0, Anchor::End) } else { (10.0, Anchor::Start) };
            scene.remark((x + dx, y + 14.0), label, SMALL, anchor);
        }
    }
}
