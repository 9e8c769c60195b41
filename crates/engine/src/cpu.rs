//! Programs on the CPU: by row tiles, one core per tile, lanes are rows.

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

pub use isa::Isa;
pub(crate) use lower::plan;
pub(crate) use plan::{Named, Plan};
pub use run::Clock;
pub use run::Execute;
pub(crate) use run::{Executor, External};
