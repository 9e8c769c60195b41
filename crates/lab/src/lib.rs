//! The laboratory of minvel: what reads files, draws, reports and reproduces.
//!
//! The library [`minvel`] has the theory: manifolds, energies, flows, objectives, samplers, densities. Here are the doors to
//! the world: tables and pictures ([`data`]), figures ([`plot`]), reports ([`report`]), Fréchet distances ([`fid`]), fits as runs
//! in folders ([`fitting`]), and the experiments of the paper ([`experiment`]).

pub mod data;
pub mod experiment;
pub mod fid;
pub mod fitting;
pub mod plot;
pub mod report;
