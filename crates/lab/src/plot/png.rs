//! Scenes as pixels.

use super::font;
use super::scene::{Anchor, Area, Dots, Graphic, Paint, Raster, Scene, Stroke, Text};
use tiny_skia::{
    FillRule, FilterQuality, LineCap, LineJoin, Path, PathBuilder, Pixmap, PixmapPaint, PremultipliedColorU8,
    StrokeDash, Transform,
};

/// The whole figure on white, `scale` pixels for each of the page.
pub fn render(scene: &Scene, scale: f64) -> Vec<u8> {
    let pixels = |x: f64| (x * scale).ceil() as u32;
    let mut page = Pixmap::new(pixels(scene.width), pixels(scene.height)).expect("a figure has a size");
    page.fill(tiny_skia::Color::WHITE);
    let zoom = Transform::from_scale(scale as f32, scale as f32);
    for graphic in &scene.graphics {
        match graphic {
            Graphic::Path { points, closed, fill, stroke } => {
                if let Some(path) = path(points, *closed) {
                    draw(&mut page, &path, *fill, stroke.as_ref(), zoom);
                }
            }
            Graphic::Text(text) => letters(&mut page, text, zoom),
            Graphic::Dots(dots) => discs(&mut page, dots, zoom),
            Graphic::Raster(picture) => paste(&mut page, picture, zoom),
        }
    }
    page.encode_png().expect("memory takes any picture")
}

/// Pixels as a file.
pub fn encode(columns: usize, rows: usize, pixels: &[[u8; 4]]) -> Vec<u8> {
    pixmap(columns, rows, pixels).encode_png().expect("memory takes any picture")
}

fn pixmap(columns: usize, rows: usize, pixels: &[[u8; 4]]) -> Pixmap {
    let mut map = Pixmap::new(columns as u32, rows as u32).expect("a picture has a size");
    for (out, [r, g, b, a]) in map.pixels_mut().iter_mut().zip(pixels) {
        let times = |x: u8| (x as u16 * *a as u16 / 255) as u8;
        *out = PremultipliedColorU8::from_rgba(times(*r), times(*g), times(*b), *a).expect("at most the opacity");
    }
    map
}

fn path(points: &[(f64, f64)], closed: bool) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for (i, (x, y)) in points.iter().enumerate() {
        if i == 0 { builder.move_to(*x as f32, *y as f32) } else { builder.line_to(*x as f32, *y as f32) }
    }
    if closed {
        builder.close();
    }
    builder.finish()
}

fn draw(page: &mut Pixmap, path: &Path, fill: Option<Paint>, stroke: Option<&Stroke>, zoom: Transform) {
    if let Some(fill) = fill {
        page.fill_path(path, &brush(fill), FillRule::Winding, zoom, None);
    }
    if let Some(stroke) = stroke {
        let dashes: Vec<f32> = stroke.dashes.iter().map(|x| *x as f32).collect();
        let style = tiny_skia::Stroke {
            width: stroke.width as f32,
            line_cap: LineCap::Butt,
            line_join: LineJoin::Round,
            dash: StrokeDash::new(dashes, 0.0),
            ..Default::default()
        };
        page.stroke_path(path, &brush(stroke.paint), &style, zoom, None);
    }
}

/// Width of the rim of letters, as a share of their height.
pub const RIM: f64 = 0.22;

fn discs(page: &mut Pixmap, dots: &Dots, zoom: Transform) {
    let brush = brush(Paint::Glass(dots.colour, dots.opacity));
    for &(x, y) in &dots.at {
        let disc = PathBuilder::from_circle(x as f32, y as f32, dots.radius as f32);
        if let Some(disc) = disc {
            page.fill_path(&disc, &brush, FillRule::Winding, zoom, None);
        }
    }
}

/// Discs as pixels on nothing, `scale` for each of the page.
pub fn stippled(dots: &Dots, scale: f64) -> Raster {
    let bounds = |pick: fn(&(f64, f64)) -> f64| {
        let (low, high) = dots.at.iter().map(pick).fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(x), h.max(x)));
        ((low - dots.radius).floor(), (high + dots.radius).ceil())
    };
    let ((left, right), (top, bottom)) = (bounds(|p| p.0), bounds(|p| p.1));
    let area = Area { x: left, y: top, width: right - left, height: bottom - top };
    let (columns, rows) = ((scale * area.width) as usize, (scale * area.height) as usize);
    let mut page = Pixmap::new(columns as u32, rows as u32).expect("discs have a size");
    let zoom = Transform::from_translate(-left as f32, -top as f32).post_scale(scale as f32, scale as f32);
    discs(&mut page, dots, zoom);
    let plain = |p: &PremultipliedColorU8| {
        let c = p.demultiply();
        [c.red(), c.green(), c.blue(), c.alpha()]
    };
    Raster { area, columns, rows, pixels: page.pixels().iter().map(plain).collect() }
}

fn letters(page: &mut Pixmap, text: &Text, zoom: Transform) {
    let Some(outline) = font::outline(&text.text, text.size, text.bold) else { return };
    let width = font::width(&text.text, text.size, text.bold);
    let back = match text.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => 0.5 * width,
        Anchor::End => width,
    };
    let (x, y) = (text.at.0 as f32, text.at.1 as f32);
    let turn = if text.upward { Transform::from_rotate(-90.0) } else { Transform::identity() };
    let place = Transform::from_translate(-back as f32, 0.0).post_concat(turn).post_translate(x, y).post_concat(zoom);
    if let Some(rim) = text.rim {
        let width = (RIM * text.size) as f32;
        let style = tiny_skia::Stroke { width, line_join: LineJoin::Round, ..Default::default() };
        page.stroke_path(&outline, &brush(rim), &style, place, None);
    }
    page.fill_path(&outline, &brush(text.paint), FillRule::Winding, place, None);
}

fn paste(page: &mut Pixmap, picture: &Raster, zoom: Transform) {
    let map = pixmap(picture.columns, picture.rows, &picture.pixels);
    let area = picture.area;
    let (sx, sy) = (area.width / picture.columns as f64, area.height / picture.rows as f64);
    let place =
        Transform::from_scale(sx as f32, sy as f32).post_translate(area.x as f32, area.y as f32).post_concat(zoom);
    let paint = PixmapPaint { quality: FilterQuality::Bilinear, ..Default::default() };
    page.draw_pixmap(0, 0, map.as_ref(), &paint, place, None);
}

fn brush(paint: Paint) -> tiny_skia::Paint<'static> {
    let ([r, g, b], a) = match paint {
        Paint::Ink => ([0x20; 3], 255),
        Paint::Soft => ([0x20; 3], 166),
        Paint::Faint => ([0x20; 3], 38),
        Paint::Solid(rgb) => (rgb, 255),
        Paint::Veil(rgb) => (rgb, 51),
        Paint::Glass(rgb, opacity) => (rgb, opacity),
    };
    let mut brush = tiny_skia::Paint { anti_alias: true, ..Default::default() };
    brush.set_color_rgba8(r, g, b, a);
    brush
}
