//! Memory in use, and the most that an input may take.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts bytes; beyond [`CAP`] there is no memory, and the process aborts as on a machine that has no more.
pub struct Counting;

/// As much as the process may have.
const CAP: usize = 1 << 30;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn take(bytes: usize) -> bool {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    MOST.fetch_max(now, Ordering::Relaxed);
    if now > CAP {
        NOW.fetch_sub(bytes, Ordering::Relaxed);
        return false;
    }
    true
}

// SAFETY: the system's allocator does all work; null means that there is no memory
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match take(layout.size()) {
            // SAFETY: the caller's promise
            true => unsafe { System.alloc(layout) },
            false => std::ptr::null_mut(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match take(layout.size()) {
            // SAFETY: the caller's promise
            true => unsafe { System.alloc_zeroed(layout) },
            false => std::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// What some work gives, and the most bytes that it took at once.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let made = work();
    (made, MOST.load(Ordering::Relaxed).saturating_sub(before))
}
