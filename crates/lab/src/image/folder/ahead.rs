//! Pictures decoded ahead of whoever reads them, by several threads and within the memory that the limit allows.

use super::Skipped;
use crate::image::Picture;
use minvel::{Error, Limits, file};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// Pictures that are decoded, and made into something, by several threads while earlier ones are used; in the order of
/// their files.
///
/// All that are being decoded or wait to be used take no more memory together than the [limit](minvel::Limits) allows; a
/// single one may always be there.
pub struct Pictures<T> {
    shared: Arc<Shared<T>>,
    workers: Vec<JoinHandle<()>>,
}

/// Pictures that wait for their turn, for each thread.
const AHEAD: usize = 8;

struct Shared<T> {
    paths: Vec<PathBuf>,
    queue: Mutex<Queue<T>>,
    /// Somebody took, finished or used a picture.
    changed: Condvar,
}

struct Queue<T> {
    /// Pictures that a thread has taken on.
    taken: usize,
    /// Pictures that were used.
    used: usize,
    /// Memory of those that were taken on and not used yet.
    weight: u64,
    /// What is finished, with the memory it took.
    ready: BTreeMap<usize, (Result<T, Skipped>, u64)>,
    /// Nobody reads any more.
    closed: bool,
}

impl<T> Shared<T> {
    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock().expect("no thread panics with the queue in its hands")
    }

    /// Waits until something about the queue is so, or nobody reads any more.
    fn wait_until(&self, so: impl Fn(&Queue<T>) -> bool) -> Option<MutexGuard<'_, Queue<T>>> {
        let queue = self.changed.wait_while(self.queue(), |queue| !queue.closed && !so(queue));
        queue.ok().filter(|queue| !queue.closed)
    }

    /// The next picture to take on.
    fn take(&self, window: usize) -> Option<usize> {
        let mut queue = self.wait_until(|queue| queue.taken < queue.used + window)?;
        queue.taken += 1;
        Some(queue.taken - 1).filter(|i| *i < self.paths.len())
    }

    /// Decodes a picture when there is memory for it. The one that is needed next never waits, so that it goes on.
    fn work(&self, i: usize, make: &dyn Fn(Picture) -> Result<T, String>) -> Option<()> {
        let path = &self.paths[i];
        let weight = guarded(path, || Picture::weight_of(path));
        let held = *weight.as_ref().unwrap_or(&0);
        let limit = Limits::current().bytes;
        self.wait_until(|queue| i == queue.used || queue.weight.saturating_add(held) <= limit)?.weight += held;
        let made = weight.and_then(|_| guarded(path, || make(Picture::decode(&read(path)?)?)));
        self.queue().ready.insert(i, (made, held));
        self.changed.notify_all();
        Some(())
    }
}

impl<T: Send + 'static> Pictures<T> {
    /// Of these files; what cannot be made of a picture is an error, in words.
    pub fn new(
        paths: Vec<PathBuf>,
        threads: usize,
        make: impl Fn(Picture) -> Result<T, String> + Send + Sync + 'static,
    ) -> Self {
        let threads = threads.max(1);
        let queue = Queue { taken: 0, used: 0, weight: 0, ready: BTreeMap::new(), closed: false };
        let shared = Arc::new(Shared { paths, queue: Mutex::new(queue), changed: Condvar::new() });
        let make = Arc::new(make);
        let work = || {
            let (shared, make) = (shared.clone(), make.clone());
            std::thread::spawn(
                move || {
                    while shared.take(AHEAD * threads).and_then(|i| shared.work(i, &*make)).is_some() {}
                },
            )
        };
        let workers = (0..threads).map(|_| work()).collect();
        Pictures { shared, workers }
    }
}

impl<T> Iterator for Pictures<T> {
    type Item = Result<T, Skipped>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.shared.queue().used;
        if next >= self.shared.paths.len() {
            return None;
        }
        let mut queue = self.shared.wait_until(|queue| queue.ready.contains_key(&next))?;
        let (picture, weight) = queue.ready.remove(&next)?;
        queue.weight -= weight;
        queue.used += 1;
        self.shared.changed.notify_all();
        Some(picture)
    }
}

impl<T> Drop for Pictures<T> {
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        self.shared.changed.notify_all();
        self.workers.drain(..).for_each(|worker| drop(worker.join()));
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    file::read(path).map_err(|error| match error {
        Error::Content { what, .. } => what,
        Error::File { source, .. } => format!("cannot be read ({source})"),
        other => other.to_string(),
    })
}

/// A decoder that panics on a damaged file costs one picture.
fn guarded<U>(path: &Path, work: impl FnOnce() -> Result<U, String>) -> Result<U, Skipped> {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    outcome.unwrap_or_else(|_| Err("is damaged".into())).map_err(|why| Skipped { path: path.to_path_buf(), why })
}
