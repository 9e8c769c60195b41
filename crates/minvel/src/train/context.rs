//! Where work is done: who watches, whether to stop, and where to keep what must survive.

use crate::Error;
use minvel_engine::{Device, Options, Precision};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Whoever wants to know how far things are. Only the program prints; the library tells an observer.
pub trait Observer: Send + Sync {
    /// A unit of an experiment begins, number `number` (from 1) of `of`.
    fn unit(&self, _name: &str, _number: usize, _of: usize) {}
    /// A unit is finished; `seconds` is what it took, in this run or in the one that is resumed.
    fn unit_done(&self, _name: &str, _seconds: f64, _resumed: bool) {}
    /// A stage of `total` units (`rows`, `steps`, …) begins; 0 where nobody knows how many there will be.
    fn begin(&self, _name: &str, _total: u64, _unit: &str) {}
    /// The stage is now expected to have so many units in all.
    fn expect(&self, _total: u64) {}
    /// So many units of the stage were done before: rates count from here.
    fn resumed(&self, _done: u64) {}
    /// Units done so far, with a few words; none leave those of before.
    fn advance(&self, _done: u64, _note: &str) {}
    /// The stage is finished.
    fn end(&self) {}
}

/// An observer that does not look.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Observer for Silent {}

/// A request to stop at the next safe place, shared with the handler of Ctrl-C.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks to stop; true if it had been asked before.
    pub fn ask(&self) -> bool {
        self.0.swap(true, Ordering::SeqCst)
    }

    /// Whether somebody asked.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// The place where one unit of work is done.
pub struct Context<'a> {
    /// Who watches.
    pub observer: &'a dyn Observer,
    /// Whether to stop.
    pub stop: Stop,
    /// Threads for programs; 0 means all cores. Results do not depend on it.
    pub threads: usize,
    /// Where programs run.
    pub device: Device,
    /// How a GPU computes matrix products.
    pub precision: Precision,
    /// Time between two checkpoints.
    pub save_every: Duration,
    /// Folder of the checkpoints and what they belong to; without it nothing is kept.
    home: Option<(PathBuf, String)>,
    begun: Instant,
    /// Seconds of work before an interruption.
    earlier: Cell<f64>,
    /// Units done of the stage that is open, if one is.
    stage: Cell<Option<u64>>,
    /// What work beside this one has left over.
    spare: Option<Arc<Spare>>,
}

/// Threads that are left over where some of the work side by side is done, for those that are still at work.
pub(super) struct Spare {
    threads: AtomicUsize,
    working: AtomicUsize,
    /// Of the work that all of this is a part of.
    whole: Option<Arc<Spare>>,
}

impl Spare {
    /// None, of so many workers in a context.
    pub fn none(workers: usize, context: &Context) -> Arc<Self> {
        let whole = context.spare.clone();
        Arc::new(Spare { threads: AtomicUsize::new(0), working: AtomicUsize::new(workers), whole })
    }

    /// A worker with so many threads is done.
    pub fn leave(&self, threads: usize) {
        self.working.fetch_sub(1, Ordering::SeqCst);
        self.threads.fetch_add(threads, Ordering::SeqCst);
    }

    /// The part of each that is at work.
    fn share(&self) -> usize {
        let of_whole = self.whole.as_ref().map_or(0, |whole| whole.share());
        (self.threads.load(Ordering::SeqCst) + of_whole) / self.working.load(Ordering::SeqCst).max(1)
    }
}

impl Context<'static> {
    /// A context without observer and without checkpoints, for tests and examples.
    pub fn bare() -> Self {
        Context::watched(&Silent, Stop::default())
    }

    /// A bare context of so many threads.
    pub fn of_threads(threads: usize) -> Self {
        Context { threads, ..Context::bare() }
    }
}

impl<'a> Context<'a> {
    /// A context without checkpoints, for work that is not resumed.
    pub fn watched(observer: &'a dyn Observer, stop: Stop) -> Self {
        Context { save_every: Duration::MAX, home: None, ..Context::new(observer, stop, Path::new(""), "") }
    }

    /// A context that keeps checkpoints in `folder` (which must exist) for what `purpose` names: other settings, other
    /// purpose, and a checkpoint of another purpose is refused.
    pub fn new(observer: &'a dyn Observer, stop: Stop, folder: &Path, purpose: &str) -> Self {
        let home = Some((folder.to_path_buf(), purpose.to_string()));
        let (begun, earlier, stage) = (Instant::now(), Cell::new(0.0), Cell::new(None));
        let (Options { device, precision, .. }, save_every) = (Options::default(), Duration::from_secs(10));
        Context { observer, stop, threads: 0, device, precision, save_every, home, begun, earlier, stage, spare: None }
    }

    /// The same context with a drawer of its own for checkpoints, for work that is done several times.
    pub fn within(&self, name: &str) -> Context<'a> {
        let home = self.home.as_ref().map(|(folder, purpose)| (folder.join(name), format!("{purpose} {name}")));
        if let Some((folder, _)) = &home {
            // Where it cannot be made, writing the checkpoint says so.
            let _ = std::fs::create_dir_all(folder);
        }
        Context { home, ..self.copied() }
    }

    /// The same context without an observer and without checkpoints.
    pub fn quiet(&self) -> Context<'a> {
        Context { observer: &Silent, home: None, ..self.copied() }
    }

    /// The same for work beside other work, with so many threads: what it counts in an open stage it tells this observer.
    pub(super) fn beside<'b>(&self, observer: &'b dyn Observer, threads: usize, spare: &Arc<Spare>) -> Context<'b>
    where
        'a: 'b,
    {
        let spare = Some(spare.clone());
        Context { observer, threads, spare, stage: Cell::new(self.stage.get().map(|_| 0)), ..self.copied() }
    }

    fn copied(&self) -> Context<'a> {
        let Context { observer, threads, device, precision, save_every, begun, .. } = *self;
        let (stop, home, earlier, spare) =
            (self.stop.clone(), self.home.clone(), self.earlier.clone(), self.spare.clone());
        let stage = Cell::new(None);
        Context { observer, stop, threads, device, precision, save_every, home, begun, earlier, stage, spare }
    }

    /// Options for programs of so many replicas.
    pub fn options(&self, replicas: usize) -> Options {
        let Context { threads, device, precision, .. } = *self;
        Options { replicas, threads, device, precision, ..Options::default() }
    }

    /// Threads for work without a program; more from one moment to the next where work beside this one is done.
    pub fn threads(&self) -> usize {
        self.own_threads() + self.spare.as_ref().map_or(0, |spare| spare.share())
    }

    /// The threads that this context has from the beginning.
    pub(super) fn own_threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        if self.threads > 0 { self.threads } else { cores() }
    }

    /// Seconds of work at this context, also before an interruption.
    pub fn seconds(&self) -> f64 {
        self.earlier.get() + self.begun.elapsed().as_secs_f64()
    }

    /// Adds the seconds that a checkpoint knows of.
    pub fn resumed(&self, seconds: f64) {
        self.earlier.set(self.earlier.get().max(seconds));
    }

    /// File of the checkpoint of something trained here.
    pub fn checkpoint(&self, name: &str) -> Option<PathBuf> {
        self.home.as_ref().map(|(folder, _)| folder.join(format!("{name}.safetensors")))
    }

    /// What such a checkpoint is for.
    pub fn purpose(&self, name: &str) -> String {
        format!("{} {name}", self.home.as_ref().map_or("", |(_, purpose)| purpose))
    }

    /// A stage of work, which the observer hears of: `total` units, 0 if nobody knows. A stage inside another is a part
    /// of it.
    pub fn stage<T>(
        &self,
        name: &str,
        total: usize,
        unit: &str,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.stage.get().is_some() {
            return work();
        }
        self.go_on()?;
        self.stage.set(Some(0));
        self.observer.begin(name, total as u64, unit);
        let outcome = work();
        self.stage.set(None);
        if outcome.is_ok() {
            self.observer.end();
        }
        outcome
    }

    /// Counts units of the stage that is open.
    pub fn worked(&self, units: usize) {
        if let Some(done) = self.stage.get() {
            self.advance(done + units as u64, "");
        }
    }

    /// Units done of the stage that is open.
    pub(super) fn done(&self) -> u64 {
        self.stage.get().unwrap_or(0)
    }

    /// So many were done in all, and whoever did them has told the observer.
    pub(super) fn counted(&self, done: u64) {
        self.stage.set(self.stage.get().map(|_| done));
    }

    /// Seconds of work before an interruption.
    pub(super) fn earlier(&self) -> f64 {
        self.earlier.get()
    }

    /// A few words about the stage that is open.
    pub fn note(&self, words: &str) {
        if let Some(done) = self.stage.get() {
            self.observer.advance(done, words);
        }
    }

    /// Tells the observer that steps begin, at step `done`; those of an open stage go on.
    pub fn begin(&self, name: &str, total: u64, done: u64) {
        match self.stage.get() {
            None => self.observer.begin(name, total, "steps"),
            Some(before) if before >= done => return,
            Some(_) => self.stage.set(Some(done)),
        }
        self.observer.resumed(done);
    }

    /// Tells the observer how far they are.
    pub fn advance(&self, done: u64, note: &str) {
        self.stage.set(self.stage.get().map(|_| done));
        self.observer.advance(done, note);
    }

    /// Tells the observer that they are finished, but for those of an open stage.
    pub fn end(&self) {
        if self.stage.get().is_none() {
            self.observer.end();
        }
    }

    /// An error if somebody asked to stop: to be called in loops that have no trainer.
    pub fn go_on(&self) -> Result<(), Error> {
        if self.stop.asked() { Err(Error::Interrupted) } else { Ok(()) }
    }
}
