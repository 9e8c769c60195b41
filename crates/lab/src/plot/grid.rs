//! Grids of small images: samples, reconstructions beside what they are of, ways from one image to another.
//!
//! **Conventions.** Images are `[height, width, channels]` with 1 channel (grey) or 3; row after row from the upper left.
//! A pixel of an image becomes a square of whole pixels of the picture, which has two for each of the page: no blur.
//! **Checked by** tests/lab/plot_grid.rs.

use super::base64;
use super::panel::TITLE;
use super::scene::{Anchor, Area, Raster, SMALL, Scene, text_width};
use serde::{Deserialize, Serialize};

/// Images in rows and columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImageGrid {
    /// Title; may be empty.
    #[serde(default)]
    pub title: String,
    /// Height, width and channels of an image.
    pub image: [usize; 3],
    /// Images in a row.
    pub columns: usize,
    /// Images one after another.
    #[serde(with = "base64")]
    pub pixels: Vec<u8>,
    /// What stands above the columns; may be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<String>,
    /// What stands left of the rows; may be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
}

/// Pixels of the picture for each of the page.
const FINE: f64 = 2.0;
/// Pixels of the picture between two images.
const GAP: usize = 4;
/// The largest square that a pixel becomes, in pixels of the picture.
const LARGEST: usize = 8;
/// Height of a line of captions.
const CAPTION: f64 = 20.0;
/// Room around the grid.
const MARGIN: f64 = 8.0;

impl ImageGrid {
    /// Images of bytes, one after another.
    pub fn new(image: [usize; 3], columns: usize, pixels: Vec<u8>) -> Self {
        let d = image.iter().product::<usize>();
        assert!(image[2] == 1 || image[2] == 3, "grid: images of {} channels", image[2]);
        assert!(d > 0 && columns > 0 && !pixels.is_empty(), "grid: no images of {image:?} in {columns} columns");
        assert!(pixels.len().is_multiple_of(d), "grid: {} bytes are not images of {image:?}", pixels.len());
        ImageGrid { title: String::new(), image, columns, pixels, above: vec![], beside: vec![] }
    }

    /// Images of intensities; those outside [0, 1] are shown as black and white.
    pub fn of(image: [usize; 3], columns: usize, intensities: &[f32]) -> Self {
        ImageGrid::new(image, columns, intensities.iter().map(|x| (255.0 * x.clamp(0.0, 1.0)).round() as u8).collect())
    }

    /// Rows of images in turn with rows of what was made of them.
    pub fn paired(image: [usize; 3], columns: usize, first: &[f32], second: &[f32]) -> Self {
        let row = columns * image.iter().product::<usize>();
        assert!(
            first.len() == second.len() && first.len().is_multiple_of(row),
            "grid: {} and {} numbers are not pairs of rows of {columns} images",
            first.len(),
            second.len()
        );
        let all: Vec<f32> = first.chunks(row).zip(second.chunks(row)).flat_map(|(a, b)| [a, b].concat()).collect();
        ImageGrid::of(image, columns, &all)
    }

    /// The same with a title.
    pub fn titled(self, title: &str) -> Self {
        ImageGrid { title: title.into(), ..self }
    }

    /// The same with captions above the columns.
    pub fn above(self, captions: impl IntoIterator<Item = impl Into<String>>) -> Self {
        ImageGrid { above: captions.into_iter().map(Into::into).collect(), ..self }
    }

    /// The same with captions left of the rows.
    pub fn beside(self, captions: impl IntoIterator<Item = impl Into<String>>) -> Self {
        ImageGrid { beside: captions.into_iter().map(Into::into).collect(), ..self }
    }

    fn rows(&self) -> usize {
        self.pixels.len().div_ceil(self.columns * self.image.iter().product::<usize>())
    }

    /// Room at the left for the captions.
    fn left(&self) -> f64 {
        let widest = self.beside.iter().map(|c| text_width(c, SMALL)).fold(0.0, f64::max);
        if widest > 0.0 { (widest + 8.0).ceil() } else { 0.0 }
    }

    /// Room at the top for title and captions.
    fn top(&self) -> f64 {
        let captions = if self.above.is_empty() { 0.0 } else { CAPTION };
        MARGIN + captions + if self.title.is_empty() { 0.0 } else { TITLE }
    }

    /// Side of the square that a pixel becomes, in pixels of the picture; 0 if the images must shrink.
    fn zoom(&self, width: f64) -> usize {
        let room = (FINE * (width - self.left() - 2.0 * MARGIN)) as usize;
        (room.saturating_sub((self.columns - 1) * GAP) / (self.columns * self.image[1])).min(LARGEST)
    }

    /// Columns and rows of the picture.
    fn size(&self, zoom: usize) -> [usize; 2] {
        let [height, width, _] = self.image;
        [(self.columns, width), (self.rows(), height)].map(|(n, side)| n * side * zoom + (n - 1) * GAP)
    }

    /// How much the picture must shrink to fit.
    fn shrink(&self, width: f64) -> f64 {
        let natural = self.size(self.zoom(width).max(1))[0] as f64 / FINE;
        ((width - self.left() - 2.0 * MARGIN) / natural).min(1.0)
    }

    pub(super) fn height(&self, width: f64) -> f64 {
        let rows = self.size(self.zoom(width).max(1))[1] as f64;
        self.top() + (self.shrink(width) * rows / FINE).ceil() + MARGIN
    }

    pub(super) fn draw(&self, scene: &mut Scene, area: Area) {
        let (zoom, shrink) = (self.zoom(area.width).max(1), self.shrink(area.width));
        let [columns, rows] = self.size(zoom);
        let (width, height) = (shrink * columns as f64 / FINE, shrink * rows as f64 / FINE);
        let spare = area.width - self.left() - width;
        let at = Area { x: (area.x + self.left() + 0.5 * spare).floor(), y: area.y + self.top(), width, height };
        if !self.title.is_empty() {
            scene.title(
                (at.centre().0, area.y + 18.0),
                2.0 * (area.right() - at.centre().0).min(at.centre().0 - area.x),
                &self.title,
            );
        }
        let [h, w, _] = self.image;
        let cell = |side: usize| shrink * (side * zoom + GAP) as f64 / FINE;
        let middle = |side: usize| 0.5 * shrink * (side * zoom) as f64 / FINE;
        for (i, caption) in self.above.iter().take(self.columns).enumerate() {
            scene.text((at.x + i as f64 * cell(w) + middle(w), at.y - 6.0), caption, SMALL, Anchor::Middle);
        }
        for (i, caption) in self.beside.iter().take(self.rows()).enumerate() {
            let y = at.y + i as f64 * cell(h) + middle(h) + 0.36 * SMALL;
            scene.text((at.x - 8.0, y), caption, SMALL, Anchor::End);
        }
        let pixels = (0..rows * columns).map(|k| self.colour(zoom, k % columns, k / columns)).collect();
        scene.picture(Raster { area: at, columns, rows, pixels });
    }

    /// The colour of a pixel of the picture; clear between images and where there is none.
    fn colour(&self, zoom: usize, x: usize, y: usize) -> [u8; 4] {
        let [h, w, c] = self.image;
        let ((i, x), (j, y)) =
            ((x / (w * zoom + GAP), x % (w * zoom + GAP)), (y / (h * zoom + GAP), y % (h * zoom + GAP)));
        let (index, x, y) = (j * self.columns + i, x / zoom, y / zoom);
        match self.pixels.get(index * h * w * c..(index + 1) * h * w * c) {
            Some(image) if x < w && y < h => {
                let channel = |k: usize| image[(y * w + x) * c + k.min(c - 1)];
                [channel(0), channel(1), channel(2), 255]
            }
            _ => [255, 255, 255, 0],
        }
    }
}
