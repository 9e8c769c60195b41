//! Start values of parameters: pure functions of (seed, replica, stream).

use crate::math::Real;
use crate::random::{Draw, Key, Stream};
use crate::state::State;

/// A law for start values. Fans are those of a matrix `[in, out]` unless given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// The same number everywhere.
    Constant(f64),
    /// U(±bound) with the given bound.
    Uniform(f64),
    /// N(0, σ²) with the given σ.
    Normal(f64),
    /// σ times a standard normal number of those between −2 and 2 (TensorFlow's truncated normal: its own standard
    /// deviation is 0.8796 σ).
    TruncatedNormal(f64),
    /// U(±√(6/(fan_in + fan_out))) (glorot2010).
    GlorotUniform,
    /// N(0, 2/(fan_in + fan_out)) (glorot2010).
    GlorotNormal,
    /// U(±√(6/fan_in)) (he2015).
    HeUniform,
    /// N(0, 2/fan_in) (he2015).
    HeNormal,
    /// A random matrix with orthonormal rows or columns, whichever are fewer (saxe2014orthogonal).
    Orthogonal,
}

impl Init {
    /// All zeros.
    pub const ZEROS: Init = Init::Constant(0.0);

    /// Values for one replica. Streams are counted apart from those of a program, so noise never repeats them.
    pub fn values(&self, dims: &[usize], fans: (usize, usize), key: Key, stream: u32) -> Vec<f64> {
        let len = dims.iter().product();
        let (fan_in, fan_out) = (fans.0 as f64, fans.1 as f64);
        let uniform = |bound: f64| {
            Stream::new(key, stream | 1 << 31).samples(Draw::Uniform).map(move |u| (2.0 * u - 1.0) * bound)
        };
        let normal = |std: f64| Stream::new(key, stream | 1 << 31).samples(Draw::Normal).map(move |z| z * std);
        match self {
            Init::Constant(value) => vec![*value; len],
            Init::Uniform(bound) => uniform(*bound).take(len).collect(),
            Init::Normal(std) => normal(*std).take(len).collect(),
            Init::TruncatedNormal(std) => normal(1.0).filter(|z| z.abs() < 2.0).map(|z| z * std).take(len).collect(),
            Init::GlorotUniform => uniform((6.0 / (fan_in + fan_out)).sqrt()).take(len).collect(),
            Init::GlorotNormal => normal((2.0 / (fan_in + fan_out)).sqrt()).take(len).collect(),
            Init::HeUniform => uniform((6.0 / fan_in).sqrt()).take(len).collect(),
            Init::HeNormal => normal((2.0 / fan_in).sqrt()).take(len).collect(),
            Init::Orthogonal => {
                let [rows, columns] = dims else { panic!("init: orthogonal needs a matrix, not {dims:?}") };
                orthogonal(normal(1.0).take(len).collect(), *rows, *columns)
            }
        }
    }

    /// Sets a variable of a state, each replica from its own key. Vectors count as `[1, n]`.
    pub fn set<T: Real>(&self, state: &mut State<T>, name: &str, dims: &[usize], seed: u64, stream: u32) {
        let fans = match dims {
            [n] => (1, *n),
            [rest @ .., last] => (rest.iter().product(), *last),
            [] => (1, 1),
        };
        self.set_with_fans(state, name, dims, fans, seed, stream);
    }

    /// As [`Init::set`] with fans given, as for the kernels of a convolution.
    pub fn set_with_fans<T: Real>(
        &self,
        state: &mut State<T>,
        name: &str,
        dims: &[usize],
        fans: (usize, usize),
        seed: u64,
        stream: u32,
    ) {
        let len = dims.iter().product();
        let all: Vec<T> =
            state.numbers().flat_map(|r| self.values(dims, fans, Key::new(seed, r), stream)).map(T::from_f64).collect();
        state.set(name, &all, len);
    }
}

/// Gram–Schmidt (twice, which is enough in f64) on the shorter side of a matrix of normals.
fn orthogonal(mut x: Vec<f64>, rows: usize, columns: usize) -> Vec<f64> {
    let by_row = rows <= columns;
    let (count, len) = if by_row { (rows, columns) } else { (columns, rows) };
    let at = |v: usize, i: usize| if by_row { v * columns + i } else { i * columns + v };
    for v in 0..count {
        for _ in 0..2 {
            for w in 0..v {
                let inner: f64 = (0..len).map(|i| x[at(v, i)] * x[at(w, i)]).sum();
                (0..len).for_each(|i| x[at(v, i)] -= inner * x[at(w, i)]);
            }
        }
        let norm = (0..len).map(|i| x[at(v, i)].powi(2)).sum::<f64>().sqrt();
        (0..len).for_each(|i| x[at(v, i)] /= norm);
    }
    x
}
