//! From points to a normalised density: kernels that follow the data, and energies that are stacked with them.
//!
//! **Statement.** p(x) = w₀a(x) + Σ wₖpₖ(x): a, a density of local kernels ([`crate::density::LocalKernels`]); pₖ = a e^{−t f}/Z or
//! b e^{−f}/Z, energies learnt by minimum velocity or by likelihood ([`Expert`]), each with its Z; the weights are those that the
//! validation rows ask for. Without further energies ([`Effort::None`]): p = a e^{−t f}/Z, f learnt at minimum velocity.
//! **Source.** wang2020mvl (the objective); smyth1999stacking. The anchor answers what score matching cannot see: the relative mass of
//! separated modes. **Conventions.** Densities w.r.t. the Riemannian volume; test rows are looked at once.
//! **Error.** That of log Z ([`LogZ`]); it is part of every score.
//! **Checked by** crates/lab/tests/lab/fit.rs, tests/densities/experts.rs.

mod comparison;
mod compression;
mod correction;
mod crossvalidation;
mod door;
mod evaluation;
mod expert;
mod few;
mod fitness;
mod keep;
mod leak;
mod learning;
mod levels;
mod making;
mod model;
mod outliers;
mod partition;
mod procedure;
mod quadrature;
mod rows;
mod running;
mod settings;
mod sketch;
mod sketched;
mod split;
mod stack;
mod standard;
mod tally;
mod uncertainty;
mod wide;

pub use comparison::Comparison;
pub use correction::Curve;
pub use door::{Fit, Fitted, IntoManifold, LEAST_POINTS};
pub use evaluation::{Baseline, Evaluation, Families, Ingredient};
pub use expert::{Base, Expert, Tried};
pub use fitness::{Coverage, Fitness, LEAST_TESTED, REGIONS};
pub use leak::Leak;
pub use levels::Levels;
pub use model::{Drawn, History, Model};
pub use outliers::{NO_REFERENCE, RankCounts, Reference};
pub use partition::LogZ;
pub use procedure::{Procedure, Record, Trial};
pub use rows::linked_rows;
pub use running::{RunningEvaluation, RunningSums};
pub use settings::{
    Effort, EnergySettings, FewSettings, FitSettings, Geometry, Goal, LearningSettings, NetworkSettings,
    PartitionSettings,
};
pub use sketch::{ChosenRows, Sketch, SketchPlan};
pub use split::{Part, Split, distinct_indices, distinct_rows, folds, leaked_share};
pub use tally::Tally;
pub use uncertainty::{REPLICAS, Uncertainty};
