//! Numbers with their errors, one below another: a model beside what it is compared with.
//!
//! **Checked by** tests/lab/plot_fields.rs.

use super::axis::Axis;
use super::colour;
use super::panel::TITLE;
use super::scene::{Anchor, Area, Paint, SMALL, Scene, Stroke, TEXT, shortened, text_width};
use minvel::estimate::{Estimate, format};
use serde::{Deserialize, Serialize};

/// A number and whose it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// Its name.
    pub name: String,
    /// The method, which decides its colour.
    pub method: String,
    /// The number with its error.
    pub value: Estimate,
}

impl Ranked {
    /// A number with a name.
    pub fn new(name: &str, method: &str, value: Estimate) -> Self {
        Ranked { name: name.to_string(), method: method.to_string(), value }
    }
}

/// Numbers as dots, with whiskers over 95 % of normal errors. Those beyond a range that the axis was given are arrows at
/// its end, so that one that is far away does not squeeze the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// Title; may be empty.
    pub title: String,
    /// What the numbers are, with their unit.
    pub x: Axis,
    /// From top to bottom.
    pub entries: Vec<Ranked>,
    /// A number to compare with, as 0 for differences: an upright line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<f64>,
}

const ROW: f64 = 30.0;
const BELOW: f64 = 46.0;
/// Standard errors to each side that a whisker covers.
const WHISKER: f64 = 1.96;

impl Ranking {
    /// Numbers without one to compare with.
    pub fn new(title: &str, x: Axis, entries: Vec<Ranked>) -> Self {
        Ranking { title: title.to_string(), x, entries, reference: None }
    }

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
        let most = 0.42 * area.width;
        let short: Vec<String> =
            self.entries.iter().map(|e| shortened(&e.name, most, |t| text_width(t, TEXT))).collect();
        let names = widest(short.iter().map(|name| text_width(name, TEXT)).collect::<Vec<_>>().into_iter());
        let numbers = widest(texts.iter().map(|t| text_width(t, SMALL)).collect::<Vec<_>>().into_iter());
        let rows = ROW * self.entries.len() as f64;
        let frame = Area { height: rows, ..area.inside(names + 24.0, self.top(), numbers + 28.0, 0.0) };
        let ends = |e: &Ranked| {
            let (low, high) = e.value.interval(WHISKER);
            let known = low.is_finite() && high.is_finite();
            if known { [low, high] } else { [e.value.mean; 2] }
        };
        let shown = self.entries.iter().flat_map(ends).chain(self.reference);
        let ruler = self.x.ruler(shown, (frame.x, frame.right()));
        for tick in ruler.ticks((frame.width / 70.0) as usize) {
            let x = tick.place;
            scene.line(vec![(x, frame.y), (x, frame.bottom())], Stroke::new(Paint::Faint, 1.0));
            scene.line(vec![(x, frame.bottom()), (x, frame.bottom() - 5.0)], Stroke::new(Paint::Ink, 1.0));
            scene.text((x, frame.bottom() + 17.0), tick.label.as_deref().unwrap_or(""), SMALL, Anchor::Middle);
        }
        if let Some(at) = self.reference.filter(|at| ruler.shows(*at)).map(|at| ruler.place(at)) {
            scene.line(vec![(at, frame.y), (at, frame.bottom())], Stroke::new(Paint::Ink, 1.2).dashed(&[4.0, 3.0]));
        }
        for (i, ((entry, text), name)) in self.entries.iter().zip(&texts).zip(&short).enumerate() {
            let y = frame.y + (i as f64 + 0.5) * ROW;
            scene.text((frame.x - 10.0, y + 0.36 * TEXT), name, TEXT, Anchor::End);
            scene.text((area.right() - 14.0, y + 0.36 * SMALL), text, SMALL, Anchor::End);
            if !entry.value.mean.is_finite() {
                continue;
            }
            let paint = Paint::Solid(colour::of_method(&entry.method));
            let mean = ruler.place(entry.value.mean);
            if !ruler.shows(entry.value.mean) {
                arrow(scene, if mean > frame.x { (frame.right(), 1.0) } else { (frame.x, -1.0) }, y, paint);
                continue;
            }
            let [low, high] = ends(entry).map(|x| ruler.place(x).clamp(frame.x, frame.right()));
            scene.line(vec![(low, y), (high, y)], Stroke::new(paint, 2.0));
            for end in [low, high] {
                scene.line(vec![(end, y - 4.5), (end, y + 4.5)], Stroke::new(paint, 2.0));
            }
            scene.circle((mean, y), 4.6, Some(paint), None);
        }
        scene.rectangle(frame, None, Some(Stroke::new(Paint::Ink, 1.0)));
        let middle = frame.centre().0;
        let room = 2.0 * (area.right() - middle).min(middle - area.x) - 8.0;
        let label = shortened(&self.x.label, room, |t| text_width(t, TEXT));
        scene.text((middle, frame.bottom() + 37.0), &label, TEXT, Anchor::Middle);
        if !self.title.is_empty() {
            scene.title((middle, area.y + 20.0), room, &self.title);
        }
    }
}

/// An arrow that points out of the frame, at the end of the axis.
fn arrow(scene: &mut Scene, (x, sign): (f64, f64), y: f64, paint: Paint) {
    let at = |along: f64, up: f64| (x - sign * along, y + up);
    scene.line(vec![at(26.0, 0.0), at(8.0, 0.0)], Stroke::new(paint, 2.0));
    scene.region(vec![at(2.0, 0.0), at(11.0, -5.0), at(11.0, 5.0)], Some(paint), None);
}
