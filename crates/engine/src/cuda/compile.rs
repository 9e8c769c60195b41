//! Kernels as code on the card: compiled on all cores, each once in a process.

use super::driver::{Code, Gpu};
use super::nvrtc::{Nvrtc, fingerprint};
use super::plan::Kernel;
use super::{Beside, Trouble, beside};
use crate::device::Card;
use std::collections::HashMap;
use std::num::NonZero;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

/// What tells kernels apart: the card, the bytes of shared memory, and the source.
type Key = (usize, usize, String);

/// What this process has loaded. Programs come and go, often of equal structure: their kernels stay.
static LOADED: LazyLock<Mutex<HashMap<Key, Arc<Code>>>> = LazyLock::new(Mutex::default);
/// More kernels than this stay only as long as a program has them (each takes about a tenth of a megabyte).
const STAY: usize = 2048;

fn loaded() -> MutexGuard<'static, HashMap<Key, Arc<Code>>> {
    LOADED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The code of all kernels, in order.
pub(super) fn compile(card: &Card, nvrtc: &Nvrtc, kernels: &[Kernel]) -> Result<Vec<Arc<Code>>, Trouble> {
    let key = |k: &Kernel| (card.index, k.shared, fingerprint(k.source.as_bytes()));
    let keys: Vec<Key> = kernels.iter().map(key).collect();
    let mut code: HashMap<&Key, Arc<Code>> = HashMap::new();
    let mut missing: HashMap<&Key, &Kernel> = HashMap::new();
    {
        let loaded = loaded();
        for (key, kernel) in keys.iter().zip(kernels) {
            match loaded.get(key) {
                Some(found) => drop(code.insert(key, found.clone())),
                None => drop(missing.insert(key, kernel)),
            }
        }
    }
    let made = build(card, nvrtc, missing.into_iter().collect())?;
    let mut loaded = loaded();
    if loaded.len() + made.len() > STAY {
        loaded.retain(|_, code| Arc::strong_count(code) > 1);
    }
    for (key, made) in made {
        loaded.insert(key.clone(), made.clone());
        code.insert(key, made);
    }
    Ok(keys.iter().map(|key| code[key].clone()).collect())
}

/// About how long a kernel takes to compile, in characters: the loops of a product are as much as a long epilogue.
fn effort(source: &str) -> usize {
    let products = source.matches("accumulate<").count() + source.matches("multiply<").count();
    source.len() + 3000 * products
}

/// Compiles kernels, or finds them in the cache, and loads them.
fn build<'k>(
    card: &Card,
    nvrtc: &Nvrtc,
    mut kernels: Vec<(&'k Key, &Kernel)>,
) -> Result<Vec<(&'k Key, Arc<Code>)>, Trouble> {
    // The longest first, so that none is left over at the end.
    kernels.sort_by_cached_key(|(key, kernel)| (std::cmp::Reverse(effort(&kernel.source)), *key));
    let arch = card.capability.0 * 10 + card.capability.1;
    let one = |kernel: &Kernel| {
        let machine = nvrtc.compile(&kernel.source, arch)?;
        let gpu = Gpu::open(card.index)?; // others may still be opening it
        Code::load(&gpu, &machine, kernel.shared).map(Arc::new)
    };
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get).min(kernels.len());
    let queue = Mutex::new(kernels.into_iter());
    let work = || {
        let next = || queue.lock().ok()?.next();
        std::iter::from_fn(next).map(|(key, kernel)| Ok((key, one(kernel)?))).collect::<Result<Vec<_>, Trouble>>()
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| beside(scope, work)).collect();
        let made: Result<Vec<Vec<_>>, Trouble> = workers.into_iter().map(Beside::result).collect();
        made.map(|made| made.into_iter().flatten().collect())
    })
}
