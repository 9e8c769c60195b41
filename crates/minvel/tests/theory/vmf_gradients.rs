//! The von Mises–Fisher law with learnt concentrations: KL, samples and their gradients as expressions.

use minvel::energy::von_mises_fisher::{Reparameterisation, Resultant, VmfPosterior, angle_slope, divergence};
use minvel::manifold::quadrature;
use minvel::special::*;
use minvel_engine::math::Real;
use minvel_engine::{Clock, Expr, Graph, Options, State, grad};
use minvel_testing::{estimate, within_sigma};
use std::f64::consts::PI;

const COORDINATES: [usize; 7] = [2, 3, 4, 9, 33, 129, 1000];
const CONCENTRATIONS: [f64; 13] = [1e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4];

/// The largest relative errors that a precision may make.
trait Precision: Real {
    /// Of KL, its slope and A.
    const CLOSED: f64;
    /// Of dθ/dκ.
    const SLOPE: f64;
}

impl Precision for f64 {
    const CLOSED: f64 = 1e-6;
    const SLOPE: f64 = 1e-6;
}

impl Precision for f32 {
    const CLOSED: f64 = 2e-5;
    const SLOPE: f64 = 3e-5;
}

fn rounded<T: Real>(values: &[f64]) -> Vec<f64> {
    values.iter().map(|&x| T::from_f64(x).to_f64()).collect()
}

/// Values of expressions in a precision.
fn evaluate<T: Real>(outputs: &[Expr], inputs: &[(&str, &[f64])], seed: u64) -> Vec<Vec<f64>> {
    let mut program = outputs[0].graph().compile::<T>(outputs, &[], &Options { threads: 1, ..Options::default() });
    let own: Vec<(&str, Vec<T>)> =
        inputs.iter().map(|(name, values)| (*name, values.iter().map(|&x| T::from_f64(x)).collect())).collect();
    let own: Vec<(&str, &[T])> = own.iter().map(|(name, values)| (*name, &values[..])).collect();
    program.run(&mut State::new(1), &own, Clock { seed, step: 0 });
    (0..outputs.len()).map(|k| program.output(k).iter().map(|x| x.to_f64()).collect()).collect()
}

fn check_closed_forms<T: Precision>() {
    let kappas = rounded::<T>(&CONCENTRATIONS);
    let mut worst = [0.0f64; 5];
    for m in COORDINATES {
        let g = Graph::new();
        let kappa = g.input_rows("kappa", kappas.len(), []);
        let at = Resultant::new(m, kappa);
        let kl = divergence(m, kappa);
        let outputs = [kl, grad(kl, &[kappa])[0], at.mean, at.complement, at.slope];
        let out = evaluate::<T>(&outputs, &[("kappa", &kappas)], 0);
        for (i, &k) in kappas.iter().enumerate() {
            let complement = bessel_i_ratio_complement(0.5 * m as f64 - 1.0, k);
            let slope = vmf_divergence_slope(m, k);
            let expected = [vmf_divergence(m, k), slope, mean_resultant(m, k), complement, mean_resultant_slope(m, k)];
            for (j, e) in expected.iter().enumerate() {
                let error = (out[j][i] / e - 1.0).abs();
                assert!(error <= T::CLOSED, "m = {m}, κ = {k}, value {j}: {} instead of {e}", out[j][i]);
                worst[j] = worst[j].max(error);
            }
        }
    }
    println!("relative errors of KL, dKL/dκ, A, 1 − A, A′: {worst:?}");
}

#[test]
fn fact_42_kl_and_its_slope_hold_in_double_precision() {
    check_closed_forms::<f64>();
}

#[test]
fn fact_42_kl_and_its_slope_hold_in_single_precision() {
    check_closed_forms::<f32>();
}

#[test]
fn fact_42_the_printed_table_comes_out_of_the_expressions() {
    // m, κ, KL, dKL/dκ.
    for (m, kappa, kl, slope) in [
        (2, 2.0, 0.57155577, 0.32844640),
        (3, 2.0, 0.47940925, 0.34795634),
        (3, 10.0, 1.99573232, 0.09999992),
        (9, 1.0, 0.05472948, 0.10783752),
        (9, 10.0, 2.51987540, 0.26869626),
        (9, 50.0, 7.93077168, 0.07506266),
        (33, 10.0, 1.34812398, 0.24117060),
        (33, 50.0, 12.28446068, 0.22573934),
        (33, 200.0, 30.87379134, 0.07397292),
        (65, 10.0, 0.74397802, 0.14398012),
    ] {
        let g = Graph::new();
        let k = g.input_rows("kappa", 1, []);
        let value = divergence(m, k);
        let outputs = [value, grad(value, &[k])[0]];
        let double = evaluate::<f64>(&outputs, &[("kappa", &[kappa])], 0);
        let single = evaluate::<f32>(&outputs, &[("kappa", &[kappa])], 0);
        for (j, printed) in [kl, slope].into_iter().enumerate() {
            assert!((double[j][0] / printed - 1.0).abs() <= f64::CLOSED, "m = {m}, κ = {kappa}: {}", double[j][0]);
            assert!((single[j][0] / printed - 1.0).abs() <= f32::CLOSED, "m = {m}, κ = {kappa}: {}", single[j][0]);
        }
    }
}

/// log f(θ) up to a constant, which keeps its digits near 0.
fn log_density(m: usize, kappa: f64, theta: f64) -> f64 {
    let power = if m == 2 { 0.0 } else { (m as f64 - 2.0) * theta.sin().ln() };
    power - 2.0 * kappa * (0.5 * theta).sin().powi(2)
}

/// Angles at which the density is at least e^{−20} of its largest value.
fn angles(m: usize, kappa: f64) -> Vec<f64> {
    let (middle, width) = (mean_resultant(m, kappa).acos(), (kappa + m as f64 - 2.0).sqrt().recip().min(1.0));
    let (from, to) = ((middle - 9.0 * width).max(0.0), (middle + 9.0 * width).min(PI));
    let (all, _) = quadrature::midpoint(from, to, 50);
    let top = all.iter().map(|&t| log_density(m, kappa, t)).fold(f64::MIN, f64::max);
    all.into_iter().filter(|&t| log_density(m, kappa, t) > top - 20.0).collect()
}

/// −∂_κF/f at θ: ∫ (A − cos t) f(t)/f(θ) dt from θ outwards in steps, until nothing is added.
fn reference_slope(m: usize, kappa: f64, theta: f64) -> f64 {
    let complement = bessel_i_ratio_complement(0.5 * m as f64 - 1.0, kappa);
    let outwards = if 2.0 * (0.5 * theta).sin().powi(2) <= complement { -1.0 } else { 1.0 };
    let end = if outwards < 0.0 { 0.0 } else { PI };
    let step = 0.25 * (kappa + m as f64).sqrt().recip();
    let (mut from, mut total) = (theta, 0.0);
    while from != end {
        let to = if (end - from).abs() <= step { end } else { from + outwards * step };
        let (t, w) = quadrature::interval(from.min(to), from.max(to), 20);
        let term = |t: f64| {
            let ratio = (log_density(m, kappa, t) - log_density(m, kappa, theta)).exp();
            (2.0 * (0.5 * t).sin().powi(2) - complement).abs() * ratio
        };
        let part: f64 = t.iter().zip(&w).map(|(&t, w)| w * term(t)).sum();
        total += part;
        from = to;
        if part < 1e-14 * total {
            break;
        }
    }
    -total
}

fn check_slopes<T: Precision>() {
    let mut worst = (0.0, 0, 0.0, 0.0);
    let kappas: Vec<f64> = (0..=42).map(|i| 10f64.powf(f64::from(i) / 6.0 - 3.0)).collect();
    for m in [2, 3, 4, 5, 6, 9, 17, 33, 65, 129, 400, 1000] {
        for kappa in rounded::<T>(&kappas) {
            let falls: Vec<f64> = angles(m, kappa).iter().map(|t| 2.0 * (0.5 * t).sin().powi(2)).collect();
            let falls = rounded::<T>(&falls);
            let g = Graph::new();
            let fall = g.input_rows("fall", falls.len(), []);
            let slope = angle_slope(m, fall.like(kappa), fall);
            let got = &evaluate::<T>(&[slope], &[("fall", &falls)], 0)[0];
            for (got, fall) in got.iter().zip(&falls) {
                let theta = 2.0 * fall.sqrt().atan2((2.0 - fall).sqrt());
                let error = (got / reference_slope(m, kappa, theta) - 1.0).abs();
                assert!(error <= T::SLOPE, "m = {m}, κ = {kappa}, θ = {theta}: {got}, off by {error}");
                if error > worst.0 {
                    worst = (error, m, kappa, theta);
                }
            }
        }
    }
    println!("largest relative error of dθ/dκ: {worst:?}");
}

#[test]
fn the_implicit_slope_agrees_with_quadrature_over_the_whole_range_in_double_precision() {
    check_slopes::<f64>();
}

#[test]
fn the_implicit_slope_agrees_with_quadrature_over_the_whole_range_in_single_precision() {
    check_slopes::<f32>();
}

#[test]
fn the_implicit_slope_on_the_sphere_is_that_of_the_inverse_distribution_function() {
    // m = 3: w = 1 + log(u + (1−u)e^{−2κ})/κ, so that κ dw/dκ = (1 − w) − 2(1−u)e^{−2κ}/(u + (1−u)e^{−2κ}).
    for kappa in [0.1f64, 2.0, 40.0] {
        let us: Vec<f64> = (1..50).map(|i| f64::from(i) / 50.0).collect();
        let mass = |u: f64| u + (1.0 - u) * (-2.0 * kappa).exp();
        let falls: Vec<f64> = us.iter().map(|&u| -mass(u).ln() / kappa).collect();
        let g = Graph::new();
        let fall = g.input_rows("fall", falls.len(), []);
        let got = &evaluate::<f64>(&[angle_slope(3, fall.like(kappa), fall)], &[("fall", &falls)], 0)[0];
        for ((&u, fall), got) in us.iter().zip(&falls).zip(got) {
            let expected = (fall - 2.0 * (1.0 - u) * (-2.0 * kappa).exp() / mass(u)) / kappa;
            let got = -got * (fall * (2.0 - fall)).sqrt();
            assert!((got / expected - 1.0).abs() <= f64::SLOPE, "κ = {kappa}, u = {u}: {got}, not {expected}");
        }
    }
}

const ROWS: usize = 60_000;

/// Rows of dw/dκ, w = μ·z.
fn slopes_of_the_cosine(m: usize, kappa: f64, gradient: Reparameterisation) -> Vec<f64> {
    let g = Graph::new();
    let k = g.input_rows("kappa", ROWS, []);
    let mean = g.input_rows("mean", ROWS, [m]);
    let z = VmfPosterior { coordinates: m, gradient }.sample(mean, k, 1);
    let first: Vec<f64> = (0..ROWS * m).map(|i| if i % m == 0 { 1.0 } else { 0.0 }).collect();
    let outputs = [grad(z.at(-1, 0), &[k])[0]];
    evaluate::<f32>(&outputs, &[("kappa", &[kappa; ROWS]), ("mean", &first)], 5).remove(0)
}

#[test]
fn the_gradient_of_the_mean_cosine_in_the_concentration_has_no_bias() {
    for (m, kappas) in
        [(2, [0.3, 2.0, 50.0]), (3, [0.3, 10.0, 200.0]), (9, [2.0, 10.0, 50.0]), (33, [2.0, 10.0, 500.0])]
    {
        for kappa in kappas {
            let slopes = slopes_of_the_cosine(m, kappa, Reparameterisation::Exact);
            let truth = mean_resultant_slope(m, kappa);
            assert!(within_sigma(&format!("dE w/dκ, m = {m}, κ = {kappa}"), &slopes, truth, 4.0));
            assert!(!within_sigma("with a tenth more", &slopes, 1.1 * truth, 4.0));
        }
    }
    let slopes = slopes_of_the_cosine(129, 40.0, Reparameterisation::Exact);
    assert!(within_sigma("dE w/dκ, m = 129", &slopes, mean_resultant_slope(129, 40.0), 4.0));
}

#[test]
fn the_official_gradient_is_off_by_the_known_ratios() {
    // Ratios of docs/math §5.2, printed with three digits; below κ = 10 its envelope is the exact one.
    for (m, kappa, ratio) in [(9, 2.0, 0.966), (9, 10.0, 0.918), (2, 2.0, 0.516), (2, 10.0, 0.894)] {
        let slopes = slopes_of_the_cosine(m, kappa, Reparameterisation::Official);
        let truth = mean_resultant_slope(m, kappa);
        let (mean, error) = estimate(&slopes);
        println!("m = {m}, κ = {kappa}: ratio {} ± {}, printed {ratio}", mean / truth, error / truth);
        assert!((mean / truth - ratio).abs() <= 4.0 * error / truth + 0.0005);
        assert!(!within_sigma("against the truth", &slopes, truth, 4.0));
    }
}

#[test]
fn gradients_of_a_second_moment_have_no_bias_in_concentration_and_mean() {
    // E(a·z)² = c²q + (1−c²)(1−q)/(m−1) with c = a·μ, |a| = 1 and q = E w² = A′ + A².
    for (m, kappa, c) in [(2, 3.0, 0.6), (9, 10.0, 0.8), (33, 30.0, 0.6)] {
        let n = m as f64 - 1.0;
        let square = |k: f64| mean_resultant_slope(m, k) + mean_resultant(m, k).powi(2);
        let h = 1e-4 * kappa;
        let in_kappa = (square(kappa + h) - square(kappa - h)) / (2.0 * h) * (c * c - (1.0 - c * c) / n);
        let s = f64::sqrt(1.0 - c * c);
        // Towards a, along the sphere: dc = s.
        let in_mean = 2.0 * c * s * (square(kappa) - (1.0 - square(kappa)) / n);

        let g = Graph::new();
        let k = g.input_rows("kappa", ROWS, []);
        let raw = g.input_rows("raw", ROWS, [m]);
        let mean = raw * raw.square().sum(-1).rsqrt().expand(-1);
        let z = VmfPosterior { coordinates: m, gradient: Reparameterisation::Exact }.sample(mean, k, 1);
        // a = e₀, μ = c e₀ + s e₁, towards a: s e₀ − c e₁.
        let slopes = grad(z.at(-1, 0).square(), &[k, raw]);
        let towards = s * slopes[1].at(-1, 0) - c * slopes[1].at(-1, 1);
        let raws: Vec<f64> = (0..ROWS * m).map(|i| [c, s, 0.0][(i % m).min(2)]).collect();
        let out = evaluate::<f32>(&[slopes[0], towards], &[("kappa", &[kappa; ROWS]), ("raw", &raws)], 7);
        assert!(within_sigma(&format!("in κ, m = {m}"), &out[0], in_kappa, 4.0));
        assert!(within_sigma(&format!("in μ, m = {m}"), &out[1], in_mean, 4.0));
        assert!(!within_sigma("in κ, flipped", &out[0], -in_kappa, 4.0));
        assert!(!within_sigma("in μ, a tenth more", &out[1], 1.1 * in_mean, 4.0));
    }
}

#[test]
fn samples_and_all_gradients_are_finite_in_single_precision() {
    for gradient in [Reparameterisation::Exact, Reparameterisation::Official] {
        for m in [2, 3, 9, 33, 129, 1000] {
            let rows = 2600;
            let g = Graph::new();
            let k = g.input_rows("kappa", rows, []);
            let mean = g.input_rows("mean", rows, [m]);
            let posterior = VmfPosterior { coordinates: m, gradient };
            let z = posterior.sample(mean, k, 1);
            let loss = z.at(-1, 0).square() + posterior.divergence(k);
            let slopes = grad(loss, &[k, mean]);
            let kappas: Vec<f64> = (0..rows).map(|i| CONCENTRATIONS[i % 13]).collect();
            let means: Vec<f64> = (0..rows * m).map(|i| if i % m == i / m % m { 1.0 } else { 0.0 }).collect();
            let outputs = [z.square().sum(-1), loss, slopes[0], slopes[1]];
            let out = evaluate::<f32>(&outputs, &[("kappa", &kappas), ("mean", &means)], 9);
            assert!(out.iter().flatten().all(|x| x.is_finite()), "m = {m}, {gradient:?}");
            let ulps = 16.0 * f64::from(f32::EPSILON);
            assert!(
                out[0].iter().all(|length| (length - 1.0).abs() <= ulps),
                "m = {m}, {gradient:?}: not unit vectors"
            );
        }
    }
}

#[test]
fn extreme_points_have_finite_slopes() {
    for m in [2, 3, 9, 1000] {
        let g = Graph::new();
        let fall = g.input_rows("fall", 6, []);
        let slopes = [1e-3, 1.0, 1e4].map(|kappa| angle_slope(m, fall.like(kappa), fall));
        let ends = [0.0, 1e-30, 1e-7, 1.0, 2.0 - 1.2e-7, 2.0];
        for (j, out) in evaluate::<f32>(&slopes, &[("fall", &ends)], 0).iter().enumerate() {
            // At w = −1 and κ = 10⁴ no f32 holds the ratio of what is left to the density; no sample lies there.
            let inside = if j == 2 { 3 } else { 6 };
            assert!(out[..inside].iter().all(|x| x.is_finite() && *x <= 0.0), "m = {m}: {out:?}");
        }
    }
}
