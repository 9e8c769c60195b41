//! Outliers: p-values of fresh rows are uniform, false discoveries stay below their level, and old files are told apart.

use crate::support::fits::settings;
use minvel::fit::{Fit, FitSettings, Fitted, Goal, Model};
use minvel::manifold::parse;
use minvel::train::Context;
use minvel_engine::random::{Key, Stream};
use minvel_testing::Scratch;

/// Points on the plane: two normal clusters.
fn clusters(count: usize, seed: u64) -> Vec<f64> {
    let mut stream = Stream::new(Key::new(seed, 0), 21);
    let mut point = || {
        let side = if stream.uniform() < 0.4 { -2.0 } else { 1.5 };
        [side + 0.5 * stream.normal(), 0.3 * side + 0.7 * stream.normal()]
    };
    (0..count).flat_map(|_| point()).collect()
}

fn kernels() -> FitSettings {
    FitSettings { objective: Goal::None, ..settings(&[]) }
}

/// A model of many rows, whose validation rows are its reference.
fn learnt(train: usize, validation: usize, seed: u64) -> Model {
    let plane = parse("euclidean:2").unwrap();
    let (train, validation) = (clusters(train, seed), clusters(validation, 1_000_000 + seed));
    Model::learn(plane, &kernels(), &train, &validation, &Context::bare()).unwrap().0
}

/// A model of few rows, whose reference are all of them, each under the model of the other folds.
fn of_few(rows: usize, seed: u64) -> Fitted {
    Fit::on(parse("euclidean:2").unwrap()).settings(kernels()).points(&clusters(rows, seed)).unwrap()
}

fn p_values(model: &Model, points: &[f64]) -> Vec<f64> {
    let logs = model.log_density(points, &Context::bare()).unwrap();
    logs.into_iter().map(|log| model.reference().unwrap().p_value(log)).collect()
}

/// √N sup|F_N − F| against the uniform law.
fn kolmogorov(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let gap = |(i, p): (usize, &f64)| (p - i as f64 / n).abs().max(((i + 1) as f64 / n - p).abs());
    values.iter().enumerate().map(gap).fold(0.0, f64::max) * n.sqrt()
}

#[test]
fn p_values_of_fresh_rows_are_uniform() {
    for (what, model) in [("validation rows", learnt(1500, 400, 1)), ("folds", of_few(400, 1).into_parts().0)] {
        assert_eq!(model.reference().unwrap().log_densities().len(), 400);
        let distance = kolmogorov(p_values(&model, &clusters(400, 2)));
        // Two samples of n each differ by √2 as much as one from its law: P(√N D > 1.95·√2) = 10⁻³.
        let limit = 1.95 * 2f64.sqrt();
        println!("{what}: √N D = {distance:.2}, limit {limit:.2}");
        assert!(distance < limit, "{what}: √N D = {distance}");
        // The twin: rows of another law.
        let far: Vec<f64> = clusters(400, 3).iter().map(|x| 2.0 * x).collect();
        assert!(kolmogorov(p_values(&model, &far)) > 2.0 * limit, "no power");
    }
}

#[test]
fn false_discoveries_stay_below_their_level_with_a_tenth_of_outliers() {
    let level = 0.1;
    let (mut false_shares, mut found) = (vec![], vec![]);
    for seed in 0..12 {
        let model = learnt(800, 300, 100 + seed);
        let reference = model.reference().unwrap();
        let mut stream = Stream::new(Key::new(seed, 0), 22);
        let odd: Vec<f64> =
            (0..100).flat_map(|_| [8.0 * stream.uniform() - 4.0, 8.0 * stream.uniform() - 4.0]).collect();
        let rows = [clusters(900, 500 + seed), odd].concat();
        let logs = model.log_density(&rows, &Context::bare()).unwrap();
        let mut counts = reference.counts();
        logs.iter().for_each(|log| counts.add(*log));
        let flagged_below = counts.flagged_below(level);
        let flagged: Vec<usize> = (0..1000).filter(|i| reference.rank(logs[*i]) < flagged_below).collect();
        // The rule as it is written in books.
        let mut sorted: Vec<f64> = logs.iter().map(|log| reference.p_value(*log)).collect();
        sorted.sort_by(f64::total_cmp);
        let k = (1..=1000).rev().find(|k| sorted[k - 1] <= level * *k as f64 / 1000.0).unwrap_or(0);
        assert_eq!(flagged.len(), k);
        let wrong = flagged.iter().filter(|i| **i < 900).count();
        false_shares.push(wrong as f64 / flagged.len().max(1) as f64);
        found.push((flagged.len() - wrong) as f64 / 100.0);
    }
    let share = minvel::estimate::Estimate::of(false_shares.iter().copied());
    let power = minvel::estimate::Estimate::of(found);
    println!("false share {share} at level {level}, outliers found {power}");
    assert!(share.mean < level + 3.0 * share.std_error, "{share}");
    assert!(power.mean > 0.3, "{power} of the outliers are found");
    // The twin: flags at p ≤ 0.1 for each row would be half false.
    assert!(0.9 * level / (0.9 * level + 0.1 * power.mean) > 2.0 * level);
}

#[test]
fn p_values_survive_a_file_and_a_model_without_reference_says_so() {
    let scratch = Scratch::new("outliers-keep");
    let fit = of_few(60, 7);
    fit.save(&scratch.path("model.safetensors")).unwrap();
    let again = Fitted::load(&scratch.path("model.safetensors")).unwrap();
    let points = clusters(50, 8);
    assert_eq!(fit.p_values(&points).unwrap(), again.p_values(&points).unwrap());
    // Kernels that nobody scored keep no reference, as files of earlier versions.
    let plane = parse("euclidean:2").unwrap();
    let bare = Model::of_few(&plane, &kernels(), clusters(60, 1), &Context::bare()).unwrap();
    bare.write(&scratch.path("old.safetensors"), &serde_json::json!({ "manifold": "euclidean:2" })).unwrap();
    let old = Fitted::load(&scratch.path("old.safetensors")).unwrap();
    let message = old.p_values(&points).unwrap_err().to_string();
    assert!(message.contains("fit it again"), "{message}");
}
