//! A figure with its name and caption, and its files.

use super::{Plot, Theme};
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
        let paths = ["svg", "png"].map(|ending| folder.join(format!("{}.{ending}", self.name)));
        file::write(&paths[0], self.plot.svg(Theme::Paper).as_bytes())?;
        file::write(&paths[1], &self.plot.png(SHARPNESS))?;
        Ok(paths)
    }
}
