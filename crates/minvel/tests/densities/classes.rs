//! Classes of kernels from dense to sparse places: shares of their own where places differ, and a density all the same.

use minvel::Manifold;
use minvel::density::{Bump, Kind, LocalKernels, LocalSettings};
use minvel::estimate::Estimate;
use minvel::manifold::parse;
use minvel::train::Context;
use minvel_engine::random::{Key, Stream};
use std::sync::Arc;

/// Half of the points on a thin rough core, the others in a wide smooth cloud: one rule of widths does not suit both.
fn core_and_cloud(manifold: &dyn Manifold, count: usize, seed: u64) -> Vec<f64> {
    let law = Bump::new(manifold).unwrap();
    let mut places = Stream::new(Key::new(5, 0), 1);
    let clumps: Vec<Vec<f64>> = (0..60).map(|_| law.sample(&manifold.origin(), 30.0, &mut places)).collect();
    let mut stream = Stream::new(Key::new(seed, 0), 2);
    let mut points = vec![];
    for _ in 0..count {
        let core = stream.uniform() < 0.5;
        let which = (60.0 * stream.uniform()) as usize;
        let (centre, kappa) = if core { (clumps[which].clone(), 3e5) } else { (manifold.origin(), 3.0) };
        points.extend(law.sample(&centre, kappa, &mut stream));
    }
    points
}

fn settings(classes: usize) -> LocalSettings {
    // mixtures would find the clumps, which is not the question here
    LocalSettings { classes, mixtures: vec![], ..LocalSettings::default() }
}

fn fit(manifold: &Arc<dyn Manifold>, points: &[f64], classes: usize) -> LocalKernels {
    settings(classes).fit(manifold, points, 1, &Context::of_threads(2), false).unwrap().density
}

/// What `one` gains over `other` on points.
fn gain(one: &LocalKernels, other: &LocalKernels, points: &[f64]) -> Estimate {
    let logs = [one, other].map(|density| density.log_density_of(points, &Context::of_threads(2)).unwrap());
    Estimate::paired(&logs[0], &logs[1])
}

#[test]
fn classes_gain_on_fresh_points_where_dense_and_sparse_places_differ_and_lose_nothing_elsewhere() {
    for name in ["sphere:2", "torus:2", "euclidean:2"] {
        let manifold = parse(name).unwrap();
        let (train, fresh) = (core_and_cloud(&*manifold, 4000, 1), core_and_cloud(&*manifold, 8000, 2));
        let found = gain(&fit(&manifold, &train, 4), &fit(&manifold, &train, 1), &fresh);
        println!("{name}: four classes gain {} nats", found);
        assert!(found.mean > 4.0 * found.std_error, "{name}: {found}");
        // The twin: of one smooth law classes have nothing to tell apart.
        let law = Bump::new(&*manifold).unwrap();
        let mut stream = Stream::new(Key::new(3, 0), 2);
        let mut smooth = |count: usize| -> Vec<f64> {
            (0..count).flat_map(|_| law.sample(&manifold.origin(), 3.0, &mut stream)).collect()
        };
        let (train, fresh) = (smooth(4000), smooth(8000));
        let same = gain(&fit(&manifold, &train, 4), &fit(&manifold, &train, 1), &fresh);
        println!("{name}: of a smooth law {same} nats");
        assert!(same.mean.abs() < 0.25 * found.mean, "{name}: {same} of a smooth law, {found} of a core and a cloud");
        assert!(same.mean > -0.003, "{name}: {same} is lost");
    }
}

#[test]
fn a_density_of_classes_integrates_to_one() {
    for (name, resolution) in [("sphere:2", 900), ("torus:2", 900)] {
        let manifold = parse(name).unwrap();
        let law = Bump::new(&*manifold).unwrap();
        let mut stream = Stream::new(Key::new(4, 0), 2);
        let mut points = vec![];
        for i in 0..2400 {
            let kappa = if i % 2 == 0 { 3.0 } else { 200.0 };
            points.extend(law.sample(&manifold.origin(), kappa, &mut stream));
        }
        // kernels that a grid resolves
        let settings = LocalSettings { factors: vec![1.0, 2.0], neighbours: vec![12.0], widths: 4, ..settings(4) };
        let density = settings.fit(&manifold, &points, 1, &Context::of_threads(2), false).unwrap().density;
        let shaped = |kind: Kind| matches!(kind, Kind::Local { .. });
        assert!(density.families().iter().filter(|f| shaped(f.kind)).count() > 2, "{name}: no classes are left");
        let grid = manifold.grid(resolution, 8.0).unwrap();
        let logs = density.log_density_of(&grid.points, &Context::of_threads(2)).unwrap();
        let excess = grid.weights.iter().zip(logs).map(|(w, l)| w * l.exp()).sum::<f64>() - 1.0;
        println!("{name}: ∫p − 1 = {excess:+.1e}");
        // what sums leave out, 10⁻⁶ of the density at most
        assert!(excess.abs() < 2e-6, "{name}: {excess}");
    }
}

#[test]
fn few_rows_have_one_class() {
    let manifold = parse("sphere:2").unwrap();
    let points = core_and_cloud(&*manifold, 900, 1);
    assert_eq!(fit(&manifold, &points, 4), fit(&manifold, &points, 1));
    let more = core_and_cloud(&*manifold, 1000, 1);
    assert_ne!(fit(&manifold, &more, 4), fit(&manifold, &more, 1), "from 1000 rows on there are two");
}
