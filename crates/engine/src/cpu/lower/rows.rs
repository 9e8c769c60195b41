//! Rows stages: what is computed row by row, tile by tile.

use super::chains::Scope;
use super::{Lowering, fold_start, reduces_rows};
use crate::cpu::gemm;
use crate::cpu::plan::*;
use crate::cpu::tiling::{LANES, Tiling};
use crate::graph::{Id, Node};
use crate::op::Op;
use crate::plan::{Interval, pack};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A rows stage under construction.
struct Tile {
    scope: Scope,
    tiling: Tiling,
    instrs: Vec<Instr>,
    /// Elements of each tile buffer.
    lengths: HashMap<usize, usize>,
}

impl Lowering<'_> {
    /// The rows stages with this number: one for each number of rows.
    pub(super) fn rows_stages(&mut self, stage: usize) {
        let mut groups: BTreeMap<usize, BTreeSet<Id>> = BTreeMap::new();
        for id in 0..self.nodes.len() as Id {
            if self.is_computed(id) && self.runs_in[id as usize] == stage && !self.is_row_leaf(id) {
                let node = self.node(id);
                let rows = node.shape.rows.or_else(|| self.node(node.args[0]).shape.rows);
                let group = groups.entry(rows.expect("a node of a rows stage has rows")).or_default();
                group.insert(id);
                let leaves: Vec<Id> =
                    node.args.iter().map(|&a| self.root(a)).filter(|&r| self.is_row_leaf(r)).collect();
                group.extend(leaves);
            }
        }
        for id in self.saved_in(stage) {
            let rows = self.node(id).shape.rows.expect("a saved value has rows");
            let root = self.root(id);
            let group = groups.entry(rows).or_default();
            if self.is_row_leaf(root) {
                group.insert(root);
            }
        }
        for (rows, ids) in groups {
            self.rows_stage(stage, rows, &ids.into_iter().collect::<Vec<_>>());
        }
    }

    /// Row values to be written out at the end of this stage.
    fn saved_in(&self, stage: usize) -> Vec<Id> {
        let results = self.outputs.iter().chain(self.updates.iter().map(|(_, value)| value));
        results.copied().filter(|&id| self.node(id).shape.rows.is_some() && self.saving_stage(id) == stage).collect()
    }

    fn saving_stage(&self, id: Id) -> usize {
        self.runs_in[id as usize] | 1
    }

    fn rows_stage(&mut self, stage: usize, rows: usize, ids: &[Id]) {
        let tiling = Tiling::new(rows, self.pitch);
        let scope = Scope { tiles: Some(HashMap::new()), pitch: tiling.pitch() };
        self.plan.pitch = self.plan.pitch.max(tiling.pitch());
        let mut tile = Tile { scope, tiling, instrs: vec![], lengths: HashMap::new() };
        let mut partials = vec![];
        for &id in ids {
            if self.makes_partials(id) {
                partials.extend(self.place_partial(id, &tile.tiling));
            } else {
                self.place_row_value(id, stage, &mut tile);
            }
        }
        for members in self.levels(ids, true).into_values() {
            let mut chains: BTreeMap<Vec<usize>, Vec<Id>> = BTreeMap::new();
            for id in members {
                match self.chain_space(id, true) {
                    Some(space) => chains.entry(space).or_default().push(id),
                    None => self.row_instr(id, &mut tile),
                }
            }
            for (space, members) in chains {
                self.start_folds(&members, &mut tile);
                let chain = self.chain(&members, &space, &tile.scope);
                tile.instrs.push(Instr::Chain(chain));
            }
        }
        for id in self.saved_in(stage) {
            if self.node(id).shape.rows == Some(rows) {
                self.save(id, &mut tile);
            }
        }
        self.finish_tile(&tile);
        self.plan.stages.push(Stage::Rows { tiling: tile.tiling, partials, instrs: tile.instrs });
    }

    /// Memory for the partial results that a node adds to, unless another term of its sum has placed it.
    fn place_partial(&mut self, id: Id, tiling: &Tiling) -> Option<(Ptr, usize, f64)> {
        let (sum, _) = self.sums.target(id);
        if self.partials.contains_key(&sum) {
            return None;
        }
        let len = self.node(id).shape.len().next_multiple_of(LANES);
        let buffer = self.memory(len * tiling.chunks(), 0, len);
        self.partials.insert(sum, (buffer, (tiling.chunks(), len)));
        let start = if self.node(id).op == Op::MaxRows { f64::NEG_INFINITY } else { 0.0 };
        Some((Ptr { buffer, offset: 0 }, len, start))
    }

    /// A row value lives in the tile, or in memory if a later stage reads it.
    fn place_row_value(&mut self, id: Id, stage: usize, tile: &mut Tile) {
        let features = self.node(id).shape.features();
        let later = |u: &Id| self.runs_in[*u as usize] != stage;
        let results = self.outputs.iter().chain(self.updates.iter().map(|(_, value)| value));
        let saved_later = results.filter(|&&r| self.root(r) == id).any(|&r| self.saving_stage(r) != stage);
        if !self.is_row_leaf(id) && (saved_later || self.users[id as usize].iter().any(later)) {
            let home = self.memory(features * tile.tiling.stored_pitch(), 1, 0);
            self.homes.insert(id, home);
        } else {
            let buffer = self.tile_buffer(features * tile.scope.pitch, tile);
            tile.scope.tiles.as_mut().expect("a rows scope").insert(id, buffer);
        }
    }

    fn tile_buffer(&mut self, len: usize, tile: &mut Tile) -> usize {
        let buffer = self.buffer(Buffer { home: Home::Tile, base: 0, per_replica: 0, per_row: 0, per_chunk: 0 });
        tile.lengths.insert(buffer, len);
        buffer
    }

    /// Start values of sums and maxima over features.
    fn start_folds(&mut self, members: &[Id], tile: &mut Tile) {
        for &id in members {
            let Some(value) = fold_start(&self.node(id).op) else { continue };
            let to = self.array(id, &tile.scope);
            let instr = self.fill_lanes(&to, value);
            tile.instrs.push(instr);
        }
    }

    /// Fills all features of a dense row value.
    fn fill_lanes(&self, to: &Array, value: f64) -> Instr {
        let features = to.dims.iter().product();
        Instr::FillLanes { to: to.at, features, stride: unit(to), value }
    }

    /// An argument as an array with a value per lane, copied if all lanes share it.
    fn lane_array(&mut self, id: Id, tile: &mut Tile) -> Array {
        let array = self.array(id, &tile.scope);
        if array.lane == 1 { array } else { self.dense_copy(array, tile) }
    }

    /// An argument whose features lie one after another, copied if they do not.
    fn dense_array(&mut self, id: Id, tile: &mut Tile) -> Array {
        let dense = self.view(id).lane && self.view(id).is_dense(&self.node(id).shape.dims);
        let array = self.array(id, &tile.scope);
        if dense { array } else { self.dense_copy(array, tile) }
    }

    fn dense_copy(&mut self, from: Array, tile: &mut Tile) -> Array {
        let pitch = tile.scope.pitch;
        let len = from.dims.iter().product::<usize>() * pitch;
        let buffer = self.tile_buffer(len, tile);
        let mut strides = vec![pitch; from.dims.len()];
        for i in (1..strides.len()).rev() {
            strides[i - 1] = strides[i] * from.dims[i];
        }
        let to = Array { at: Ptr { buffer, offset: 0 }, dims: from.dims.clone(), strides, lane: 1 };
        tile.instrs.push(Instr::Copy { from, to: to.clone(), lanes: Lanes::Tile });
        to
    }

    /// A node with an instruction of its own.
    fn row_instr(&mut self, id: Id, tile: &mut Tile) {
        let node = self.node(id).clone();
        if reduces_rows(&node.op) {
            let contraction = self.contraction(id, tile);
            return tile.instrs.push(Instr::Contraction(contraction));
        }
        let to = self.array(id, &tile.scope);
        let (features, stride) = (node.shape.features(), unit(&to));
        let instr = match node.op {
            Op::Input(..) | Op::Variable(_) => {
                let from = Ptr { buffer: self.sources[&id], offset: 0 };
                Instr::Load { from, features, to: to.at, stride }
            }
            Op::Distribute => {
                let from = self.whole_dense(node.args[0]);
                Instr::Load { from, features, to: to.at, stride }
            }
            Op::Random(draw, stream) => {
                Instr::Random { draw, stream, features, rows: node.shape.rows, to: to.at, stride }
            }
            Op::Matmul => return self.product(id, tile),
            Op::Reshape => {
                // The argument's own axes, written densely: the entries are then in the order of the new axes.
                let from = self.array(node.args[0], &tile.scope);
                let strides = self.node(node.args[0]).shape.strides().iter().map(|s| s * stride).collect();
                let to = Array { dims: from.dims.clone(), strides, ..to };
                Instr::Copy { from, to, lanes: Lanes::Tile }
            }
            Op::Pad { axis, before } => {
                let from = self.array(node.args[0], &tile.scope);
                let zeros = self.fill_lanes(&to, 0.0);
                tile.instrs.push(zeros);
                let offset = to.at.offset + before * to.strides[axis];
                let to = Array { at: Ptr { offset, ..to.at }, dims: from.dims.clone(), ..to };
                Instr::Copy { from, to, lanes: Lanes::Tile }
            }
            Op::Concat { axis } => return self.row_concat(&node, axis, &to, tile),
            Op::Im2col(window) => {
                let from = self.dense_array(node.args[0], tile);
                let (image, strides) = ([from.dims[0], from.dims[1], from.dims[2]], [unit(&from), stride]);
                Instr::Im2col { window, image, from: from.at, to: to.at, strides, rowed: true }
            }
            Op::Col2im(window) => {
                let from = self.dense_array(node.args[0], tile);
                let dims = &node.shape.dims;
                let (image, strides) = ([dims[0], dims[1], dims[2]], [unit(&from), stride]);
                Instr::Col2im { window, image, from: from.at, to: to.at, strides, rowed: true }
            }
            Op::Gather => {
                let table = self.whole_dense(node.args[0]);
                let dims = &self.node(node.args[0]).shape.dims;
                let (len, width) = (dims[0], dims[1..].iter().product());
                let index = self.dense_array(node.args[1], tile);
                Instr::Gather { table, len, width, index, to: to.at, stride, rowed: true }
            }
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Sum { .. } | Op::Max { .. } => {
                not_here(&node.op, "a chain")
            }
            Op::SumRows | Op::MaxRows | Op::Contract => not_here(&node.op, "partial results"),
            Op::Broadcast | Op::Transpose(_) | Op::Slice { .. } | Op::StopGradient | Op::Pin => {
                not_here(&node.op, "a view")
            }
            Op::Fill(_) | Op::Table(_) | Op::Step => not_here(&node.op, "a constant"),
            Op::Collect | Op::Scatter | Op::Kth(_) => not_here(&node.op, "a whole stage"),
        };
        tile.instrs.push(instr);
    }

    fn row_concat(&mut self, node: &Node, axis: usize, to: &Array, tile: &mut Tile) {
        let mut offset = to.at.offset;
        for &part in &node.args {
            let from = self.array(part, &tile.scope);
            let to = Array { at: Ptr { offset, ..to.at }, dims: from.dims.clone(), ..to.clone() };
            offset += from.dims[axis] * to.strides[axis];
            tile.instrs.push(Instr::Copy { from, to, lanes: Lanes::Tile });
        }
    }

    /// The place of a value without rows that must be dense (made so in an earlier stage).
    fn whole_dense(&mut self, id: Id) -> Ptr {
        self.whole_array(id).at
    }

    fn product(&mut self, id: Id, tile: &mut Tile) {
        let node = self.node(id).clone();
        let [x, y] = node.args[..] else { unreachable!("a product has two factors") };
        let pitch = tile.scope.pitch;
        let to = self.array(id, &tile.scope);
        let r = node.shape.rank();
        let batch: usize = node.shape.dims[..r - 2].iter().product();
        let k = self.node(x).shape.dims[r - 1];
        let [m, n] = [node.shape.dims[r - 2], node.shape.dims[r - 1]];
        let step = |a: &Array| if r > 2 { a.strides[r - 3] } else { 0 };
        assert!(r <= 3, "matmul: at most one batch axis in a rows stage, not {}", node.shape);
        let product = if self.node(x).shape.rows.is_some() {
            let bias = self.biases.get(&id).copied().map(|bias| {
                let bias = self.whole_array(bias);
                let stride = bias.dims.iter().zip(&bias.strides).find(|(d, _)| **d == n).map_or(0, |(_, &s)| s);
                (bias.at, stride)
            });
            let (a, w) = (self.lane_array(x, tile), self.array(y, &tile.scope));
            Product {
                n,
                k,
                lanes: Lanes::Tile,
                w: w.at,
                w_strides: [w.strides[r - 2], w.strides[r - 1]],
                a: a.at,
                a_stride: a.strides[r - 1],
                c: to.at,
                c_stride: to.strides[r - 1],
                bias,
                turns: [
                    Turn { count: batch, w: step(&w), a: step(&a), c: step(&to) },
                    Turn { count: m, w: 0, a: a.strides[r - 2], c: to.strides[r - 2] },
                ],
            }
        } else {
            let (w, a) = (self.array(x, &tile.scope), self.lane_array(y, tile));
            // Columns that lie one after another are just more lanes.
            let wide = n == 1 || (a.strides[r - 1] == pitch && to.strides[r - 1] == pitch);
            Product {
                n: m,
                k,
                lanes: if wide && n > 1 { Lanes::Fixed(n * pitch) } else { Lanes::Tile },
                w: w.at,
                w_strides: [w.strides[r - 1], w.strides[r - 2]],
                a: a.at,
                a_stride: a.strides[r - 2],
                c: to.at,
                c_stride: to.strides[r - 2],
                bias: None,
                turns: [
                    Turn { count: batch, w: step(&w), a: step(&a), c: step(&to) },
                    Turn { count: if wide { 1 } else { n }, w: 0, a: a.strides[r - 1], c: to.strides[r - 1] },
                ],
            }
        };
        tile.instrs.push(Instr::Product(product));
    }

    fn contraction(&mut self, id: Id, tile: &mut Tile) -> Contraction {
        let node = self.node(id).clone();
        let (a, b) = (self.lane_array(node.args[0], tile), self.lane_array(node.args[1], tile));
        let (sum, scale) = self.sums.target(id);
        let c = Ptr { buffer: self.partials[&sum].0, offset: 0 };
        self.contraction_of(&a, &b, c, scale, tile.scope.pitch)
    }

    /// A contraction of two row values over up to `rows` lanes.
    pub(super) fn contraction_of(&mut self, a: &Array, b: &Array, c: Ptr, scale: f64, rows: usize) -> Contraction {
        let r = a.dims.len();
        assert!(r <= 3, "contract: at most one batch axis, not {:?}", a.dims);
        let step = |a: &Array| if r > 2 { a.strides[r - 3] } else { 0 };
        let [k, n] = [a.dims[r - 1], b.dims[r - 1]];
        self.plan.scratch = self.plan.scratch.max(gemm::rows_scratch(n, rows));
        Contraction {
            m: k,
            n,
            a: a.at,
            a_stride: a.strides[r - 1],
            b: b.at,
            b_stride: b.strides[r - 1],
            c,
            scale,
            turns: [
                Turn { count: a.dims[..r - 2].iter().product(), w: step(a), a: step(b), c: k * n },
                Turn { count: a.dims[r - 2], w: a.strides[r - 2], a: b.strides[r - 2], c: 0 },
            ],
        }
    }

    /// Writes a row value to the outputs and variables that ask for it.
    fn save(&mut self, id: Id, tile: &mut Tile) {
        let from = self.array(id, &tile.scope);
        let outputs: Vec<usize> = (0..self.outputs.len()).filter(|&k| self.outputs[k] == id).collect();
        let mut targets: Vec<usize> = outputs.into_iter().map(|k| self.plan.outputs[k].0).collect();
        for (variable, value) in self.updates.clone() {
            if value == id {
                let shape = self.node(id).shape.clone();
                let slot = self.slot_of(variable);
                targets.push(self.next_value(slot, &shape));
            }
        }
        for buffer in targets {
            let already = |i: &Instr| matches!(i, Instr::Save { to, .. } if to.buffer == buffer);
            if !tile.instrs.iter().any(already) {
                tile.instrs.push(Instr::Save { from: from.clone(), to: Ptr { buffer, offset: 0 } });
            }
        }
    }

    /// Gives the tile's buffers places in the arena, by when they are used.
    fn finish_tile(&mut self, tile: &Tile) {
        let mut spans: HashMap<usize, (usize, usize)> = HashMap::new();
        for (i, instr) in tile.instrs.iter().enumerate() {
            for buffer in instr.buffers() {
                let span = spans.entry(buffer).or_insert((i, i));
                span.1 = i;
            }
        }
        let intervals = tile
            .lengths
            .iter()
            .filter_map(|(&buffer, &len)| {
                spans.get(&buffer).map(|&(first, last)| Interval { first, last, len, buffer })
            })
            .collect();
        let (offsets, total) = pack(intervals);
        for (buffer, offset) in offsets {
            self.plan.buffers[buffer].base = offset;
        }
        self.plan.arena = self.plan.arena.max(total);
    }
}

/// The distance between neighbouring features of a dense row value; axes of length 1 say nothing about it.
fn unit(array: &Array) -> usize {
    array.dims.iter().zip(&array.strides).rev().find(|(d, _)| **d != 1).map_or(0, |(_, s)| *s)
}

fn not_here(op: &Op, place: &str) -> ! {
    unreachable!("{} has no instruction in a rows stage, but {place}", op.name())
}
