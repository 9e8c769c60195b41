//! A program for the GPU: its kernels as source, and where everything lives.

use super::arguments::Arguments;
use super::lower::lower;
use super::parts::{Arithmetic, Kind, Part, Partition};
use super::tiles::bounds;
use super::write;
use super::{THREADS, Trouble};
use crate::cpu::pack;
use crate::device::DeviceErrorKind;
use crate::expr::Expr;
use crate::graph::{Graph, Id};
use crate::inputs::Named;
use crate::op::{Element, Op};
use crate::shape::Shape;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// The program's own memory, from this number on.
    Memory(usize),
    Input(usize),
    /// An input of bytes.
    Bytes(usize),
    /// A variable as it was before the step.
    Variable(usize),
    /// A variable as it will be after it.
    Next(usize),
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Param {
    Pointer(Home),
    /// Distance between replicas.
    Stride(Home),
    /// A number in the program's precision, as bits.
    Constant(u64),
}

/// One launch of a step.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub source: String,
    pub blocks: usize,
    /// Bytes of shared memory.
    pub shared: usize,
    pub params: Vec<Param>,
}

/// A program as kernels and memory.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub kernels: Vec<Kernel>,
    pub inputs: Vec<Named>,
    pub bytes: Vec<Named>,
    pub variables: Vec<Named>,
    pub updated: Vec<usize>,
    pub outputs: Vec<(usize, Shape)>,
    /// Numbers of the program's own memory.
    pub memory: usize,
    pub constants: Vec<(usize, Vec<f64>)>,
    /// Whether kernels note indices outside their tables.
    pub checks: bool,
    /// What each kernel does, in words.
    pub summary: String,
}

/// Where parts store what they compute.
pub(super) struct Names {
    homes: HashMap<Id, Home>,
    targets: HashMap<Id, Vec<(String, Home)>>,
    partials: HashMap<usize, Home>,
    updated: Vec<usize>,
}

impl Names {
    /// The pointers a value is stored through.
    pub fn targets(&self, id: Id) -> Vec<String> {
        self.targets.get(&id).into_iter().flatten().map(|(name, _)| name.clone()).collect()
    }

    /// Distance between replicas of a buffer.
    pub fn stride(&self, partition: &Partition, id: Id) -> String {
        match (self.homes[&id], &partition.node(id).op) {
            (_, Op::Table(_)) => "0".to_string(),
            (home, _) if self.shared(home) => format!("s@{id}"),
            _ => partition.node(id).shape.len().to_string(),
        }
    }

    /// True if all replicas may share one copy, which is known only when the program runs.
    fn shared(&self, home: Home) -> bool {
        match home {
            Home::Input(_) | Home::Bytes(_) => true,
            Home::Variable(slot) => !self.updated.contains(&slot),
            _ => false,
        }
    }
}

/// Buffers start on lines of the cache.
const LINE: usize = 64;

pub(super) fn plan(
    graph: &Graph,
    outputs: &[Expr],
    updates: &[(Expr, Expr)],
    replicas: usize,
    arithmetic: Arithmetic,
) -> Result<Plan, Trouble> {
    let mut outputs: Vec<Id> = outputs.iter().map(|e| e.id).collect();
    let mut updates: Vec<(Id, Id)> = updates.iter().map(|(v, e)| (v.id, e.id)).collect();
    let ends = updates.iter_mut().flat_map(|(v, e)| [v, e]);
    let nodes = lower(&graph.nodes(), &mut outputs.iter_mut().chain(ends).collect::<Vec<_>>());
    let partition = Partition::new(nodes, outputs, updates, replicas, arithmetic);
    let mut plan = Plan::default();
    let names = plan.place(&partition);
    limits(&partition, &names)?;
    for level in 0..partition.levels() {
        let kernel = plan.kernel(&partition, &names, level);
        if kernel.blocks > LARGEST {
            return Err(too_large(&format!("kernel {level} of {} blocks", kernel.blocks)));
        }
        plan.kernels.push(kernel);
    }
    Ok(plan)
}

/// Kernels count places in an `int`, with some room for blocks and pieces that are rounded up.
const LARGEST: usize = i32::MAX as usize - (1 << 20);

/// An error if kernels would have to count further than they can.
///
/// A table that is only read may be larger: it is addressed by entry and place in it (see `Emitter::load`).
fn limits(partition: &Partition, names: &Names) -> Result<(), Trouble> {
    for (id, node) in partition.nodes.iter().enumerate().filter(|&(id, _)| partition.live[id]) {
        let shape = &node.shape;
        let stored = names.targets.contains_key(&(id as Id))
            || partition.part_of[id].is_some_and(|_| names.homes.contains_key(&(id as Id)));
        let leaf = matches!(node.op, Op::Input(..) | Op::Variable(_) | Op::Table(_));
        let table = leaf && shape.rows.is_none() && shape.rank() > 1;
        let counted = match (stored, leaf) {
            (true, _) => shape.len(),
            (false, true) if table => shape.dims[0].max(shape.len() / shape.dims[0].max(1)),
            (false, true) => shape.len(),
            (false, false) => shape.features().max(shape.rows.unwrap_or(1)),
        };
        if counted > LARGEST || partition.replicas.saturating_mul(shape.rows.unwrap_or(1)) > LARGEST {
            return Err(too_large(&format!("a value of shape {shape} for {} replicas", partition.replicas)));
        }
    }
    let part = partition.parts.iter().find(|part| part.shape.len() > LARGEST);
    part.map_or(Ok(()), |part| Err(too_large(&format!("a value of shape {}", part.shape))))
}

fn too_large(what: &str) -> Trouble {
    let kind = DeviceErrorKind::OutOfMemory;
    Trouble::new(
        kind,
        format!("{what} is too large to be indexed on the GPU; use fewer rows or replicas, or use the CPU"),
    )
}

impl Plan {
    /// Decides where everything lives.
    fn place(&mut self, partition: &Partition) -> Names {
        let mut names =
            Names { homes: HashMap::new(), targets: HashMap::new(), partials: HashMap::new(), updated: vec![] };
        let mut slots: HashMap<Id, usize> = HashMap::new();
        for (id, node) in partition.nodes.iter().enumerate().filter(|&(id, _)| partition.live[id]) {
            let named = |name: &str| Named { name: name.to_string(), shape: node.shape.clone() };
            let home = match &node.op {
                Op::Input(name, Element::Real) => {
                    self.inputs.push(named(name));
                    Home::Input(self.inputs.len() - 1)
                }
                Op::Input(name, Element::Byte) => {
                    self.bytes.push(named(name));
                    Home::Bytes(self.bytes.len() - 1)
                }
                Op::Variable(name) => {
                    self.variables.push(named(name));
                    slots.insert(id as Id, self.variables.len() - 1);
                    Home::Variable(self.variables.len() - 1)
                }
                Op::Table(bits) => {
                    let at = self.take(node.shape.len());
                    self.constants.push((at, bits.iter().map(|&b| f64::from_bits(b)).collect()));
                    Home::Memory(at)
                }
                _ => continue,
            };
            names.homes.insert(id as Id, home);
        }
        for (k, &id) in partition.outputs.iter().enumerate() {
            let shape = partition.node(id).shape.clone();
            let at = self.take(shape.len() * partition.replicas);
            self.outputs.push((at, shape));
            names.store(id, format!("out@{k}"), Home::Memory(at), partition);
        }
        for (variable, value) in &partition.updates {
            let slot = slots[variable];
            self.updated.push(slot);
            names.store(*value, format!("next@{slot}"), Home::Next(slot), partition);
        }
        names.updated = self.updated.clone();
        self.pack(partition, &mut names);
        names
    }

    /// Room that lasts as long as the program.
    fn take(&mut self, len: usize) -> usize {
        let at = self.memory;
        self.memory += len.next_multiple_of(LINE);
        at
    }

    /// Room for what one part computes for another, shared by values whose levels do not meet.
    fn pack(&mut self, partition: &Partition, names: &mut Names) {
        let mut last: HashMap<Id, usize> = HashMap::new();
        for (number, part) in partition.parts.iter().enumerate() {
            for id in write::part(partition, number, None).reads {
                let l = last.entry(id).or_insert(part.level);
                *l = part.level.max(*l);
            }
        }
        let mut intervals = vec![];
        let mut read: Vec<(Id, usize)> = last.into_iter().collect();
        read.sort_unstable();
        for &(id, until) in &read {
            let Some(part) = partition.part_of[id as usize] else { continue };
            if !names.homes.contains_key(&id) {
                let len = (partition.node(id).shape.len() * partition.replicas).next_multiple_of(LINE);
                intervals.push((partition.parts[part].level, until, len, id as usize));
            }
        }
        let first_partial = partition.nodes.len();
        for (number, part) in partition.parts.iter().enumerate() {
            let splits = match &part.kind {
                Kind::Product(p) => p.splits,
                Kind::Reduce(r) => r.splits,
                _ => 1,
            };
            if splits > 1 {
                let len = (part.shape.len() * partition.replicas * splits).next_multiple_of(LINE);
                intervals.push((part.level, part.level + 1, len, first_partial + number));
            }
        }
        let (offsets, total) = pack(intervals);
        for (buffer, at) in offsets {
            let home = Home::Memory(self.memory + at);
            if buffer >= first_partial {
                names.partials.insert(buffer - first_partial, home);
            } else {
                names.homes.insert(buffer as Id, home);
                names.targets.entry(buffer as Id).or_default().push((format!("h@{buffer}"), home));
            }
        }
        self.memory += total;
    }

    /// The kernel of one level: its parts side by side.
    fn kernel(&mut self, partition: &Partition, names: &Names, level: usize) -> Kernel {
        let mut known: HashMap<String, Param> = HashMap::new();
        let (mut blocks, mut shared, mut random, mut body) = (0, 0, false, String::new());
        let _ = write!(self.summary, "kernel {level}:");
        // Blocks start in order: those that take longest first, so that none is left over at the end.
        let mut parts: Vec<(usize, &Part)> =
            partition.parts.iter().enumerate().filter(|(_, p)| p.level == level).collect();
        parts.sort_by_key(|(_, part)| std::cmp::Reverse(part.effort()));
        for (number, part) in parts {
            let code = write::part(partition, number, Some(names));
            for id in &code.reads {
                let home = names.homes[id];
                known.insert(format!("b@{id}"), Param::Pointer(home));
                if names.shared(home) {
                    known.insert(format!("s@{id}"), Param::Stride(home));
                }
            }
            let stored: BTreeSet<Id> = part.nodes.iter().chain(&part.copies).copied().collect();
            for (name, home) in stored.iter().filter_map(|id| names.targets.get(id)).flatten() {
                known.insert(name.clone(), Param::Pointer(*home));
            }
            for number in part.sums.into_iter().chain([number]) {
                if let Some(&home) = names.partials.get(&number) {
                    known.insert(format!("w@{number}"), Param::Pointer(home));
                }
            }
            let _ = write!(body, "if (block < {}) {{\n{}return;\n}}\nblock -= {0};\n", code.blocks, code.text);
            let _ = write!(self.summary, " {}", describe(&part.kind, &part.shape, part.nodes.len(), code.blocks));
            blocks += code.blocks;
            shared = shared.max(code.shared * if partition.arithmetic.single { 4 } else { 8 });
            random |= code.random;
        }
        self.summary.push('\n');
        let mut arguments = Arguments::new(known, partition.arithmetic.single);
        let body = arguments.rename(&body);
        self.checks |= body.contains("entry_(");
        let clock = if random { "const u32 step = clock[0] + offset;\n" } else { "" };
        let real = if partition.arithmetic.single { "float" } else { "double" };
        let source = format!(
            "typedef {real} real;\n#define THREADS {THREADS}\n{}\nextern \"C\" __global__ void __launch_bounds__(THREADS{}) step_kernel(u32* __restrict__ clock, \
             const u32 offset, const u32* __restrict__ keys{}) {{\nBEGIN\nint block = blockIdx.x;\n{clock}{body}}}\n",
            include_str!("prelude.cu"),
            bounds(shared, partition.arithmetic),
            arguments.list()
        );
        Kernel { source, blocks, shared, params: arguments.params }
    }
}

impl Names {
    /// A result; readers find the value there too, unless it is a leaf.
    fn store(&mut self, id: Id, name: String, home: Home, partition: &Partition) {
        self.targets.entry(id).or_default().push((name, home));
        // Readers prefer the first place; a new value of a variable is as good as any.
        if partition.part_of[id as usize].is_some() {
            self.homes.entry(id).or_insert(home);
        }
    }
}

fn describe(kind: &Kind, shape: &Shape, nodes: usize, blocks: usize) -> String {
    match kind {
        Kind::Map => format!("[map {shape}, {nodes} values, {blocks} blocks]"),
        Kind::Rows => format!("[rows {shape}, {nodes} values, {blocks} blocks]"),
        Kind::Product(p) => format!(
            "[product {}×{}×{} of {} terms, tile {}×{}, {} splits, {nodes} values, {blocks} blocks]",
            p.geometry.height(),
            p.geometry.width(),
            p.depth(),
            p.terms.len(),
            p.tile.m,
            p.tile.n,
            p.splits
        ),
        Kind::Reduce(r) => format!("[reduce {} to {shape}, {nodes} values, {blocks} blocks]", r.length),
    }
}
