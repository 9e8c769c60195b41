//! Programs on the CPU: by row tiles, one core per tile, lanes are rows.

mod bound;
mod chain;
mod describe;
mod gemm;
mod lower;
mod memory;
mod moves;
mod plan;
mod run;
mod team;
mod tiling;
mod vector;

pub(crate) use bound::Bound;

use crate::device::DeviceError;
use crate::graph::{Expr, Graph};
use crate::isa::Isa;
use crate::math::Real;
use crate::options::Options;

/// Bytes of a worker's arena that stay in the second-level cache beside the weights.
const ARENA: usize = 512 << 10;

/// Compiles a program for the processor.
pub(crate) fn compile<T: Real>(
    graph: &Graph,
    outputs: &[Expr],
    updates: &[(Expr, Expr)],
    options: &Options,
) -> Result<Bound<T>, DeviceError> {
    let plan = |pitch| lower::plan(graph, outputs, updates, options.replicas, pitch);
    let mut pitch = if options.tile > 0 { options.tile } else { 64 };
    let mut best = plan(pitch);
    while options.tile == 0 && pitch > 16 && best.arena * size_of::<T>() > ARENA {
        pitch /= 2;
        best = plan(pitch);
    }
    let isa = options.isa.unwrap_or_else(Isa::detect);
    assert!(Isa::available().contains(&isa), "compile: this machine does not have {isa}");
    Bound::new(best, options.replicas, options.threads(), isa)
}
