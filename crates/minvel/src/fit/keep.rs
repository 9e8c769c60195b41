//! A model in a file: `model.safetensors`, with everything that is needed to score and to sample.
//!
//! Lists of the kernels are tensors `kernels/…`; all variables of network r, those of its optimiser included, are
//! `network-r/…`; `reference` are log densities of rows that it has not seen, in order. The metadata hold manifold, coordinates of the data, settings, shares, log Z and the seed: random
//! numbers are counted, not drawn from a state, so that seed and step are all there is to keep of them.

use super::model::Model;
use super::outliers::Reference;
use super::partition::LogZ;
use super::settings::FitSettings;
use super::standard::Standard;
use crate::density::{Family, LocalKernels};
use crate::train::Checkpoint;
use crate::{Error, Manifold, manifold};
use minvel_engine::State;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

const PURPOSE: &str = "a fitted density";
/// The tensor of log densities of reference rows.
const REFERENCE: &str = "reference";

#[derive(Serialize, Deserialize)]
struct Note {
    /// At least the name of the manifold; what else describes rows of the data is the caller's.
    coordinates: serde_json::Value,
    settings: FitSettings,
    standard: Standard,
    families: Vec<Family>,
    networks: usize,
    /// Training rows; files of version 0.1.0 do not say.
    #[serde(default)]
    rows: usize,
    share: f64,
    log_z: LogZ,
}

impl Note {
    /// Whether it is what a fit writes: no other number may be used unseen.
    fn is_sound(&self, manifold: &dyn Manifold) -> bool {
        self.settings.fault().is_none()
            && self.standard.is_for(manifold.ambient())
            && (self.networks == 0 || self.networks == self.settings.seeds)
            && (0.0..=1.0).contains(&self.share)
    }
}

impl Model {
    /// Writes the model, wholly or not at all, with a description of the data's columns: an object that has at least
    /// `manifold`, its name.
    pub fn write(&self, path: &Path, coordinates: &impl Serialize) -> Result<(), Error> {
        let coordinates = serde_json::to_value(coordinates).expect("a description is plain data");
        assert_eq!(coordinates["manifold"], self.manifold.to_string(), "the description is of another manifold");
        let mut state = State::<f64>::new(1);
        for (name, values) in self.anchor.tensors() {
            state.set(&format!("kernels/{name}"), values, values.len());
        }
        for (r, network) in self.networks.iter().enumerate() {
            for (name, values) in network.iter() {
                let wide: Vec<f64> = values.iter().map(|&x| x.into()).collect();
                state.set(&format!("network-{r}/{name}"), &wide, wide.len());
            }
        }
        if let Some(reference) = &self.reference {
            let logs = reference.log_densities();
            state.set(REFERENCE, logs, logs.len());
        }
        let note = Note {
            coordinates,
            settings: self.settings.clone(),
            standard: self.standard.clone(),
            families: self.anchor.families().to_vec(),
            networks: self.networks.len(),
            rows: self.rows,
            share: self.share,
            log_z: self.log_z.clone(),
        };
        Checkpoint::new(state, self.settings.learning.steps, PURPOSE, &note).write(path)
    }

    /// Reads a model, and the description of the data's columns that was written with it.
    pub fn read<C: DeserializeOwned>(path: &Path) -> Result<(Model, C), Error> {
        Self::read_on(path, manifold::parse)
    }

    /// The same where the manifold is one of the caller's: `find` knows it by its name.
    pub fn read_on<C: DeserializeOwned>(
        path: &Path,
        find: impl Fn(&str) -> Result<Arc<dyn Manifold>, String>,
    ) -> Result<(Model, C), Error> {
        let file = Checkpoint::<f64>::read(path)?;
        if file.purpose != PURPOSE {
            let what =
                format!("this file holds {}, not {PURPOSE}: give the folder that `minvel fit` wrote", file.purpose);
            return Err(Error::content(path, what));
        }
        let note: Note = file.note(path)?;
        let broken = || Error::content(path, "the model is broken: fit it again");
        let manifold = note.coordinates["manifold"].as_str().ok_or_else(broken)?;
        let manifold = find(manifold).map_err(|e| Error::content(path, e))?;
        if !note.is_sound(&*manifold) {
            return Err(broken());
        }
        let find = |name: &str| file.state.get(&format!("kernels/{name}"));
        let anchor = LocalKernels::from_tensors(&manifold, &note.families, find).ok_or_else(broken)?;
        let anchor = anchor.with_tolerance(note.settings.kernels.tolerance);
        let networks = (0..note.networks).map(|r| {
            let prefix = format!("network-{r}/");
            let mut own = State::<f32>::new(1);
            for (name, values) in file.state.iter() {
                if let Some(name) = name.strip_prefix(&prefix) {
                    own.set(name, &values.iter().map(|&x| x as f32).collect::<Vec<f32>>(), values.len());
                }
            }
            own
        });
        let reference = file.state.get(REFERENCE).map(|logs| Reference::kept(logs).ok_or_else(broken)).transpose()?;
        let model = Model {
            networks: networks.collect(),
            reference,
            manifold,
            settings: note.settings,
            standard: note.standard,
            rows: note.rows.max(anchor.centres()),
            anchor,
            share: note.share,
            log_z: note.log_z,
        };
        let coordinates = serde_json::from_value(note.coordinates).map_err(|_| broken())?;
        model.has_networks().then_some((model, coordinates)).ok_or_else(broken)
    }
}
