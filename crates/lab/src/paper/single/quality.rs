//! How good a trained auto-encoder is, in numbers that mean something by themselves.
//!
//! **Statement.** RMSE = √mean (x − x̂)² over the pixels of test images, in grey levels 0 … 255, x̂ the mean of p(x|z) for a code z of
//! the image; beside it the same for x̂ the mean training image. FID of samples against test images, by Inception.
//! **Error.** ± of the RMSE holds the scatter over test images and, where there are several, over seeds.
//! **Checked by** crates/cli/tests/program/pictures.rs.

use super::super::image_models::{ImageModels, Judging, Variant};
use crate::experiment::Runner;
use crate::fid::{FeatureMap, Fid, Grey, Inception};
use crate::report::Row;
use minvel::Error;
use minvel::autoencoder::{Likelihood, Reading, bytes};
use minvel::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// Test images that are reconstructed at most.
const MOST: usize = 2000;

/// Root mean squared errors per pixel.
#[derive(Serialize, Deserialize)]
struct Reconstruction {
    /// Test images.
    images: usize,
    error: Estimate,
    /// If every image were the mean training image.
    of_mean: Estimate,
}

/// The error of reconstructions of test images, as rows of the report.
pub(super) fn reconstruction(
    cell: &Variant,
    image_models: &ImageModels,
    (seed, seeds): (u64, usize),
    runner: &mut Runner,
) -> Result<Vec<Row>, Error> {
    let folder = runner.folder().to_path_buf();
    let found: Reconstruction = runner.unit("reconstruction", |context| {
        let pixels = cell.image.iter().product::<usize>();
        let likelihood = cell.model().decoder.likelihood;
        let shown = bytes(&image_models.shown(MOST, likelihood)?);
        let mut squares = vec![];
        for replica in 0..seeds {
            let mut codec = cell.codec(&folder, replica)?;
            let codes = codec.encode(&shown, Reading::Draw(0), seed, context)?;
            let again = codec.decode(&codes, context)?;
            let pairs = shown.chunks(pixels).zip(again.chunks(pixels));
            squares.push(
                pairs.map(|(a, b)| squared(a.iter().zip(b).map(|(a, b)| f64::from(*a) - f64::from(*b)))).collect(),
            );
            context.go_on()?;
        }
        let mean = mean_image(image_models.train()?, pixels);
        let plain = shown.chunks(pixels).map(|a| squared(a.iter().zip(&mean).map(|(a, m)| f64::from(*a) - m)));
        let images = shown.len() / pixels;
        Ok(Reconstruction { images, error: root(&squares), of_mean: root(&[plain.collect()]) })
    })?;
    let images = if found.images == 1 { "1 test image".into() } else { format!("{} test images", found.images) };
    let row = |name: String, estimate| Row::new(&name, estimate, seeds).unit("grey levels of 255");
    Ok(vec![
        row(format!("reconstruction error per pixel (RMSE) of {images}"), found.error),
        row("the same, if each reconstruction were the mean training image".into(), found.of_mean),
    ])
}

/// Mean of squares.
fn squared(differences: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = differences.len() as f64;
    differences.map(|d| d * d).sum::<f64>() / n
}

fn mean_image(images: &[u8], pixels: usize) -> Vec<f64> {
    let mut mean = vec![0.0; pixels];
    images.chunks(pixels).for_each(|image| mean.iter_mut().zip(image).for_each(|(m, v)| *m += f64::from(*v)));
    let count = (images.len() / pixels) as f64;
    mean.into_iter().map(|m| m / count).collect()
}

/// √ of the mean of squares `[seed][image]`: all seeds see the same images, so that both scatters count on their own.
fn root(squares: &[Vec<f64>]) -> Estimate {
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let images = squares[0].len();
    let over_images =
        Estimate::of((0..images).map(|k| squares.iter().map(|own| own[k]).sum::<f64>() / squares.len() as f64));
    let seeds = Estimate::of(squares.iter().map(|own| mean(own)));
    let of_seeds = if squares.len() > 1 { seeds.std_error } else { 0.0 };
    let (value, error) = (over_images.mean.sqrt(), over_images.std_error.hypot(of_seeds));
    Estimate { mean: value, std_error: error / (2.0 * value), count: images as u64 }
}

/// FID of so many samples of each seed, as rows and notes of the report; where the weights are not here, a note says how to
/// get them.
pub(super) fn fid(
    cell: &Variant,
    image_models: &ImageModels,
    (samples, seed): (usize, u64),
    runner: &mut Runner,
) -> Result<(Vec<Row>, Vec<String>), Error> {
    if Inception::home().is_err() {
        let why =
            "FID was not measured: Inception's weights are not on this machine; run `minvel data fetch inception`.";
        return Ok((vec![], vec![why.into()]));
    }
    let judge = || -> Result<Box<dyn FeatureMap>, Error> {
        let [height, width, channels] = cell.image;
        let inception = Inception::find()?.of([height, width]);
        Ok(match (channels, cell.model().decoder.likelihood) {
            (1, Likelihood::Bernoulli) => Box::new(Grey::new(inception)),
            (1, _) => Box::new(Grey::with_shades(inception)),
            _ => Box::new(inception),
        })
    };
    let (judging, folder) = (Judging { samples, seed }, runner.folder().to_path_buf());
    let reference = judging.reference("reference", judge, image_models, runner)?;
    let distances: Vec<Fid> = runner.unit("fid", |context| {
        let state = cell.state(&folder)?;
        context.begin("fid", state.replicas() as u64, 0);
        let distances = judging.distances(&*judge()?, &reference, (cell, state), context, 0)?;
        context.end();
        Ok(distances)
    })?;
    let against = distances.first().map_or(0, |d| d.reference);
    let name = format!("FID (Inception), {samples} samples against {against} test images");
    let few = "FID grows as the number of images falls: compare only distances of equally many images, as `minvel \
               fid` measures them.";
    Ok((vec![Row::new(&name, Fid::across(&distances), distances.len())], vec![few.into()]))
}
