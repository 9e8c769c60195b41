//! The font of figures, DejaVu Sans, carried along: widths for the layout, outlines for pixels.

use std::sync::LazyLock;
use tiny_skia::PathBuilder;
use ttf_parser::{Face, OutlineBuilder};

static REGULAR: LazyLock<Face> = LazyLock::new(|| Face::parse(dejavu::sans::regular(), 0).expect("a sound font"));
static BOLD: LazyLock<Face> = LazyLock::new(|| Face::parse(dejavu::sans::bold(), 0).expect("a sound font"));

fn face(bold: bool) -> &'static Face<'static> {
    if bold { &BOLD } else { &REGULAR }
}

/// Pixels for each unit of the font, at a height of type.
fn unit(face: &Face, size: f64) -> f64 {
    size / face.units_per_em() as f64
}

/// Glyphs and their places along the line; a character without glyph becomes the font's empty box.
fn glyphs(text: &str, bold: bool) -> impl Iterator<Item = (ttf_parser::GlyphId, f64)> {
    let face = face(bold);
    text.chars().scan(0.0, move |along, c| {
        let glyph = face.glyph_index(c).unwrap_or(ttf_parser::GlyphId(0));
        let at = *along;
        *along += face.glyph_hor_advance(glyph).unwrap_or(0) as f64;
        Some((glyph, at))
    })
}

/// Width of a line of text.
pub fn width(text: &str, size: f64, bold: bool) -> f64 {
    let face = face(bold);
    let advance = |c| face.glyph_index(c).and_then(|g| face.glyph_hor_advance(g)).unwrap_or(0) as f64;
    unit(face, size) * text.chars().map(advance).sum::<f64>()
}

/// Whether the font can write it.
pub fn has(c: char) -> bool {
    REGULAR.glyph_index(c).is_some()
}

/// The outline of a line of text that begins at the origin, y down.
pub fn outline(text: &str, size: f64, bold: bool) -> Option<tiny_skia::Path> {
    let face = face(bold);
    let mut pen = Pen { builder: PathBuilder::new(), unit: unit(face, size), along: 0.0 };
    for (glyph, along) in glyphs(text, bold) {
        pen.along = along;
        face.outline_glyph(glyph, &mut pen);
    }
    pen.builder.finish()
}

struct Pen {
    builder: PathBuilder,
    unit: f64,
    along: f64,
}

impl Pen {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (((self.along + x as f64) * self.unit) as f32, (-(y as f64) * self.unit) as f32)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.builder.move_to(x, y);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.builder.line_to(x, y);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.builder.quad_to(x1, y1, x, y);
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.builder.cubic_to(x1, y1, x2, y2, x, y);
    }
    fn close(&mut self) {
        self.builder.close();
    }
}
