//! Trainings: resumed ones end with the same bits, divergence is a value, checkpoints are whole or refused.

use minvel::Error;
use minvel::train::{Checkpoint, Context, Observer, Silent, Stop, Trainer, Training};
use minvel_engine::optim::Optimiser;
use minvel_engine::{Draw, Graph, Options, Program, State};
use minvel_testing::Scratch;
use std::path::Path;
use std::time::Duration;

/// Noisy regression of a vector, three replicas.
fn problem() -> (Program<f32>, State<f32>) {
    let g = Graph::new();
    let w = g.variable("w", [4]);
    let x = g.random_rows(Draw::Normal, 0, 32, [4]);
    let y = x.sum(-1) + 0.1 * g.random_rows(Draw::Normal, 1, 32, []);
    let loss = ((x * w).sum(-1) - y).square().mean_rows();
    let updates = Optimiser::adam(1e-2).minimise(loss, &[w]);
    let program =
        g.compile::<f32>(&[loss], &updates.updates, &Options { replicas: 3, threads: 1, ..Options::default() });
    let mut state = State::new(3);
    state.set("w", &[5.0, 0.0, -1.0, 2.0], 4);
    updates.initialise(&mut state);
    (program, state)
}

fn trainer() -> Trainer {
    Trainer { block: 7, ..Trainer::new("w", 200, 3) }
}

fn undisturbed() -> (Training, State<f32>) {
    let (mut program, mut state) = problem();
    let training = trainer().run(&mut program, &mut state, &[], &Context::bare()).unwrap();
    (training, state)
}

/// Asks to stop after some steps.
struct Impatient(u64, Stop);

impl Observer for Impatient {
    fn advance(&self, done: u64, _note: &str) {
        if done >= self.0 {
            self.1.ask();
        }
    }
}

fn interrupted_at(steps: u64, folder: &Path, purpose: &str) -> Result<(Training, State<f32>), Error> {
    let (mut program, mut state) = problem();
    let stop = Stop::default();
    let observer = Impatient(steps, stop.clone());
    let mut context = Context::new(&observer, stop, folder, purpose);
    context.save_every = Duration::ZERO;
    let training = trainer().run(&mut program, &mut state, &[], &context)?;
    Ok((training, state))
}

#[test]
fn a_training_interrupted_anywhere_ends_with_the_same_bits() {
    let (training, state) = undisturbed();
    for stops in [vec![1], vec![50, 60, 190], vec![7, 14, 21, 28, 105]] {
        let folder = Scratch::new(&format!("resume-{}", stops.len()));
        for stop in &stops {
            assert!(matches!(interrupted_at(*stop, folder.folder(), "it"), Err(Error::Interrupted)));
        }
        let (resumed, end) = interrupted_at(u64::MAX, folder.folder(), "it").unwrap();
        assert_eq!(resumed, training, "{stops:?}");
        assert_eq!(end, state, "{stops:?}");
        // once finished, it is finished
        assert_eq!(interrupted_at(u64::MAX, folder.folder(), "it").unwrap(), (resumed, end));
    }
}

/// The twin: another seed must give other bits, else the test above compares nothing.
#[test]
fn another_seed_ends_elsewhere() {
    let (mut program, mut state) = problem();
    Trainer { seed: 4, ..trainer() }.run(&mut program, &mut state, &[], &Context::bare()).unwrap();
    assert_ne!(state, undisturbed().1);
}

#[test]
fn a_checkpoint_of_another_purpose_is_refused() {
    let folder = Scratch::new("purpose");
    assert!(interrupted_at(50, folder.folder(), "it").is_err());
    let Err(Error::Content { what, .. }) = interrupted_at(u64::MAX, folder.folder(), "something else") else {
        panic!("it was taken");
    };
    assert!(what.contains("something else"), "{what}");
}

/// 10ᵗ leaves f32 at t = 39.
#[test]
fn divergence_is_a_value_with_its_exact_step() {
    let g = Graph::new();
    let w = g.variable("w", []);
    let options = Options { replicas: 2, threads: 1, ..Options::default() };
    let mut program = g.compile::<f32>(&[w * 1.0], &[(w, 10.0 * w)], &options);
    let mut state = State::new(2);
    state.set("w", &[1.0], 1);
    let training = trainer().run(&mut program, &mut state, &[], &Context::bare()).unwrap();
    assert_eq!(training.divergences.len(), 2);
    assert!(training.divergences.iter().all(|d| d.step == 39 && d.where_ == "the loss"), "{:?}", training.divergences);
    assert!(training.finite(2).is_empty());
    assert_eq!(training.looks.last().unwrap().step, 42, "it stops when every replica is lost");
    assert!(training.all_finite().unwrap_err().to_string().contains("step 39"));
}

/// The last update overflows: no loss sees it, the variable does.
#[test]
fn a_spoilt_variable_is_found_at_the_end() {
    let g = Graph::new();
    let w = g.variable("w", []);
    let mut program = g.compile::<f32>(&[w * 1.0], &[(w, 10.0 * w)], &Options { threads: 1, ..Options::default() });
    let mut state = State::new(1);
    state.set("w", &[1.0], 1);
    let training = Trainer { steps: 39, ..trainer() }.run(&mut program, &mut state, &[], &Context::bare()).unwrap();
    assert!(training.looks.iter().all(|look| look.loss[0].is_finite()));
    assert_eq!(training.divergences[0].where_, "variable `w`");
}

#[test]
fn one_replica_may_be_lost_without_the_others() {
    let g = Graph::new();
    let w = g.variable("w", []);
    let loss = w.square() * g.variable("fault", []);
    let updates = Optimiser::adam(1e-2).minimise(loss, &[w]);
    let mut program =
        g.compile::<f32>(&[loss], &updates.updates, &Options { replicas: 3, threads: 1, ..Options::default() });
    let mut state = State::new(3);
    state.set("w", &[1.0], 1);
    state.set("fault", &[1.0, f32::NAN, 1.0], 1);
    updates.initialise(&mut state);
    let training = trainer().run(&mut program, &mut state, &[], &Context::bare()).unwrap();
    assert_eq!(training.finite(3), [0, 2]);
    assert_eq!(training.looks.last().unwrap().step, 200);
}

#[test]
fn a_checkpoint_keeps_every_bit_and_the_same_state_gives_the_same_file() {
    let folder = Scratch::new("bits");
    let mut state = State::<f64>::of_replicas(2..4);
    state.set("b", &[f64::MIN_POSITIVE / 3.0, f64::NAN, 1.0 / 3.0, -0.0], 2);
    state.set("a", &[1.0, 2.0], 1);
    let checkpoint = Checkpoint::new(state.clone(), 17, "purpose", &vec![1.0 / 3.0]);
    let path = folder.folder().join("x.safetensors");
    checkpoint.write(&path).unwrap();
    let first = std::fs::read(&path).unwrap();
    let back = Checkpoint::<f64>::read(&path).unwrap();
    assert_eq!((back.step, back.state.numbers()), (17, 2..4));
    let bits = |s: &State<f64>| -> Vec<(String, Vec<u64>)> {
        s.iter().map(|(n, v)| (n.to_string(), v.iter().map(|x| x.to_bits()).collect())).collect()
    };
    assert_eq!(bits(&back.state), bits(&state));
    assert_eq!(back.note::<Vec<f64>>(&path).unwrap(), [1.0 / 3.0]);
    back.write(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), first);
    assert!(Checkpoint::<f32>::read(&path).is_err(), "of another precision");
}

#[test]
fn broken_and_newer_files_are_refused_without_panic() {
    let folder = Scratch::new("broken");
    let mut state = State::<f32>::new(1);
    state.set("w", &[1.0, 2.0], 2);
    let path = folder.folder().join("x.safetensors");
    Checkpoint::new(state, 1, "p", &()).write(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Checkpoint::<f32>::read(&path).unwrap_err().to_string()
    };
    for cut in 0..whole.len() {
        refused(&whole[..cut]);
    }
    let format = br#"\"format\":1"#;
    let at = whole.windows(format.len()).position(|w| w == format).unwrap();
    let mut newer = whole.clone();
    newer[at + format.len() - 1] = b'9';
    assert!(refused(&newer).contains("format 9"), "{}", refused(&newer));
    // any byte of the header may be wrong: no panic, whatever the answer
    for at in 0..whole.len() - 8 {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x15;
        std::fs::write(&path, &bytes).unwrap();
        let _ = Checkpoint::<f32>::read(&path);
    }
}

#[test]
fn nobody_needs_to_watch() {
    let folder = Scratch::new("silent");
    let context = Context::new(&Silent, Stop::default(), folder.folder(), "it");
    let (mut program, mut state) = problem();
    let training = trainer().run(&mut program, &mut state, &[], &context).unwrap();
    let first = training.looks.first().unwrap().loss[0];
    let last = training.looks.last().unwrap().loss[0];
    println!("loss from {first} to {last}");
    assert!(last < 0.5 * first);
}
