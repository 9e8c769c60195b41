//! Laws × objectives: every objective has the right sign, bias of the stated order, variance of the stated order, and the
//! gradient of its own value; and keeps its digits in f32 where it says so.

mod kernels;
mod noise;
mod rounding;

use crate::support::expectation::{Rule, assert_fact, normal, quadratic};
use minvel::Energy;
use minvel::flow::{
    BirthDeath, Blend, DensityEstimate, EnergyOf, Flow, FlowForm, Langevin, Noise, Pace, RiemannianLangevin, Stein,
    WassersteinFisherRao,
};
use minvel::kernel::{Bandwidth, Kernel};
use minvel::manifold::Euclidean;
use minvel::objective::{
    Contrastive, Denoising, MinimumVelocity, Objective, ProbabilityFlow, Reduction, ScoreMatching, Sliced,
    TransportReaction,
};
use minvel_engine::{Expr, Graph, grad};
use minvel_testing::{order, within_order, within_ulps};
use std::sync::Arc;

/// −log N(0, I) up to a constant.
#[derive(Debug)]
struct StandardNormal;

impl Energy for StandardNormal {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        0.5 * x.square().sum(-1)
    }
}

const STEIN: Stein = Stein { kernel: Kernel::Gaussian(Bandwidth::Fixed(1.5)), statistic: minvel::flow::Statistic::V };
const MULTIQUADRIC: Stein =
    Stein { kernel: Kernel::InverseMultiquadric { length: 1.2, power: 0.5 }, statistic: minvel::flow::Statistic::V };

fn standard_normal() -> DensityEstimate {
    DensityEstimate::Known(Arc::new(StandardNormal))
}

fn birth_death() -> BirthDeath {
    BirthDeath::new(Langevin, standard_normal())
}

fn fisher_rao(ratio: f64) -> WassersteinFisherRao {
    WassersteinFisherRao::new(Euclidean(2), ratio, standard_normal())
}

/// What an objective tends to as its step vanishes.
enum Limit {
    /// This many times J.
    ScoreMatching(f64),
    /// −2E[drift·∇E] of the flow: its velocity, without noise.
    Stein(Stein),
    /// s·(the velocity of Stein's flow) + l·2J.
    Blend(Blend),
    /// 2J + λ(Var E + 2Cov(E, log p)).
    BirthDeath(f64),
    /// 2J + λ·Var(E + log p).
    Residual(f64),
}

/// An objective for each step, and what is claimed of it.
struct Case {
    name: &'static str,
    at: Box<dyn Fn(f64) -> Box<dyn Objective>>,
    limit: Limit,
    /// The variance grows as ε to this power, 0 where it is bounded.
    variance: f64,
    /// A constant that diverges as ε → 0: d/ε of denoising.
    constant: f64,
}

fn case<O: Objective + 'static>(
    name: &'static str,
    limit: Limit,
    variance: f64,
    at: impl Fn(f64) -> O + 'static,
) -> Case {
    Case { name, at: Box::new(move |step| Box::new(at(step))), limit, variance, constant: 0.0 }
}

fn velocity<F: Flow + Clone + 'static>(flow: F, reduction: Reduction) -> impl Fn(f64) -> MinimumVelocity {
    move |step| MinimumVelocity { reduction, ..MinimumVelocity::new(flow.clone(), step) }
}

/// Every objective; a new one is one line.
fn cases() -> Vec<Case> {
    use Limit::ScoreMatching as J;
    use Reduction::{Antithetic, ControlVariate, None};
    let chart = || RiemannianLangevin::new(Euclidean(2), FlowForm::Chart);
    let denoising = |reduction| move |step| Denoising { reduction, ..Denoising::new(step) };
    let flow = |reduction| move |step: f64| ProbabilityFlow { reduction, ..ProbabilityFlow::new(step.sqrt()) };
    vec![
        case("score matching", J(1.0), 0.0, |_| ScoreMatching::new()),
        case("score matching on a manifold", J(1.0), 0.0, |_| ScoreMatching::on(Euclidean(2))),
        case("sliced", J(1.0), 0.0, |_| Sliced { reduced: false }),
        case("sliced, reduced", J(1.0), 0.0, |_| Sliced { reduced: true }),
        case("minimum velocity", J(2.0), 0.0, velocity(Langevin, ControlVariate)),
        case("minimum velocity, antithetic", J(2.0), 0.0, velocity(Langevin, Antithetic)),
        case("minimum velocity, plain", J(2.0), -1.0, velocity(Langevin, None)),
        case("minimum velocity in a chart", J(2.0), 0.0, velocity(chart(), ControlVariate)),
        case("Stein", Limit::Stein(STEIN), 0.0, velocity(STEIN, None)),
        case("Stein, multiquadric", Limit::Stein(MULTIQUADRIC), 0.0, velocity(MULTIQUADRIC, None)),
        case(
            "blend, paper",
            Limit::Blend(Blend::paper(0.4, STEIN)),
            0.0,
            velocity(Blend::paper(0.4, STEIN), ControlVariate),
        ),
        case(
            "blend, convex",
            Limit::Blend(Blend::convex(0.4, STEIN)),
            0.0,
            velocity(Blend::convex(0.4, STEIN), Antithetic),
        ),
        case("blend, plain", Limit::Blend(Blend::convex(0.4, STEIN)), -1.0, velocity(Blend::convex(0.4, STEIN), None)),
        case("birth and death", Limit::BirthDeath(1.0), 0.0, velocity(birth_death(), ControlVariate)),
        case("Wasserstein–Fisher–Rao", Limit::BirthDeath(0.3), 0.0, velocity(fisher_rao(0.3), ControlVariate)),
        case("transport and reaction", Limit::Residual(0.3), 0.0, |step| {
            TransportReaction::new(MinimumVelocity::new(Langevin, step), 0.3, standard_normal())
        }),
        case("denoising", J(2.0), 0.0, denoising(ControlVariate)),
        Case { constant: 2.0, ..case("denoising, plain", J(2.0), -2.0, denoising(None)) },
        case("probability flow", J(2.0), 0.0, flow(ControlVariate)),
        case("probability flow, antithetic", J(2.0), 0.0, flow(Antithetic)),
        case("probability flow, plain", J(2.0), -1.0, flow(None)),
    ]
}

/// CD-1 has no value, so that its laws are about its gradient.
fn contrastive(reduction: Reduction) -> impl Fn(f64) -> Contrastive {
    move |step| Contrastive { reduction, ..Contrastive::new(Langevin, step) }
}

/// p = N(0, I₂) and noise, exact for what is asked of them.
fn rule() -> Rule {
    Rule::product(&normal(7, 2, 1.0), &normal(5, 2, 1.0))
}

/// A smooth energy that is neither quadratic nor symmetric, of which θ = 1 is far from the truth.
fn bent<'g>(theta: Expr<'g>, x: Expr<'g>) -> Expr<'g> {
    let (a, b) = (x.at(-1, 0), x.at(-1, 1));
    theta * ((0.8 * a + 0.3).softplus() + 0.4 * b.square() + 0.3 * (a - b).sin()) + 0.2 * (theta * a).cos()
}

#[test]
fn descent_leads_to_the_truth() {
    // p = N(0, I) is the model E = θ|x|²/2 with θ = 1; kernels need more nodes, quadratic energies only signs as noise.
    let rule = Rule::product(&normal(14, 2, 1.0), &normal(2, 2, 1.0));
    let leads = |objective: &dyn Objective, sign: f64| {
        let [low, high] = [0.6, 1.6].map(|theta| sign * rule.slope(objective, &quadratic, theta));
        low < 0.0 && high > 0.0
    };
    for case in cases() {
        let objective = (case.at)(1e-3);
        assert!(leads(&*objective, 1.0), "{}", case.name);
        assert!(!leads(&*objective, -1.0), "{}: the test has no power", case.name);
        let residual = rule.slope(&*objective, &quadratic, 1.0) / rule.slope(&*objective, &quadratic, 1.6);
        assert!(residual.abs() < 0.01, "{}: stationary at the truth up to O(ε), not {residual}", case.name);
    }
    for reduction in [Reduction::None, Reduction::ControlVariate, Reduction::Antithetic] {
        assert!(leads(&contrastive(reduction)(1e-3), 1.0), "contrastive divergence, {reduction:?}");
    }
}

/// The limit that a case claims, for the bent energy at θ = 1.
fn claimed(rule: &Rule, limit: &Limit) -> f64 {
    let j = rule.mean(&ScoreMatching::new(), &bent, 1.0);
    let g = Graph::new();
    let (data, noise) = rule.inputs(&g);
    let one = g.input_rows("theta", rule.weights.len(), []);
    let energy: EnergyOf = &|x| bent(one, x);
    let value = |e: Expr| rule.values(1.0, &[e])[0][0];
    let stein = |flow: &Stein| {
        let moved = flow.step(energy, data, Pace::learning(g.scalar(1.0)), noise);
        value(data.mean(-2.0 * moved.drift.dot(moved.gradient)))
    };
    match limit {
        Limit::ScoreMatching(scale) => scale * j,
        Limit::Stein(flow) => stein(flow),
        Limit::Blend(blend) => blend.stein_share * stein(&blend.stein) + blend.langevin_share * 2.0 * j,
        Limit::BirthDeath(ratio) | Limit::Residual(ratio) => {
            let (e, log_p) = (energy(data.at), -StandardNormal.energy(data.at));
            let covariance = |a, b| value(data.mean(data.covariance_rows(a, b)));
            let constant = if let Limit::Residual(_) = limit { covariance(log_p, log_p) } else { 0.0 };
            2.0 * j + ratio * (covariance(e, e) + 2.0 * covariance(e, log_p) + constant)
        }
    }
}

#[test]
fn the_bias_is_of_first_order_in_the_step() {
    let (rule, steps) = (rule(), [4e-3, 2e-3, 1e-3, 5e-4]);
    for case in cases() {
        let expected = claimed(&rule, &case.limit);
        let bias = steps.map(|step| rule.mean(&*(case.at)(step), &bent, 1.0) - case.constant / step - expected);
        let scale = expected.abs().max(1.0);
        if bias.iter().all(|b| b.abs() < 1e-11 * scale) {
            println!("{}: no bias at all", case.name);
            continue;
        }
        assert!(within_order(case.name, &steps, &bias, 1.0, 0.05), "{}: {bias:?}", case.name);
    }
    let exact = rule.slope(&ScoreMatching::new(), &bent, 1.0);
    for reduction in [Reduction::None, Reduction::ControlVariate, Reduction::Antithetic] {
        let bias = steps.map(|step| rule.slope(&contrastive(reduction)(step), &bent, 1.0) - exact);
        assert!(within_order("contrastive divergence", &steps, &bias, 1.0, 0.05));
    }
}

#[test]
fn the_variance_is_bounded_exactly_where_it_is_reduced() {
    let (rule, steps) = (rule(), [1e-4, 1e-5, 1e-6]);
    for case in cases() {
        let variance = steps.map(|step| rule.evaluate(&*(case.at)(step), &bent, 1.0).loss.variance);
        assert!(within_order(case.name, &steps, &variance, case.variance, 0.01), "{}: {variance:?}", case.name);
    }
    for (reduction, expected) in
        [(Reduction::None, -1.0), (Reduction::ControlVariate, 0.0), (Reduction::Antithetic, 0.0)]
    {
        let variance = steps.map(|step| rule.evaluate(&contrastive(reduction)(step), &bent, 1.0).slope.variance);
        assert!(within_order("contrastive divergence", &steps, &variance, expected, 0.01));
    }
    // Denoising's gradient has no |z|²/ε: its variance grows as 1/ε only.
    let plain = |step| Denoising { reduction: Reduction::None, ..Denoising::new(step) };
    let variance = steps.map(|step| rule.evaluate(&plain(step), &bent, 1.0).slope.variance);
    assert!(within_order("gradient of plain denoising", &steps, &variance, -1.0, 0.01));
}

#[test]
fn the_plain_variance_has_the_stated_coefficient() {
    let (rule, step) = (rule(), 1e-7);
    let g = Graph::new();
    let (data, noise) = rule.inputs(&g);
    let one = g.input_rows("theta", rule.weights.len(), []);
    let moved = Langevin.step(&|x| bent(one, x), data, Pace::learning(g.scalar(step)), noise);
    let squared = rule.values(1.0, &[data.mean(moved.gradient.square().sum(-1))])[0][0];
    for (name, objective, coefficient) in [
        ("minimum velocity", &velocity(Langevin, Reduction::None)(step) as &dyn Objective, 8.0 * squared),
        (
            "probability flow",
            &ProbabilityFlow { reduction: Reduction::None, ..ProbabilityFlow::new(step.sqrt()) },
            16.0 * squared,
        ),
    ] {
        let variance = rule.evaluate(objective, &bent, 1.0).loss.variance;
        println!("{name}: ε·Var = {:.8}, expected {coefficient:.8}", step * variance);
        // The next term is O(1), so that ε·Var is off by O(ε).
        assert!((step * variance - coefficient).abs() < 100.0 * step);
    }
}

#[test]
fn the_gradient_is_that_of_the_value() {
    let rule = rule();
    for case in cases() {
        let objective = (case.at)(0.01);
        let slope = rule.slope(&*objective, &bent, 1.0);
        let mean = |theta: f64| rule.mean(&*objective, &bent, theta);
        let central = |h: f64| (mean(1.0 + h) - mean(1.0 - h)) / (2.0 * h);
        let finite = (4.0 * central(1e-3) - central(2e-3)) / 3.0;
        println!("{}: {slope:.10} and {finite:.10}", case.name);
        // Fourth-order differences with h = 1e-3: truncation ~h⁴, rounding ~1e-16·|value|/h.
        let tolerance = 1e-10 * (1.0 + mean(1.0).abs());
        assert!((slope - finite).abs() < tolerance, "{}", case.name);
    }
}

#[test]
fn exact_and_plain_differences_are_the_same_objective() {
    let (rule, step) = (rule(), 0.01);
    let mean = |objective: &dyn Objective| rule.slope(objective, &bent, 1.0);
    for reduction in [Reduction::None, Reduction::ControlVariate, Reduction::Antithetic] {
        let [exact, plain] = [true, false].map(|exact_difference| {
            [
                mean(&MinimumVelocity { reduction, exact_difference, ..MinimumVelocity::new(Langevin, step) }),
                mean(&MinimumVelocity {
                    reduction,
                    exact_difference,
                    adaptive: true,
                    ..MinimumVelocity::new(Langevin, 3.0 * step)
                }),
                mean(&Contrastive { reduction, exact_difference, ..Contrastive::new(Langevin, step) }),
                mean(&Denoising { reduction, exact_difference, ..Denoising::new(step) }),
                mean(&ProbabilityFlow { reduction, exact_difference, ..ProbabilityFlow::new(step.sqrt()) }),
            ]
        });
        exact.iter().zip(plain).for_each(|(a, b)| assert_fact(&format!("{reduction:?}"), *a, b));
    }
}

#[test]
fn the_penalty_bounds_the_scale_of_energies() {
    let (rule, c, step) = (rule(), 0.2, 0.01);
    for reduction in [Reduction::ControlVariate, Reduction::Antithetic] {
        let objective = |penalty| MinimumVelocity { penalty, reduction, ..MinimumVelocity::new(Langevin, step) };
        let got = rule.mean(&objective(c), &bent, 1.0) - rule.mean(&objective(0.0), &bent, 1.0);
        let g = Graph::new();
        let (data, noise) = rule.inputs(&g);
        let one = g.input_rows("theta", rule.weights.len(), []);
        let moved = Langevin.step(&|x| bent(one, x), data, Pace::learning(g.scalar(step)), noise);
        let squares = data.mean(bent(one, moved.to).square() + moved.energy.square());
        assert_fact("c·R", got, c * rule.values(1.0, &[squares])[0][0]);
    }
}

#[test]
fn an_adaptive_step_divides_by_the_steepness_where_it_exceeds_one() {
    let rule = rule();
    let g = Graph::new();
    let (data, noise) = rule.inputs(&g);
    let theta = g.input_rows("theta", rule.weights.len(), []);
    let pace = Pace { adaptive: true, ..Pace::learning(g.scalar(0.01)) };
    let chart = RiemannianLangevin::new(Euclidean(2), FlowForm::Chart);
    for (flow, half) in [(&Langevin as &dyn Flow, 1.0), (&chart, 0.5)] {
        let moved = flow.step(&|x| bent(theta, x), data, pace, noise);
        // Langevin counts ∇E, a chart its drift −½∇E + b.
        let steepness = (half * moved.gradient).square().sum(-1);
        let slope = grad(moved.step, &[theta])[0];
        let got = rule.values(1.5, &[moved.step, steepness, slope]);
        let (mut shortened, mut kept) = (0, 0);
        for (step, n) in got[0].iter().zip(&got[1]) {
            assert!(within_ulps(*step, 0.01 / n.max(1.0), 4.0), "a step of {step} where N = {n}");
            if *n > 1.0 { shortened += 1 } else { kept += 1 }
        }
        assert!(shortened > 0 && kept > 0, "both branches must be met: {shortened}, {kept}");
        assert!(got[2].iter().all(|s| *s == 0.0), "the step is constant in differentiation");
    }
}

#[test]
fn steep_models_exploit_a_finite_step_and_not_an_adaptive_one() {
    // docs/math §1.6: a²s²(1 − εa/4) − 2a falls without bound once a > 4/ε.
    let (rule, step, steep) = (Rule::product(&normal(12, 1, 1.0), &normal(12, 1, 1.0)), 0.1, 80.0);
    let fixed = MinimumVelocity::new(Langevin, step);
    let adaptive = MinimumVelocity { adaptive: true, ..fixed.clone() };
    let (exploited, bounded) = (rule.mean(&fixed, &quadratic, steep), rule.mean(&adaptive, &quadratic, steep));
    println!("a = {steep}: {exploited:.0} with a fixed step, {bounded:.0} with an adaptive one");
    assert!(exploited < -1000.0 && bounded > 1000.0);
}

#[test]
fn points_that_are_scaled_expressions_are_differentiated_by_themselves() {
    // The engine moves the factor 2 out of what is built from 2·y; a flow must not lose it.
    let g = Graph::new();
    let y = g.input_rows("y", 1, [2]);
    let z = g.input_rows("z", 1, [2]);
    let pace = Pace::sampling(g.scalar(0.1));
    let moved = Langevin.step(&|x| (3.0 * x).square().sum(-1), (2.0 * y).into(), pace, Noise::given(z));
    let got = crate::support::values(&[moved.gradient], &[("y", &[1.0, -0.5]), ("z", &[0.0, 0.0])], 0);
    assert_eq!(got[0], [36.0, -18.0]);
}

#[test]
fn orders_are_told_apart() {
    // The twin of the laws above: the same fit must reject a wrong order.
    let steps = [1e-4, 1e-5, 1e-6];
    assert!(!within_order("constant", &steps, &[1.0, 1.0, 1.0], -1.0, 0.01));
    assert!((order(&steps, &[1e4, 1e5, 1e6]) + 1.0).abs() < 1e-12);
}
