//! Fits as runs: settings from a file, a folder with everything a fit leaves behind, its report and figures.

mod density_grid;
mod folder;
mod margins;
mod pages;
mod settings;
mod sketched;

pub use density_grid::DensityGrid;
pub use folder::{BlockedScore, FitRun, FitSummary, RunFolder, fit_of, fit_report, read_model};
pub use margins::margin_figures;
pub use pages::{density_figures, ingredients_in_words, look, model_in_words};
pub use settings::{DEFAULTS, defaults, settings};
pub use sketched::SketchForm;
