//! What a plotted grid of images consists of.

use minvel_lab::plot::Plot;
use minvel_lab::plot::scene::{Raster, Shape};

/// Its only picture.
pub fn picture(plot: &Plot) -> Raster {
    let mut pictures = plot.scene().shapes.into_iter().filter_map(|shape| match shape {
        Shape::Raster(picture) => Some(picture),
        _ => None,
    });
    let only = pictures.next().expect("a grid is a picture");
    assert!(pictures.next().is_none(), "a grid is one picture");
    only
}
