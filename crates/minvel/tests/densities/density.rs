//! Natural kernels and kernel densities: normalisers and samplers against quadrature and each other.

use minvel::density::{Bump, Density, KernelDensity, Search};
use minvel::manifold::{Space, parse};
use minvel::train::Context;
use minvel_engine::random::{Key, Stream};
use minvel_testing::{estimate, within_sigma, within_ulps};

/// With what is needed to integrate bumps of κ up to 60 on them.
const SPACES: [(&str, usize); 16] = [
    ("euclidean:1", 200),
    ("euclidean:2", 200),
    ("sphere:1", 100),
    ("sphere:2", 80),
    ("sphere:3", 60),
    ("projective:1", 100),
    ("projective:2", 80),
    ("projective:3", 60),
    ("torus:1", 100),
    ("torus:2", 100),
    ("hyperbolic:1", 400),
    ("hyperbolic:2", 200),
    ("hyperbolic:3", 100),
    ("so3", 60),
    ("product(sphere:1,torus:1)", 100),
    ("product(hyperbolic:1,euclidean:1)", 300),
];

const RADIUS: f64 = 8.0;

fn stream(seed: u64) -> Stream {
    Stream::new(Key::new(seed, 0), 7)
}

/// A bump, with different scales where there are factors, and two centres that are some way apart.
fn case(name: &str) -> (Bump, Vec<f64>, Vec<f64>) {
    let bump = Bump::new(&*parse(name).unwrap()).unwrap();
    let scales = (0..bump.spaces().len()).map(|k| 1.0 + 0.5 * k as f64).collect();
    let bump = bump.with_scales(scales);
    let mut start = vec![];
    for space in bump.spaces() {
        let unit = |i: usize| if i == 0 { 1.0 } else { 0.0 };
        let at_origin = !matches!(space, Space::Sphere(_) | Space::Projective(_) | Space::So3);
        start.extend((0..space.ambient()).map(|i| if at_origin { 0.0 } else { unit(i) }));
    }
    let mut stream = stream(1);
    let c = bump.sample(&start, 6.0, &mut stream);
    let others: Vec<Vec<f64>> = (0..20).map(|_| bump.sample(&start, 6.0, &mut stream)).collect();
    let far = |x: &&Vec<f64>, y: &&Vec<f64>| bump.statistic(x, &c).total_cmp(&bump.statistic(y, &c));
    let d = others.iter().min_by(far).unwrap().clone();
    (bump, c, d)
}

#[test]
fn normalisers_agree_with_quadrature() {
    for (name, resolution) in SPACES {
        let (bump, c, _) = case(name);
        let manifold = parse(name).unwrap();
        let grid = manifold.grid(resolution, RADIUS).unwrap();
        for kappa in [2.0, 7.5, 30.0] {
            let terms = grid.points.chunks(bump.ambient()).zip(&grid.weights);
            let terms: Vec<f64> = terms.map(|(x, w)| w * (kappa * bump.statistic(x, &c)).exp()).collect();
            let (got, expected) = (bump.log_normaliser(kappa), minvel_testing::sum(&terms).ln());
            println!("{name}, κ = {kappa}: {got} against {expected}, {:.1e}", got - expected);
            assert!(within_ulps(got, expected, 1e4), "{name}: log N({kappa}) = {got}, not {expected}");
            let wrong = bump.log_normaliser(1.001 * kappa);
            assert!(!within_ulps(wrong, expected, 1e4), "{name}: the comparison has no power");
        }
    }
}

#[test]
fn the_mean_statistic_is_the_slope_of_the_normaliser_for_all_concentrations() {
    for (name, _) in SPACES.into_iter().chain([("sphere:8", 0), ("torus:7", 0), ("hyperbolic:6", 0)]) {
        let (bump, _, _) = case(name);
        for kappa in [1e-3, 0.03, 1.0, 29.0, 3e3, 1e5, 6e6] {
            let step = 1e-3;
            let value = |k: f64| bump.log_normaliser(kappa * f64::exp(k * step));
            let slope = (8.0 * (value(1.0) - value(-1.0)) - value(2.0) + value(-2.0)) / (12.0 * step);
            let expected = kappa * bump.mean_statistic(kappa);
            // Differences of order four, of values known to some rounding errors; E t loses κ of them on Hⁿ.
            let rounding = 64.0 * f64::EPSILON * ((1.0 + value(0.0).abs()) / step + kappa);
            let allowed = step.powi(3) * expected.abs() + rounding;
            assert!((slope - expected).abs() <= allowed, "{name}: κ E t = {expected} at {kappa}, but slope {slope}");
            let twin = kappa * bump.mean_statistic(1.01 * kappa);
            assert!(kappa < 1.0 || (slope - twin).abs() > allowed, "{name}: no power at {kappa}");
        }
    }
}

#[test]
fn samples_have_the_mean_that_the_normaliser_says() {
    const COUNT: usize = 20_000;
    for (name, _) in
        SPACES.into_iter().chain([("sphere:8", 0), ("torus:7", 0), ("hyperbolic:6", 0), ("hyperbolic:7", 0)])
    {
        let (bump, c, _) = case(name);
        let manifold = parse(name).unwrap();
        for (k, kappa) in [0.3, 4.0, 200.0, 1e6].into_iter().enumerate() {
            let mut stream = stream(10 + k as u64);
            let points: Vec<Vec<f64>> = (0..COUNT).map(|_| bump.sample(&c, kappa, &mut stream)).collect();
            points.iter().take(100).for_each(|x| manifold.check(x).unwrap());
            let samples: Vec<f64> = points.iter().map(|x| kappa * bump.statistic(x, &c)).collect();
            let expected = kappa * bump.mean_statistic(kappa);
            assert!(within_sigma(&format!("{name}, κ = {kappa}: κt"), &samples, expected, 4.0), "{name}, κ = {kappa}");
            let twin = kappa * bump.mean_statistic(1.1 * kappa);
            let (mean, error) = estimate(&samples);
            assert!(kappa < 1.0 || (mean - twin).abs() > 4.0 * error, "{name}, κ = {kappa}: no power against 1.1 κ");
        }
    }
}

#[test]
fn samples_lie_on_all_sides_of_the_centre() {
    for (name, resolution) in SPACES {
        let (bump, c, d) = case(name);
        let kappa = 3.0;
        let mut stream = stream(20);
        let samples: Vec<f64> =
            (0..20_000).map(|_| (0.5 * bump.statistic(&bump.sample(&c, kappa, &mut stream), &d)).exp()).collect();
        let grid = parse(name).unwrap().grid(resolution, RADIUS).unwrap();
        let expected = |centre: &[f64]| {
            let term =
                |(x, w): (&[f64], &f64)| w * (bump.log_density(x, centre, kappa) + 0.5 * bump.statistic(x, &d)).exp();
            minvel_testing::sum(&grid.points.chunks(bump.ambient()).zip(&grid.weights).map(term).collect::<Vec<f64>>())
        };
        assert!(within_sigma(name, &samples, expected(&c), 4.0), "{name}");
        let (mean, error) = estimate(&samples);
        assert!((mean - expected(&d)).abs() > 4.0 * error, "{name}: no power against another centre");
    }
}

fn draws(bump: &Bump, centre: &[f64], kappa: f64, count: usize, seed: u64) -> Vec<f64> {
    let mut stream = stream(seed);
    (0..count).flat_map(|_| bump.sample(centre, kappa, &mut stream)).collect()
}

/// log Σ w e^a, term by term.
fn log_mean(terms: impl Iterator<Item = (f64, f64)>) -> f64 {
    let terms: Vec<(f64, f64)> = terms.collect();
    let top = terms.iter().fold(f64::MIN, |a, t| a.max(t.1));
    let total: f64 = terms.iter().map(|t| t.0).sum();
    top + (terms.iter().map(|t| t.0 * (t.1 - top).exp()).sum::<f64>() / total).ln()
}

#[test]
fn a_kernel_density_is_the_mean_of_its_kernels() {
    for (name, _) in SPACES {
        let (bump, c, _) = case(name);
        let m = bump.ambient();
        let (centres, queries) = (draws(&bump, &c, 2.0, 701, 30), draws(&bump, &c, 1.0, 40, 31));
        let weights: Vec<f64> = (0..701).map(|i| 1.0 + (i % 3) as f64).collect();
        for kappa in [0.5, 900.0] {
            let density = KernelDensity::new(bump.clone(), &centres, kappa, 0.1).weighted(&weights);
            let got = density.log_density(&queries, &Context::of_threads(1)).unwrap();
            assert_eq!(got, density.log_density(&queries, &Context::of_threads(3)).unwrap(), "threads change nothing");
            let value = |x: &[f64], skip: usize| {
                let pairs = centres.chunks(m).zip(&weights).enumerate().filter(|(i, _)| *i != skip);
                let kernels = log_mean(pairs.map(|(_, (c, w))| (*w, bump.log_density(x, c, kappa))));
                match bump.log_volume() {
                    Some(volume) => log_mean([(0.9, kernels), (0.1, -volume)].into_iter()),
                    None => kernels,
                }
            };
            for (x, got) in queries.chunks(m).zip(&got) {
                // κt is a difference of numbers of size κ·scale.
                assert!(within_ulps(*got, value(x, usize::MAX), 64.0 + 8.0 * kappa), "{name}: {got}");
            }
            for (i, got) in density.leave_one_out(&Context::of_threads(2)).unwrap().into_iter().enumerate().step_by(50)
            {
                let expected = value(&centres[i * m..(i + 1) * m], i);
                assert!(within_ulps(got, expected, 64.0 + 8.0 * kappa), "{name}: {got}, not {expected}");
            }
        }
    }
}

#[test]
fn a_kernel_density_integrates_to_one() {
    for (name, resolution) in SPACES {
        let (bump, c, _) = case(name);
        let density = KernelDensity::new(bump.clone(), &draws(&bump, &c, 8.0, 5, 40), 20.0, 0.2);
        let grid = parse(name).unwrap().grid(resolution, RADIUS).unwrap();
        let values = density.log_density(&grid.points, &Context::of_threads(2)).unwrap();
        let terms: Vec<f64> = values.iter().zip(&grid.weights).map(|(l, w)| w * l.exp()).collect();
        assert!(within_ulps(minvel_testing::sum(&terms), 1.0, 1e5), "{name}: {}", minvel_testing::sum(&terms));
    }
}

#[test]
fn the_bandwidths_tried_have_the_likelihoods_of_their_densities() {
    for name in ["sphere:2", "euclidean:2", "product(hyperbolic:1,euclidean:1)"] {
        let (bump, c, _) = case(name);
        let (train, validation) = (draws(&bump, &c, 3.0, 300, 50), draws(&bump, &c, 3.0, 100, 51));
        let (density, bandwidth) = KernelDensity::cross_validated(
            bump.clone(),
            &train,
            Some(&validation),
            &Search::default(),
            &Context::of_threads(2),
        )
        .unwrap();
        assert!(!bandwidth.at_edge && density.kappa() == bandwidth.kappa);
        for (kappa, value) in &bandwidth.tried {
            let all = KernelDensity::new(bump.clone(), &train, *kappa, 0.01)
                .log_density(&validation, &Context::of_threads(1))
                .unwrap();
            let expected = all.iter().sum::<f64>() / all.len() as f64;
            // Each doubling of κ by squaring doubles the error: 2²⁸ rounding errors in the end.
            assert!(within_ulps(*value, expected, 2f64.powi(28)), "{name}, κ = {kappa}: {value}, not {expected}");
            assert!(*value <= bandwidth.log_density, "{name}: the best is the best");
        }
    }
}

#[test]
fn cross_validation_finds_a_bandwidth_that_is_good_on_fresh_points() {
    for name in
        ["sphere:2", "projective:2", "torus:2", "euclidean:2", "hyperbolic:2", "so3", "product(sphere:1,torus:1)"]
    {
        let (bump, c, d) = case(name);
        let both = |count, seed| [draws(&bump, &c, 30.0, count, seed), draws(&bump, &d, 8.0, count, seed + 1)].concat();
        let (train, fresh) = (both(500, 60), both(1000, 70));
        let (density, bandwidth) =
            KernelDensity::cross_validated(bump.clone(), &train, None, &Search::default(), &Context::of_threads(2))
                .unwrap();
        let values = density.log_density(&fresh, &Context::of_threads(2)).unwrap();
        let (mean, error) = estimate(&values);
        println!("{name}: κ = {:.1}, {mean:.3} ± {error:.3}, folds say {:.3}", bandwidth.kappa, bandwidth.log_density);
        // Folds leave out a tenth of the points, and both means have their own errors.
        assert!((bandwidth.log_density - mean).abs() < 4.0 * error * 2f64.sqrt() + 0.05, "{name}");
        for factor in [1.0 / 30.0, 30.0] {
            let other = KernelDensity::new(bump.clone(), &train, factor * density.kappa(), 0.01);
            let gain: Vec<f64> = values
                .iter()
                .zip(other.log_density(&fresh, &Context::of_threads(2)).unwrap())
                .map(|(a, b)| a - b)
                .collect();
            let (gain, error) = estimate(&gain);
            assert!(gain > 4.0 * error, "{name}: {factor} times κ is worse only by {gain} ± {error}");
        }
    }
}

#[test]
fn scales_by_coordinate_follow_the_data() {
    // A plane with columns in different units, and a product of a line with them and a circle without.
    for (name, unit) in [("euclidean:2", vec![1.0, 100.0]), ("product(euclidean:1,torus:1)", vec![100.0, 1.0])] {
        let bump = Bump::new(&*parse(name).unwrap()).unwrap();
        let stretched = |seed| {
            let points = draws(&bump, &[0.0, 0.0], 9.0, 1000, seed);
            points.iter().enumerate().map(|(i, x)| x * unit[i % 2]).collect::<Vec<f64>>()
        };
        let (train, fresh) = (stretched(90), stretched(91));
        let scaled = bump.clone().by_coordinate().scaled_to(&train);
        println!("{name}: scales {:?}", scaled.scales());
        let values = |bump: Bump| {
            let (density, _) =
                KernelDensity::cross_validated(bump, &train, None, &Search::default(), &Context::of_threads(2))
                    .unwrap();
            density.log_density(&fresh, &Context::of_threads(2)).unwrap()
        };
        let gain: Vec<f64> = values(scaled).iter().zip(values(bump.clone())).map(|(a, b)| a - b).collect();
        let (gain, error) = estimate(&gain);
        println!("{name}: {gain:.3} ± {error:.3} better");
        assert!(gain > 4.0 * error, "{name}: scales gain only {gain} ± {error}");
    }
}

#[test]
fn repeated_points_drive_the_bandwidth_to_its_edge_and_it_says_so() {
    let (bump, c, _) = case("sphere:2");
    let once = draws(&bump, &c, 3.0, 50, 80);
    let train: Vec<f64> = once.repeat(4);
    let (density, bandwidth) =
        KernelDensity::cross_validated(bump, &train, None, &Search::default(), &Context::of_threads(2)).unwrap();
    assert!(
        bandwidth.at_edge && density.log_density(&once, &Context::of_threads(1)).unwrap().iter().all(|l| l.is_finite())
    );
}

/// Quaternions are rotations up to sign, axes are unit vectors up to sign; unit vectors are not.
#[test]
fn the_antipode_of_a_centre_is_far_from_it_on_spheres_and_the_same_axis_or_rotation() {
    for name in ["sphere:1", "sphere:2", "sphere:8", "projective:1", "projective:2", "projective:8", "so3"] {
        let bump = Bump::new(&*parse(name).unwrap()).unwrap();
        let m = bump.ambient();
        let length = (0..m).map(|i| ((i + 1) as f64).powi(2)).sum::<f64>().sqrt();
        let c: Vec<f64> = (0..m).map(|i| (i + 1) as f64 / length).collect();
        let opposite: Vec<f64> = c.iter().map(|x| -x).collect();
        let kappa = 6.0;
        let density = KernelDensity::new(bump.clone(), &c, kappa, 0.0);
        let at = density.log_density(&[c.clone(), opposite.clone()].concat(), &Context::of_threads(1)).unwrap();
        if !name.starts_with("sphere") {
            assert!(within_ulps(at[0], at[1], 64.0), "{name}: {at:?}");
        } else {
            // κ(μ·c − μ·(−c)), the statistic being normalised so that it is 0 at the centre.
            let fall = kappa * (bump.statistic(&c, &c) - bump.statistic(&opposite, &c));
            assert!(within_ulps(fall, 2.0 * kappa, 64.0), "{name}: the statistic falls by {fall}");
            assert!(within_ulps(at[0] - at[1], fall, 64.0), "{name}: {at:?}");
        }
    }
}
