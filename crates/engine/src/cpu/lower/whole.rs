//! Whole stages: values without rows.

use super::chains::Scope;
use super::{Lowering, fold_start};
use crate::cpu::plan::*;
use crate::graph::{Id, Node};
use crate::op::Op;
use crate::shape::Shape;
use std::collections::BTreeMap;

impl Lowering<'_> {
    /// The whole stages with this number: one for each level.
    pub(super) fn whole_stages(&mut self, stage: usize) {
        let ids: Vec<Id> = (0..self.nodes.len() as Id).filter(|&id| self.runs_whole(id, stage)).collect();
        let copied = self.place_copies(&ids, stage);
        let scope = Scope { tiles: None, pitch: 1 };
        let mut levels = self.levels(&ids, false);
        let mut copies: BTreeMap<usize, Vec<Id>> = BTreeMap::new();
        for id in copied {
            // Right after its root is made, and before anyone can ask for it.
            let root = self.root(id);
            let made = levels.iter().find(|(_, members)| members.contains(&root)).map(|(&level, _)| level + 1);
            copies.entry(made.unwrap_or(0)).or_default().push(id);
        }
        for &level in copies.keys() {
            levels.entry(level).or_default();
        }
        for (level, members) in levels {
            let mut instrs = vec![];
            for id in copies.remove(&level).unwrap_or_default() {
                instrs.push(self.copy_instr(id));
            }
            let mut chains: BTreeMap<Vec<usize>, Vec<Id>> = BTreeMap::new();
            let mut starts = vec![];
            for id in members {
                match self.chain_space(id, false) {
                    Some(space) => {
                        starts.extend(self.start_fold(id));
                        chains.entry(space).or_default().push(id);
                    }
                    None => self.whole_instr(id, &mut instrs, &mut starts),
                }
            }
            for (space, members) in chains {
                for group in self.independent(&members) {
                    let chain = self.chain(&group, &space, &scope);
                    instrs.push(Instr::Chain(chain));
                }
            }
            if !starts.is_empty() {
                self.plan.stages.push(Stage::Whole { instrs: starts });
            }
            self.plan.stages.push(Stage::Whole { instrs });
        }
    }

    /// Members of a chain split into groups that do not read each other, so that threads can share them.
    fn independent(&self, members: &[Id]) -> Vec<Vec<Id>> {
        let mut groups: Vec<Vec<Id>> = vec![];
        for &id in members {
            let reads: Vec<Id> = self.node(id).args.iter().map(|&a| self.root(a)).collect();
            let (joined, rest): (Vec<_>, Vec<_>) =
                groups.into_iter().partition(|g: &Vec<Id>| g.iter().any(|m| reads.contains(m)));
            let mut group: Vec<Id> = joined.into_iter().flatten().collect();
            group.push(id);
            group.sort_unstable();
            groups = rest;
            groups.push(group);
        }
        groups
    }

    /// True if a node is made, or its partial results are collected, in this whole stage.
    fn runs_whole(&self, id: Id, stage: usize) -> bool {
        let stands_for_itself = self.sums.target(id).0 == id;
        let collected = usize::from(self.makes_partials(id));
        let whole = self.node(id).shape.rows.is_none() && self.is_computed(id) && stands_for_itself;
        whole && self.runs_in[id as usize] + collected == stage
    }

    /// Views that an instruction of this or the next rows stage needs contiguous: copied into memory of their own.
    fn place_copies(&mut self, ids: &[Id], stage: usize) -> Vec<Id> {
        let mut wanted: Vec<Id> = vec![];
        for &id in ids {
            let node = self.node(id);
            let chained = self.chain_space(id, false).is_some() && !self.is_collected(id);
            for (i, &arg) in node.args.iter().enumerate().filter(|_| !self.sums.is_sum(id)) {
                let (view, dims) = (self.view(arg), &self.node(arg).shape.dims);
                let last = dims.iter().zip(&view.strides).rev().find(|(d, _)| **d != 1).map_or(1, |(_, &s)| s);
                let dense = matches!(node.op, Op::Im2col(_) | Op::Col2im(_) | Op::Gather | Op::Scatter);
                let needed = if chained {
                    last > 1
                } else if node.op == Op::Matmul {
                    i == 1 && last != 1
                } else {
                    dense && !view.lane && !view.is_dense(dims)
                };
                if needed {
                    wanted.push(arg);
                }
            }
        }
        // Tables and distributed matrices are read row by row in the rows stage that follows.
        for id in 0..self.nodes.len() as Id {
            let node = self.node(id);
            let reads = matches!(node.op, Op::Gather | Op::Distribute) && self.live[id as usize];
            if reads && node.shape.rows.is_some() {
                let arg = node.args[0];
                if self.runs_in[arg as usize] == stage && !self.view(arg).is_dense(&self.node(arg).shape.dims) {
                    wanted.push(arg);
                }
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted.retain(|id| !self.copies.contains_key(id));
        for &id in &wanted {
            let buffer = self.memory(self.node(id).shape.len(), 0, 0);
            self.copies.insert(id, buffer);
        }
        wanted
    }

    fn copy_instr(&mut self, id: Id) -> Instr {
        let buffer = self.copies.remove(&id).expect("a copy was placed");
        let instr = self.copy_to(id, buffer);
        self.copies.insert(id, buffer);
        instr
    }

    fn start_fold(&mut self, id: Id) -> Option<Instr> {
        let value = fold_start(&self.node(id).op)?;
        let buffer = self.whole_home(id);
        Some(Instr::Fill { to: Ptr { buffer, offset: 0 }, len: self.node(id).shape.len(), value })
    }

    /// A row value kept in memory, seen from a whole stage; all its lanes are at hand.
    fn stored_array(&mut self, id: Id) -> Array {
        self.array(id, &Scope { tiles: Some(Default::default()), pitch: 0 })
    }

    /// A sum of contractions formed from operands kept in memory.
    fn contractions(&mut self, id: Id) -> Option<Instr> {
        let terms = self.sums.after(id)?.to_vec();
        let c = Ptr { buffer: self.whole_home(id), offset: 0 };
        let rows = self.node(self.node(terms[0].0).args[0]).shape.rows.expect("contracted values have rows");
        let terms = terms
            .into_iter()
            .map(|(term, scale)| {
                let [a, b] = self.node(term).args[..] else { unreachable!("a contraction has two factors") };
                let (a, b) = (self.stored_array(a), self.stored_array(b));
                self.contraction_of(&a, &b, c, scale, rows)
            })
            .collect();
        Some(Instr::Contractions { terms, rows })
    }

    fn whole_instr(&mut self, id: Id, instrs: &mut Vec<Instr>, starts: &mut Vec<Instr>) {
        if let Some(instr) = self.contractions(id) {
            return instrs.push(instr);
        }
        let node = self.node(id).clone();
        let arg = |i: usize| node.args[i];
        let buffer = self.whole_home(id);
        let to = Ptr { buffer, offset: 0 };
        let dense = |dims: &[usize]| Shape::whole(dims).strides();
        let len = node.shape.len();
        let instr = match node.op {
            Op::Random(draw, stream) => Instr::Random { draw, stream, features: len, rows: None, to, stride: 1 },
            Op::Matmul => self.whole_product(id),
            Op::Reshape => {
                let from = self.whole_array(arg(0));
                let to = Array { at: to, dims: from.dims.clone(), strides: dense(&from.dims), lane: 0 };
                Instr::Copy { from, to, lanes: Lanes::Fixed(1) }
            }
            Op::Pad { axis, before } => {
                starts.push(Instr::Fill { to, len, value: 0.0 });
                let (from, strides) = (self.whole_array(arg(0)), node.shape.strides());
                let at = Ptr { offset: before * strides[axis], ..to };
                let to = Array { at, dims: from.dims.clone(), strides, lane: 0 };
                Instr::Copy { from, to, lanes: Lanes::Fixed(1) }
            }
            Op::Concat { axis } => return self.whole_concat(&node, axis, to, instrs),
            Op::Im2col(window) => {
                let from = self.whole_array(arg(0));
                let image = [from.dims[0], from.dims[1], from.dims[2]];
                Instr::Im2col { window, image, from: from.at, to, strides: [1, 1], rowed: false }
            }
            Op::Col2im(window) => {
                let from = self.whole_array(arg(0)).at;
                let image = [node.shape.dims[0], node.shape.dims[1], node.shape.dims[2]];
                Instr::Col2im { window, image, from, to, strides: [1, 1], rowed: false }
            }
            Op::Gather => {
                let (table, index) = (self.whole_array(arg(0)), self.whole_array(arg(1)));
                let width = table.dims[1..].iter().product();
                Instr::Gather { table: table.at, len: table.dims[0], width, index, to, stride: 1, rowed: false }
            }
            Op::Scatter => {
                let width = node.shape.dims[1..].iter().product();
                let (index, values, rows) = match self.node(arg(0)).shape.rows {
                    Some(rows) => (self.stored_array(arg(0)), self.stored_array(arg(1)), rows),
                    None => (self.whole_array(arg(0)), self.whole_array(arg(1)), 1),
                };
                Instr::Scatter { to, len: node.shape.dims[0], width, index, values, rows }
            }
            Op::Collect => {
                let from = self.stored_array(arg(0));
                let rows = node.shape.dims[0];
                Instr::Collect { from, to, rows }
            }
            Op::Kth(k) => {
                let from = self.whole_array(arg(0));
                let len = self.node(arg(0)).shape.len();
                let copy = Ptr { buffer: self.memory(len, 0, 0), offset: 0 };
                Instr::Kth { k, len, from, copy, to }
            }
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Sum { .. } | Op::Max { .. } => {
                not_here(&node.op, "a chain")
            }
            Op::SumRows | Op::MaxRows | Op::Contract => not_here(&node.op, "partial results"),
            Op::Broadcast | Op::Transpose(_) | Op::Slice { .. } | Op::StopGradient | Op::Pin => {
                not_here(&node.op, "a view")
            }
            Op::Fill(_) | Op::Table(_) | Op::Step => not_here(&node.op, "a constant"),
            Op::Input(..) | Op::Variable(_) => not_here(&node.op, "a buffer from outside"),
            Op::Distribute => not_here(&node.op, "a rows stage"),
        };
        instrs.push(instr);
    }

    fn whole_concat(&mut self, node: &Node, axis: usize, to: Ptr, instrs: &mut Vec<Instr>) {
        let strides = node.shape.strides();
        let mut offset = 0;
        for &part in &node.args {
            let from = self.whole_array(part);
            let at = Ptr { offset, ..to };
            offset += from.dims[axis] * strides[axis];
            let to = Array { at, dims: from.dims.clone(), strides: strides.clone(), lane: 0 };
            instrs.push(Instr::Copy { from, to, lanes: Lanes::Fixed(1) });
        }
    }

    fn whole_product(&mut self, id: Id) -> Instr {
        let node = self.node(id).clone();
        let (w, a) = (self.whole_array(node.args[0]), self.whole_array(node.args[1]));
        let r = node.shape.rank();
        assert!(r <= 3, "matmul: at most one batch axis, not {}", node.shape);
        let step = |a: &Array| if r > 2 { a.strides[r - 3] } else { 0 };
        let (m, n) = (node.shape.dims[r - 2], node.shape.dims[r - 1]);
        let batch = node.shape.dims[..r - 2].iter().product();
        Instr::Product(Product {
            n: m,
            k: w.dims[r - 1],
            lanes: Lanes::Fixed(n),
            w: w.at,
            w_strides: [w.strides[r - 1], w.strides[r - 2]],
            a: a.at,
            a_stride: a.strides[r - 2],
            c: Ptr { buffer: self.whole_home(id), offset: 0 },
            c_stride: n,
            bias: None,
            turns: [Turn { count: batch, w: step(&w), a: step(&a), c: m * n }, Turn { count: 1, w: 0, a: 0, c: 0 }],
        })
    }
}

fn not_here(op: &Op, place: &str) -> ! {
    unreachable!("{} has no instruction in a whole stage, but {place}", op.name())
}
