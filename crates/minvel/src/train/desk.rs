//! Where work is done: who watches, whether to stop, and where to keep what must survive.

use minvel_engine::{Device, Options, Precision};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Whoever wants to know how far things are. Only the program prints; the library tells an observer.
pub trait Observer: Send + Sync {
    /// A unit of an experiment begins, number `number` (from 1) of `of`.
    fn unit(&self, _name: &str, _number: usize, _of: usize) {}
    /// A unit is finished; `seconds` is what it took, in this run or in the one that is resumed.
    fn unit_done(&self, _name: &str, _seconds: f64, _resumed: bool) {}
    /// Something of `total` steps begins at step `done`.
    fn begin(&self, _name: &str, _total: u64, _done: u64) {}
    /// Steps made so far, with a few words.
    fn advance(&self, _done: u64, _note: &str) {}
    /// The steps are finished.
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
pub struct Desk<'a> {
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
}

impl Desk<'static> {
    /// A desk without observer and without checkpoints, for tests and examples.
    pub fn bare() -> Self {
        Desk { save_every: Duration::MAX, home: None, ..Desk::new(&Silent, Stop::default(), Path::new(""), "") }
    }
}

impl<'a> Desk<'a> {
    /// A desk that keeps checkpoints in `folder` (which must exist) for what `purpose` names: other settings, other
    /// purpose, and a checkpoint of another purpose is refused.
    pub fn new(observer: &'a dyn Observer, stop: Stop, folder: &Path, purpose: &str) -> Self {
        let home = Some((folder.to_path_buf(), purpose.to_string()));
        let (begun, earlier) = (Instant::now(), Cell::new(0.0));
        let (Options { device, precision, .. }, save_every) = (Options::default(), Duration::from_secs(10));
        Desk { observer, stop, threads: 0, device, precision, save_every, home, begun, earlier }
    }

    /// The same desk with a drawer of its own for checkpoints, for work that is done several times.
    pub(crate) fn within(&self, name: &str) -> Desk<'a> {
        let home = self.home.as_ref().map(|(folder, purpose)| (folder.join(name), format!("{purpose} {name}")));
        if let Some((folder, _)) = &home {
            // Where it cannot be made, writing the checkpoint says so.
            let _ = std::fs::create_dir_all(folder);
        }
        Desk { home, ..self.copied() }
    }

    /// The same desk without an observer and without checkpoints.
    pub(crate) fn quiet(&self) -> Desk<'a> {
        Desk { observer: &Silent, home: None, ..self.copied() }
    }

    fn copied(&self) -> Desk<'a> {
        let Desk { observer, threads, device, precision, save_every, begun, .. } = *self;
        let (stop, home, earlier) = (self.stop.clone(), self.home.clone(), self.earlier.clone());
        Desk { observer, stop, threads, device, precision, save_every, home, begun, earlier }
    }

    /// Options for programs of so many replicas.
    pub fn options(&self, replicas: usize) -> Options {
        let Desk { threads, device, precision, .. } = *self;
        Options { replicas, threads, device, precision, ..Options::default() }
    }

    /// Threads for work without a program.
    pub fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        if self.threads > 0 { self.threads } else { cores() }
    }

    /// Seconds of work at this desk, also before an interruption.
    pub fn seconds(&self) -> f64 {
        self.earlier.get() + self.begun.elapsed().as_secs_f64()
    }

    /// Adds the seconds that a checkpoint knows of.
    pub(crate) fn resumed(&self, seconds: f64) {
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

    /// Tells the observer that steps begin.
    pub fn begin(&self, name: &str, total: u64, done: u64) {
        self.observer.begin(name, total, done);
    }

    /// Tells the observer how far they are.
    pub fn advance(&self, done: u64, note: &str) {
        self.observer.advance(done, note);
    }

    /// Tells the observer that they are finished.
    pub fn end(&self) {
        self.observer.end();
    }

    /// An error if somebody asked to stop: to be called in loops that have no trainer.
    pub fn go_on(&self) -> Result<(), crate::Error> {
        if self.stop.asked() { Err(crate::Error::Interrupted) } else { Ok(()) }
    }
}
