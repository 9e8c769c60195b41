//! What a trained auto-encoder makes of images, to be looked at.

use super::{ImageModels, Variant};
use crate::plot::{Figure, ImageGrid, Plot};
use minvel::Error;
use minvel::autoencoder::{Codec, Reading, bytes};
use minvel::manifold::Space;
use minvel::train::Context;
use serde::{Deserialize, Serialize};

/// What the first seed makes of images.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Pictures {
    /// Images of the prior.
    samples: Album,
    /// Test images and what becomes of them, in turn.
    reconstructions: Album,
    /// Geodesics between codes of test images, a path after another.
    paths: Album,
    /// The whole latent sphere, where it is S².
    sphere: Option<Album>,
}

/// Images as bytes, written in hexadecimal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Album(String);

impl Album {
    fn of(pixels: &[u8]) -> Self {
        Album(pixels.iter().map(|p| format!("{p:02x}")).collect())
    }

    fn bytes(&self) -> Vec<u8> {
        (0..self.0.len() / 2).map(|k| u8::from_str_radix(&self.0[2 * k..][..2], 16).unwrap_or(0)).collect()
    }

    /// A grid of so many columns.
    fn plot(&self, image: [usize; 3], columns: usize) -> Plot {
        Plot::Grid(ImageGrid::new(image, columns, self.bytes()))
    }
}

/// Samples, reconstructions, paths and points of a path that a report shows.
const SAMPLES: usize = 64;
const PAIRS: usize = 16;
const PATHS: usize = 5;
const POINTS: usize = 12;
/// Columns of their figures: the most at which a pixel becomes a square of 3 × 3.
const COLUMNS: usize = 16;
/// Longitudes and latitudes of the map of S².
const GLOBE: (usize, usize) = (24, 13);

/// Points of S² on a grid of longitude and of height, so that all stand for the same area.
fn globe() -> Vec<f32> {
    let (columns, rows) = GLOBE;
    let point = |k: usize| {
        let longitude = ((k % columns) as f64 + 0.5) / columns as f64 * std::f64::consts::TAU;
        let height = 1.0 - 2.0 * ((k / columns) as f64 + 0.5) / rows as f64;
        let across = (1.0 - height * height).sqrt();
        [across * longitude.cos(), across * longitude.sin(), height].map(|x| x as f32)
    };
    (0..columns * rows).flat_map(point).collect()
}

impl Pictures {
    /// Of a trained cell: all that is drawn can be had again from its model by the same seed.
    pub fn of(
        cell: &Variant,
        codec: &mut Codec,
        image_models: &ImageModels,
        seed: u64,
        context: &Context,
    ) -> Result<Self, Error> {
        let pixels = cell.pixels();
        let shown = bytes(&image_models.shown(PAIRS, codec.model.decoder.likelihood)?);
        let codes = codec.encode(&shown, Reading::Draw(0), seed, context)?;
        let again = codec.decode(&codes, context)?;
        let pairs: Vec<u8> =
            shown.chunks(pixels).zip(again.chunks(pixels)).flat_map(|(a, b)| [a, b].concat()).collect();
        let paths = PATHS.min(shown.len() / pixels / 2);
        let (from, to) = shown.split_at(paths * pixels);
        let is_sphere = cell.settings.latent.space() == Some(Space::Sphere(2));
        let sphere = is_sphere.then(|| codec.decode(&globe(), context)).transpose()?;
        Ok(Pictures {
            samples: Album::of(&codec.sample(SAMPLES, seed, context)?),
            reconstructions: Album::of(&pairs),
            paths: Album::of(&codec.paths([from, &to[..paths * pixels]], POINTS, seed, context)?),
            sphere: sphere.as_deref().map(Album::of),
        })
    }

    /// As figures of a report.
    pub fn figures(&self, cell: &Variant) -> Vec<Figure> {
        let Pictures { samples, reconstructions, paths, sphere } = self;
        let Variant { name, title, image, .. } = cell;
        let figure = |what: &str, caption: String, plot: Plot| Figure::new(&format!("{name}-{what}"), &caption, plot);
        let mut figures = vec![
            figure(
                "samples",
                format!("{title}: mean pixels decoded from codes of the prior."),
                samples.plot(*image, COLUMNS),
            ),
            figure(
                "reconstructions",
                format!("{title}: test images and, to the right of each, its reconstruction."),
                reconstructions.plot(*image, COLUMNS),
            ),
        ];
        // a single test image has no other to go to
        if !paths.0.is_empty() {
            let caption =
                format!("{title}: along the geodesic between the codes of two test images, one path per row.");
            figures.push(figure("paths", caption, paths.plot(*image, POINTS)));
        }
        if let Some(sphere) = sphere {
            let caption = format!("{title}: the whole latent sphere, by longitude and height (equal areas).");
            figures.push(figure("sphere", caption, sphere.plot(*image, GLOBE.0)));
        }
        figures
    }
}
