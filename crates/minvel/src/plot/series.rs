//! Curves with bands, and the legend that names them.

use super::colour;
use super::scene::{Anchor, Area, Paint, Scene, Stroke, TEXT, text_width};
use serde::{Deserialize, Serialize};

/// A point of a curve and, where known, the band around it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up.
    #[serde(with = "crate::report::number")]
    pub y: f64,
    /// Lower and upper border of the band.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub band: Option<[f64; 2]>,
}

/// How a line is broken: methods differ in colour, their variants in this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dash {
    /// Not at all.
    #[default]
    Solid,
    /// Long dashes.
    Dashed,
    /// Dots.
    Dotted,
}

/// A curve: who it belongs to, and its points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The method, which decides its colour ([`colour::METHODS`]).
    pub method: String,
    /// The variant, which decides how the line is broken.
    #[serde(default)]
    pub dash: Dash,
    /// Its points from left to right.
    pub points: Vec<Point>,
}

/// Standard errors above and below that a band covers: 95 % for normal errors.
const BAND: f64 = 1.96;

impl Series {
    /// A curve without points yet.
    pub fn new(name: &str, method: &str) -> Self {
        Series { name: name.to_string(), method: method.to_string(), dash: Dash::Solid, points: vec![] }
    }

    /// The same with a broken line.
    pub fn dashed(self, dash: Dash) -> Self {
        Series { dash, ..self }
    }

    /// The same with numbers and their 95 % bands.
    pub fn estimates(mut self, points: impl IntoIterator<Item = (f64, crate::eval::Estimate)>) -> Self {
        self.points.extend(points.into_iter().map(|(x, y)| {
            let (low, high) = y.interval(BAND);
            let band = (low.is_finite() && high.is_finite()).then_some([low, high]);
            Point { x, y: y.mean, band }
        }));
        self
    }

    /// The same with plain points.
    pub fn values(mut self, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.points.extend(points.into_iter().map(|(x, y)| Point { x, y, band: None }));
        self
    }

    pub(super) fn stroke(&self, width: f64) -> Stroke {
        let stroke = Stroke::new(Paint::Solid(colour::of_method(&self.method)), width);
        match self.dash {
            Dash::Solid => stroke,
            Dash::Dashed => stroke.dashed(&[7.0, 4.0]),
            Dash::Dotted => stroke.dashed(&[2.0, 3.0]),
        }
    }

    /// A mark at a point: round, square or pointed, as the line is solid, dashed or dotted.
    pub(super) fn marker(&self, scene: &mut Scene, (x, y): (f64, f64), size: f64) {
        let fill = Some(Paint::Solid(colour::of_method(&self.method)));
        let half = 0.92 * size;
        match self.dash {
            Dash::Solid => scene.circle((x, y), size, fill, None),
            Dash::Dashed => {
                scene.rectangle(Area { x: x - half, y: y - half, width: 2.0 * half, height: 2.0 * half }, fill, None);
            }
            Dash::Dotted => {
                let (up, down) = (1.25 * size, 0.9 * size);
                scene.region(vec![(x, y - up), (x + 1.2 * size, y + down), (x - 1.2 * size, y + down)], fill, None);
            }
        }
    }
}

const SAMPLE: f64 = 26.0;
const ROW: f64 = 19.0;
const GAP: f64 = 18.0;

/// Entries of a legend in rows of at most a given width: (index, place in its row), and the width of each row.
fn rows(entries: &[&Series], width: f64) -> Vec<(Vec<(usize, f64)>, f64)> {
    let mut rows: Vec<(Vec<(usize, f64)>, f64)> = vec![];
    for (i, entry) in entries.iter().enumerate() {
        let need = SAMPLE + 6.0 + text_width(&entry.name, TEXT);
        match rows.last_mut() {
            Some((row, used)) if *used + GAP + need <= width => {
                row.push((i, *used + GAP));
                *used += GAP + need;
            }
            _ => rows.push((vec![(i, 0.0)], need)),
        }
    }
    rows
}

/// Height of a legend.
pub(super) fn legend_height(entries: &[&Series], width: f64) -> f64 {
    ROW * rows(entries, width).len() as f64
}

/// A legend in rows from the top of an area, each in the middle.
pub(super) fn legend(scene: &mut Scene, entries: &[&Series], area: Area, markers: bool) {
    for (r, (row, width)) in rows(entries, area.width).iter().enumerate() {
        let y = area.y + (r as f64 + 0.5) * ROW;
        for &(i, offset) in row {
            let (entry, x) = (entries[i], area.x + 0.5 * (area.width - width) + offset);
            scene.line(vec![(x, y), (x + SAMPLE, y)], entry.stroke(2.0));
            if markers {
                entry.marker(scene, (x + 0.5 * SAMPLE, y), 3.2);
            }
            scene.text((x + SAMPLE + 6.0, y + 0.36 * TEXT), &entry.name, TEXT, Anchor::Start);
        }
    }
}
