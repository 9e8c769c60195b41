//! Fitted densities: what they recover, that they are normalised, what they draw, and that files keep every bit.

use minvel::density::Bump;
use minvel::fit::{Evaluation, FitSettings, History, Model};
use minvel::manifold::parse;
use minvel::train::{Checkpoint, Context};
use minvel_engine::State;
use minvel_engine::random::{Draw, Key, Stream};
use minvel_lab::experiment::Config;
use minvel_lab::fitting;
use minvel_lab::table::{Coordinates, Layout};
use minvel_testing::Scratch;
use minvel_testing::{estimate, sum, within_sigma, within_ulps};
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::OnceLock;

fn stream(seed: u64) -> Stream {
    Stream::new(Key::new(seed, 0), 7)
}

/// A mixture of natural kernels, known in closed form.
struct Truth {
    bump: Bump,
    /// Share, κ, centre.
    parts: Vec<(f64, f64, Vec<f64>)>,
}

impl Truth {
    fn new(name: &str, shares: [f64; 3]) -> Truth {
        let bump = Bump::new(&*parse(name).unwrap()).unwrap();
        let centres = match name {
            "sphere:2" => vec![vec![0.6, 0.0, 0.8], vec![-0.6, 0.8, 0.0], vec![0.0, 0.0, -1.0]],
            "euclidean:2" => vec![vec![-1.0, 0.5], vec![1.5, 1.0], vec![0.5, -1.5]],
            "torus:2" => vec![vec![-2.0, 0.5], vec![1.5, 1.0], vec![0.5, -2.5]],
            _ => unreachable!("a case has centres"),
        };
        let parts = shares.into_iter().zip([8.0, 4.0, 12.0]).zip(centres).map(|((s, k), c)| (s, k, c)).collect();
        Truth { bump, parts }
    }

    fn draw(&self, count: usize, seed: u64) -> Vec<f64> {
        let mut stream = stream(seed);
        let mut points = vec![];
        for _ in 0..count {
            let mut left = stream.uniform();
            let part = self.parts.iter().find(|p| {
                left -= p.0;
                left < 0.0
            });
            let (_, kappa, centre) = part.unwrap_or(&self.parts[0]);
            points.extend(self.bump.sample(centre, *kappa, &mut stream));
        }
        points
    }

    fn log_density(&self, x: &[f64]) -> f64 {
        self.parts.iter().map(|(share, kappa, c)| share * self.bump.log_density(x, c, *kappa).exp()).sum::<f64>().ln()
    }

    /// log truth − log model at fresh points: their mean is KL(truth‖model).
    fn gaps(&self, model: &Model, count: usize, seed: u64) -> Vec<f64> {
        let fresh = self.draw(count, seed);
        let own = model.log_density(&fresh, &Context::bare()).unwrap();
        fresh.chunks(self.bump.ambient()).zip(own).map(|(x, l)| self.log_density(x) - l).collect()
    }
}

const SHARES: [f64; 3] = [0.5, 0.3, 0.2];

fn settings(changes: &[&str]) -> FitSettings {
    let mut config: Config = fitting::defaults().quick().unwrap();
    let small = ["learning.steps=60", "learning.looks=3", "network.hidden=[24,24]", "network.waves=16"];
    for change in small.iter().chain(changes) {
        config.set(change).unwrap();
    }
    fitting::settings(&config).unwrap()
}

fn context(threads: usize) -> Context<'static> {
    let mut context = Context::bare();
    context.threads = threads;
    context
}

fn learn(name: &str, settings: &FitSettings, train: &[f64], validation: &[f64], threads: usize) -> (Model, History) {
    Model::learn(parse(name).unwrap(), settings, train, validation, &context(threads)).unwrap()
}

/// Kernels that are too wide, so that there is something to correct, and that a grid can resolve.
const COARSE: [&str; 10] = [
    "kernels.mixtures=[]",
    "kernels.neighbours=[60.0]",
    "kernels.factors=[2.0]",
    "kernels.widths=0",
    "network.waves=0",
    "objective=likelihood",
    "learning.steps=100",
    "learning.looks=10",
    "learning.rate=1e-2",
    "learning.penalty=0.0",
];

/// A coarse model with a correction, made once; and the truth.
fn coarse(name: &str) -> (&'static Model, Truth) {
    static MODELS: [OnceLock<Model>; 3] = [const { OnceLock::new() }; 3];
    let truth = Truth::new(name, SHARES);
    let place = ["sphere:2", "euclidean:2", "torus:2"].iter().position(|n| *n == name).expect("a known case");
    let model = MODELS[place].get_or_init(|| {
        let (model, history) = learn(name, &settings(&COARSE), &truth.draw(400, 1), &truth.draw(200, 2), 0);
        println!("{name}: share {} of the correction, log Z {}", model.share(), model.log_z().value);
        assert!(model.share() > 0.0, "{name}: the case has no correction: {:?}", history.shares);
        model
    });
    (model, truth)
}

#[test]
fn a_fit_recovers_a_known_mixture_at_the_rate_of_kernels() {
    const COUNT: usize = 1000;
    for name in ["sphere:2", "euclidean:2"] {
        let truth = Truth::new(name, SHARES);
        let (model, _) = learn(name, &settings(&[]), &truth.draw(COUNT, 1), &truth.draw(COUNT / 8, 2), 0);
        // 0.05 nats at 5 000 points is what we promise; kernels converge as n^{−4/(4+d)}.
        let bound = 0.05 * (5000.0 / COUNT as f64).powf(4.0 / 6.0);
        let (kl, error) = estimate(&truth.gaps(&model, 4000, 3));
        println!("{name}: KL(truth‖model) = {kl:.4} ± {error:.4}, bound {bound:.4}, log Z {}", model.log_z().value);
        assert!(kl < bound - 2.0 * error, "{name}: {kl} ± {error}");
        assert!(kl > -4.0 * error, "{name}: a divergence is not negative");
        let other = Truth::new(name, [0.2, 0.3, 0.5]);
        let (twin, error) = estimate(&other.gaps(&model, 4000, 3));
        assert!(twin > bound + 2.0 * error, "{name}: no power against other shares: {twin} ± {error}");
    }
}

/// Quadrature in the units of the data.
fn grid(name: &str) -> (Vec<f64>, Vec<f64>) {
    let resolution = if name == "euclidean:2" { 300 } else { 120 };
    let grid = parse(name).unwrap().grid(resolution, 12.0).unwrap();
    (grid.points, grid.weights)
}

#[test]
fn log_z_is_that_of_the_energy_and_the_density_integrates_to_one() {
    for name in ["sphere:2", "euclidean:2", "torus:2"] {
        let (model, _) = coarse(name);
        let (points, weights) = grid(name);
        let integral =
            |logs: Vec<f64>| sum(&logs.into_iter().zip(&weights).map(|(l, w)| w * l.exp()).collect::<Vec<f64>>());
        // The error of the grid itself: the kernels alone are normalised.
        let kernels = integral(model.log_anchor(&points, &context(0)).unwrap()) - 1.0;
        let total = integral(model.log_density(&points, &context(0)).unwrap()) - 1.0;
        let log_z = model.log_z().value;
        println!(
            "{name}: ∫p − 1 = {total:+.2e}, kernels {kernels:+.2e}, log Z {} ± {:.1e}",
            log_z.mean, log_z.std_error
        );
        // Networks compute in single precision, at other points here and there.
        let allowed = 4.0 * log_z.std_error + 2.0 * kernels.abs() + f64::from(f32::EPSILON);
        assert!(allowed < 1e-2, "{name}: the comparison has no power: {allowed}");
        assert!(total.abs() <= allowed, "{name}: ∫p = 1 {total:+}, allowed ±{allowed}");
        if name == "euclidean:2" {
            continue; // its energy is in standard units
        }
        let direct = integral(model.energy(&points, &context(0)).unwrap().into_iter().map(|e| -e).collect()).ln();
        assert!((direct - log_z.mean).abs() <= allowed, "{name}: log Z = {log_z}, by quadrature {direct}");
        assert!(log_z.mean.abs() > allowed, "{name}: no power against log Z = 0");
    }
}

#[test]
fn samples_follow_the_model_and_not_the_kernels_alone() {
    const COUNT: usize = 20_000;
    for name in ["sphere:2", "euclidean:2"] {
        let (model, _) = coarse(name);
        let (points, weights) = grid(name);
        let logs = model.log_density(&points, &context(0)).unwrap();
        let height = |points: &[f64]| model.log_density(points, &context(0)).unwrap();
        let expected = sum(&logs.iter().zip(&weights).map(|(l, w)| w * l.exp() * l).collect::<Vec<f64>>());
        let drawn = model.sample(COUNT, 5, &context(0)).unwrap();
        println!("{name}: acceptance {:.3}, moved {:.4}", drawn.acceptance, drawn.moved);
        assert!((0.0..=1.0).contains(&drawn.acceptance) && drawn.moved > 0.9);
        assert!(within_sigma(&format!("{name}: E log p"), &height(&drawn.points), expected, 4.0), "{name}");
        assert_eq!(drawn, model.sample(COUNT, 5, &context(1)).unwrap(), "{name}: seed, not threads, decide");
        assert_ne!(
            drawn.points,
            model.sample(COUNT, 6, &context(0)).unwrap().points,
            "{name}: another seed, other points"
        );
        let alone = settings(&[&COARSE[..], &["objective=none"]].concat());
        let truth = Truth::new(name, SHARES);
        let (twin, _) = learn(name, &alone, &truth.draw(400, 1), &truth.draw(200, 2), 0);
        let (mean, error) = estimate(&height(&twin.sample(COUNT, 5, &context(0)).unwrap().points));
        println!("{name}: the kernels alone give {mean:.4} ± {error:.4}");
        assert!((mean - expected).abs() > 4.0 * error, "{name}: no power against the kernels alone");
    }
}

#[test]
fn scores_are_the_slopes_of_the_log_density() {
    const STEP: f64 = 1e-2;
    let (model, truth) = coarse("euclidean:2");
    let points = truth.draw(20, 9);
    let scores = model.score(&points, &context(0)).unwrap();
    for (k, x) in points.chunks(2).enumerate() {
        for j in 0..2 {
            let at = |t: f64| {
                let mut to = x.to_vec();
                to[j] += t;
                model.log_density(&to, &context(0)).unwrap()[0]
            };
            let slope = (8.0 * (at(STEP) - at(-STEP)) - at(2.0 * STEP) + at(-2.0 * STEP)) / (12.0 * STEP);
            let (got, expected) = (scores[2 * k + j], slope);
            // The network works in f32: rounding errors of its values over the step.
            let allowed = 64.0 * f64::from(f32::EPSILON) / STEP * (1.0 + expected.abs());
            assert!((got - expected).abs() <= allowed, "{got}, not {expected} ± {allowed}");
            assert!((1.1 * got - expected).abs() > allowed || expected.abs() < 0.1, "no power at {expected}");
        }
    }
}

#[test]
fn other_units_shift_the_log_density_by_the_logarithm_of_the_unit() {
    let truth = Truth::new("euclidean:2", SHARES);
    let (train, validation, fresh) = (truth.draw(300, 1), truth.draw(60, 2), truth.draw(50, 3));
    let scaled = |points: &[f64], unit: f64| points.iter().map(|x| unit * x).collect::<Vec<f64>>();
    // Powers of two change no bit of standard units, so the networks learn the same; others change the last bits, which
    // kernels keep to rounding.
    for (unit, objective, ulps) in [(1024.0, "minimum-velocity", 64.0), (1000.0, "none", 1e6)] {
        let settings = settings(&[&format!("objective={objective}")]);
        let (model, _) = learn("euclidean:2", &settings, &train, &validation, 0);
        let (other, _) = learn("euclidean:2", &settings, &scaled(&train, unit), &scaled(&validation, unit), 0);
        let logs = model.log_density(&fresh, &context(0)).unwrap();
        for (log, got) in logs.iter().zip(other.log_density(&scaled(&fresh, unit), &context(0)).unwrap()) {
            let expected = log - 2.0 * f64::ln(unit);
            assert!(within_ulps(got, expected, ulps), "unit {unit}: {got}, not {expected}");
            assert!(!within_ulps(got, log - f64::ln(unit), ulps), "no power against one dimension");
        }
        let (a, b) =
            (model.sample(20, 1, &context(0)).unwrap().points, other.sample(20, 1, &context(0)).unwrap().points);
        a.iter().zip(b).for_each(|(a, b)| assert!(within_ulps(b / unit, *a, ulps), "{b}, not {unit}·{a}"));
    }
}

#[test]
fn threads_change_no_bit() {
    let scratch = Scratch::new("fit-threads");
    for name in ["sphere:2", "euclidean:2"] {
        let truth = Truth::new(name, SHARES);
        let (train, validation) = (truth.draw(201, 1), truth.draw(31, 2));
        let file = |threads: usize, seed: &str| {
            let (model, history) = learn(name, &settings(&[seed]), &train, &validation, threads);
            let path = scratch.path("model.safetensors");
            model.write(&path, &form(name)).unwrap();
            (
                std::fs::read(path).unwrap(),
                format!("{history:?}"),
                model.log_density(&validation, &context(threads)).unwrap(),
            )
        };
        let one = file(1, "seed=1");
        for threads in [2, 3] {
            assert!(one == file(threads, "seed=1"), "{name}: {threads} threads change bits");
        }
        assert!(one != file(1, "seed=2"), "{name}: another seed gives another model");
    }
}

fn form(name: &str) -> Coordinates {
    let (layout, count) = if name == "sphere:2" { (Layout::Xyz, 3) } else { (Layout::Vector, 2) };
    Coordinates {
        manifold: name.to_string(),
        layouts: vec![layout],
        units: None,
        periods: vec![],
        columns: (0..count).map(|k| format!("column {k}")).collect(),
        full_turn: vec![false; count],
    }
}

fn small_model() -> Model {
    let truth = Truth::new("sphere:2", SHARES);
    let settings = settings(&["network.hidden=[8]", "learning.rate=1e-2"]);
    learn("sphere:2", &settings, &truth.draw(60, 1), &truth.draw(30, 2), 1).0
}

#[test]
fn a_file_keeps_every_bit_of_a_model() {
    let scratch = Scratch::new("fit-keep");
    for (name, changes) in [("sphere:2", &COARSE[..]), ("euclidean:2", &COARSE[..]), ("sphere:2", &["objective=none"])]
    {
        let truth = Truth::new(name, SHARES);
        let (model, _) = learn(name, &settings(changes), &truth.draw(150, 1), &truth.draw(40, 2), 0);
        let (path, again) = (scratch.path("model.safetensors"), scratch.path("again.safetensors"));
        model.write(&path, &form(name)).unwrap();
        let (read, coordinates) = fitting::read_model(&path).unwrap();
        assert_eq!(coordinates, form(name));
        let fresh = truth.draw(100, 3);
        assert_eq!(
            model.log_density(&fresh, &context(0)).unwrap(),
            read.log_density(&fresh, &context(0)).unwrap(),
            "{name}"
        );
        assert_eq!(model.energy(&fresh, &context(0)).unwrap(), read.energy(&fresh, &context(0)).unwrap(), "{name}");
        assert_eq!(model.sample(50, 1, &context(0)).unwrap(), read.sample(50, 1, &context(0)).unwrap(), "{name}");
        assert_eq!((model.share(), model.log_z()), (read.share(), read.log_z()));
        assert_eq!((model.kernels(), model.settings()), (read.kernels(), read.settings()), "{name}");
        read.write(&again, &coordinates).unwrap();
        assert!(std::fs::read(&path).unwrap() == std::fs::read(&again).unwrap(), "{name}: another file");
    }
}

/// What reading a file of these bytes complains about.
fn refused(scratch: &Scratch, bytes: &[u8]) -> String {
    match fitting::read_model(&scratch.file("strange.safetensors", bytes)) {
        Ok(_) => panic!("a broken file was read"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn files_that_are_no_model_of_this_version_are_refused_with_a_reason() {
    let scratch = Scratch::new("fit-refuse");
    let path = scratch.path("model.safetensors");
    small_model().write(&path, &form("sphere:2")).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let replaced = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len(), "the header keeps its length");
        let at = whole.windows(from.len()).position(|w| w == from.as_bytes()).unwrap_or_else(|| panic!("no {from}"));
        [&whole[..at], to.as_bytes(), &whole[at + from.len()..]].concat()
    };
    let newer = refused(&scratch, &replaced(r#"\"format\":1"#, r#"\"format\":9"#));
    assert!(newer.contains("format 9") && newer.contains("this program reads format 1"), "{newer}");
    for cut in [0, 1, 7, 8, 100, whole.len() / 2, whole.len() - 1] {
        let message = refused(&scratch, &whole[..cut]);
        assert!(message.contains("not a whole safetensors file"), "cut at {cut}: {message}");
        assert!(message.contains("strange.safetensors"), "{message}");
    }
    let text = refused(&scratch, b"lat,lon\n1,2\n");
    assert!(text.contains("not a whole safetensors file"), "{text}");
    let other = scratch.path("other.safetensors");
    Checkpoint::<f64>::new(State::new(1), 0, "fit of something", &0).write(&other).unwrap();
    let foreign = refused(&scratch, &std::fs::read(&other).unwrap());
    assert!(foreign.contains("not a fitted density") && foreign.contains("minvel fit"), "{foreign}");
    let missing = fitting::read_model(Path::new("nowhere/model.safetensors")).err().unwrap().to_string();
    assert!(missing.contains("cannot read nowhere"), "{missing}");
    // Settings that no fit would have written.
    for (from, to) in [
        (r#"\"activation\":\"silu\""#, r#"\"activation\":\"relu\""#),
        (r#"\"manifold\":\"sphere:2\""#, r#"\"manifold\":\"sphere:3\""#),
        (r#"\"manifold\":\"sphere:2\""#, r#"\"manifold\":\"sphere:x\""#),
        (r#"\"hidden\":[8]"#, r#"\"hidden\":[9]"#),
        (r#"\"hidden\":[8]"#, r#"\"hidden\":[0]"#),
        (r#"\"layouts\":[\"xyz\"]"#, r#"\"layouts\":[\"abc\"]"#),
    ] {
        let message = refused(&scratch, &replaced(from, to));
        assert!(message.contains("strange.safetensors"), "{to}: {message}");
    }
}

#[test]
fn broken_models_are_refused_or_read_but_never_panic() {
    let scratch = Scratch::new("fit-fuzz");
    let path = scratch.path("model.safetensors");
    small_model().write(&path, &form("sphere:2")).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let mut random = stream(3);
    let mut below = |n: usize| random.draw(Draw::Integer(n as u32)) as usize;
    let (mut read, mut panics) = (0, vec![]);
    const FILES: usize = 600;
    for _ in 0..FILES {
        let mut bytes = whole.clone();
        for _ in 0..1 + below(2) {
            let at = below(header);
            bytes[at] = match below(3) {
                0 => b"0123456789"[below(10)],
                1 => b"\"{}[],:-.e \\"[below(12)],
                _ => bytes[at] ^ (1 << below(8)),
            };
        }
        let path = scratch.file("fuzz.safetensors", &bytes);
        let use_it = || {
            fitting::read_model(&path).is_ok_and(|(model, coordinates)| {
                let points = model.sample(3, 1, &context(1)).unwrap().points;
                model.log_density(&points, &context(1)).unwrap();
                let _ = coordinates.table(&points);
                true
            })
        };
        match catch_unwind(use_it) {
            Ok(ok) => read += usize::from(ok),
            Err(_) => panics.push(std::str::from_utf8(&bytes[8..header]).unwrap_or("no text").to_string()),
        }
    }
    println!("{read} of {FILES} broken files were read all the same");
    assert!(panics.is_empty(), "{} panics; the first: {}", panics.len(), panics[0]);
    assert!(read > 0 && read < FILES, "{read} files read: the case has no power");
}

#[test]
fn an_evaluation_holds_the_errors_of_its_numbers() {
    for name in ["sphere:2", "euclidean:2"] {
        let (model, truth) = coarse(name);
        let test = truth.draw(300, 6);
        let evaluation = Evaluation::of(model, &test, 1, &context(0)).unwrap();
        let nll: Vec<f64> = model.log_density(&test, &context(0)).unwrap().iter().map(|l| -l).collect();
        let (mean, error) = estimate(&nll);
        assert!(within_ulps(evaluation.test_nll.mean, mean, 64.0), "{name}");
        let both = error.hypot(model.log_z().value.std_error);
        assert!(within_ulps(evaluation.test_nll.std_error, both, 64.0), "{name}: {}", evaluation.test_nll.std_error);
        assert!(evaluation.test_nll.count == 300 && evaluation.test_rows == 300);
        for baseline in &evaluation.baselines {
            let (a, b) = (evaluation.test_nll.mean - baseline.nll.mean, baseline.difference.mean);
            assert!(within_ulps(a, b, 256.0), "{name}, {}: {a} against {b}", baseline.name);
            // Row by row, so that what rows have in common does not count; but for a uniform law, which knows no rows.
            let apart = evaluation.test_nll.std_error.hypot(baseline.nll.std_error);
            assert!(baseline.difference.std_error <= 1.0001 * apart, "{name}, {}", baseline.name);
        }
        let names: Vec<&str> = evaluation.baselines.iter().map(|b| b.method.as_str()).collect();
        let expected: &[&str] = &["uniform", "kde", "vmf-mixture"];
        assert_eq!(names, expected[usize::from(name == "euclidean:2")..]);
        assert!((0.0..=1.0).contains(&evaluation.goodness.p_value));
        // Points of another law are found out.
        let other: Vec<f64> = Truth::new(name, [0.02, 0.03, 0.95]).draw(300, 7);
        let evaluation = Evaluation::of(model, &other, 1, &context(0)).unwrap();
        assert!(evaluation.goodness.p_value < 0.05, "{name}: p = {}", evaluation.goodness.p_value);
    }
}

/// Where kernels stood in their list depended on the axes, and with it which points began a mixture and which chose its size:
/// turning a sphere changed its score from 1.28 to 1.35. Sums by threads changed its last bits.
#[test]
fn baselines_do_not_change_when_the_sphere_is_turned_nor_with_threads() {
    let truth = Truth::new("sphere:2", SHARES);
    let (train, test) = (truth.draw(500, 1), truth.draw(200, 2));
    let alone = settings(&["objective=none"]);
    let scores = |train: &[f64], test: &[f64], threads: usize| {
        let (model, _) = learn("sphere:2", &alone, train, test, threads);
        let evaluation = Evaluation::of(&model, test, 1, &context(threads)).unwrap();
        evaluation.baselines.into_iter().map(|b| (b.name, b.nll.mean)).collect::<Vec<_>>()
    };
    let plain = scores(&train, &test, 1);
    for threads in [2, 3] {
        assert_eq!(plain, scores(&train, &test, threads), "{threads} threads");
    }
    // The rotation of the unit quaternion (1, 2, 3, 4)/√30.
    let turn = [[-10.0, 2.0, 11.0], [10.0, -5.0, 10.0], [5.0, 14.0, 2.0]].map(|row| row.map(|x| x / 15.0));
    let turned = |points: &[f64]| -> Vec<f64> {
        let image = |x: &[f64]| turn.map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>());
        points.chunks(3).flat_map(image).collect()
    };
    for ((name, before), (_, after)) in plain.iter().zip(scores(&turned(&train), &turned(&test), 2)) {
        println!("{name}: {before} and {after}");
        // Rounding may end the rounds of a mixture one earlier or later, each of which gains less than 10⁻⁵.
        assert!((before - after).abs() < 1e-4, "{name}: {before}, turned {after}");
    }
}
