//! The simple version that is right: an interpreter in f64, one node after another, with plain loops.
//!
//! Compiled programs are tested against it. It is slow on purpose: nothing is fused, tiled or vectorised.

use crate::graph::{Expr, Graph, Id, Node};
use crate::op::{Element, Op, Window};
use crate::random::{self, Key};
use crate::shape::Shape;
use std::collections::HashMap;

/// Values by name, row-major, of one replica; bytes as the numbers from 0 to 255.
pub type Values<'a> = HashMap<&'a str, Vec<f64>>;

/// Evaluates expressions for one replica, given inputs and variables by name.
pub fn evaluate(outputs: &[Expr], values: &Values, seed: u64, replica: u32, step: u32) -> Vec<Vec<f64>> {
    let Some(first) = outputs.first() else { return vec![] };
    let graph = first.graph;
    let last = outputs.iter().map(|e| e.id).max().unwrap_or(0);
    let mut needed = vec![false; last as usize + 1];
    outputs.iter().for_each(|e| needed[e.id as usize] = true);
    for id in (0..=last as usize).rev() {
        if needed[id] {
            graph.node(id as Id).args.iter().for_each(|&a| needed[a as usize] = true);
        }
    }
    let mut done: Vec<Vec<f64>> = Vec::new();
    for id in 0..=last {
        let node = graph.node(id);
        let value = match (&node.op, needed[id as usize]) {
            (_, false) => vec![],
            (Op::Random(draw, stream), _) => noise(*draw, Key::new(seed, replica), *stream, step, &node.shape),
            (Op::Step, _) => vec![step as f64],
            (Op::Input(name, _) | Op::Variable(name), _) => {
                let value = values.get(&**name).unwrap_or_else(|| panic!("reference: no value for `{name}`"));
                assert!(value.len() == node.shape.len(), "reference: `{name}` needs {} values", node.shape.len());
                let bytes = matches!(node.op, Op::Input(_, Element::Byte));
                value.iter().map(|v| if bytes { v / 255.0 } else { *v }).collect()
            }
            _ => apply(graph, &node, &done),
        };
        debug_assert!(!needed[id as usize] || value.len() == node.shape.len(), "{:?}", graph.at(id));
        done.push(value);
    }
    outputs.iter().map(|e| done[e.id as usize].clone()).collect()
}

fn noise(draw: random::Draw, key: Key, stream: u32, step: u32, shape: &Shape) -> Vec<f64> {
    let rows = shape.rows.unwrap_or(1);
    let features = shape.features();
    (0..rows * features)
        .map(|i| random::element(draw, key, stream, step, rows as u32, (i / features) as u32, (i % features) as u32))
        .collect()
}

/// All axes of a shape, the row axis first if there is one.
fn axes(shape: &Shape) -> Vec<usize> {
    shape.rows.iter().chain(&shape.dims).copied().collect()
}

/// Multi-index of a flat position.
fn unravel(mut flat: usize, dims: &[usize]) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    for i in (0..dims.len()).rev() {
        index[i] = flat % dims[i];
        flat /= dims[i];
    }
    index
}

/// Flat position of a multi-index, right-aligned to `dims`, with axes of length 1 repeated.
fn ravel(index: &[usize], dims: &[usize]) -> usize {
    let lead = index.len() - dims.len();
    dims.iter().zip(&index[lead..]).fold(0, |flat, (&d, &i)| flat * d + if d == 1 { 0 } else { i })
}

fn apply(graph: &Graph, node: &Node, done: &[Vec<f64>]) -> Vec<f64> {
    let arg = |k: usize| &done[node.args[k] as usize];
    let shape_of = |k: usize| graph.at(node.args[k]).shape();
    let len = node.shape.len();
    let lead = usize::from(node.shape.rows.is_some());
    let moved = |from: &dyn Fn(Vec<usize>) -> Option<usize>| moved(&node.shape, arg(0), from);
    match &node.op {
        Op::Fill(bits) => vec![f64::from_bits(*bits); len],
        Op::Table(bits) => bits.iter().map(|&b| f64::from_bits(b)).collect(),
        Op::Unary(u) => arg(0).iter().map(|&x| u.eval(x)).collect(),
        Op::Binary(b) => arg(0).iter().zip(arg(1)).map(|(&x, &y)| b.eval(x, y)).collect(),
        Op::Select => (0..len).map(|i| if arg(0)[i] != 0.0 { arg(1)[i] } else { arg(2)[i] }).collect(),
        Op::Broadcast => {
            let from = shape_of(0);
            moved(&|mut index| {
                let row = if lead == 1 { index.remove(0) } else { 0 };
                let flat = ravel(&index, &from.dims);
                Some(if from.rows.is_some() { row * from.features() + flat } else { flat })
            })
        }
        Op::Reshape | Op::StopGradient | Op::Pin | Op::Collect | Op::Distribute => arg(0).clone(),
        Op::Transpose(order) => {
            let from = axes(&shape_of(0));
            moved(&|index| {
                let mut source = index.clone();
                order.iter().enumerate().for_each(|(to, &o)| source[lead + o] = index[lead + to]);
                Some(ravel(&source, &from))
            })
        }
        Op::Slice { axis, start } => {
            let from = axes(&shape_of(0));
            moved(&|mut index| {
                index[lead + axis] += start;
                Some(ravel(&index, &from))
            })
        }
        Op::Pad { axis, before } => {
            let from = axes(&shape_of(0));
            moved(&|mut index| {
                let inside = index[lead + axis].checked_sub(*before)?;
                index[lead + axis] = inside;
                (inside < from[lead + axis]).then(|| ravel_exact(&index, &from))
            })
        }
        Op::Concat { axis } => {
            let parts: Vec<(&[f64], Shape)> = (0..node.args.len()).map(|k| (&arg(k)[..], shape_of(k))).collect();
            concat(&parts, *axis, &node.shape)
        }
        Op::Sum { axis } => fold(arg(0), &shape_of(0), lead + axis, 0.0, |a, b| a + b),
        Op::Max { axis } => fold(arg(0), &shape_of(0), lead + axis, f64::NEG_INFINITY, maximum),
        Op::SumRows => fold(arg(0), &shape_of(0), 0, 0.0, |a, b| a + b),
        Op::MaxRows => fold(arg(0), &shape_of(0), 0, f64::NEG_INFINITY, maximum),
        Op::Matmul => matmul(arg(0), &shape_of(0), arg(1), &shape_of(1), &node.shape),
        Op::Contract => contract(arg(0), &shape_of(0), arg(1), &shape_of(1)),
        Op::Gather => {
            let width: usize = shape_of(0).dims[1..].iter().product();
            arg(1).iter().flat_map(|&i| arg(0)[i as usize * width..][..width].iter().copied()).collect()
        }
        Op::Scatter => scatter(arg(0), arg(1), &node.shape),
        Op::Im2col(w) => {
            let mut columns = vec![0.0; len];
            windows(w, &shape_of(0), &mut |pixel, column| columns[column] += arg(0)[pixel]);
            columns
        }
        Op::Col2im(w) => {
            let mut image = vec![0.0; len];
            windows(w, &node.shape, &mut |pixel, column| image[pixel] += arg(0)[column]);
            image
        }
        Op::Kth(k) => {
            let mut sorted = arg(0).clone();
            sorted.sort_by(f64::total_cmp);
            vec![sorted[*k]]
        }
        Op::Input(..) | Op::Variable(_) | Op::Random(..) | Op::Step => unreachable!("leaves are handled above"),
    }
}

/// Each entry copied from one of the argument, or zero.
fn moved(shape: &Shape, x: &[f64], from: &dyn Fn(Vec<usize>) -> Option<usize>) -> Vec<f64> {
    let dims = axes(shape);
    (0..shape.len()).map(|i| from(unravel(i, &dims)).map_or(0.0, |k| x[k])).collect()
}

fn concat(parts: &[(&[f64], Shape)], axis: usize, shape: &Shape) -> Vec<f64> {
    let (dims, along) = (axes(shape), axis + usize::from(shape.rows.is_some()));
    let entry = |i: usize| {
        let mut index = unravel(i, &dims);
        let mut k = 0;
        while index[along] >= parts[k].1.dims[axis] {
            index[along] -= parts[k].1.dims[axis];
            k += 1;
        }
        parts[k].0[ravel_exact(&index, &axes(&parts[k].1))]
    };
    (0..shape.len()).map(entry).collect()
}

fn scatter(index: &[f64], values: &[f64], shape: &Shape) -> Vec<f64> {
    let width = shape.dims[1..].iter().product::<usize>();
    let mut sum = vec![0.0; shape.len()];
    for (k, &i) in index.iter().enumerate() {
        (0..width).for_each(|j| sum[i as usize * width + j] += values[k * width + j]);
    }
    sum
}

fn ravel_exact(index: &[usize], dims: &[usize]) -> usize {
    dims.iter().zip(index).fold(0, |flat, (&d, &i)| flat * d + i)
}

/// The larger of two; NaN wins.
fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b { a } else { b }
}

fn fold(x: &[f64], shape: &Shape, axis: usize, start: f64, f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let dims = axes(shape);
    let inner: usize = dims[axis + 1..].iter().product();
    let outer: usize = dims[..axis].iter().product();
    let at = |o: usize, k: usize, i: usize| x[(o * dims[axis] + k) * inner + i];
    (0..outer * inner).map(|p| (0..dims[axis]).fold(start, |acc, k| f(acc, at(p / inner, k, p % inner)))).collect()
}

fn matmul(a: &[f64], sa: &Shape, b: &[f64], sb: &Shape, out: &Shape) -> Vec<f64> {
    let r = out.rank();
    let (m, k, n) = (sa.dims[r - 2], sa.dims[r - 1], sb.dims[r - 1]);
    let batch: usize = out.dims[..r - 2].iter().product();
    let mut c = vec![0.0; out.len()];
    for row in 0..out.rows.unwrap_or(1) {
        for q in 0..batch {
            let base = |s: &Shape, size: usize| (if s.rows.is_some() { row * batch } else { 0 } + q) * size;
            let (oa, ob, oc) = (base(sa, m * k), base(sb, k * n), base(out, m * n));
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                c[oc + i * n + j] = (0..k).map(|p| a[oa + i * k + p] * b[ob + p * n + j]).sum();
            }
        }
    }
    c
}

fn contract(a: &[f64], sa: &Shape, b: &[f64], sb: &Shape) -> Vec<f64> {
    let r = sa.rank();
    let (m, k, n) = (sa.dims[r - 2], sa.dims[r - 1], sb.dims[r - 1]);
    let batch: usize = sa.dims[..r - 2].iter().product();
    let mut c = vec![0.0; batch * k * n];
    for row in 0..sa.rows.unwrap_or(1) {
        for q in 0..batch {
            for i in 0..m {
                let block = (row * batch + q) * m + i;
                for (p, j) in (0..k).flat_map(|p| (0..n).map(move |j| (p, j))) {
                    c[(q * k + p) * n + j] += a[block * k + p] * b[block * n + j];
                }
            }
        }
    }
    c
}

/// Visits every (pixel, column entry) pair of the windows of an image, row by row.
fn windows(w: &Window, image: &Shape, visit: &mut dyn FnMut(usize, usize)) {
    let [h, width, c] = [image.dims[0], image.dims[1], image.dims[2]];
    let [oh, ow] = w.output([h, width]);
    let [kh, kw] = w.kernel;
    for row in 0..image.rows.unwrap_or(1) {
        for i in 0..c * kh * kw * oh * ow {
            let [oy, ox, ky, kx, ch] = unravel(i, &[oh, ow, kh, kw, c])[..] else { unreachable!() };
            let y = (oy * w.stride + ky).wrapping_sub(w.pad[0][0]);
            let x = (ox * w.stride + kx).wrapping_sub(w.pad[1][0]);
            if y < h && x < width {
                visit(row * image.features() + (y * width + x) * c + ch, row * c * kh * kw * oh * ow + i);
            }
        }
    }
}
