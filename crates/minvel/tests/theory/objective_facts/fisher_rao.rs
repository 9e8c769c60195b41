//! F57–F61: transport, birth and death with a ratio λ, a mobility, and densities that are known with noise and bias.

use super::manifolds::{Frame, polar, von_mises_fisher};
use crate::support::expectation::*;
use minvel::flow::{self, DensityEstimate, Mobility, Noise, WassersteinFisherRao};
use minvel::manifold::quadrature::midpoint;
use minvel::manifold::{Euclidean, Sphere};
use minvel::objective::{MinimumVelocity, Objective, ScoreMatching, TransportReaction};
use minvel::{Energy, Manifold};
use minvel_engine::{Clock, Draw, Expr, Graph, Options, State, grad};
use minvel_testing::{estimate, within_sigma};
use std::sync::Arc;

/// −log N(0, v).
#[derive(Debug)]
struct Normal(f64);

impl Energy for Normal {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        0.5 / self.0 * x.square().sum(-1) + 0.5 * (std::f64::consts::TAU * self.0).ln()
    }
}

/// −log of a von Mises–Fisher law up to a constant.
#[derive(Debug)]
struct Polar(f64);

impl Energy for Polar {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        -self.0 * x.at(-1, x.shape().dims[0] - 1)
    }
}

fn known(energy: impl Energy + 'static) -> DensityEstimate {
    DensityEstimate::Known(Arc::new(energy))
}

/// The limit of vanishing steps of the flow's objective, and what the residual form says of the same.
fn both(
    rule: &Rule,
    manifold: impl Manifold + Clone + 'static,
    ratio: f64,
    density: &DensityEstimate,
    family: Family,
    theta: f64,
) -> [f64; 2] {
    let flow = WassersteinFisherRao::new(manifold.clone(), ratio, density.clone());
    let by_flow = limit(2e-3, |step| rule.mean(&MinimumVelocity::new(flow.clone(), step), family, theta));
    assert!(by_flow.1 < 1e-7 * by_flow.0.abs().max(1.0), "the extrapolation has not converged: {by_flow:?}");
    let residual = TransportReaction::new(ScoreMatching::on(manifold), ratio, density.clone());
    [by_flow.0, rule.mean(&residual, family, theta)]
}

#[test]
fn fact_57_the_speed_of_a_gaussian_has_its_closed_form() {
    for (a, s, ratio) in [(0.5f64, 1.5f64, 0.7), (1.5, 0.8, 3.0), (1.2, 1.0, 0.0)] {
        let rule = Rule::product(&normal(12, 1, s), &normal(12, 1, 1.0));
        let [by_flow, by_residual] = both(&rule, Euclidean(1), ratio, &known(Normal(s * s)), &quadratic, a);
        let transport = (a * s - 1.0 / s).powi(2) - 1.0 / (s * s);
        let reaction = 0.5 * (1.0 - a * s * s).powi(2);
        assert_fact("residual", by_residual, transport + ratio * reaction);
        // the flow leaves the constant Var log p = ½ out
        assert_limit("flow", (by_flow, 1e-8), transport + ratio * (reaction - 0.5));
        let objective = TransportReaction::new(ScoreMatching::on(Euclidean(1)), ratio, known(Normal(s * s)));
        let slope = 2.0 * a * s * s - 2.0 + ratio * s * s * (a * s * s - 1.0);
        assert_fact("slope", rule.slope(&objective, &quadratic, a), slope);
        if ratio > 0.0 {
            let twin = TransportReaction { ratio: 1.1 * ratio, ..objective };
            assert!((rule.slope(&twin, &quadratic, a) - slope).abs() > 1e-3, "the test cannot tell ratios apart");
        }
    }
}

#[test]
fn fact_58_the_speed_of_a_von_mises_fisher_law_has_its_closed_form() {
    for (concentration, kappa, ratio) in [(2.0f64, 1.0, 0.7), (3.0, 4.5, 2.0)] {
        let rule = von_mises_fisher(2, concentration, Frame::Embedded);
        let law = known(Polar(concentration));
        let resultant = 1.0 / concentration.tanh() - 1.0 / concentration;
        let (across, along) =
            (2.0 * resultant / concentration, 1.0 - 2.0 * resultant / concentration - resultant * resultant);
        let square = (kappa - concentration) * (kappa - concentration);
        let transport = (square - concentration * concentration) * across;
        let flow = WassersteinFisherRao::new(Sphere(2), ratio, law.clone());
        let got = limit(2e-3, |step| rule.mean(&MinimumVelocity::new(flow.clone(), step), &polar, kappa));
        let constant = ratio * concentration * concentration * along;
        assert_limit("flow", got, transport + ratio * square * along - constant);
        let slope = limit(2e-3, |step| rule.slope(&MinimumVelocity::new(flow.clone(), step), &polar, kappa));
        assert_limit("slope", slope, 2.0 * (kappa - concentration) * (across + ratio * along));
        let chart = von_mises_fisher(2, concentration, Frame::Chart);
        let residual = TransportReaction::new(ScoreMatching::on(Sphere(2)), ratio, law);
        assert_fact("residual", chart.mean(&residual, &polar, kappa), transport + ratio * square * along);
    }
}

#[test]
fn fact_59_a_biased_density_moves_the_minimiser_the_less_the_smaller_its_ratio() {
    let (s, h) = (1.3f64, 0.6f64);
    let rule = Rule::product(&normal(12, 1, s), &(vec![0.0], vec![1.0]));
    let (v, wide) = (s * s, s * s + h * h);
    for ratio in [0.0, 0.3, 3.0, 300.0] {
        let objective = TransportReaction::new(ScoreMatching::new(), ratio, known(Normal(wide)));
        let best = (1.0 + 0.5 * ratio * v * v / wide) / (v + 0.5 * ratio * v * v);
        let slope = rule.slope(&objective, &quadratic, best);
        println!("λ = {ratio}: minimal at {best:.5}, between 1/s² = {:.5} and {:.5}", 1.0 / v, 1.0 / wide);
        assert_fact("slope at the minimiser", slope, 0.0);
        assert!((1.0 / wide..=1.0 / v + 1e-15).contains(&best));
        assert!(rule.slope(&objective, &quadratic, 1.0 / v) >= -1e-12, "the truth is not the minimiser");
    }
}

#[test]
fn fact_60_noise_of_the_density_that_is_independent_of_the_row_only_adds_variance() {
    // E = θx²/2, θ = 1.2, p = N(0, 1): the slope of Var(E + ℓ) is θ − 1, with or without noise.
    let (theta, batch, ratio, sigma, replicas) = (1.2, 32, 1.0, 0.8, 20_000);
    let slopes = |own: f64, noise: f64| {
        let g = Graph::new();
        let x = g.random_rows(Draw::Normal, 0, batch, [1]);
        let z = g.random_rows(Draw::Normal, 1, batch, []);
        let parameter = g.input("theta", []);
        let estimate = -0.5 * x.square().sum(-1) + noise * z + own * x.square().sum(-1);
        let particles = flow::Particles::from(x).with_log_density(estimate);
        let objective = TransportReaction::new(Nothing, ratio, DensityEstimate::Given);
        let energy: flow::EnergyOf = &|x| 0.5 * parameter * x.square().sum(-1);
        let loss = objective.loss(energy, particles, Noise::drawn(flow::Law::Gaussian, 2));
        let slope = grad(loss, &[parameter])[0];
        let mut program = g.compile::<f64>(&[slope], &[], &Options { replicas, ..Options::default() });
        program.run(&mut State::new(replicas), &[("theta", &[theta])], Clock { seed: 60, step: 0 });
        program.output(0).to_vec()
    };
    let squares = |v: &[f64]| v.iter().map(|x| (x - estimate(v).0).powi(2)).collect::<Vec<f64>>();
    let (quiet, noisy) = (slopes(0.0, 0.0), slopes(0.0, sigma));
    assert!(within_sigma("without noise", &quiet, theta - 1.0, 4.0));
    assert!(within_sigma("with noise", &noisy, theta - 1.0, 4.0));
    // noise that leans on the row, as that of a kernel estimate that has seen it does
    assert!(!within_sigma("with bias", &slopes(0.05, sigma), theta - 1.0, 4.0), "the test has no power");
    // the same rows with and without noise
    let added: Vec<f64> = squares(&noisy).iter().zip(squares(&quiet)).map(|(a, b)| a - b).collect();
    let expected = 4.0 * ratio * ratio * sigma * sigma * 0.5 / (batch - 1) as f64;
    assert!(within_sigma("what noise adds to the variance of the slope", &added, expected, 4.0));
    assert!(!within_sigma("half of it", &added, 0.5 * expected, 4.0), "the test has no power");
}

/// No transport.
#[derive(Debug)]
struct Nothing;

impl Objective for Nothing {
    fn rows<'g>(&self, _: flow::EnergyOf<'_, 'g>, data: flow::Particles<'g>, _: Noise<'g>) -> Expr<'g> {
        data.at.sum(-1).like(0.0)
    }

    fn scale(&self) -> f64 {
        1.0
    }
}

#[test]
fn fact_61_a_mobility_weighs_the_squared_speed() {
    let (a, s) = (0.6f64, 1.3f64);
    let law = Normal(s * s);
    let typical = -0.5 * (std::f64::consts::TAU * s * s).ln() - 0.3;
    let (nodes, widths) = midpoint(-9.0 * s, 9.0 * s, 4000);
    let log_p = |x: f64| -0.5 * x * x / (s * s) - 0.5 * (std::f64::consts::TAU * s * s).ln();
    let weigh = |f: &dyn Fn(f64) -> f64| -> f64 {
        nodes
            .iter()
            .zip(&widths)
            .map(|(x, w)| w * log_p(*x).exp() / (1.0 + (2.0 * (log_p(*x) - typical)).exp()) * f(*x))
            .sum()
    };
    let expected = weigh(&|x| (a * x - x / (s * s)).powi(2)) - weigh(&|x| (x / (s * s)).powi(2));
    // A fine rule instead of Gauss's: the mobility is no polynomial.
    let (x, width) = midpoint(-9.0 * s, 9.0 * s, 600);
    let weights: Vec<f64> = x.iter().zip(&width).map(|(x, w)| w * log_p(*x).exp()).collect();
    let total: f64 = weights.iter().sum();
    let rule = Rule::product(&(x, weights.iter().map(|w| w / total).collect()), &normal(10, 1, 1.0));
    let mobility = Mobility::LocalWidth { density: Arc::new(law), typical };
    let constant = WassersteinFisherRao::new(Euclidean(1), 0.0, known(Normal(s * s)));
    let flow = WassersteinFisherRao { mobility, ..constant.clone() };
    let of = |flow: &WassersteinFisherRao| {
        limit(2e-3, |step| rule.mean(&MinimumVelocity::new(flow.clone(), step), &quadratic, a))
    };
    assert_limit("speed with mobility", of(&flow), expected);
    assert!((of(&constant).0 - expected).abs() > 0.1, "the test cannot tell mobilities apart");
}

#[test]
fn residuals_beyond_the_bound_count_linearly() {
    let objective = TransportReaction { bound: 3.0, ..TransportReaction::new(Nothing, 1.0, DensityEstimate::Given) };
    let g = Graph::new();
    let r = g.input_rows("x", 4, []);
    let penalty = objective.penalty(r);
    let got = crate::support::values(&[penalty, grad(penalty, &[r])[0]], &[("x", &[-5.0, -3.0, 0.5, 4.0])], 0);
    let expected = [21.0, 9.0, 0.25, 15.0];
    got[0].iter().zip(expected).for_each(|(got, expected)| assert_fact("2H", *got, expected));
    assert_eq!((got[1][0], got[1][2], got[1][3]), (-6.0, 1.0, 6.0));
}
