//! Minimum velocity learning of unnormalised models.
//!
//! > Learning is one step of the model's flow, started at the data; sampling is many steps, started anywhere.
//! > A model is learnt when the first step no longer moves the data.
//!
//! Two doors. [`fit::Fit`] makes a normalised density of points; [`train::Learner`] learns an energy by an objective:
//!
//! ```
//! use minvel::density::{Density, EnergyDensity};
//! use minvel::energy::{VonMisesFisher, points};
//! use minvel::fit::Fit;
//! use minvel::manifold::Sphere;
//! use minvel::train::Context;
//! use std::sync::Arc;
//! let law = VonMisesFisher::new(&[0.0, 0.0, 1.0], 5.0);
//! let fitted = Fit::on(Sphere(2)).seed(1).points(&points(&law, 60, 1).expect("it can be sampled"))?;
//! let truth = EnergyDensity::closed(Arc::new(Sphere(2)), Arc::new(law)).expect("its log Z is known");
//! let (pole, equator) = ([0.0, 0.0, 1.0], [1.0, 0.0, 0.0]);
//! let gap = |log: Vec<f64>| log[0] - log[1];
//! let both = [pole, equator].concat();
//! assert!((gap(truth.log_density(&both, &Context::bare())?) - 5.0).abs() < 1e-12);
//! assert!(gap(fitted.log_density(&both)?) > 2.0, "the fit knows where the points are");
//! # Ok::<(), minvel::Error>(())
//! ```
//!
//! One file per noun of the theory: `foo.rs` is the interface, `foo/` its implementations.
//! Conventions everywhere: p ∝ exp(−E); `log_prob` only for normalised densities; score = ∇ log p = −∇E; randomness is
//! an argument (a stream of the program); all formulas are expressions of [`minvel_engine`], so they can be
//! differentiated, compiled and run for many replicas at once.
//!
//! Sources are keys of `docs/bibliography.bib`, or sections and facts of `docs/math`: `§4.7` is in its chapter 4, `F12` and
//! erratum `P5` are rows of its tables, and the test of `F12` is named `fact_12_…`.

pub mod autoencoder;
pub mod density;
mod divergence;
pub mod energy;
mod error;
pub mod estimate;
pub mod file;
pub mod fit;
pub mod flow;
pub mod kernel;
pub mod limits;
pub mod manifold;
pub mod matching;
pub mod network;
pub mod objective;
pub mod prelude;
pub mod sampler;
pub mod special;
pub mod stream;
pub mod train;

pub use divergence::{ChainDivergence, Divergence};
pub use energy::Energy;
pub use error::{Choice, Error};
pub use flow::Flow;
pub use limits::Limits;
pub use manifold::Manifold;
pub use minvel_engine::{Card, Device, DeviceError, DeviceErrorKind, Precision, cards};
pub use objective::Objective;
pub use sampler::Sampler;
