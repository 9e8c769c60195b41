//! Drawing points inside a program: choices, directions, and rejection without a loop.
//!
//! **Statement.** A program has no loops, so a rejection sampler makes K proposals at once and takes the first that is
//! accepted. With acceptance rate a, K = ⌈log 10⁻⁹/log(1−a)⌉ proposals all fail with probability at most 10⁻⁹; the last
//! one is taken then. **Source.** devroye1986. **Conventions.** Random numbers are arguments, or come from the stream
//! given and its substreams. **Error.** Hence 10⁻⁹ in total variation; uniform numbers carry 23 bits.
//! **Checked by** tests/theory/energy_laws.rs (samplers against quadrature).

use minvel_engine::{Expr, Graph};
use std::f64::consts::TAU;

/// Proposals that all fail with probability at most 10⁻⁹, given the acceptance rate of one.
pub fn trials(acceptance: f64) -> usize {
    let fail = (1.0 - acceptance).clamp(0.0, 0.999);
    (1e-9f64.ln() / fail.ln()).ceil().max(1.0) as usize
}

/// Along the first axis of `[K, …]`: the value of the first accepted proposal, else of the last.
pub fn first_accepted<'g>(accept: Expr<'g>, value: Expr<'g>) -> Expr<'g> {
    let count = accept.shape().dims[0];
    let (last, rest) = (value.at(0, count - 1), (0..count - 1).rev());
    rest.fold(last, |after, k| accept.at(0, k).select(value.at(0, k), after))
}

/// Indices 0, 1, … with the probabilities `weights` (which need not add up to one) from uniform numbers u.
pub fn choose<'g>(u: Expr<'g>, weights: &[f64]) -> Expr<'g> {
    let total: f64 = weights.iter().sum();
    let mut below = 0.0;
    let mut index = u.like(0.0);
    for w in &weights[..weights.len() - 1] {
        below += w / total;
        index = index + u.like(below).less(u);
    }
    index
}

/// A table `[k, …]` of numbers, one entry for each index.
pub fn lookup<'g>(graph: &'g Graph, values: &[f64], dims: &[usize], index: Expr<'g>) -> Expr<'g> {
    graph.table(values, dims).gather(index)
}

/// z/|z| along the last axis (0 for 0).
pub fn direction(z: Expr) -> Expr {
    z * z.square().sum(-1).max(1e-30).rsqrt().expand(-1)
}

/// Beta(a, a) with a = (m−1)/2 from two uniform numbers, m ≥ 2: e = ½(1 + √(1 − u^{2/(m−2)}) cos 2πv), and 1 − e.
///
/// 2e − 1 is a coordinate of a uniform point on S^{m−1}, and √(1 − u^{2/(m−2)}) the length of its projection on a
/// plane. Source: ulrich1984.
pub fn symmetric_beta<'g>(m: usize, u: Expr<'g>, v: Expr<'g>) -> (Expr<'g>, Expr<'g>) {
    let cosine = (TAU * v).cos();
    let side = match m {
        2 => cosine,
        _ => (-(u.log() * (2.0 / (m as f64 - 2.0))).expm1()).sqrt() * cosine,
    };
    (0.5 * (1.0 + side), 0.5 * (1.0 - side))
}
