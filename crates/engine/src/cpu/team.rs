//! A team of worker threads that meets at every stage of a program.
//!
//! Stages last microseconds, so workers spin for a while before they sleep, and nothing is allocated per stage.

#![allow(unsafe_code)] // a closure's lifetime is erased while the team runs it

use crate::device::DeviceError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// Spins before yielding: about 20 µs, longer than the gap between two stages.
const SPINS: usize = 2_000;
/// Yields before sleeping.
const YIELDS: usize = 200;

/// The current job: a pointer to a closure that lives on the caller's stack until every worker is done.
#[derive(Clone, Copy)]
struct Job(*const (dyn Fn(usize) + Sync + 'static));

// SAFETY: the closure behind the pointer is `Sync`, and `Team::run` keeps it alive while workers may use it.
unsafe impl Send for Job {}

struct Shared {
    job: Mutex<Option<Job>>,
    /// Counts jobs; workers wait for it to change.
    generation: AtomicUsize,
    /// Workers that have not finished the current job.
    busy: AtomicUsize,
    panicked: AtomicBool,
    closing: AtomicBool,
}

/// Worker threads, the caller being number 0.
pub(crate) struct Team {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Team {
    /// A team of `threads` in all, the caller included.
    pub fn new(threads: usize) -> Result<Self, DeviceError> {
        let shared = Arc::new(Shared {
            job: Mutex::new(None),
            generation: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            closing: AtomicBool::new(false),
        });
        // Those that have started end with the team, should another not start.
        let mut team = Team { shared, workers: vec![] };
        for index in 1..threads {
            let shared = team.shared.clone();
            let worker = thread::Builder::new().name(format!("minvel-{index}")).spawn(move || work(&shared, index));
            let refused = |why| {
                DeviceError::unavailable(format!("thread {index} of {threads} cannot start: {why}; use fewer threads"))
            };
            team.workers.push(worker.map_err(refused)?);
        }
        Ok(team)
    }

    /// Runs `job(index)` once on every thread and returns when all are done.
    pub fn run(&self, job: &(dyn Fn(usize) + Sync)) {
        if self.workers.is_empty() {
            return job(0);
        }
        // SAFETY: only the lifetime is erased; this function does not return before `busy` is zero.
        let job_ptr = unsafe {
            std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const (dyn Fn(usize) + Sync + 'static)>(job)
        };
        let shared = &self.shared;
        *shared.job.lock().expect("no worker panics while holding the lock") = Some(Job(job_ptr));
        shared.busy.store(self.workers.len(), Ordering::Relaxed);
        shared.generation.fetch_add(1, Ordering::Release);
        self.workers.iter().for_each(|w| w.thread().unpark());
        let own = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job(0)));
        let mut turns = 0;
        while shared.busy.load(Ordering::Acquire) != 0 {
            turns += 1;
            if turns < SPINS { std::hint::spin_loop() } else { thread::yield_now() }
        }
        if let Err(panic) = own {
            std::panic::resume_unwind(panic);
        }
        assert!(!shared.panicked.swap(false, Ordering::Relaxed), "a worker thread panicked");
    }
}

fn work(shared: &Shared, index: usize) {
    let mut seen = 0;
    loop {
        let mut turns = 0;
        while shared.generation.load(Ordering::Acquire) == seen {
            turns += 1;
            if turns < SPINS {
                std::hint::spin_loop();
            } else if turns < SPINS + YIELDS {
                thread::yield_now();
            } else {
                thread::park();
            }
        }
        seen += 1;
        if shared.closing.load(Ordering::Acquire) {
            return;
        }
        let job = *shared.job.lock().expect("no thread panics while holding the lock");
        if let Some(Job(job)) = job {
            // SAFETY: the caller of `run` waits until `busy` is zero, so the closure is alive.
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| unsafe { (*job)(index) }));
            if result.is_err() {
                shared.panicked.store(true, Ordering::Relaxed);
            }
        }
        shared.busy.fetch_sub(1, Ordering::Release);
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        self.shared.generation.fetch_add(1, Ordering::Release);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            let _ = worker.join();
        }
    }
}
