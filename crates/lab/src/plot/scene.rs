//! Graphics in a plane: what figures are made of, before they become SVG or pixels.

use super::colour::Rgb;
use super::font;

/// A rectangle; y points down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Area {
    /// Right edge.
    pub fn right(&self) -> f64 {
        self.x + self.width
    }

    /// Lower edge.
    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }

    /// Middle.
    pub fn centre(&self) -> (f64, f64) {
        (self.x + 0.5 * self.width, self.y + 0.5 * self.height)
    }

    /// Smaller by margins at the left, top, right and bottom.
    pub fn inside(&self, left: f64, top: f64, right: f64, bottom: f64) -> Area {
        Area { x: self.x + left, y: self.y + top, width: self.width - left - right, height: self.height - top - bottom }
    }

    /// Equal parts from left to right.
    pub fn columns(&self, count: usize) -> impl Iterator<Item = Area> {
        let (all, width) = (*self, self.width / count as f64);
        (0..count).map(move |i| Area { x: all.x + i as f64 * width, width, ..all })
    }
}

/// With what a graphic is painted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Paint {
    /// The colour of text: dark on a light page, light on a dark one.
    Ink,
    /// The same, faint: grids.
    Faint,
    /// The same, halfway: guides and small print.
    Soft,
    /// A colour.
    Solid(Rgb),
    /// A colour one can see through: bands.
    Veil(Rgb),
    /// A colour with an opacity, of 255: coasts and dots over other colours.
    Glass(Rgb, u8),
}

/// A line's paint, width and dashes.
#[derive(Clone, Debug, PartialEq)]
pub struct Stroke {
    /// Its paint.
    pub paint: Paint,
    /// Its width.
    pub width: f64,
    /// Lengths of dashes and gaps; empty for a solid line.
    pub dashes: Vec<f64>,
}

impl Stroke {
    /// A solid line.
    pub fn new(paint: Paint, width: f64) -> Self {
        Stroke { paint, width, dashes: vec![] }
    }

    /// The same with dashes.
    pub fn dashed(self, dashes: &[f64]) -> Self {
        Stroke { dashes: dashes.to_vec(), ..self }
    }
}

/// Where text stands relative to its point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Anchor {
    /// The point is at its beginning.
    Start,
    /// The point is in its middle.
    Middle,
    /// The point is at its end.
    End,
}

/// A line of text; its point is on the base line.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// The point.
    pub at: (f64, f64),
    /// What it says.
    pub text: String,
    /// Height of the type.
    pub size: f64,
    /// Where it stands.
    pub anchor: Anchor,
    /// Whether it is bold.
    pub bold: bool,
    /// Whether it is turned to run upwards.
    pub upward: bool,
    /// Its paint.
    pub paint: Paint,
    /// Paint of a rim around the letters, for text over colours.
    pub rim: Option<Paint>,
}

/// A picture of pixels with opacity, drawn into an area.
#[derive(Clone, Debug, PartialEq)]
pub struct Raster {
    /// Where.
    pub area: Area,
    /// Pixels from left to right.
    pub columns: usize,
    /// Pixels from top to bottom.
    pub rows: usize,
    /// Red, green, blue, opacity; row after row.
    pub pixels: Vec<[u8; 4]>,
}

/// Many small discs of one colour; where they lie over each other the colour gets denser.
#[derive(Clone, Debug, PartialEq)]
pub struct Dots {
    /// Their centres.
    pub at: Vec<(f64, f64)>,
    /// Their radius.
    pub radius: f64,
    /// Their colour.
    pub colour: Rgb,
    /// Opacity of one, of 255.
    pub opacity: u8,
}

impl Dots {
    /// Discs whose size and opacity fall with their number, so that a thousand and ten thousand both show their shape;
    /// in a panel whose side is `side`.
    pub fn new(at: Vec<(f64, f64)>, colour: Rgb, side: f64) -> Self {
        let crowd = at.len() as f64 * (400.0 / side).powi(2);
        let radius = (11.0 * crowd.max(1.0).powf(-0.28)).clamp(0.9, 2.4);
        let opacity = (5.0 * crowd.max(1.0).powf(-0.32)).clamp(0.28, 0.8);
        Dots { at, radius, colour, opacity: (255.0 * opacity) as u8 }
    }
}

/// One thing in a scene.
#[derive(Clone, Debug, PartialEq)]
pub enum Graphic {
    /// Points joined by straight lines.
    Path {
        /// The points.
        points: Vec<(f64, f64)>,
        /// Whether the last is joined to the first.
        closed: bool,
        /// Paint of the inside.
        fill: Option<Paint>,
        /// The line.
        stroke: Option<Stroke>,
    },
    /// Text.
    Text(Text),
    /// Discs.
    Dots(Dots),
    /// Pixels.
    Raster(Raster),
}

/// Shapes on a page, later ones over earlier ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Width of the page.
    pub width: f64,
    /// Height of the page.
    pub height: f64,
    /// What is on it.
    pub graphics: Vec<Graphic>,
}

/// Height of ordinary text in figures.
pub const TEXT: f64 = 13.0;
/// Height of the numbers at ticks.
pub const SMALL: f64 = 12.0;

impl Scene {
    /// An empty page.
    pub fn new(width: f64, height: f64) -> Self {
        Scene { width, height, graphics: vec![] }
    }

    /// A line through points.
    pub fn line(&mut self, points: Vec<(f64, f64)>, stroke: Stroke) {
        self.graphics.push(Graphic::Path { points, closed: false, fill: None, stroke: Some(stroke) });
    }

    /// A closed region.
    pub fn region(&mut self, points: Vec<(f64, f64)>, fill: Option<Paint>, stroke: Option<Stroke>) {
        self.graphics.push(Graphic::Path { points, closed: true, fill, stroke });
    }

    /// A rectangle.
    pub fn rectangle(&mut self, area: Area, fill: Option<Paint>, stroke: Option<Stroke>) {
        let Area { x, y, .. } = area;
        let corners = vec![(x, y), (area.right(), y), (area.right(), area.bottom()), (x, area.bottom())];
        self.region(corners, fill, stroke);
    }

    /// A circle, or its outline.
    pub fn circle(&mut self, (x, y): (f64, f64), radius: f64, fill: Option<Paint>, stroke: Option<Stroke>) {
        // sides of about a pixel
        let sides = (std::f64::consts::TAU * radius).ceil().clamp(16.0, 720.0) as usize;
        let corner = |i: usize| (std::f64::consts::TAU * i as f64 / sides as f64).sin_cos();
        let points = (0..sides).map(corner).map(|(sin, cos)| (x + radius * cos, y + radius * sin)).collect();
        self.region(points, fill, stroke);
    }

    /// Text in ink.
    pub fn text(&mut self, at: (f64, f64), text: &str, size: f64, anchor: Anchor) {
        self.painted(at, text, size, anchor, Paint::Ink);
    }

    fn painted(&mut self, at: (f64, f64), text: &str, size: f64, anchor: Anchor, paint: Paint) {
        let (text, bold, upward, rim) = (text.to_string(), false, false, None);
        self.graphics.push(Graphic::Text(Text { at, text, size, anchor, bold, upward, paint, rim }));
    }

    /// A title: bold, centred, and shortened to the room that it has around its point.
    pub fn title(&mut self, at: (f64, f64), room: f64, text: &str) {
        let size = TEXT + 1.0;
        let (text, paint, anchor) = (shortened(text, room, |t| font::width(t, size, true)), Paint::Ink, Anchor::Middle);
        self.graphics.push(Graphic::Text(Text { at, text, size, anchor, bold: true, upward: false, paint, rim: None }));
    }

    /// Text that runs upwards, centred.
    pub fn upward(&mut self, at: (f64, f64), text: &str, size: f64) {
        let (text, paint, anchor) = (text.to_string(), Paint::Ink, Anchor::Middle);
        self.graphics.push(Graphic::Text(Text { at, text, size, anchor, bold: false, upward: true, paint, rim: None }));
    }

    /// Text over colours, centred: white with a dark rim, the same on every page.
    pub fn inlay(&mut self, at: (f64, f64), text: &str, size: f64) {
        let (text, paint, anchor) = (text.to_string(), Paint::Solid([255; 3]), Anchor::Middle);
        let rim = Some(Paint::Glass([0x10, 0x20, 0x40], 190));
        self.graphics.push(Graphic::Text(Text { at, text, size, anchor, bold: false, upward: false, paint, rim }));
    }

    /// Discs.
    pub fn dots(&mut self, dots: Dots) {
        if !dots.at.is_empty() {
            self.graphics.push(Graphic::Dots(dots));
        }
    }

    /// Pixels.
    pub fn picture(&mut self, picture: Raster) {
        self.graphics.push(Graphic::Raster(picture));
    }

    /// Text in softer ink.
    pub fn remark(&mut self, at: (f64, f64), text: &str, size: f64, anchor: Anchor) {
        self.painted(at, text, size, anchor, Paint::Soft);
    }
}

/// A text that is no wider than its room: the middle of a longer one is left out, since names differ at both ends.
pub fn shortened(text: &str, room: f64, width: impl Fn(&str) -> f64) -> String {
    if width(text) <= room {
        return text.to_string();
    }
    let letters: Vec<char> = text.chars().collect();
    let keep = |count: usize| {
        let (head, tail) = (count.div_ceil(2), count / 2);
        let first: String = letters[..head].iter().collect();
        let last: String = letters[letters.len() - tail..].iter().collect();
        format!("{}…{}", first.trim_end(), last.trim_start())
    };
    (0..letters.len()).rev().map(keep).find(|text| width(text) <= room).unwrap_or_default()
}

/// Width of a line of text.
pub fn text_width(text: &str, size: f64) -> f64 {
    font::width(text, size, false)
}
