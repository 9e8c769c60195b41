//! Programs: expressions compiled once and run many times.

use crate::cpu;
use crate::device::{Device, DeviceError};
use crate::graph::{Expr, Graph};
use crate::inputs::{Clock, Inputs};
use crate::limits;
use crate::math::Real;
use crate::op::Op;
use crate::options::Options;
use crate::state::State;
use std::ops::Range;

/// A compiled program, which may be moved to another thread. Running it on the CPU allocates nothing; on a GPU its variables stay there between runs.
pub struct Program<T: Real>(Backend<T>);

enum Backend<T: Real> {
    Cpu(Box<cpu::Bound<T>>),
    #[cfg(feature = "cuda")]
    Cuda(Box<crate::cuda::Executor<T>>),
}

/// Rows of the largest tile that may be asked for.
const MAX_TILE: usize = 1 << 16;

impl Graph {
    /// Compiles a program that computes `outputs` and gives each variable of `updates` a new value.
    ///
    /// Panics if the device cannot be used; [`Graph::try_compile`] says why instead.
    pub fn compile<T: Real>(&self, outputs: &[Expr], updates: &[(Expr, Expr)], options: &Options) -> Program<T> {
        self.try_compile(outputs, updates, options).unwrap_or_else(|why| panic!("compile: {why}"))
    }

    /// [`Graph::compile`], with an error if the device cannot be used (no driver, no compiler, no memory, …).
    pub fn try_compile<T: Real>(
        &self,
        outputs: &[Expr],
        updates: &[(Expr, Expr)],
        options: &Options,
    ) -> Result<Program<T>, DeviceError> {
        assert!(options.replicas > 0, "compile: at least one replica is needed");
        let tile = options.tile;
        assert!(
            tile.is_multiple_of(16) && tile <= MAX_TILE,
            "compile: a tile must have 16, 32, … {MAX_TILE} rows, not {tile}"
        );
        for value in outputs.iter().chain(updates.iter().map(|(_, value)| value)) {
            assert!(!value.is_bytes(), "compile: {value:?} is bytes, which only gather can read");
        }
        for (variable, value) in updates {
            let node = variable.node();
            assert!(
                matches!(node.op, Op::Variable(_)),
                "compile: {variable:?} is not a variable and cannot be updated"
            );
            assert!(node.shape == value.shape(), "compile: {variable:?} cannot be updated with {value:?}");
        }
        limits::check(self, outputs, updates, options.replicas)?;
        match options.device {
            Device::Cpu => {
                let bound = cpu::compile(self, outputs, updates, options)?;
                Ok(Program(Backend::Cpu(Box::new(bound))))
            }
            #[cfg(feature = "cuda")]
            Device::Cuda(index) => {
                let executor = crate::cuda::compile(self, outputs, updates, options, index)?;
                Ok(Program(Backend::Cuda(Box::new(executor))))
            }
            #[cfg(not(feature = "cuda"))]
            Device::Cuda(_) => Err(crate::machine::without()),
        }
    }

    /// The kernels that a program would have on a GPU, as CUDA C, and last what each computes. Needs no GPU; panics if the
    /// program is too large for any.
    #[cfg(feature = "cuda")]
    pub fn cuda_source<T: Real>(&self, outputs: &[Expr], updates: &[(Expr, Expr)], options: &Options) -> Vec<String> {
        crate::cuda::source::<T>(self, outputs, updates, options).unwrap_or_else(|why| panic!("cuda_source: {why}"))
    }
}

/// Each method that works on the device has two forms: one that says by an error what went wrong, and one that panics, for
/// programs on the CPU with inputs known to be good (tests, examples).
impl<T: Real> Program<T> {
    /// Runs one step. Inputs are given by name: values of all replicas one after another, or of one, shared by all.
    ///
    /// Panics where [`Program::try_run`] has an error.
    pub fn run(&mut self, state: &mut State<T>, inputs: &[(&str, &[T])], clock: Clock) {
        self.try_run(state, inputs, clock).unwrap_or_else(|why| panic!("run: {why}"));
    }

    /// [`Program::run`], with an error if the device fails or an index of a gather or scatter is outside its table.
    ///
    /// A GPU works on after this returns: its errors, bad indices among them, may be told only by what looks at results
    /// ([`Program::try_output`], [`State::try_get`], [`State::fetch`]). After an error the variables are those before the failed run, or
    /// they are lost, which the state then says; nothing is wrong silently. A program that met a bad index has failed for
    /// good: what is asked of it later gives the same error.
    pub fn try_run(&mut self, state: &mut State<T>, inputs: &[(&str, &[T])], clock: Clock) -> Result<(), DeviceError> {
        match &mut self.0 {
            Backend::Cpu(bound) => bound.run_steps(state, Inputs::reals(inputs), clock.seed, clock.step..=clock.step),
            #[cfg(feature = "cuda")]
            Backend::Cuda(executor) => executor.run(state, Some(Inputs::reals(inputs)), clock, 1),
        }
    }

    /// Runs a range of steps with the same inputs; outputs are those of the last. Panics where [`Program::try_run`] has an error.
    pub fn run_steps(&mut self, state: &mut State<T>, inputs: &[(&str, &[T])], seed: u64, steps: Range<u32>) {
        self.loaded(inputs).run_steps(state, seed, steps);
    }

    /// [`Program::run_steps`], with the errors of [`Program::try_run`].
    pub fn try_run_steps(
        &mut self,
        state: &mut State<T>,
        inputs: &[(&str, &[T])],
        seed: u64,
        steps: Range<u32>,
    ) -> Result<(), DeviceError> {
        self.loaded(inputs).try_run_steps(state, seed, steps)
    }

    /// The program with inputs that stay: for many runs on the same data, some of which may be bytes
    /// ([`Loaded::with_bytes`]).
    pub fn loaded<'a>(&'a mut self, inputs: &'a [(&'a str, &'a [T])]) -> Loaded<'a, T> {
        Loaded { program: self, inputs: Inputs::reals(inputs), copied: false }
    }

    /// The values of output `k` after the last run, row-major, replica after replica.
    ///
    /// Panics where [`Program::try_output`] has an error.
    pub fn output(&self, k: usize) -> &[T] {
        self.try_output(k).unwrap_or_else(|why| panic!("output {k}: {why}"))
    }

    /// [`Program::output`], with an error if a GPU failed before they were here, or the program met a bad index.
    pub fn try_output(&self, k: usize) -> Result<&[T], DeviceError> {
        match &self.0 {
            Backend::Cpu(bound) => bound.output(k),
            #[cfg(feature = "cuda")]
            Backend::Cuda(executor) => executor.output(k),
        }
    }

    /// The plan in words: stages, instructions, memory.
    pub fn describe(&self) -> String {
        match &self.0 {
            Backend::Cpu(bound) => bound.describe(),
            #[cfg(feature = "cuda")]
            Backend::Cuda(executor) => executor.describe(),
        }
    }

    /// Microseconds that each kernel of a program on a GPU takes by itself, after a run whose results are then lost.
    /// Empty on the CPU.
    pub fn profile(&mut self) -> Result<Vec<f64>, DeviceError> {
        match &mut self.0 {
            Backend::Cpu(_) => Ok(vec![]),
            #[cfg(feature = "cuda")]
            Backend::Cuda(executor) => executor.profile(),
        }
    }

    /// Number of stages (where rows meet, a new one begins), or of kernels.
    pub fn stages(&self) -> usize {
        match &self.0 {
            Backend::Cpu(bound) => bound.stages(),
            #[cfg(feature = "cuda")]
            Backend::Cuda(executor) => executor.stages(),
        }
    }
}

/// A program with its inputs. As long as it is held they cannot change, so that they are copied to a GPU only once.
pub struct Loaded<'a, T: Real> {
    program: &'a mut Program<T>,
    inputs: Inputs<'a, T>,
    copied: bool,
}

impl<'a, T: Real> Loaded<'a, T> {
    /// With inputs that are bytes ([`Graph::input_bytes`]), of all replicas one after another, or of one, shared by all.
    pub fn with_bytes(mut self, bytes: &'a [(&'a str, &'a [u8])]) -> Self {
        self.inputs.bytes = bytes;
        self.copied = false;
        self
    }

    /// As [`Program::run_steps`].
    pub fn run_steps(&mut self, state: &mut State<T>, seed: u64, steps: Range<u32>) {
        self.try_run_steps(state, seed, steps).unwrap_or_else(|why| panic!("run: {why}"));
    }

    /// As [`Program::try_run_steps`].
    pub fn try_run_steps(&mut self, state: &mut State<T>, seed: u64, steps: Range<u32>) -> Result<(), DeviceError> {
        match &mut self.program.0 {
            Backend::Cpu(bound) => bound.run_steps(state, self.inputs, seed, steps)?,
            #[cfg(feature = "cuda")]
            Backend::Cuda(executor) => {
                let new = (!self.copied).then_some(self.inputs);
                executor.run(state, new, Clock { seed, step: steps.start }, steps.len() as u32)?;
            }
        }
        self.copied = true;
        Ok(())
    }

    /// As [`Program::output`].
    pub fn output(&self, k: usize) -> &[T] {
        self.program.output(k)
    }

    /// As [`Program::try_output`].
    pub fn try_output(&self, k: usize) -> Result<&[T], DeviceError> {
        self.program.try_output(k)
    }
}
