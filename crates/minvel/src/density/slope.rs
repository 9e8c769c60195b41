//! grad log p of any density, from its values.
//!
//! **Statement.** For tangent v = Σ v^k e_k in coordinates, d log p(v) = Σ v^k d_k with d_k = d log p(P e_k), P the projection
//! onto the tangent space: the d_k are a derivative in coordinates, and grad log p is its Riemannian gradient.
//! **Error.** O(h²), and rounding errors of log p over h. **Checked by** tests/densities/density.rs.

use crate::train::Context;
use crate::{Error, Manifold};
use minvel_engine::{Clock, Graph, State};

/// h.
const STEP: f64 = 1e-5;

/// Values at many points.
pub(super) type Values<'a> = dyn Fn(&[f64]) -> Result<Vec<f64>, Error> + 'a;

/// grad f at points, in the manifold's coordinates.
pub(super) fn by_differences(
    manifold: &dyn Manifold,
    points: &[f64],
    f: &Values,
    context: &Context,
) -> Result<Vec<f64>, Error> {
    let m = manifold.ambient();
    let rows = points.len() / m;
    if rows == 0 {
        return Ok(vec![]);
    }
    let mut derivative = vec![0.0; points.len()];
    for k in 0..m {
        let there = f(&moved(manifold, points, k, STEP, context)?)?;
        let back = f(&moved(manifold, points, k, -STEP, context)?)?;
        (0..rows).for_each(|i| derivative[i * m + k] = (there[i] - back[i]) / (2.0 * STEP));
    }
    gradient(manifold, points, &derivative, context)
}

/// The Riemannian gradient at points, from derivatives in coordinates.
pub(crate) fn gradient(
    manifold: &dyn Manifold,
    points: &[f64],
    derivative: &[f64],
    context: &Context,
) -> Result<Vec<f64>, Error> {
    let m = manifold.ambient();
    let rows = points.len() / m;
    if rows == 0 {
        return Ok(vec![]);
    }
    let g = Graph::new();
    let (x, d) = (g.input_rows("x", rows, [m]), g.input_rows("d", rows, [m]));
    let mut program = g.try_compile::<f64>(&[manifold.gradient(x, d)], &[], &context.options(1))?;
    program.try_run(&mut State::new(1), &[("x", points), ("d", derivative)], Clock { seed: 0, step: 0 })?;
    Ok(program.try_output(0)?.to_vec())
}

/// exp_x(h P e_k) of each point x.
fn moved(manifold: &dyn Manifold, points: &[f64], k: usize, h: f64, context: &Context) -> Result<Vec<f64>, Error> {
    let m = manifold.ambient();
    let g = Graph::new();
    let x = g.input_rows("x", points.len() / m, [m]);
    let axis: Vec<f64> = (0..m).map(|j| if j == k { h } else { 0.0 }).collect();
    let v = manifold.project(x, g.table(&axis, [m]).broadcast(&x.shape()));
    let mut program = g.try_compile::<f64>(&[manifold.exp(x, v)], &[], &context.options(1))?;
    program.try_run(&mut State::new(1), &[("x", points)], Clock { seed: 0, step: 0 })?;
    Ok(program.try_output(0)?.to_vec())
}
