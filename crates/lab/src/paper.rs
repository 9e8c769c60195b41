//! Experiments of the paper: synthetic densities, directions, auto-encoders; and single auto-encoders of one's own.

pub(crate) mod bias_variance;
pub(crate) mod celeba;
pub(crate) mod cifar;
pub(crate) mod contrastive;
pub(crate) mod directions;
pub(crate) mod gaussian;
mod image_models;
mod planar;
pub(crate) mod single;
pub(crate) mod vae;
pub(crate) mod wae;

pub use single::{Choices, Chosen, choices};
