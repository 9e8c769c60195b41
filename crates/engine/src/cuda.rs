//! Programs on an NVIDIA GPU: generated kernels, compiled for the card found when the program is.
//!
//! Nothing of CUDA is needed to build this: the driver and the run-time compiler are looked for when a GPU is asked for.

mod compile;
mod driver;
mod emit;
mod kernel;
mod lower;
mod nvrtc;
mod parts;
mod plan;
mod product;
mod reduce;
mod run;
mod strided;
mod tiles;
mod trace;
mod work;

pub(crate) use driver::cards;
pub use kernel::{Argument, Buffer, Kernel, Queue};
pub(crate) use run::Executor;

use crate::device::DeviceError as Trouble;
use crate::graph::{Expr, Graph};
use crate::options::Options;

/// Threads of a block, which kernels call so too.
const THREADS: usize = 256;

/// Whether a card can be used, and if not, why.
pub(crate) fn usable(index: usize) -> Result<(), Trouble> {
    driver::Gpu::open(index).and(nvrtc::Nvrtc::find()).map(drop)
}

/// Compiles a program for a card.
pub(crate) fn compile<T: crate::math::Real>(
    graph: &Graph,
    outputs: &[Expr],
    updates: &[(Expr, Expr)],
    options: &Options,
    index: usize,
) -> Result<Executor<T>, Trouble> {
    // Starting the driver and opening the card take longer than anything here but compiling, and need nothing of it.
    std::thread::scope(|scope| {
        let card = beside(scope, move || driver::find(index));
        let plan = lower::plan(graph, outputs, updates, options.replicas, arithmetic::<T>(options));
        let nvrtc = nvrtc::Nvrtc::find();
        let (card, plan) = (card.result()?, plan?);
        let bytes = plan.memory * size_of::<T>();
        let memory = beside(scope, move || driver::Memory::new(&driver::Gpu::open(index)?, bytes));
        let kernels = nvrtc.and_then(|nvrtc| compile::compile(&card, nvrtc, &plan.kernels));
        let memory = memory.result()?;
        Executor::new(plan, kernels?, memory, index, options.replicas)
    })
}

/// Work done beside other work.
enum Beside<'s, R> {
    Begun(std::thread::ScopedJoinHandle<'s, Result<R, Trouble>>),
    Refused(std::io::Error),
}

/// Begins work on another thread.
fn beside<'s, R: Send + 's>(
    scope: &'s std::thread::Scope<'s, '_>,
    work: impl FnOnce() -> Result<R, Trouble> + Send + 's,
) -> Beside<'s, R> {
    std::thread::Builder::new().spawn_scoped(scope, work).map_or_else(Beside::Refused, Beside::Begun)
}

impl<R> Beside<'_, R> {
    /// What came of it. A panic of that thread is one of this.
    fn result(self) -> Result<R, Trouble> {
        match self {
            Beside::Begun(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Beside::Refused(why) => Err(Trouble::failed(format!("a thread for the GPU cannot start: {why}"))),
        }
    }
}

fn arithmetic<T>(options: &Options) -> parts::Arithmetic {
    parts::Arithmetic { single: size_of::<T>() == 4, precision: options.precision }
}

/// The kernels of a program, as source.
pub(crate) fn source<T>(
    graph: &Graph,
    outputs: &[Expr],
    updates: &[(Expr, Expr)],
    options: &Options,
) -> Result<Vec<String>, Trouble> {
    let plan = lower::plan(graph, outputs, updates, options.replicas, arithmetic::<T>(options))?;
    Ok(plan.kernels.into_iter().map(|k| k.source).chain([plan.summary]).collect())
}
