//! Judging samples by the Fréchet distance of a network's features from those of the test images.

use super::{ImageModels, Variant};
use crate::experiment::Runner;
use crate::fid::{FeatureMap, Fid, Statistics};
use minvel::Error;
use minvel::autoencoder::Views;
use minvel::train::Context;
use minvel_engine::State;
use std::path::{Path, PathBuf};

/// How samples are judged.
#[derive(Clone, Copy, Debug)]
pub(in crate::paper) struct Judging {
    /// Of each model.
    pub samples: usize,
    /// Of samples, and of networks that draw.
    pub seed: u64,
}

impl Judging {
    /// Statistics of the test images, as a unit of the runner, in a file of its name.
    pub fn reference(
        self,
        unit: &str,
        judge: impl FnOnce() -> Result<Box<dyn FeatureMap>, Error>,
        image_models: &ImageModels,
        runner: &mut Runner,
    ) -> Result<PathBuf, Error> {
        let models = runner.folder().join("models");
        let path = models.join(format!("{unit}.npz"));
        let _: usize = runner.unit(unit, |context| {
            let (judge, images, stream) = (judge()?, image_models.test()?, Statistics::REFERENCE);
            let statistics = Statistics::of_bytes(&*judge, images, stream, self.seed, &context.options(1));
            let statistics = statistics.map_err(|why| Error::config(why.to_string()))?;
            minvel::file::create_folder(&models)?;
            statistics.write(&path)?;
            Ok(statistics.count)
        })?;
        Ok(path)
    }

    /// The distance of each seed's samples, after so many others on the context.
    pub fn distances(
        self,
        judge: &dyn FeatureMap,
        reference: &Path,
        (cell, mut state): (&Variant, State<f32>),
        context: &Context,
        before: usize,
    ) -> Result<Vec<Fid>, Error> {
        if !reference.is_file() {
            let unit = reference.file_stem().unwrap_or_default().display();
            let what =
                format!("is missing, although it was computed before: delete units/{unit}.json to compute it again");
            return Err(Error::content(reference, what));
        }
        let (model, reference) = (cell.model(), Statistics::read(reference)?);
        let views = Views { model, options: context.options(state.replicas()), seed: self.seed };
        let samples = views.samples(&mut state, self.samples)?;
        let mut distances = vec![];
        for own in samples.chunks(self.samples * cell.pixels()) {
            context.go_on()?;
            let own = Statistics::of(judge, own, Statistics::SAMPLES, self.seed, &context.options(1))?;
            distances.push(reference.fid(&own));
            context.advance((before + distances.len()) as u64, "");
        }
        Ok(distances)
    }
}
