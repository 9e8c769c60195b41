//! F55: the maximum mean discrepancy of the paper's code, by hand.

use minvel::matching::{bandwidth, maximum_mean_discrepancy};
use minvel_engine::{Clock, Graph, Options, State, grad};

const P: [f64; 6] = [0.0, 0.0, 1.0, 0.0, 0.0, 1.0];
const Q: [f64; 6] = [1.0, 1.0, 2.0, 0.0, 0.0, 2.0];

/// σ², MMD² and its gradient by the first sample.
fn discrepancy(p: &[f64], q: &[f64]) -> (f64, f64, Vec<f64>) {
    let g = Graph::new();
    let (x, y) = (g.input_rows("x", 3, [2]), g.input_rows("y", 3, [2]));
    let width = bandwidth(x, y);
    let mmd = maximum_mean_discrepancy(x, y, width);
    let mut program = g.compile::<f64>(&[width, mmd, grad(mmd, &[x])[0]], &[], &Options::default());
    program.run(&mut State::new(1), &[("x", p), ("y", q)], Clock { seed: 0, step: 0 });
    (program.output(0)[0], program.output(1)[0], program.output(2).to_vec())
}

#[test]
fn fact_55_the_discrepancy_of_two_triangles() {
    let (width, mmd, _) = discrepancy(&P, &Q);
    let printed = 0.5e-10; // half of the last digit of F55
    assert_eq!(width, 6.0);
    assert!((mmd - 0.0136052043).abs() <= printed, "{mmd}");
    assert!((by_hand(0.0) - mmd).abs() <= 8.0 * f64::EPSILON);
    // Twins: the roles exchanged set another bandwidth; with the diagonal (the biased estimate) the value is another.
    assert!(discrepancy(&Q, &P).0 != 6.0);
    assert!((by_hand(1.0) - 0.0136052043).abs() > printed);
}

/// The formula in plain loops with σ² = 6; `diagonal` is the weight of pairs of a point with itself.
fn by_hand(diagonal: f64) -> f64 {
    let point = |s: &[f64; 6], i: usize| [s[2 * i], s[2 * i + 1]];
    let kernel = |a: [f64; 2], b: [f64; 2]| (-((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)) / 12.0).exp();
    let mean = |a: &[f64; 6], b: &[f64; 6], own: f64| {
        let pairs = (0..3).flat_map(|i| (0..3).map(move |j| (i, j)));
        let weight = |i: usize, j: usize| if i == j { own } else { 1.0 };
        let total: f64 = pairs.clone().map(|(i, j)| weight(i, j)).sum();
        pairs.map(|(i, j)| weight(i, j) * kernel(point(a, i), point(b, j))).sum::<f64>() / total
    };
    mean(&P, &P, diagonal) + mean(&Q, &Q, diagonal) - 2.0 * mean(&P, &Q, 1.0)
}

#[test]
fn the_gradient_goes_through_the_bandwidth_too() {
    // Points without ties, where the quantile is smooth.
    let p = [0.1, 0.0, 1.2, 0.3, -0.2, 1.1];
    let (_, _, gradient) = discrepancy(&p, &Q);
    let h = f64::EPSILON.cbrt();
    for (i, &slope) in gradient.iter().enumerate() {
        let at = |d: f64| {
            let mut moved = p;
            moved[i] += d;
            discrepancy(&moved, &Q).1
        };
        let (near, far) = ((at(h) - at(-h)) / (2.0 * h), (at(2.0 * h) - at(-2.0 * h)) / (4.0 * h));
        // Truncation from two step sizes, and rounding of values of order one.
        let bound = (near - far).abs() + 8.0 * f64::EPSILON / h;
        assert!((slope - near).abs() <= bound, "entry {i}: {slope} against {near} ± {bound:e}");
    }
}
