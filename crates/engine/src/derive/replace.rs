//! Substitution: the same expressions of other values.

use super::dependents;
use crate::expr::may_vanish;
use crate::graph::{Expr, Id};

/// Each of `ys` as it would be if every `(x, value)` had been built from the value instead of x.
///
/// It tells what a model does after an update that is part of the same step:
///
/// ```
/// use minvel_engine::{replace, Clock, Graph, Options, State};
/// let g = Graph::new();
/// let w = g.variable("w", []);
/// let loss = (w - 3.0).square();
/// let after = replace(&[loss], &[(w, w + 2.0)])[0];
/// let mut state = State::new(1);
/// state.set("w", &[1.0], 1);
/// let mut program = g.compile::<f64>(&[loss, after], &[], &Options::default());
/// program.run(&mut state, &[], Clock { seed: 0, step: 0 });
/// assert_eq!((program.output(0), program.output(1)), (&[4.0][..], &[0.0][..]));
/// ```
pub fn replace<'g>(ys: &[Expr<'g>], by: &[(Expr<'g>, Expr<'g>)]) -> Vec<Expr<'g>> {
    let Some(last) = ys.iter().map(|y| y.id).max() else { return vec![] };
    let graph = ys[0].graph;
    let on: Vec<Id> = by.iter().map(|(x, _)| x.id).collect();
    let depends = dependents(graph, &on, last, false);
    let mut new: Vec<Id> = (0..=last).collect();
    for &(x, value) in by {
        assert!(x.shape() == value.shape(), "replace: {} cannot replace {}", value.shape(), x.shape());
        assert!(!may_vanish(x), "replace: {x:?} may be simplified away; build from `x.pin()` instead");
        if x.id <= last {
            new[x.id as usize] = value.id;
        }
    }
    for id in 0..=last {
        if depends[id as usize] && !on.contains(&id) {
            let node = graph.node(id);
            let args: Vec<Expr> = node.args.iter().map(|&a| graph.at(new[a as usize])).collect();
            new[id as usize] = graph.push(node.op, &args, node.shape).id;
        }
    }
    ys.iter().map(|y| graph.at(new[y.id as usize])).collect()
}
