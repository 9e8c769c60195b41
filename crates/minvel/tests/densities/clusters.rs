//! Kernels on clusters of rows: exact counts, better scores than a part of the rows gives, and models without rows.

use crate::clumps::point;
use crate::local_kernels::SPACES;
use minvel::density::{Bump, Family, Kind, LocalKernels, LocalSettings};
use minvel::estimate::Estimate;
use minvel::fit::{Comparison, Fit, Goal};
use minvel::manifold::parse;
use minvel::train::Context;
use minvel_engine::random::{Key, Stream};
use std::sync::Arc;

/// A mixture of three natural kernels on a manifold: its draws, and its log density.
pub struct Law {
    bump: Bump,
    parts: Vec<(f64, f64, Vec<f64>)>,
}

impl Law {
    pub fn on(name: &str) -> Law {
        let bump = Bump::new(&*parse(name).unwrap()).unwrap();
        let mut stream = Stream::new(Key::new(3, 0), 1);
        let origin = parse(name).unwrap().origin();
        let place = |shares: (f64, f64)| (shares.0, shares.1, bump.sample(&origin, 0.5, &mut stream));
        let parts = [(0.5, 4.0), (0.3, 40.0), (0.2, 2000.0)].map(place).to_vec();
        Law { bump, parts }
    }

    pub fn draws(&self, count: usize, seed: u64) -> Vec<f64> {
        let mut stream = Stream::new(Key::new(seed, 0), 2);
        let one = |_| {
            let mut left = stream.uniform();
            let found = self.parts.iter().find(|part| {
                left -= part.0;
                left < 0.0
            });
            let part = found.unwrap_or(&self.parts[0]);
            self.bump.sample(&part.2, part.1, &mut stream)
        };
        (0..count).flat_map(one).collect()
    }

    pub fn log_density(&self, x: &[f64]) -> f64 {
        self.parts.iter().map(|(share, kappa, c)| share * self.bump.log_density(x, c, *kappa).exp()).sum::<f64>().ln()
    }
}

fn fitted(name: &str, points: &[f64], centres: usize) -> LocalKernels {
    let manifold: Arc<_> = parse(name).unwrap();
    let settings = LocalSettings { centres, mixtures: vec![], ..LocalSettings::default() };
    settings.fit(&manifold, points, 1, &Context::bare(), false).unwrap().density
}

#[test]
fn clusters_hold_every_row_once_and_are_the_same_for_any_number_of_threads() {
    for name in SPACES {
        let manifold = parse(name).unwrap();
        let m = manifold.ambient();
        let mut stream = Stream::new(Key::new(7, 0), 1);
        let rows: Vec<f64> = (0..1000).flat_map(|_| point(&*manifold, 1.0, &mut stream)).collect();
        let settings = LocalSettings { centres: 130, ..LocalSettings::default() };
        let on =
            |threads: usize| settings.fit(&manifold, &rows, 1, &Context::of_threads(threads), false).unwrap().density;
        let density = on(1);
        let lists = density.tensors();
        let list = |name: &str| lists.iter().find(|list| list.0 == name).unwrap().1;
        let counts: Vec<f64> = list("weights").iter().map(|weight| 1000.0 * weight).collect();
        assert!(counts.iter().all(|count| (count - count.round()).abs() < 1e-9), "{name}: counts are whole");
        assert_eq!(counts.iter().map(|count| count.round() as u64).sum::<u64>(), 1000, "{name}: every row once");
        assert!(counts.iter().all(|count| (7..=8).contains(&(count.round() as u64))), "{name}: {counts:?}");
        let known = |c: &[f64]| rows.chunks(m).any(|row| row == c);
        assert!(!list("centres").chunks(m).any(known), "{name}: a mean of rows is none of them");
        assert_eq!(on(2), density, "{name}: the same bits");
    }
}

#[test]
fn clusters_of_all_rows_score_better_than_a_part_of_the_rows() {
    for name in ["sphere:2", "euclidean:2"] {
        let law = Law::on(name);
        let m = parse(name).unwrap().ambient();
        let (rows, test) = (law.draws(50_000, 1), law.draws(20_000, 2));
        let some: Vec<f64> = rows.chunks(m).step_by(10).flatten().copied().collect();
        let truth: Vec<f64> = test.chunks(m).map(|x| law.log_density(x)).collect();
        let logs = |points: &[f64]| fitted(name, points, 5000).log_density_of(&test, &Context::bare()).unwrap();
        let (clusters, part) = (logs(&rows), logs(&some));
        let [less, more] = [&clusters, &part].map(|logs| Estimate::paired(&truth, logs));
        println!("{name}: excess over the truth {less} with 5000 clusters of 50 000 rows, {more} with 5000 rows");
        let gain = Estimate::paired(&clusters, &part);
        assert!(gain.mean > 5.0 * gain.std_error, "{name}: {gain}");
    }
}

/// A binary search among the sums of the weights drew another number at each comparison: the middle came too often.
#[test]
fn draws_fall_on_centres_by_their_weights() {
    let manifold = parse("euclidean:1").unwrap();
    let (centres, weights): (Vec<f64>, _) = ((0..6).map(f64::from).collect(), [0.4, 0.05, 0.05, 0.2, 0.05, 0.25]);
    let families = [Family { kind: Kind::Fixed { width: 0.01 }, share: 1.0 }];
    let lists = |name: &str| match name {
        "centres" => Some(&centres[..]),
        "weights" => Some(&weights[..]),
        _ => None,
    };
    let draws = LocalKernels::from_tensors(&manifold, &families, lists).unwrap().sample(40_000, 1);
    for (c, weight) in centres.iter().zip(weights) {
        let found = Estimate::of(draws.iter().map(|x| f64::from((x - c).abs() < 0.5)));
        let z = found.z(Estimate::exact(weight));
        println!("weight {weight}: {found}, z = {z:+.2}");
        assert!(z.abs() < 4.0, "{found} of the draws about a centre of weight {weight}");
    }
}

/// Where many rows repeat few points, clusters of them are these points, and neighbours are other points.
#[test]
fn rows_that_repeat_a_few_points_have_clusters_without_extent() {
    let manifold = parse("sphere:2").unwrap();
    let law = Law::on("sphere:2");
    let points = law.draws(40, 1);
    let rows: Vec<f64> = (0..50).flat_map(|_| points.iter().copied()).collect();
    let density = fitted("sphere:2", &rows, 200);
    let centres = density.points();
    // A mean of equal rows is the row, up to rounding; other clusters hold more than one of the points.
    let near = |c: &[f64], p: &[f64]| c.iter().zip(p).all(|(c, p)| (c - p).abs() < 1e-12);
    let equal = centres.chunks(3).filter(|c| points.chunks(3).any(|p| near(c, p))).count();
    assert!(equal > 100, "{equal} of {} clusters are one point", density.centres());
    let logs = density.log_density_of(&points, &Context::bare()).unwrap();
    assert!(logs.iter().all(|log| log.is_finite() && *log > -manifold.volume().unwrap().ln()), "{logs:?}");
}

#[test]
fn a_compressed_model_holds_no_training_row_and_costs_less_with_more_centres() {
    let law = Law::on("sphere:2");
    let rows = law.draws(4000, 1);
    let fit = Fit::on(parse("sphere:2").unwrap()).objective(Goal::None).points(&rows).unwrap();
    let (model, context) = (fit.model(), Context::bare());
    let (fresh, test) = (model.sample(20_000, 2, &context).unwrap().points, law.draws(20_000, 2));
    let mut last = f64::INFINITY;
    for centres in [20, 200, 2000] {
        let small = model.compressed(centres, 1, &context).unwrap();
        assert_eq!((small.kernels().centres(), small.rows(), small.share()), (centres, model.rows(), 0.0));
        assert!(model.share_known(&rows) > 0.7 && small.share_known(&rows) == 0.0, "no row is a centre");
        let [cost, new] = [&fresh, &test].map(|x| Comparison::of([model, &small], x, &context).unwrap().difference);
        println!("{centres} centres of {} cost {cost}, and {new} on new rows of the law", model.rows());
        // A divergence is not negative, and more centres make it smaller.
        assert!(cost.mean > -4.0 * cost.std_error && cost.mean < last - 4.0 * cost.std_error, "{centres}: {cost}");
        last = cost.mean;
    }
}
