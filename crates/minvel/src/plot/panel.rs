//! The frame of a plot with two axes: grid, ticks, numbers, labels, title.

use super::axis::{Axis, Ruler};
use super::scene::{Anchor, Area, Paint, SMALL, Scene, Stroke, TEXT, text_width};

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

/// Draws the frame inside `area`; the numbers given are those it must show.
pub fn frame(scene: &mut Scene, area: Area, title: &str, (x, xs): (&Axis, &[f64]), (y, ys): (&Axis, &[f64])) -> Panel {
    let top = if title.is_empty() { 10.0 } else { TITLE };
    let inner = area.inside(0.0, top, 14.0, BELOW);
    let up = y.ruler(ys.iter().copied(), (inner.bottom(), inner.y));
    let up_ticks = up.ticks((inner.height / 40.0) as usize);
    let widest = up_ticks.iter().filter_map(|t| t.label.as_ref()).map(|l| text_width(l, SMALL)).fold(0.0, f64::max);
    let inner = inner.inside(widest + 34.0, 0.0, 0.0, 0.0);
    let across = x.ruler(xs.iter().copied(), (inner.x, inner.right()));

    for tick in across.ticks((inner.width / 60.0) as usize) {
        let (place, numbered) = (tick.place, tick.label.is_some());
        if let Some(label) = tick.label {
            scene.line(vec![(place, inner.y), (place, inner.bottom())], Stroke::new(Paint::Faint, 1.0));
            scene.text((place, inner.bottom() + 17.0), &label, SMALL, Anchor::Middle);
        }
        let length = if numbered { 5.0 } else { 3.0 };
        scene.line(vec![(place, inner.bottom()), (place, inner.bottom() - length)], Stroke::new(Paint::Ink, 1.0));
    }
    for tick in up_ticks {
        let (place, numbered) = (tick.place, tick.label.is_some());
        if let Some(label) = tick.label {
            scene.line(vec![(inner.x, place), (inner.right(), place)], Stroke::new(Paint::Faint, 1.0));
            scene.text((inner.x - 6.0, place + 0.36 * SMALL), &label, SMALL, Anchor::End);
        }
        let length = if numbered { 5.0 } else { 3.0 };
        scene.line(vec![(inner.x, place), (inner.x + length, place)], Stroke::new(Paint::Ink, 1.0));
    }
    scene.rectangle(inner, None, Some(Stroke::new(Paint::Ink, 1.0)));
    let (middle, centre) = inner.centre();
    scene.text((middle, inner.bottom() + 37.0), &x.label, TEXT, Anchor::Middle);
    scene.upward((area.x + 17.0, centre), &y.label, TEXT);
    if !title.is_empty() {
        scene.title((middle, area.y + 18.0), title);
    }
    Panel { area: inner, x: across, y: up }
}
