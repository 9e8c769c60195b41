//! Settings of a fit as a file.

use crate::experiment::Config;
use minvel::Error;
use minvel::fit::FitSettings;

/// The defaults, as a file that names every setting.
pub const DEFAULTS: &str = include_str!("../../experiments/fit.toml");

/// The defaults as settings to change.
pub fn defaults() -> Config {
    Config::parse("fit.toml", DEFAULTS).expect("our own file")
}

/// Checked settings.
pub fn settings(config: &Config) -> Result<FitSettings, Error> {
    let settings: FitSettings = config.read()?;
    match settings.fault() {
        Some((key, what)) => Err(config.refuse(key, what)),
        None => Ok(settings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_the_defaults_of_the_library() {
        assert_eq!(settings(&defaults()).unwrap(), FitSettings::default());
        assert_eq!(settings(&defaults().quick().unwrap()).unwrap(), FitSettings::quick());
    }
}
