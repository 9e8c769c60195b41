//! Kernels and the particles they couple.

use crate::support::expectation::assert_fact;
use crate::support::values;
use minvel::Flow;
use minvel::flow::{Law, Noise, Pace, Statistic, Stein};
use minvel::kernel::{Bandwidth, Kernel};
use minvel::objective::ScoreMatching;
use minvel_engine::{Graph, grad};

const KERNELS: [Kernel; 3] = [
    Kernel::Gaussian(Bandwidth::Fixed(0.7)),
    Kernel::InverseMultiquadric { length: 1.3, power: 0.5 },
    Kernel::InverseMultiquadric { length: 0.6, power: 0.8 },
];

const POINTS: [f64; 8] = [0.3, -0.7, 1.1, 0.2, -0.4, 0.9, 2.0, -1.5];

#[test]
fn kernels_have_the_derivatives_they_state() {
    for kernel in KERNELS {
        let g = Graph::new();
        let x = g.input_rows("x", 4, [2]);
        let origin = g.table(&[0.1, 0.2], [1, 2]);
        let gram = kernel.between(x, origin);
        // ∇_x k = 2κ'(x − x'), and tr ∇_x∇_{x'}k = −Δ_x k since k depends on x − x' only.
        let gradient = grad(gram.value, &[x])[0];
        let stated = 2.0 * gram.slope * (x - origin.reshape([2]));
        let (_, laplacian) = ScoreMatching::new().derivatives(&|x| kernel.between(x, origin).value.sum(-1), x);
        let got = values(&[gradient, stated, laplacian, gram.trace(2).sum(-1)], &[("x", &POINTS)], 0);
        got[0].iter().zip(&got[1]).for_each(|(a, b)| assert_fact("∇k", *a, *b));
        got[2].iter().zip(&got[3]).for_each(|(a, b)| assert_fact("Δk", -a, *b));
    }
}

#[test]
fn the_median_bandwidth_is_that_of_all_pairs() {
    let g = Graph::new();
    let x = g.input_rows("x", 4, [2]);
    let got = values(&[Bandwidth::Median.of(x.collect())], &[("x", &POINTS)], 0)[0][0];
    let squared = |i: usize, j: usize| (0..2).map(|k| (POINTS[2 * i + k] - POINTS[2 * j + k]).powi(2)).sum::<f64>();
    let mut pairs: Vec<f64> = (0..4).flat_map(|i| (0..4).map(move |j| squared(i, j))).collect();
    pairs.sort_by(f64::total_cmp);
    assert_fact("h", got, 0.5 * 0.5 * (pairs[7] + pairs[8]) / 5f64.ln());
    let same = values(&[Bandwidth::Median.of(x.collect())], &[("x", &[1.0; 8])], 0)[0][0];
    assert_fact("h of equal points", same, 1e-5);
}

#[test]
fn the_two_statistics_are_the_sums_they_state() {
    let kernel = Kernel::Gaussian(Bandwidth::Fixed(0.7));
    let drift = |statistic| {
        let g = Graph::new();
        let x = g.input_rows("x", 4, [2]);
        let flow = Stein { kernel, statistic };
        let pace = Pace::learning(g.scalar(0.1));
        let moved = flow.step(&|x| 0.25 * x.powi(4).sum(-1), x.into(), pace, Noise::drawn(Law::Gaussian, 0));
        assert!(moved.diffusion.is_none() && moved.first_order().is_none());
        values(&[moved.drift], &[("x", &POINTS)], 0).remove(0)
    };
    for (statistic, count) in [(Statistic::V, 4.0), (Statistic::U, 3.0)] {
        let got = drift(statistic);
        for i in 0..4 {
            for k in 0..2 {
                let others = (0..4).filter(|&j| statistic == Statistic::V || j != i);
                let expected: f64 = others
                    .map(|j| {
                        let [xi, xj] = [i, j].map(|p| &POINTS[2 * p..2 * p + 2]);
                        let squared: f64 = xi.iter().zip(xj).map(|(a, b)| (a - b).powi(2)).sum();
                        // ∇_{x'} e^{−|x−x'|²/2h} = k·(x − x')/h and ∇E(x') = x'³.
                        (-squared / 1.4).exp() * (-0.5 * xj[k].powi(3) + (xi[k] - xj[k]) / 0.7)
                    })
                    .sum::<f64>()
                    / count;
                assert_fact("φ", got[2 * i + k], expected);
            }
        }
    }
}
