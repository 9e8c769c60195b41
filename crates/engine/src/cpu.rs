//! Programs on the CPU: by row tiles, one core per tile, lanes are rows.

mod bound;
mod chain;
mod describe;
mod gemm;
mod isa;
mod lower;
mod memory;
mod moves;
mod plan;
mod run;
mod team;
mod tiling;
mod vector;
mod views;

pub(crate) use bound::Bound;
pub use isa::Isa;
#[cfg(feature = "cuda")]
pub(crate) use lower::pack;
pub(crate) use lower::plan;
#[cfg(feature = "cuda")]
pub(crate) use memory::filled;
pub use run::{Clock, Execute};
#[cfg(feature = "cuda")]
pub(crate) use views::regroup;
