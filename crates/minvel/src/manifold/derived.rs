//! What follows from exp, log and the metric: the defaults of [`Manifold`].
//!
//! **Statement.** With an orthonormal frame e at x: grad E = Σ (dE·e_j)e_j, normal vectors Σ z_j e_j, normal coordinates
//! v_j = ⟨e_j, log_x y⟩, and dvol = √det⟨∂_i exp_x, ∂_j exp_x⟩ dv. **Source.** docs/math §3.1.
//! **Conventions.** The frame is Gram and Schmidt's of the projected axes, each time the longest that is left: it jumps from
//! place to place, what is made of it does not depend on it. All is differentiable but for those jumps.
//! **Error.** Some rounding errors for a metric of moderate condition. O(n·m) vectors of m numbers for a frame: meant for
//! tens of dimensions, not for hundreds. **Checked by** tests/theory/manifold_defaults.rs, against closed forms.

use super::{Grid, Manifold, check_numbers, quadrature};
use minvel_engine::{Clock, Device, Draw, Expr, Graph, Options, Shape, State, concat, jvp, reference};
use std::f64::consts::TAU;

/// How far `settle` may move a user's point, as a share of its largest number: data are often rounded to six digits.
const TOLERANCE: f64 = 1e-5;
/// Injectivity radii over the deviation of the base law.
const DEVIATIONS: f64 = 6.0;

/// The numbers of a point in every row.
fn everywhere<'g>(point: &[f64], like: &Shape, graph: &'g Graph) -> Expr<'g> {
    graph.table(point, [point.len()]).broadcast(&like.with_dims([point.len()]))
}

fn axis<'g>(like: Expr<'g>, k: usize) -> Expr<'g> {
    let m = like.shape().features();
    let unit: Vec<f64> = (0..m).map(|j| f64::from(j == k)).collect();
    everywhere(&unit, &like.shape(), like.graph())
}

pub(super) fn project<'g>(manifold: &(impl Manifold + ?Sized), x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
    let x = x.pin();
    jvp(&[manifold.settle(x)], &[(x, v)])[0]
}

/// n tangent vectors at x with ⟨e_i, e_j⟩ = δ_ij.
pub(super) fn frame<'g>(manifold: &(impl Manifold + ?Sized), x: Expr<'g>) -> Vec<Expr<'g>> {
    let mut left: Vec<Expr> = (0..manifold.ambient()).map(|k| manifold.project(x, axis(x, k))).collect();
    let mut frame: Vec<Expr> = vec![];
    for j in 0..manifold.dim() {
        let squares: Vec<Expr> = left.iter().map(|u| manifold.inner(x, *u, *u)).collect();
        // Of equally long ones the first: later ones count a little less.
        let ranks: Vec<Expr> = squares.iter().enumerate().map(|(k, s)| *s * (1.0 - 1e-3 * k as f64)).collect();
        let longest = ranks[1..].iter().fold(ranks[0], |a, b| a.max(*b));
        let mut chosen = left[0];
        for (u, rank) in left.iter().zip(&ranks).skip(1) {
            chosen = rank.equal(longest).expand(-1).select(*u, chosen);
        }
        let e = chosen * manifold.inner(x, chosen, chosen).rsqrt().expand(-1);
        frame.push(e);
        if j + 1 < manifold.dim() {
            left.iter_mut().for_each(|u| *u = *u - manifold.inner(x, *u, e).expand(-1) * e);
        }
    }
    frame
}

/// Σ_j y_j e_j, of as many numbers as there are vectors.
pub(super) fn spanned<'g>(frame: &[Expr<'g>], y: Expr<'g>) -> Expr<'g> {
    let parts = frame.iter().enumerate().map(|(j, e)| y.slice(-1, j, 1) * *e);
    parts.reduce(|a, b| a + b).expect("a manifold has a dimension")
}

pub(super) fn gradient<'g>(manifold: &(impl Manifold + ?Sized), x: Expr<'g>, derivative: Expr<'g>) -> Expr<'g> {
    let parts = frame(manifold, x).into_iter().map(|e| derivative.dot(e).expand(-1) * e);
    parts.reduce(|a, b| a + b).expect("a manifold has a dimension")
}

pub(super) fn to_chart<'g>(manifold: &(impl Manifold + ?Sized), x: Expr<'g>, centre: Expr<'g>) -> Expr<'g> {
    let v = manifold.log(centre, x);
    let parts = frame(manifold, centre).into_iter().map(|e| manifold.inner(centre, e, v).expand(-1));
    concat(&parts.collect::<Vec<_>>(), -1)
}

pub(super) fn exp_log_volume<'g>(manifold: &(impl Manifold + ?Sized), x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
    let v = v.pin();
    let y = x + manifold.exp_delta(x, v);
    let columns: Vec<Expr> = frame(manifold, x).into_iter().map(|e| jvp(&[y], &[(v, e)])[0]).collect();
    log_root_det(columns.len(), |i, j| manifold.inner(y, columns[i], columns[j]))
}

/// ½ log det of a positive matrix, by Cholesky's method.
fn log_root_det<'g>(n: usize, entry: impl Fn(usize, usize) -> Expr<'g>) -> Expr<'g> {
    let mut factor: Vec<Vec<Expr>> = vec![];
    for i in 0..n {
        let mut row: Vec<Expr> = vec![];
        for (j, above) in factor.iter().enumerate() {
            let left = (0..j).fold(entry(i, j), |left, k| left - row[k] * above[k]);
            row.push(left / above[j]);
        }
        row.push(row.iter().fold(entry(i, i), |left, c| left - *c * *c).sqrt());
        factor.push(row);
    }
    let logs = factor.iter().enumerate().map(|(i, row)| row[i].log());
    logs.reduce(|a, b| a + b).expect("a manifold has a dimension")
}

/// Of the base law: as wide as a normal law is, or as the injectivity radius allows.
fn deviation(manifold: &(impl Manifold + ?Sized)) -> f64 {
    (manifold.injectivity() / DEVIATIONS).min(1.0)
}

pub(super) fn sample_base<'g>(
    manifold: &(impl Manifold + ?Sized),
    graph: &'g Graph,
    rows: usize,
    stream: u32,
) -> Expr<'g> {
    let z = graph.random_rows(Draw::Normal, stream, rows, [manifold.ambient()]);
    let origin = everywhere(&manifold.origin(), &z.shape(), graph);
    manifold.exp(origin, deviation(manifold) * manifold.tangent_normal(origin, z)).stop_gradient()
}

pub(super) fn base_energy<'g>(manifold: &(impl Manifold + ?Sized), x: Expr<'g>) -> Expr<'g> {
    let origin = everywhere(&manifold.origin(), &x.shape(), x.graph());
    let variance = deviation(manifold).powi(2);
    let v = manifold.log(origin, x).pin();
    let constant = 0.5 * manifold.dim() as f64 * (TAU * variance).ln();
    0.5 / variance * manifold.inner(origin, v, v) + constant + manifold.exp_log_volume(origin, v)
}

pub(super) fn grid(manifold: &(impl Manifold + ?Sized), resolution: usize, radius: f64) -> Option<Grid> {
    let n = manifold.dim();
    if !(1..=3).contains(&n) {
        return None;
    }
    if manifold.injectivity() == f64::INFINITY && manifold.volume().is_none() {
        return Some(about_the_origin(manifold, quadrature::midpoint(-radius, radius, resolution)));
    }
    let rows = resolution.pow(n as u32);
    let weight = manifold.volume()? / rows as f64;
    let g = Graph::new();
    let points = numbers(manifold.sample_base(&g, rows, 0), &[], resolution as u32);
    Some(Grid { points, weights: vec![weight; rows] })
}

/// A rule for each normal coordinate about the origin.
fn about_the_origin(manifold: &(impl Manifold + ?Sized), rule: quadrature::Rule) -> Grid {
    let n = manifold.dim();
    let flat = quadrature::tensor(rule, n);
    let g = Graph::new();
    let y = g.input_rows("y", flat.weights.len(), [n]);
    let origin = everywhere(&manifold.origin(), &y.shape(), &g);
    let v = spanned(&frame(manifold, origin), y);
    let both = concat(&[manifold.exp(origin, v), manifold.exp_log_volume(origin, v).expand(-1)], -1);
    let values = numbers(both, &[("y", &flat.points)], 0);
    let m = manifold.ambient();
    Grid {
        points: values.chunks(m + 1).flat_map(|row| &row[..m]).copied().collect(),
        weights: values.chunks(m + 1).zip(&flat.weights).map(|(row, w)| w * row[m].exp()).collect(),
    }
}

/// The values of an expression in f64, by a program.
fn numbers(value: Expr, inputs: &[(&str, &[f64])], step: u32) -> Vec<f64> {
    let options = Options { device: Device::Cpu, ..Options::default() };
    let mut program = value.graph().compile::<f64>(&[value], &[], &options);
    program.run(&mut State::new(1), inputs, Clock { seed: 0, step });
    program.output(0).to_vec()
}

pub(super) fn check(manifold: &(impl Manifold + ?Sized), point: &[f64]) -> Result<(), String> {
    check_numbers(manifold, point)?;
    let g = Graph::new();
    let settled = manifold.settle(g.input_rows("x", 1, [point.len()]));
    let settled = &reference::evaluate(&[settled], &[("x", point.to_vec())].into(), 0, 0, 0)[0];
    let off = point.iter().zip(settled).map(|(a, b)| (a - b).abs()).fold(0.0, |a: f64, b| if b > a { b } else { a });
    let size = point.iter().fold(1.0f64, |a, b| a.max(b.abs()));
    // A settled point that is no number is off too.
    if settled.iter().all(|x| x.is_finite()) && off <= TOLERANCE * size {
        return Ok(());
    }
    Err(format!("the point {point:?} is not on {manifold}: the nearest point there is {settled:?}"))
}
