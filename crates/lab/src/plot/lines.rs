//! Curves over an axis, with confidence bands, guides of known slope, and levels.

use super::axis::{Axis, Scale};
use super::colour;
use super::panel::{self, Panel};
use super::scene::{Anchor, Area, Paint, SMALL, Scene, Stroke, text_width};
use super::series::{Key, Series, legend, legend_height};
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
    /// x = a number.
    At {
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

    /// The same with an upright line.
    pub fn upright(mut self, at: f64, label: &str) -> Self {
        self.guides.push(Guide::At { at, label: label.to_string() });
        self
    }

    fn keys(&self) -> Vec<Key> {
        self.series.iter().filter(|s| !s.name.is_empty()).map(|s| Key::line(s, self.markers)).collect()
    }

    /// Height of the names below.
    pub(super) fn names(&self, width: f64) -> f64 {
        legend_height(&self.keys(), width - 30.0)
    }

    pub(super) fn height(&self, width: f64) -> f64 {
        let frame = (0.62 * width).clamp(300.0, 420.0);
        frame + panel::TITLE + panel::BELOW + self.names(width) + 8.0
    }

    /// Draws with at least a given height for the names, so that frames side by side are equally high.
    pub(super) fn draw(&self, scene: &mut Scene, area: Area, names: f64) {
        let names = names.max(self.names(area.width));
        let frame = area.inside(0.0, 0.0, 0.0, names + 8.0);
        let points = || self.series.iter().flat_map(|s| &s.points);
        let xs: Vec<f64> = points().map(|p| p.x).collect();
        let level = |g: &Guide| if let Guide::Level { at, .. } = g { Some(*at) } else { None };
        // Bands do not stretch a logarithmic axis: their lower border may be near zero.
        let linear = self.y.scale == Scale::Linear;
        let borders = points().filter_map(|p| p.band.filter(|_| linear)).flatten();
        let ys: Vec<f64> = points().map(|p| p.y).chain(borders).chain(self.guides.iter().filter_map(level)).collect();
        let panel = panel::frame(scene, frame, &self.title, (&self.x, &xs), (&self.y, &ys));
        let mut occupied: Vec<(f64, f64)> = self.series.iter().flat_map(|s| dense(&self.places(&panel, s))).collect();
        let lines: Vec<_> = self.guides.iter().map(|guide| guide_line(&panel, guide)).collect();
        occupied.extend(lines.iter().flatten().flat_map(|line| dense(line)));
        for (guide, line) in self.guides.iter().zip(&lines) {
            let Some(line) = line else { continue };
            scene.line(line.to_vec(), Stroke::new(Paint::Soft, 1.2).dashed(&[1.5, 3.0]));
            name_guide(scene, &panel, guide, *line, &mut occupied);
        }
        for series in &self.series {
            draw_band(scene, &panel, series);
        }
        for (rank, series) in self.series.iter().enumerate() {
            self.draw_curve(scene, &panel, series, rank);
        }
        let below = Area { x: area.x + 20.0, y: frame.bottom(), width: area.width - 30.0, height: names };
        legend(scene, &self.keys(), below);
    }

    /// The points of a curve on the page; those beyond a range that was asked for are left out.
    fn places(&self, panel: &Panel, series: &Series) -> Vec<(f64, f64)> {
        let inside = |y: f64| y.is_finite() && (self.y.range.is_none() || panel.y.shows(y));
        let visible = series.points.iter().filter(|p| inside(p.y) && panel.x.shows(p.x));
        visible.map(|p| panel.place(p.x, p.y)).collect()
    }

    /// Later curves are thinner, so that one that covers another lets it show.
    fn draw_curve(&self, scene: &mut Scene, panel: &Panel, series: &Series, rank: usize) {
        let share = rank as f64 / (self.series.len().max(2) - 1) as f64;
        let places = self.places(panel, series);
        if places.len() > 1 {
            scene.line(places.clone(), series.stroke(2.8 - 1.2 * share));
        }
        if self.markers || places.len() == 1 {
            places.into_iter().for_each(|at| series.marker(scene, at, 4.2 - 1.4 * share));
        }
    }
}

/// Points all along a line, for finding room beside it.
fn dense(line: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let between = |w: &[(f64, f64)]| {
        let ((a, b), (c, d)) = (w[0], w[1]);
        (0..=20).map(move |i| i as f64 / 20.0).map(move |t| (a + t * (c - a), b + t * (d - b)))
    };
    line.windows(2).flat_map(between).collect()
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

/// The visible part of a guide.
fn guide_line(panel: &Panel, guide: &Guide) -> Option<[(f64, f64); 2]> {
    match guide {
        Guide::Level { at, .. } => {
            let y = panel.y.place(*at);
            Some([(panel.area.x, y), (panel.area.right(), y)])
        }
        Guide::At { at, .. } => {
            let x = panel.x.place(*at);
            panel.x.shows(*at).then_some([(x, panel.area.y), (x, panel.area.bottom())])
        }
        Guide::Power { exponent, through: [x, y], .. } => {
            let on = |share: f64| {
                let at = panel.x.value(share);
                (at, y * (at / x).powf(*exponent))
            };
            let shown: Vec<_> = (0..=200).map(|i| on(i as f64 / 200.0)).filter(|p| panel.y.shows(p.1)).collect();
            let place = |p: &(f64, f64)| (panel.x.place(p.0), panel.y.place(p.1));
            Some([place(shown.first()?), place(shown.last()?)])
        }
    }
}

/// Writes a guide's name beside it, where there is most room.
fn name_guide(
    scene: &mut Scene,
    panel: &Panel,
    guide: &Guide,
    [from, to]: [(f64, f64); 2],
    occupied: &mut Vec<(f64, f64)>,
) {
    let (Guide::Power { label, .. } | Guide::Level { label, .. } | Guide::At { label, .. }) = guide;
    let width = text_width(label, SMALL);
    // Right of a falling line is free above it, right of a rising one below it; the half-heights are those of the text.
    let falling = to.1 > from.1;
    let candidate = |i: usize| {
        let t = 0.04 + 0.92 * (i / 2) as f64 / 24.0;
        let (x, y) = (from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1));
        let above = i.is_multiple_of(2);
        let level = (to.1 - from.1).abs() < 1.0;
        let shift = if level { 0.0 } else { 0.5 * width + 6.0 };
        (x + if above == falling { shift } else { -shift }, if above { y - 9.0 } else { y + 9.0 })
    };
    // Room is measured to a box as wide as the text.
    let room = |(x, y): (f64, f64)| {
        let gap = |&(a, b): &(f64, f64)| ((a - x).abs() - 0.5 * width).max(0.0).hypot((b - y).abs());
        occupied.iter().map(gap).fold(f64::INFINITY, f64::min)
    };
    let inside = |&(x, y): &(f64, f64)| {
        let frame = panel.area.inside(0.5 * width + 6.0, 10.0, 0.5 * width + 6.0, 10.0);
        x >= frame.x && x <= frame.right() && y >= frame.y && y <= frame.bottom()
    };
    let best = (0..50).map(candidate).filter(inside).max_by(|a, b| room(*a).total_cmp(&room(*b)));
    if let Some((x, y)) = best {
        scene.remark((x, y + 0.36 * SMALL), label, SMALL, Anchor::Middle);
        occupied.extend(dense(&[(x - 0.5 * width, y), (x + 0.5 * width, y)]));
    }
}
