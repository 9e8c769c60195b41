//! Running a compiled program allocates nothing: counted by the allocator itself.
#![allow(unsafe_code)] // a counting allocator

use minvel_engine::init::Init;
use minvel_engine::optim::Optimiser;
use minvel_engine::{Device, Draw, Graph, Options, State, grad};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static COUNT: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations, by any thread, while `f` runs.
fn allocations(f: impl FnOnce()) -> usize {
    let before = COUNT.load(Ordering::Relaxed);
    f();
    COUNT.load(Ordering::Relaxed) - before
}

// One test, because the counter sees every thread of the process.
#[test]
fn a_step_in_steady_state_allocates_nothing() {
    let g = Graph::new();
    let (w, v) = (g.variable("w", [2, 30]), g.variable("v", [30, 2]));
    let x = g.random_rows(Draw::Normal, 0, 300, [2]);
    let e = x.matmul(w).tanh().matmul(v).dot(x);
    let de = grad(e, &[x])[0];
    // Rows that meet: a kernel matrix, a median, a gather; so every kind of stage runs.
    let distances = x.squared_distances(x.collect());
    let median = distances.collect().kth_smallest(45_000);
    let kernel = (distances * (-1.0 / median)).exp().sum(-1);
    let picked = g.input("table", [5, 2]).gather(g.random_rows(Draw::Integer(5), 1, 300, []));
    let loss = (de.dot(de) * kernel + picked.dot(x)).mean_rows();
    let updates =
        Optimiser { clip: Some(1.0), average: Some(0.99), ..Optimiser::adamw(1e-3, 0.01) }.minimise(loss, &[w, v]);
    let mut program = g.compile::<f32>(
        &[loss, de],
        &updates.updates,
        &Options { replicas: 3, threads: 2, device: Device::Cpu, ..Options::default() },
    );
    let mut state = State::new(3);
    Init::GlorotNormal.set(&mut state, "w", &[2, 30], 0, 0);
    Init::GlorotNormal.set(&mut state, "v", &[30, 2], 0, 1);
    updates.initialise(&mut state);
    let table = [0.5f32; 10];
    let mut run = |steps| program.run_steps(&mut state, &[("table", &table)], 7, steps);
    run(0..3); // threads have started, first touches are over
    assert_eq!(allocations(|| run(3..40)), 0);
    // The twin: the counter does see allocations.
    assert!(allocations(|| drop(std::hint::black_box(vec![1u8; 100]))) > 0);
}
