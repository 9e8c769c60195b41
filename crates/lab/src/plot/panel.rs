//! The frame of a plot with two axes: grid, ticks, numbers, labels, title.

use super::axis::{Axis, Ruler, Tick};
use super::scene::{Anchor, Area, Paint, SMALL, Scene, Stroke, TEXT, shortened, text_width};

/// Height of a title.
pub const TITLE: f64 = 26.0;
/// Room under the frame for numbers and label.
pub const BELOW: f64 = 44.0;

/// A frame that is ready for curves.
pub struct Panel {
    /// Inside of the frame.
    pub area: Area,
    /// Across.
    pub x: Ruler,
    /// Up.
    pub y: Ruler,
}

/// Where the ticks of a frame are.
#[derive(Clone, Copy, PartialEq)]
pub enum Ticks {
    /// Inside, with a grid: for curves.
    Inside,
    /// Outside, without a grid: around colours.
    Outside,
}

/// Finds the room for a frame inside `area`; the numbers given are those it must show.
pub fn measure(area: Area, title: &str, (x, xs): (&Axis, &[f64]), (y, ys): (&Axis, &[f64])) -> Panel {
    let top = if title.is_empty() { 10.0 } else { TITLE };
    let inner = area.inside(0.0, top, 14.0, BELOW);
    let up = y.ruler(ys.iter().copied(), (inner.bottom(), inner.y));
    let numbers = upward_ticks(&up, inner);
    let widest = numbers.iter().filter_map(|t| t.label.as_ref()).map(|l| text_width(l, SMALL)).fold(0.0, f64::max);
    let inner = inner.inside(widest + 34.0, 0.0, 0.0, 0.0);
    let across = x.ruler(xs.iter().copied(), (inner.x, inner.right()));
    Panel { area: inner, x: across, y: up }
}

fn upward_ticks(ruler: &Ruler, area: Area) -> Vec<Tick> {
    ruler.ticks((area.height / 40.0) as usize)
}

/// Draws the frame inside `area`; the numbers given are those it must show.
pub fn frame(scene: &mut Scene, area: Area, title: &str, (x, xs): (&Axis, &[f64]), (y, ys): (&Axis, &[f64])) -> Panel {
    let panel = measure(area, title, (x, xs), (y, ys));
    panel.rule(scene, Ticks::Inside);
    panel.name(scene, area, title, (&x.label, &y.label));
    panel
}

impl Panel {
    /// Ticks with their numbers, and the frame.
    pub fn rule(&self, scene: &mut Scene, ticks: Ticks) {
        let inner = self.area;
        let grid = ticks == Ticks::Inside;
        let (sign, clear) = if grid { (1.0, 0.0) } else { (-1.0, 3.0) };
        for tick in self.x.ticks((inner.width / 60.0) as usize) {
            let (place, numbered) = (tick.place, tick.label.is_some());
            if let Some(label) = tick.label {
                if grid {
                    scene.line(vec![(place, inner.y), (place, inner.bottom())], Stroke::new(Paint::Faint, 1.0));
                }
                scene.text((place, inner.bottom() + 17.0 + clear), &label, SMALL, Anchor::Middle);
            }
            let length = sign * if numbered { 5.0 } else { 3.0 };
            scene.line(vec![(place, inner.bottom()), (place, inner.bottom() - length)], Stroke::new(Paint::Ink, 1.0));
        }
        for tick in upward_ticks(&self.y, inner) {
            let (place, numbered) = (tick.place, tick.label.is_some());
            if let Some(label) = tick.label {
                if grid {
                    scene.line(vec![(inner.x, place), (inner.right(), place)], Stroke::new(Paint::Faint, 1.0));
                }
                scene.text((inner.x - 6.0 - clear, place + 0.36 * SMALL), &label, SMALL, Anchor::End);
            }
            let length = sign * if numbered { 5.0 } else { 3.0 };
            scene.line(vec![(inner.x, place), (inner.x + length, place)], Stroke::new(Paint::Ink, 1.0));
        }
        scene.rectangle(inner, None, Some(Stroke::new(Paint::Ink, 1.0)));
    }

    /// Labels of the axes, and the title.
    pub fn name(&self, scene: &mut Scene, area: Area, title: &str, (x, y): (&str, &str)) {
        let (middle, centre) = self.area.centre();
        let fits = |text: &str, room: f64| shortened(text, room, |t| text_width(t, TEXT));
        let room = 2.0 * (area.right() - middle).min(middle - area.x) - 8.0;
        scene.text((middle, self.area.bottom() + 38.0), &fits(x, room), TEXT, Anchor::Middle);
        scene.upward((area.x + 17.0, centre), &fits(y, self.area.height + 40.0), TEXT);
        if !title.is_empty() {
            scene.title((middle, area.y + 18.0), room, title);
        }
    }

    /// Whether the frame shows a point.
    pub fn shows(&self, x: f64, y: f64) -> bool {
        self.x.shows(x) && self.y.shows(y)
    }

    /// Where a point lies.
    pub fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.place(x), self.y.place(y))
    }
}
