//! Surveys of `minvel fit`: public data sets, known densities found again, and few rows.

pub(crate) mod benchmark;
pub(crate) mod earth;
pub(crate) mod integrals;
mod laws;
pub(crate) mod power;
mod recipe;
pub(crate) mod recovery;
pub(crate) mod small;
mod splits;
