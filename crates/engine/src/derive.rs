//! Derivatives as expressions: `grad` (reverse), `jvp` (forward), `difference` (exact finite difference); and `replace`,
//! which builds the same of other values.
//!
//! All of them return ordinary expressions of the same graph, so they nest to any order.

mod difference;
mod grad;
mod jvp;
mod replace;

pub use difference::difference;
pub use grad::{grad, vjp};
pub use jvp::jvp;
pub use replace::replace;

use crate::expr::may_vanish;
use crate::graph::{Expr, Graph, Id};
use crate::op::{Binary, Op, Unary};

/// Refuses to differentiate by a node that may have been rewritten away: the answer could be silently wrong.
fn check_points<'g>(what: &str, points: impl Iterator<Item = Expr<'g>>) {
    for x in points {
        assert!(!may_vanish(x), "{what}: {x:?} may be simplified away; build the expression from `x.pin()` instead");
    }
}

/// Which nodes up to `last` depend on one of `on` (for `differentiably`, paths through stop-gradient do not count).
fn dependents(graph: &Graph, on: &[Id], last: Id, differentiably: bool) -> Vec<bool> {
    let nodes = graph.nodes();
    let mut depends = vec![false; last as usize + 1];
    for id in 0..=last {
        let node = &nodes[id as usize];
        let blocked = differentiably && matches!(node.op, Op::StopGradient | Op::Kth(_));
        depends[id as usize] = on.contains(&id) || (!blocked && node.args.iter().any(|&a| depends[a as usize]));
    }
    depends
}

/// f′(x) for y = f(x), or `None` where it is zero everywhere.
fn slope<'g>(f: Unary, x: Expr<'g>, y: Expr<'g>) -> Option<Expr<'g>> {
    Some(match f {
        Unary::Neg => x.like(-1.0),
        Unary::Abs => x.sign(),
        Unary::Sign | Unary::Floor => return None,
        Unary::Recip => -y.square(),
        Unary::Sqrt => 0.5 / y,
        Unary::Rsqrt => -0.5 * y * y.square(),
        Unary::Exp => y,
        Unary::Expm1 => y + 1.0,
        Unary::Log => x.recip(),
        Unary::Log1p => (x + 1.0).recip(),
        Unary::Tanh => 1.0 - y.square(),
        Unary::Sigmoid => y * (1.0 - y),
        Unary::Softplus => x.sigmoid(),
        Unary::Sin => x.cos(),
        Unary::Cos => -x.sin(),
    })
}

/// ∂f/∂(argument i) for y = f(x, z), or `None` where it is zero everywhere.
fn partial<'g>(f: Binary, i: usize, x: Expr<'g>, z: Expr<'g>, y: Expr<'g>) -> Option<Expr<'g>> {
    Some(match (f, i) {
        (Binary::Add, _) | (Binary::Sub, 0) => x.like(1.0),
        (Binary::Sub, _) => x.like(-1.0),
        (Binary::Mul, 0) => z,
        (Binary::Mul, _) => x,
        (Binary::Div, 0) => z.recip(),
        (Binary::Div, _) => -y / z,
        // Ties go to the first argument, so that the two partials always add up to one.
        (Binary::Min, 0) => x.less_equal(z),
        (Binary::Min, _) => z.less(x),
        (Binary::Max, 0) => z.less_equal(x),
        (Binary::Max, _) => x.less(z),
        (Binary::Atan2, 0) => z / (x.square() + z.square()),
        (Binary::Atan2, _) => -x / (x.square() + z.square()),
        (Binary::Less | Binary::LessEqual | Binary::Equal, _) => return None,
    })
}

/// Where the maximum over an axis (or over the rows, without one) is attained, shared equally between ties.
fn max_share<'g>(axis: Option<usize>, x: Expr<'g>, top: Expr<'g>) -> Expr<'g> {
    let (top, count) = match axis.map(|axis| axis as isize) {
        Some(axis) => {
            let top = top.expand(axis);
            (top, x.equal(top).sum(axis).expand(axis))
        }
        None => (top, x.equal(top).sum_rows()),
    };
    x.equal(top) / count
}
