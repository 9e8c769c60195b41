//! Gradients of weights are sums of contractions: each sum is accumulated in one place, with its scalings.
//!
//! A sum is formed **tile by tile** into partial results of each chunk, or, when the matrix is large and the rows are
//! few, **afterwards** from operands kept in memory, so that no partial matrices have to be written and read.

use super::{Lowering, reduces_rows};
use crate::cpu::tiling::Tiling;
use crate::graph::Id;
use crate::op::{Binary, Op, Unary};
use std::collections::{HashMap, HashSet};

/// Sums of contractions, by the node that stands for the whole sum.
#[derive(Default)]
pub(super) struct Sums {
    /// Contractions and their scalings.
    terms: HashMap<Id, Vec<(Id, f64)>>,
    /// The sum a contraction belongs to, and its scaling there.
    of: HashMap<Id, (Id, f64)>,
    /// Nodes that are only steps on the way to a sum.
    hidden: HashSet<Id>,
    /// Sums formed afterwards.
    after: HashSet<Id>,
}

impl Sums {
    /// The terms of a sum that is formed afterwards.
    pub fn after(&self, id: Id) -> Option<&[(Id, f64)]> {
        self.after.contains(&id).then(|| self.terms[&id].as_slice())
    }

    /// True if a node stands for a sum.
    pub fn is_sum(&self, id: Id) -> bool {
        self.terms.contains_key(&id)
    }

    /// True if a node has no instruction, because it is part of a sum.
    pub fn is_hidden(&self, id: Id) -> bool {
        self.hidden.contains(&id)
    }

    /// The sum a contraction adds to, and its scaling; other nodes stand for themselves.
    pub fn target(&self, id: Id) -> (Id, f64) {
        self.of.get(&id).copied().unwrap_or((id, 1.0))
    }
}

impl Lowering<'_> {
    /// Finds the largest sums, and decides how each is formed.
    pub(super) fn find_sums(&mut self) {
        for id in (0..self.nodes.len() as Id).rev() {
            let covered = self.sums.of.contains_key(&id) || self.sums.hidden.contains(&id);
            if covered || !self.is_computed(id) || self.node(id).shape.rows.is_some() {
                continue;
            }
            let (mut terms, mut inner) = (vec![], vec![]);
            if self.expand(id, 1.0, &mut terms, &mut inner) && self.same_rows(&terms) {
                for &(term, scale) in &terms {
                    self.sums.of.insert(term, (id, scale));
                    if term != id {
                        self.sums.hidden.insert(term);
                    }
                }
                self.sums.hidden.extend(inner);
                if self.is_better_after(&terms) {
                    self.sums.after.insert(id);
                    let stage = self.runs_in[id as usize].next_multiple_of(2);
                    terms.iter().for_each(|&(term, _)| self.runs_in[term as usize] = stage);
                }
                self.sums.terms.insert(id, terms);
            }
        }
    }

    /// Collects the contractions under a tree of sums and scalings; false if there is anything else.
    fn expand(&self, id: Id, scale: f64, terms: &mut Vec<(Id, f64)>, inner: &mut Vec<Id>) -> bool {
        let node = self.node(id);
        if node.op == Op::Contract {
            terms.push((id, scale));
            return true;
        }
        let fill = |id: Id| self.graph.at(id).as_fill();
        let parts: Vec<(Id, f64)> = match (&node.op, &node.args[..]) {
            (Op::Binary(Binary::Add), &[a, b]) => vec![(a, scale), (b, scale)],
            (Op::Binary(Binary::Sub), &[a, b]) => vec![(a, scale), (b, -scale)],
            (Op::Unary(Unary::Neg), &[a]) => vec![(a, -scale)],
            (Op::Binary(Binary::Mul), &[c, a]) if fill(c).is_some() => vec![(a, scale * fill(c).unwrap_or(1.0))],
            _ => return false,
        };
        parts.into_iter().all(|(part, scale)| {
            let single = self.root(part) == part && self.users[part as usize].len() == 1 && !self.is_result(part);
            if self.node(part).op != Op::Contract {
                inner.push(part);
            }
            single && self.expand(part, scale, terms, inner)
        })
    }

    fn same_rows(&self, terms: &[(Id, f64)]) -> bool {
        let of = |id: Id| (self.runs_in[id as usize], self.node(self.node(id).args[0]).shape.rows);
        terms.iter().all(|&(term, _)| of(term) == of(terms[0].0))
    }

    /// Compares the traffic of partial matrices (reset, added to, collected) with that of keeping the operands.
    fn is_better_after(&self, terms: &[(Id, f64)]) -> bool {
        let rows = |id: Id| self.node(self.node(id).args[0]).shape.len();
        let other = |id: Id| self.node(self.node(id).args[1]).shape.len();
        let first = self.node(self.node(terms[0].0).args[0]).shape.rows.expect("contracted values have rows");
        let matrix = self.node(terms[0].0).shape.len();
        let partial = 3 * matrix * Tiling::new(first, self.pitch).chunks();
        let kept: usize = terms.iter().map(|&(term, _)| 2 * (rows(term) + other(term))).sum();
        partial > kept
    }

    /// True for a node whose partial results a whole stage collects.
    pub(super) fn is_collected(&self, id: Id) -> bool {
        let rows = matches!(self.node(id).op, Op::SumRows | Op::MaxRows);
        rows || (self.sums.is_sum(id) && self.sums.after(id).is_none())
    }

    /// True if a node adds to partial results in a rows stage.
    pub(super) fn makes_partials(&self, id: Id) -> bool {
        reduces_rows(&self.node(id).op) && self.runs_in[id as usize] % 2 == 1
    }
}
