//! Numbers with their errors, one below another: a model beside what it is compared with.
//!
//! **Checked by** tests/plot_fields.rs.

use super::axis::Axis;
use super::colour;
use super::panel::TITLE;
use super::scene::{Anchor, Area, Paint, SMALL, Scene, Stroke, TEXT, text_width};
use crate::eval::Estimate;
use crate::report::format;
use serde::{Deserialize, Serialize};

/// A number and whose it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// The method, which decides its colour.
    pub method: String,
    /// The number with its error.
    pub value: Estimate,
}

impl Entry {
    /// A number with a name.
    pub fn new(name: &str, method: &str, value: Estimate) -> Self {
        Entry { name: name.to_string(), method: method.to_string(), value }
    }
}

/// Numbers as dots, with whiskers over 95 % of normal errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// Title; may be empty.
    pub title: String,
    /// What the numbers are, with their unit.
    pub x: Axis,
    /// From top to bottom.
    pub entries: Vec<Entry>,
}

const ROW: f64 = 30.0;
const BELOW: f64 = 46.0;
/// Standard errors to each side that a whisker covers.
const WHISKER: f64 = 1.96;

impl Ranking {
    fn top(&self) -> f64 {
        if self.title.is_empty() { 10.0 } else { TITLE + 4.0 }
    }

    pub(super) fn height(&self, _width: f64) -> f64 {
        self.top() + ROW * self.entries.len() as f64 + BELOW
    }

    pub(super) fn draw(&self, scene: &mut Scene, area: Area) {
        let texts: Vec<String> =
            self.entries.iter().map(|e| format::with_error(e.value.mean, Some(e.value.std_error))).collect();
        let widest = |mut widths: std::vec::IntoIter<f64>| widths.by_ref().fold(0.0, f64::max);
        let names = widest(self.entries.iter().map(|e| text_width(&e.name, TEXT)).collect::<Vec<_>>().into_iter());
        let numbers = widest(texts.iter().map(|t| text_width(t, SMALL)).collect::<Vec<_>>().into_iter());
        let rows = ROW * self.entries.len() as f64;
        let frame = Area { height: rows, ..area.inside(names + 24.0, self.top(), numbers + 28.0, 0.0) };
        let ends = |e: &Entry| {
            let (low, high) = e.value.interval(WHISKER);
            let known = low.is_finite() && high.is_finite();
            if known { [low, high] } else { [e.value.mean; 2] }
        };
        let ruler = self.x.ruler(self.entries.iter().flat_map(ends), (frame.x, frame.right()));
        for tick in ruler.ticks((frame.width / 70.0) as usize) {
            let x = tick.place;
            scene.line(vec![(x, frame.y), (x, frame.bottom())], Stroke::new(Paint::Faint, 1.0));
            scene.line(vec![(x, frame.bottom()), (x, frame.bottom() - 5.0)], Stroke::new(Paint::Ink, 1.0));
            scene.text((x, frame.bottom() + 17.0), tick.label.as_deref().unwrap_or(""), SMALL, Anchor::Middle);
        }
        for (i, (entry, text)) in self.entries.iter().zip(&texts).enumerate() {
            let y = frame.y + (i as f64 + 0.5) * ROW;
            scene.text((frame.x - 10.0, y + 0.36 * TEXT), &entry.name, TEXT, Anchor::End);
            scene.text((area.right() - 14.0, y + 0.36 * SMALL), text, SMALL, Anchor::End);
            if !entry.value.mean.is_finite() {
                continue;
            }
            let paint = Paint::Solid(colour::of_method(&entry.method));
            let [low, high] = ends(entry).map(|x| ruler.place(x));
            scene.line(vec![(low, y), (high, y)], Stroke::new(paint, 2.0));
            for end in [low, high] {
                scene.line(vec![(end, y - 4.5), (end, y + 4.5)], Stroke::new(paint, 2.0));
            }
            scene.circle((ruler.place(entry.value.mean), y), 4.6, Some(paint), None);
        }
        scene.rectangle(frame, None, Some(Stroke::new(Paint::Ink, 1.0)));
        scene.text((frame.centre().0, frame.bottom() + 37.0), &self.x.label, TEXT, Anchor::Middle);
        if !self.title.is_empty() {
            scene.title((frame.centre().0, area.y + 20.0), &self.title);
        }
    }
}
