//! Mixtures by expectation–maximisation recover mixtures.

use minvel::density::{Bump, Density, Mixture, MixtureSearch, Uniform};
use minvel::manifold::{Space, parse};
use minvel::train::Context;
use minvel_engine::random::{Key, Stream};
use minvel_testing::{estimate, within_ulps};

const NAMES: [&str; 9] = [
    "sphere:1",
    "sphere:2",
    "projective:2",
    "torus:2",
    "euclidean:2",
    "hyperbolic:2",
    "so3",
    "product(sphere:2,torus:1)",
    "sphere:5",
];

/// Two bumps apart, κ = 25 and 60, with weights ¼ and ¾: points and their log density.
fn two_bumps(name: &str, count: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let bump = Bump::new(&*parse(name).unwrap()).unwrap();
    let centre = |angle: f64| {
        let part = |space: &Space| match space {
            Space::Sphere(_) | Space::Projective(_) | Space::So3 => {
                let mut x = vec![0.0; space.ambient()];
                (x[0], x[1]) = (angle.cos(), angle.sin());
                x
            }
            Space::Hyperbolic(_) => [vec![(0.5 * angle).tanh()], vec![0.0; space.ambient() - 1]].concat(),
            _ => [vec![angle], vec![0.0; space.ambient() - 1]].concat(),
        };
        bump.spaces().iter().flat_map(part).collect::<Vec<f64>>()
    };
    let bumps = [(0.25, centre(0.0), 25.0), (0.75, centre(0.9), 60.0)];
    let mut stream = Stream::new(Key::new(seed, 0), 3);
    let (mut points, mut values) = (vec![], vec![]);
    for _ in 0..count {
        let (_, c, kappa) = &bumps[usize::from(stream.uniform() > 0.25)];
        let x = bump.sample(c, *kappa, &mut stream);
        values.push(bumps.iter().map(|(w, c, k)| w * bump.log_density(&x, c, *k).exp()).sum::<f64>().ln());
        points.extend(x);
    }
    (points, values)
}

fn search() -> MixtureSearch {
    MixtureSearch { uniform: 0.0, ..MixtureSearch::default() }
}

/// KL(truth ‖ model) on fresh points, with its error.
fn divergence(name: &str, model: &Mixture) -> (f64, f64) {
    let (fresh, truth) = two_bumps(name, 4000, 2);
    let model = model.log_density(&fresh, &Context::of_threads(2)).unwrap();
    estimate(&truth.iter().zip(&model).map(|(a, b)| a - b).collect::<Vec<f64>>())
}

#[test]
fn mixtures_of_two_are_recovered_on_every_manifold() {
    for name in NAMES {
        let manifold = parse(name).unwrap();
        let (train, _) = two_bumps(name, 2000, 1);
        let mixture = Mixture::fitted(&*manifold, &train, 2, &search(), &Context::of_threads(2)).unwrap();
        let (kl, error) = divergence(name, &mixture);
        // A model of q parameters that is learnt from N points costs q/2N on average.
        let parameters = 1 + 2 * (2 * manifold.dim() + 3);
        let cost = parameters as f64 / 4000.0;
        println!("{name}: KL = {kl:.4} ± {error:.4}, about {cost:.4} expected");
        assert!(kl < 4.0 * cost + 4.0 * error, "{name}: KL = {kl} ± {error}");
        let (one, error) =
            divergence(name, &Mixture::fitted(&*manifold, &train, 1, &search(), &Context::of_threads(2)).unwrap());
        assert!(one > 4.0 * cost + 4.0 * error, "{name}: one component does as well, KL = {one}");
    }
}

#[test]
fn mixtures_integrate_to_one() {
    for (name, resolution) in [
        ("sphere:2", 80),
        ("projective:2", 80),
        ("torus:2", 120),
        ("euclidean:2", 300),
        ("hyperbolic:2", 300),
        ("so3", 60),
    ] {
        let manifold = parse(name).unwrap();
        let (train, _) = two_bumps(name, 500, 3);
        let mixture = Mixture::fitted(
            &*manifold,
            &train,
            3,
            &MixtureSearch { uniform: 0.05, ..search() },
            &Context::of_threads(2),
        )
        .unwrap();
        let grid = manifold.grid(resolution, 6.0).unwrap();
        let values = mixture.log_density(&grid.points, &Context::of_threads(2)).unwrap();
        let total =
            minvel_testing::sum(&values.iter().zip(&grid.weights).map(|(l, w)| w * l.exp()).collect::<Vec<f64>>());
        println!("{name}: {total}");
        assert!(within_ulps(total, 1.0, 1e7), "{name}: ∫p = {total}");
    }
}

#[test]
fn the_number_of_components_is_found_on_validation_points() {
    for name in ["sphere:2", "euclidean:2"] {
        let manifold = parse(name).unwrap();
        let ((train, _), (validation, _)) = (two_bumps(name, 2000, 4), two_bumps(name, 1000, 5));
        let mixture = Mixture::selected(&*manifold, &train, &validation, &search(), &Context::of_threads(2)).unwrap();
        let (kl, error) = divergence(name, &mixture);
        println!("{name}: {} components, KL = {kl:.4} ± {error:.4}", mixture.components());
        assert!((2..=8).contains(&mixture.components()) && kl < 0.02 + 4.0 * error, "{name}");
    }
}

#[test]
fn scale_and_place_of_flat_data_do_not_matter() {
    let manifold = parse("euclidean:2").unwrap();
    let (train, _) = two_bumps("euclidean:2", 1000, 6);
    let moved: Vec<f64> =
        train.iter().enumerate().map(|(i, x)| if i % 2 == 0 { 1e4 + 100.0 * x } else { 1e-3 * x }).collect();
    let values = |points: &[f64]| {
        Mixture::fitted(&*manifold, points, 2, &search(), &Context::of_threads(2))
            .unwrap()
            .log_density(points, &Context::of_threads(1))
            .unwrap()
    };
    for (a, b) in values(&train).iter().zip(values(&moved)) {
        // log det of the map is log 0.1; 1e4 ± 100 has lost two digits.
        assert!(within_ulps(*a, b + 0.1f64.ln(), 1e8), "{a} against {b}");
    }
}

#[test]
fn repeated_points_do_not_collapse_a_mixture() {
    for name in NAMES {
        let manifold = parse(name).unwrap();
        let point = &two_bumps(name, 1, 7).0;
        let train = point.repeat(30);
        let mixture = Mixture::selected(&*manifold, &train, point, &search(), &Context::of_threads(2)).unwrap();
        assert!(mixture.log_density(&train, &Context::of_threads(1)).unwrap().iter().all(|l| l.is_finite()), "{name}");
    }
}

#[test]
fn the_uniform_density_exists_where_the_volume_does() {
    let values = Uniform::new(&parse("sphere:2").unwrap())
        .unwrap()
        .log_density(&[1.0, 0.0, 0.0], &Context::of_threads(1))
        .unwrap();
    assert!(within_ulps(values[0], -(4.0 * std::f64::consts::PI).ln(), 4.0));
    assert!(Uniform::new(&parse("hyperbolic:2").unwrap()).is_none());
}
