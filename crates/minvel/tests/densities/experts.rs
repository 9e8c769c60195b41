//! Energies stacked with kernels: one density that integrates to one, has its own slope and draws, and is no worse than its parts.

use crate::support::fits::settings;
use minvel::density::Bump;
use minvel::estimate::Estimate;
use minvel::fit::{Base, Evaluation, FitSettings, Goal, History, Model};
use minvel::manifold::parse;
use minvel::train::{Context, Observer, Silent, Stop};
use minvel::{Error, Manifold};
use minvel_engine::random::{Key, Stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Points of three wide bumps: smooth, so that energies have something to say.
fn points(manifold: &Arc<dyn Manifold>, count: usize, seed: u64) -> Vec<f64> {
    let bump = Bump::new(&**manifold).unwrap();
    let mut centres = Stream::new(Key::new(7, 0), 9);
    let origin = manifold.origin();
    let centres: Vec<Vec<f64>> = (0..3).map(|_| bump.sample(&origin, 1.0, &mut centres)).collect();
    let mut stream = Stream::new(Key::new(seed, 0), 9);
    (0..count).flat_map(|i| bump.sample(&centres[i % 3], [3.0, 6.0, 12.0][i % 3], &mut stream)).collect()
}

/// Few kernels that are too narrow, and energies that learn fast.
const FAST: [&str; 13] = [
    "kernels.neighbours=[3.0]",
    "kernels.factors=[0.1]",
    "kernels.widths=2",
    "kernels.mixtures=[]",
    "seeds=1",
    "learning.steps=40",
    "learning.looks=2",
    "energies.effort=normal",
    "energies.network.hidden=[32, 32]",
    "energies.network.waves=16",
    "energies.network.frequency=1.0",
    "energies.steps=200",
    "energies.batch=128",
];

fn fast(changes: &[&str]) -> FitSettings {
    let all: Vec<&str> = FAST.iter().copied().chain(["energies.draws=20000"]).chain(changes.iter().copied()).collect();
    settings(&all)
}

fn learnt(name: &str, rows: usize, changes: &[&str], context: &Context) -> (Model, History) {
    let manifold = parse(name).unwrap();
    let data = points(&manifold, rows + rows / 4, 1);
    let (train, validation) = data.split_at(rows * manifold.ambient());
    Model::learn(manifold, &fast(changes), train, validation, context).unwrap()
}

fn used(model: &Model) -> usize {
    model.experts().iter().filter(|expert| expert.weight() > 0.0).count()
}

#[test]
fn a_stack_integrates_to_one_wherever_it_is_made() {
    for (name, resolution, radius) in [("sphere:2", 200, 0.0), ("torus:2", 250, 0.0), ("euclidean:2", 700, 7.0)] {
        let context = Context::bare();
        let (model, history) = learnt(name, 1000, &["kernels.neighbours=[12.0]", "kernels.factors=[0.3]"], &context);
        for tried in &history.tried {
            println!("{name}: {} gains {}, weight {:.3}", tried.name, tried.gain, tried.weight);
        }
        assert!(used(&model) > 0, "{name}: no power, since no energy is used");
        let grid = model.manifold().grid(resolution, radius).unwrap();
        let logs = model.log_density(&grid.points, &context).unwrap();
        let total: f64 = grid.weights.iter().zip(&logs).map(|(w, l)| w * l.exp()).sum();
        println!("{name}: ∫p = {total}, log Z {}", model.log_z().value);
        assert!((total - 1.0).abs() < 1e-3 + 4.0 * model.log_z().value.std_error, "{name}: ∫p = {total}");
    }
}

#[test]
fn draws_and_slopes_are_those_of_the_stack() {
    let context = Context::bare();
    let (model, _) = learnt("torus:2", 1200, &[], &context);
    assert!(used(&model) > 0, "no energy is used");
    let grid = model.manifold().grid(300, 0.0).unwrap();
    let logs = model.log_density(&grid.points, &context).unwrap();
    let mean = |f: &dyn Fn(&[f64]) -> f64| -> f64 {
        grid.points.chunks(2).zip(&grid.weights).zip(&logs).map(|((x, w), l)| w * l.exp() * f(x)).sum()
    };
    let drawn = model.sample(20_000, 5, &context).unwrap();
    println!("acceptance {:.2}, moved {:.2}", drawn.acceptance, drawn.moved);
    for (what, f) in [
        ("cos a", (|x: &[f64]| x[0].cos()) as fn(&[f64]) -> f64),
        ("sin b", |x| x[1].sin()),
        ("cos 2(a − b)", |x| (2.0 * (x[0] - x[1])).cos()),
    ] {
        let of = Estimate::of(drawn.points.chunks(2).map(f));
        let expected = mean(&f);
        println!("{what}: {of}, expected {expected:.4}");
        assert!((of.mean - expected).abs() < 4.5 * of.std_error, "{what}");
        assert!((of.mean - expected - 0.05).abs() > 4.5 * of.std_error, "{what}: the test has no power");
    }
    let some = &drawn.points[..40];
    let slopes = model.score(some, &context).unwrap();
    for j in 0..some.len() {
        // single precision of the networks bounds how small a step can be
        let h = 3e-3;
        let at = |h: f64| {
            let mut moved = some[j / 2 * 2..][..2].to_vec();
            moved[j % 2] += h;
            model.log_density(&moved, &context).unwrap()[0]
        };
        let finite = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
        assert!((finite - slopes[j]).abs() < 0.02 * (1.0 + slopes[j].abs()), "slope {} instead of {finite}", slopes[j]);
    }
}

#[test]
fn a_stack_is_the_same_on_any_number_of_threads_and_after_it_was_saved() {
    let [one, three] = [1, 3].map(|threads| learnt("sphere:2", 800, &[], &Context::of_threads(threads)));
    let at = points(&parse("sphere:2").unwrap(), 50, 3);
    let context = Context::bare();
    let logs = one.0.log_density(&at, &context).unwrap();
    assert_eq!(logs, three.0.log_density(&at, &context).unwrap());
    assert_eq!(one.0.sample(20, 1, &context).unwrap(), three.0.sample(20, 1, &context).unwrap());
    assert!(used(&one.0) > 0, "no energy is used");
    let folder = std::env::temp_dir().join(format!("minvel-experts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("model.safetensors");
    one.0.write(&path, &serde_json::json!({ "manifold": "sphere:2" })).unwrap();
    let (read, _) = Model::read::<serde_json::Value>(&path).unwrap();
    assert_eq!(logs, read.log_density(&at, &context).unwrap());
    assert_eq!(one.0.sample(20, 1, &context).unwrap(), read.sample(20, 1, &context).unwrap());
    assert_eq!((one.0.tried(), one.0.log_z(), one.0.share()), (read.tried(), read.log_z(), read.share()));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_stack_is_no_worse_than_its_parts_and_says_what_each_scores_alone() {
    let context = Context::bare();
    let (model, history) = learnt("torus:2", 2000, &["energies.steps=400"], &context);
    let test = points(model.manifold(), 4000, 9);
    let evaluation = Evaluation::of(&model, &test, 1, &context).unwrap();
    println!("test NLL {}; energies of minimum velocity add {:?}", evaluation.test_nll, evaluation.velocity);
    for part in &evaluation.ingredients {
        println!("{}: {}, model less it {}, weight {:.3}", part.name, part.nll, part.difference, part.weight);
        assert!(part.difference.mean < 3.0 * part.difference.std_error + 0.003, "{} alone is better", part.name);
    }
    assert_eq!(evaluation.ingredients.len(), model.experts().len() + 1);
    let weights: f64 = evaluation.ingredients.iter().map(|part| part.weight).sum();
    assert!((weights - 1.0).abs() < 1e-12);
    // Narrow kernels of smooth points: energies help beyond doubt.
    let kernels = &evaluation.ingredients[0].difference;
    assert!(kernels.mean < -5.0 * kernels.std_error, "energies add nothing: {kernels}");
    assert!(history.tried.iter().any(|tried| tried.goal == Some(Goal::TransportReaction)));
    assert!(model.experts().iter().any(|expert| expert.base() == Base::Wide));
    assert!(evaluation.velocity.is_some());
}

#[test]
fn energies_that_have_learnt_nothing_get_no_weight() {
    let changes = [
        "energies.steps=1",
        "energies.rate=1e-9",
        "learning.rate=1e-9",
        "kernels.factors=[1.0]",
        "kernels.neighbours=[12.0]",
    ];
    let (model, history) = learnt("torus:2", 1200, &changes, &Context::bare());
    for tried in &history.tried {
        println!("{}: gains {}, weight {}", tried.name, tried.gain, tried.weight);
    }
    assert_eq!(used(&model), 0);
    assert_eq!((model.share(), model.log_z().value.mean, model.kernels_weight()), (0.0, 0.0, 1.0));
}

#[test]
fn without_further_energies_the_correction_is_what_it_was() {
    let (model, history) = learnt("torus:2", 800, &["energies.effort=none"], &Context::bare());
    assert!(model.experts().len() <= 1 && history.tried.len() <= 2);
    assert!(model.experts().iter().all(|expert| expert.weight() == 1.0 && expert.base() == Base::Anchor));
}

/// Asks to stop after so many steps of all energies together.
struct Interrupting {
    steps: u64,
    there: AtomicBool,
    stop: Stop,
}

impl Observer for Interrupting {
    fn begin(&self, name: &str, _: u64, _: &str) {
        self.there.store(name == "learning energies", Ordering::SeqCst);
    }

    fn advance(&self, done: u64, _: &str) {
        if self.there.load(Ordering::SeqCst) && done >= self.steps {
            self.stop.ask();
        }
    }
}

#[test]
fn learning_of_energies_that_was_interrupted_goes_on_to_the_same_bits() {
    let folder = std::env::temp_dir().join(format!("minvel-experts-resumed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let manifold = parse("torus:2").unwrap();
    let data = points(&manifold, 700, 1);
    let (train, validation) = data.split_at(1200);
    let settings = fast(&["energies.steps=60"]);
    let learn = |context: &Context| Model::learn(manifold.clone(), &settings, train, validation, context);
    // Of 60 steps of the energy on kernels, 120 of each free one and 40 of the correction, some of which end early.
    for steps in [20, 90, 150] {
        let stop = Stop::default();
        let watch = Interrupting { steps, there: AtomicBool::new(false), stop: stop.clone() };
        let outcome = learn(&Context::new(&watch, stop, &folder, "a fit"));
        assert!(matches!(outcome, Err(Error::Interrupted)), "{steps} steps: it was not interrupted");
    }
    let (resumed, history) = learn(&Context::new(&Silent, Stop::default(), &folder, "a fit")).unwrap();
    let (whole, expected) = learn(&Context::bare()).unwrap();
    assert_eq!(history.tried, expected.tried);
    let context = Context::bare();
    assert_eq!(resumed.log_density(&data, &context).unwrap(), whole.log_density(&data, &context).unwrap());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn denoising_learns_what_minimum_velocity_learns_where_coordinates_are_flat_and_is_refused_elsewhere() {
    let context = Context::bare();
    // Kernels that are too wide, so that there is something to correct.
    let kernels = ["kernels.neighbours=[200.0]", "kernels.factors=[4.0]", "kernels.widths=0", "energies.effort=none"];
    let learning = ["seeds=2", "learning.steps=400", "learning.looks=8", "learning.rate=1e-2", "network.waves=0"];
    for name in ["torus:2", "euclidean:2"] {
        let fresh = points(&parse(name).unwrap(), 4000, 9);
        let gains = |changes: &[&str]| -> Vec<f64> {
            let (model, _) = learnt(name, 1600, &[&kernels[..], &learning[..], changes].concat(), &context);
            let [own, kernels] = [model.log_density(&fresh, &context), model.log_anchor(&fresh, &context)];
            own.unwrap().iter().zip(kernels.unwrap()).map(|(own, kernels)| own - kernels).collect()
        };
        let [velocity, denoising] =
            ["minimum-velocity", "denoising"].map(|goal| gains(&[&format!("objective={goal}")]));
        let [of_velocity, of_denoising] = [&velocity, &denoising].map(|gains| Estimate::of(gains.iter().copied()));
        let between = Estimate::of(velocity.iter().zip(&denoising).map(|(a, b)| a - b));
        println!("{name}: minimum velocity gains {of_velocity}, denoising {of_denoising}; difference {between}");
        assert!(of_denoising.mean > 5.0 * of_denoising.std_error, "{name}: denoising learns nothing");
        // Both have the same minimum but for O(ε), and different noise: half of what either gains would be another minimum.
        assert!(between.mean.abs() < 0.25 * of_velocity.mean, "{name}: another minimum, {between}");
        // Noise as wide as the modes learns a smoother law.
        let blurred = Estimate::of(gains(&["objective=denoising", "step_size=0.3"]));
        println!("{name}: with noise of variance 0.3 it gains {blurred}");
        assert!(of_denoising.mean - blurred.mean > 0.25 * of_velocity.mean, "{name}: the noise makes no difference");
    }
    let settings = fast(&["objective=denoising"]);
    for (name, flat) in [("euclidean:2", true), ("torus:2", true), ("sphere:2", false), ("hyperbolic:2", false)] {
        assert_eq!(settings.check(&*parse(name).unwrap(), 1000).is_ok(), flat, "{name}");
    }
}
