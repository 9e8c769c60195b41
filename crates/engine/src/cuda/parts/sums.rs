//! Sums of products become one product: gradients of weights are sums of contractions, layers add several inputs.

use super::{Partition, space};
use crate::cuda::product::Product;
use crate::graph::Id;
use crate::op::{Binary, Op, Unary};
use std::collections::HashMap;

/// Sums of products by the node that stands for the sum; and the sum each product goes into.
#[derive(Default)]
pub(super) struct Sums {
    pub terms: HashMap<Id, Vec<(Id, f64)>>,
    pub of: HashMap<Id, Id>,
}

impl Partition {
    pub(super) fn find_sums(&self, users: &[Vec<Id>]) -> Sums {
        let mut sums = Sums::default();
        for root in (0..self.nodes.len() as Id).rev().filter(|&id| self.live[id as usize]) {
            if sums.of.contains_key(&root) || !matches!(self.node(root).op, Op::Binary(Binary::Add | Binary::Sub)) {
                continue;
            }
            let (mut terms, mut path) = (vec![], vec![]);
            self.expand(root, root, 1.0, users, &mut terms, &mut path);
            let first = terms.first().map(|t| Product::geometry(&self.nodes, t.0));
            let alike = |t: &(Id, f64)| Some(Product::geometry(&self.nodes, t.0)) == first;
            if terms.len() >= 2 && terms.iter().all(alike) {
                for &id in path.iter().chain(terms.iter().map(|t| &t.0)).filter(|&&id| id != root) {
                    sums.of.insert(id, root);
                }
                sums.terms.insert(root, terms);
            }
        }
        sums
    }

    /// Products that a node adds up, with their factors. Only what nobody else needs may vanish into the sum.
    fn expand(&self, root: Id, id: Id, scale: f64, users: &[Vec<Id>], terms: &mut Vec<(Id, f64)>, path: &mut Vec<Id>) {
        let node = self.node(id);
        let private = id == root || (users[id as usize].len() == 1 && !self.results().any(|r| r == id));
        if !private || space(&node.shape) != space(&self.node(root).shape) {
            return;
        }
        let mut go = |arg: Id, scale: f64| self.expand(root, arg, scale, users, terms, path);
        match &node.op {
            Op::Binary(Binary::Add) => node.args.iter().for_each(|&a| go(a, scale)),
            Op::Binary(Binary::Sub) => {
                go(node.args[0], scale);
                go(node.args[1], -scale);
            }
            Op::Unary(Unary::Neg) => go(node.args[0], -scale),
            Op::Binary(Binary::Mul) => {
                let Op::Fill(bits) = self.node(node.args[0]).op else { return };
                if f64::from_bits(bits) == 0.0 {
                    return;
                }
                go(node.args[1], scale * f64::from_bits(bits));
            }
            Op::Reshape => go(node.args[0], scale),
            Op::Matmul | Op::Contract if self.is_anchor(id) => terms.push((id, scale)),
            Op::Matmul | Op::Contract | Op::Unary(_) | Op::Binary(_) | Op::Select => return,
            Op::Broadcast | Op::Transpose(_) | Op::Slice { .. } | Op::Pad { .. } | Op::Concat { .. } => return,
            Op::Sum { .. } | Op::Max { .. } | Op::SumRows | Op::MaxRows | Op::Kth(_) => return,
            Op::Collect | Op::Distribute | Op::Gather | Op::Scatter | Op::Im2col(_) | Op::Col2im(_) => return,
            Op::StopGradient | Op::Pin => return,
            Op::Input(..) | Op::Variable(_) | Op::Fill(_) | Op::Table(_) | Op::Random(..) | Op::Step => return,
        }
        path.push(id);
    }
}
