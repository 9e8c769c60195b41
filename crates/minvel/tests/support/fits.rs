//! Settings of fits, changed by name.

use minvel::fit::FitSettings;
use serde_json::Value;

/// Quick settings with changes, as `learning.steps=80`.
pub fn settings(changes: &[&str]) -> FitSettings {
    let mut all = serde_json::to_value(FitSettings::quick()).unwrap();
    for change in changes {
        let (key, value) = change.split_once('=').expect("key=value");
        let place = key.split('.').fold(&mut all, |within, name| within.get_mut(name).expect("a known setting"));
        *place = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    }
    let settings: FitSettings = serde_json::from_value(all).unwrap();
    assert_eq!(settings.fault(), None);
    settings
}
