//! What pulls codes: gradients of known divergences, the critic's losses by hand, and MMD on codes.

use minvel::Manifold;
use minvel::energy::von_mises_fisher::{Reparameterisation, VmfPosterior};
use minvel::energy::{Conditional, Mlp};
use minvel::flow::Langevin;
use minvel::manifold::{Euclidean, Sphere};
use minvel::matching::{Adversarial, Discrepancy, Matching, Velocity};
use minvel::network::{Activation, Features};
use minvel::objective::MinimumVelocity;
use minvel::special::vmf_divergence_slope;
use minvel_engine::random::{Draw, Key, Stream};
use minvel_engine::{Clock, Expr, Graph, Options, State, grad};
use minvel_testing::{sum, within_sigma, within_ulps};
use std::sync::Arc;

const SIGMAS: f64 = 4.0;

fn evaluate(outputs: &[Expr], state: &State<f64>, inputs: &[(&str, &[f64])], seed: u64) -> Vec<Vec<f64>> {
    let options = Options { threads: 1, ..Options::default() };
    let mut program = outputs[0].graph().compile::<f64>(outputs, &[], &options);
    program.run(&mut state.clone(), inputs, Clock { seed, step: 0 });
    (0..outputs.len()).map(|k| program.output(k).to_vec()).collect()
}

fn normals(count: usize, stream: u32) -> Vec<f64> {
    Stream::new(Key::new(11, 0), stream).samples(Draw::Normal).take(count).collect()
}

fn flat(n: usize) -> Arc<dyn Manifold> {
    Arc::new(Euclidean(n))
}

/// All signs: the two-point rule in each coordinate, exact for the quadratic integrands here.
const SIGNS: [f64; 8] = [1.0, 1.0, 1.0, -1.0, -1.0, 1.0, -1.0, -1.0];
const MEAN: [f64; 2] = [0.7, -1.2];
const DEVIATION: f64 = 0.6;

/// The gradient of the pull of codes μ + sε in μ and s, for an energy c·|z − μ|²/2s² with μ and s held fixed.
fn slopes_of_normal_codes(conditional: bool, c: f64) -> Vec<f64> {
    let objective = MinimumVelocity::new(Langevin, 1e-3);
    let (w, b) = (c / (2.0 * DEVIATION * DEVIATION), MEAN.map(|m| -c * m / (DEVIATION * DEVIATION)));
    let mut state = State::new(1);
    let matching = if conditional {
        // The image is μ itself: its part of the layer is −cμ/s².
        let energy = Conditional::new("energy", Features::of_point(2), 2, &[], Activation::Tanh);
        let v = -c / (DEVIATION * DEVIATION);
        state.set("energy/w0", &[w, 0.0, 0.0, w, v, 0.0, 0.0, v], 8);
        state.set("energy/b0", &[0.0; 2], 2);
        Velocity::of_each(flat(2), energy, objective, 1.0)
    } else {
        let energy = Mlp::new("energy", Features::of_point(2), &[], Activation::Tanh);
        state.set("energy/w0", &[w, 0.0, 0.0, w], 4);
        state.set("energy/b0", &b, 2);
        Velocity::of_all(flat(2), energy, objective, 1.0)
    };
    state.set("mean", &MEAN, 2);
    state.set("deviation", &[DEVIATION], 1);
    let g = Graph::new();
    let (mean, deviation) = (g.variable("mean", [2]), g.variable("deviation", []));
    let noise = g.input_rows("noise", 4, [2]);
    let images = g.input_rows("images", 4, [2]);
    let pull = matching.pull(mean + deviation * noise, images, 0);
    let slopes = grad(pull, &[mean, deviation]);
    evaluate(&slopes, &state, &[("noise", &SIGNS), ("images", &MEAN.repeat(4))], 0).concat()
}

#[test]
fn velocity_pulls_normal_codes_along_the_gradient_of_their_divergence() {
    // KL(N(μ, s²I) ‖ N(0, I)) has the gradients μ and 2(s − 1/s).
    let exact = [MEAN[0], MEAN[1], 2.0 * (DEVIATION - 1.0 / DEVIATION)];
    for conditional in [false, true] {
        let got = slopes_of_normal_codes(conditional, 1.0);
        println!("{got:?}, exact {exact:?}");
        assert!(got.iter().zip(&exact).all(|(a, b)| within_ulps(*a, *b, 16.0)), "{got:?} against {exact:?}");
        // Twins: an energy that is ten per cent too steep, and one of the other sign.
        for c in [1.1, -1.0] {
            let wrong = slopes_of_normal_codes(conditional, c);
            assert!(!within_ulps(wrong[2], exact[2], 1e6), "{wrong:?}");
        }
    }
}

#[test]
fn velocity_pulls_codes_on_the_sphere_along_the_gradient_of_their_divergence() {
    let (m, kappa, rows) = (9, 10.0, 40_000);
    let sphere: Arc<dyn Manifold> = Arc::new(Sphere(m - 1));
    let scale = (m as f64).sqrt();
    let energy = Mlp::new("energy", Features::of(sphere.clone()).scaled(scale), &[], Activation::Tanh);
    let matching = Velocity::of_all(sphere, energy, MinimumVelocity::new(Langevin, 1e-3), 1.0);
    let mut state = State::new(1);
    // E = −κμ·z with μ the last axis.
    state.set("energy/w0", &vec![0.0; m * m], m * m);
    let mut b = vec![0.0; m];
    b[m - 1] = -kappa / scale;
    state.set("energy/b0", &b, m);
    let slopes = |gradient: Reparameterisation| {
        let g = Graph::new();
        let mut axis = vec![0.0; m];
        axis[m - 1] = 1.0;
        let kappas = g.input_rows("kappa", rows, []);
        let mean = g.table(&axis, [m]).broadcast(&kappas.shape().with_dims([m]));
        let codes = VmfPosterior { coordinates: m, gradient }.sample(mean, kappas, 5);
        let slope = grad(matching.pull(codes, codes, 0), &[kappas])[0];
        let each = evaluate(&[slope], &state, &[("kappa", &vec![kappa; rows])], 1).remove(0);
        each.iter().map(|s| s * rows as f64).collect::<Vec<f64>>()
    };
    let exact = vmf_divergence_slope(m, kappa);
    assert!(within_sigma("dKL/dκ", &slopes(Reparameterisation::Exact), exact, SIGMAS));
    // docs/math §5.2: the official gradient in κ is 0.918 of the true one here.
    assert!(!within_sigma("dKL/dκ, official", &slopes(Reparameterisation::Official), exact, SIGMAS));
}

#[test]
fn a_critic_has_the_losses_of_the_paper_at_known_logits() {
    let penalty = 0.01;
    let matching = Adversarial::new(flat(1), &[], Activation::Tanh, penalty);
    let mut state = State::new(1);
    let (w, b) = (1.3, -0.4);
    state.set("critic/w0", &[w], 1);
    state.set("critic/b0", &[b], 1);
    let g = Graph::new();
    let codes = g.input_rows("codes", 6, [1]);
    let (pull, loss) = (matching.pull(codes, codes, 3), matching.loss(codes, codes, 3).unwrap());
    let prior = flat(1).sample_base(&g, 6, 3);
    // The last two are so far out that one probability is 0 but for its floor of 10⁻⁷.
    let points = [0.2, -1.0, 3.0, 0.0, 40.0, -40.0];
    let got = evaluate(&[pull, loss, prior, grad(pull, &[codes])[0]], &state, &[("codes", &points)], 2);
    let logit = |z: &f64| w * z + b;
    let mean = |values: Vec<f64>| sum(&values) / 6.0;
    let sigmoid = |d: f64| 1.0 / (1.0 + (-d).exp());
    let expected = mean(points.iter().map(|z| (-logit(z)).max(0.0) + (-logit(z).abs()).exp().ln_1p()).collect());
    assert!(within_ulps(got[0][0], expected, 16.0), "{} against {expected}", got[0][0]);
    let real = mean(got[2].iter().map(|z| (sigmoid(logit(z)) + 1e-7).ln()).collect());
    let own = mean(points.iter().map(|z| (sigmoid(-logit(z)) + 1e-7).ln()).collect());
    let squares = mean(points.iter().map(|z| logit(z).powi(2)).collect());
    let expected = 2.0 * penalty * squares - real - own;
    assert!(within_ulps(got[1][0], expected, 64.0), "{} against {expected}", got[1][0]);
    // Codes are pulled to where the critic sees the prior, and do not saturate where it is sure that they are not.
    assert!(got[3].iter().all(|slope| *slope <= 0.0));
    assert!(within_ulps(6.0 * got[3][5], -w, 16.0), "{}", got[3][5]);
}

/// MMD² by plain loops with the paper's bandwidth, y being the sample whose own distances set it.
fn discrepancy(x: &[f64], y: &[f64], d: usize) -> f64 {
    let rows = |s: &[f64]| s.chunks(d).map(<[f64]>::to_vec).collect::<Vec<_>>();
    let (x, y) = (rows(x), rows(y));
    let n = x.len();
    let squared = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let all = |a: &[Vec<f64>], b: &[Vec<f64>]| -> Vec<f64> {
        a.iter().flat_map(|a| b.iter().map(move |b| squared(a, b))).collect()
    };
    let largest = |mut distances: Vec<f64>| {
        distances.sort_by(|a, b| b.total_cmp(a));
        distances[(n * n - n) / 2 - 1]
    };
    let width = largest(all(&x, &y)) + largest(all(&y, &y));
    let kernels = |a: &[Vec<f64>], b: &[Vec<f64>]| all(a, b).iter().map(|s| (-0.5 * s / width).exp()).sum::<f64>();
    let within = |a: &[Vec<f64>]| (kernels(a, a) - n as f64) / (n * n - n) as f64;
    within(&x) + within(&y) - 2.0 * kernels(&x, &y) / (n * n) as f64
}

#[test]
fn discrepancy_compares_unscaled_codes_with_as_many_of_the_prior() {
    for latent in [Arc::new(Sphere(3)) as Arc<dyn Manifold>, flat(4)] {
        let matching = Discrepancy { latent: latent.clone(), factor: 100.0 };
        assert!(matching.parameters().is_empty());
        let g = Graph::new();
        let codes = g.input_rows("codes", 12, [4]);
        assert!(matching.loss(codes, codes, 3).is_none());
        let pull = matching.pull(codes, codes, 3);
        let prior = latent.sample_base(&g, 12, 3);
        let points = normals(48, 1);
        let got = evaluate(&[pull, prior], &State::new(1), &[("codes", &points)], 2);
        let expected = 100.0 * discrepancy(&points, &got[1], 4);
        assert!(within_ulps(got[0][0], expected, 1e4), "{latent}: {} against {expected}", got[0][0]);
        let turned = 100.0 * discrepancy(&got[1], &points, 4);
        assert!(!within_ulps(got[0][0], turned, 1e6), "{latent}: the prior sets the bandwidth");
    }
}

#[test]
fn discrepancy_vanishes_on_average_for_codes_of_the_prior_only() {
    let (latent, count) = (flat(2), 24);
    let matching = Discrepancy { latent, factor: 1.0 };
    let runs = |shift: f64| -> Vec<f64> {
        let g = Graph::new();
        let codes = g.input_rows("codes", count, [2]);
        let pull = matching.pull(codes, codes, 3);
        let mut program = g.compile::<f64>(&[pull], &[], &Options { threads: 1, ..Options::default() });
        let mut each = |k: u64| {
            let points: Vec<f64> = normals(2 * count, 10 + k as u32).iter().map(|z| z + shift).collect();
            program.run(&mut State::new(1), &[("codes", &points)], Clock { seed: k, step: 0 });
            program.output(0)[0]
        };
        (0..400).map(&mut each).collect()
    };
    // The bandwidth depends on the samples a little, which is far below the scatter of so few points.
    assert!(within_sigma("codes of the prior", &runs(0.0), 0.0, SIGMAS));
    assert!(!within_sigma("codes beside it", &runs(0.3), 0.0, SIGMAS));
}
