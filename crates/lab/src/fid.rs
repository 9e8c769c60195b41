//! Fréchet distances between sets of pictures, in the features of a network.
//!
//! **Checked by** tests/lab/fid.rs, tests/lab/frechet.rs, tests/lab/inception.rs, tests/lab/lenet.rs, tests/lab/statistics.rs.

mod features;
mod frechet;
mod score;
mod statistics;
pub mod torch;

pub use features::{Extractor, FeatureMap, Grey, Inception, Lenet, Origin, Schooling, Thumbnail};
pub use frechet::{Normal, Scatter};
pub use score::{Fid, Reference};
pub use statistics::{Gathering, Statistics};
