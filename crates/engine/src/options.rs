//! How a program is compiled: replicas, device, threads.

use crate::device::{Device, Precision};
use crate::isa::Isa;
use std::num::NonZero;

/// How a program is compiled.
#[derive(Clone, Debug)]
pub struct Options {
    /// Independent replicas (seeds) that run side by side.
    pub replicas: usize,
    /// Where it runs; by default what `MINVEL_DEVICE` says, or the CPU.
    pub device: Device,
    /// How a GPU computes matrix products.
    pub precision: Precision,
    /// Threads; 0 means `RAYON_NUM_THREADS`, or else all cores. Results do not depend on it.
    pub threads: usize,
    /// Instruction set; `None` means the best this machine has. Results do not depend on it.
    pub isa: Option<Isa>,
    /// Largest number of rows in a tile, a multiple of 16; 0 means chosen by the size of the program.
    pub tile: usize,
}

impl Options {
    pub(crate) fn threads(&self) -> usize {
        let from_environment = || std::env::var("RAYON_NUM_THREADS").ok()?.parse().ok().filter(|&n: &usize| n > 0);
        let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
        if self.threads > 0 { self.threads } else { from_environment().unwrap_or_else(cores) }
    }
}
