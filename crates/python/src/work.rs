//! Work on a thread of its own, while the calling thread listens for Ctrl-C and tells how far it is.
//!
//! Python's lock is released while work goes on; it is taken every [`PACE`] for signals and for the one who watches. After Ctrl-C
//! work is asked to stop, and the call returns when it has: no thread is left behind.

use crate::error::raised;
use minvel::Device;
use minvel::Error;
use minvel::train::{Context, Observer, Stop};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How often signals are looked for.
const PACE: Duration = Duration::from_millis(50);

/// Where work is done.
#[derive(Clone, Copy)]
pub struct Place {
    /// Threads; 0 means all cores.
    pub threads: usize,
    /// The device.
    pub device: Device,
}

impl Place {
    /// Of a name as `auto`, `cpu` or `cuda:1`, which must be there.
    pub fn new(threads: usize, device: &str) -> PyResult<Self> {
        let device: Device = device.parse().map_err(crate::error::refused)?;
        device.checked().map_err(|why| crate::error::refused(format!("{why} (device=\"cpu\")")))?;
        Ok(Place { threads, device })
    }
}

/// How far work is.
#[derive(Clone, Default, PartialEq)]
struct Progress {
    stage: usize,
    name: String,
    unit: String,
    total: u64,
    done: u64,
    note: String,
}

/// Keeps the last that it heard.
#[derive(Default)]
struct Watcher(Mutex<Progress>);

impl Watcher {
    fn state(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Watcher {
    fn begin(&self, name: &str, total: u64, unit: &str) {
        let mut state = self.state();
        let stage = state.stage + 1;
        *state = Progress { stage, name: name.to_string(), unit: unit.to_string(), total, ..Progress::default() };
    }

    fn expect(&self, total: u64) {
        self.state().total = total;
    }

    fn advance(&self, done: u64, note: &str) {
        let mut state = self.state();
        state.done = done;
        if !note.is_empty() {
            state.note = note.to_string();
        }
    }
}

/// Does work; `watch` is called with (stage, name, unit, total, done, note) whenever something has changed.
pub fn perform<T: Send>(
    py: Python,
    place: Place,
    watch: Option<&Bound<PyAny>>,
    work: impl FnOnce(&Context) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let (watcher, stop, (done, mut finished)) = (Watcher::default(), Stop::default(), channel::<()>());
    thread::scope(|scope| {
        let (heard, watcher_of_work) = (stop.clone(), &watcher);
        let worker = scope.spawn(move || {
            let mut context = Context::watched(watcher_of_work, heard);
            (context.threads, context.device) = (place.threads, place.device);
            let outcome = work(&context);
            let _ = done.send(()); // dropped as well where work panics
            outcome
        });
        let (mut told, mut broken) = (Progress::default(), None);
        let mut wait = || {
            let finished = &mut finished; // a receiver is for one thread at a time
            finished.recv_timeout(PACE)
        };
        while let Err(RecvTimeoutError::Timeout) = py.detach(&mut wait) {
            if broken.is_none() {
                broken = py.check_signals().and_then(|()| tell(watch, &watcher, &mut told)).err();
                if broken.is_some() {
                    stop.ask();
                }
            }
        }
        let outcome = py.detach(|| worker.join());
        if broken.is_none() && matches!(outcome, Ok(Ok(_))) {
            broken = tell(watch, &watcher, &mut told).err(); // how it ended, however soon
        }
        match (broken, outcome) {
            (Some(why), _) => Err(why),
            (None, Ok(outcome)) => outcome.map_err(raised),
            (None, Err(panic)) => {
                let words = panic.downcast_ref::<String>().map(String::as_str);
                let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
                Err(PyRuntimeError::new_err(format!("minvel failed, which is a mistake of its own: {words}")))
            }
        }
    })
}

fn tell(watch: Option<&Bound<PyAny>>, watcher: &Watcher, told: &mut Progress) -> PyResult<()> {
    let Some(watch) = watch else { return Ok(()) };
    let now = watcher.state().clone();
    if now != *told {
        watch.call1((now.stage, &now.name, &now.unit, now.total, now.done, &now.note))?;
        *told = now;
    }
    Ok(())
}
