//! A figure with its name and caption, and its files.

use super::{Plot, Theme, png, svg};
use minvel::{Error, file};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Pixels of a PNG for each pixel of the page.
const SHARPNESS: f64 = 2.0;

/// A figure and what it shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name of its files, without ending.
    pub name: String,
    /// What one sees.
    pub caption: String,
    /// The figure as data.
    pub plot: Plot,
}

impl Figure {
    /// A figure.
    pub fn new(name: &str, caption: &str, plot: Plot) -> Self {
        Figure { name: name.to_string(), caption: caption.to_string(), plot }
    }

    /// Writes the figure as SVG and PNG; tells the paths.
    pub fn write(&self, folder: &Path) -> Result<[PathBuf; 2], Error> {
        self.drawn().write(folder, &self.name)
    }

    /// The figure in all its forms, from one scene; vectors and pixels at the same time.
    pub fn drawn(&self) -> Drawn {
        let scene = &self.plot.scene();
        std::thread::scope(|scope| {
            let png = scope.spawn(|| png::render(scene, SHARPNESS));
            let pictures = svg::pictures(scene);
            let [paper, inline] = [Theme::Paper, Theme::Inline].map(|theme| svg::render(scene, &pictures, theme));
            let png = png.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Drawn { paper, inline, png }
        })
    }
}

/// A figure as the files and the part of a page that it becomes.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The file of scalable graphics.
    pub paper: String,
    /// The same as a part of a page.
    pub inline: String,
    /// The file of pixels.
    pub png: Vec<u8>,
}

impl Drawn {
    /// Writes both files under a name; tells their paths.
    pub fn write(&self, folder: &Path, name: &str) -> Result<[PathBuf; 2], Error> {
        let paths = ["svg", "png"].map(|ending| folder.join(format!("{name}.{ending}")));
        file::write(&paths[0], self.paper.as_bytes())?;
        file::write(&paths[1], &self.png)?;
        Ok(paths)
    }
}
