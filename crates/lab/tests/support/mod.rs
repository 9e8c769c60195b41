//! What the tests share: experiments made small, runs that are interrupted, data sets that may be missing.
#![allow(dead_code)] // each binary uses its own part

pub mod experiments;
pub mod grids;
pub mod needs;
pub mod resumption;
