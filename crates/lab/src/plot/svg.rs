//! Scenes as SVG.

use super::base64;
use super::png::{self, RIM};
use super::scene::{Anchor, Dots, Graphic, Paint, Raster, Scene, Stroke, Text};
use std::fmt::Write;

/// What the page is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// A file of its own: dark ink on white.
    Paper,
    /// Part of a page: the ink of the page on nothing.
    Inline,
}

/// What is drawn as pixels, for each graphic of a scene; empty for all others. It is the same in every theme.
pub fn pictures(scene: &Scene) -> Vec<String> {
    let picture = |graphic: &Graphic| match graphic {
        Graphic::Raster(picture) => pixels(picture),
        Graphic::Dots(dots) if dots.at.len() > DISCS => pixels(&png::stippled(dots, 2.0)),
        Graphic::Dots(_) | Graphic::Path { .. } | Graphic::Text(_) => String::new(),
    };
    scene.graphics.iter().map(picture).collect()
}

/// The whole figure, with its pictures.
pub fn render(scene: &Scene, pictures: &[String], theme: Theme) -> String {
    let (width, height) = (number(scene.width), number(scene.height));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"'DejaVu Sans', Verdana, sans-serif\" role=\"img\">\n"
    );
    if theme == Theme::Paper {
        let _ = writeln!(out, "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>");
    }
    for (graphic, picture) in scene.graphics.iter().zip(pictures) {
        match graphic {
            Graphic::Path { points, closed, fill, stroke } => {
                out.push_str(&path(points, *closed, *fill, stroke.as_ref(), theme));
            }
            Graphic::Text(text) => out.push_str(&letters(text, theme)),
            Graphic::Dots(dots) => out.push_str(&discs(dots, picture)),
            Graphic::Raster(_) => out.push_str(picture),
        }
        out.push('\n');
    }
    out.push_str("</svg>\n");
    out
}

fn path(points: &[(f64, f64)], closed: bool, fill: Option<Paint>, stroke: Option<&Stroke>, theme: Theme) -> String {
    let mut d = String::new();
    for (i, (x, y)) in points.iter().enumerate() {
        let _ = write!(d, "{}{} {}", if i == 0 { "M" } else { "L" }, number(*x), number(*y));
    }
    if closed {
        d.push('Z');
    }
    let fill = fill.map_or("fill=\"none\"".to_string(), |p| paint(p, "fill", theme));
    let stroke = stroke.map_or(String::new(), |s| {
        let dashes: Vec<String> = s.dashes.iter().map(|x| number(*x)).collect();
        let dashes =
            if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", dashes.join(" ")) };
        let width = number(s.width);
        format!(" {} stroke-width=\"{width}\" stroke-linejoin=\"round\"{dashes}", paint(s.paint, "stroke", theme))
    });
    format!("<path d=\"{d}\" {fill}{stroke}/>")
}

fn letters(text: &Text, theme: Theme) -> String {
    let anchor = match text.anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    let (x, y) = (number(text.at.0), number(text.at.1));
    let turn = if text.upward { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
    let weight = if text.bold { " font-weight=\"bold\"" } else { "" };
    let (fill, size) = (paint(text.paint, "fill", theme), number(text.size));
    let words = escape(&text.text);
    let rim = text.rim.map_or(String::new(), |rim| {
        let width = number(RIM * text.size);
        format!(
            " {} stroke-width=\"{width}\" stroke-linejoin=\"round\" paint-order=\"stroke\"",
            paint(rim, "stroke", theme)
        )
    });
    format!(
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" text-anchor=\"{anchor}\"{weight}{turn} {fill}{rim}>{words}</text>"
    )
}

/// More discs than this become pixels: a page of ten thousand of them would be slow.
const DISCS: usize = 600;

fn discs(dots: &Dots, picture: &str) -> String {
    let [r, g, b] = dots.colour;
    if dots.at.len() > DISCS {
        // The class lets a dark page lighten the colour, as it does for other graphics by their attributes.
        return format!("<g class=\"dots-{r:02x}{g:02x}{b:02x}\">{picture}</g>");
    }
    let opacity = number(dots.opacity as f64 / 255.0);
    let mut out = format!("<g fill=\"#{r:02x}{g:02x}{b:02x}\" fill-opacity=\"{opacity}\">");
    for (x, y) in &dots.at {
        let _ = write!(out, "<circle cx=\"{}\" cy=\"{}\" r=\"{}\"/>", number(*x), number(*y), number(dots.radius));
    }
    out.push_str("</g>");
    out
}

fn pixels(picture: &Raster) -> String {
    let area = picture.area;
    let data = base64::encode(&png::encode(picture.columns, picture.rows, &picture.pixels));
    let (x, y, width, height) = (number(area.x), number(area.y), number(area.width), number(area.height));
    format!(
        "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" preserveAspectRatio=\"none\" \
         href=\"data:image/png;base64,{data}\"/>"
    )
}

/// An attribute `fill` or `stroke`, with its opacity.
fn paint(paint: Paint, attribute: &str, theme: Theme) -> String {
    let ink = if theme == Theme::Paper { "#202020" } else { "currentColor" };
    match paint {
        Paint::Ink => format!("{attribute}=\"{ink}\""),
        Paint::Soft => format!("{attribute}=\"{ink}\" {attribute}-opacity=\"0.65\""),
        Paint::Faint => format!("{attribute}=\"{ink}\" {attribute}-opacity=\"0.15\""),
        Paint::Solid([r, g, b]) => format!("{attribute}=\"#{r:02x}{g:02x}{b:02x}\""),
        Paint::Glass([r, g, b], opacity) => {
            let opacity = number(opacity as f64 / 255.0);
            format!("{attribute}=\"#{r:02x}{g:02x}{b:02x}\" {attribute}-opacity=\"{opacity}\"")
        }
        Paint::Veil([r, g, b]) => format!("{attribute}=\"#{r:02x}{g:02x}{b:02x}\" {attribute}-opacity=\"0.2\""),
    }
}

/// Two places after the point are more than a screen shows.
fn number(x: f64) -> String {
    let text = format!("{x:.2}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".to_string() } else { short.to_string() }
}

/// Text for XML and HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
