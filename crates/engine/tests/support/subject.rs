//! A case laid out in a graph at some point, and how results are compared.

use super::cases::{self, Case, Domain, Laws};
use minvel_engine::math::Real;
use minvel_engine::random::{Key, Stream};
use minvel_engine::reference::{self, Values};
use minvel_engine::{Clock, Expr, Graph, Options, Shape, State, grad};

/// Names of the inputs, of the directions along which they move, and of second directions.
const X: [&str; 8] = ["x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"];
pub const V: [&str; 8] = ["v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7"];
pub const W: [&str; 8] = ["w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"];

/// A case laid out in a graph: y = f(x), directions v and w for the x that can move, a weight for each entry of y.
pub struct Subject<'g> {
    pub x: Vec<Expr<'g>>,
    pub v: Vec<Expr<'g>>,
    w: Vec<Expr<'g>>,
    pub y: Expr<'g>,
    pub seed: Expr<'g>,
    pub values: Values<'static>,
    pub given: Vec<Vec<f64>>,
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
    pub fn new(g: &'g Graph, case: &Case, draw: u32) -> Self {
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

    pub fn pairs(&self) -> Vec<(Expr<'g>, Expr<'g>)> {
        self.x.iter().copied().zip(self.v.iter().copied()).collect()
    }

    /// The values with every direction v scaled by t.
    pub fn scaled(&self, t: f64) -> Values<'static> {
        let mut values = self.values.clone();
        for v in V.iter().flat_map(|v| self.values.get_key_value(v)) {
            values.insert(v.0, v.1.iter().map(|v| f64::from((t * v) as f32)).collect());
        }
        values
    }

    /// Entries of seed·y: their sum is the scalar whose gradient is taken.
    pub fn weighted(&self) -> Vec<Expr<'g>> {
        vec![self.seed * self.y]
    }

    /// Entries of ∂(Σ seed·y)/∂x·v, whose sum is the derivative along v.
    pub fn slopes(&self) -> Vec<Expr<'g>> {
        grad(self.weighted()[0], &self.x).into_iter().zip(&self.v).map(|(g, &v)| g * v).collect()
    }

    /// Entries of the second derivative along v and w.
    pub fn curvatures(&self) -> Vec<Expr<'g>> {
        let whole = |e: Expr<'g>| if e.shape().rows.is_some() { e.sum_all().sum_rows() } else { e.sum_all() };
        let slope = self.slopes().into_iter().map(whole).reduce(|a, b| a + b).expect("something moves");
        grad(slope, &self.x).into_iter().zip(&self.w).map(|(g, &w)| g * w).collect()
    }

    /// Rounding errors an entry of y gathers: one for each input entry it sums over, and a few for each function.
    pub fn roundings(&self) -> f64 {
        let entries: usize = self.given.iter().map(Vec::len).sum();
        FEW + entries as f64 / self.y.shape().len() as f64
    }
}

/// Rounding errors of a short formula, say two functions of at most 3.5 ulp (see math.rs) and an operation between them.
pub const FEW: f64 = 8.0;

/// The values with x moved by t along v (or along w).
pub fn moved(values: &Values<'static>, t: f64, along: [&str; 8]) -> Values<'static> {
    let mut moved = values.clone();
    for (x, d) in X.into_iter().zip(along) {
        if let (Some(x), Some(d)) = (moved.get_mut(x), values.get(d)) {
            x.iter_mut().zip(d).for_each(|(x, d)| *x += t * d);
        }
    }
    moved
}

pub fn interpret(e: Expr, values: &Values) -> Vec<f64> {
    reference::evaluate(&[e], values, 0, 0, 0).remove(0)
}

pub fn compiled<T: Real>(outputs: &[Expr]) -> impl FnMut(&Values) -> Vec<Vec<f64>> + use<T> {
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

pub fn largest(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |m, x| if x.is_nan() { f64::INFINITY } else { m.max(x.abs()) })
}

pub fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// Largest error relative to the largest entry; zero must be matched exactly.
pub fn relative_error(got: &[f64], want: &[f64]) -> f64 {
    let error = largest(&minus(got, want));
    if error == 0.0 { 0.0 } else { error / largest(want) }
}

/// Error at most `bound`, with a message if not.
pub fn within(what: &str, error: f64, bound: f64) -> Result<(), String> {
    if error <= bound { Ok(()) } else { Err(format!("{what}: error {error:.3e} above {bound:.3e}")) }
}

/// Runs a law on every case that obeys as many, at several points, and names all that break it.
pub fn every_case(laws: Laws, law: impl Fn(&Case, &Subject) -> Result<(), String>) {
    let table = cases::all();
    let draws = table.iter().filter(|case| case.laws >= laws).flat_map(|case| (0..3).map(move |draw| (case, draw)));
    let broken: Vec<String> = draws
        .filter_map(|(case, draw)| {
            let g = Graph::new();
            law(case, &Subject::new(&g, case, draw)).err().map(|why| format!("{}, draw {draw}: {why}", case.name))
        })
        .collect();
    assert!(broken.is_empty(), "{} draws of {} cases:\n{}", broken.len(), table.len(), broken.join("\n"));
}
