//! Figures as data: what is shown is a value that can be stored; how it is drawn is apart.
//!
//! `plot` → [`scene::Scene`] (shapes in a plane) → SVG or PNG. A new kind of figure is one file with a struct that can be
//! laid out, and one variant of [`Plot`]. **Checked by** tests/lab/plot.rs, tests/lab/plot_*.rs.

mod axis;
mod bars;
mod base64;
mod cloud;
pub mod coastline;
pub mod colour;
pub mod density;
mod disk;
mod field;
mod figure;
mod font;
mod grid;
mod heat;
pub mod learning;
mod lines;
mod maps;
mod matrix;
pub mod mollweide;
mod panel;
mod png;
mod polar;
mod ranking;
mod rose;
pub mod scene;
mod series;
mod shades;
mod svg;

pub use axis::{Axis, Scale};
pub use bars::{Bins, Histogram};
pub use cloud::Cloud;
pub use disk::{Disk, geodesic};
pub use field::{Contour, Field, levels};
pub use figure::{Drawn, Figure};
pub use grid::ImageGrid;
pub use heat::Heat;
pub use lines::{Guide, Lines};
pub use maps::{Map, Maps};
pub use matrix::{Group, Matrix};
pub use polar::{Polar, PolarCurve};
pub use ranking::{Ranked, Ranking};
pub use rose::{Bearings, Rose};
pub use series::{Dash, Point, Series};
pub use shades::{Mark, Shades};
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
    /// A function of the plane as colours.
    Heat(Heat),
    /// A function of the hyperbolic plane as colours.
    Disk(Disk),
    /// Directions in bins around a circle.
    Rose(Rose),
    /// Numbers in bins, with densities.
    Histogram(Histogram),
    /// Every coordinate against every other.
    Matrix(Matrix),
    /// Numbers with errors, one below another.
    Ranking(Ranking),
    /// Small images in rows and columns.
    Grid(ImageGrid),
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
        let scene = self.scene();
        svg::render(&scene, &svg::pictures(&scene), theme)
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
            Plot::Heat(heat) => heat.height(width),
            Plot::Disk(disk) => disk.height(width),
            Plot::Rose(rose) => rose.height(width),
            Plot::Histogram(histogram) => histogram.height(width),
            Plot::Matrix(matrix) => matrix.height(width),
            Plot::Ranking(ranking) => ranking.height(width),
            Plot::Grid(grid) => grid.height(width),
            Plot::Row { plots } => plots.iter().map(|p| p.height(width / plots.len() as f64)).fold(0.0, f64::max),
        }
    }

    fn draw(&self, scene: &mut Scene, area: Area) {
        match self {
            Plot::Lines(lines) => lines.draw(scene, area, 0.0),
            Plot::Polar(polar) => polar.draw(scene, area),
            Plot::Maps(maps) => maps.draw(scene, area),
            Plot::Heat(heat) => heat.draw(scene, area),
            Plot::Disk(disk) => disk.draw(scene, area),
            Plot::Rose(rose) => rose.draw(scene, area),
            Plot::Histogram(histogram) => histogram.draw(scene, area),
            Plot::Matrix(matrix) => matrix.draw(scene, area),
            Plot::Ranking(ranking) => ranking.draw(scene, area),
            Plot::Grid(grid) => grid.draw(scene, area),
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
