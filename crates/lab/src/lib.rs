//! The laboratory of minvel: what reads files, draws, reports and reproduces.
//!
//! The library [`minvel`] has the theory: manifolds, energies, flows, objectives, samplers, densities. Here are the doors to
//! the world, from the bottom to the top: files of numbers ([`table`]), known data sets ([`catalogue`]), pictures ([`image`]),
//! figures ([`plot`]), reports ([`report`]), Fréchet distances ([`fid`]), the harness of experiments ([`experiment`]), fits as
//! runs in folders ([`fitting`]), the experiments of the [`paper`], surveys of fits ([`survey`]), and their [`index`].
//! A module uses those before it, never those after it (tests/lab/modules.rs).

mod bytes;
pub mod catalogue;
pub mod experiment;
pub mod fid;
pub mod fitting;
pub mod image;
pub mod index;
pub mod paper;
pub mod plot;
pub mod report;
pub mod survey;
pub mod table;
