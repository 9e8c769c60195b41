//! Local rewriting while the graph is built: constants are folded, neutral elements vanish, scalings float outward
//! (to where values are small), and movements of data are merged.
//!
//! Every rule keeps the value up to rounding. Common subexpressions need no rule: the graph stores equal nodes once.

use crate::graph::{Expr, Graph, Id, Node};
use crate::op::{Binary, Op, Unary};
use crate::shape::Shape;

/// The id of a simpler equal expression, if a rule applies.
pub(crate) fn rewrite(graph: &Graph, op: &Op, args: &[Id], shape: &Shape) -> Option<Id> {
    let args: Vec<Expr> = args.iter().map(|&id| graph.at(id)).collect();
    let rule = match op {
        Op::Unary(u) => unary(*u, args[0]),
        Op::Binary(b) => binary(*b, args[0], args[1]),
        Op::Select => select(&args),
        Op::Broadcast => broadcast(args[0], shape),
        Op::Reshape => reshape(args[0], shape),
        Op::Transpose(order) => transpose(args[0], order),
        Op::Slice { start: 0, .. } if args[0].shape() == *shape => Some(args[0]),
        Op::Pad { .. } if args[0].shape() == *shape => Some(args[0]),
        Op::Concat { .. } if args.len() == 1 => Some(args[0]),
        Op::Sum { axis } if args[0].shape().dims[*axis] == 1 => Some(args[0].reshape(shape.dims.clone())),
        Op::Sum { axis } => total(op, Some(*axis), args[0], shape),
        Op::SumRows => total(op, None, args[0], shape),
        Op::Matmul | Op::Contract => product(op, args[0], args[1], shape),
        Op::Pin if args[0].node().op == Op::Pin => Some(args[0]),
        Op::StopGradient if matches!(args[0].node().op, Op::StopGradient | Op::Fill(_)) => Some(args[0]),
        Op::Slice { .. } | Op::Pad { .. } | Op::Concat { .. } | Op::StopGradient | Op::Pin => None,
        Op::Max { .. } | Op::MaxRows | Op::Collect | Op::Distribute | Op::Kth(_) => None,
        Op::Gather | Op::Scatter | Op::Im2col(_) | Op::Col2im(_) => None,
        Op::Input(..) | Op::Variable(_) | Op::Fill(_) | Op::Table(_) | Op::Random(..) | Op::Step => None,
    };
    let moved = || moved_fill(op, &args, shape);
    rule.or_else(moved).or_else(|| lifted(op, &args, shape)).map(|e| e.id)
}

/// True if rules look through a node, so that an expression built from it need not contain it.
pub(crate) fn may_vanish(e: Expr) -> bool {
    let node = e.node();
    let moved = matches!(node.op, Op::Broadcast | Op::Reshape | Op::Transpose(_) | Op::Contract | Op::Fill(_));
    moved || node.op == Op::Binary(Binary::Sub) || scaled(e).is_some()
}

/// Moving a constant fill around leaves a constant fill.
fn moved_fill<'g>(op: &Op, args: &[Expr<'g>], shape: &Shape) -> Option<Expr<'g>> {
    let moves = matches!(
        op,
        Op::Reshape | Op::Transpose(_) | Op::Slice { .. } | Op::Max { .. } | Op::MaxRows | Op::Collect | Op::Distribute
    );
    let first = args.first()?;
    let value = first.as_fill()?;
    (moves || (value == 0.0 && matches!(op, Op::Pad { .. } | Op::Im2col(_) | Op::Col2im(_))))
        .then(|| first.graph.fill(value, shape.clone()))
}

/// An elementwise operation on values that were all broadcast from one smaller shape is done before broadcasting.
fn lifted<'g>(op: &Op, args: &[Expr<'g>], shape: &Shape) -> Option<Expr<'g>> {
    if !op.is_elementwise() {
        return None;
    }
    let mut small: Option<Shape> = None;
    let mut sources = Vec::with_capacity(args.len());
    for a in args {
        let node = a.node();
        if node.op == Op::Broadcast {
            let source = a.graph.at(node.args[0]);
            if small.get_or_insert_with(|| source.shape()) != &source.shape() {
                return None;
            }
            sources.push(source);
        } else if matches!(node.op, Op::Fill(_)) {
            sources.push(*a);
        } else {
            return None;
        }
    }
    let small = small?;
    let graph = args[0].graph;
    let sources: Vec<Expr> =
        sources.into_iter().map(|s| s.as_fill().map_or(s, |v| graph.fill(v, small.clone()))).collect();
    Some(graph.push(op.clone(), &sources, small).broadcast(shape))
}

fn unary<'g>(op: Unary, a: Expr<'g>) -> Option<Expr<'g>> {
    if let Some(x) = a.as_fill() {
        return Some(a.like(op.eval(x)));
    }
    let node = a.node();
    match (op, &node.op) {
        (Unary::Neg, Op::Unary(Unary::Neg)) => Some(a.graph.at(node.args[0])),
        (Unary::Neg, Op::Binary(Binary::Sub)) => Some(a.graph.at(node.args[1]) - a.graph.at(node.args[0])),
        (Unary::Neg, Op::Binary(Binary::Mul)) => {
            let (scale, rest) = scaled(a)?;
            Some(rest * -scale)
        }
        _ => None,
    }
}

/// `(c, x)` if the expression is c·x with a constant c (negation is c = −1).
fn scaled(e: Expr) -> Option<(f64, Expr)> {
    let node = e.node();
    if node.op == Op::Unary(Unary::Neg) {
        Some((-1.0, e.graph.at(node.args[0])))
    } else if node.op == Op::Binary(Binary::Mul) {
        e.graph.at(node.args[0]).as_fill().map(|c| (c, e.graph.at(node.args[1])))
    } else {
        None
    }
}

/// c·x, with the constant first; c = 1 and c = −1 need no product.
fn scale(c: f64, x: Expr) -> Expr {
    if c == 1.0 {
        x
    } else if c == -1.0 {
        -x
    } else if let Some((d, rest)) = scaled(x) {
        scale(c * d, rest)
    } else if x.node().op == Op::Broadcast {
        scale(c, x.graph.at(x.node().args[0])).broadcast(&x.shape())
    } else {
        let node = Node { op: Op::Binary(Binary::Mul), args: vec![x.like(c).id, x.id], shape: x.shape() };
        x.graph.intern(node)
    }
}

fn binary<'g>(op: Binary, a: Expr<'g>, b: Expr<'g>) -> Option<Expr<'g>> {
    let (ca, cb) = (a.as_fill(), b.as_fill());
    if let (Some(x), Some(y)) = (ca, cb) {
        return Some(a.like(op.eval(x, y)));
    }
    match op {
        Binary::Add => add(a, b, ca, cb),
        Binary::Sub => match (ca, cb) {
            (Some(0.0), _) => Some(-b),
            (_, Some(0.0)) => Some(a),
            _ => sub(a, b),
        },
        Binary::Mul => match (ca, cb) {
            (Some(0.0), _) => Some(a),
            (_, Some(0.0)) => Some(b),
            (Some(c), _) if simpler_scaled(c, b) => Some(scale(c, b)),
            (None, Some(c)) => Some(scale(c, a)),
            (None, None) => mul(a, b),
            _ => None,
        },
        Binary::Div => match cb {
            Some(c) if c.recip().is_finite() => Some(scale(c.recip(), a)),
            _ if ca == Some(0.0) => Some(a),
            _ if ca == Some(1.0) => Some(b.recip()),
            _ => scaled(a).map(|(c, x)| scale(c, x / b)),
        },
        Binary::Min | Binary::Max | Binary::Atan2 | Binary::Less | Binary::LessEqual | Binary::Equal => None,
    }
}

fn simpler_scaled(c: f64, x: Expr) -> bool {
    c == 1.0 || c == -1.0 || scaled(x).is_some()
}

fn add<'g>(a: Expr<'g>, b: Expr<'g>, ca: Option<f64>, cb: Option<f64>) -> Option<Expr<'g>> {
    if ca == Some(0.0) {
        return Some(b);
    }
    if cb == Some(0.0) {
        return Some(a);
    }
    match (scaled(a), scaled(b)) {
        (Some((c, x)), Some((d, y))) if c == d => Some(scale(c, x + y)),
        (Some((c, x)), Some((d, y))) if c == -d => Some(if c > 0.0 { scale(c, x - y) } else { scale(d, y - x) }),
        (_, Some((-1.0, y))) => Some(a - y),
        (Some((-1.0, x)), _) => Some(b - x),
        _ if a.id == b.id => Some(scale(2.0, a)),
        _ if a.id > b.id => Some(b + a),
        _ => None,
    }
}

fn sub<'g>(a: Expr<'g>, b: Expr<'g>) -> Option<Expr<'g>> {
    match (scaled(a), scaled(b)) {
        (Some((c, x)), Some((d, y))) if c == d => Some(scale(c, x - y)),
        (Some((c, x)), Some((d, y))) if c == -d => Some(scale(c, x + y)),
        (_, Some((-1.0, y))) => Some(a + y),
        (Some((-1.0, x)), _) => Some(-(x + b)),
        _ => None,
    }
}

fn mul<'g>(a: Expr<'g>, b: Expr<'g>) -> Option<Expr<'g>> {
    match (scaled(a), scaled(b)) {
        (Some((c, x)), Some((d, y))) => Some(scale(c * d, x * y)),
        (Some((c, x)), None) => Some(scale(c, x * b)),
        (None, Some((d, y))) => Some(scale(d, a * y)),
        (None, None) if a.id > b.id => Some(b * a),
        _ => None,
    }
}

fn select<'g>(args: &[Expr<'g>]) -> Option<Expr<'g>> {
    match args[0].as_fill() {
        Some(c) if c != 0.0 => Some(args[1]),
        Some(_) => Some(args[2]),
        None if args[1].id == args[2].id => Some(args[1]),
        None => None,
    }
}

fn broadcast<'g>(a: Expr<'g>, shape: &Shape) -> Option<Expr<'g>> {
    if let Some(value) = a.as_fill() {
        return Some(a.graph.fill(value, shape.clone()));
    }
    let node = a.node();
    (node.op == Op::Broadcast).then(|| a.graph.at(node.args[0]).broadcast(shape))
}

fn reshape<'g>(a: Expr<'g>, shape: &Shape) -> Option<Expr<'g>> {
    if a.shape() == *shape {
        return Some(a);
    }
    let node = a.node();
    if node.op == Op::Reshape {
        return Some(a.graph.at(node.args[0]).reshape(shape.dims.clone()));
    }
    scaled(a).map(|(c, x)| scale(c, x.reshape(shape.dims.clone())))
}

fn transpose<'g>(a: Expr<'g>, order: &[usize]) -> Option<Expr<'g>> {
    if order.windows(2).all(|w| w[0] < w[1]) {
        return Some(a);
    }
    let node = a.node();
    if let Op::Transpose(first) = &node.op {
        let both: Vec<usize> = order.iter().map(|&i| first[i]).collect();
        return Some(a.graph.at(node.args[0]).transpose(&both));
    }
    if node.op == Op::Contract && swaps_last_two(order) {
        return Some(a.graph.at(node.args[1]).contract(a.graph.at(node.args[0]))); // (aᵀb)ᵀ = bᵀa
    }
    scaled(a).map(|(c, x)| scale(c, x.transpose(order)))
}

fn swaps_last_two(order: &[usize]) -> bool {
    let r = order.len();
    order[..r - 2].iter().enumerate().all(|(i, &o)| i == o) && order[r - 1] == r - 2
}

/// Sums of constants, of scaled values, and over axes (or rows, without an axis) that were only repeated.
fn total<'g>(op: &Op, axis: Option<usize>, a: Expr<'g>, shape: &Shape) -> Option<Expr<'g>> {
    let own = a.shape();
    let count = axis.map_or(own.rows.unwrap_or(1), |axis| own.dims[axis]) as f64;
    if let Some(value) = a.as_fill() {
        return Some(a.graph.fill(value * count, shape.clone()));
    }
    if let Some((c, x)) = scaled(a) {
        return Some(scale(c, a.graph.push(op.clone(), &[x], shape.clone())));
    }
    let node = a.node();
    if node.op != Op::Broadcast {
        return None;
    }
    let source = a.graph.at(node.args[0]);
    let from = source.shape();
    // The axis among those before the broadcast, if it was there.
    let before = axis.and_then(|axis| (axis + from.rank()).checked_sub(own.rank()));
    let repeated = match axis {
        Some(_) => before.is_none_or(|i| from.dims[i] == 1),
        None => from.rows.is_none(),
    };
    repeated.then(|| {
        let mut dims = from.dims.clone();
        if let Some(i) = before {
            dims.remove(i);
        }
        scale(count, source.reshape(dims).broadcast(shape))
    })
}

/// Scalings float out of products.
fn product<'g>(op: &Op, a: Expr<'g>, b: Expr<'g>, shape: &Shape) -> Option<Expr<'g>> {
    if a.as_fill() == Some(0.0) || b.as_fill() == Some(0.0) {
        return Some(a.graph.fill(0.0, shape.clone()));
    }
    let (c, x) = scaled(a).unwrap_or((1.0, a));
    let (d, y) = scaled(b).unwrap_or((1.0, b));
    (x.id != a.id || y.id != b.id).then(|| scale(c * d, a.graph.push(op.clone(), &[x, y], shape.clone())))
}
