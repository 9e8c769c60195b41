//! Data sets that a test needs.

use minvel_lab::catalogue::{self, locate};
use minvel_testing::{Need, data_set};

/// A set of the catalogue.
pub fn set(name: &str) -> Need {
    let known = catalogue::find(name).expect("tests name sets of the catalogue");
    data_set(name, known.path().is_some() || locate(name).is_ok())
}
