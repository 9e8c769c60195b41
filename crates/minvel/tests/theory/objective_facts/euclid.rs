//! F1–F16 and F29–F30: flat space, mostly p = N(0, s²) and E = ax²/2.

use crate::support::expectation::*;
use minvel::flow::{Displacement, EnergyOf, Flow, Langevin, Noise, Pace, Particles};
use minvel::objective::{
    Contrastive, Denoising, MinimumVelocity, Objective, ProbabilityFlow, Reduction, ScoreMatching, Sliced,
};
use minvel_engine::{Expr, Graph, grad};
use minvel_testing::{gauss_hermite, tensor_rule, within_order};

/// Exact for the squares of all losses of quadratic energies.
fn gaussian(s: f64) -> Rule {
    Rule::product(&normal(12, 1, s), &normal(12, 1, 1.0))
}

const CASES: [(f64, f64); 3] = [(1.0, 1.0), (1.5, 0.8), (0.5, 1.5)];
const STEPS: [f64; 3] = [0.1, 0.01, 0.001];
const REDUCTIONS: [Reduction; 3] = [Reduction::None, Reduction::ControlVariate, Reduction::Antithetic];

fn velocity(step: f64, reduction: Reduction) -> MinimumVelocity {
    MinimumVelocity { reduction, ..MinimumVelocity::new(Langevin, step) }
}

/// E L̂ of MVL at finite ε, docs/math §1.4.
fn mvl_mean(a: f64, s: f64, step: f64) -> f64 {
    a * a * s * s * (1.0 - step * a / 4.0) - 2.0 * a
}

/// The part of its variance that is neither odd in z nor of the first order: 2a⁴s⁴(1−εa/4)² + 8a².
fn mvl_even_variance(a: f64, s: f64, step: f64) -> f64 {
    2.0 * (a * s).powi(4) * (1.0 - step * a / 4.0).powi(2) + 8.0 * a * a
}

#[test]
fn fact_01_score_matching_is_the_fisher_divergence_up_to_a_constant() {
    for (a, s) in CASES {
        let j = gaussian(s).mean(&ScoreMatching::new(), &quadratic, a);
        assert_fact("J", j, 0.5 * a * a * s * s - a);
        assert_fact("L + I(p)", 2.0 * j + 1.0 / (s * s), (a * s - 1.0 / s).powi(2));
    }
    let s: f64 = 0.8;
    let best = gaussian(s).evaluate(&ScoreMatching::new(), &quadratic, 1.0 / (s * s));
    assert_fact("min L", 2.0 * best.loss.mean, -1.0 / (s * s));
    assert_fact("its slope", best.slope.mean, 0.0);
    assert_digits("L(1.5, 0.8)", 2.0 * gaussian(0.8).mean(&ScoreMatching::new(), &quadratic, 1.5), -1.56, 12);
}

#[test]
fn fact_02_the_mean_of_minimum_velocity_does_not_depend_on_the_reduction() {
    for (a, s) in CASES {
        for step in STEPS {
            for reduction in REDUCTIONS {
                let got = gaussian(s).mean(&velocity(step, reduction), &quadratic, a);
                assert_fact("E L̂", got, mvl_mean(a, s, step));
            }
        }
    }
    assert_digits("ε = 0.1", gaussian(0.8).mean(&velocity(0.1, Reduction::None), &quadratic, 1.5), -1.614, 10);
}

#[test]
fn fact_03_04_05_the_variance_is_bounded_with_a_reduction_only() {
    for (a, s) in CASES {
        for step in STEPS {
            let variance = |reduction| gaussian(s).evaluate(&velocity(step, reduction), &quadratic, a).loss.variance;
            let even = mvl_even_variance(a, s, step);
            let odd = 2.0 * step * a.powi(4) * s * s;
            assert_fact("with control variate", variance(Reduction::ControlVariate), even + odd);
            let first = 2.0 * step * s * s * (a * a - 2.0 * a / step).powi(2);
            assert_fact("plain", variance(Reduction::None), even + first);
            assert_fact("antithetic", variance(Reduction::Antithetic), even);
        }
    }
    let printed = |reduction, a, s, step| gaussian(s).evaluate(&velocity(step, reduction), &quadratic, a).loss.variance;
    assert_digits("F3", printed(Reduction::ControlVariate, 1.0, 1.0, 0.01), 10.0100125, 7);
    assert_digits("F3", printed(Reduction::ControlVariate, 1.5, 0.8, 0.01), 22.18095432, 8);
    for (step, variance) in [(0.1, 82.10125), (0.01, 802.0100125), (0.001, 8002.001000125)] {
        assert_digits("F4", printed(Reduction::None, 1.0, 1.0, step), variance, 7);
    }
}

/// A flow that ignores the temper and targets q, as a sampler would.
#[derive(Debug)]
struct Untempered;

impl Flow for Untempered {
    fn step<'g>(&self, e: EnergyOf<'_, 'g>, x: Particles<'g>, pace: Pace<'g>, z: Noise<'g>) -> Displacement<'g> {
        Langevin.step(e, x, Pace { temper: 1.0, ..pace }, z)
    }
}

#[test]
fn fact_06_without_tempering_the_loss_is_another_one() {
    for (a, s) in CASES {
        for step in STEPS {
            let got = gaussian(s).mean(&MinimumVelocity::new(Untempered, step), &quadratic, a);
            assert_fact("E L̂", got, 2.0 * (a * a * s * s - a) - step * a.powi(3) * s * s);
        }
    }
    // Twin: at the truth a = 1/s² the tempered loss is stationary, this one is not.
    let slope = |objective: &dyn Objective| gaussian(1.0).evaluate(objective, &quadratic, 1.0).slope.mean;
    assert!(slope(&velocity(1e-6, Reduction::ControlVariate)).abs() < 1e-5);
    assert!(slope(&MinimumVelocity::new(Untempered, 1e-6)).abs() > 1.0);
}

#[test]
fn fact_07_finite_steps_move_the_minimum_as_computed() {
    for (s, step) in [(1.0, 0.01), (1.5, 0.03), (0.8, 0.001)] {
        let s2: f64 = s * s;
        let velocity_minimum = (2.0 * s2 - (4.0 * s2 * s2 - 6.0 * step * s2).sqrt()) / (1.5 * step * s2);
        let denoising_minimum = 1.0 / (s2 + step);
        let rule = gaussian(s);
        let check = |objective: &dyn Objective, minimum: f64| {
            let at = |a: f64| rule.evaluate(objective, &quadratic, a);
            assert_fact("slope at the minimum", at(minimum).slope.mean, 0.0);
            let [below, above] = [0.99, 1.01].map(|f| at(f * minimum).loss.mean - at(minimum).loss.mean);
            assert!(below > 0.0 && above > 0.0, "no minimum at {minimum}: {below}, {above}");
        };
        check(&velocity(step, Reduction::ControlVariate), velocity_minimum);
        for reduction in REDUCTIONS {
            check(&Denoising { reduction, ..Denoising::new(step) }, denoising_minimum);
        }
        if s == 1.0 {
            assert_digits("a* of MVL", velocity_minimum, 1.00377839, 8);
            assert_digits("a* of DSM", denoising_minimum, 0.99009901, 8);
        }
    }
}

#[test]
fn fact_08_09_sliced_score_matching_has_the_stated_moments() {
    for (a, s) in CASES {
        let mean = 0.5 * a * a * s * s - a;
        let sliced = gaussian(s).evaluate(&Sliced { reduced: false }, &quadratic, a).loss;
        assert_fact("SSM", sliced.mean, mean);
        let (a2, s2) = (a * a, s * s);
        assert_fact("Var SSM", sliced.variance, 2.0 * a2 * a2 * s2 * s2 - 2.0 * a2 * a * s2 + 2.0 * a2);
        let reduced = gaussian(s).evaluate(&Sliced { reduced: true }, &quadratic, a).loss;
        assert_fact("SSM-VR", reduced.mean, mean);
        assert_fact("Var SSM-VR", reduced.variance, 0.5 * a2 * a2 * s2 * s2 + 2.0 * a2);
        assert_fact("… is a quarter of MVL's", 4.0 * reduced.variance, mvl_even_variance(a, s, 0.0));
    }
    // Rademacher slices see the diagonal of the Hessian exactly: in one dimension this is score matching itself.
    let signs: Law = (vec![-1.0, 1.0], vec![0.5, 0.5]);
    let rule = Rule::product(&normal(12, 1, 0.8), &signs);
    let [sliced, exact] = [&Sliced { reduced: true } as &dyn Objective, &ScoreMatching::new()]
        .map(|objective| rule.evaluate(objective, &quadratic, 1.5).loss);
    assert_fact("Rademacher", sliced.mean, exact.mean);
    assert_fact("Rademacher variance", sliced.variance, exact.variance);
}

#[test]
fn fact_10_11_denoising_has_the_stated_moments() {
    for (a, s) in CASES {
        for step in STEPS {
            let moments =
                |reduction| gaussian(s).evaluate(&Denoising { reduction, ..Denoising::new(step) }, &quadratic, a).loss;
            let plain = moments(Reduction::None);
            let tau = (1.0 - a * step).powi(2) / step + a * a * s * s;
            assert_fact("DSM", plain.mean, tau);
            assert_fact("Var DSM", plain.variance, 2.0 * tau * tau);
            let reduced = moments(Reduction::ControlVariate);
            assert_fact("DSM-VR", reduced.mean, a * a * s * s - 2.0 * a + step * a * a);
            let variance =
                2.0 * (2.0 * a - a * a * step).powi(2) + 4.0 * step * a.powi(4) * s * s + 2.0 * (a * s).powi(4);
            assert_fact("Var DSM-VR", reduced.variance, variance);
        }
    }
}

/// DSM with the sign of the residual as printed (P7): ‖z/√ε + ∇E(x̃)‖².
#[derive(Debug)]
struct PrintedDenoising(f64);

impl Objective for PrintedDenoising {
    fn rows<'g>(&self, energy: EnergyOf<'_, 'g>, data: Particles<'g>, noise: Noise<'g>) -> Expr<'g> {
        let z = noise.like(data.at);
        let noisy = (data.at + self.0.sqrt() * z).stop_gradient();
        (z / self.0.sqrt() + grad(energy(noisy), &[noisy])[0]).square().sum(-1)
    }

    fn scale(&self) -> f64 {
        2.0
    }
}

#[test]
fn erratum_p7_the_printed_denoising_is_minimised_by_the_opposite_score() {
    let (rule, step) = (gaussian(1.0), 0.01);
    let slope = |objective: &dyn Objective, a: f64| rule.evaluate(objective, &quadratic, a).slope.mean;
    let truth = 1.0 / (1.0 + step);
    assert_fact("ours at the truth", slope(&Denoising::new(step), truth), 0.0);
    assert_fact("printed at minus the truth", slope(&PrintedDenoising(step), -truth), 0.0);
    assert!(slope(&PrintedDenoising(step), truth) > 1.0, "the printed sign must not be stationary at the truth");
}

#[test]
fn fact_12_13_contrastive_divergence_has_the_gradient_of_score_matching() {
    for (a, s) in CASES {
        for step in STEPS {
            let slope = |reduction| {
                let objective = Contrastive { reduction, ..Contrastive::new(Langevin, step) };
                gaussian(s).evaluate(&objective, &quadratic, a).slope
            };
            let shared = 0.5 * (2.0 * a - step * a * a).powi(2) * s.powi(4) + 2.0;
            let (plain, reduced) = (slope(Reduction::None), slope(Reduction::ControlVariate));
            for moments in [plain, reduced, slope(Reduction::Antithetic)] {
                assert_fact("E g", moments.mean, a * s * s - 1.0 - 0.5 * step * a * a * s * s);
            }
            assert_fact("Var g", plain.variance, shared + 2.0 * (1.0 - step * a).powi(2) * s * s / step);
            assert_fact("Var g reduced", reduced.variance, shared + 2.0 * step * a * a * s * s);
        }
    }
    assert!(!Contrastive::new(Langevin, 0.1).has_value());
}

#[test]
fn erratum_p9_contrastive_divergence_descends_and_the_printed_update_does_not() {
    // From a = 2 > 1/s² = 1 descent must lower a; the update as printed adds E_p ∂E − E_{p₁} ∂E and raises it.
    let slope = gaussian(1.0).evaluate(&Contrastive::new(Langevin, 0.001), &quadratic, 2.0).slope.mean;
    let (ours, printed) = (2.0 - 0.1 * slope, 2.0 + 0.1 * slope);
    assert!((ours - 1.0).abs() < 1.0 && (printed - 1.0).abs() > 1.0, "{ours} and {printed}");
}

#[test]
fn fact_14_probability_flow_tends_to_the_loss_of_score_matching() {
    let rule = Rule::product(&normal(40, 1, 1.0), &normal(40, 1, 1.0));
    let mean = |variance: f64, reduction| {
        rule.mean(&ProbabilityFlow { reduction, ..ProbabilityFlow::new(f64::sqrt(variance)) }, &quadratic, 1.0)
    };
    for variance in [0.1, 0.001] {
        let k = (1.0_f64 + variance / 2.0 - variance / 4.0).powf(-0.5);
        for reduction in REDUCTIONS {
            assert_fact("(8/σ²)(K − 1)", mean(variance, reduction), 8.0 / variance * (k - 1.0));
        }
    }
    assert_digits("σ² = 0.1", mean(0.1, Reduction::ControlVariate), -0.9816323, 7);
    assert_digits("σ² = 0.001", mean(0.001, Reduction::ControlVariate), -0.9998125, 7);
}

#[test]
fn fact_15_in_two_dimensions_traces_take_the_place_of_squares() {
    // Σ = [[2, −.4], [−.4, 1]] by its Cholesky factor; A = [[1, .3], [.3, .5]], E = ½xᵀAx.
    let (c00, c10) = (2f64.sqrt(), -0.4 / 2f64.sqrt());
    let c11 = (1.0 - c10 * c10).sqrt();
    let (z, weights) = tensor_rule(&gauss_hermite(6), 2);
    let x = z.chunks(2).flat_map(|z| [c00 * z[0], c10 * z[0] + c11 * z[1]]).collect();
    let rule = Rule::product(&(x, weights), &normal(6, 2, 1.0));
    fn bilinear<'g>(theta: Expr<'g>, x: Expr<'g>) -> Expr<'g> {
        let a = theta.graph().table(&[1.0, 0.3, 0.3, 0.5], [2, 2]);
        0.5 * theta * x.matmul(a).dot(x)
    }
    let moments = |step, reduction| rule.evaluate(&velocity(step, reduction), &bilinear, 1.0).loss;
    assert_limit("L", limit(0.01, |step| moments(step, Reduction::ControlVariate).mean), -0.84);
    let variance = limit(0.01, |step| moments(step, Reduction::ControlVariate).variance);
    assert_limit("Var", variance, 19.533984);
    let plain = limit(0.01, |step| step * moments(step, Reduction::None).variance);
    assert_limit("ε·Var plain", plain, 17.28);
    assert_fact("2J", 2.0 * rule.mean(&ScoreMatching::new(), &bilinear, 1.0), -0.84);
}

#[test]
fn fact_16_a_quartic_energy_has_the_stated_moments() {
    let rule = Rule::product(&normal(60, 1, 1.0), &normal(60, 1, 1.0));
    fn quartic<'g>(theta: Expr<'g>, x: Expr<'g>) -> Expr<'g> {
        0.25 * theta * x.powi(4).sum(-1)
    }
    let moments = |step| rule.evaluate(&velocity(step, Reduction::ControlVariate), &quartic, 1.0).loss;
    assert_fact("L", 2.0 * rule.mean(&ScoreMatching::new(), &quartic, 1.0), 9.0);
    assert_digits("E L̂(0.01)", moments(0.01).mean, 8.3535501563, 9);
    assert_digits("Var L̂(0.01)", moments(0.01).variance, 7854.7540236624, 6);
    assert_digits("E L̂(0.001)", moments(0.001).mean, 8.9334634252, 9);
    let steps = [1e-3, 1e-4, 1e-5];
    let bias = steps.map(|step| moments(step).mean - 9.0);
    assert!(within_order("bias", &steps, &bias, 1.0, 0.02));
    assert_limit("variance", limit(1e-4, |step| moments(step).variance), 9378.0);
}

#[test]
fn fact_29_the_gradient_goes_through_the_step() {
    for (a, s) in CASES {
        for step in STEPS {
            for reduction in REDUCTIONS {
                let slope = gaussian(s).evaluate(&velocity(step, reduction), &quadratic, a).slope.mean;
                assert_fact("∂_a E L̂", slope, 2.0 * a * s * s - 0.75 * step * a * a * s * s - 2.0);
            }
        }
    }
}

#[test]
fn fact_30_the_entropy_gradient_is_the_mean_of_the_score_along_the_path() {
    // z = φε with ε ~ N(0,1): −E[∇log q·∂z/∂φ] = E[∇E(sg z)·∂z/∂φ] = 1/φ with the energy z²/2φ² of q itself.
    let (nodes, weights) = gauss_hermite(12);
    let (g, phi) = (Graph::new(), 0.7);
    let (eps, w, parameter) = (g.input_rows("eps", 12, [1]), g.input_rows("w", 12, []), g.input("phi", []));
    let z = parameter * eps;
    let energy = 0.5 * (z / parameter.stop_gradient()).square().sum(-1);
    let slope = grad((w * energy).sum_rows(), &[parameter])[0];
    let inputs: [(&str, &[f64]); 3] = [("eps", &nodes), ("w", &weights), ("phi", &[phi])];
    assert_fact("dH/dφ", crate::support::values(&[slope], &inputs, 0)[0][0], 1.0 / phi);
}
