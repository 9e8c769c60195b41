//! Curves with bands, and the legend that names them.

use super::colour;
use super::scene::{Anchor, Area, Dots, Paint, Scene, Stroke, TEXT, shortened, text_width};
use serde::{Deserialize, Serialize};

/// A point of a curve and, where known, the band around it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up.
    #[serde(with = "minvel::estimate::number")]
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
    /// Whether it is one of many that stand behind the others: thin and pale.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pale: bool,
    /// Its points from left to right.
    pub points: Vec<Point>,
}

/// Standard errors above and below that a band covers: 95 % for normal errors.
const BAND: f64 = 1.96;

impl Series {
    /// A curve without points yet.
    pub fn new(name: &str, method: &str) -> Self {
        Series { name: name.to_string(), method: method.to_string(), dash: Dash::Solid, pale: false, points: vec![] }
    }

    /// The same with a broken line.
    pub fn dashed(self, dash: Dash) -> Self {
        Series { dash, ..self }
    }

    /// The same, thin and pale.
    pub fn paled(self) -> Self {
        Series { pale: true, ..self }
    }

    /// The same with numbers and their 95 % bands.
    pub fn estimates(mut self, points: impl IntoIterator<Item = (f64, minvel::estimate::Estimate)>) -> Self {
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
        let colour = colour::of_method(&self.method);
        let stroke = match self.pale {
            true => Stroke::new(Paint::Glass(colour, 130), width.min(1.2)),
            false => Stroke::new(Paint::Solid(colour), width),
        };
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

/// What stands before a name in a legend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sample {
    /// A line, perhaps with a mark.
    Line {
        /// Whether points are marked.
        marked: bool,
    },
    /// A filled rectangle: histograms.
    Patch,
    /// Dots.
    Dots,
}

/// An entry of a legend.
pub(super) struct Key {
    sample: Sample,
    series: Series,
}

impl Key {
    /// A curve.
    pub fn line(series: &Series, marked: bool) -> Self {
        let bare = Series { points: vec![], ..series.clone() };
        Key { sample: Sample::Line { marked }, series: bare }
    }

    /// Anything else.
    pub fn new(sample: Sample, name: &str, method: &str) -> Self {
        Key { sample, series: Series::new(name, method) }
    }

    fn draw(&self, scene: &mut Scene, (x, y): (f64, f64), room: f64) {
        let colour = colour::of_method(&self.series.method);
        match self.sample {
            Sample::Line { marked } => {
                scene.line(vec![(x, y), (x + SAMPLE, y)], self.series.stroke(2.0));
                if marked {
                    self.series.marker(scene, (x + 0.5 * SAMPLE, y), 3.2);
                }
            }
            Sample::Patch => {
                let patch = Area { x: x + 2.0, y: y - 6.0, width: SAMPLE - 4.0, height: 12.0 };
                scene.rectangle(patch, Some(Paint::Glass(colour, PATCH)), Some(Stroke::new(Paint::Solid(colour), 0.8)));
            }
            Sample::Dots => {
                let at = [(5.0, 3.0), (12.0, -3.5), (20.0, 2.0)].map(|(a, b)| (x + a, y + b));
                scene.dots(Dots { at: at.to_vec(), radius: 2.6, colour, opacity: 215 });
            }
        }
        let name = shortened(&self.series.name, room - SAMPLE - 6.0, |t| text_width(t, TEXT));
        scene.text((x + SAMPLE + 6.0, y + 0.36 * TEXT), &name, TEXT, Anchor::Start);
    }
}

/// Opacity of the bars of histograms, of 255.
pub(super) const PATCH: u8 = 90;

/// Entries of a legend in rows of at most a given width: (index, place in its row), and the width of each row.
fn rows(keys: &[Key], width: f64) -> Vec<(Vec<(usize, f64)>, f64)> {
    let mut rows: Vec<(Vec<(usize, f64)>, f64)> = vec![];
    for (i, key) in keys.iter().enumerate() {
        let need = (SAMPLE + 6.0 + text_width(&key.series.name, TEXT)).min(width);
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
pub(super) fn legend_height(keys: &[Key], width: f64) -> f64 {
    ROW * rows(keys, width).len() as f64
}

/// A legend in rows from the top of an area, each in the middle.
pub(super) fn legend(scene: &mut Scene, keys: &[Key], area: Area) {
    for (r, (row, width)) in rows(keys, area.width).iter().enumerate() {
        let y = area.y + (r as f64 + 0.5) * ROW;
        for &(i, offset) in row {
            keys[i].draw(scene, (area.x + 0.5 * (area.width - width) + offset, y), area.width);
        }
    }
}
