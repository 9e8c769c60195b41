//! Fits of summaries of rows: the same bits for any parts of the rows, and nearly the scores of all rows.

use crate::clumps::clumps;
use crate::clusters::Law;
use crate::local_kernels::SPACES;
use minvel::density::LocalSettings;
use minvel::estimate::Estimate;
use minvel::fit::{Fit, Fitted, Goal, Sketch, SketchPlan, Tally};
use minvel::manifold::parse;
use minvel::train::Context;
use minvel_engine::random::{Draw, Key, Stream};

fn plan(name: &str, cells: usize, rows: &[f64]) -> SketchPlan {
    let manifold = parse(name).unwrap();
    SketchPlan::new(&manifold, 1, cells, &rows[..200 * manifold.ambient()]).unwrap().keep(100)
}

fn sketch(plan: &SketchPlan, rows: &[f64]) -> Sketch {
    let mut sketch = Sketch::new(plan).unwrap();
    sketch.add(rows).unwrap();
    sketch
}

/// Rows dealt out by chance, summarised part by part, sent as bytes, and merged in an order of chance.
fn in_parts(plan: &SketchPlan, rows: &[f64], m: usize, parts: usize, seed: u64) -> Sketch {
    let mut stream = Stream::new(Key::new(seed, 0), 3);
    let mut heaps = vec![vec![]; parts];
    rows.chunks(m).for_each(|row| heaps[stream.draw(Draw::Integer(parts as u32)) as usize].extend_from_slice(row));
    let mut sketches: Vec<Sketch> = heaps.iter().map(|heap| sketch(plan, heap)).collect();
    while sketches.len() > 1 {
        let other = sketches.swap_remove(stream.draw(Draw::Integer(sketches.len() as u32)) as usize);
        let into = stream.draw(Draw::Integer(sketches.len() as u32)) as usize;
        sketches[into].merge(&Sketch::from_bytes(&other.to_bytes()).unwrap()).unwrap();
    }
    sketches.remove(0)
}

fn kernels(name: &str, sketch: &Sketch) -> Fitted {
    Fit::on(parse(name).unwrap()).objective(Goal::None).sketch(sketch).unwrap()
}

#[test]
fn summaries_of_any_parts_are_the_same_bytes() {
    for name in SPACES {
        let manifold = parse(name).unwrap();
        let m = manifold.ambient();
        let mut rows = clumps(&manifold, 1500, 1);
        rows.extend_from_within(..100 * m); // repeats
        let plan = plan(name, 120, &rows);
        let whole = sketch(&plan, &rows);
        assert!((10..=120).contains(&whole.cells()) && whole.rows() == 1600, "{name}: {} cells", whole.cells());
        for (parts, seed) in [(2, 1), (7, 2), (60, 3)] {
            assert!(in_parts(&plan, &rows, m, parts, seed).to_bytes() == whole.to_bytes(), "{name}, {parts} parts");
        }
        assert!(sketch(&plan, &rows[m..]).to_bytes() != whole.to_bytes(), "{name}: a row less is another summary");
    }
}

#[test]
fn the_fit_of_a_summary_does_not_depend_on_parts_or_threads() {
    for name in ["sphere:2", "euclidean:2"] {
        let law = Law::on(name);
        let m = parse(name).unwrap().ambient();
        let rows = law.draws(20_000, 1);
        let plan = plan(name, 500, &rows);
        let whole = kernels(name, &sketch(&plan, &rows));
        let parts = in_parts(&plan, &rows, m, 5, 1);
        let other = Fit::on(parse(name).unwrap()).objective(Goal::None).threads(1).sketch(&parts).unwrap();
        assert!(whole.model().kernels() == other.model().kernels(), "{name}: kernels");
        let test = law.draws(500, 2);
        assert_eq!(whole.log_density(&test).unwrap(), other.log_density(&test).unwrap(), "{name}");
        let [a, b] = [&whole, &other].map(|fit| fit.record().unwrap());
        assert_eq!((&a.evaluation, &a.procedure), (&b.evaluation, &b.procedure), "{name}");
        assert_eq!(whole.p_values(&test).unwrap(), other.p_values(&test).unwrap());
    }
}

/// What is lost against all rows is less than half of what as many rows as cells lose; with few cells it is not. Kernels alone: mixtures would find
/// these laws in any summary.
#[test]
fn a_summary_loses_little_against_all_rows_and_a_coarse_one_does_not() {
    for name in ["sphere:2", "euclidean:2"] {
        let law = Law::on(name);
        let manifold = parse(name).unwrap();
        let m = manifold.ambient();
        let (rows, test) = (law.draws(40_000, 1), law.draws(80_000, 2));
        let kernels = LocalSettings { mixtures: vec![], ..LocalSettings::default() };
        let fit = Fit::on(&manifold).objective(Goal::None).kernels(kernels);
        let logs = |fitted: Fitted| fitted.log_density(&test).unwrap();
        let of = |cells: usize| {
            let sketch = sketch(&plan(name, cells, &rows), &rows);
            (logs(fit.sketch(&sketch).unwrap()), sketch.cells())
        };
        let ((fine, cells), (coarse, few)) = (of(4000), of(100));
        let (all, part) = (logs(fit.points(&rows).unwrap()), logs(fit.points(&rows[..cells * m]).unwrap()));
        let truth: Vec<f64> = test.chunks(m).map(|x| law.log_density(x)).collect();
        let excess = |logs: &[f64]| Estimate::paired(&truth, logs);
        println!(
            "{name}: excess over the truth {} of all rows, {} with {cells} cells, {} with {few}, {} of {cells} rows",
            excess(&all),
            excess(&fine),
            excess(&coarse),
            excess(&part)
        );
        // log p_summary − (log p_all + log p_part)/2, row by row.
        let halves: Vec<f64> = all.iter().zip(&part).map(|(a, b)| 0.5 * (a + b)).collect();
        let [gain, twin] = [&fine, &coarse].map(|logs| Estimate::paired(logs, &halves));
        assert!(gain.mean > 4.0 * gain.std_error, "{name}: {gain}");
        assert!(twin.mean < -4.0 * twin.std_error, "{name}: the twin: {twin}");
    }
}

#[test]
fn a_summary_of_few_rows_is_fitted_as_these_rows() {
    let law = Law::on("sphere:2");
    let rows = law.draws(300, 1);
    let manifold = parse("sphere:2").unwrap();
    let plan = SketchPlan::new(&manifold, 1, 100, &rows).unwrap();
    let all = sketch(&plan, &rows);
    let (points, counts) = all.all_rows().unwrap();
    assert_eq!((points.len(), counts.iter().sum::<u64>(), all.different()), (900, 300, 300));
    let fit = Fit::on(&manifold).objective(Goal::None);
    let (one, other) = (fit.sketch(&all).unwrap(), fit.points(&points).unwrap());
    assert_eq!(one.log_density(&rows).unwrap(), other.log_density(&rows).unwrap());
    let parts = in_parts(&plan, &rows, 3, 4, 1);
    assert_eq!(one.log_density(&rows).unwrap(), fit.sketch(&parts).unwrap().log_density(&rows).unwrap());
}

#[test]
fn a_correction_is_learnt_beside_cells() {
    let law = Law::on("sphere:2");
    let rows = law.draws(30_000, 1);
    let sketch = sketch(&plan("sphere:2", 200, &rows), &rows);
    let fit = Fit::on(parse("sphere:2").unwrap()).quick().sketch(&sketch).unwrap();
    let evaluation = &fit.record().unwrap().evaluation;
    println!(
        "{} kernels alone, {} with a share {} of the correction",
        evaluation.kernels_nll,
        evaluation.test_nll,
        fit.model().share()
    );
    assert!(fit.model().share() > 0.0 && evaluation.test_nll.mean < evaluation.kernels_nll.mean);
}

#[test]
fn the_score_of_all_test_rows_is_the_same_for_any_parts() {
    let law = Law::on("sphere:2");
    let rows = law.draws(20_000, 1);
    let plan = plan("sphere:2", 300, &rows);
    let (fit, context) = (kernels("sphere:2", &sketch(&plan, &rows)), Context::bare());
    let model = fit.model();
    let of = |rows: &[f64]| {
        let mut tally = Tally::default();
        tally.add(model, &plan, rows, &context).unwrap();
        tally
    };
    let whole = of(&rows);
    for each in [1234, 7000] {
        let mut parts: Vec<Tally> = rows.chunks(3 * each).map(of).collect();
        parts.reverse();
        let mut all = Tally::default();
        parts.iter().for_each(|part| all.merge(part));
        assert_eq!(all, whole);
    }
    let tested = plan.test_rows(&rows).unwrap();
    let share = Estimate::of((0..20_000).map(|k| f64::from(k < tested.len() / 3)));
    println!("{share} of the rows are test rows: z = {:.2}", share.z(Estimate::exact(0.1)));
    assert!(share.z(Estimate::exact(0.1)).abs() < 4.0);
    let plain = Estimate::of(model.log_density(&tested, &context).unwrap().iter().map(|l| -l));
    let [own, _] = whole.nll(model);
    // Half a step of each row's whole number.
    assert!((own.mean - plain.mean).abs() < f64::powi(2.0, -31), "{own} and {plain}");
    assert!((own.std_error / plain.std_error - 1.0).abs() < 1e-6, "{own} and {plain}");
    // The kept test rows are all of them here.
    let kept = &fit.record().unwrap().evaluation;
    assert!((kept.test_nll.mean - own.mean).abs() < f64::powi(2.0, -31), "{} and {own}", kept.test_nll);
}

#[test]
fn bytes_of_other_plans_versions_or_lengths_are_refused() {
    let rows = Law::on("sphere:2").draws(500, 1);
    let mut own = sketch(&plan("sphere:2", 100, &rows), &rows);
    let bytes = own.to_bytes();
    let said = |bytes: &[u8]| Sketch::from_bytes(bytes).map(|_| ()).unwrap_err().to_string();
    assert!(said(&bytes[..bytes.len() - 1]).contains("damaged"));
    let mut other = bytes.clone();
    other[400] ^= 4;
    assert!(said(&other).contains("damaged"));
    other = bytes.clone();
    other[15] = b'9';
    assert!(said(&other).contains("another version"));
    assert!(said(b"PAR1").contains("no summary"));
    let foreign = sketch(&plan("sphere:2", 101, &rows), &rows);
    assert!(own.merge(&foreign).unwrap_err().to_string().contains("different plans"));
    let far = sketch(&plan("euclidean:1", 100, &rows), &rows).add(&[0.5, 1e13]).unwrap_err().to_string();
    assert!(far.contains("row 1") || far.contains("row 0"), "{far}");
    assert!(Fit::on(parse("torus:2").unwrap()).sketch(&own).err().unwrap().to_string().contains("rows on sphere:2"));
}
