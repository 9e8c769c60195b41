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
    let printed = 0.5e-10; // half of the last digit that METHODS gives
    assert_eq!(width, 6.0);
    assert!((mmd - 0.0136052043).abs() <= printed, "{mmd}");
    // Twins: the roles exchanged set another bandwidth; with the diagonal (the biased estimate) the value is another.
    assert!(discrepancy(&Q, &P).0 != 6.0);
    let biased = mmd * 2.0 / 3.0 + 2.0 / 3.0 * (1.0 - 1.0 / 3.0);
    assert!((biased - 0.0136052043).abs() > printed);
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
