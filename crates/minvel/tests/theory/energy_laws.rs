//! Laws that hold for every energy: its gradient is its derivative, e^{−E} integrates to Z, its samples have its moments.
//!
//! A new energy is one line in [`cases`].

mod network;

use crate::support::values;
use minvel::energy::*;
use minvel::manifold::*;
use minvel::network::{Activation, Features};
use minvel::special::{bessel_i_ratio_complement, hyperbolic_mean};
use minvel_engine::math::Real;
use minvel_engine::{Clock, Expr, Graph, Options, State, grad};
use minvel_testing::{estimate, within_sigma};
use std::f64::consts::TAU;
use std::sync::Arc;

/// An energy, where it lives, and a grid that integrates it to rounding (none: too many dimensions).
struct Case {
    name: &'static str,
    energy: Arc<dyn Energy>,
    manifold: Arc<dyn Manifold>,
    grid: Option<Grid>,
}

fn case(
    name: &'static str,
    energy: impl Energy + 'static,
    manifold: impl Manifold + 'static,
    grid: Option<Grid>,
) -> Case {
    Case { name, energy: Arc::new(energy), manifold: Arc::new(manifold), grid }
}

/// A toy law with a grid of its own.
fn toy(law: ToyLaw, grid: Grid) -> Case {
    let toy = Toy::new(law);
    Case { name: law.name(), manifold: toy.manifold.clone(), energy: Arc::new(toy), grid: Some(grid) }
}

/// Points f(s, t) with weights |∂f| ds dt over a product of two rules.
fn mapped(s: quadrature::Rule, t: quadrature::Rule, f: impl Fn(f64, f64) -> ([f64; 2], f64)) -> Grid {
    let mut grid = Grid { points: vec![], weights: vec![] };
    for (s, v) in s.0.iter().zip(&s.1) {
        for (t, w) in t.0.iter().zip(&t.1) {
            let (point, area) = f(*s, *t);
            grid.points.extend(point);
            grid.weights.push(v * w * area);
        }
    }
    grid
}

fn polar(radius: f64, count: usize) -> Grid {
    mapped(quadrature::interval(1e-12, radius, count), quadrature::angles(16), |r, a| ([r * a.cos(), r * a.sin()], r))
}

/// Coordinates along and across the banana.
fn banana_grid() -> Grid {
    let (along, across) = (quadrature::midpoint(-18.0, 18.0, 240), quadrature::midpoint(-9.0, 9.0, 120));
    mapped(along, across, |x, r| ([x, r + 0.2 * (x * x - 4.0)], 1.0))
}

/// Normal coordinates of the funnel, x₁ = √v n, in two parts that meet at its kink.
fn funnel_grid() -> Grid {
    let kink = -(10f64.ln());
    let part = |from, to| {
        let across = quadrature::midpoint(-9.0, 9.0, 80);
        mapped(quadrature::interval(from, to, 80), across, |x, n| {
            let deviation = (-x).exp().min(10.0).sqrt();
            ([x, deviation * n], deviation)
        })
    };
    let (mut grid, right) = (part(-18.0, kink), part(kink, 18.0));
    grid.points.extend(right.points);
    grid.weights.extend(right.weights);
    grid
}

fn cases() -> Vec<Case> {
    let flat = |n: usize, count, radius| Euclidean(n).grid(count, radius);
    let gauss = |mean: &[f64], s: f64| -> Arc<dyn Energy> { Arc::new(Gaussian::isotropic(mean, s)) };
    let precision = [1.0, 0.3, 0.1, 0.3, 2.0, -0.4, 0.1, -0.4, 0.7];
    let bent = [0.5, 0.2, 0.1, 0.2, -1.0, 0.4, 0.1, 0.4, 1.5];
    let bent4: Vec<f64> = (0..16).map(|i| ((1 + i / 4) as f64 * (1 + i % 4) as f64).sqrt().cos() * 2.0).collect();
    let mixed = MixtureEnergy::new(vec![(0.2, gauss(&[1.0, 0.0], 0.5)), (0.8, Arc::new(toy::Banana::default()))]);
    let mixed_sphere = MixtureEnergy::new(vec![
        (0.5, Arc::new(VonMisesFisher::new(&[0.0, 0.6, 0.8], 4.0)) as Arc<dyn Energy>),
        (0.5, Arc::new(Bingham::new(&bent, 3))),
    ]);
    let parts = Independent::new(vec![
        (2, Arc::new(VonMisesFisher::new(&[0.6, 0.8], 1.5)) as Arc<dyn Energy>),
        (1, Arc::new(VonMises::new(&[0.3], &[2.0]))),
    ]);
    let cylinder = || Product::new(vec![Arc::new(Sphere(1)) as Arc<dyn Manifold>, Arc::new(Torus(1))]);
    vec![
        case("gaussian 1", Gaussian::isotropic(&[0.4], 1.7), Euclidean(1), flat(1, 80, 20.0)),
        case("gaussian 3", Gaussian::new(&[0.2, -0.3, 0.5], &precision), Euclidean(3), flat(3, 50, 14.0)),
        case("mixture", mixed, Euclidean(2), Some(banana_grid())),
        case("vmf circle", VonMisesFisher::new(&[0.6, 0.8], 2.5), Sphere(1), Sphere(1).grid(60, 0.0)),
        case("vmf sphere", VonMisesFisher::new(&[0.6, 0.0, 0.8], 7.0), Sphere(2), Sphere(2).grid(40, 0.0)),
        case("vmf 3-sphere", VonMisesFisher::new(&[1.0, 1.0, 0.0, -1.0], 3.0), Sphere(3), Sphere(3).grid(30, 0.0)),
        case("vmf uniform", VonMisesFisher::new(&[0.0, 0.0, 1.0], 0.0), Sphere(2), Sphere(2).grid(10, 0.0)),
        case("vmf 8-sphere", VonMisesFisher::new(&[1.0; 9], 10.0), Sphere(8), None),
        case("mixture on the sphere", mixed_sphere, Sphere(2), Sphere(2).grid(40, 0.0)),
        case("von mises", VonMises::new(&[0.5, -2.0], &[1.0, 6.0]), Torus(2), Torus(2).grid(60, 0.0)),
        case("hyperboloid 1", Hyperboloid::new(&[0.3], 1.3), Hyperbolic(1), Hyperbolic(1).grid(120, 7.0)),
        case("hyperboloid 2", Hyperboloid::new(&[0.3, -0.2], 4.0), Hyperbolic(2), Hyperbolic(2).grid(80, 6.0)),
        case("hyperboloid 3", Hyperboloid::centred(3, 0.8), Hyperbolic(3), Hyperbolic(3).grid(48, 6.5)),
        case("bingham 2", Bingham::new(&bent, 3), Sphere(2), Sphere(2).grid(40, 0.0)),
        case("bingham 3", Bingham::new(&bent4, 4), Sphere(3), Sphere(3).grid(40, 0.0)),
        case("wrapped normal 1", HyperbolicNormal::new(&[-0.5], 0.6), Hyperbolic(1), Hyperbolic(1).grid(120, 8.0)),
        case("wrapped normal 2", HyperbolicNormal::new(&[0.2, 0.3], 0.5), Hyperbolic(2), Hyperbolic(2).grid(80, 6.5)),
        case("wrapped normal 3", HyperbolicNormal::new(&[0.0; 3], 0.8), Hyperbolic(3), Hyperbolic(3).grid(40, 8.0)),
        case("torus normal", TorusNormal::new(&[3.0, 1.0], 0.7), Torus(2), Torus(2).grid(80, 0.0)),
        case("torus normal, wide", TorusNormal::new(&[-1.0], 2.5), Torus(1), Torus(1).grid(40, 0.0)),
        case("independent", parts, cylinder(), cylinder().grid(60, 0.0)),
        toy(ToyLaw::Banana, banana_grid()),
        toy(ToyLaw::Cosine, flat(2, 240, 12.0).unwrap()),
        toy(ToyLaw::Funnel, funnel_grid()),
        toy(ToyLaw::Ring, polar(7.0, 200)),
        toy(ToyLaw::Multiring, polar(7.0, 200)),
        toy(ToyLaw::Grid, flat(2, 160, 9.0).unwrap()),
        toy(ToyLaw::Square, flat(2, 120, 6.0).unwrap()),
        toy(ToyLaw::Spiral, flat(2, 280, 10.0).unwrap()),
        toy(ToyLaw::Mog, flat(1, 1200, 10.0).unwrap()),
        toy(ToyLaw::Circle, Sphere(1).grid(80, 0.0).unwrap()),
        toy(ToyLaw::CirclePrinted, Sphere(1).grid(80, 0.0).unwrap()),
        toy(ToyLaw::Sphere, Sphere(2).grid(50, 0.0).unwrap()),
        case("formula", double_well(), Euclidean(1), None),
        case("mlp", mlp(Features::of_point(2), Activation::Tanh), Euclidean(2), None),
        case("mlp silu", mlp(Features::of_point(2).scaled(1.5), Activation::Silu), Euclidean(2), None),
        case("mlp softplus", mlp(Features::of_point(2), Activation::Softplus).spectral(), Euclidean(2), None),
        case("mlp elu", mlp(Features::of_point(2), Activation::Elu), Euclidean(2), None),
        case("mlp sin", mlp(Features::of_point(2).with_fourier(5, 0.7, 1), Activation::Sin), Euclidean(2), None),
        case("mlp on the torus", mlp(Features::of(Arc::new(Torus(2))), Activation::Tanh), Torus(2), None),
        case("mlp of harmonics", mlp(Features::of_angles(2, 3), Activation::Tanh), Torus(2), None),
        case("mlp on rotations", mlp(Features::of(Arc::new(So3)), Activation::Tanh).spectral(), So3, None),
    ]
}

fn double_well() -> impl Energy {
    Formula::new([("a", 0.3), ("b", 0.7), ("c", 0.1)], |[a, b, c], x| {
        let x = x.at(-1, 0);
        a * x.powi(4) - b * x.powi(2) + c * x
    })
}

/// The formula is what was written, with the start values given.
#[test]
fn a_formula_is_the_energy_of_its_numbers() {
    let values = energies(&double_well(), &[-1.5, 0.0, 2.0], 1);
    for (x, energy) in [-1.5f64, 0.0, 2.0].into_iter().zip(values) {
        assert!(minvel_testing::within_ulps(energy, 0.3 * x.powi(4) - 0.7 * x.powi(2) + 0.1 * x, 8.0), "{x}: {energy}");
    }
}

fn mlp(features: Features, activation: Activation) -> Mlp {
    Mlp::new("e", features, &[8, 7], activation)
}

/// Runs expressions of an energy in f64, its parameters initialised.
fn run(energy: &dyn Energy, outputs: &[Expr], inputs: &[(&str, &[f64])], seed: u64) -> Vec<Vec<f64>> {
    let mut state = State::new(1);
    initialise(energy, &mut state, 3);
    let options = Options { threads: 1, ..Options::default() };
    let mut program = outputs[0].graph().compile::<f64>(outputs, &[], &options);
    program.run(&mut state, inputs, Clock { seed, step: 0 });
    (0..outputs.len()).map(|k| program.output(k).to_vec()).collect()
}

/// E at points, row-major.
fn energies(energy: &dyn Energy, points: &[f64], coordinates: usize) -> Vec<f64> {
    let g = Graph::new();
    let x = g.input_rows("x", points.len() / coordinates, [coordinates]);
    run(energy, &[energy.energy(x)], &[("x", points)], 0).remove(0)
}

/// Points to look at an energy: its own samples, or those of the manifold's base law.
fn some_points(case: &Case, count: usize) -> Vec<f64> {
    let g = Graph::new();
    let sample = case.energy.sample(&g, count, 0).unwrap_or_else(|| case.manifold.sample_base(&g, count, 0));
    values(&[sample], &[], 11).remove(0)
}

#[test]
fn gradients_are_derivatives_and_a_per_mille_off_is_seen() {
    for case in cases() {
        let (m, count) = (case.manifold.ambient(), 20);
        let points = some_points(&case, count);
        let g = Graph::new();
        let x = g.input_rows("x", count, [m]);
        let energy = case.energy.energy(x);
        let gradient = &run(&*case.energy, &[grad(energy, &[x])[0]], &[("x", &points)], 0)[0];
        let quotient = |i: usize, h: f64| -> Vec<f64> {
            let moved = |by: f64| -> Vec<f64> {
                points.iter().enumerate().map(|(k, p)| if k % m == i { p + by } else { *p }).collect()
            };
            let (up, down) = (energies(&*case.energy, &moved(h), m), energies(&*case.energy, &moved(-h), m));
            up.iter().zip(&down).map(|(a, b)| (a - b) / (2.0 * h)).collect()
        };
        let size = energies(&*case.energy, &points, m);
        let h = 1e-4;
        let mut per_mille_seen = case.name == "square" || case.name == "vmf uniform";
        for i in 0..m {
            let (near, far) = (quotient(i, h), quotient(i, 2.0 * h));
            for row in 0..count {
                let got = gradient[row * m + i];
                // Central differences miss by h²E‴/6, a third of what doubling h adds, and by rounding of E (of terms
                // that may be larger than E itself).
                let rounding = 256.0 * f64::EPSILON * (1.0 + size[row].abs() + got.abs()) / h;
                let tolerance = (far[row] - near[row]).abs() + rounding;
                assert!(
                    (got - near[row]).abs() <= tolerance,
                    "{}: ∂E/∂x{i} = {got} at {:?}, but differences say {} ± {tolerance}",
                    case.name,
                    &points[row * m..][..m],
                    near[row]
                );
                per_mille_seen |= (1.001 * got - near[row]).abs() > tolerance;
            }
        }
        assert!(per_mille_seen, "{}: the test of its gradient has no power", case.name);
    }
}

#[test]
fn exp_of_minus_energy_integrates_to_the_partition_function() {
    for case in cases() {
        let (Some(grid), Some(log_z)) = (&case.grid, case.energy.log_partition()) else { continue };
        let energies = energies(&*case.energy, &grid.points, case.manifold.ambient());
        let sum: f64 = energies.iter().zip(&grid.weights).map(|(e, w)| w * (-e - log_z).exp()).sum();
        println!("{}: ∫ e^(−E)/Z = 1 {:+.1e}", case.name, sum - 1.0);
        // Grids are made to resolve each law; what is left is rounding of E (large at the ends) in each of many terms.
        assert!((sum - 1.0).abs() <= 1e4 * f64::EPSILON, "{}: ∫ e^(−E)/Z = {sum}", case.name);
    }
}

/// Features of each point and their products, column by column.
fn statistics(case: &Case, points: &[f64]) -> Vec<Vec<f64>> {
    let g = Graph::new();
    let x = g.input_rows("x", points.len() / case.manifold.ambient(), [case.manifold.ambient()]);
    let features = case.manifold.features(x);
    let k = features.shape().features().min(4);
    let column = |i: usize| features.at(-1, i);
    let pairs = (0..k).flat_map(|i| (i..k).map(move |j| (i, j)));
    let all: Vec<Expr> = (0..k).map(column).chain(pairs.map(|(i, j)| column(i) * column(j))).collect();
    values(&all, &[("x", points)], 0)
}

/// The largest z-score of the samples' statistics against the density on the grid, as it is and tilted by a tenth of a
/// deviation along the first statistic; `rounding` is the error of a statistic that does not vary.
fn largest_scores(case: &Case, grid: &Grid, points: &[f64], rounding: f64) -> [f64; 2] {
    let (sampled, exact) = (statistics(case, points), statistics(case, &grid.points));
    let log_z = case.energy.log_partition().unwrap();
    let energies = energies(&*case.energy, &grid.points, case.manifold.ambient());
    let deviation = estimate(&sampled[0]).1 * (sampled[0].len() as f64).sqrt();
    [0.0, 0.1].map(|tilt| {
        let weight = |i: usize| grid.weights[i] * (tilt * exact[0][i] / deviation - energies[i] - log_z).exp();
        let weights: Vec<f64> = (0..energies.len()).map(weight).collect();
        let total: f64 = weights.iter().sum();
        let score = |(sample, grid): (&Vec<f64>, &Vec<f64>)| {
            let expected = weights.iter().zip(grid).map(|(w, f)| w * f).sum::<f64>() / total;
            let (mean, error) = estimate(sample);
            (mean - expected) / error.max(rounding)
        };
        sampled.iter().zip(&exact).map(score).fold(0.0, |a: f64, z| if z.abs() > a.abs() { z } else { a })
    })
}

/// Samples of a program in f32 or f64, as f64.
fn sampled<T: Real>(energy: &dyn Energy, count: usize, seed: u64) -> Vec<f64> {
    let g = Graph::new();
    let sample = energy.sample(&g, count, 0).unwrap();
    let mut program = g.compile::<T>(&[sample], &[], &Options { threads: 1, ..Options::default() });
    program.run(&mut State::new(1), &[], Clock { seed, step: 0 });
    program.output(0).iter().map(|x| x.to_f64()).collect()
}

#[test]
fn samples_have_the_moments_of_the_density_and_not_those_of_a_tilted_one() {
    for case in cases() {
        let Some(grid) = &case.grid else { continue };
        let double = (sampled::<f64>(&*case.energy, 60_000, 5), f64::EPSILON);
        let single = (sampled::<f32>(&*case.energy, 20_000, 8), f32::EPSILON as f64);
        for (points, epsilon) in [double, single] {
            let [z, tilted] = largest_scores(&case, grid, &points, 16.0 * epsilon);
            println!("{}: largest z-score {z:+.2}, tilted {tilted:+.1}", case.name);
            assert!(z.abs() < 4.0, "{}: samples are off by {z} standard errors", case.name);
            assert!(tilted.abs() > 4.0, "{}: a tilted density passes as well", case.name);
        }
    }
}

#[test]
fn samplers_are_right_at_the_ends_of_their_ranges() {
    // 1 − w = |z − μ|²/2, whose mean is 1 − A, in both precisions.
    for (m, kappa) in [(2, 1e6), (2, 1e-3), (3, 1e5), (1000, 1e4), (1000, 1.0), (50, 0.0)] {
        let mean: Vec<f64> = (0..m).map(|i| if i == 1 { 1.0 } else { 0.0 }).collect();
        let law = VonMisesFisher::new(&mean, kappa);
        let expected =
            |kappa: f64| if kappa == 0.0 { 1.0 } else { bessel_i_ratio_complement(0.5 * m as f64 - 1.0, kappa) };
        let fall = |points: Vec<f64>| -> Vec<f64> {
            let square = |z: &[f64]| z.iter().zip(&mean).map(|(z, mu)| 0.5 * (z - mu).powi(2)).sum();
            points.chunks(m).map(square).collect()
        };
        for falls in [fall(sampled::<f64>(&law, 4000, 1)), fall(sampled::<f32>(&law, 4000, 2))] {
            assert!(within_sigma(&format!("1 − w, m = {m}, κ = {kappa}"), &falls, expected(kappa), 4.0));
            // A weak pull leaves w nearly uniform, of which 4000 points know too little for a twin.
            let seen = kappa < 100.0 || !within_sigma("with 1.2 κ", &falls, expected(1.2 * kappa), 4.0);
            assert!(seen, "m = {m}, κ = {kappa}: the test has no power");
        }
    }
    // E cosh d on Hⁿ (F39).
    for (n, kappa) in [(1, 0.02), (1, 1e4), (2, 4.0), (3, 4.0), (8, 0.1), (30, 1e3)] {
        let points = sampled::<f64>(&Hyperboloid::centred(n, kappa), 20_000, 3);
        let rise: Vec<f64> =
            points.chunks(n).map(|x| x.iter().map(|x| x * x).sum()).map(|r: f64| 2.0 * r / (1.0 - r)).collect();
        assert!(within_sigma(&format!("X₀ − 1, n = {n}, κ = {kappa}"), &rise, hyperbolic_mean(n, kappa) - 1.0, 4.0));
        assert!(!within_sigma("with 1.1 κ", &rise, hyperbolic_mean(n, 1.1 * kappa) - 1.0, 4.0));
    }
    // Second moments of Bingham in ten coordinates, of the trace that its energy weighs.
    let m = 10;
    let matrix = |scale: f64| -> Vec<f64> {
        (0..m * m).map(|i| if i / m == i % m { scale * (i / m) as f64 } else { 0.0 }).collect()
    };
    let law = Bingham::new(&matrix(1.0), m);
    let first: Vec<f64> = sampled::<f64>(&law, 20_000, 4).chunks(m).map(|z| z[0] * z[0]).collect();
    assert!(within_sigma("E z₁², Bingham", &first, law.second_moments()[0], 4.0));
    assert!(!within_sigma("with 1.1 Λ", &first, Bingham::new(&matrix(1.1), m).second_moments()[0], 4.0));
}

#[test]
fn fisher_information_is_the_mean_square_of_the_gradient() {
    for case in cases() {
        let (Some(grid), Some(expected)) = (&case.grid, case.energy.fisher_information()) else { continue };
        let g = Graph::new();
        let x = g.input_rows("x", grid.weights.len(), [case.manifold.ambient()]);
        let energy = case.energy.energy(x);
        let gradient = case.manifold.gradient(x, grad(energy, &[x])[0]);
        let square = case.manifold.inner(x, gradient, gradient);
        let out = run(&*case.energy, &[energy, square], &[("x", &grid.points)], 0);
        let log_z = case.energy.log_partition().unwrap();
        let got: f64 = (0..grid.weights.len()).map(|i| grid.weights[i] * (-out[0][i] - log_z).exp() * out[1][i]).sum();
        println!("{}: I(p) = {got:.12}, stated {expected:.12}", case.name);
        // Zeros of a mixture's density near the real axis make quadrature of p′²/p converge more slowly.
        assert!((got - expected).abs() <= 1e-10 * expected.max(1.0), "{}: I(p) = {got}, not {expected}", case.name);
    }
}

#[test]
fn replicas_steps_and_streams_give_different_samples_and_equal_ones_the_same() {
    for case in cases() {
        let g = Graph::new();
        let (Some(a), Some(b)) = (case.energy.sample(&g, 64, 1), case.energy.sample(&g, 64, 2)) else { continue };
        let mut program = g.compile::<f64>(&[a, b], &[], &Options { replicas: 2, threads: 1, ..Options::default() });
        let mut draw = |step| {
            program.run(&mut State::new(2), &[], Clock { seed: 1, step });
            let half = program.output(0).len() / 2;
            let (first, second) = program.output(0).split_at(half);
            [first.to_vec(), second.to_vec(), program.output(1)[..half].to_vec()]
        };
        let [first, replica, stream] = draw(0);
        let [later, ..] = draw(1);
        for (what, other) in [("replica", replica), ("stream", stream), ("step", later)] {
            let same = first.iter().zip(&other).filter(|(a, b)| a == b).count();
            assert!(same <= first.len() / 16, "{}: {same} numbers are the same in another {what}", case.name);
        }
        assert_eq!(draw(0)[0], first, "{}", case.name);
        assert!(first.iter().all(|x| x.is_finite()), "{}", case.name);
        for point in first.chunks(case.manifold.ambient()) {
            case.manifold.check(point).unwrap_or_else(|why| panic!("{}: {why}", case.name));
        }
    }
}

#[test]
fn the_partition_function_of_bingham_agrees_with_von_mises_on_the_circle_and_with_uniform_laws() {
    // On S¹ zᵀΛz = mean + (difference/2) cos 2θ: a von Mises law of the doubled angle.
    for gap in [0.0, 1e-3, 1.0, 30.0, 1e3, 1e6] {
        let got = Bingham::new(&[0.25, 0.0, 0.0, 0.25 + gap], 2).log_partition().unwrap();
        let expected = -0.25 + TAU.ln() - 0.5 * gap + minvel::special::log_mean_exp(2, 0.5 * gap);
        assert!(minvel_testing::within_ulps(got, expected, 64.0 * (1.0 + gap)), "gap {gap}: {got}, not {expected}");
    }
    for m in [2, 3, 10, 50, 200] {
        let identity: Vec<f64> = (0..m * m).map(|i| if i / m == i % m { 1.5 } else { 0.0 }).collect();
        let law = Bingham::new(&identity, m);
        let expected = minvel::special::log_sphere_area(m) - 1.5;
        let got = law.log_partition().unwrap();
        assert!(minvel_testing::within_ulps(got, expected, 256.0), "m = {m}: {got}, not {expected}");
        assert!(law.second_moments().iter().step_by(m + 1).all(|x| minvel_testing::within_ulps(
            *x,
            1.0 / m as f64,
            64.0
        )));
    }
}

#[test]
fn rejection_samplers_accept_often_whatever_their_parameters() {
    let mut rates = vec![];
    for n in [1, 2, 3, 10, 100] {
        rates.extend(
            [1e-3, 1.0, 1e3, 1e6]
                .map(|kappa| (format!("H^{n}, κ = {kappa}"), Hyperboloid::centred(n, kappa).acceptance())),
        );
    }
    for m in [2, 3, 4, 10] {
        for (what, last) in [("one", 1), ("half", m / 2), ("all but one", m - 1)] {
            rates.extend([1e-2, 10.0, 1e4].map(|size| {
                let entry = |i: usize| if i / m == i % m && i / m < last { size } else { 0.0 };
                let law = Bingham::new(&(0..m * m).map(entry).collect::<Vec<f64>>(), m);
                (format!("Bingham, {what} of {m} at {size}"), law.acceptance())
            }));
        }
        rates.extend(
            [1e-3, 1.0, 1e2, 1e6]
                .map(|kappa| (format!("vMF, {m}, κ = {kappa}"), von_mises_fisher::acceptance(m, kappa))),
        );
    }
    let (what, worst) = rates.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    println!("worst: {what}: {worst}, {} trials", draw::trials(*worst));
    // A rate above one would mean an envelope that does not cover.
    assert!(rates.iter().all(|(_, r)| *r <= 1.0 + 1e4 * f64::EPSILON), "{rates:?}");
    assert!(draw::trials(*worst) <= 100, "{what}: {worst}");
}

#[test]
fn toy_laws_know_their_names_dimensions_and_what_they_cannot() {
    for law in ToyLaw::ALL {
        assert_eq!(law.name().parse(), Ok(law));
        assert_eq!(Toy::new(law).manifold.to_string(), law.space().manifold().to_string());
    }
    let message = "bananas".parse::<ToyLaw>().unwrap_err();
    assert!(message.contains("bananas") && message.contains("multiring"), "{message}");
    assert!(Toy::new(ToyLaw::Sphere).in_dimension(5).is_err());
    for law in [ToyLaw::Banana, ToyLaw::Funnel, ToyLaw::Square, ToyLaw::Ring, ToyLaw::Mog] {
        let toy = Toy::new(law).in_dimension(6).unwrap();
        let points = points(&toy, 10, 0).unwrap();
        assert_eq!(points.len(), 60);
        assert!(energies(&toy, &points, 6).iter().all(|e| e.is_finite()) && toy.log_partition().is_some());
    }
    let banana = Toy::new(ToyLaw::Banana).in_dimension(6).unwrap();
    assert!(minvel_testing::within_ulps(banana.fisher_information().unwrap(), 1.89 + 4.0, 4.0));
    assert_eq!(Toy::new(ToyLaw::Cosine).fisher_information(), None);
    assert!(minvel_testing::within_digits(toy::Cosine::default().interior_information(), 19.3238912, 7));
}
