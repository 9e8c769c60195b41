//! Which code an input reaches: counters that the compiler puts at every edge, if asked to.
//!
//! **Source.** LLVM's SanitizerCoverage with inline 8-bit counters, which stable Rust offers as an LLVM pass
//! (`-C passes=sancov-module`, see `fuzz/run`). Without it there are no counters, and nothing is ever new.

#![allow(unsafe_code)] // the interface of LLVM's instrumentation

use std::sync::Mutex;

/// First counters and how many follow, one range for each list of counters.
static RANGES: Mutex<Vec<(usize, usize)>> = Mutex::new(vec![]);

/// LLVM calls it before `main`, once for each compiled unit.
///
/// # Safety
/// The range holds counters that live as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    let range = (start as usize, stop as usize - start as usize);
    let mut ranges = RANGES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !ranges.contains(&range) {
        ranges.push(range);
    }
}

/// LLVM calls it with the addresses of the code, which we do not use.
#[unsafe(no_mangle)]
pub extern "C" fn __sanitizer_cov_pcs_init(_: *const usize, _: *const usize) {}

/// What was reached so far.
pub struct Map {
    ranges: Vec<(usize, usize)>,
    /// For each counter, which powers of two it has reached.
    seen: Vec<u8>,
}

impl Map {
    /// Of nothing.
    pub fn new() -> Self {
        let ranges = RANGES.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        let seen = vec![0; ranges.iter().map(|(_, count)| count).sum()];
        Map { ranges, seen }
    }

    /// Whether there are counters.
    pub fn is_there(&self) -> bool {
        !self.seen.is_empty()
    }

    /// Sets all counters to zero.
    pub fn clear(&self) {
        for (start, count) in &self.ranges {
            // SAFETY: LLVM's promise; nobody else runs instrumented code meanwhile that counts for anything
            unsafe { std::ptr::write_bytes(*start as *mut u8, 0, *count) }
        }
    }

    /// Whether the counters show something that was not seen before; from now on it is.
    pub fn is_news(&mut self) -> bool {
        let (mut news, mut at) = (false, 0);
        for (start, count) in &self.ranges {
            // SAFETY: LLVM's promise
            let counters = unsafe { std::slice::from_raw_parts(*start as *const u8, *count) };
            for (counter, seen) in counters.iter().zip(&mut self.seen[at..]) {
                if *counter > 0 {
                    let bit = 1 << counter.ilog2();
                    news |= *seen & bit == 0;
                    *seen |= bit;
                }
            }
            at += count;
        }
        news
    }

    /// Edges that were reached.
    pub fn edges(&self) -> usize {
        self.seen.iter().filter(|seen| **seen > 0).count()
    }
}
