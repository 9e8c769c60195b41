//! Kernels of the caller's own, beside those of programs: source, memory and an order of work on a card.

use super::driver::{Code, Gpu, Memory, Stream};
use super::nvrtc::Nvrtc;
use super::{THREADS, Trouble, compile, plan};
use std::sync::Arc;

/// CUDA source compiled for a GPU.
pub struct Kernel {
    gpu: Arc<Gpu>,
    code: Arc<Code>,
    shared: usize,
}

/// Numbers of eight bytes in the memory of a GPU.
pub struct Buffer {
    memory: Memory,
    len: usize,
}

/// An order of work on a GPU: each call waits until its work is done. Threads that each have a queue work side by side.
pub struct Queue(Stream);

/// An argument of a kernel.
#[derive(Clone, Copy)]
pub enum Argument<'a> {
    /// The address of a buffer.
    Buffer(&'a Buffer),
    /// A whole number, `unsigned long long` to the kernel.
    Count(usize),
    /// A `double`.
    Number(f64),
}

impl Kernel {
    /// Threads of a block.
    pub const THREADS: usize = THREADS;
    /// Bytes of shared memory at most: what every card of compute capability 8 or newer has.
    pub const SHARED: usize = 96 << 10;

    /// Compiles the kernel `extern "C" __global__ void step_kernel(…)`, whose parameters are of eight bytes, for a GPU by its number.
    /// `shared` bytes are what each block has as `extern __shared__ unsigned char memory[]`. The same source is compiled once in
    /// a process, and kept on disk. Products and sums are not joined by the compiler: `fma` says where they are.
    ///
    /// The source is the caller's word for it that the kernel stays within the buffers that it is given: one that does not spoils
    /// the numbers of others on that GPU, or is an error when it runs.
    pub fn compile(index: usize, source: &str, shared: usize) -> Result<Kernel, Trouble> {
        assert!(shared <= Self::SHARED, "{shared} bytes of shared memory are too many");
        let gpu = Gpu::open(index)?;
        let one = plan::Kernel { source: source.into(), blocks: 0, shared, params: vec![] };
        let mut code = compile::compile(&gpu.card, Nvrtc::find()?, &[one])?;
        Ok(Kernel { gpu, code: code.remove(0), shared })
    }

    /// A new queue on the kernel's GPU.
    pub fn queue(&self) -> Result<Queue, Trouble> {
        Stream::new(&self.gpu).map(Queue)
    }

    /// Room for so many numbers there, all zero.
    pub fn buffer(&self, len: usize) -> Result<Buffer, Trouble> {
        let bytes = len.checked_mul(8).ok_or_else(|| Trouble::no_room(None))?;
        Ok(Buffer { memory: Memory::new(&self.gpu, bytes)?, len })
    }
}

impl Buffer {
    /// How many numbers there is room for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is room for none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Queue {
    /// Copies numbers to the beginning of a buffer.
    pub fn upload(&self, to: &Buffer, values: &[f64]) -> Result<(), Trouble> {
        to.memory.upload(&self.0, 0, values)
    }

    /// Copies whole numbers to the beginning of a buffer.
    pub fn upload_counts(&self, to: &Buffer, values: &[u64]) -> Result<(), Trouble> {
        to.memory.upload(&self.0, 0, values)
    }

    /// The first numbers of a buffer.
    pub fn download(&self, from: &Buffer, len: usize) -> Result<Vec<f64>, Trouble> {
        from.memory.download(&self.0, 0, len)
    }

    /// Runs so many blocks of a kernel, with an argument for each of its parameters.
    pub fn run(&self, kernel: &Kernel, blocks: usize, arguments: &[Argument]) -> Result<(), Trouble> {
        let word = |argument: &Argument| match argument {
            Argument::Buffer(buffer) => buffer.memory.address,
            Argument::Count(count) => *count as u64,
            Argument::Number(number) => number.to_bits(),
        };
        let mut words: Vec<u64> = arguments.iter().map(word).collect();
        self.0.run(&kernel.code, blocks, kernel.shared, &mut words)
    }
}
