//! Which elementwise nodes share a pass, and the chain that runs them.

use super::{Levels, Lowering};
use crate::cpu::plan::*;
use crate::cpu::tiling::Tiling;
use crate::graph::Id;
use crate::op::{Binary, Op};
use crate::plan::space;
use std::collections::{HashMap, HashSet};

/// Where a stage keeps its values.
pub(super) struct Scope {
    /// Buffers of row values in this stage (tiles), if it is a rows stage.
    pub tiles: Option<HashMap<Id, usize>>,
    /// Lanes per feature in a tile.
    pub pitch: usize,
}

impl Scope {
    pub fn rowed(&self) -> bool {
        self.tiles.is_some()
    }
}

impl Lowering<'_> {
    /// The index space in which a node joins a chain, or `None` if it has an instruction of its own.
    pub(super) fn chain_space(&self, id: Id, rowed: bool) -> Option<Vec<usize>> {
        let node = self.node(id);
        let arg_dims = || self.node(node.args[0]).shape.dims.as_slice();
        if !rowed && self.sums.after(id).is_some() {
            return None;
        }
        if !rowed && self.is_collected(id) {
            return Some(space(&node.shape.dims));
        }
        match &node.op {
            Op::Unary(_) | Op::Binary(_) | Op::Select => Some(space(&node.shape.dims)),
            Op::Sum { .. } | Op::Max { .. } => Some(space(arg_dims())),
            Op::SumRows | Op::MaxRows if rowed => Some(space(arg_dims())),
            Op::SumRows | Op::MaxRows | Op::Matmul | Op::Contract | Op::Kth(_) => None,
            Op::Broadcast | Op::Reshape | Op::Transpose(_) | Op::Slice { .. } => None,
            Op::Pad { .. } | Op::Concat { .. } | Op::Collect | Op::Distribute | Op::StopGradient | Op::Pin => None,
            Op::Gather | Op::Scatter | Op::Im2col(_) | Op::Col2im(_) => None,
            Op::Input(..) | Op::Variable(_) | Op::Fill(_) | Op::Table(_) | Op::Random(..) | Op::Step => None,
        }
    }

    /// True if a node of a chain makes one entry per entry of the index space.
    fn is_entrywise(&self, id: Id, rowed: bool) -> bool {
        let collected = !rowed && self.is_collected(id);
        collected || (self.node(id).op.is_elementwise() && (rowed || !self.sums.is_sum(id)))
    }

    /// True if the values of `root`, seen as `arg`, are at hand entry by entry in a chain over `space`.
    fn joins(&self, root: Id, arg: Id, within: &[usize], rowed: bool) -> bool {
        let entrywise = self.is_entrywise(root, rowed);
        let (view, dims) = (self.view(arg), &self.node(arg).shape.dims);
        entrywise
            && view.lane == rowed
            && view.is_dense(dims)
            && space(dims) == within
            && space(&self.node(root).shape.dims) == within
    }

    /// Groups the nodes of a stage: nodes of one level and index space form a chain.
    pub(super) fn levels(&self, ids: &[Id], rowed: bool) -> Levels {
        let mut depth: HashMap<Id, usize> = HashMap::new();
        let mut levels = Levels::new();
        for &id in ids {
            let within = self.chain_space(id, rowed);
            let mut level = 0;
            // The partial results a whole stage collects were made in the stage before.
            let collects = !rowed && (self.is_collected(id) || self.sums.is_sum(id));
            for &arg in self.node(id).args.iter().filter(|_| !collects) {
                let root = self.root(arg);
                if let Some(&d) = depth.get(&root) {
                    let joins = within.as_ref().is_some_and(|s| self.joins(root, arg, s, rowed));
                    // A copy that makes a view contiguous takes a level of its own.
                    let copied = usize::from(!rowed && self.copies.contains_key(&arg));
                    level = level.max(if joins { d } else { d + 1 + copied });
                } else if !rowed && self.copies.contains_key(&arg) {
                    level = level.max(1);
                }
            }
            depth.insert(id, level);
        }
        if rowed {
            self.sink(ids, &mut depth);
        }
        for &id in ids {
            levels.entry(depth[&id]).or_default().push(id);
        }
        levels
    }

    /// Moves functions of one value to where they are first needed: the value is mostly kept anyway, its function
    /// then lives shorter, and may share a pass with its user.
    fn sink(&self, ids: &[Id], depth: &mut HashMap<Id, usize>) {
        let mut latest: HashMap<Id, usize> = HashMap::new();
        for &id in ids.iter().rev() {
            let node = self.node(id);
            let mut made_here: Vec<Id> =
                node.args.iter().map(|&a| self.root(a)).filter(|r| depth.contains_key(r)).collect();
            made_here.dedup();
            if let (true, Some(&last)) = (node.op.is_elementwise() && made_here.len() <= 1, latest.get(&id)) {
                depth.insert(id, depth[&id].max(last));
            }
            let within = self.chain_space(id, true);
            for &arg in &node.args {
                let root = self.root(arg);
                let joins = within.as_ref().is_some_and(|s| self.joins(root, arg, s, true));
                let until = if joins { depth[&id] } else { depth[&id].saturating_sub(1) };
                let entry = latest.entry(root).or_insert(until);
                *entry = until.min(*entry);
            }
        }
    }

    /// A value as a strided array, as seen from a stage.
    pub(super) fn array(&mut self, id: Id, scope: &Scope) -> Array {
        let view = self.view(id).clone();
        match &scope.tiles {
            Some(tiles) if view.lane => {
                let (buffer, pitch) = match tiles.get(&view.root) {
                    Some(&buffer) => (buffer, scope.pitch),
                    None => (self.homes[&view.root], self.stored_pitch(view.root)),
                };
                Array {
                    at: Ptr { buffer, offset: view.offset * pitch },
                    dims: self.node(id).shape.dims.clone(),
                    strides: view.strides.iter().map(|s| s * pitch).collect(),
                    lane: 1,
                }
            }
            _ => self.whole_array(id),
        }
    }

    /// Distance between the features of a row value kept in memory.
    pub(super) fn stored_pitch(&self, id: Id) -> usize {
        let rows = self.node(id).shape.rows.expect("a row value");
        Tiling::new(rows, self.pitch).stored_pitch()
    }

    /// The chain of `members`, which share a level and an index space.
    pub(super) fn chain(&mut self, members: &[Id], within: &[usize], scope: &Scope) -> Chain {
        let inside: HashSet<Id> = members.iter().copied().collect();
        let escapes = |this: &Self, id: Id| {
            let read_elsewhere = this.users[id as usize].iter().any(|u| !inside.contains(u));
            !this.is_entrywise(id, scope.rowed()) || this.is_result(id) || read_elsewhere
        };
        let fused: HashMap<Id, Id> = self.fused_products(members, &inside, &|this, id| escapes(this, id));
        let skipped: HashSet<Id> = fused.values().copied().collect();

        let mut builder = Builder::new(within.to_vec());
        for &id in members.iter().filter(|id| !skipped.contains(id)) {
            let (code, args) = self.code(id, fused.get(&id).copied(), scope);
            let sources: Vec<usize> = args
                .iter()
                .map(|&arg| {
                    let root = self.root(arg);
                    match builder.made.get(&root) {
                        Some(&operand) => operand,
                        None if matches!(code, Code::SumChunks { .. } | Code::MaxChunks { .. }) => {
                            let array = self.partial_array(id);
                            builder.array(&array)
                        }
                        None => {
                            let array = self.array(arg, scope);
                            builder.array(&array)
                        }
                    }
                })
                .collect();
            let target = if escapes(self, id) {
                let array = self.target(id, scope);
                builder.array(&array)
            } else {
                builder.register(id)
            };
            if self.is_entrywise(id, scope.rowed()) {
                builder.made.insert(id, target);
            }
            let src = std::array::from_fn(|i| sources.get(i).copied().unwrap_or(sources[0]));
            builder.ops.push(ChainOp { code, dst: target, src });
        }
        let chain = builder.finish(scope.rowed());
        self.plan.registers = self.plan.registers.max(chain.registers);
        self.plan.operands = self.plan.operands.max(chain.operands.len());
        chain
    }

    /// Sums whose one term is a product used nowhere else: sum → product.
    fn fused_products(
        &self,
        members: &[Id],
        inside: &HashSet<Id>,
        escapes: &dyn Fn(&Self, Id) -> bool,
    ) -> HashMap<Id, Id> {
        let mut fused = HashMap::new();
        for &id in members {
            let node = self.node(id);
            if !matches!(node.op, Op::Binary(Binary::Add | Binary::Sub)) || self.sums.is_sum(id) {
                continue;
            }
            let product = node.args.iter().map(|&a| self.root(a)).find(|&r| {
                inside.contains(&r)
                    && self.node(r).op == Op::Binary(Binary::Mul)
                    && !self.sums.is_sum(r)
                    && self.users[r as usize].len() == 1
                    && !escapes(self, r)
            });
            if let Some(product) = product {
                fused.insert(id, product);
            }
        }
        fused
    }

    /// What a member does, and to which nodes.
    fn code(&self, id: Id, product: Option<Id>, scope: &Scope) -> (Code, Vec<Id>) {
        let node = self.node(id);
        if let Some(product) = product {
            let [x, y] = self.node(product).args[..] else { unreachable!("a product has two factors") };
            let first = self.root(node.args[0]) == product;
            let other = node.args[usize::from(first)];
            let code = match (&node.op, first) {
                (Op::Binary(Binary::Add), _) => Code::MulAdd,
                (_, true) => Code::MulSub,
                (_, false) => Code::NegMulAdd,
            };
            return (code, vec![x, y, other]);
        }
        if !scope.rowed() && self.is_collected(id) {
            let (chunks, stride) = self.partials[&id].1;
            let max = node.op == Op::MaxRows;
            let code = if max { Code::MaxChunks { chunks, stride } } else { Code::SumChunks { chunks, stride } };
            return (code, vec![id]);
        }
        let code = match &node.op {
            Op::Unary(u) => Code::Unary(*u),
            Op::Binary(b) => Code::Binary(*b),
            Op::Select => Code::Select,
            Op::Sum { .. } => Code::AddInto,
            Op::Max { .. } => Code::MaxInto,
            Op::SumRows if scope.rowed() => Code::AddRows,
            Op::MaxRows if scope.rowed() => Code::MaxRows,
            Op::SumRows | Op::MaxRows | Op::Matmul | Op::Contract | Op::Kth(_) => not_chained(&node.op),
            Op::Broadcast | Op::Reshape | Op::Transpose(_) | Op::Slice { .. } => not_chained(&node.op),
            Op::Pad { .. } | Op::Concat { .. } | Op::Collect | Op::Distribute => not_chained(&node.op),
            Op::StopGradient | Op::Pin => not_chained(&node.op),
            Op::Gather | Op::Scatter | Op::Im2col(_) | Op::Col2im(_) => not_chained(&node.op),
            Op::Input(..) | Op::Variable(_) | Op::Fill(_) | Op::Table(_) | Op::Random(..) | Op::Step => {
                not_chained(&node.op)
            }
        };
        (code, node.args.clone())
    }

    /// Where a member's result goes, as an array over the chain's index space.
    fn target(&mut self, id: Id, scope: &Scope) -> Array {
        let node = self.node(id).clone();
        if let Op::Sum { axis } | Op::Max { axis } = node.op {
            let mut array = self.array(id, scope);
            array.dims.insert(axis, self.node(node.args[0]).shape.dims[axis]);
            array.strides.insert(axis, 0);
            return array;
        }
        let over_rows = matches!(node.op, Op::SumRows | Op::MaxRows) && scope.rowed();
        if over_rows { self.partial_array(id) } else { self.array(id, scope) }
    }
}

fn not_chained(op: &Op) -> ! {
    unreachable!("{} is not part of a chain", op.name())
}

/// A chain under construction.
struct Builder {
    within: Vec<usize>,
    operands: Vec<(Slot, Vec<usize>, usize)>,
    ops: Vec<ChainOp>,
    made: HashMap<Id, usize>,
}

impl Builder {
    fn new(within: Vec<usize>) -> Self {
        Builder { within, operands: vec![], ops: vec![], made: HashMap::new() }
    }

    /// An operand in memory; equal ones are shared.
    fn array(&mut self, array: &Array) -> usize {
        let kept = array.dims.iter().zip(&array.strides).filter(|(d, _)| **d != 1);
        let strides: Vec<usize> = kept.map(|(_, &s)| s).collect();
        assert!(
            strides.len() == self.within.len(),
            "an operand {array:?} does not fit the chain over {:?}",
            self.within
        );
        let operand = (Slot::At(array.at), strides, array.lane);
        self.operands.iter().position(|o| *o == operand).unwrap_or_else(|| {
            self.operands.push(operand);
            self.operands.len() - 1
        })
    }

    /// A block register, numbered later.
    fn register(&mut self, id: Id) -> usize {
        self.operands.push((Slot::Register(id as usize), vec![], 1));
        self.operands.len() - 1
    }

    fn finish(mut self, rowed: bool) -> Chain {
        let registers = self.allocate_registers();
        let mut dims = self.within.clone();
        self.collapse(&mut dims);
        // Without rows the innermost axis plays the part of the lanes.
        let lanes = if rowed { Lanes::Tile } else { Lanes::Fixed(dims.pop().unwrap_or(1)) };
        let features = dims.pop().unwrap_or(1);
        let rank = dims.len();
        let operands = self
            .operands
            .iter()
            .map(|(slot, strides, lane)| {
                let in_memory = matches!(slot, Slot::At(_));
                let at = |i: usize| strides.get(i).copied().unwrap_or(0);
                let lane = match (rowed || !in_memory, strides.is_empty()) {
                    (true, _) => *lane,
                    (false, true) => 1, // a scalar space: one lane
                    (false, false) => at(strides.len() - 1),
                };
                assert!(lane <= 1, "a chain needs contiguous lanes");
                let inner = strides.len() - usize::from(!rowed && !strides.is_empty());
                let feature = if inner > 0 { at(inner - 1) } else { 0 };
                let outer = (0..rank).map(at).collect();
                Operand { slot: *slot, outer, feature, lane }
            })
            .collect();
        let reduces = |c: &ChainOp| matches!(c.code, Code::AddInto | Code::MaxInto | Code::AddRows | Code::MaxRows);
        let splits = !rowed && !self.ops.iter().any(reduces);
        Chain { outer: dims, features, lanes, operands, ops: self.ops, registers, splits }
    }

    /// Gives registers numbers, reusing those whose last reader is done; a result never shares with an argument.
    fn allocate_registers(&mut self) -> usize {
        let mut last = HashMap::new();
        for (i, op) in self.ops.iter().enumerate() {
            op.src.iter().chain([&op.dst]).for_each(|&o| {
                last.insert(o, i);
            });
        }
        let mut free: Vec<usize> = vec![];
        let mut count = 0;
        for (i, op) in self.ops.iter().enumerate() {
            if let Slot::Register(_) = self.operands[op.dst].0 {
                let register = free.pop().unwrap_or_else(|| {
                    count += 1;
                    count - 1
                });
                self.operands[op.dst].0 = Slot::Register(register);
            }
            let mut done: Vec<usize> = op.src.iter().chain([&op.dst]).copied().filter(|o| last[o] == i).collect();
            done.sort_unstable();
            done.dedup();
            for o in done {
                if let Slot::Register(r) = self.operands[o].0 {
                    free.push(r);
                }
            }
        }
        count
    }

    /// Joins neighbouring axes that every operand in memory walks through without a jump.
    fn collapse(&mut self, dims: &mut Vec<usize>) {
        let mut i = 0;
        while i + 1 < dims.len() {
            let joined = self
                .operands
                .iter()
                .filter(|o| matches!(o.0, Slot::At(_)))
                .all(|(_, s, _)| s[i] == s[i + 1] * dims[i + 1]);
            if joined {
                dims[i + 1] *= dims[i];
                dims.remove(i);
                for operand in self.operands.iter_mut().filter(|o| matches!(o.0, Slot::At(_))) {
                    operand.1.remove(i);
                }
            } else {
                i += 1;
            }
        }
    }
}
