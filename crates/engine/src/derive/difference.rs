//! Exact differences: f(x + δ) − f(x), propagated operation by operation, so that nothing cancels for small δ.
//!
//! Statement: for y = f(a), Δy = f(a + Δa) − f(a) is computed from a, y and Δa by an identity that has Δa as a factor
//! (`Δ tanh a = tanh Δa·(1 − tanh a·tanh(a + Δa))`, `Δeᵃ = eᵃ·expm1 Δa`, …). The relative error is then a few
//! rounding errors for any δ, where plain subtraction loses log₁₀(|f|/|Δf|) digits.
//! Checked by: tests/engine/conformance.rs, for |δ| down to 1e-12 in f32.

use super::{check_points, dependents};
use crate::graph::{Expr, Graph, Id, Node};
use crate::op::{Binary, Op, Unary};

/// f(x + δ) − f(x) without cancellation, for an expression `f` and all `(x, δ)` moved together.
///
/// The difference of an angle (`atan2`) is the angle turned, also where the value jumps by 2π.
/// Unlike derivatives, differences see through [`Expr::stop_gradient`]: they are about values.
pub fn difference<'g>(f: Expr<'g>, moved: &[(Expr<'g>, Expr<'g>)]) -> Expr<'g> {
    let graph = f.graph;
    check_points("difference", moved.iter().map(|(x, _)| *x));
    let on: Vec<Id> = moved.iter().map(|(x, _)| x.id).collect();
    let depends = dependents(graph, &on, f.id, false);
    let mut deltas: Vec<Option<Expr>> = vec![None; f.id as usize + 1];
    for &(x, d) in moved {
        assert!(x.shape() == d.shape(), "difference: the step {} does not fit {}", d.shape(), x.shape());
        if x.id <= f.id {
            deltas[x.id as usize] = Some(d);
        }
    }
    for id in 0..=f.id {
        if depends[id as usize] && deltas[id as usize].is_none() {
            deltas[id as usize] = Some(propagate(graph, id, &graph.node(id), &deltas));
        }
    }
    deltas[f.id as usize].unwrap_or_else(|| f.like(0.0))
}

fn propagate<'g>(graph: &'g Graph, id: Id, node: &Node, deltas: &[Option<Expr<'g>>]) -> Expr<'g> {
    let arg = |k: usize| graph.at(node.args[k]);
    let delta = |k: usize| deltas[node.args[k] as usize];
    let or_zero = |k: usize| delta(k).unwrap_or_else(|| arg(k).like(0.0));
    let moved = |k: usize| delta(k).map_or(arg(k), |d| arg(k) + d);
    let apply = |args: &[Expr<'g>]| graph.push(node.op.clone(), args, node.shape.clone());
    let y = graph.at(id);
    match &node.op {
        Op::Unary(u) => unary(*u, arg(0), y, or_zero(0)),
        Op::Binary(b) => binary(*b, arg(0), arg(1), y, delta(0), delta(1)),
        Op::Select => {
            let kept = arg(0).select(or_zero(1), or_zero(2));
            match delta(0) {
                None => kept,
                Some(d) => d.equal(0.0).select(kept, apply(&[moved(0), moved(1), moved(2)]) - y),
            }
        }
        Op::Matmul | Op::Contract => {
            let first = delta(0).map(|d| apply(&[d, arg(1)]));
            let second = delta(1).map(|d| apply(&[moved(0), d]));
            match (first, second) {
                (Some(a), Some(b)) => a + b,
                (a, b) => a.or(b).expect("a node that depends on x has an argument that moved"),
            }
        }
        // max(x + Δ) − m = max((x − m) + Δ): x − m is exactly 0 where the maximum is attained.
        Op::Max { axis } => apply(&[(arg(0) - y.expand(*axis as isize)) + or_zero(0)]),
        Op::MaxRows => apply(&[(arg(0) - y) + or_zero(0)]),
        Op::Kth(_) => apply(&[moved(0)]) - y,
        Op::Gather if delta(1).is_none() => apply(&[or_zero(0), arg(1)]),
        Op::Scatter if delta(0).is_none() => apply(&[arg(0), or_zero(1)]),
        Op::Gather | Op::Scatter => apply(&[moved(0), moved(1)]) - y,
        Op::Concat { .. } => apply(&(0..node.args.len()).map(or_zero).collect::<Vec<_>>()),
        Op::StopGradient | Op::Pin => or_zero(0),
        // Linear operations.
        Op::Broadcast | Op::Reshape | Op::Transpose(_) | Op::Slice { .. } | Op::Pad { .. } => apply(&[or_zero(0)]),
        Op::Sum { .. } | Op::SumRows | Op::Collect | Op::Distribute => apply(&[or_zero(0)]),
        Op::Im2col(_) | Op::Col2im(_) => apply(&[or_zero(0)]),
        Op::Input(..) | Op::Variable(_) | Op::Fill(_) | Op::Table(_) | Op::Random(..) | Op::Step => {
            unreachable!("{} depends on nothing", node.op.name())
        }
    }
}

fn unary<'g>(op: Unary, a: Expr<'g>, y: Expr<'g>, d: Expr<'g>) -> Expr<'g> {
    let moved = a + d;
    let plain = |op: Unary| moved.unary(op) - y;
    // For steps that are not small some identities overflow, while subtraction loses nothing. The clamp keeps the
    // branch that is not taken finite, so that its derivative times zero is zero.
    let small = d.max(-1.0).min(1.0);
    let if_small = |exact: Expr<'g>| d.equal(small).select(exact, plain(op));
    match op {
        Unary::Neg => -d,
        Unary::Abs => (a * moved).less(0.0).select(plain(op), d * (a + 0.5 * d).sign()),
        Unary::Sign | Unary::Floor => plain(op),
        Unary::Recip => -d * y / moved,
        Unary::Sqrt => d / (moved.sqrt() + y),
        Unary::Rsqrt => {
            let r = moved.rsqrt();
            -d * (y * r).square() / (y + r)
        }
        Unary::Exp => if_small(y * small.expm1()),
        Unary::Expm1 => if_small(a.exp() * small.expm1()),
        Unary::Log => (d / a).log1p(),
        Unary::Log1p => (d / (a + 1.0)).log1p(),
        Unary::Tanh => d.tanh() * (1.0 - y * moved.tanh()),
        // tanh's identity for σ(x) = (1 + tanh(x/2))/2, with 1 − σ(x) = σ(−x).
        Unary::Sigmoid => (0.5 * d).tanh() * (y * (-moved).sigmoid() + moved.sigmoid() * (-a).sigmoid()),
        Unary::Softplus => if_small((a.sigmoid() * small.expm1()).log1p()),
        Unary::Sin => 2.0 * (a + 0.5 * d).cos() * (0.5 * d).sin(),
        Unary::Cos => -2.0 * (a + 0.5 * d).sin() * (0.5 * d).sin(),
    }
}

fn binary<'g>(
    op: Binary,
    a: Expr<'g>,
    b: Expr<'g>,
    y: Expr<'g>,
    da: Option<Expr<'g>>,
    db: Option<Expr<'g>>,
) -> Expr<'g> {
    let (za, zb) = (da.unwrap_or_else(|| a.like(0.0)), db.unwrap_or_else(|| b.like(0.0)));
    let (ma, mb) = (a + za, b + zb);
    match op {
        Binary::Add => za + zb,
        Binary::Sub => za - zb,
        Binary::Mul => za * b + ma * zb,
        Binary::Div => (za - y * zb) / mb,
        // max(a', b') − a = max(Δa, (b − a) + Δb) where a is the larger, and likewise for b.
        Binary::Max => b.less_equal(a).select(za.max((b - a) + zb), ((a - b) + za).max(zb)),
        Binary::Min => a.less_equal(b).select(za.min((b - a) + zb), ((a - b) + za).min(zb)),
        // The angle between the two points: cross product over inner product. Across the branch cut this is the angle
        // turned, not the jump of 2π.
        Binary::Atan2 => (za * b - a * zb).atan2(a * ma + b * mb),
        Binary::Less | Binary::LessEqual | Binary::Equal => ma.binary(op, mb) - y,
    }
}
