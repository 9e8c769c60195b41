//! Minimum velocity learning of unnormalised models.
//!
//! > Learning is one step of the model's flow, started at the data; sampling is many steps, started anywhere.
//! > A model is learnt when the first step no longer moves the data.
//!
//! One file per noun of the theory: `foo.rs` is the interface, `foo/` its implementations.
//! Conventions everywhere: p ∝ exp(−E); `log_prob` only for normalised densities; score = ∇ log p = −∇E; randomness is
//! an argument (a stream of the program); all formulas are expressions of [`minvel_engine`], so they can be
//! differentiated, compiled and run for many replicas at once.

pub mod energy;
pub mod manifold;

pub use energy::Energy;
pub use manifold::Manifold;
