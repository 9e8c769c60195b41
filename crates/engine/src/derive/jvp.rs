//! Forward mode: tangents from what is varied to the result.

use super::{check_points, dependents, max_share, partial, slope};
use crate::graph::{Expr, Graph, Id, Node};
use crate::op::Op;

/// Jacobian–vector product: the derivative of each of `ys` when every `(x, tangent)` varies as x + t·tangent.
pub fn jvp<'g>(ys: &[Expr<'g>], along: &[(Expr<'g>, Expr<'g>)]) -> Vec<Expr<'g>> {
    let Some(last) = ys.iter().map(|y| y.id).max() else { return vec![] };
    let graph = ys[0].graph;
    check_points("jvp", along.iter().map(|(x, _)| *x));
    let on: Vec<Id> = along.iter().map(|(x, _)| x.id).collect();
    let depends = dependents(graph, &on, last, true);
    let mut tangents: Vec<Option<Expr>> = vec![None; last as usize + 1];
    for &(x, t) in along {
        assert!(x.shape() == t.shape(), "jvp: the tangent {} does not fit {}", t.shape(), x.shape());
        if x.id <= last {
            tangents[x.id as usize] = Some(t);
        }
    }
    for id in 0..=last {
        if depends[id as usize] && tangents[id as usize].is_none() {
            tangents[id as usize] = push_forward(graph, id, &graph.node(id), &tangents);
        }
    }
    ys.iter().map(|y| tangents[y.id as usize].unwrap_or_else(|| y.like(0.0))).collect()
}

fn push_forward<'g>(graph: &'g Graph, id: Id, node: &Node, tangents: &[Option<Expr<'g>>]) -> Option<Expr<'g>> {
    let arg = |k: usize| graph.at(node.args[k]);
    let dot = |k: usize| tangents[node.args[k] as usize];
    // A linear operation acts on the tangents as on the values; a missing tangent is zero.
    let linear = |args: &[Expr<'g>]| graph.push(node.op.clone(), args, node.shape.clone());
    let sum = |a: Option<Expr<'g>>, b: Option<Expr<'g>>| match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    match &node.op {
        Op::Select => {
            let or_zero = |k: usize| dot(k).unwrap_or_else(|| arg(k).like(0.0));
            (dot(1).is_some() || dot(2).is_some()).then(|| arg(0).select(or_zero(1), or_zero(2)))
        }
        Op::Unary(f) => dot(0).and_then(|t| slope(*f, arg(0), graph.at(id)).map(|p| t * p)),
        Op::Binary(f) => {
            let term = |i: usize| dot(i).and_then(|t| partial(*f, i, arg(0), arg(1), graph.at(id)).map(|p| t * p));
            let first = term(0);
            sum(first, term(1))
        }
        Op::Concat { .. } => {
            let parts: Vec<Expr> = (0..node.args.len()).map(|k| dot(k).unwrap_or_else(|| arg(k).like(0.0))).collect();
            Some(linear(&parts))
        }
        Op::Matmul | Op::Contract => sum(dot(0).map(|t| linear(&[t, arg(1)])), dot(1).map(|t| linear(&[arg(0), t]))),
        Op::Gather => dot(0).map(|t| linear(&[t, arg(1)])),
        Op::Scatter => dot(1).map(|t| linear(&[arg(0), t])),
        Op::Max { axis } => dot(0).map(|t| (max_share(Some(*axis), arg(0), graph.at(id)) * t).sum(*axis as isize)),
        Op::MaxRows => dot(0).map(|t| (max_share(None, arg(0), graph.at(id)) * t).sum_rows()),
        Op::StopGradient | Op::Kth(_) => None,
        Op::Pin => dot(0),
        Op::Broadcast | Op::Reshape | Op::Transpose(_) | Op::Slice { .. } | Op::Pad { .. } | Op::Sum { .. } => {
            dot(0).map(|t| linear(&[t]))
        }
        Op::SumRows | Op::Collect | Op::Distribute | Op::Im2col(_) | Op::Col2im(_) => dot(0).map(|t| linear(&[t])),
        Op::Input(..) | Op::Variable(_) | Op::Fill(_) | Op::Table(_) | Op::Random(..) | Op::Step => None,
    }
}
