//! Rows: weights, repeats, groups, blocks and given splits.

use crate::support::fits::settings;
use minvel::Manifold;
use minvel::density::{Bump, Density, KernelDensity, Sample, Search};
use minvel::estimate::Estimate;
use minvel::fit::{Evaluation, Fit, FitSettings, Fitted, Model, Part, Procedure, Split, linked_rows};
use minvel::manifold::parse;
use minvel::train::Context;
use minvel_engine::random::{Key, Stream};
use minvel_engine::{Clock, Graph, Options, State};
use std::sync::Arc;

const SPACES: [&str; 9] = [
    "sphere:1",
    "sphere:2",
    "projective:2",
    "torus:2",
    "euclidean:2",
    "hyperbolic:2",
    "so3",
    "product(sphere:2,euclidean:1)",
    "torus:7",
];

/// Two clumps of points, and weights 0, 1, 2 or 3.
fn data(name: &str, count: usize, seed: u64) -> (Arc<dyn Manifold>, Vec<f64>, Vec<f64>) {
    let manifold = parse(name).unwrap();
    let law = Bump::new(&*manifold).unwrap();
    let mut stream = Stream::new(Key::new(seed, 0), 77);
    let first = manifold.origin();
    let second = law.sample(&first, 2.0, &mut stream);
    let (mut points, mut weights) = (vec![], vec![]);
    for i in 0..count {
        let (centre, kappa) = if i % 3 == 0 { (&first, 40.0) } else { (&second, 8.0) };
        points.extend(law.sample(centre, kappa, &mut stream));
        weights.push((4.0 * stream.uniform()).floor());
    }
    (manifold, points, weights)
}

/// Each row as often as its weight says: some repeats at once, others at the end.
fn repeated(points: &[f64], m: usize, weights: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = vec![];
    let copies = |times: f64, point: &[f64]| point.repeat(times as usize);
    points.chunks(m).zip(weights).for_each(|(x, w)| all.extend(copies(w.min(2.0), x)));
    points.chunks(m).zip(weights).rev().for_each(|(x, w)| all.extend(copies((w - 2.0).max(0.0), x)));
    all
}

/// The largest difference of log densities at points, of the model and of the score.
fn apart(one: &Fitted, other: &Fitted, at: &[f64]) -> f64 {
    let logs = [one, other].map(|fitted| fitted.log_density(at).unwrap());
    let worst = logs[0].iter().zip(&logs[1]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let said = [one, other].map(|fitted| {
        let evaluation = &fitted.record().unwrap().evaluation;
        let baselines = evaluation.baselines.iter().flat_map(|b| [b.nll, b.difference]);
        let estimates = [evaluation.test_nll, evaluation.kernels_nll].into_iter().chain(baselines);
        let coverage = evaluation.coverage.iter().map(|c| c.share);
        estimates.chain(coverage).flat_map(|e: Estimate| [e.mean, e.std_error]).collect::<Vec<f64>>()
    });
    assert_eq!(said[0].len(), said[1].len());
    said[0].iter().zip(&said[1]).map(|(a, b)| (a - b).abs()).fold(worst, f64::max)
}

/// The three laws; a twin with another weight must differ.
fn laws(name: &str, count: usize, settings: &FitSettings, seed: u64) {
    let (manifold, points, weights) = data(name, count, seed);
    let m = manifold.ambient();
    let fit = || Fit::on(&manifold).settings(settings.clone());
    let weighted = fit().weights(&weights).points(&points).unwrap();
    let repeats = fit().points(&repeated(&points, m, &weights)).unwrap();
    let times = fit().weights(&weights.iter().map(|w| 0.37 * w).collect::<Vec<f64>>()).points(&points).unwrap();
    let kept: Vec<usize> = (0..count).filter(|&i| weights[i] > 0.0).collect();
    let removed: Vec<f64> = kept.iter().flat_map(|&i| &points[i * m..][..m]).copied().collect();
    let positive: Vec<f64> = kept.iter().map(|&i| weights[i]).collect();
    let without = fit().weights(&positive).points(&removed).unwrap();
    for (what, other) in [("repeats", &repeats), ("a factor", &times), ("rows of weight 0", &without)] {
        let off = apart(&weighted, other, &points);
        println!("{name}, {count} rows: {what} change log densities and scores by {off:.1e}");
        assert!(off < 1e-9, "{name}: {what}: {off}");
    }
    let mut other = weights.clone();
    other[kept[0]] += 1.0;
    let twin = fit().weights(&other).points(&points).unwrap();
    assert!(apart(&weighted, &twin, &points) > 1e-6, "{name}: no power against another weight");
}

#[test]
fn weights_are_repeats_on_every_space_with_few_rows() {
    for name in SPACES {
        laws(name, 90, &settings(&["objective=none", "few.repeats=1"]), 1);
    }
}

#[test]
fn weights_are_repeats_of_rows_that_are_split() {
    for name in ["sphere:2", "euclidean:2"] {
        laws(name, 700, &settings(&["objective=none", "few.rows=100", "kernels.grouped=200"]), 2);
    }
}

#[test]
fn weights_are_repeats_of_clusters_of_rows() {
    laws("sphere:2", 700, &settings(&["objective=none", "few.rows=100", "kernels.centres=100"]), 3);
}

#[test]
fn weights_are_repeats_for_networks() {
    for objective in ["minimum-velocity", "likelihood"] {
        let objective = format!("objective={objective}");
        let changes = [objective.as_str(), "few.rows=100", "learning.steps=40", "seeds=1", "network.hidden=[16]"];
        laws("sphere:2", 400, &settings(&changes), 4);
    }
}

#[test]
fn equal_weights_are_no_weights_and_rows_without_repeats_are_split_as_ever() {
    let (manifold, points, _) = data("sphere:2", 300, 5);
    let settings = settings(&["objective=none", "few.rows=100"]);
    let fit = || Fit::on(&manifold).settings(settings.clone());
    let (plain, equal) = (fit().points(&points).unwrap(), fit().weights(&[0.3; 300]).points(&points).unwrap());
    assert_eq!(plain.log_density(&points).unwrap(), equal.log_density(&points).unwrap());
    assert_eq!(plain.record().unwrap().split, Some(Split::new(300, settings.seed)));
}

#[test]
fn groups_and_blocks_stay_together_in_every_part() {
    // Pairs of near points: 150 of them, by label and by distance.
    let (manifold, centres, _) = data("sphere:2", 150, 6);
    let near = |x: &[f64]| {
        let y = [x[0] + 1e-4, x[1], x[2]];
        let norm = y.iter().map(|y| y * y).sum::<f64>().sqrt();
        y.map(|y| y / norm)
    };
    let points: Vec<f64> = centres.chunks(3).flat_map(|x| [x.to_vec(), near(x).to_vec()].concat()).collect();
    let labels: Vec<String> = (0..300).map(|i| format!("event {}", i / 2)).collect();
    let split = settings(&["objective=none", "few.rows=100"]);
    let few = settings(&["objective=none", "few.repeats=1"]);
    let score = |fit: Fit| fit.points(&points).unwrap();
    for settings in [split, few] {
        let fit = || Fit::on(&manifold).settings(settings.clone());
        let (torn, labelled, blocked) = (score(fit()), score(fit().groups(&labels)), score(fit().block(2e-4)));
        assert!(apart(&labelled, &blocked, &points) < 1e-12, "the same groups by label and by distance");
        let nll = |fitted: &Fitted| fitted.record().unwrap().evaluation.test_nll;
        // Random rows know the other row of a pair, and narrow kernels find it.
        println!("random rows {}, groups {}", nll(&torn), nll(&labelled));
        assert!(nll(&torn).mean + 1.0 < nll(&labelled).mean, "{} and {}", nll(&torn), nll(&labelled));
        if let Some(split) = &labelled.record().unwrap().split {
            let parts = [&split.train, &split.validation, &split.test];
            assert_eq!(parts.map(|p| p.len()).iter().sum::<usize>(), 300);
            assert!(parts.iter().all(|part| part.iter().all(|row| part.contains(&(row ^ 1)))), "a pair is torn");
            let torn = torn.record().unwrap().split.clone().unwrap();
            assert!(torn.test.iter().any(|row| !torn.test.contains(&(row ^ 1))), "no power");
        }
    }
}

/// Of all pairs.
fn distances(manifold: &dyn Manifold, points: &[f64]) -> Vec<f64> {
    let (m, count) = (manifold.ambient(), points.len() / manifold.ambient());
    let graph = Graph::new();
    let [x, y] = ["x", "y"].map(|name| graph.input_rows(name, count * count, [m]));
    let mut program = graph.compile::<f64>(&[manifold.distance(x, y)], &[], &Options::default());
    let row = |i: usize| &points[i * m..][..m];
    let first: Vec<f64> = (0..count * count).flat_map(|k| row(k / count)).copied().collect();
    let second: Vec<f64> = (0..count * count).flat_map(|k| row(k % count)).copied().collect();
    program.run(&mut State::new(1), &[("x", &first), ("y", &second)], Clock { seed: 0, step: 0 });
    program.output(0).to_vec()
}

#[test]
fn linked_rows_are_those_of_all_pairs() {
    for name in ["sphere:2", "torus:2", "euclidean:2", "so3", "hyperbolic:2"] {
        let (manifold, points, _) = data(name, 400, 7);
        let (distance, distances) = (0.06, distances(&*manifold, &points));
        let near = |a: usize, b: usize| distances[400 * a + b] <= distance;
        let mut group: Vec<usize> = (0..400).collect();
        for a in 0..400 {
            for b in 0..a {
                if near(a, b) && group[a] != group[b] {
                    let (from, to) = (group[a], group[b]);
                    group.iter_mut().filter(|g| **g == from).for_each(|g| *g = to);
                }
            }
        }
        let fit = || Fit::on(&manifold).settings(settings(&["objective=none", "few.rows=100", "kernels.mixtures=[]"]));
        let (blocked, labelled) =
            (fit().block(distance).points(&points).unwrap(), fit().groups(&group).points(&points).unwrap());
        let groups = group.iter().collect::<std::collections::HashSet<_>>().len();
        println!("{name}: {groups} groups of 400 rows");
        assert!((20..395).contains(&groups), "{name}: nothing to find");
        assert_eq!(blocked.record().unwrap().split, labelled.record().unwrap().split, "{name}");
    }
}

#[test]
fn a_given_split_is_used_and_a_bad_one_is_refused() {
    let (manifold, points, _) = data("sphere:2", 60, 8);
    let part = |i: usize| [Part::Train, Part::Train, Part::Validation, Part::Test][i % 4];
    let parts: Vec<Part> = (0..60).map(part).collect();
    let fit = || Fit::on(&manifold).settings(settings(&["objective=none"]));
    let fitted = fit().split(&parts).points(&points).unwrap();
    let record = fitted.record().unwrap();
    assert_eq!(record.procedure, Procedure::Split { train: 30, validation: 15, test: 15 });
    assert!(record.split.as_ref().unwrap().test.iter().all(|i| i % 4 == 3));
    let no_validation: Vec<Part> = parts.iter().map(|p| if *p == Part::Test { *p } else { Part::Train }).collect();
    let fitted = fit().split(&no_validation).points(&points).unwrap();
    assert_eq!(fitted.record().unwrap().procedure, Procedure::Split { train: 41, validation: 4, test: 15 });
    let said = |fit: Fit| fit.points(&points).err().expect("an error").to_string();
    for (fit, words) in [
        (fit().split(&parts[1..]), "59 parts for 60 rows"),
        (fit().split(&[Part::Train; 60]), "no test rows"),
        (fit().weights(&[1.0; 3]), "3 weights for 60 rows"),
        (fit().weights(&[[1.0; 30], [-1.0; 30]].concat()), "row 30 (counted from 0): the weight -1"),
        (fit().weights(&[[1.0; 30], [f64::NAN; 30]].concat()), "row 30 (counted from 0): the weight NaN"),
        (fit().weights(&[0.0; 60]), "all weights are 0"),
        (fit().weights(&[vec![1.0; 2], vec![0.0; 58]].concat()), "at least 3 different points"),
        (fit().split(&[vec![Part::Train; 4], vec![Part::Test; 56]].concat()), "at least 5 different training points"),
        (fit().groups(&[1; 59]), "59 groups for 60 rows"),
        (fit().groups(&[1; 60]), "in 1 groups"),
        (fit().block(9.0), "in 1 groups"),
        (fit().block(-1.0), "the blocking distance -1"),
    ] {
        let why = said(fit);
        assert!(why.contains(words), "`{words}` is not said: {why}");
    }
}

/// One group of nearly all rows used to share a fold with all others, which left nothing to learn from.
#[test]
fn a_group_of_nearly_all_rows_has_a_fold_of_its_own() {
    let (manifold, points, _) = data("sphere:2", 60, 1);
    for (small, folds) in [(2, 10), (4, 10), (12, 10), (3, 2)] {
        let groups: Vec<usize> = (0..60).map(|i| i.min(small)).collect();
        let settings = settings(&[&format!("few.folds={folds}"), "few.repeats=2"]);
        for seed in 1..=4 {
            let fit = Fit::on(manifold.clone()).settings(settings.clone()).seed(seed);
            let fitted = fit.groups(&groups).points(&points).unwrap();
            let record = fitted.record().unwrap();
            let Procedure::CrossValidation { folds, .. } = record.procedure else { panic!("few rows are not split") };
            assert!(folds >= 2 && record.evaluation.test_nll.mean.is_finite(), "{small} small groups: {folds} folds");
        }
    }
}

/// The error of a mean is that of whole groups drawn anew.
#[test]
fn errors_of_grouped_rows_are_those_of_other_groups() {
    let mut stream = Stream::new(Key::new(9, 0), 1);
    let (mut means, mut said, mut naive) = (vec![], 0.0, 0.0);
    for _ in 0..400 {
        let (mut values, mut groups) = (vec![], vec![]);
        for group in 0..40u32 {
            let common = stream.normal();
            let size = 1 + (5.0 * stream.uniform()) as usize;
            values.extend((0..size).map(|_| common + 0.3 * stream.normal()));
            groups.extend(vec![group; size]);
        }
        let grouped = Sample::new(vec![], &vec![1.0; values.len()], groups).estimate(&values);
        means.push(grouped.mean);
        said += grouped.std_error / 400.0;
        naive += Estimate::of(values).std_error / 400.0;
    }
    let moved = Estimate::of(means).std_error * 20.0;
    println!("means move by {moved:.4}; errors over groups say {said:.4}, over rows {naive:.4}");
    assert!((said / moved - 1.0).abs() < 0.12 && naive < 0.75 * moved);
}

/// Clusters of near rows are told from independent rows of the same smooth law, and blocks mend it.
#[test]
fn rows_in_tight_clusters_leak_and_independent_rows_do_not() {
    let (manifold, centres, _) = data("sphere:2", 1000, 10);
    let mut stream = Stream::new(Key::new(10, 0), 2);
    let tight = Bump::new(&*manifold).unwrap();
    let clustered: Vec<f64> = centres
        .chunks(3)
        .take(200)
        .flat_map(|c| (0..5).flat_map(|_| tight.sample(c, 1e6, &mut stream)).collect::<Vec<f64>>())
        .collect();
    let settings = settings(&["objective=none", "few.rows=100", "kernels.mixtures=[]"]);
    let fit = || Fit::on(&manifold).settings(settings.clone());
    let leak = |fitted: &Fitted| fitted.record().unwrap().leak.expect("rows enough");
    let (independent, torn) = (leak(&fit().points(&centres).unwrap()), leak(&fit().points(&clustered).unwrap()));
    println!("independent rows {independent:?}, clusters {torn:?}");
    assert!(!independent.is_large() && independent.share < 0.15, "{independent:?}");
    assert!(torn.is_large() && torn.share > 0.8, "{torn:?}");
    let mended = leak(&fit().block(torn.distance).points(&clustered).unwrap());
    println!("blocked by {}: {mended:?}", torn.distance);
    assert!(mended.share < 0.3 * torn.share, "{mended:?}");
}

/// The error of log p is that of other rows of the same law, of whole groups where rows come in groups, and infinite without data.
#[test]
fn errors_of_log_densities_are_those_of_other_rows() {
    let (manifold, _, _) = data("sphere:2", 10, 11);
    let law = Bump::new(&*manifold).unwrap();
    let pole = manifold.origin();
    // The same kernels with groups and without, so that only the errors differ.
    let kernels = ["kernels.mixtures=[]", "kernels.neighbours=[20.0]", "kernels.factors=[1.0]", "kernels.widths=0"];
    let settings = settings(&[&["objective=none", "few.rows=100"][..], &kernels[..]].concat());
    let mut stream = Stream::new(Key::new(11, 0), 3);
    let at = [pole.clone(), law.sample(&pole, 20.0, &mut stream)].concat();
    let (mut logs, mut said, mut grouped) = ([vec![], vec![]], [0.0; 2], [0.0; 2]);
    const TIMES: usize = 24;
    for _ in 0..TIMES {
        // Groups of four: rows of a group lie together.
        let rows: Vec<f64> = (0..75)
            .flat_map(|_| {
                let centre = law.sample(&pole, 12.0, &mut stream);
                (0..4).flat_map(|_| law.sample(&centre, 60.0, &mut stream)).collect::<Vec<f64>>()
            })
            .collect();
        let groups: Vec<usize> = (0..300).map(|i| i / 4).collect();
        let fitted = Fit::on(&manifold).settings(settings.clone()).groups(&groups).points(&rows).unwrap();
        let (own, errors) = fitted.log_density_and_error(&at).unwrap();
        let single = Fit::on(&manifold).settings(settings.clone()).points(&rows).unwrap();
        let (_, by_rows) = single.log_density_and_error(&at).unwrap();
        for k in 0..2 {
            logs[k].push(own[k]);
            grouped[k] += errors[k] / TIMES as f64;
            said[k] += by_rows[k] / TIMES as f64;
        }
        let far: Vec<f64> = pole.iter().map(|x| -x).collect();
        let (_, none) = fitted.log_density_and_error(&far).unwrap();
        assert_eq!(none, [f64::INFINITY], "there are no data at the antipode");
    }
    for k in 0..2 {
        let moved = Estimate::of(logs[k].iter().copied()).std_error * (TIMES as f64).sqrt();
        println!("log p moves by {moved:.3}, errors over groups say {:.3}, over rows {:.3}", grouped[k], said[k]);
        // 24 draws know their deviation to 15 %; kernels also move by their shapes and shares.
        assert!(grouped[k] > 0.5 * moved && grouped[k] < 1.8 * moved, "{} and {moved}", grouped[k]);
        assert!(said[k] < 0.8 * grouped[k], "no power: rows of a group are no independent rows");
    }
}

#[test]
fn a_split_with_groups_undivided_sends_each_where_its_first_row_is() {
    let line = parse("euclidean:1").unwrap();
    let points = [0.0, 5.0, 0.4, 0.0, 9.0, 5.0, 0.7];
    let context = Context::of_threads(1);
    assert_eq!(linked_rows(&line, &points, None, &context).unwrap(), [0, 1, 2, 0, 3, 1, 4]);
    let near = linked_rows(&line, &points, Some(0.5), &context).unwrap();
    assert_eq!(near, [0, 1, 0, 0, 2, 1, 0]);
    use Part::{Test, Train, Validation};
    let parts = [Test, Train, Train, Validation, Validation, Test, Train];
    let split = Split::by_parts(&parts);
    assert_eq!(split.parts(), parts);
    assert_eq!(split.together(&near).parts(), [Test, Train, Test, Test, Validation, Train, Test]);
}

/// Two clumps, every point five times within 10⁻³, the rows of the first clump ten times as heavy: a kernel density that takes other rows'
/// weights has the wrong masses, and one that takes other rows' groups is as narrow as the copies lie.
#[test]
fn the_kernel_density_that_a_fit_is_compared_with_has_the_weights_and_groups_of_its_rows() {
    let (manifold, clumps, _) = data("sphere:2", 160, 5);
    let law = Bump::new(&*manifold).unwrap();
    let mut stream = Stream::new(Key::new(6, 0), 77);
    let (mut points, mut weights, mut groups) = (vec![], vec![], vec![]);
    for (i, centre) in clumps.chunks(3).enumerate() {
        for _ in 0..5 {
            points.extend(law.sample(centre, 1e6, &mut stream));
            weights.push(if i % 3 == 0 { 10.0 } else { 1.0 });
            groups.push(i as u32);
        }
    }
    let settings = settings(&["objective=none", "few.rows=0"]);
    let fitted =
        Fit::on(&manifold).settings(settings.clone()).weights(&weights).groups(&groups).points(&points).unwrap();
    let record = fitted.record().unwrap();
    let found = record.evaluation.baselines.iter().find(|b| b.method == "kde").unwrap().nll.mean;
    let tests = &record.split.as_ref().unwrap().test;
    let context = Context::of_threads(2);
    let expected = |train: &Sample| {
        let search = Search { seed: settings.seed, ..Search::default() };
        let density = KernelDensity::cross_validated(law.clone(), train, None, &search, &context).unwrap().0;
        let of = |row: usize| -density.log_density(&points[3 * row..][..3], &context).unwrap()[0];
        let mass: f64 = tests.iter().map(|&row| weights[row]).sum();
        tests.iter().map(|&row| weights[row] * of(row)).sum::<f64>() / mass
    };
    let train = fitted.model().kernels().made_of();
    let (right, plain) = (expected(&train), expected(&Sample::from(train.points().to_vec())));
    println!("NLL of the kernel density: {found}, expected {right}; without weights and groups {plain}");
    // Folds are drawn in another order, so that the bandwidth is a little different.
    assert!((found - right).abs() < 0.02, "{found} instead of {right}");
    assert!((plain - right).abs() > 0.2, "no power: {plain} without weights and groups, {right} with them");
}

/// Every point four times: folds that tear repeats apart ask for kernels as narrow as can be.
#[test]
fn the_kernel_density_that_a_fit_is_compared_with_keeps_repeats_together() {
    let (manifold, once, _) = data("sphere:2", 160, 5);
    let (_, fresh, _) = data("sphere:2", 160, 6);
    let context = Context::of_threads(2);
    let (settings, repeated) = (settings(&["objective=none"]), once.repeat(4));
    let (model, _) = Model::learn(manifold.clone(), &settings, &repeated, &fresh, &context).unwrap();
    let evaluation = Evaluation::of(&model, fresh.clone(), settings.seed, &context).unwrap();
    let found = evaluation.baselines.iter().find(|b| b.method == "kde").unwrap().nll.mean;
    let expected = |points: &[f64]| {
        let law = Bump::new(&*manifold).unwrap();
        let search = Search { seed: settings.seed, ..Search::default() };
        let density = KernelDensity::cross_validated(law, points, None, &search, &context).unwrap().0;
        -density.log_density(&fresh, &context).unwrap().iter().sum::<f64>() / 160.0
    };
    let (right, torn) = (expected(&once), expected(&repeated));
    println!("NLL of the kernel density: {found}; of each point once {right}, of torn repeats {torn}");
    // Folds are drawn in another order, so that the bandwidth is a little different.
    assert!((found - right).abs() < 0.1, "{found} instead of {right}");
    assert!(torn > right + 1.0, "no power: {torn} with torn repeats, {right} without");
}
