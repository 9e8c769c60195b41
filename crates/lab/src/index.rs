//! The index of experiments: what can be reproduced, by name.
//!
//! **Checked by** tests/lab/experiment.rs.

use crate::experiment::{Entry, nearest};
use crate::{paper, survey};
use minvel::Error;

/// All experiments.
pub const LIST: &[Entry] = &[
    paper::bias_variance::ENTRY,
    paper::contrastive::ENTRY,
    paper::gaussian::ENTRY,
    paper::directions::CIRCLE,
    paper::directions::SPHERE,
    survey::earth::ENTRY,
    survey::benchmark::ENTRY,
    survey::recovery::ENTRY,
    survey::integrals::ENTRY,
    survey::small::ENTRY,
    survey::power::ENTRY,
    paper::vae::ENTRY,
    paper::wae::ENTRY,
    paper::cifar::ENTRY,
    paper::celeba::ENTRY,
];

/// Single models, for `minvel train`.
pub const MODELS: &[Entry] = &[paper::single::VAE, paper::single::WAE];

/// Names that stand for several experiments, with what they have in common.
pub const GROUPS: &[(&str, &str, &[&str])] = &[
    ("synthetic", "The paper's synthetic experiments", &["bias-variance", "cd1", "circle", "sphere"]),
    (
        "fit",
        "Results of `minvel fit` on public data and on known densities",
        &["earth", "benchmark", "recovery", "integrals", "small", "power"],
    ),
];

/// The experiments that a name stands for.
pub fn named(name: &str) -> Result<Vec<&'static Entry>, Error> {
    if let Some((_, _, members)) = GROUPS.iter().find(|(group, _, _)| *group == name) {
        return Ok(members.iter().filter_map(|m| LIST.iter().find(|e| e.name == *m)).collect());
    }
    if let Some(entry) = LIST.iter().find(|e| e.name == name) {
        return Ok(vec![entry]);
    }
    let visible = LIST.iter().filter(|e| !e.hidden).map(|e| e.name);
    let known: Vec<&str> = visible.chain(GROUPS.iter().map(|(group, _, _)| *group)).collect();
    let nearest = nearest(name, known.iter().copied());
    let hint = nearest.map_or(String::new(), |n| format!(" Did you mean `{n}`?"));
    Err(Error::config(format!("unknown experiment `{name}`.{hint} Expected one of {}.", known.join(", "))))
}

/// The experiment or single model of a name.
pub fn find(name: &str) -> Result<&'static Entry, Error> {
    let found = LIST.iter().chain(MODELS).find(|e| e.name == name);
    found.ok_or_else(|| Error::config(format!("unknown experiment `{name}`")))
}
