//! What a plotted grid of images consists of.

use minvel_lab::plot::Plot;
use minvel_lab::plot::scene::{Graphic, Raster};

/// Its only picture.
pub fn picture(plot: &Plot) -> Raster {
    let mut pictures = plot.scene().graphics.into_iter().filter_map(|graphic| match graphic {
        Graphic::Raster(picture) => Some(picture),
        _ => None,
    });
    let only = pictures.next().expect("a grid is a picture");
    assert!(pictures.next().is_none(), "a grid is one picture");
    only
}
