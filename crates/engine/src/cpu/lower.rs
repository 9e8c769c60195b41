//! From a graph to a plan: which stage each node belongs to, what is fused, and where values live.
//!
//! Rows meet only in reductions over rows, so a program falls into stages: everything that can be computed row by row,
//! then the values without rows that depend on it, then rows again. Stages are numbered: odd ones are rows.

use super::plan::*;
use crate::graph::{Expr, Graph, Id, Node};
use crate::inputs::Named;
use crate::op::{Binary, Element, Op};
use crate::plan::{View, live, space, views};
use crate::shape::Shape;
use std::collections::{BTreeMap, HashMap};

mod chains;
mod rows;
mod sums;
mod whole;

/// State of the lowering.
pub(super) struct Lowering<'g> {
    graph: &'g Graph,
    nodes: Vec<Node>,
    live: Vec<bool>,
    views: Vec<View>,
    /// Stage in which a node is computed; reductions over rows are computed in the stage of the rows.
    runs_in: Vec<usize>,
    /// Nodes with a buffer that read a root, other than views.
    users: Vec<Vec<Id>>,
    /// Buffers of roots that outlive a tile, and of rowed leaves and tile values per stage.
    homes: HashMap<Id, usize>,
    /// Row-major buffers of row inputs and variables, from which tiles are loaded.
    sources: HashMap<Id, usize>,
    /// Copies of views that an instruction needs contiguous.
    copies: HashMap<Id, usize>,
    /// Products that start from a bias instead of zero.
    biases: HashMap<Id, Id>,
    sums: sums::Sums,
    /// Partial results of reductions over rows: buffer, and (number of chunks, distance between them).
    partials: HashMap<Id, (usize, (usize, usize))>,
    outputs: Vec<Id>,
    updates: Vec<(Id, Id)>,
    replicas: usize,
    pitch: usize,
    plan: Plan,
}

/// Plans a program for tiles of at most `pitch` rows.
pub(crate) fn plan(graph: &Graph, outputs: &[Expr], updates: &[(Expr, Expr)], replicas: usize, pitch: usize) -> Plan {
    let nodes = graph.nodes().clone();
    let outputs: Vec<Id> = outputs.iter().map(|e| e.id).collect();
    let updates: Vec<(Id, Id)> = updates.iter().map(|(v, e)| (v.id, e.id)).collect();
    let live = live(&nodes, outputs.iter().copied().chain(updates.iter().flat_map(|&(v, e)| [v, e])));
    let views = views(graph, &live);
    let runs_in = stages(&nodes, &live);
    let mut lowering = Lowering {
        graph,
        users: vec![vec![]; nodes.len()],
        nodes,
        live,
        views,
        runs_in,
        homes: HashMap::new(),
        sources: HashMap::new(),
        copies: HashMap::new(),
        biases: HashMap::new(),
        sums: sums::Sums::default(),
        partials: HashMap::new(),
        outputs,
        updates,
        replicas,
        pitch,
        plan: Plan::default(),
    };
    lowering.fuse_biases();
    lowering.find_users();
    lowering.find_sums();
    lowering.delay();
    lowering.place_leaves();
    lowering.place_results();
    let last = lowering.runs_in.iter().copied().max().unwrap_or(0);
    for stage in 0..=last + 1 {
        if stage % 2 == 1 { lowering.rows_stages(stage) } else { lowering.whole_stages(stage) }
    }
    lowering.copy_results();
    lowering.plan
}

/// True for operations that turn a row value into one without rows, tile by tile.
fn reduces_rows(op: &Op) -> bool {
    matches!(op, Op::SumRows | Op::MaxRows | Op::Contract)
}

/// What a sum or maximum over features starts from.
fn fold_start(op: &Op) -> Option<f64> {
    if matches!(op, Op::Sum { .. }) {
        Some(0.0)
    } else if matches!(op, Op::Max { .. }) {
        Some(f64::NEG_INFINITY)
    } else {
        None
    }
}

/// The stage each node runs in: even stages have no rows; a value is ready for the stages after its own.
fn stages(nodes: &[Node], live: &[bool]) -> Vec<usize> {
    let mut ready = vec![0usize; nodes.len()];
    let mut runs_in = vec![0; nodes.len()];
    for (id, node) in nodes.iter().enumerate().filter(|&(id, _)| live[id]) {
        let latest = node.args.iter().map(|&a| ready[a as usize]).max().unwrap_or(0);
        let rowed = node.shape.rows.is_some() || reduces_rows(&node.op);
        runs_in[id] = if rowed { latest | 1 } else { latest.next_multiple_of(2) };
        ready[id] = if reduces_rows(&node.op) { runs_in[id] + 1 } else { runs_in[id] };
    }
    runs_in
}

impl Lowering<'_> {
    fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    fn view(&self, id: Id) -> &View {
        &self.views[id as usize]
    }

    fn root(&self, id: Id) -> Id {
        self.view(id).root
    }

    /// A live node with a buffer and an instruction of its own.
    fn is_computed(&self, id: Id) -> bool {
        let node = self.node(id);
        let leaf = matches!(node.op, Op::Fill(_) | Op::Table(_) | Op::Step)
            || (matches!(node.op, Op::Input(..) | Op::Variable(_)) && node.shape.rows.is_none());
        self.live[id as usize] && self.root(id) == id && !leaf && !self.is_absorbed(id)
    }

    /// True for steps on the way to a sum of contractions; the contractions themselves run if they make partial sums.
    fn is_absorbed(&self, id: Id) -> bool {
        self.sums.is_hidden(id) && !(self.node(id).op == Op::Contract && self.runs_in[id as usize] % 2 == 1)
    }

    /// A row value that is read or drawn rather than computed: it is made anew in each rows stage that needs it.
    fn is_row_leaf(&self, id: Id) -> bool {
        let node = self.node(id);
        let leaf = matches!(node.op, Op::Input(..) | Op::Variable(_) | Op::Random(..) | Op::Distribute);
        let in_rows = |u: &Id| self.runs_in[*u as usize] % 2 == 1;
        leaf && node.shape.rows.is_some() && self.users[id as usize].iter().all(in_rows)
    }

    /// True if an output or a new value is read from a node's buffer.
    fn is_result(&self, id: Id) -> bool {
        self.outputs.iter().chain(self.updates.iter().map(|(_, value)| value)).any(|&e| self.root(e) == id)
    }

    /// Moves values without rows to the latest stage that still serves their users: there they can be fused.
    fn delay(&mut self) {
        let mut latest = vec![usize::MAX; self.nodes.len()];
        for id in (0..self.nodes.len()).rev().filter(|&id| self.live[id]) {
            let node = &self.nodes[id];
            let movable = node.shape.rows.is_none() && self.runs_in[id].is_multiple_of(2) && !reduces_rows(&node.op);
            if movable && latest[id] != usize::MAX {
                self.runs_in[id] = self.runs_in[id].max(latest[id]);
            }
            let rowed = self.runs_in[id] % 2 == 1;
            for &arg in &node.args {
                let until = self.runs_in[id] - usize::from(rowed);
                latest[arg as usize] = latest[arg as usize].min(until);
            }
        }
        for id in 0..self.nodes.len() as Id {
            let (sum, _) = self.sums.target(id);
            if self.sums.after(sum).is_some() && sum != id {
                self.runs_in[id as usize] = self.runs_in[sum as usize];
            }
        }
    }

    /// x·W + b with a vector b: the product starts from b, and the sum is the product's buffer.
    fn fuse_biases(&mut self) {
        let mut uses = vec![0; self.nodes.len()];
        for id in (0..self.nodes.len()).filter(|&id| self.live[id]) {
            self.nodes[id].args.iter().for_each(|&a| uses[a as usize] += 1);
        }
        self.outputs.iter().chain(self.updates.iter().map(|(_, e)| e)).for_each(|&e| uses[e as usize] += 1);
        for id in (0..self.nodes.len() as Id).filter(|&id| self.live[id as usize]) {
            let node = self.node(id);
            let (Op::Binary(Binary::Add), &[a, b]) = (&node.op, &node.args[..]) else { continue };
            let pair = [(a, b), (b, a)].into_iter().find(|&(product, bias)| self.takes_bias(id, product, bias, &uses));
            if let Some((product, bias)) = pair {
                let root = self.root(product);
                self.biases.insert(root, bias);
                self.views[id as usize] = self.views[product as usize].clone();
                // Slices and other views of the sum, whose entries lie in the product's buffer as they would in its own.
                self.views.iter_mut().filter(|view| view.root == id).for_each(|view| view.root = root);
            }
        }
    }

    fn takes_bias(&self, sum: Id, product: Id, bias: Id, uses: &[usize]) -> bool {
        let (view, root) = (self.view(product), self.root(product));
        let dims = &self.node(sum).shape.dims;
        let used_once = uses[product as usize] == 1 && (root == product || uses[root as usize] == 1);
        let of_rows = |id: Id| self.node(id).shape.rows.is_some();
        self.node(root).op == Op::Matmul
            && used_once
            && of_rows(self.node(root).args[0])
            && view.is_dense(dims)
            && space(dims) == [*self.node(root).shape.dims.last().unwrap_or(&0)]
            && !self.view(bias).lane
            && self.runs_in[sum as usize] == self.runs_in[root as usize]
    }

    fn find_users(&mut self) {
        for (product, bias) in self.biases.clone() {
            let root = self.root(bias);
            self.users[root as usize].push(product);
        }
        for id in 0..self.nodes.len() as Id {
            if self.is_computed(id) {
                for arg in self.node(id).args.clone() {
                    let root = self.root(arg);
                    self.users[root as usize].push(id);
                }
            }
        }
    }

    fn buffer(&mut self, buffer: Buffer) -> usize {
        self.plan.buffers.push(buffer);
        self.plan.buffers.len() - 1
    }

    /// Fresh memory of `len` elements per replica.
    fn memory(&mut self, len: usize, per_row: usize, per_chunk: usize) -> usize {
        let per_replica = len.next_multiple_of(super::tiling::LANES);
        let base = self.plan.memory;
        self.plan.memory += per_replica * self.replicas;
        self.buffer(Buffer { home: Home::Memory, base, per_replica, per_row, per_chunk })
    }

    /// Constants shared by all replicas.
    fn constant(&mut self, values: Vec<f64>) -> usize {
        let base = self.plan.memory;
        self.plan.memory += values.len().next_multiple_of(super::tiling::LANES);
        self.plan.constants.push((base, values));
        self.buffer(Buffer { home: Home::Memory, base, per_replica: 0, per_row: 0, per_chunk: 0 })
    }

    fn place_leaves(&mut self) {
        for id in 0..self.nodes.len() as Id {
            if !self.live[id as usize] {
                continue;
            }
            let Node { op, shape, .. } = self.node(id).clone();
            let external = |home| Buffer { home, base: 0, per_replica: shape.len(), per_row: 0, per_chunk: 0 };
            let buffer = match op {
                Op::Input(name, element) => {
                    let (list, home): (_, fn(usize) -> Home) = match element {
                        Element::Real => (&mut self.plan.inputs, Home::Input),
                        Element::Byte => (&mut self.plan.bytes, Home::Bytes),
                    };
                    list.push(Named { name: name.to_string(), shape: shape.clone() });
                    let slot = list.len() - 1;
                    self.buffer(external(home(slot)))
                }
                Op::Variable(name) => {
                    let slot = self.plan.variables.len();
                    self.plan.variables.push(Named { name: name.to_string(), shape: shape.clone() });
                    self.buffer(external(Home::Variable(slot)))
                }
                Op::Fill(bits) => self.constant(vec![f64::from_bits(bits)]),
                Op::Table(bits) => self.constant(bits.iter().map(|&b| f64::from_bits(b)).collect()),
                Op::Step => {
                    let buffer = self.constant(vec![0.0]);
                    self.plan.step = Some(self.plan.buffers[buffer].base);
                    buffer
                }
                Op::Random(..) => continue, // drawn
                Op::Unary(_) | Op::Binary(_) | Op::Select | Op::StopGradient | Op::Pin => continue,
                Op::Broadcast | Op::Reshape | Op::Transpose(_) | Op::Slice { .. } => continue,
                Op::Pad { .. } | Op::Concat { .. } | Op::Collect | Op::Distribute => continue,
                Op::Sum { .. } | Op::Max { .. } | Op::SumRows | Op::MaxRows | Op::Kth(_) => continue,
                Op::Matmul | Op::Contract | Op::Gather | Op::Scatter | Op::Im2col(_) | Op::Col2im(_) => continue,
            };
            let places = if shape.rows.is_some() && !matches!(self.node(id).op, Op::Fill(_)) {
                &mut self.sources
            } else {
                &mut self.homes
            };
            places.insert(id, buffer);
        }
    }

    /// Outputs get memory; a variable's new value is written straight to its place if a chain computes it.
    fn place_results(&mut self) {
        for (variable, value) in self.updates.clone() {
            let slot = self.slot_of(variable);
            assert!(!self.plan.updated.contains(&slot), "compile: variable {} is updated twice", slot);
            self.plan.updated.push(slot);
            let shape = &self.node(value).shape;
            let direct = self.is_computed(value)
                && shape.rows.is_none()
                && (self.node(value).op.is_elementwise() || reduces_rows(&self.node(value).op))
                && !self.homes.contains_key(&value);
            if direct {
                let per_replica = shape.len();
                let buffer = Buffer { home: Home::Next(slot), base: 0, per_replica, per_row: 0, per_chunk: 0 };
                let buffer = self.buffer(buffer);
                self.homes.insert(value, buffer);
            }
        }
        for id in self.outputs.clone() {
            let shape = self.node(id).shape.clone();
            // Exactly `len` apart, so that the replicas of an output form one array.
            let base = self.plan.memory;
            self.plan.memory += (shape.len() * self.replicas).next_multiple_of(super::tiling::LANES);
            let buffer = Buffer { home: Home::Memory, base, per_replica: shape.len(), per_row: 0, per_chunk: 0 };
            let buffer = self.buffer(buffer);
            self.plan.outputs.push((buffer, shape));
        }
    }

    fn slot_of(&self, variable: Id) -> usize {
        let buffer = self.sources.get(&variable).or_else(|| self.homes.get(&variable));
        let home = self.plan.buffers[*buffer.expect("variables have buffers")].home;
        let Home::Variable(slot) = home else { unreachable!("only variables are updated") };
        slot
    }

    /// The buffer of a value without rows.
    fn whole_home(&mut self, id: Id) -> usize {
        if let Some(&home) = self.homes.get(&id) {
            return home;
        }
        let home = self.memory(self.node(id).shape.len(), 0, 0);
        self.homes.insert(id, home);
        home
    }

    /// A value without rows as a strided array.
    fn whole_array(&mut self, id: Id) -> Array {
        let dims = self.node(id).shape.dims.clone();
        if let Some(&buffer) = self.copies.get(&id) {
            let strides = Shape::whole(dims.clone()).strides();
            return Array { at: Ptr { buffer, offset: 0 }, dims, strides, lane: 0 };
        }
        let View { root, offset, strides, .. } = self.view(id).clone();
        let buffer = self.whole_home(root);
        Array { at: Ptr { buffer, offset }, dims, strides, lane: 0 }
    }

    /// The partial results of a reduction over rows (those of the chunk at hand), as an array.
    fn partial_array(&self, id: Id) -> Array {
        let dims = self.node(id).shape.dims.clone();
        let strides = Shape::whole(dims.clone()).strides();
        Array { at: Ptr { buffer: self.partials[&id].0, offset: 0 }, dims, strides, lane: 0 }
    }

    /// The last stage: outputs and new values that are not in their place yet.
    fn copy_results(&mut self) {
        let mut instrs = vec![];
        for (k, id) in self.outputs.clone().into_iter().enumerate() {
            let (buffer, shape) = self.plan.outputs[k].clone();
            if shape.rows.is_none() {
                instrs.push(self.copy_to(id, buffer));
            }
        }
        for (variable, value) in self.updates.clone() {
            let slot = self.slot_of(variable);
            let shape = self.node(value).shape.clone();
            let home = self.homes.get(&value).map(|&b| self.plan.buffers[b].home);
            if shape.rows.is_none() && home != Some(Home::Next(slot)) {
                let buffer = self.next_value(slot, &shape);
                instrs.push(self.copy_to(value, buffer));
            }
        }
        if !instrs.is_empty() {
            self.plan.stages.push(Stage::Whole { instrs });
        }
    }

    fn next_value(&mut self, slot: usize, shape: &Shape) -> usize {
        let per_replica = shape.len();
        self.buffer(Buffer { home: Home::Next(slot), base: 0, per_replica, per_row: 0, per_chunk: 0 })
    }

    fn copy_to(&mut self, id: Id, buffer: usize) -> Instr {
        let from = self.whole_array(id);
        let strides = Shape::whole(from.dims.clone()).strides();
        let to = Array { at: Ptr { buffer, offset: 0 }, dims: from.dims.clone(), strides, lane: 0 };
        Instr::Copy { from, to, lanes: Lanes::Fixed(1) }
    }
}

/// Groups of nodes that run together: depth, then nodes in order.
type Levels = BTreeMap<usize, Vec<Id>>;
