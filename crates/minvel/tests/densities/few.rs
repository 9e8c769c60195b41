//! Few rows: plain kernels from three rows on, scores by cross-validation, no needles.

use crate::clumps::natural_laws;
use crate::support::fits::settings;
use minvel::Manifold;
use minvel::density::{Bump, Density, KernelDensity, Kind, LocalKernels, LocalSettings};
use minvel::estimate::Estimate;
use minvel::fit::{Evaluation, Fit, Model, Procedure, Record, Trial};
use minvel::manifold::{Space, parse};
use minvel::train::Context;
use minvel_engine::random::{Key, Stream};
use minvel_testing::within_sigma;
use std::f64::consts::{PI, TAU};
use std::sync::Arc;

fn origin(manifold: &dyn Manifold) -> Vec<f64> {
    let of = |s: &Space| {
        let curved = matches!(s, Space::Sphere(_) | Space::So3);
        (0..s.ambient()).map(|j| if curved && j == 0 { 1.0 } else { 0.0 }).collect::<Vec<f64>>()
    };
    manifold.spaces().unwrap().iter().flat_map(of).collect()
}

/// Points of one bump at the origin.
fn bump(name: &str, kappa: f64, count: usize, seed: u64) -> (Arc<dyn Manifold>, Vec<f64>) {
    let manifold = parse(name).unwrap();
    let law = Bump::new(&*manifold).unwrap();
    let mut stream = Stream::new(Key::new(seed, 0), 11);
    let centre = origin(&*manifold);
    let points = (0..count).flat_map(|_| law.sample(&centre, kappa, &mut stream)).collect();
    (manifold, points)
}

/// A model and what cross-validation says about it.
struct Outcome {
    model: Model,
    evaluation: Evaluation,
    procedure: Procedure,
    leaked_share: f64,
}

fn outcome(manifold: &Arc<dyn Manifold>, points: &[f64], changes: &[&str]) -> Outcome {
    let (model, record) = Fit::on(manifold).settings(settings(changes)).points(points).unwrap().into_parts();
    let Record { evaluation, procedure, leaked_share, .. } = record.unwrap();
    Outcome { model, evaluation, procedure, leaked_share }
}

#[test]
fn few_rows_are_scored_by_cross_validation_and_all_of_them_make_the_model() {
    let (manifold, points) = bump("sphere:1", 3.0, 60, 1);
    let fit = outcome(&manifold, &points, &[]);
    assert_eq!(fit.procedure, Procedure::CrossValidation { rows: 60, folds: 10, repeats: 5, correction: Trial::None });
    assert_eq!((fit.model.kernels().centres(), fit.model.rows(), fit.evaluation.test_rows), (60, 60, 60));
    let text = fit.procedure.to_string();
    for words in ["10 folds, repeated 5 times", "refitted on all 60 rows", "that of the procedure"] {
        assert!(text.contains(words), "`{words}` is not said: {text}");
    }
    let names: Vec<&str> = fit.evaluation.baselines.iter().map(|b| b.method.as_str()).collect();
    assert_eq!(names, ["uniform", "kde", "vmf-mixture"]);
    assert!((0.0..=1.0).contains(&fit.evaluation.goodness.p_value) && fit.evaluation.goodness.points == 60);
    assert_eq!((fit.model.share(), fit.leaked_share), (0.0, 0.0));
    // Above the threshold rows are split as ever.
    let fit = outcome(&manifold, &points, &["few.rows=60", "objective=none"]);
    assert_eq!(fit.procedure, Procedure::Split { train: 48, validation: 6, test: 6 });
    assert_eq!((fit.model.kernels().centres(), fit.evaluation.test_rows), (48, 6));
}

#[test]
fn three_rows_are_enough_for_a_density_on_every_manifold() {
    let spaces = [
        ("sphere:1", 400),
        ("sphere:2", 60),
        ("torus:2", 120),
        ("hyperbolic:2", 120),
        ("so3", 40),
        ("euclidean:2", 300),
    ];
    for ((name, resolution), rows) in spaces.into_iter().flat_map(|space| [(space, 3), (space, 5)]) {
        let (manifold, points) = bump(name, 5.0, rows, 2);
        let fit = outcome(&manifold, &points, &[]);
        let left_out = Procedure::CrossValidation { rows, folds: rows, repeats: 1, correction: Trial::None };
        assert_eq!(fit.procedure, left_out, "each row once");
        assert!(fit.evaluation.test_nll.std_error > 0.0 && fit.evaluation.test_nll.mean.is_finite(), "{name}");
        let grid = manifold.grid(resolution, 9.0).unwrap();
        let logs = fit.model.log_density(&grid.points, &Context::bare()).unwrap();
        let excess = grid.weights.iter().zip(logs).map(|(w, l)| w * l.exp()).sum::<f64>() - 1.0;
        println!("{name}, {rows} rows: ∫p − 1 = {excess:+.1e}");
        assert!(excess.abs() < 1e-6, "{name}: {excess}");
    }
}

/// Two rows are the least that a width can be chosen by: no fold leaves fewer, however few folds are asked for.
#[test]
fn three_rows_are_left_out_one_by_one_and_four_in_pairs() {
    for (rows, folds) in [(3, 3), (4, 2)] {
        let (manifold, points) = bump("sphere:2", 5.0, rows, 2);
        let fit = outcome(&manifold, &points, &["few.folds=2", "few.repeats=1"]);
        assert_eq!(fit.procedure, Procedure::CrossValidation { rows, folds, repeats: 1, correction: Trial::None });
        assert!(fit.evaluation.test_nll.mean.is_finite() && fit.evaluation.test_nll.std_error > 0.0);
    }
}

/// The weighted mean of equal numbers is off by rounding, which used to be taken for the width of the column: a row at another number had no
/// finite log density.
#[test]
fn a_column_that_is_constant_but_for_rounding_has_no_width() {
    let points = [1.0, 3.0, 2.0, 1.0, 3.0, 3.0, 4.0, 1.0];
    for seed in 0..4 {
        let fit =
            Fit::on(parse("euclidean:2").unwrap()).settings(settings(&["few.folds=2", "few.repeats=1"])).seed(seed);
        let fitted = fit.weights(&[13.0, 4.0, 4.0, 4.0]).points(&points).unwrap();
        let nll = fitted.record().unwrap().evaluation.test_nll;
        assert!(nll.mean.abs() < 20.0, "seed {seed}: {nll}");
    }
}

/// What three rows say of a law is little, and the kernels are wide: on the average of many draws no worse than a uniform density by much.
#[test]
fn three_rows_make_wide_kernels() {
    let fresh = bump("sphere:2", 5.0, 400, 99).1;
    let losses = |narrow: bool| {
        Estimate::of((0..40).map(|seed| {
            let (manifold, points) = bump("sphere:2", 5.0, 3, seed);
            let logs = match narrow {
                true => KernelDensity::new(Bump::new(&*manifold).unwrap(), &points, 1e3, 0.01)
                    .log_density(&fresh, &Context::bare()),
                false => outcome(&manifold, &points, &[]).model.log_density(&fresh, &Context::bare()),
            };
            logs.unwrap().iter().sum::<f64>() / 400.0 + (4.0 * PI).ln()
        }))
    };
    let (own, needles) = (losses(false), losses(true));
    println!("nats above uniform: {own}; of needles {needles}");
    assert!(own.mean > 4.0 * own.std_error, "three rows of a peak say where it is: {own}");
    assert!(needles.mean < -4.0 * needles.std_error, "no power: {needles}");
}

/// Five or eight validation rows used to choose narrow kernels and a rough network: roses had needles.
#[test]
fn small_sets_of_a_smooth_law_have_no_needles() {
    const KAPPA: f64 = 2.0;
    let (manifold, _) = bump("sphere:1", KAPPA, 0, 0);
    let law = Bump::new(&*manifold).unwrap();
    let grid = manifold.grid(3600, 0.0).unwrap();
    let highest = |logs: &[f64]| logs.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    let truth = law.log_density(&[1.0, 0.0], &[1.0, 0.0], KAPPA);
    // Peaks that stand out: between two of them the density falls by a tenth.
    let peaks = |logs: &[f64]| {
        let start = (0..logs.len()).min_by(|a, b| logs[*a].total_cmp(&logs[*b])).unwrap();
        let (mut count, mut rising, mut turn) = (0, true, logs[start]);
        for i in 1..=logs.len() {
            let log = logs[(start + i) % logs.len()];
            turn = if rising == (log > turn) { log } else { turn };
            if (log - turn).abs() > -(0.9f64.ln()) {
                count += usize::from(rising);
                (rising, turn) = (!rising, log);
            }
        }
        count
    };
    for (rows, seed) in [(10, 1), (20, 2), (20, 3), (30, 4), (30, 5), (50, 6), (50, 7), (100, 8)] {
        let (_, points) = bump("sphere:1", KAPPA, rows, seed);
        let model = Model::of_few(&manifold, &settings(&[]), &points, &Context::bare()).unwrap();
        let logs = model.log_density(&grid.points, &Context::bare()).unwrap();
        println!("{rows} rows: highest {:+.2} above the truth, {} peaks", highest(&logs) - truth, peaks(&logs));
        assert!(highest(&logs) - truth < 3f64.ln() && peaks(&logs) <= 1 + rows / 8, "{rows} rows, seed {seed}");
        let needles = KernelDensity::new(law.clone(), &points, 1e4, 0.01)
            .log_density(&grid.points, &Context::of_threads(1))
            .unwrap();
        assert!(highest(&needles) - truth > 3f64.ln() && peaks(&needles) > 1 + rows / 8, "no power");
    }
}

/// κ and share of each family of natural kernels.
fn natural(density: &LocalKernels) -> impl Iterator<Item = (f64, f64)> {
    density.families().iter().filter_map(|f| match f.kind {
        Kind::Natural { kappa } => Some((kappa, f.share)),
        _ => None,
    })
}

/// One width cannot suit a peak and its background: leave-one-out took a compromise, and on nearly uniform laws now and then one
/// that was much too sharp. Several widths, with shares, lose next to nothing where one is enough.
#[test]
fn plain_kernels_of_several_widths_suit_a_peak_on_a_background_and_cost_little_elsewhere() {
    for (name, rows) in [("sphere:2", 50), ("euclidean:2", 50), ("sphere:1", 100)] {
        let law = |wide: f64, count: usize, seed: u64| {
            let (manifold, mut points) = bump(name, 0.3, (wide * count as f64) as usize, seed);
            points.extend(bump(name, 80.0, count - points.len() / manifold.ambient(), seed + 100).1);
            (manifold, points)
        };
        let gains = |wide: f64| {
            let gain = |seed: u64| {
                let ((manifold, points), (_, fresh)) = (law(wide, rows, seed), law(wide, 500, seed + 50));
                let bump = Bump::new(&*manifold).unwrap();
                let one =
                    KernelDensity::cross_validated(bump, &points, None, &Default::default(), &Context::bare()).unwrap();
                let several = LocalKernels::plain(&manifold, &points, &Context::bare()).unwrap().density;
                let (one, several) =
                    (one.0.log_density(&fresh, &Context::bare()), several.log_density(&fresh, &Context::bare()));
                several.unwrap().iter().zip(one.unwrap()).map(|(a, b)| a - b).sum::<f64>() / 500.0
            };
            Estimate::of((0..12).map(gain))
        };
        let (mixed, wide, narrow) = (gains(0.4), gains(1.0), gains(0.0));
        println!("{name}: a peak on a background {mixed}, background only {wide}, peak only {narrow}");
        assert!(mixed.mean > 4.0 * mixed.std_error, "{name}: {mixed}");
        for smooth in [wide, narrow] {
            assert!(smooth.mean > -0.02 - 2.0 * smooth.std_error, "{name}: {smooth}");
        }
    }
}

/// Rounded data have repeats, for which the likelihood grows without bound in the sharpness of kernels.
#[test]
fn repeats_do_not_sharpen_plain_kernels() {
    let (manifold, points) = bump("sphere:1", 3.0, 100, 3);
    let rounded: Vec<f64> = points
        .chunks(2)
        .flat_map(|p| {
            let angle = (p[1].atan2(p[0]) / (PI / 18.0)).round() * (PI / 18.0);
            [angle.cos(), angle.sin()]
        })
        .collect();
    let kappa = |points: &[f64]| {
        let plain = LocalKernels::plain(&manifold, points, &Context::of_threads(1)).unwrap().density;
        // the geometric mean, by shares
        let logs = natural(&plain).map(|(kappa, share)| share * kappa.ln());
        (logs.sum::<f64>() / natural(&plain).map(|(_, share)| share).sum::<f64>()).exp()
    };
    let (smooth, coarse) = (kappa(&points), kappa(&rounded));
    let (_, naive) = KernelDensity::cross_validated(
        Bump::new(&*manifold).unwrap(),
        &rounded,
        None,
        &Default::default(),
        &Context::bare(),
    )
    .unwrap();
    println!(
        "κ {smooth:.1} of the angles, {coarse:.1} of rounded ones, {:.1} if repeats are not left out",
        naive.kappa
    );
    assert!(coarse < 4.0 * smooth && naive.kappa > 100.0 * smooth);
}

#[test]
fn local_kernels_are_used_where_they_are_clearly_better_and_not_elsewhere() {
    let plain = |model: &Model| model.kernels().families().iter().any(|f| matches!(f.kind, Kind::Natural { .. }));
    for seed in 1..=5 {
        let (manifold, points) = bump("euclidean:2", 1.0, 150, seed);
        // A mixture of one normal law would be the truth itself.
        let settings = settings(&["kernels.mixtures=[]"]);
        let model = Model::of_few(&manifold, &settings, &points, &Context::bare()).unwrap();
        assert!(plain(&model), "seed {seed}: one normal law needs no more than plain kernels");
    }
    // A thin ring and a wide cloud: no single width suits both.
    let mut stream = Stream::new(Key::new(5, 0), 0);
    let ring = (0..400).flat_map(|i| {
        let angle = TAU * stream.uniform();
        let radius = if i % 4 == 0 { 30.0 * stream.normal() } else { 1.0 + 0.01 * stream.normal() };
        [radius * angle.cos(), radius * angle.sin()]
    });
    let ring: Vec<f64> = ring.collect();
    let model = Model::of_few(&parse("euclidean:2").unwrap(), &settings(&[]), &ring, &Context::bare()).unwrap();
    assert!(!plain(&model), "local kernels are better here");
}

#[test]
fn a_correction_of_few_rows_is_tried_and_resumes_to_the_same_bits() {
    // Kernels that are much too wide for the law: the correction has something to do.
    let (manifold, points) = bump("sphere:2", 60.0, 300, 4);
    let wide = [
        "kernels.neighbours=[60.0]",
        "kernels.factors=[2.0]",
        "kernels.widths=0",
        "network.waves=0",
        "objective=likelihood",
        "learning.steps=60",
        "learning.rate=1e-2",
        "few.folds=3",
        "few.correction=100",
    ];
    let one = outcome(&manifold, &points, &wide);
    let two = outcome(&manifold, &points, &wide);
    let fresh = bump("sphere:2", 60.0, 50, 9).1;
    let logs = |fit: &Outcome| fit.model.log_density(&fresh, &Context::bare()).unwrap();
    assert_eq!(logs(&one), logs(&two));
    assert_eq!(format!("{:?}", one.evaluation), format!("{:?}", two.evaluation));
    println!("t = {}, NLL {}", one.model.share(), one.evaluation.test_nll);
}

/// Natural kernels of any width, and mixtures of them, are normalised, are drawn from, and have the slope that they have.
#[test]
fn natural_kernels_are_densities_with_draws_and_slopes() {
    let cases = [
        ("sphere:1", 2000, 0.0),
        ("sphere:2", 120, 0.0),
        ("torus:2", 150, 0.0),
        ("euclidean:2", 400, 22.0),
        ("hyperbolic:2", 200, 12.0),
        ("so3", 60, 0.0),
        ("product(sphere:1,euclidean:1)", 400, 22.0),
    ];
    for (name, resolution, radius) in cases {
        for kappa in [0.3, 20.0] {
            let (manifold, points) = bump(name, kappa, 12, 6);
            let plain = LocalKernels::plain(&manifold, &points, &Context::of_threads(1)).unwrap().density;
            // Concentrations that differ by a factor of two between laws, and of eight between angles.
            let count = (points.len() / manifold.ambient()) as f64;
            let mixture = natural_laws(&manifold, &points, |part, k| {
                kappa * (1.0 + k as f64 / count) * 8f64.powi((part % 2) as i32)
            });
            for (what, density) in [("kernels", plain), ("a mixture", mixture)] {
                // Flat kernels are as wide as 1/√κ; the rules of hyperbolic space resolve them where they are.
                let radius = if name.starts_with("hyperbolic") { radius } else { radius / kappa.sqrt() };
                let grid = manifold.grid(resolution, radius).unwrap();
                let logs = density.log_density_of(&grid.points, &Context::of_threads(2)).unwrap();
                let over = |of: &dyn Fn(f64) -> f64| {
                    logs.iter().zip(&grid.weights).map(|(l, w)| w * l.exp() * of(*l)).sum::<f64>()
                };
                let excess = over(&|_| 1.0) - 1.0;
                println!("{name}, {what}, κ about {kappa}: ∫ − 1 = {excess:+.1e}");
                assert!(excess.abs() < 1e-6, "{name}, {what}: {excess}");
                let drawn = density.log_density_of(&density.sample(4000, 1), &Context::of_threads(2)).unwrap();
                assert!(within_sigma(&format!("{name}: E log p"), &drawn, over(&|l| l), 4.0), "{name}");
                slopes_agree(name, &*manifold, &density, &points);
            }
        }
    }
}

/// d/dt log p along geodesics, against the derivative in coordinates.
fn slopes_agree(name: &str, manifold: &dyn Manifold, density: &LocalKernels, points: &[f64]) {
    const STEP: f64 = 1e-4;
    let (m, n) = (manifold.ambient(), manifold.dim());
    for x in density.sample(5, 3).chunks(m).chain([&points[..m]]) {
        let derivative = density.derivative(x, &Context::of_threads(1)).unwrap();
        for j in 0..n {
            let at = |t: f64| {
                let (mut y, mut from, mut start) = (vec![0.0; m], 0, 0);
                let v: Vec<f64> = (0..n).map(|k| if k == j { t } else { 0.0 }).collect();
                for s in manifold.spaces().unwrap() {
                    let own = start..start + s.ambient();
                    s.from_normal(&x[own.clone()], &v[from..from + s.dim()], &mut y[own]);
                    (from, start) = (from + s.dim(), start + s.ambient());
                }
                // Of a rotation's two quaternions, the one nearer to x.
                if name == "so3" && x.iter().zip(&y).map(|(a, b)| a * b).sum::<f64>() < 0.0 {
                    y.iter_mut().for_each(|y| *y = -*y);
                }
                y
            };
            let (up, down) = (at(STEP), at(-STEP));
            let log = |y: &[f64]| density.log_density_of(y, &Context::of_threads(1)).unwrap()[0];
            let expected = (log(&up) - log(&down)) / (2.0 * STEP);
            let along = |k: usize| (up[k] - down[k] + TAU * ((down[k] - up[k]) / TAU).round()) / (2.0 * STEP);
            let got: f64 = (0..m).map(|k| derivative[k] * along(k)).sum();
            let allowed = 1e-5 * (1.0 + expected.abs());
            assert!((got - expected).abs() < allowed, "{name}: slope {got}, not {expected}");
            assert!((1.1 * got - expected).abs() > allowed || expected.abs() < 1e-3, "no power");
        }
    }
}

#[test]
fn plain_kernels_say_of_each_point_what_the_others_say() {
    let (manifold, points) = bump("euclidean:2", 1.0, 40, 7);
    let fit = LocalKernels::plain(&manifold, &points, &Context::of_threads(1)).unwrap();
    for i in [0, 13, 39] {
        let others: Vec<f64> = [&points[..2 * i], &points[2 * i + 2..]].concat();
        let of = |(kappa, share): (f64, f64)| {
            let one = KernelDensity::new(Bump::new(&*manifold).unwrap(), &others, kappa, 0.0);
            share * one.log_density(&points[2 * i..][..2], &Context::of_threads(1)).unwrap()[0].exp()
        };
        let expected = natural(&fit.density).map(of).sum::<f64>().ln();
        assert!(
            (fit.held_out[i] - expected).abs() < 1e-12 * (1.0 + expected.abs()),
            "{} not {expected}",
            fit.held_out[i]
        );
    }
    let whole = LocalSettings::default().fit(&manifold, &points, 1, &Context::of_threads(1), false).unwrap();
    assert_eq!(whole.held_out.len(), fit.held_out.len());
}
