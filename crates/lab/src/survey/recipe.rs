//! How the fits of an experiment are made: the settings of `minvel fit`, with the experiment's changes.

use crate::experiment::Config;
use crate::fitting;
use minvel::Error;
use minvel::fit::FitSettings;
use serde::Deserialize;

/// The table `fit` of an experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recipe {
    /// Whether the quick settings are taken.
    quick: bool,
    /// Changes, as `key=value`.
    set: Vec<String>,
}

/// The fits of an experiment: settings that differ in the seed alone.
pub(super) struct Fits {
    config: Config,
    first: FitSettings,
}

impl Recipe {
    /// The settings, checked; `seed` is that of the first fit.
    pub fn fits(&self, seed: u64) -> Result<Fits, Error> {
        let defaults = fitting::defaults();
        let mut config = if self.quick { defaults.quick()? } else { defaults };
        for change in &self.set {
            config.set(change)?;
        }
        config.set(&format!("seed={seed}"))?;
        let first = fitting::settings(&config)?;
        Ok(Fits { config, first })
    }
}

impl Fits {
    /// The settings of the fit of a seed.
    pub fn of(&self, seed: u64) -> FitSettings {
        FitSettings { seed, ..self.first.clone() }
    }

    /// What a reader should know of them.
    pub fn note(&self) -> String {
        format!("Settings of the first fit; the others differ only in the seed: {}", self.config.json())
    }
}
