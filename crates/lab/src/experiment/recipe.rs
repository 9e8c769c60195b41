//! How the fits of an experiment are made: the settings of `minvel fit`, with the experiment's changes.

use super::Config;
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

impl Recipe {
    /// The settings as written, of a seed.
    fn config(&self, seed: u64) -> Result<Config, Error> {
        let defaults = fitting::defaults();
        let mut config = if self.quick { defaults.quick()? } else { defaults };
        for change in &self.set {
            config.set(change)?;
        }
        config.set(&format!("seed={seed}"))?;
        Ok(config)
    }

    /// The settings of a seed, checked.
    pub fn settings(&self, seed: u64) -> Result<FitSettings, Error> {
        fitting::settings(&self.config(seed)?)
    }

    /// What a reader should know of them.
    pub fn note(&self, seed: u64) -> Result<String, Error> {
        Ok(format!("FitSettings of the first fit; the others differ only in the seed: {}", self.config(seed)?.json()))
    }
}
