//! Runs a plan: stages one after another, each shared by the team.
#![allow(unsafe_code)] // tasks of one stage write disjoint parts of shared memory through raw pointers

use super::chain::{Arg, BLOCK};
use super::gemm::{self, Start};
use super::memory::Aligned;
use super::moves;
use super::plan::*;
use super::team::Team;
use super::tiling::{LANES, Tiling};
use crate::device::{BadIndex, DeviceError};
use crate::inputs::Clock;
use crate::isa::Isa;
use crate::math::Real;
use crate::random::Key;
use std::any::Any;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Whole stages with less work than this (in elements) are not worth waking the team for.
const SMALL: usize = 8 * BLOCK;

/// External buffers of a run: address and distance between replicas.
#[derive(Clone, Copy)]
pub struct External<T> {
    pub ptr: *mut T,
    pub per_replica: usize,
}

// SAFETY: every run binds the addresses anew, from what it is given, before they are read; between runs they are not.
unsafe impl<T: Send> Send for External<T> {}

/// All external buffers of a run.
#[derive(Clone, Copy)]
pub struct Externals<'a, T> {
    pub inputs: &'a [External<T>],
    pub bytes: &'a [External<u8>],
    pub variables: &'a [External<T>],
    pub next: &'a [External<T>],
}

/// What a thread works with; made once, reused for every task.
pub(crate) struct Worker<T> {
    pub isa: Isa,
    pub arena: Aligned<T>,
    pub registers: Aligned<T>,
    pub scratch: Aligned<T>,
    pub bases: Vec<*mut T>,
    pub args: Vec<Arg<T>>,
    pub block: Vec<Arg<T>>,
}

// SAFETY: the pointers are scratch, set anew by every instruction before they are read.
unsafe impl<T: Send> Send for Worker<T> {}

impl<T: Real> Worker<T> {
    fn new(plan: &Plan, isa: Isa) -> Result<Self, DeviceError> {
        Ok(Worker {
            isa,
            arena: Aligned::new(plan.arena)?,
            registers: Aligned::new(plan.registers * BLOCK.max(plan.pitch))?,
            scratch: Aligned::new(plan.scratch)?,
            bases: vec![std::ptr::null_mut(); plan.operands],
            args: vec![Arg::empty(); plan.operands],
            block: vec![Arg::empty(); plan.operands],
        })
    }
}

/// Where a task is: the memory it may touch, its replica, chunk and rows.
pub(crate) struct Place<'a, T> {
    plan: &'a Plan,
    memory: *mut T,
    externals: Externals<'a, T>,
    bad_index: &'a AtomicU64,
    pub clock: Clock,
    first_replica: u32,
    pub replica: usize,
    chunk: usize,
    pub first_row: usize,
    rows: usize,
    pub pitch: usize,
}

impl<T: Copy> Place<'_, T> {
    /// Rows of data in the tile.
    pub fn valid(&self) -> usize {
        self.rows
    }

    /// Lanes of the tile, in whole vectors.
    pub fn lanes(&self) -> usize {
        self.rows.next_multiple_of(LANES)
    }

    pub fn key(&self) -> Key {
        Key::new(self.clock.seed, self.first_replica + self.replica as u32)
    }

    /// The address of a place for this task.
    ///
    /// # Safety
    /// The plan's buffers fit the memory, inputs and variables of the run.
    pub unsafe fn resolve(&self, worker: &mut Worker<T>, at: Ptr) -> *mut T {
        let b = &self.plan.buffers[at.buffer];
        let External { ptr, per_replica } = match b.home {
            Home::Memory => External { ptr: self.memory, per_replica: b.per_replica },
            Home::Tile => External { ptr: worker.arena.as_mut_ptr(), per_replica: 0 },
            Home::Input(i) => self.externals.inputs[i],
            Home::Variable(i) => self.externals.variables[i],
            Home::Next(i) => self.externals.next[i],
            Home::Bytes(_) => unreachable!("bytes are read by gather alone"),
        };
        let offset = b.base + self.replica * per_replica + self.first_row * b.per_row + self.chunk * b.per_chunk;
        // SAFETY: the caller's contract.
        unsafe { ptr.add(offset + at.offset) }
    }

    /// An index as an entry of a table of `len`. One outside is noted and becomes 0: the run fails, but reads no foreign memory.
    pub fn entry(&self, index: T, len: usize) -> usize
    where
        T: Real,
    {
        let exact = index.to_f64();
        if exact >= 0.0 && exact < len as f64 {
            return exact as usize;
        }
        self.bad_index.fetch_max(BadIndex::new(exact as f32, len).0, Ordering::Relaxed);
        0
    }

    /// The bytes of this task's replica, if the place is an input of bytes.
    pub fn bytes(&self, at: Ptr) -> Option<*const u8> {
        let Home::Bytes(i) = self.plan.buffers[at.buffer].home else { return None };
        let External { ptr, per_replica } = self.externals.bytes[i];
        Some(ptr.wrapping_add(self.replica * per_replica + at.offset))
    }
}

/// Runs all stages of a program once.
///
/// # Safety
/// `externals` has an entry for each input and variable of the executor's plan, which may be read (and, if it is a next
/// value, written by nobody else) at the plan's length for every replica.
pub(crate) type RunStages<T> = unsafe fn(&mut Executor<T>, Clock, u32, Externals<T>);

unsafe fn run_single(executor: &mut Executor<f32>, clock: Clock, first_replica: u32, externals: Externals<f32>) {
    // SAFETY: the caller's contract.
    unsafe { executor.run(clock, first_replica, externals) };
}

unsafe fn run_double(executor: &mut Executor<f64>, clock: Clock, first_replica: u32, externals: Externals<f64>) {
    // SAFETY: the caller's contract.
    unsafe { executor.run(clock, first_replica, externals) };
}

/// The one of the two functions above that is for T. They are compiled once, in this crate: a generic function would be
/// compiled again, with all kernels for all instruction sets, by every crate that runs a program.
pub(crate) fn run_stages<T: Real>() -> RunStages<T> {
    let known: [&dyn Any; 2] = [&(run_single as RunStages<f32>), &(run_double as RunStages<f64>)];
    *known.into_iter().find_map(|run| run.downcast_ref()).expect("only f32 and f64 are real")
}

/// The state of an executor: memory and workers.
pub struct Executor<T> {
    pub(crate) plan: Plan,
    pub(crate) memory: Aligned<T>,
    replicas: usize,
    team: Team,
    workers: Vec<Mutex<Worker<T>>>,
    /// What `BadIndex` knows; 0 as long as there was none.
    bad_index: AtomicU64,
}

impl<T: Real> Executor<T> {
    pub(crate) fn new(plan: Plan, replicas: usize, threads: usize, isa: Isa) -> Result<Self, DeviceError> {
        let mut memory = Aligned::new(plan.memory)?;
        for (at, values) in &plan.constants {
            memory[*at..at + values.len()].iter_mut().zip(values).for_each(|(m, &v)| *m = T::from_f64(v));
        }
        let workers: Result<_, _> = (0..threads).map(|_| Worker::new(&plan, isa).map(Mutex::new)).collect();
        let (team, bad_index) = (Team::new(threads)?, AtomicU64::new(0));
        Ok(Executor { plan, memory, replicas, team, workers: workers?, bad_index })
    }

    /// An error if an index of any step so far was outside its table.
    pub(crate) fn check(&self) -> Result<(), DeviceError> {
        BadIndex(self.bad_index.load(Ordering::Relaxed)).check()
    }

    /// # Safety
    /// As [`RunStages`].
    unsafe fn run(&mut self, clock: Clock, first_replica: u32, externals: Externals<T>) {
        if let Some(at) = self.plan.step {
            self.memory[at] = T::from_f64(clock.step as f64);
        }
        let memory = Shared(self.memory.as_mut_ptr());
        let externals = Shared(externals);
        for stage in &self.plan.stages {
            let counter = AtomicUsize::new(0);
            let tasks = tasks(stage, self.replicas);
            let job = |thread: usize| {
                let (memory, externals) = (&memory, &externals);
                let mut worker = self.workers[thread].lock().expect("a worker does not panic while running");
                let mut place = Place {
                    plan: &self.plan,
                    memory: memory.0,
                    externals: externals.0,
                    bad_index: &self.bad_index,
                    clock,
                    first_replica,
                    replica: 0,
                    chunk: 0,
                    first_row: 0,
                    rows: 0,
                    pitch: 1,
                };
                loop {
                    let task = counter.fetch_add(1, Ordering::Relaxed);
                    if task >= tasks {
                        break;
                    }
                    // SAFETY: tasks of a stage write disjoint memory: other chunks, replicas, instructions or pieces. The plan
                    // fits its own memory, and what is external by the caller's contract.
                    unsafe { run_task(stage, task, &mut worker, &mut place) };
                }
            };
            if tasks == 1 || is_small(stage, self.replicas) { job(0) } else { self.team.run(&job) }
        }
    }
}

/// Raw pointers that tasks share; each task touches its own part.
struct Shared<P>(P);
// SAFETY: only `Executor::run` makes them: tasks write disjoint parts, and stages are separated by the team's barrier.
unsafe impl<P> Sync for Shared<P> {}

fn tasks(stage: &Stage, replicas: usize) -> usize {
    replicas
        * match stage {
            Stage::Rows { tiling, .. } => tiling.chunks(),
            Stage::Whole { instrs } => instrs.iter().map(pieces).sum(),
        }
}

/// Independent pieces of an instruction of a whole stage.
fn pieces(instr: &Instr) -> usize {
    match instr {
        Instr::Chain(chain) => chain.pieces(),
        Instr::Contractions { terms, rows } => terms[0].pieces(*rows),
        Instr::Product(_) | Instr::Contraction(_) | Instr::Random { .. } | Instr::Copy { .. } => 1,
        Instr::Load { .. } | Instr::Save { .. } | Instr::Fill { .. } | Instr::FillLanes { .. } => 1,
        Instr::Im2col { .. } | Instr::Col2im { .. } | Instr::Gather { .. } | Instr::Scatter { .. } => 1,
        Instr::Collect { .. } | Instr::Kth { .. } => 1,
    }
}

fn is_small(stage: &Stage, replicas: usize) -> bool {
    let work: usize = match stage {
        Stage::Rows { .. } => return false,
        Stage::Whole { instrs } => instrs.iter().map(Instr::work).sum(),
    };
    work * replicas < SMALL
}

/// # Safety
/// No other thread touches what this task writes.
unsafe fn run_task<T: Real>(stage: &Stage, task: usize, worker: &mut Worker<T>, place: &mut Place<T>) {
    match stage {
        Stage::Rows { tiling, partials, instrs } => {
            place.replica = task / tiling.chunks();
            place.chunk = task % tiling.chunks();
            // SAFETY: a chunk owns its partial results and its tiles.
            unsafe { run_chunk(tiling, partials, instrs, worker, place) };
        }
        Stage::Whole { instrs } => {
            let per_replica: usize = instrs.iter().map(pieces).sum();
            place.replica = task / per_replica;
            let mut piece = task % per_replica;
            for instr in instrs {
                let count = pieces(instr);
                if piece < count {
                    // SAFETY: pieces of an instruction write disjoint entries.
                    unsafe { run_instr(instr, worker, place, piece, count) };
                    break;
                }
                piece -= count;
            }
        }
    }
}

/// # Safety
/// As [`run_task`].
unsafe fn run_chunk<T: Real>(
    tiling: &Tiling,
    partials: &[(Ptr, usize, f64)],
    instrs: &[Instr],
    worker: &mut Worker<T>,
    place: &mut Place<T>,
) {
    place.pitch = tiling.pitch();
    for &(at, len, start) in partials {
        // SAFETY: the partial results of this chunk.
        unsafe { std::slice::from_raw_parts_mut(place.resolve(worker, at), len).fill(T::from_f64(start)) };
    }
    for tile in tiling.chunk(place.chunk) {
        let rows = tiling.tile(tile);
        place.first_row = rows.start;
        place.rows = rows.len();
        for instr in instrs {
            // SAFETY: a tile owns its rows.
            unsafe { run_instr(instr, worker, place, 0, 1) };
        }
    }
    place.first_row = 0;
    place.chunk = 0;
}

/// # Safety
/// As [`run_task`].
unsafe fn run_instr<T: Real>(instr: &Instr, worker: &mut Worker<T>, place: &Place<T>, piece: usize, pieces: usize) {
    // SAFETY of all calls: the plan's places and extents fit the memory of the run.
    unsafe {
        match instr {
            Instr::Chain(chain) => chain.run(worker, place, piece, pieces),
            Instr::Product(p) => product(p, worker, place),
            Instr::Contraction(c) => contraction(c, 0..c.m, place.valid(), worker, place),
            Instr::Contractions { terms, rows } => contractions(terms, *rows, piece, pieces, worker, place),
            Instr::Load { .. } | Instr::Save { .. } | Instr::Random { .. } => moves::run(instr, worker, place),
            Instr::Fill { .. } | Instr::FillLanes { .. } | Instr::Copy { .. } => moves::run(instr, worker, place),
            Instr::Im2col { .. } | Instr::Col2im { .. } => moves::run(instr, worker, place),
            Instr::Gather { .. } | Instr::Scatter { .. } => moves::run(instr, worker, place),
            Instr::Collect { .. } | Instr::Kth { .. } => moves::run(instr, worker, place),
        }
    }
}

unsafe fn product<T: Real>(p: &Product, worker: &mut Worker<T>, place: &Place<T>) {
    let lanes = match p.lanes {
        Lanes::Tile => place.lanes(),
        Lanes::Fixed(n) => n,
    };
    // SAFETY: the plan's places and extents fit the memory of the run.
    unsafe {
        let (w, a, c) = (place.resolve(worker, p.w), place.resolve(worker, p.a), place.resolve(worker, p.c));
        let init = match p.bias {
            Some((at, stride)) => Start::Bias(place.resolve(worker, at) as *const T, stride),
            None => Start::Zero,
        };
        let [outer, inner] = p.turns;
        for i in 0..outer.count {
            for j in 0..inner.count {
                let w = w.add(i * outer.w + j * inner.w);
                let a = a.add(i * outer.a + j * inner.a);
                let c = c.add(i * outer.c + j * inner.c);
                let [k_step, n_step] = p.w_strides;
                gemm::lanes(worker.isa, p.n, p.k, lanes, w, k_step, n_step, a, p.a_stride, c, p.c_stride, init);
            }
        }
    }
}

impl Contraction {
    /// Groups of rows of C that threads can compute apart: blocks of 64, as long as there is enough to do.
    fn pieces(&self, rows: usize) -> usize {
        if self.m * self.n * rows < 1 << 18 { 1 } else { self.m.div_ceil(64) }
    }
}

/// Rows `part` of C, summed over the first `rows` lanes.
unsafe fn contraction<T: Real>(
    p: &Contraction,
    part: Range<usize>,
    rows: usize,
    worker: &mut Worker<T>,
    place: &Place<T>,
) {
    // SAFETY: the plan's places and extents fit the memory of the run.
    unsafe {
        let (a, b, c) = (place.resolve(worker, p.a), place.resolve(worker, p.b), place.resolve(worker, p.c));
        let [outer, inner] = p.turns;
        for i in 0..outer.count {
            for j in 0..inner.count {
                let a = a.add(i * outer.w + j * inner.w + part.start * p.a_stride);
                let b = b.add(i * outer.a + j * inner.a);
                let c = c.add(i * outer.c + j * inner.c + part.start * p.n);
                let (isa, scale, scratch) = (worker.isa, T::from_f64(p.scale), &mut worker.scratch[..]);
                gemm::rows(isa, part.len(), p.n, rows, a, p.a_stride, b, p.b_stride, c, p.n, scale, scratch);
            }
        }
    }
}

/// Piece `piece` of C from all terms.
unsafe fn contractions<T: Real>(
    terms: &[Contraction],
    rows: usize,
    piece: usize,
    pieces: usize,
    worker: &mut Worker<T>,
    place: &Place<T>,
) {
    let first = &terms[0];
    let part = piece * first.m / pieces..(piece + 1) * first.m / pieces;
    // SAFETY: the plan's places and extents fit the memory of the run; pieces are disjoint rows of C.
    unsafe {
        let c = place.resolve(worker, first.c);
        for batch in 0..first.turns[0].count {
            let block = c.add(batch * first.turns[0].c + part.start * first.n);
            std::slice::from_raw_parts_mut(block, part.len() * first.n).fill(T::ZERO);
        }
        for term in terms {
            contraction(term, part.clone(), rows, worker, place);
        }
    }
}
