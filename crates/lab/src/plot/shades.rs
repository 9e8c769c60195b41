//! Numbers as colours: one scale, its bar with numbers and unit, and marks at levels worth knowing.

use super::axis::Axis;
use super::colour;
use super::scene::{Anchor, Area, Paint, Raster, SMALL, Scene, Stroke, TEXT, text_width};
use serde::{Deserialize, Serialize};

/// A level of the scale that has a name, as `uniform` or `90 %`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// The number.
    pub at: f64,
    /// What it is.
    pub label: String,
    /// Whether a white line of this height is drawn over the colours.
    #[serde(default = "drawn")]
    pub line: bool,
}

fn drawn() -> bool {
    true
}

/// What the colours of a figure measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shades {
    /// Quantity and unit of the colours.
    pub label: String,
    /// From where to where, beyond which colours stay the same; all numbers if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Levels with names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
}

/// Height of a bar with its numbers and label, from its upper edge.
pub(super) const BAR: f64 = 52.0;
/// Room above a bar for the names of marks.
pub(super) const MARKS: f64 = 18.0;

impl Shades {
    /// A scale over all numbers.
    pub fn new(label: &str) -> Self {
        Shades { label: label.to_string(), range: None, marks: vec![] }
    }

    /// Heights at which lines are drawn.
    pub(super) fn lines(&self) -> impl Iterator<Item = f64> {
        self.marks.iter().filter(|mark| mark.line).map(|mark| mark.at)
    }

    /// Lowest and highest number shown.
    pub(super) fn bounds(&self, values: impl Iterator<Item = f64>) -> [f64; 2] {
        let fold = |[low, high]: [f64; 2], v: f64| [low.min(v), high.max(v)];
        self.range.unwrap_or_else(|| {
            let [low, high] = values.filter(|v| v.is_finite()).fold([f64::INFINITY, f64::NEG_INFINITY], fold);
            if low <= high { [low, high] } else { [0.0, 1.0] }
        })
    }

    /// Room above the bar.
    pub(super) fn above(&self) -> f64 {
        if self.marks.is_empty() { 0.0 } else { MARKS }
    }

    /// The bar in the middle of an area, `above()` below its upper edge.
    pub(super) fn draw(&self, scene: &mut Scene, area: Area, [low, high]: [f64; 2]) {
        let width = 0.6 * area.width;
        let bar = Area { x: area.centre().0 - 0.5 * width, y: area.y + self.above(), width, height: 12.0 };
        let pixels = (0..256).map(|i| opaque(colour::sequential(i as f64 / 255.0))).collect();
        scene.picture(Raster { area: bar, columns: 256, rows: 1, pixels });
        scene.rectangle(bar, None, Some(Stroke::new(Paint::Ink, 0.8)));
        let ruler = Axis::linear(&self.label).over(low, high).ruler(std::iter::empty(), (bar.x, bar.right()));
        for tick in ruler.ticks(7) {
            let foot = bar.bottom() + 4.0;
            scene.line(vec![(tick.place, bar.bottom()), (tick.place, foot)], Stroke::new(Paint::Ink, 1.0));
            scene.text((tick.place, bar.bottom() + 17.0), tick.label.as_deref().unwrap_or(""), SMALL, Anchor::Middle);
        }
        scene.text((bar.centre().0, bar.bottom() + 35.0), &self.label, TEXT, Anchor::Middle);
        let mut marks: Vec<&Mark> = self.marks.iter().filter(|m| ruler.shows(m.at)).collect();
        // Levels with contours come first: names that would overlap an earlier one are left out.
        marks.sort_by(|a, b| b.line.cmp(&a.line).then(a.at.total_cmp(&b.at)));
        let mut taken: Vec<(f64, f64)> = vec![];
        for mark in marks {
            let (at, half) = (ruler.place(mark.at), 0.5 * text_width(&mark.label, SMALL) + 3.0);
            scene.line(vec![(at, bar.y - 5.0), (at, bar.bottom())], Stroke::new(Paint::Ink, 1.4));
            if taken.iter().all(|(from, to)| at + half < *from || at - half > *to) {
                scene.text((at, bar.y - 8.0), &mark.label, SMALL, Anchor::Middle);
                taken.push((at - half, at + half));
            }
        }
    }
}

/// The colour of a number between bounds; clear where there is none.
pub(super) fn shade(value: f64, [low, high]: [f64; 2]) -> [u8; 4] {
    let share = if high > low { (value - low) / (high - low) } else { 0.5 };
    if value.is_nan() { [255, 255, 255, 0] } else { opaque(colour::sequential(share)) }
}

fn opaque([r, g, b]: colour::Rgb) -> [u8; 4] {
    [r, g, b, 255]
}

/// Pixels of an area, two for each of the page: `row` takes the place down from 0 to 1, and what it gives the place to the right.
pub(super) fn picture<R: Fn(f64) -> f64>(area: Area, bounds: [f64; 2], row: impl Fn(f64) -> R) -> Raster {
    let (columns, rows) = ((2.0 * area.width) as usize, (2.0 * area.height) as usize);
    let mut pixels = Vec::with_capacity(columns * rows);
    for i in 0..rows {
        let value = row((i as f64 + 0.5) / rows as f64);
        pixels.extend((0..columns).map(|j| shade(value((j as f64 + 0.5) / columns as f64), bounds)));
    }
    Raster { area, columns, rows, pixels }
}

/// Lines of equal height over colours.
pub(super) const CONTOUR: Stroke = Stroke { paint: Paint::Glass([255; 3], 225), width: 1.2, dashes: vec![] };

/// White lines over colours: grids (faint) and coasts.
pub(super) fn white(opacity: u8, width: f64) -> Stroke {
    Stroke::new(Paint::Glass([255; 3], opacity), width)
}
