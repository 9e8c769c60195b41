//! What [`Manifold`] derives from exp, log and the metric, against the closed forms of our manifolds.

use crate::support::bare::Bare;
use crate::support::geometry::wave;
use crate::support::klein::KleinBottle;
use crate::support::values;
use minvel::Manifold;
use minvel::objective::ScoreMatching;
use minvel_engine::{Expr, Graph, grad};
use minvel_testing::within_sigma;

const ROWS: usize = 200;
const SEED: u64 = 3;
const NAMES: [&str; 8] = [
    "euclidean:2",
    "torus:2",
    "sphere:1",
    "sphere:2",
    "sphere:3",
    "hyperbolic:2",
    "so3",
    "product(sphere:2,hyperbolic:2)",
];

/// The largest difference of two expressions over 1 + the size of the first.
fn apart<'g>(a: Expr<'g>, b: Expr<'g>) -> f64 {
    let found = values(&[a, b], &[], SEED);
    let off = found[0].iter().zip(&found[1]).map(|(a, b)| (a - b).abs() / (1.0 + a.abs()));
    off.fold(0.0, |worst, x| if x.is_nan() { f64::INFINITY } else { worst.max(x) })
}

/// Derived vectors go through a frame, of a metric that may be some thousands in the ball: rounding errors, times that.
const ROUNDING: f64 = 1e4 * f64::EPSILON;

fn assert_equal(what: &str, off: f64) {
    assert!(off <= ROUNDING, "{what} is off by {off:e}");
}

#[test]
fn derived_vectors_and_distances_are_those_of_the_closed_forms() {
    for name in NAMES {
        let bare = Bare::of(name);
        let (known, g) = (&*bare.0, Graph::new());
        let (x, y) = (known.sample_base(&g, ROWS, 1), known.sample_base(&g, ROWS, 2));
        let z = g.normal_like(3, x);
        assert_equal(&format!("{name}, projection"), apart(known.project(x, z), bare.project(x, z)));
        assert_equal(&format!("{name}, gradient"), apart(known.gradient(x, z), bare.gradient(x, z)));
        assert_equal(&format!("{name}, distance"), apart(known.distance(x, y), bare.distance(x, y)));
        assert_equal(&format!("{name}, landing"), apart(known.settle(x), bare.land(x)));
    }
}

/// A manifold, n − 1, and sin r/r or what stands for it.
type Case = (&'static str, f64, fn(f64) -> f64);

/// dvol/dv is (sin r/r)^{n−1} on spheres, (sinh r/r)^{n−1} in hyperbolic space: here by automatic differentiation.
#[test]
fn the_derived_volume_of_the_exponential_is_that_of_constant_curvature() {
    let cases: [Case; 5] = [
        ("euclidean:2", 0.0, |_| 1.0),
        ("sphere:2", 1.0, |r| r.sin() / r),
        ("sphere:3", 2.0, |r| r.sin() / r),
        ("hyperbolic:2", 1.0, |r| r.sinh() / r),
        ("so3", 2.0, |r| (0.5 * r).sin() / (0.5 * r)),
    ];
    for (name, power, ratio) in cases {
        let (bare, g) = (Bare::of(name), Graph::new());
        let x = bare.0.sample_base(&g, ROWS, 1);
        let v = bare.0.tangent_normal(x, g.normal_like(2, x));
        let length = bare.inner(x, v, v).sqrt();
        let short = (2.0 / length).min(1.0).expand(-1) * v;
        let found = values(&[bare.exp_log_volume(x, short), length.min(2.0)], &[], SEED);
        for (got, r) in found[0].iter().zip(&found[1]) {
            let expected = power * ratio(*r).ln();
            assert!((got - expected).abs() <= ROUNDING * 10.0, "{name}, r = {r}: {got} is not {expected}");
        }
    }
}

/// The derived base law is a wrapped normal law; in flat and in hyperbolic space it is the one that we have in closed form.
#[test]
fn the_derived_base_energy_is_that_of_the_closed_form_where_both_are_the_same_law() {
    for name in ["euclidean:2", "hyperbolic:2", "hyperbolic:3"] {
        let (bare, g) = (Bare::of(name), Graph::new());
        let x = bare.0.sample_base(&g, ROWS, 1);
        assert_equal(&format!("{name}, energy"), apart(bare.0.base_energy(x), bare.base_energy(x)));
        let slope = |m: &dyn Manifold| m.gradient(x, grad(m.base_energy(x), &[x])[0]);
        assert_equal(&format!("{name}, its slope"), apart(slope(&*bare.0), slope(&bare)));
    }
}

/// Derived charts are normal coordinates about each point, where the Laplacian is the sum of second derivatives: |grad E|² and ΔE
/// are those in closed charts. Two derivatives each lose what one does.
#[test]
fn score_matching_in_derived_charts_is_that_in_closed_ones() {
    for name in ["euclidean:2", "sphere:2", "sphere:3", "hyperbolic:2", "so3"] {
        let (bare, g) = (Bare::of(name), Graph::new());
        let x = bare.0.sample_base(&g, ROWS, 1);
        let energy = |x| wave(&*bare.0, x, 0.7);
        let known = ScoreMatching { manifold: Some(bare.0.clone()) }.derivatives(&energy, x);
        let derived = ScoreMatching::on(bare.clone()).derivatives(&energy, x);
        assert_equal(&format!("{name}, |grad E|²"), apart(known.0, derived.0) / 100.0);
        assert_equal(&format!("{name}, ΔE"), apart(known.1, derived.1) / 100.0);
    }
}

/// Derived grids: by normal coordinates where these cover the manifold, by draws where the volume is known.
#[test]
fn derived_grids_integrate_and_say_where_there_are_none() {
    for name in ["euclidean:2", "hyperbolic:2", "hyperbolic:1"] {
        let bare = Bare::of(name);
        let grid = bare.grid(64, 8.5).expect("exp is one-to-one");
        let g = Graph::new();
        let x = g.input_rows("x", grid.weights.len(), [bare.ambient()]);
        let p = &values(&[(-bare.0.base_energy(x)).exp()], &[("x", &grid.points)], SEED)[0];
        let mass: f64 = grid.weights.iter().zip(p).map(|(w, p)| w * p).sum();
        assert!((mass - 1.0).abs() < 1e-9, "{name}: the base law has mass {mass}");
    }
    let grid = KleinBottle.grid(100, 0.0).expect("the volume is known");
    let waves: Vec<f64> = grid.points.chunks(2).map(|x| (x[0].cos() + 1.0) * x[1].cos().powi(2)).collect();
    assert!(within_sigma("a wave on the Klein bottle", &waves, 0.5, 4.0));
    let total: f64 = grid.weights.iter().sum();
    assert!((total / KleinBottle.volume().unwrap() - 1.0).abs() < 1e-12);
    assert!(Bare::of("sphere:2").grid(10, 1.0).is_none(), "neither volume nor coordinates that cover");
}

#[test]
fn derived_checks_know_points_from_others() {
    let sphere = Bare::of("sphere:2");
    assert_eq!(sphere.check(&[0.6, 0.0, -0.8]), Ok(()));
    assert_eq!(sphere.check(&[0.600001, 0.0, -0.8]), Ok(()), "data have six digits");
    for (point, part) in [
        (vec![0.6, 0.0], "has 3 numbers, not 2"),
        (vec![0.6, f64::NAN, 0.8], "number 1 of the point is NaN"),
        (vec![0.6, 0.0, 1.6], "is not on bare-sphere:2"),
        (vec![0.0, 0.0, 0.0], "is not on bare-sphere:2"),
    ] {
        let why = sphere.check(&point).expect_err(part);
        assert!(why.contains(part), "{why}");
    }
    assert!(KleinBottle.check(&[4.0, 0.0]).unwrap_err().contains("nearest point there is [-2.28"));
}
