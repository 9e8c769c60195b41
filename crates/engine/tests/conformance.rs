//! Laws × operations: every operation of the table in `support/cases.rs` obeys every law below.
//!
//! Values: compiled programs equal the interpreter, and that equals plain loops. Derivatives: `grad` equals central
//! differences, once and twice, and `jvp` is its adjoint. Differences: `difference` equals subtraction where
//! subtraction is exact enough to tell, and keeps its digits where subtraction loses them.

#[path = "support/cases.rs"]
mod cases;
#[path = "support/naive.rs"]
mod naive;

use cases::{Case, Domain, FUNCTIONS, Laws, mvl_energy, mvl_loss, mvl_step};
use minvel_engine::math::Real;
use minvel_engine::random::{Key, Stream};
use minvel_engine::{Clock, Expr, Graph, Options, Shape, State, Window, concat, difference, grad, jvp, reference, vjp};
use reference::Values;
use std::panic::{AssertUnwindSafe, catch_unwind};

// ------------------------------------------------------------------------------------------------------ what is tested

/// Names of the inputs, of the directions along which they move, and of second directions.
const X: [&str; 8] = ["x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"];
const V: [&str; 8] = ["v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7"];
const W: [&str; 8] = ["w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"];

/// A case laid out in a graph: y = f(x), directions v and w for the x that can move, a weight for each entry of y.
struct Subject<'g> {
    x: Vec<Expr<'g>>,
    v: Vec<Expr<'g>>,
    w: Vec<Expr<'g>>,
    y: Expr<'g>,
    seed: Expr<'g>,
    values: Values<'static>,
    given: Vec<Vec<f64>>,
}

/// Numbers of a domain, all distinct by a margin (one in each of `count` cells), exact in f32.
fn sample(domain: Domain, cells: &[usize], count: usize, noise: &mut Stream) -> Vec<f64> {
    let mut draw = |&cell: &usize| {
        let u = (cell as f64 + 0.25 + 0.5 * noise.uniform()) / count as f64;
        match domain {
            Domain::Line => 3.0 * u - 1.5,
            Domain::Unit => 1.6 * u - 0.8,
            Domain::Positive => 0.4 + 1.6 * u,
            Domain::Kinked | Domain::Nonzero => 2.6 * u - if u < 0.5 { 1.5 } else { 1.1 },
            Domain::Index(n) => (u * n as f64).floor(),
        }
    };
    let mut values: Vec<f64> = cells.iter().map(|c| f64::from(draw(c) as f32)).collect();
    if matches!(domain, Domain::Line | Domain::Unit) {
        values[0] = 0.0;
    }
    values
}

fn shuffled(count: usize, noise: &mut Stream) -> Vec<usize> {
    let mut keyed: Vec<(u64, usize)> = (0..count).map(|i| (noise.uniform().to_bits(), i)).collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, i)| i).collect()
}

fn named<'g>(g: &'g Graph, name: &str, shape: &Shape) -> Expr<'g> {
    match shape.rows {
        Some(rows) => g.input_rows(name, rows, shape.dims.clone()),
        None => g.input(name, shape.dims.clone()),
    }
}

impl<'g> Subject<'g> {
    fn new(g: &'g Graph, case: &Case, draw: u32) -> Self {
        let noise = &mut Stream::new(Key::new(20, draw), 0);
        let shape = |i: usize| Shape { rows: case.inputs[i].rows, dims: case.inputs[i].dims.clone() };
        let n = case.inputs.len();
        let count = (0..n).map(|i| shape(i).len()).sum();
        let cells = shuffled(count, noise);
        let mut given: Vec<Vec<f64>> = vec![];
        for i in 0..n {
            let first: usize = given.iter().map(Vec::len).sum();
            given.push(sample(case.inputs[i].domain, &cells[first..first + shape(i).len()], count, noise));
        }
        let mut direction = |len: usize| sample(Domain::Nonzero, &shuffled(len, noise), len, noise);
        let mut values: Values = (0..n).map(|i| (X[i], given[i].clone())).collect();
        let all: Vec<Expr> = (0..n).map(|i| named(g, X[i], &shape(i))).collect();
        let moves: Vec<usize> = (0..n).filter(|&i| !matches!(case.inputs[i].domain, Domain::Index(_))).collect();
        for names in [V, W] {
            values.extend(moves.iter().map(|&i| (names[i], direction(shape(i).len()))));
        }
        let along = |names: [&str; 8]| moves.iter().map(|&i| named(g, names[i], &shape(i))).collect();
        let y = (case.build)(&all);
        let seed = named(g, "seed", &y.shape());
        values.insert("seed", direction(y.shape().len()));
        Subject { x: moves.iter().map(|&i| all[i]).collect(), v: along(V), w: along(W), y, seed, values, given }
    }

    fn pairs(&self) -> Vec<(Expr<'g>, Expr<'g>)> {
        self.x.iter().copied().zip(self.v.iter().copied()).collect()
    }

    /// The values with every direction v scaled by t.
    fn scaled(&self, t: f64) -> Values<'static> {
        let mut values = self.values.clone();
        V.iter().filter_map(|v| values.remove_entry(v)).collect::<Vec<_>>().into_iter().for_each(|(name, v)| {
            values.insert(name, v.iter().map(|v| f64::from((t * v) as f32)).collect());
        });
        values
    }

    /// Entries of seed·y: their sum is the scalar whose gradient is taken.
    fn weighted(&self) -> Vec<Expr<'g>> {
        vec![self.seed * self.y]
    }

    /// Entries of ∂(Σ seed·y)/∂x·v, whose sum is the derivative along v.
    fn slopes(&self) -> Vec<Expr<'g>> {
        grad(self.weighted()[0], &self.x).into_iter().zip(&self.v).map(|(g, &v)| g * v).collect()
    }

    /// Entries of the second derivative along v and w.
    fn curvatures(&self) -> Vec<Expr<'g>> {
        let whole = |e: Expr<'g>| if e.shape().rows.is_some() { e.sum_all().sum_rows() } else { e.sum_all() };
        let slope = self.slopes().into_iter().map(whole).reduce(|a, b| a + b).expect("something moves");
        grad(slope, &self.x).into_iter().zip(&self.w).map(|(g, &w)| g * w).collect()
    }

    /// Rounding errors an entry of y gathers: one for each input entry it sums over, and a few for each function.
    fn roundings(&self) -> f64 {
        let entries: usize = self.given.iter().map(Vec::len).sum();
        FEW + entries as f64 / self.y.shape().len() as f64
    }
}

// ------------------------------------------------------------------------------------------------------- how it is told

/// Rounding errors of a short formula: two functions of at most 3.5 ulp (see math.rs) and an operation between them.
const FEW: f64 = 8.0;

/// The values with x moved by t along v (or along w).
fn moved(values: &Values<'static>, t: f64, along: [&str; 8]) -> Values<'static> {
    let mut moved = values.clone();
    for (x, d) in X.into_iter().zip(along) {
        if let (Some(x), Some(d)) = (moved.get_mut(x), values.get(d)) {
            x.iter_mut().zip(d).for_each(|(x, d)| *x += t * d);
        }
    }
    moved
}

fn interpret(e: Expr, values: &Values) -> Vec<f64> {
    reference::evaluate(&[e], values, 0, 0, 0).remove(0)
}

fn compiled<T: Real>(outputs: &[Expr]) -> impl FnMut(&Values) -> Vec<Vec<f64>> + use<T> {
    let count = outputs.len();
    let mut program = outputs[0].graph().compile::<T>(outputs, &[], &Options::default());
    move |values| {
        let typed: Vec<(&str, Vec<T>)> =
            values.iter().map(|(n, v)| (*n, v.iter().map(|&v| T::from_f64(v)).collect())).collect();
        let inputs: Vec<(&str, &[T])> = typed.iter().map(|(n, v)| (*n, v.as_slice())).collect();
        program.run(&mut State::new(1), &inputs, Clock { seed: 0, step: 0 });
        (0..count).map(|k| program.output(k).iter().map(|v| v.to_f64()).collect()).collect()
    }
}

fn largest(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |m, x| if x.is_nan() { f64::INFINITY } else { m.max(x.abs()) })
}

fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// Largest error relative to the largest entry; zero must be matched exactly.
fn relative_error(got: &[f64], want: &[f64]) -> f64 {
    let error = largest(&minus(got, want));
    if error == 0.0 { 0.0 } else { error / largest(want) }
}

/// Error at most `bound`, with a message if not.
fn within(what: &str, error: f64, bound: f64) -> Result<(), String> {
    if error <= bound { Ok(()) } else { Err(format!("{what}: error {error:.3e} above {bound:.3e}")) }
}

/// Runs a law on every case it holds for, at several points, and names all that break it.
fn every_case(holds: impl Fn(Laws) -> bool, law: impl Fn(&Case, &Subject) -> Result<(), String>) {
    let table = cases::all();
    let draws = table.iter().filter(|case| holds(case.laws)).flat_map(|case| (0..3).map(move |draw| (case, draw)));
    let broken: Vec<String> = draws
        .filter_map(|(case, draw)| {
            let g = Graph::new();
            law(case, &Subject::new(&g, case, draw)).err().map(|why| format!("{}, draw {draw}: {why}", case.name))
        })
        .collect();
    assert!(broken.is_empty(), "{} draws of {} cases:\n{}", broken.len(), table.len(), broken.join("\n"));
}

/// How far the sum of some terms is from having a derivative (itself given by terms) along one of the directions.
struct Slope {
    error: f64,
    bound: f64,
    size: f64,
}

/// The derivative against a central difference with h = ε^⅓, which balances truncation O(h²) and rounding O(ε/h).
///
/// Truncation is measured: doubling h changes the quotient by three times its error.
fn slope(s: &Subject, terms: &[Expr], along: [&str; 8], slopes: &[Expr]) -> Slope {
    let entries = |list: &[Expr], values: &Values| list.iter().flat_map(|&e| interpret(e, values)).collect::<Vec<f64>>();
    let at = |t: f64| entries(terms, &moved(&s.values, t, along)).iter().sum::<f64>();
    let quotient = |h: f64| (at(h) - at(-h)) / (2.0 * h);
    let h = f64::EPSILON.cbrt();
    let size: f64 = entries(terms, &s.values).iter().map(|v| v.abs()).sum();
    let derivative = entries(slopes, &s.values);
    let truncation = (quotient(2.0 * h) - quotient(h)).abs();
    let bound = truncation + FEW * f64::EPSILON * size / h;
    let error = (derivative.iter().sum::<f64>() - quotient(h)).abs();
    Slope { error, bound, size: derivative.iter().map(|v| v.abs()).sum() }
}

// ---------------------------------------------------------------------------------------------------------------- values

#[test]
fn the_interpreter_equals_plain_loops_and_std() {
    every_case(|_| true, |case, s| {
        let Some(oracle) = &case.oracle else { return Ok(()) };
        let error = relative_error(&interpret(s.y, &s.values), &oracle(&s.given));
        within("value", error, FEW * f64::EPSILON)
    });
}

#[test]
fn compiled_programs_equal_the_interpreter_in_values_derivatives_and_differences() {
    every_case(|_| true, |_, s| {
        let mut outputs = vec![s.y, difference(s.y, &s.pairs())];
        outputs.extend(jvp(&[s.y], &s.pairs()));
        outputs.extend(vjp(s.y, s.seed, &s.x));
        outputs.extend(s.curvatures());
        let expected = reference::evaluate(&outputs, &s.scaled(0.1), 0, 0, 0);
        for (precision, got) in [
            (f64::EPSILON, compiled::<f64>(&outputs)(&s.scaled(0.1))),
            (f64::from(f32::EPSILON), compiled::<f32>(&outputs)(&s.scaled(0.1))),
        ] {
            for (k, (got, expected)) in got.iter().zip(&expected).enumerate() {
                let error = relative_error(got, expected);
                within(&format!("output {k}, ε = {precision:.0e}"), error, s.roundings() * precision)?;
            }
        }
        Ok(())
    });
}

// ----------------------------------------------------------------------------------------------------------- derivatives

#[test]
fn gradients_equal_central_differences() {
    every_case(|laws| laws == Laws::All, |_, s| {
        let slope = slope(s, &s.weighted(), V, &s.slopes());
        within("slope", slope.error, slope.bound)
    });
}

#[test]
fn gradients_of_gradients_equal_central_differences_of_gradients() {
    every_case(|laws| laws == Laws::All, |_, s| {
        let slope = slope(s, &s.slopes(), W, &s.curvatures());
        within("curvature", slope.error, slope.bound)
    });
}

#[test]
fn central_differences_would_notice_a_millionth_of_a_gradient() {
    every_case(|laws| laws == Laws::All, |_, s| {
        for (order, slope) in [
            ("first", slope(s, &s.weighted(), V, &s.slopes())),
            ("second", slope(s, &s.slopes(), W, &s.curvatures())),
        ] {
            let blind = slope.size > 0.0 && slope.error + slope.bound > 1e-6 * slope.size;
            within(&format!("{order} derivative"), if blind { slope.bound } else { 0.0 }, 1e-6 * slope.size)?;
        }
        Ok(())
    });
}

#[test]
fn forward_mode_is_the_adjoint_of_reverse_mode() {
    every_case(|_| true, |_, s| {
        let forward = interpret(s.seed * jvp(&[s.y], &s.pairs())[0], &s.values);
        let reverse = vjp(s.y, s.seed, &s.x).into_iter().zip(&s.v);
        let reverse: Vec<f64> = reverse.flat_map(|(g, &v)| interpret(g * v, &s.values)).collect();
        let size: f64 = forward.iter().chain(&reverse).map(|v| v.abs()).sum();
        let gap = forward.iter().sum::<f64>() - reverse.iter().sum::<f64>();
        within("⟨seed, Jv⟩ − ⟨Jᵀseed, v⟩", gap.abs(), s.roundings() * f64::EPSILON * size)
    });
}

// ----------------------------------------------------------------------------------------------------------- differences

#[test]
fn differences_equal_subtraction_for_steps_that_are_not_small() {
    every_case(|_| true, |case, s| {
        let everywhere = |d| matches!(d, Domain::Line | Domain::Kinked | Domain::Index(_));
        let wide = case.inputs.iter().all(|i| everywhere(i.domain));
        for step in if wide { &[0.1, 0.7, 3.0][..] } else { &[0.1] } {
            let values = s.scaled(*step);
            let [start, end] = [&values, &moved(&values, 1.0, V)].map(|values| interpret(s.y, values));
            let got = interpret(difference(s.y, &s.pairs()), &values);
            let error = largest(&minus(&got, &minus(&end, &start)));
            let size = largest(&end) + largest(&start);
            within(&format!("step {step}"), error, s.roundings() * f64::EPSILON * size)?;
        }
        Ok(())
    });
}

#[test]
fn differences_equal_tangents_for_tiny_steps() {
    every_case(|laws| laws == Laws::All, |_, s| {
        let (step, exact) = (1e-12, difference(s.y, &s.pairs()));
        let [once, twice] = [step, 2.0 * step].map(|t| interpret(exact, &s.scaled(t)));
        let tangent = interpret(jvp(&[s.y], &s.pairs())[0], &s.scaled(step));
        // Δ(t) = t·f' + t²·f''/2 + …, so Δ(2t) − 2Δ(t) = t²·f'' + … is twice what the tangent misses.
        let curvature = largest(&minus(&minus(&twice, &once), &once));
        let rounding = s.roundings() * f64::EPSILON * largest(&tangent);
        within("tangent", largest(&minus(&once, &tangent)), curvature + rounding)
    });
}

/// What derive/difference.rs promises of f32, however long the formula.
const PROMISE: f64 = 1e-5;

#[test]
fn differences_keep_their_digits_in_f32_for_steps_down_to_1e_12() {
    every_case(|laws| laws != Laws::ValueOnly, |_, s| {
        let exact = difference(s.y, &s.pairs());
        let (mut single, mut double) = (compiled::<f32>(&[exact]), compiled::<f64>(&[exact]));
        for digits in 1..=12 {
            let values = s.scaled(0.1f64.powi(digits));
            let error = relative_error(&single(&values)[0], &double(&values)[0]);
            within(&format!("step 1e-{digits}"), error, (s.roundings() * f64::from(f32::EPSILON)).min(PROMISE))?;
        }
        Ok(())
    });
}

#[test]
fn subtraction_in_f32_loses_every_digit_of_the_same_differences() {
    every_case(|laws| laws != Laws::ValueOnly, |_, s| {
        let values = s.scaled(1e-10);
        let mut single = compiled::<f32>(&[s.y]);
        let [start, end] = [&values, &moved(&values, 1.0, V)].map(|values| single(values).remove(0));
        let plain = minus(&end, &start);
        let exact = compiled::<f64>(&[difference(s.y, &s.pairs())])(&values).remove(0);
        let error = relative_error(&plain, &exact);
        if largest(&exact) == 0.0 || error > 0.5 { Ok(()) } else { Err(format!("error only {error:.1e}")) }
    });
}

#[test]
fn energy_changes_of_minimum_velocity_learning_keep_their_digits_in_f32_at_epsilon_1e_8() {
    let (g, eps) = (Graph::new(), 1e-8);
    let table = cases::all();
    let case = table.last().expect("the loss of minimum velocity learning");
    let s = Subject::new(&g, case, 0);
    let energy = mvl_energy(s.x[0], &s.x[2..]);
    let [step, along] = mvl_step(&s.x, eps);
    let (exact, plain) = (difference(energy, &[(s.x[0], step)]), mvl_energy(s.x[0] + step, &s.x[2..]) - energy);
    let outputs = [exact, plain, mvl_loss(exact, along, eps), mvl_loss(plain, along, eps), along, energy];
    let (single, double) = (compiled::<f32>(&outputs)(&s.values), compiled::<f64>(&outputs)(&s.values));
    let error = |k: usize, truth: usize| largest(&minus(&single[k], &double[truth]));
    let size = |k: usize| largest(&double[k]);
    assert!(error(0, 0) < PROMISE * size(0), "change of energy: {:.1e} of {:.1e}", error(0, 0), size(0));
    // In f64 subtraction still has digits to confirm the identity with: all but those of |E|/|ΔE|.
    let confirmed = largest(&minus(&double[0], &double[1]));
    assert!(confirmed < s.roundings() * f64::EPSILON * size(5), "{confirmed:.1e} of {:.1e}", size(0));
    // The loss subtracts u·∇E, of order √ε, and divides by ε: its error is that of u·∇E times 2/ε.
    let bound = s.roundings() * f64::from(f32::EPSILON) * size(4) * 2.0 / eps;
    assert!(error(2, 2) < bound && bound < 0.1 * size(2), "loss {}: {:.1e} of {bound:.1e}", size(2), error(2, 2));
    assert!(error(3, 2) > 0.5 * size(2), "subtraction should be lost: {:.1e} of {:.1e}", error(3, 2), size(2));
}

#[test]
fn sweep() {
    for &(name, domain, f, std) in FUNCTIONS {
        let (small, large) = match domain { Domain::Unit => (-5., -0.001), Domain::Positive => (-5., 1.5), _ => (-5., 1.5) };
        let n = 400;
        let mut x: Vec<f64> = (0..n).map(|i| 10f64.powf(small + (large - small) * i as f64 / (n-1) as f64)).collect();
        if domain != Domain::Positive { x = x.iter().flat_map(|&v| [v, -v]).collect(); }
        let x: Vec<f64> = x.iter().map(|&v| v as f32 as f64).collect();
        let g = Graph::new();
        let e = g.input("x", [x.len()]);
        let d = g.input("d", [x.len()]);
        let y = f(e);
        let outs = [y, difference(y, &[(e, d)]), grad(y, &[e])[0]];
        let values: Values = [("x", x.clone()), ("d", x.iter().map(|v| f64::from((1e-6 * v) as f32)).collect())].into_iter().collect();
        let rf = reference::evaluate(&outs, &values, 0, 0, 0);
        let sg = compiled::<f32>(&outs)(&values);
        let worst = |a: &[f64], b: &[f64]| { let mut w = (0.0, 0.0); for i in 0..x.len() { let e = if a[i] == b[i] {0.} else {((a[i]-b[i])/b[i]).abs()}; if !(e <= w.0) { w = (e, x[i]); } } w };
        let want: Vec<f64> = x.iter().map(|&v| std(v)).collect();
        let (a, b, c, dd) = (worst(&rf[0], &want), worst(&sg[0], &want), worst(&sg[1], &rf[1]), worst(&sg[2], &rf[2]));
        println!("{name:12} f64 {:8.1} ulp at {:9.2e}  f32 {:9.1} at {:9.2e}  diff {:9.1} at {:9.2e}  grad {:9.1} at {:9.2e}", a.0/f64::EPSILON, a.1, b.0/f32::EPSILON as f64, b.1, c.0/f32::EPSILON as f64, c.1, dd.0/f32::EPSILON as f64, dd.1);
    }
}
