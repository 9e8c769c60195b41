//! Judging samples by the Fréchet distance of a network's features from those of the test images.

use super::{Cell, Gallery};
use crate::experiment::Bench;
use crate::fid::{Features, Fid, Statistics};
use minvel::Error;
use minvel::autoencoder::Views;
use minvel::train::Desk;
use minvel_engine::State;
use std::path::{Path, PathBuf};

/// How samples are judged.
#[derive(Clone, Copy, Debug)]
pub(in crate::experiment) struct Judging {
    /// Of each model.
    pub samples: usize,
    /// Of samples, and of networks that draw.
    pub seed: u64,
}

impl Judging {
    /// Statistics of the test images, as a unit of the bench, in a file of its name.
    pub fn reference(
        self,
        unit: &str,
        judge: impl FnOnce() -> Result<Box<dyn Features>, Error>,
        gallery: &Gallery,
        bench: &mut Bench,
    ) -> Result<PathBuf, Error> {
        let models = bench.folder().join("models");
        let path = models.join(format!("{unit}.npz"));
        let _: usize = bench.unit(unit, |desk| {
            let (judge, images, stream) = (judge()?, gallery.test()?, Statistics::REFERENCE);
            let statistics = Statistics::of_bytes(&*judge, images, stream, self.seed, &desk.options(1));
            let statistics = statistics.map_err(|why| Error::config(why.to_string()))?;
            minvel::file::create_folder(&models)?;
            statistics.write(&path)?;
            Ok(statistics.count)
        })?;
        Ok(path)
    }

    /// The distance of each seed's samples, after so many others on the desk.
    pub fn distances(
        self,
        judge: &dyn Features,
        reference: &Path,
        (cell, mut state): (&Cell, State<f32>),
        desk: &Desk,
        before: usize,
    ) -> Result<Vec<Fid>, Error> {
        if !reference.is_file() {
            let unit = reference.file_stem().unwrap_or_default().display();
            let what =
                format!("is missing, although it was computed before: delete units/{unit}.json to compute it again");
            return Err(Error::content(reference, what));
        }
        let (model, reference) = (cell.model()?, Statistics::read(reference)?);
        let views = Views { model: &model, options: desk.options(state.replicas()), seed: self.seed };
        let samples = views.samples(&mut state, self.samples)?;
        let mut distances = vec![];
        for own in samples.chunks(self.samples * cell.pixels()) {
            desk.go_on()?;
            let own = Statistics::of(judge, own, Statistics::SAMPLES, self.seed, &desk.options(1))?;
            distances.push(reference.fid(&own));
            desk.advance((before + distances.len()) as u64, "");
        }
        Ok(distances)
    }
}
