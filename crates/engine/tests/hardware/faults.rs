//! Whatever fails on a GPU is an error value: no call of the driver that fails, sooner or later, ends the process.
//!
//! The emulated card fails on request (`emulator/faults.h`), for as long as a process lasts: each fault has a process of its own,
//! which is this one again with `FAULT=1`: `crates/engine/emulator/run cargo test --release -p minvel-engine --test hardware faults::`.

use minvel_engine::optim::Optimiser;
use minvel_engine::{Clock, Device, DeviceError, DeviceErrorKind, Draw, Graph, Options, State, grad};
use minvel_testing::{Test, emulated_card, note, test};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Whether this is the process of a fault.
pub fn is_one() -> bool {
    std::env::var_os("FAULT").is_some()
}

/// What the process of a fault does.
pub fn test() -> Test {
    test!(with_a_fault)
}

pub fn tests() -> Vec<Test> {
    let cards = minvel_engine::cards().unwrap_or_default();
    let card = emulated_card(cards.first().is_some_and(|card| card.name == "emulated card"));
    vec![
        test!(a_card_lost_at_any_call_is_an_error).needs(card.clone()),
        test!(a_full_card_is_an_error_that_says_what_to_do).needs(card.clone()),
        test!(a_compiler_that_fails_is_an_error).needs(card.clone()),
        test!(kinds_of_errors_are_told_apart),
        test!(inputs_are_read_before_a_run_returns).needs(card),
    ]
}

/// A small training with a minibatch, a state that outlives a run, and everything copied back.
fn training(device: Device) -> Result<Vec<f32>, DeviceError> {
    let g = Graph::new();
    let data = g.input("data", [20, 2]);
    let x = data.gather(g.random_rows(Draw::Epoch(20), 0, 8, []));
    let w = [g.variable("w", [2, 3]), g.variable("b", [3])];
    let loss = ((x.matmul(w[0]) + w[1]).tanh().sum(-1) - g.input("target", [])).square().mean_rows();
    let slope = grad(loss, &[w[1]])[0];
    let updates = Optimiser::adam(0.01).minimise(loss, &w);
    let options = Options { replicas: 2, device, ..Options::default() };
    let mut program = g.try_compile::<f32>(&[loss, slope], &updates.updates, &options)?;
    let mut state = State::new(2);
    state.set("w", &[0.1, -0.2, 0.3, 0.4, -0.5, 0.6], 6);
    state.set("b", &[0.0; 3], 3);
    updates.initialise(&mut state);
    let numbers: Vec<f32> = (0..40).map(|k| (k as f32 * 0.37).sin()).collect();
    let mut all = vec![];
    {
        let inputs: [(&str, &[f32]); 2] = [("data", &numbers), ("target", &[0.25])];
        let mut loaded = program.loaded(&inputs);
        for block in [0..20, 20..23] {
            let before = state.clone();
            loaded.try_run_steps(&mut state, 5, block)?;
            all.extend_from_slice(loaded.try_output(0)?);
            before.fetch()?;
        }
    }
    program.try_run(&mut state, &[("data", &numbers), ("target", &[0.5])], Clock { seed: 5, step: 23 })?;
    all.extend_from_slice(program.try_output(1)?);
    state.fetch()?;
    state.iter().for_each(|(_, values)| all.extend_from_slice(values));
    Ok(all)
}

/// It meets the fault, and works on the CPU all the same.
fn with_a_fault() {
    match training(Device::Cuda(0)) {
        Ok(all) => println!("\ndone {:?}", all.iter().map(|x| x.to_bits()).collect::<Vec<_>>()),
        Err(why) => println!("\nfailed {:?}: {why}", why.kind()),
    }
    let (first, again) = (training(Device::Cpu), training(Device::Cpu));
    assert!(first.is_ok() && first == again, "{first:?}");
    println!("\nthe CPU works");
}

fn cache(name: &str) -> PathBuf {
    minvel_testing::fresh(&format!("faults-{name}"))
}

/// That process, with these variables; its last words must be there, whatever happened.
fn process(cache: &Path, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["faults::with_a_fault", "--exact", "--nocapture"]).env("FAULT", "1").env("MINVEL_CACHE", cache);
    command.env("RAYON_NUM_THREADS", "1").envs(variables.iter().copied());
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let (said, wrong) = (String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr));
    assert!(status.success() && said.contains("the CPU works"), "{variables:?}: {status}\n{said}\n{wrong}");
    assert!(!wrong.contains("panicked"), "{variables:?}: {wrong}");
    said.lines().find(|l| l.starts_with("done") || l.starts_with("failed")).expect("it said so").to_string()
}

/// Every call of the driver fails once, and all calls after it; the last number is beyond the last call.
fn a_card_lost_at_any_call_is_an_error() {
    let cache = cache("lost");
    let whole = process(&cache, &[]);
    assert!(whole.starts_with("done"), "{whole}");
    for name in ["any", "kernel"] {
        let mut failed = 0;
        for number in 1.. {
            let said = process(&cache, &[("EMULATOR_FAIL", &format!("{name}:{number}"))]);
            if said.starts_with("done") {
                assert_eq!(said, whole);
                break;
            }
            assert!(said.contains("the GPU failed"), "{said}");
            failed += 1;
        }
        note!("{failed} calls of {name} fail by a value");
        assert!(failed > if name == "any" { 100 } else { 20 }, "{name}: only {failed}");
    }
    std::fs::remove_dir_all(cache).expect("a temporary folder");
}

fn a_full_card_is_an_error_that_says_what_to_do() {
    let cache = cache("full");
    let whole = process(&cache, &[]);
    let (mut failed, mut bytes) = (0, 16);
    loop {
        let said = process(&cache, &[("EMULATOR_MEMORY", &bytes.to_string())]);
        if said.starts_with("done") {
            assert_eq!(said, whole);
            break;
        }
        assert!(said.starts_with("failed OutOfMemory") && said.contains("fewer rows or replicas"), "{said}");
        (failed, bytes) = (failed + 1, bytes * 3 / 2);
    }
    assert!(failed > 5, "only {failed}");
    // Memory is short for one call alone: where a step is prepared, where a kernel is loaded.
    for call in [
        "cuGraphInstantiateWithFlags:1:2",
        "cuGraphInstantiateWithFlags:2:2",
        "cuModuleLoadData:1:2",
        "cuStreamCreate:1:2",
    ] {
        let said = process(&cache, &[("EMULATOR_FAIL", call)]);
        assert!(said.starts_with("failed OutOfMemory"), "{call}: {said}");
    }
    std::fs::remove_dir_all(cache).expect("a temporary folder");
}

fn a_compiler_that_fails_is_an_error() {
    let cache = cache("compiler");
    for (call, kind) in
        [("nvrtcVersion", "Unavailable"), ("nvrtcCreateProgram", "Failed"), ("nvrtcCompileProgram", "Failed")]
    {
        let said = process(&cache, &[("EMULATOR_FAIL", &format!("{call}:1"))]);
        assert!(said.starts_with(&format!("failed {kind}")), "{call}: {said}");
    }
    // Entries of the cache that are cut short or changed are compiled again.
    let whole = process(&cache, &[]);
    for entry in std::fs::read_dir(&cache).expect("kernels are kept").map(|e| e.expect("an entry").path()) {
        let bytes = std::fs::read(&entry).expect("an entry");
        std::fs::write(&entry, &bytes[..bytes.len() / 2]).expect("a temporary file");
    }
    assert_eq!(process(&cache, &[]), whole);
    std::fs::remove_dir_all(cache).expect("a temporary folder");
}

/// What the first fault leaves behind is a kind that says so.
fn kinds_of_errors_are_told_apart() {
    let why = Device::Cuda(1 << 20).checked().expect_err("no machine has as many");
    assert_eq!(why.kind(), DeviceErrorKind::Unavailable, "{why}");
}

/// Inputs may be freed or changed as soon as a run has returned, though the card may still be at work.
fn inputs_are_read_before_a_run_returns() {
    let g = Graph::new();
    let (x, v) = (g.input_rows("x", 64, [16]), g.variable("v", [16]));
    let next = v + x.sum_rows();
    let mut program =
        g.compile::<f32>(&[next], &[(v, next)], &Options { device: Device::Cuda(0), ..Options::default() });
    let mut state = State::new(1);
    state.set("v", &[1.0; 16], 16);
    let mut values = vec![1.0f32; 64 * 16];
    for step in 0..3 {
        program.run(&mut state, &[("x", &values)], Clock { seed: 0, step });
        values.fill(f32::NAN); // a copy that is made only now finds these
        std::mem::take(&mut values);
        values = vec![1.0; 64 * 16];
    }
    assert_eq!(state.get("v"), Some(&[193.0f32; 16][..]));
}
