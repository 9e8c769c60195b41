//! Figures as data: what is shown is a value that can be stored; how it is drawn is apart.
//!
//! `plot` → [`scene::Scene`] (shapes in a plane) → SVG or PNG. A new kind of figure is one file with a struct that can be
//! laid out, and one variant of [`Plot`]. **Checked by** tests/plot.rs.

mod axis;
pub mod colour;
mod font;
mod lines;
mod mollweide;
mod panel;
mod png;
mod polar;
pub mod scene;
mod series;
mod svg;

pub use axis::{Axis, Scale};
pub use lines::{Guide, Lines};
pub use mollweide::{Map, Maps};
pub use polar::{Curve, Polar};
pub use series::{Dash, Point, Series};
pub use svg::{Theme, escape};

use scene::{Area, Scene};
use serde::{Deserialize, Serialize};

/// Width of a figure, in pixels of a page.
pub const WIDTH: f64 = 800.0;

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Plot {
    /// Curves over an axis, with bands and guides.
    Lines(Lines),
    /// Densities around a circle.
    Polar(Polar),
    /// Maps of the sphere with one scale of colours.
    Maps(Maps),
    /// Several figures side by side.
    Row {
        /// From left to right.
        plots: Vec<Plot>,
    },
}

impl Plot {
    /// Whether the font of the pictures can write a character.
    pub fn can_write(c: char) -> bool {
        font::has(c)
    }

    /// The figure as shapes, 800 pixels wide.
    pub fn scene(&self) -> Scene {
        let mut scene = Scene::new(WIDTH, self.height(WIDTH));
        let area = Area { x: 0.0, y: 0.0, width: scene.width, height: scene.height };
        self.draw(&mut scene, area);
        scene
    }

    /// The figure as a file of scalable graphics.
    pub fn svg(&self, theme: Theme) -> String {
        svg::render(&self.scene(), theme)
    }

    /// The figure as pixels, so many for each pixel of the page.
    pub fn png(&self, scale: f64) -> Vec<u8> {
        png::render(&self.scene(), scale)
    }

    fn height(&self, width: f64) -> f64 {
        match self {
            Plot::Lines(lines) => lines.height(width),
            Plot::Polar(polar) => polar.height(width),
            Plot::Maps(maps) => maps.height(width),
            Plot::Row { plots } => plots.iter().map(|p| p.height(width / plots.len() as f64)).fold(0.0, f64::max),
        }
    }

    fn draw(&self, scene: &mut Scene, area: Area) {
        match self {
            Plot::Lines(lines) => lines.draw(scene, area, 0.0),
            Plot::Polar(polar) => polar.draw(scene, area),
            Plot::Maps(maps) => maps.draw(scene, area),
            Plot::Row { plots } => {
                let names = |plot: &Plot| match plot {
                    Plot::Lines(lines) => lines.names(area.width / plots.len() as f64),
                    _ => 0.0,
                };
                let tallest = plots.iter().map(names).fold(0.0, f64::max);
                for (plot, part) in plots.iter().zip(area.columns(plots.len())) {
                    match plot {
                        Plot::Lines(lines) => lines.draw(scene, part, tallest),
                        plot => plot.draw(scene, part),
                    }
                }
            }
        }
    }
}
