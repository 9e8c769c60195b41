//! Reverse mode: adjoints from the result back to what it depends on.

use super::{check_points, dependents, max_share, partial, slope};
use crate::graph::{Expr, Graph, Id, Node};
use crate::op::Op;
use crate::shape::Shape;

/// Gradients of the sum of all entries of `y` with respect to each of `wrt`.
///
/// For a row value `y` (one energy per row) and row inputs, this is the gradient of each row's own value, since rows
/// do not meet.
pub fn grad<'g>(y: Expr<'g>, wrt: &[Expr<'g>]) -> Vec<Expr<'g>> {
    vjp(y, y.like(1.0), wrt)
}

/// Vector–Jacobian product: gradients of ⟨seed, y⟩ with the seed held constant.
pub fn vjp<'g>(y: Expr<'g>, seed: Expr<'g>, wrt: &[Expr<'g>]) -> Vec<Expr<'g>> {
    let graph = y.graph;
    assert!(seed.shape() == y.shape(), "vjp: the seed {} does not fit {}", seed.shape(), y.shape());
    check_points("grad", wrt.iter().copied());
    let on: Vec<Id> = wrt.iter().map(|e| e.id).collect();
    let depends = dependents(graph, &on, y.id, true);
    let mut adjoints: Vec<Option<Expr>> = vec![None; y.id as usize + 1];
    adjoints[y.id as usize] = Some(seed);
    for id in (0..=y.id).rev() {
        let (true, Some(bar)) = (depends[id as usize], adjoints[id as usize]) else { continue };
        let node = graph.node(id);
        for (i, &arg) in node.args.iter().enumerate() {
            if !depends[arg as usize] {
                continue;
            }
            if let Some(term) = pull_back(graph, id, &node, i, bar) {
                let slot = &mut adjoints[arg as usize];
                *slot = Some(slot.map_or(term, |sum| sum + term));
            }
        }
    }
    let zero = |e: &Expr<'g>| e.like(0.0);
    wrt.iter().map(|e| adjoints.get(e.id as usize).copied().flatten().unwrap_or_else(|| zero(e))).collect()
}

/// The part of argument i's adjoint that comes through this node.
fn pull_back<'g>(graph: &'g Graph, id: Id, node: &Node, i: usize, bar: Expr<'g>) -> Option<Expr<'g>> {
    let arg = |k: usize| graph.at(node.args[k]);
    let own = arg(i).shape();
    Some(match &node.op {
        Op::Unary(f) => bar * slope(*f, arg(0), graph.at(id))?,
        Op::Binary(f) => bar * partial(*f, i, arg(0), arg(1), graph.at(id))?,
        Op::Select => match i {
            0 => return None,
            1 => arg(0).select(bar, bar.like(0.0)),
            _ => arg(0).select(bar.like(0.0), bar),
        },
        Op::Broadcast => sum_to(bar, &own),
        Op::Reshape => bar.reshape(own.dims),
        Op::Transpose(order) => {
            let mut inverse = vec![0; order.len()];
            order.iter().enumerate().for_each(|(to, &from)| inverse[from] = to);
            bar.transpose(&inverse)
        }
        Op::Slice { axis, start } => {
            let after = own.dims[*axis] - start - node.shape.dims[*axis];
            bar.pad(*axis as isize, *start, after)
        }
        Op::Pad { axis, before } => bar.slice(*axis as isize, *before, own.dims[*axis]),
        Op::Concat { axis } => {
            let start = (0..i).map(|k| arg(k).shape().dims[*axis]).sum();
            bar.slice(*axis as isize, start, own.dims[*axis])
        }
        Op::Sum { axis } => bar.expand(*axis as isize).broadcast(&own),
        Op::SumRows => bar.broadcast(&own),
        Op::Pin => bar,
        Op::Max { axis } => max_share(Some(*axis), arg(0), graph.at(id)) * bar.expand(*axis as isize),
        Op::MaxRows => max_share(None, arg(0), graph.at(id)) * bar,
        Op::Matmul => pull_back_matmul(arg(0), arg(1), i, bar),
        Op::Contract if i == 0 => arg(1).matmul(bar.t()),
        Op::Contract => arg(0).matmul(bar),
        Op::Collect => bar.distribute(),
        Op::Distribute => bar.collect(),
        Op::Gather if i == 0 => bar.scatter(arg(1), own.dims[0]),
        Op::Scatter if i == 1 => bar.gather(arg(0)),
        Op::Im2col(w) => bar.col2im(*w, [own.dims[0], own.dims[1], own.dims[2]]),
        Op::Col2im(w) => bar.im2col(*w),
        // An index has no derivative.
        Op::Gather | Op::Scatter => return None,
        Op::Kth(_) | Op::StopGradient => return None,
        Op::Input(..) | Op::Variable(_) | Op::Fill(_) | Op::Table(_) | Op::Random(..) | Op::Step => {
            unreachable!("{} has no arguments", node.op.name())
        }
    })
}

/// Adjoint of one factor of a product; a factor without rows meets all rows of the other.
fn pull_back_matmul<'g>(a: Expr<'g>, b: Expr<'g>, i: usize, bar: Expr<'g>) -> Expr<'g> {
    match (a.shape().rows.is_some(), b.shape().rows.is_some(), i) {
        (true, false, 1) => a.contract(bar),
        (false, true, 0) => bar.t().contract(b.t()),
        (_, _, 0) => bar.matmul(b.t()),
        _ => a.t().matmul(bar),
    }
}

/// The adjoint of a broadcast: sums over everything that was repeated.
fn sum_to<'g>(bar: Expr<'g>, shape: &Shape) -> Expr<'g> {
    let mut sum = bar;
    let lead = bar.shape().rank() - shape.rank();
    for _ in 0..lead {
        sum = sum.sum(0);
    }
    for (axis, &len) in shape.dims.iter().enumerate() {
        if len == 1 && sum.shape().dims[axis] != 1 {
            sum = sum.sum(axis as isize).expand(axis as isize);
        }
    }
    if shape.rows.is_none() && bar.shape().rows.is_some() {
        sum = sum.sum_rows();
    }
    sum
}
