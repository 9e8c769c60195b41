//! Exact expectations of objectives: points and noise as weighted rows, and limits as the step vanishes.
#![allow(dead_code)] // each test file uses its own part

use crate::support::values;
use minvel::Objective;
use minvel::flow::{Noise, Particles};
use minvel_engine::{Expr, Graph, grad};
use minvel_testing::{gauss_hermite, tensor_rule};

/// Points or noise of a law: row-major numbers and weights that add up to 1.
pub type Law = (Vec<f64>, Vec<f64>);

/// An energy with a scalar parameter: (θ, x) ↦ E(x; θ).
pub type Family<'a> = &'a dyn for<'g> Fn(Expr<'g>, Expr<'g>) -> Expr<'g>;

/// Every point with every noise.
pub struct Rule {
    pub x: Vec<f64>,
    pub z: Vec<f64>,
    pub weights: Vec<f64>,
}

impl Rule {
    pub fn product(points: &Law, noise: &Law) -> Self {
        let (d, k) = (points.0.len() / points.1.len(), noise.0.len() / noise.1.len());
        let mut rule = Rule { x: vec![], z: vec![], weights: vec![] };
        for (x, v) in points.0.chunks(d).zip(&points.1) {
            for (z, w) in noise.0.chunks(k).zip(&noise.1) {
                rule.x.extend(x);
                rule.z.extend(z);
                rule.weights.push(v * w);
            }
        }
        rule
    }

    pub fn inputs<'g>(&self, g: &'g Graph) -> (Particles<'g>, Noise<'g>) {
        let rows = self.weights.len();
        let x = g.input_rows("x", rows, [self.x.len() / rows]);
        let z = g.input_rows("z", rows, [self.z.len() / rows]);
        (Particles::weighted(x, g.input_rows("weight", rows, [])), Noise::given(z))
    }

    pub fn values(&self, theta: f64, outputs: &[Expr]) -> Vec<Vec<f64>> {
        let theta = vec![theta; self.weights.len()];
        let inputs: [(&str, &[f64]); 4] =
            [("x", &self.x), ("z", &self.z), ("weight", &self.weights), ("theta", &theta)];
        values(outputs, &inputs, 0)
    }

    /// Mean and variance of a row value.
    pub fn moments(&self, rows: &[f64]) -> Moments {
        let mean: f64 = rows.iter().zip(&self.weights).map(|(v, w)| v * w).sum();
        let variance = rows.iter().zip(&self.weights).map(|(v, w)| (v - mean).powi(2) * w).sum();
        Moments { mean, variance }
    }

    /// Moments of an objective and of its derivative in θ.
    pub fn evaluate(&self, objective: &dyn Objective, family: Family, theta: f64) -> Evaluated {
        let g = Graph::new();
        let (data, noise) = self.inputs(&g);
        let parameter = g.input_rows("theta", self.weights.len(), []);
        let rows = objective.rows(&|x| family(parameter, x), data, noise);
        let got = self.values(theta, &[rows, grad(rows, &[parameter])[0]]);
        Evaluated { loss: self.moments(&got[0]), slope: self.moments(&got[1]) }
    }

    /// The derivative in θ of the mean, also where rows meet.
    pub fn slope(&self, objective: &dyn Objective, family: Family, theta: f64) -> f64 {
        let g = Graph::new();
        let (data, noise) = self.inputs(&g);
        let parameter = g.input_rows("theta", self.weights.len(), []);
        let loss = objective.loss(&|x| family(parameter, x), data, noise);
        self.values(theta, &[grad(loss, &[parameter])[0]])[0].iter().sum()
    }

    /// The mean of an objective.
    pub fn mean(&self, objective: &dyn Objective, family: Family, theta: f64) -> f64 {
        self.evaluate(objective, family, theta).loss.mean
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Moments {
    pub mean: f64,
    pub variance: f64,
}

#[derive(Clone, Copy, Debug)]
pub struct Evaluated {
    /// Of the loss of a row.
    pub loss: Moments,
    /// Of its derivative in θ.
    pub slope: Moments,
}

/// N(0, s²I) in d dimensions, with `count` nodes in each.
pub fn normal(count: usize, d: usize, s: f64) -> Law {
    let (points, weights) = tensor_rule(&gauss_hermite(count), d);
    (points.iter().map(|z| s * z).collect(), weights)
}

/// E = θ|x|²/2.
pub fn quadratic<'g>(theta: Expr<'g>, x: Expr<'g>) -> Expr<'g> {
    0.5 * theta * x.square().sum(-1)
}

/// Asserts a value to 1e-9 relative, the precision of the acceptance facts that are deterministic.
#[track_caller]
pub fn assert_fact(what: &str, got: f64, expected: f64) {
    println!("{what}: {got:.12}, expected {expected:.12}");
    assert!((got - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{what} is {got}, not {expected}");
}

/// Asserts a value against one printed with so many digits after the point.
#[track_caller]
pub fn assert_digits(what: &str, got: f64, printed: f64, digits: i32) {
    println!("{what}: {got:.12}, printed {printed}");
    assert!(minvel_testing::within_digits(got, printed, digits), "{what} is {got}, not {printed}");
}

/// The limit of f(ε) = f(0) + c₁ε + c₂ε² + …, by Romberg's extrapolation from ε, ε/2, ε/4, ε/8, with the size of its last
/// correction: a bound of the error as long as the expansion converges.
pub fn limit(step: f64, f: impl Fn(f64) -> f64) -> (f64, f64) {
    let mut row: Vec<f64> = (0..4).map(|k| f(step / f64::from(1 << k))).collect();
    let mut before = row[3];
    for level in 1..4 {
        before = row[row.len() - 1];
        let gain = f64::from(1 << level);
        row = row.windows(2).map(|w| (gain * w[1] - w[0]) / (gain - 1.0)).collect();
    }
    (row[0], (row[0] - before).abs())
}

/// Asserts a limit within the error of its extrapolation and rounding over ε.
#[track_caller]
pub fn assert_limit(what: &str, (got, error): (f64, f64), expected: f64) {
    println!("{what}: {got:.10} ± {error:.1e}, expected {expected:.10}");
    let tolerance = error + 1e-9 * expected.abs().max(1.0);
    assert!(error < 1e-4 * expected.abs().max(1.0), "{what}: the extrapolation has not converged");
    assert!((got - expected).abs() <= tolerance, "{what} is {got}, not {expected}");
}
