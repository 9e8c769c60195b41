//! The laboratory of minvel: what reads files, draws, reports and reproduces.
//!
//! The library [`minvel`] has the theory: manifolds, energies, flows, objectives, samplers, densities. Here are the doors to
//! the world, from the bottom to the top: files of numbers ([`table`]), known data sets ([`catalogue`]), pictures ([`image`]),
//! figures ([`plot`]), reports ([`report`]), Fréchet distances ([`fid`]), the harness of experiments ([`experiment`]), fits as
//! runs in folders ([`fitting`]), tables of any length as a [`stream`], the experiments of the [`paper`], surveys of fits ([`survey`]), and their [`index`].
//!
//! Settings are data, and unknown ones are refused where they are set:
//!
//! ```
//! use minvel_lab::experiment::Config;
//! let mut config = Config::parse("mine.toml", "rate = 1e-3\n[learning]\nbatch = 200\n")?;
//! config.set("learning.batch=50")?;
//! assert_eq!(config.json()["learning"]["batch"], 50);
//! assert!(config.set("learning.bach=50").is_err(), "unknown settings are refused, with the nearest known one");
//! let law = minvel_lab::index::find("gaussian")?.config()?.quick()?;
//! assert!(law.text().contains("seed"));
//! # Ok::<(), minvel::Error>(())
//! ```
//!
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
pub mod stream;
pub mod survey;
pub mod table;
