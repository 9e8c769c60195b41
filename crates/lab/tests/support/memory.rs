//! Memory in use, counted by the allocator of a test's own process.
#![allow(dead_code)] // each test file uses its own part

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Counts the bytes in use and the most there were.
pub struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static ALONE: Mutex<()> = Mutex::new(());

// SAFETY: the system's allocator does all work
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Layout) -> *mut u8 {
        let now = NOW.fetch_add(memory.size(), Ordering::Relaxed) + memory.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promise
        unsafe { System.alloc(memory) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, memory: Layout) {
        NOW.fetch_sub(memory.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise
        unsafe { System.dealloc(pointer, memory) }
    }
}

/// No other test runs until this is dropped: what it allocates would be counted too.
pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What some work gives, and the most bytes that it took at once.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let made = work();
    (made, MOST.load(Ordering::Relaxed).saturating_sub(before))
}
