//! What a program for the GPU is made of: kernels as source, their arguments, and where everything lives.

use crate::inputs::Named;
use crate::shape::Shape;

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// The program's own memory, from this number on.
    Memory(usize),
    Input(usize),
    /// An input of bytes.
    Bytes(usize),
    /// A variable as it was before the step.
    Variable(usize),
    /// A variable as it will be after it.
    Next(usize),
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Param {
    Pointer(Home),
    /// Distance between replicas.
    Stride(Home),
    /// A number in the program's precision, as bits.
    Constant(u64),
}

/// One launch of a step.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub source: String,
    pub blocks: usize,
    /// Bytes of shared memory.
    pub shared: usize,
    pub params: Vec<Param>,
}

/// A program as kernels and memory.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub kernels: Vec<Kernel>,
    pub inputs: Vec<Named>,
    pub bytes: Vec<Named>,
    pub variables: Vec<Named>,
    pub updated: Vec<usize>,
    pub outputs: Vec<(usize, Shape)>,
    /// Numbers of the program's own memory.
    pub memory: usize,
    pub constants: Vec<(usize, Vec<f64>)>,
    /// Whether kernels note indices outside their tables.
    pub checks: bool,
    /// What each kernel does, in words.
    pub summary: String,
}
