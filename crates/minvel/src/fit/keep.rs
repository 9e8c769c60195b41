//! A model in a file: `model.safetensors`, with everything that is needed to score and to sample.
//!
//! Lists of the kernels are tensors `kernels/…`; all variables of network r, those of its optimiser included, are
//! `network-r/…`; `reference` are log densities of rows that it has not seen, in order, `reference-masses` what each counts where that is not 1. The metadata hold manifold, coordinates of the data, settings, shares, log Z and the seed: random
//! numbers are counted, not drawn from a state, so that seed and step are all there is to keep of them.

use super::expert::{Base, Expert, Tried};
use super::model::Model;
use super::outliers::Reference;
use super::partition::LogZ;
use super::settings::{FitSettings, Goal, NetworkSettings};
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
/// The tensor of log densities of reference rows, and of what each counts.
const REFERENCE: &str = "reference";
const MASSES: &str = "reference-masses";

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
    /// Files of earlier versions have one energy, described by `networks`, `share` and `log_z`.
    #[serde(default)]
    experts: Option<Vec<Described>>,
    #[serde(default)]
    tried: Vec<Tried>,
}

/// An energy without its networks.
#[derive(Serialize, Deserialize)]
struct Described {
    goal: Goal,
    base: Base,
    network: NetworkSettings,
    networks: usize,
    share: f64,
    log_z: LogZ,
    weight: f64,
}

impl Described {
    /// That of an earlier version.
    fn earlier(note: &Note) -> Vec<Described> {
        let FitSettings { objective: goal, network, .. } = note.settings.clone();
        let (networks, share, log_z) = (note.networks, note.share, note.log_z.clone());
        let one = Described { goal, base: Base::Anchor, network, networks, share, log_z, weight: 1.0 };
        if share > 0.0 { vec![one] } else { vec![] }
    }

    fn is_sound(&self) -> bool {
        let unit = 0.0..=1.0;
        (1..=MOST_NETWORKS).contains(&self.networks)
            && unit.contains(&self.share)
            && unit.contains(&self.weight)
            && self.log_z.value.mean.is_finite()
            && FitSettings { network: self.network.clone(), ..FitSettings::default() }.fault().is_none()
    }
}

/// Networks of an energy at most.
const MOST_NETWORKS: usize = 1 << 16;

impl Note {
    /// Whether it is what a fit writes: no other number may be used unseen.
    fn is_sound(&self, manifold: &dyn Manifold) -> bool {
        self.settings.fault().is_none()
            && self.standard.is_for(manifold.ambient())
            && (self.experts.is_some() || self.networks == 0 || self.networks == self.settings.seeds)
            && (0.0..=1.0 + 1e-9).contains(&self.share)
            && self.experts.iter().flatten().all(Described::is_sound)
            && self.experts.iter().flatten().map(|expert| expert.weight).sum::<f64>() <= 1.0 + 1e-9
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
        let used: Vec<&Expert> = self.experts.iter().filter(|expert| expert.weight > 0.0).collect();
        for (r, network) in used.iter().flat_map(|expert| &expert.networks).enumerate() {
            for (name, values) in network.iter() {
                let wide: Vec<f64> = values.iter().map(|&x| x.into()).collect();
                state.set(&format!("network-{r}/{name}"), &wide, wide.len());
            }
        }
        let described = |expert: &&Expert| Described {
            goal: expert.goal,
            base: expert.base,
            network: expert.network.clone(),
            networks: expert.networks.len(),
            share: expert.share,
            log_z: expert.log_z.clone(),
            weight: expert.weight,
        };
        if let Some(reference) = &self.reference {
            let logs = reference.log_densities();
            state.set(REFERENCE, logs, logs.len());
            if !reference.masses().is_empty() {
                state.set(MASSES, reference.masses(), logs.len());
            }
        }
        let note = Note {
            coordinates,
            settings: self.settings.clone(),
            standard: self.standard.clone(),
            families: self.anchor.families().to_vec(),
            networks: used.iter().map(|expert| expert.networks.len()).sum(),
            rows: self.rows,
            share: self.share(),
            log_z: self.log_z.clone(),
            experts: Some(used.iter().map(described).collect()),
            tried: self.tried.clone(),
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
        let mut note: Note = file.note(path)?;
        let broken = || Error::content(path, "the model is broken: fit it again");
        let manifold = note.coordinates["manifold"].as_str().ok_or_else(broken)?;
        let manifold = find(manifold).map_err(|e| Error::content(path, e))?;
        if !note.is_sound(&*manifold) {
            return Err(broken());
        }
        let find = |name: &str| file.state.get(&format!("kernels/{name}"));
        let anchor = LocalKernels::from_tensors(&manifold, &note.families, find).ok_or_else(broken)?;
        let anchor = anchor.with_tolerance(note.settings.kernels.tolerance);
        let network = |r: usize| {
            let prefix = format!("network-{r}/");
            let mut own = State::<f32>::new(1);
            for (name, values) in file.state.iter() {
                if let Some(name) = name.strip_prefix(&prefix) {
                    own.set(name, &values.iter().map(|&x| x as f32).collect::<Vec<f32>>(), values.len());
                }
            }
            own
        };
        let mut first = 0;
        let described = note.experts.take().unwrap_or_else(|| Described::earlier(&note));
        let expert = |d: Described| {
            let networks = (first..first + d.networks).map(network).collect();
            first += d.networks;
            let Described { goal, base, network, share, log_z, weight, .. } = d;
            Expert { goal, base, network, networks, share, log_z, weight, without: 0.0 }
        };
        let experts: Vec<Expert> = described.into_iter().map(expert).collect();
        let masses = file.state.get(MASSES).unwrap_or_default();
        let reference = file.state.get(REFERENCE).map(|logs| Reference::kept(logs, masses).ok_or_else(broken));
        let reference = reference.transpose()?;
        let model = Model {
            experts,
            tried: note.tried,
            reference,
            manifold,
            settings: note.settings,
            standard: note.standard,
            rows: note.rows.max(anchor.centres()),
            anchor,
            log_z: note.log_z,
        };
        let coordinates = serde_json::from_value(note.coordinates).map_err(|_| broken())?;
        let seed = model.settings.seed;
        let whole = model.experts.iter().all(|expert| expert.is_whole(&model.manifold, seed));
        whole.then_some((model, coordinates)).ok_or_else(broken)
    }
}
