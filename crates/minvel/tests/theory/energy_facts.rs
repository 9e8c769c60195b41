//! Facts about energies (docs/math §6: F17, F41–F46) and the network's part of the golden vectors, docs/math §7.

use crate::support::values;
use minvel::energy::von_mises_fisher::{Envelope, Wood, acceptance};
use minvel::energy::*;
use minvel::manifold::{Grid, Manifold, Sphere, quadrature};
use minvel::network::{Activation, Features};
use minvel::special::*;
use minvel_engine::{Clock, Graph, Options, State, grad, jvp};
use minvel_testing::{within_digits, within_sigma, within_ulps};

/// Averages of a law on a grid: total mass, I(p), entropy, and log p itself.
fn averages(law: &dyn Energy, manifold: &dyn Manifold, grid: &Grid) -> (f64, f64, f64, Vec<f64>) {
    let g = Graph::new();
    let x = g.input_rows("x", grid.weights.len(), [manifold.ambient()]);
    let log_prob = log_prob(law, x).unwrap();
    let gradient = manifold.gradient(x, grad(log_prob, &[x])[0]);
    let out = values(&[log_prob, manifold.inner(x, gradient, gradient)], &[("x", &grid.points)], 0);
    let mean =
        |f: &dyn Fn(usize) -> f64| (0..grid.weights.len()).map(|i| grid.weights[i] * out[0][i].exp() * f(i)).sum();
    (mean(&|_| 1.0), mean(&|i| out[1][i]), mean(&|i| -out[0][i]), out[0].clone())
}

#[test]
fn fact_17_the_banana_has_fisher_information_1_89() {
    // Along x₀ and across: the score is a polynomial of degree 3, so Gauss–Hermite is exact.
    let (z, w) = minvel_testing::tensor_rule(&minvel_testing::gauss_hermite(8), 2);
    let points: Vec<f64> = z.chunks(2).flat_map(|z| [2.0 * z[0], z[1] + 0.2 * (4.0 * z[0] * z[0] - 4.0)]).collect();
    let law = toy::Banana::default();
    let g = Graph::new();
    let x = g.input_rows("x", w.len(), [2]);
    let gradient = grad(law.energy(x), &[x])[0];
    let square = &values(&[gradient.square().sum(-1)], &[("x", &points)], 0)[0];
    let information: f64 = square.iter().zip(&w).map(|(s, w)| s * w).sum();
    assert!(within_ulps(information, 1.89, 32.0), "{information}");
    assert_eq!(law.fisher_information().map(|i| within_ulps(i, 1.89, 2.0)), Some(true));
    // The score printed in docs/math §4.1: ∂₀ = −x₀/4 + 0.4x₀r, ∂₁ = −r.
    let gradient = &values(&[gradient], &[("x", &points)], 0)[0];
    for (g, x) in gradient.chunks(2).zip(points.chunks(2)) {
        let r = x[1] - 0.2 * (x[0] * x[0] - 4.0);
        assert!(within_ulps(g[0], 0.25 * x[0] - 0.4 * x[0] * r, 32.0) && within_ulps(g[1], r, 32.0));
    }
}

#[test]
fn fact_41_mixtures_on_the_circle_and_the_sphere_have_their_constants() {
    let circle = Sphere(1).grid(5000, 0.0).unwrap();
    let (mass, information, entropy, log_prob) = averages(&toy::circle(), &Sphere(1), &circle);
    assert!(within_ulps(mass, 1.0, 64.0));
    assert!(within_digits(information, 1.0191606316, 10) && within_digits(entropy, 1.6173283757, 10));
    let most = log_prob.iter().copied().fold(f64::MIN, f64::max).exp();
    let least = log_prob.iter().copied().fold(f64::MAX, f64::min).exp();
    // A grid of 5000 angles misses an extremum by less than (π/5000)²/2 of the curvature, which is below 3.
    let miss = 3.0 * (std::f64::consts::PI / 5000.0).powi(2);
    assert!((most - 0.3622967824).abs() <= miss && (least - 0.0210306926).abs() <= miss, "{most} {least}");

    let (mass, information, entropy, log_prob) = averages(&toy::circle_as_printed(), &Sphere(1), &circle);
    assert!(within_ulps(mass, 1.0, 64.0));
    assert!(within_digits(information, 0.0116735490, 10) && within_digits(entropy, 1.8320878295, 10));
    assert!(log_prob.iter().all(|l| (0.136455..0.185035).contains(&l.exp())));

    let (mass, information, entropy, _) = averages(&toy::sphere(), &Sphere(2), &Sphere(2).grid(100, 0.0).unwrap());
    assert!(within_ulps(mass, 1.0, 256.0));
    // The printed constants are those of single-precision weights that add up to 1 + 2⁻²⁷: −Σw·(log p + log Σw) p.
    let total = 1.0 + 2f64.powi(-27);
    assert!(within_digits(information * total, 5.1608761045, 10), "{information}");
    assert!(within_digits((entropy - total.ln()) * total, 1.9446549459, 9), "{entropy}");
    let at = Grid { points: vec![0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0], weights: vec![1.0; 3] };
    let (.., log_prob) = averages(&toy::sphere(), &Sphere(2), &at);
    for (got, printed) in log_prob.iter().zip([-3.6116216504, -2.2379639120, -4.5506024330]) {
        assert!(within_digits(got + total.ln(), printed, 10), "{got}, not {printed}");
    }
}

/// m, κ, A, −log C, KL, dKL/dκ.
const TABLE: [(usize, [f64; 5]); 10] = [
    (2, [2.0, 0.6977746580, 2.66187061, 0.57155577, 0.32844640]),
    (3, [2.0, 0.5373147207, 3.12624444, 0.47940925, 0.34795634]),
    (3, [10.0, 0.9000000041, 9.53529197, 1.99573232, 0.09999992]),
    (9, [1.0, 0.1100076009, 3.44597322, 0.05472948, 0.10783752]),
    (9, [10.0, 0.6644859669, 7.51567937, 2.51987540, 0.26869626]),
    (9, [50.0, 0.9224463810, 41.58224247, 7.93077168, 0.07506266]),
    (33, [10.0, 0.2803943575, -8.24074463, 1.34812398, 0.24117060]),
    (33, [50.0, 0.7278001781, 14.40898400, 12.28446068, 0.22573934]),
    (33, [200.0, 0.9230105360, 144.03175165, 30.87379134, 0.07397292]),
    (65, [10.0, 0.1504629514, -41.16366545, 0.74397802, 0.14398012]),
];

#[test]
fn fact_42_the_table_of_von_mises_fisher_and_its_derivative() {
    for (m, [kappa, a, minus_log_c, kl, slope]) in TABLE {
        assert!(within_digits(mean_resultant(m, kappa), a, 10));
        assert!(within_digits(-log_vmf_constant(m, kappa), minus_log_c, 8));
        assert!(within_digits(vmf_divergence(m, kappa), kl, 8));
        assert!(within_digits(vmf_divergence_slope(m, kappa), slope, 8));
        // dKL/dκ = κA′ by differences of two steps: the error is that of the larger one over three, and rounding.
        let difference = |h: f64| (vmf_divergence(m, kappa + h) - vmf_divergence(m, kappa - h)) / (2.0 * h);
        let (near, far) = (difference(1e-4 * kappa), difference(2e-4 * kappa));
        let rounding = 64.0 * f64::EPSILON * vmf_divergence(m, kappa) / (1e-4 * kappa);
        let error = (near - vmf_divergence_slope(m, kappa)).abs();
        assert!(error <= (far - near).abs() + rounding, "m = {m}, κ = {kappa}: {error}");
    }
    for (m, area) in
        [(2, 1.8378770664), (3, 2.5310242470), (9, 3.3906950960), (33, -9.6965642180), (65, -41.9243169429)]
    {
        assert!(within_digits(log_sphere_area(m), area, 10));
    }
}

#[test]
fn fact_43_the_envelope_of_the_sampler_keeps_its_identities_at_any_concentration() {
    for m in [2, 3, 9, 33, 1000] {
        for kappa in [1e-8, 1.0, 11.0, 500.0, 1e6] {
            let n = m as f64 - 1.0;
            let (a, b) = Envelope::Exact.constants(m, kappa);
            // a(1−b) = κ loses digits in 1−b where b is close to 1.
            assert!((a * (1.0 - b) - kappa).abs() <= 8.0 * f64::EPSILON * (a + kappa), "m = {m}, κ = {kappa}");
            assert!(within_ulps(4.0 * a * b / (1.0 + b) / n, 1.0, 8.0), "m = {m}, κ = {kappa}");
        }
        let (a, b) = Envelope::Official.constants(m, 11.0);
        assert!((a * (1.0 - b) - 11.0).abs() > 1e-4, "the official envelope breaks the identity");
    }
}

/// E w and the acceptance rate of a sampler, by quadrature over its proposals.
fn mean_of_proposals(sampler: Wood, kappa: f64) -> (f64, f64) {
    let m = sampler.coordinates;
    // e = sin²(ϑ/2) with density ∝ sin^{m−2} ϑ: smooth and periodic, whatever m.
    let (angles, _) = quadrature::midpoint(0.0, std::f64::consts::PI, 4000);
    let weights: Vec<f64> = angles.iter().map(|t| t.sin().powi(m as i32 - 2)).collect();
    let (e, rest): (Vec<f64>, Vec<f64>) =
        angles.iter().map(|t| ((0.5 * t).sin().powi(2), (0.5 * t).cos().powi(2))).unzip();
    let g = Graph::new();
    let inputs = (g.input_rows("e", e.len(), []), g.input_rows("rest", e.len(), []));
    let (fall, log_accept) = sampler.propose(g.scalar(kappa), inputs);
    let out = values(&[fall, log_accept.min(0.0).exp()], &[("e", &e), ("rest", &rest)], 0);
    let sum = |f: &dyn Fn(usize) -> f64| (0..e.len()).map(|i| weights[i] * out[1][i] * f(i)).sum::<f64>();
    (1.0 - sum(&|i| out[0][i]) / sum(&|_| 1.0), sum(&|_| 1.0) / weights.iter().sum::<f64>())
}

#[test]
fn fact_44_the_exact_sampler_has_mean_a_and_the_known_acceptance_rates() {
    for (m, kappa) in [(2, 2.0), (9, 10.0), (9, 50.0), (33, 11.0), (33, 50.0), (65, 10.0), (9, 0.0)] {
        let (mean, rate) = mean_of_proposals(Wood::new(m, &[kappa]), kappa);
        assert!(within_ulps(mean, mean_resultant(m, kappa), 1e4), "m = {m}, κ = {kappa}: {mean}");
        assert!(within_ulps(rate, acceptance(m, kappa), 1e4), "m = {m}, κ = {kappa}: {rate}");
    }
    for (m, kappa, printed) in [
        (9, 1.0, 0.9933),
        (9, 10.0, 0.8248),
        (9, 50.0, 0.7274),
        (33, 1.0, 0.9995),
        (33, 10.0, 0.9619),
        (33, 50.0, 0.8065),
    ] {
        assert!(within_digits(acceptance(m, kappa), printed, 4), "{}", acceptance(m, kappa));
    }
    // By chance, and with a twin whose concentration is a tenth too large.
    for (m, kappa, printed) in [(9, 10.0, 0.664486), (33, 50.0, 0.727800), (2, 2.0, 0.6977747), (3, 2.0, 0.5373147)] {
        assert!(within_digits(mean_resultant(m, kappa), printed, 6));
        let first: Vec<f64> = (0..m).map(|i| if i == 0 { 1.0 } else { 0.0 }).collect();
        let cosines = |kappa: f64| -> Vec<f64> {
            let points = points(&VonMisesFisher::new(&first, kappa), 100_000, 1).unwrap();
            points.chunks(m).map(|z| z[0]).collect()
        };
        assert!(within_sigma(&format!("E w, m = {m}"), &cosines(kappa), mean_resultant(m, kappa), 4.0));
        assert!(!within_sigma("with 1.1 κ", &cosines(1.1 * kappa), mean_resultant(m, kappa), 4.0));
        let squares: Vec<f64> = cosines(kappa).iter().map(|w| w * w).collect();
        let second = mean_resultant_slope(m, kappa) + mean_resultant(m, kappa).powi(2);
        assert!(within_sigma("E w²", &squares, second, 4.0));
    }
}

#[test]
fn fact_45_the_official_envelope_moves_the_mean() {
    let official = |m| Wood { envelope: Envelope::Official, ..Wood::any(m) };
    for (m, kappa, printed, digits) in [
        (33, 11.0, 0.153219, 6),
        (33, 15.0, 0.2959, 4),
        (33, 20.0, 0.4178, 4),
        (33, 50.0, 0.7216, 4),
        (33, 100.0, 0.85178, 5),
        (9, 11.0, 0.6843, 4),
        (9, 20.0, 0.8153, 4),
    ] {
        let (mean, _) = mean_of_proposals(official(m), kappa);
        assert!(within_digits(mean, printed, digits), "m = {m}, κ = {kappa}: {mean}, not {printed}");
    }
    assert!(within_digits(mean_resultant(33, 11.0), 0.304023, 6));
    // Below κ = 10 the two agree; the switch reaches the samples.
    assert!(within_ulps(mean_of_proposals(official(33), 9.9).0, mean_resultant(33, 9.9), 1e4));
    let first: Vec<f64> = (0..33).map(|i| if i == 0 { 1.0 } else { 0.0 }).collect();
    let law = VonMisesFisher::new(&first, 11.0).replicating_the_official_sampler();
    let cosines: Vec<f64> = points(&law, 50_000, 2).unwrap().chunks(33).map(|z| z[0]).collect();
    assert!(within_sigma("official E w", &cosines, 0.153219, 4.0));
    assert!(!within_sigma("against the truth", &cosines, mean_resultant(33, 11.0), 4.0));
}

#[test]
fn fact_46_the_continued_fraction_of_a_has_converged() {
    let fraction = |m: usize, kappa: f64, levels: usize| {
        (0..levels).rev().fold(0.0, |tail, k| 1.0 / ((m + 2 * k) as f64 / kappa + tail))
    };
    for (m, [kappa, ..]) in TABLE {
        let (all, more) = (fraction(m, kappa, 400), fraction(m, kappa, 800));
        assert!((all - more).abs() <= 3e-16, "m = {m}, κ = {kappa}");
        assert!(within_ulps(mean_resultant(m, kappa), all, 2.0), "m = {m}, κ = {kappa}");
    }
}

#[test]
fn samplers_for_unknown_concentrations_are_right_row_by_row() {
    // κ differs from row to row, as in an encoder.
    for m in [2, 5, 17] {
        let (rows, kappas) = (60_000, [0.5, 7.0, 90.0]);
        let g = Graph::new();
        let mean = g.input_rows("mean", rows, [m]);
        let kappa = g.input_rows("kappa", rows, []);
        let z = Wood::any(m).sample(&g, rows, mean, kappa, 3);
        let directions: Vec<f64> = (0..rows * m).map(|i| if i % m == i / m % m { -1.0 } else { 0.0 }).collect();
        let concentrations: Vec<f64> = (0..rows).map(|i| kappas[i % 3]).collect();
        let out = values(&[z.dot(mean), z.square().sum(-1)], &[("mean", &directions), ("kappa", &concentrations)], 4);
        assert!(out[1].iter().all(|s| within_ulps(*s, 1.0, 16.0)));
        for (k, &kappa) in kappas.iter().enumerate() {
            let own: Vec<f64> = out[0].iter().skip(k).step_by(3).copied().collect();
            assert!(within_sigma(&format!("m = {m}, κ = {kappa}"), &own, mean_resultant(m, kappa), 4.0));
            assert!(!within_sigma("with 1.5 κ", &own, mean_resultant(m, 1.5 * kappa), 4.0));
        }
    }
}

/// θ_k = 0.6 sin(1.3k + 0.5) in the order W1 (rows are outputs), b1, W2, b2, W3, b3.
fn golden_state(d: usize) -> State<f64> {
    let mut k = 0;
    let mut next = || {
        k += 1;
        0.6 * (1.3 * (k - 1) as f64 + 0.5).sin()
    };
    let mut state = State::new(1);
    for (layer, [inputs, outputs]) in [[d, 3], [3, 3], [3, d]].into_iter().enumerate() {
        let rows: Vec<f64> = (0..inputs * outputs).map(|_| next()).collect();
        let transposed: Vec<f64> = (0..inputs * outputs).map(|i| rows[i % outputs * inputs + i / outputs]).collect();
        state.set(&format!("e/w{layer}"), &transposed, transposed.len());
        let bias: Vec<f64> = (0..outputs).map(|_| next()).collect();
        state.set(&format!("e/b{layer}"), &bias, outputs);
    }
    state
}

#[test]
fn golden_network_on_the_plane() {
    let energy = Mlp::new("e", Features::of_point(2), &[3, 3], Activation::Tanh);
    let mut state = golden_state(2);
    assert!(within_ulps(state.get("e/w0").unwrap()[0], 0.2876553231625218, 2.0));
    assert!(within_ulps(state.get("e/b2").unwrap()[1], -0.43004221389639447, 2.0));
    let count: usize = energy.parameters().iter().map(|p| p.dims.iter().product::<usize>()).sum();
    assert_eq!(count, 29);
    let g = Graph::new();
    let x = g.input_rows("x", 1, [2]);
    let e = energy.energy(x);
    let first = grad(e, &[x])[0];
    let hessian = [0, 1].map(|i| grad(first.at(-1, i), &[x])[0]);
    let along = g.input_rows("v", 1, [2]);
    let directional = jvp(&[e], &[(x, along)])[0];
    let outputs = [e, first, hessian[0], hessian[1], directional];
    let mut program = g.compile::<f64>(&outputs, &[], &Options { threads: 1, ..Options::default() });
    program.run(&mut state, &[("x", &[0.3, -0.7]), ("v", &[1.0, 2.0])], Clock { seed: 0, step: 0 });
    let expected: [&[f64]; 5] = [
        &[0.028167510357114567],
        &[-1.0396727762316162, -0.5831562220038785],
        &[-0.05034581678458985, -0.16830579032075885],
        &[-0.16830579032075885, 0.09374302771938063],
        &[-2.2059852202393735],
    ];
    for (k, expected) in expected.iter().enumerate() {
        for (got, expected) in program.output(k).iter().zip(*expected) {
            assert!(within_ulps(*got, *expected, 8.0), "output {k}: {got}, not {expected}");
        }
    }
}

#[test]
fn golden_network_on_the_sphere() {
    let energy = Mlp::new("e", Features::of_point(3), &[3, 3], Activation::Tanh);
    let mut state = golden_state(3);
    let g = Graph::new();
    let y = g.input_rows("y", 1, [3]);
    let e = energy.energy(y);
    let mut program = g.compile::<f64>(&[e, grad(e, &[y])[0]], &[], &Options { threads: 1, ..Options::default() });
    program.run(&mut state, &[("y", &[0.36, 0.48, -0.8])], Clock { seed: 0, step: 0 });
    assert!(within_ulps(program.output(0)[0], -0.6233549652807626, 8.0));
    let expected = [-0.8592135443611326, 0.20755706054493767, 0.8099348437092904];
    assert!(program.output(1).iter().zip(expected).all(|(a, b)| within_ulps(*a, b, 8.0)));
}
