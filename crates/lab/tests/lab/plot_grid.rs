//! Grids of images: every pixel where it should be.

use crate::support::grids::picture;
use minvel_lab::plot::scene::{Graphic, Text};
use minvel_lab::plot::{ImageGrid, Plot, Theme};
use tiny_skia::Pixmap;

/// Five images of 2 × 3 whose bytes are all different.
fn five() -> ImageGrid {
    ImageGrid::new([2, 3, 1], 3, (0..30).map(|i| 8 * i).collect())
}

fn texts(plot: &Plot) -> Vec<Text> {
    let text = |graphic| if let Graphic::Text(text) = graphic { Some(text) } else { None };
    plot.scene().graphics.into_iter().filter_map(text).collect()
}

#[test]
fn every_pixel_becomes_a_square_at_its_place() {
    let plot = Plot::Grid(five());
    let picture = picture(&plot);
    // squares of 8 and gaps of 4
    assert_eq!((picture.columns, picture.rows), (3 * 3 * 8 + 2 * 4, 2 * 2 * 8 + 4));
    let page = Pixmap::decode_png(&plot.png(2.0)).unwrap();
    let (left, top) = (2 * picture.area.x as usize, 2 * picture.area.y as usize);
    for (y, x) in (0..picture.rows).flat_map(|y| (0..picture.columns).map(move |x| (y, x))) {
        let ((column, x_in), (row, y_in)) = ((x / 28, x % 28), (y / 20, y % 20));
        let index = 3 * row + column;
        let shown = index < 5 && x_in < 24 && y_in < 16;
        let byte = (8 * (index * 6 + y_in / 8 * 3 + x_in / 8)) as u8;
        let expected = if shown { [byte, byte, byte, 255] } else { [255, 255, 255, 0] };
        assert_eq!(picture.pixels[y * picture.columns + x], expected, "({x}, {y})");
        // the PNG on white, without blur
        let pixel = page.pixel((left + x) as u32, (top + y) as u32).unwrap();
        let expected = if shown { byte } else { 255 };
        assert_eq!((pixel.red(), pixel.green(), pixel.blue()), (expected, expected, expected), "({x}, {y})");
    }
}

#[test]
fn colours_come_from_three_channels_and_intensities_are_cut() {
    let grid = ImageGrid::of([1, 2, 3], 1, &[1.5, 0.5, -0.1, 0.0, 0.0, 1.0]);
    let pixels = picture(&Plot::Grid(grid)).pixels;
    assert_eq!([pixels[0], pixels[8]], [[255, 128, 0, 255], [0, 0, 255, 255]]);
}

#[test]
fn pairs_stand_below_each_other_and_captions_beside_their_rows() {
    let (first, second) = ([0.0, 0.2, 0.4, 0.6], [1.0, 0.8, 0.6, 0.4]);
    let grid = ImageGrid::paired([1, 1, 1], 2, &first, &second);
    assert_eq!(grid.pixels, [0, 51, 255, 204, 102, 153, 153, 102]);
    let plot = Plot::Grid(grid.beside(["data", "model", "data", "model"]).above(["left", "right"]).titled("Pairs"));
    let (picture, texts) = (picture(&plot), texts(&plot));
    let at = |word: &str| texts.iter().filter(|t| t.text == word).map(|t| t.at).collect::<Vec<_>>();
    let (data, model) = (at("data"), at("model"));
    assert!(data[0].1 < model[0].1 && model[0].1 < data[1].1 && data[1].1 < model[1].1);
    assert!(data.iter().chain(&model).all(|p| p.0 < picture.area.x));
    assert!(at("left")[0].0 < at("right")[0].0 && at("left")[0].1 < picture.area.y);
    assert!(at("Pairs")[0].1 < at("left")[0].1);
}

#[test]
fn a_grid_fits_its_page_and_survives_a_report() {
    for (columns, count) in [(1, 1), (10, 100), (20, 400), (100, 300), (1000, 1000)] {
        let plot = Plot::Grid(ImageGrid::new([4, 4, 1], columns, vec![7; 16 * count]).beside(["a caption"]));
        let (scene, area) = (plot.scene(), picture(&plot).area);
        assert!(area.x >= 0.0 && area.right() <= scene.width, "{columns} columns: {area:?}");
        assert!(area.bottom() <= scene.height && scene.height < area.bottom() + 12.0, "{columns} columns");
    }
    let plot = Plot::Grid(five().titled("Five").above(["a"]));
    let text = serde_json::to_string(&plot).unwrap();
    assert_eq!(serde_json::from_str::<Plot>(&text).unwrap(), plot);
    let broken = text.replace("\"pixels\":\"AAg", "\"pixels\":\"!Ag");
    assert_ne!(broken, text);
    assert!(serde_json::from_str::<Plot>(&broken).is_err());
    assert!(plot.svg(Theme::Paper).contains("data:image/png;base64,iVBOR"));
}
