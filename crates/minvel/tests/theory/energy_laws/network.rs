//! Laws of networks: spectral normalisation, conditional energies, parameters, start values, functions on manifolds.

use super::{energies, mlp, run};
use minvel::energy::*;
use minvel::manifold::*;
use minvel::network::{Activation, Features, Network};
use minvel_engine::{Clock, Expr, Graph, Options, State, grad};
use std::f64::consts::TAU;
use std::sync::Arc;

/// σ of layer k: W divided by the weight that is used.
fn sigma(weight: &[f64], used: &[f64]) -> f64 {
    let i = (0..weight.len()).max_by(|&a, &b| weight[a].abs().total_cmp(&weight[b].abs())).unwrap();
    weight[i] / used[i]
}

#[test]
fn fact_56_power_iteration_converges_to_the_largest_singular_value() {
    let mut network = Network::new("n", &[3, 2, 1], Activation::Tanh);
    network.spectral = true;
    let g = Graph::new();
    let (used, _) = network.layer(&g, 0);
    let mut program = g.compile::<f64>(&[used], &network.follow(&g), &Options { threads: 1, ..Options::default() });
    let mut state = State::new(1);
    let weight = [2.0, 0.0, 0.0, 1.0, 1.0, 1.0];
    state.set("n/w0", &weight, 6);
    state.set("n/u0", &[1.0, 1.0], 2);
    let mut estimates = vec![];
    for step in 0..40 {
        program.run(&mut state, &[], Clock { seed: 0, step });
        estimates.push(sigma(&weight, program.output(0)));
    }
    for (got, printed) in estimates.iter().zip([2.2360679775, 2.2954805094, 2.3020230982]) {
        assert!(minvel_testing::within_digits(*got, printed, 10), "{got}, not {printed}");
    }
    // WᵀW = [[5, 1], [1, 2]].
    let largest =
        minvel::special::Eigen::new(&[5.0, 1.0, 1.0, 2.0], 2).values.iter().copied().fold(0.0, f64::max).sqrt();
    assert!(minvel_testing::within_digits(largest, 2.3027756377, 10));
    assert!(minvel_testing::within_ulps(estimates[39], largest, 8.0), "{} is not {largest}", estimates[39]);
}

#[test]
fn spectral_normalisation_reaches_the_hidden_layers_but_not_the_last() {
    let energy = mlp(Features::of_point(2), Activation::Tanh).spectral();
    let names: Vec<String> = energy.followers().into_iter().map(|p| p.name).collect();
    assert_eq!(names, ["e/u0", "e/u1"]);
    let g = Graph::new();
    let used: Vec<Expr> = (0..3).map(|k| energy.network().layer(&g, k).0).collect();
    let mut state = State::new(1);
    initialise(&energy, &mut state, 0);
    let mut program = g.compile::<f64>(&used, &energy.follow(&g), &Options { threads: 1, ..Options::default() });
    program.run_steps(&mut state, &[], 0, 0..200);
    for (k, dims) in [[2, 8], [8, 7], [7, 2]].iter().enumerate() {
        let w = program.output(k);
        let gram = |i: usize| (0..dims[0]).map(|r| w[r * dims[1] + i / dims[1]] * w[r * dims[1] + i % dims[1]]).sum();
        let gram: Vec<f64> = (0..dims[1] * dims[1]).map(gram).collect();
        let largest = minvel::special::Eigen::new(&gram, dims[1]).values.iter().copied().fold(0.0, f64::max).sqrt();
        assert_eq!(minvel_testing::within_ulps(largest, 1.0, 64.0), k < 2, "layer {k} has norm {largest}");
    }
}

#[test]
fn a_conditional_energy_is_the_plain_network_on_point_and_context() {
    for spectral in [false, true] {
        let make = || {
            let plain =
                Conditional::new("c", Features::of(Arc::new(Torus(2))).scaled(1.3), 5, &[6, 6], Activation::Silu);
            if spectral { plain.spectral() } else { plain }
        };
        let energy = make();
        let g = Graph::new();
        let (z, c) = (g.input_rows("z", 9, [2]), g.input_rows("c", 9, [5]));
        let once = energy.context(c);
        let (split, other) = (energy.energy(z, once), energy.energy(z + 0.5, once));
        let joint = |z| Energy::energy(&energy, minvel_engine::concat(&[z, c], -1));
        let gradients = |e: Expr| -> Vec<f64> {
            let mut wrt = vec![z, c];
            wrt.extend(parameters(&energy, &g));
            let (zs, cs) = (numbers(18, 1), numbers(45, 2));
            run(&energy, &grad(e.sum_rows(), &wrt), &[("z", &zs), ("c", &cs)], 0).concat()
        };
        for (a, b) in [(split, joint(z)), (other, joint(z + 0.5))] {
            let (zs, cs) = (numbers(18, 1), numbers(45, 2));
            let out = run(&energy, &[a, b], &[("z", &zs), ("c", &cs)], 0);
            assert!(out[0].iter().zip(&out[1]).all(|(x, y)| minvel_testing::within_ulps(*x, *y, 64.0)), "{out:?}");
            let (da, db) = (gradients(a), gradients(b));
            assert!(da.iter().zip(&db).all(|(x, y)| minvel_testing::within_ulps(*x, *y, 256.0)));
            assert!(da.iter().any(|x| x.abs() > 1e-3));
        }
    }
}

fn numbers(count: usize, seed: u64) -> Vec<f64> {
    use minvel_engine::random::{Draw, Key, Stream};
    Stream::new(Key::new(seed, 0), 0).samples(Draw::Normal).take(count).collect()
}

fn parameter_count(energy: &dyn Energy) -> usize {
    energy.parameters().iter().map(|p| p.dims.iter().product::<usize>()).sum()
}

#[test]
fn parameter_counts_of_the_conditional_energy_are_the_papers() {
    for (latent, sphere, euclid) in [(8, 271_369, 270_856), (32, 283_681, 283_168)] {
        let count = |m: usize| {
            let features = Features::of_point(m).scaled((m as f64).sqrt());
            parameter_count(&Conditional::new("e", features, 784, &[256, 256], Activation::Tanh))
        };
        assert_eq!((count(latent + 1), count(latent)), (sphere, euclid));
    }
    // Marginal energies: 2→100→100→2, 3→100→100→3.
    let marginal = |m| parameter_count(&Mlp::new("e", Features::of_point(m), &[100, 100], Activation::Tanh));
    assert_eq!((marginal(2), marginal(3)), (10_602, 10_803));
}

#[test]
fn start_values_differ_between_replicas_seeds_and_names_and_are_glorots() {
    let energy = |name: &str| Mlp::new(name, Features::of_point(40), &[60], Activation::Tanh);
    let start = |name: &str, replicas, seed| {
        let mut state = State::<f64>::new(replicas);
        initialise(&energy(name), &mut state, seed);
        state.get(&format!("{name}/w0")).unwrap().to_vec()
    };
    let two = start("a", 2, 1);
    let (first, second) = two.split_at(2400);
    assert_ne!(first, second);
    assert_ne!(first, start("a", 1, 2));
    assert_ne!(first, start("b", 1, 1));
    assert_eq!(first, start("a", 1, 1));
    let bound = (6.0f64 / 100.0).sqrt();
    assert!(first.iter().all(|w| w.abs() <= bound) && first.iter().any(|w| w.abs() > 0.99 * bound));
    let squares: Vec<f64> = first.iter().map(|w| w * w).collect();
    assert!(minvel_testing::within_sigma("variance of weights", &squares, bound * bound / 3.0, 4.0));
    assert!(!minvel_testing::within_sigma(
        "variance of weights 1.1 times too large",
        &squares,
        1.21 * bound * bound / 3.0,
        4.0
    ));
}

#[test]
fn energies_on_manifolds_are_functions_of_the_point() {
    // Angles up to 2π, quaternions up to sign.
    let torus = mlp(Features::of(Arc::new(Torus(2))), Activation::Tanh);
    let harmonics = mlp(Features::of_angles(2, 3), Activation::Tanh);
    let wrapped = TorusNormal::new(&[3.0, 1.0], 0.7);
    let points = numbers(20, 4);
    let turned: Vec<f64> = points.iter().enumerate().map(|(i, x)| x + TAU * (i as f64 % 5.0 - 2.0)).collect();
    for energy in [&torus as &dyn Energy, &harmonics, &wrapped] {
        let (a, b) = (energies(energy, &points, 2), energies(energy, &turned, 2));
        assert!(a.iter().zip(&b).all(|(x, y)| minvel_testing::within_ulps(*x, *y, 256.0)), "{energy:?}: {a:?} {b:?}");
    }
    let rotations = mlp(Features::of(Arc::new(So3)), Activation::Tanh);
    let negated: Vec<f64> = points.iter().map(|x| -x).collect();
    assert_eq!(energies(&rotations, &points, 4), energies(&rotations, &negated, 4));
    let plain = mlp(Features::of_point(4), Activation::Silu);
    assert_ne!(energies(&plain, &points, 4), energies(&plain, &negated, 4));
}
