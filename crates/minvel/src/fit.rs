//! From points to a normalised density: kernels that follow the data, corrected by an energy learnt at minimum velocity.
//!
//! **Statement.** p(x) = a(x) e^{−t f(x)}/Z: a, a density of local kernels ([`crate::density::LocalKernels`]); f, the mean
//! of networks learnt by minimum velocity of the flow of E = −log a + f, started at data that a has not seen;
//! t ∈ [0, 1], the share of f that the validation rows ask for; Z = E_a e^{−t f}.
//! **Source.** wang2020mvl (the objective). The anchor answers what score matching cannot see: the relative mass of
//! separated modes. **Conventions.** E(x) = −log a(x) + t f(x) w.r.t. the Riemannian volume; test rows are looked at once.
//! **Error.** That of log Z ([`LogZ`]); it is part of every score.
//! **Checked by** crates/lab/tests/lab/fit.rs.

mod comparison;
mod compression;
mod correction;
mod crossvalidation;
mod door;
mod evaluation;
mod few;
mod fitness;
mod keep;
mod levels;
mod model;
mod outliers;
mod partition;
mod procedure;
mod quadrature;
mod running;
mod settings;
mod split;
mod standard;

pub use comparison::Comparison;
pub use correction::Curve;
pub use door::{Fit, Fitted, IntoManifold, LEAST_POINTS};
pub use evaluation::{Baseline, Evaluation};
pub use fitness::{Coverage, Fitness, LEAST_TESTED, REGIONS};
pub use levels::Levels;
pub use model::{Drawn, History, Model};
pub use outliers::{NO_REFERENCE, RankCounts, Reference};
pub use partition::LogZ;
pub use procedure::{Procedure, Record, Trial};
pub use running::{RunningEvaluation, RunningSums};
pub use settings::{FewSettings, FitSettings, Geometry, Goal, LearningSettings, NetworkSettings, PartitionSettings};
pub use split::{Split, distinct_indices, distinct_rows, folds, leaked_share};
