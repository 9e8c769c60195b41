//! Kernels as CUDA C: what a block does for each kind of part. All text is written here, once, from its beginning to its end.

mod arguments;
mod formula;
mod product;
mod reduce;

pub(super) use arguments::Name;

use super::THREADS;
use super::lower::Placement;
use super::parts::{Kind, Part, Partition};
use super::plan::{Kernel, Param};
use super::tiles::bounds;
use super::work::Work;
use crate::graph::Id;
use crate::op::Op;
use crate::shape::Shape;
use arguments::Arguments;
use formula::Scope;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

/// A part as code.
struct Code {
    blocks: usize,
    /// Numbers of shared memory.
    shared: usize,
    text: String,
}

/// Parts of one level side by side, as a kernel; and in words.
pub(super) fn kernel(partition: &Partition, placement: &Placement, parts: &[(usize, Work)]) -> (Kernel, String) {
    let single = partition.arithmetic.single;
    let arguments = Arguments::new(known(partition, placement, parts), single);
    let mut writer = Writer { partition, placement, arguments };
    let (mut blocks, mut shared, mut body, mut summary) = (0, 0, String::new(), String::new());
    for (number, work) in parts {
        let (part, code) = (&partition.parts[*number], writer.part(*number, work));
        let _ = write!(body, "if (block < {}) {{\n{}return;\n}}\nblock -= {0};\n", code.blocks, code.text);
        let _ = write!(summary, " {}", describe(part, code.blocks));
        blocks += code.blocks;
        shared = shared.max(code.shared * if single { 4 } else { 8 });
    }
    let clock =
        if parts.iter().any(|(_, work)| work.needs.step) { "const u32 step = clock[0] + offset;\n" } else { "" };
    let source = format!(
        "typedef {real} real;\n#define THREADS {THREADS}\n{}\nextern \"C\" __global__ void __launch_bounds__(THREADS{}) step_kernel(u32* __restrict__ clock, \
         const u32 offset, const u32* __restrict__ keys{}) {{\nBEGIN\nint block = blockIdx.x;\n{clock}{body}}}\n",
        include_str!("prelude.cu"),
        bounds(shared, partition.arithmetic),
        writer.arguments.list(),
        real = if single { "float" } else { "double" },
    );
    (Kernel { source, blocks, shared, params: writer.arguments.params }, summary)
}

/// Everything that the text of some parts may name, but for constants.
fn known(partition: &Partition, placement: &Placement, parts: &[(usize, Work)]) -> HashMap<Name, Param> {
    let mut known = HashMap::new();
    for (number, work) in parts {
        let part = &partition.parts[*number];
        for &id in &work.needs.reads {
            let home = placement.home(id);
            known.insert(Name::Buffer(id), Param::Pointer(home));
            if placement.shared(home) {
                known.insert(Name::Stride(id), Param::Stride(home));
            }
        }
        let stored: BTreeSet<Id> = part.nodes.iter().chain(&part.copies).copied().collect();
        known.extend(stored.into_iter().flat_map(|id| placement.stores(id)));
        let pieces = part.sums.into_iter().chain([*number]);
        known.extend(pieces.filter_map(|part| Some((Name::Pieces(part), Param::Pointer(placement.pieces(part)?)))));
    }
    known
}

fn describe(part: &Part, blocks: usize) -> String {
    let (shape, nodes) = (&part.shape, part.nodes.len());
    match &part.kind {
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

/// Writes the text of one kernel. Names are given in order of appearance, so everything is written in the order of the text.
struct Writer<'a> {
    partition: &'a Partition,
    placement: &'a Placement,
    arguments: Arguments,
}

impl Writer<'_> {
    fn part(&mut self, number: usize, work: &Work) -> Code {
        let partition = self.partition;
        match &partition.parts[number].kind {
            Kind::Map => self.map(number, work),
            Kind::Rows => self.rows(number, work),
            Kind::Product(p) => self.product(number, p, work),
            Kind::Reduce(r) => self.reduce(number, r, work),
        }
    }

    /// Where the replica's share of each buffer begins.
    fn starts(&mut self, work: &Work) -> String {
        let mut text = String::new();
        for &id in &work.needs.reads {
            let start = self.arguments.name(Name::Start(id)).to_string();
            let _ = writeln!(text, "const i64 {start} = (i64)r * {};", self.stride(id));
        }
        text
    }

    /// Distance between replicas of a node's buffer.
    fn stride(&mut self, id: Id) -> String {
        let node = self.partition.node(id);
        if matches!(node.op, Op::Table(_)) {
            return "0".to_string();
        }
        match self.placement.shared(self.placement.home(id)) {
            true => self.arguments.name(Name::Stride(id)).to_string(),
            false => node.shape.len().to_string(),
        }
    }

    fn map(&mut self, number: usize, work: &Work) -> Code {
        let shape = &self.partition.parts[number].shape;
        let total = self.partition.replicas * shape.len();
        let (threads, len) = if work.four { (total / 4, shape.len() / 4) } else { (total, shape.len()) };
        // Divisions of 64 bits are slow.
        let integer = if threads.next_multiple_of(THREADS) < 1 << 31 { "int" } else { "i64" };
        let mut text = format!(
            "const {integer} e = ({integer})block * THREADS + threadIdx.x;\nif (e >= {threads}) return;\n\
             const int r = (int)(e / {len}), entry = (int)(e % {len});\n{}",
            indices(&if work.four { quarter(shape) } else { shape.clone() }, "entry")
        );
        text.push_str(&self.starts(work));
        text.push_str(&self.items(&work.ending, Scope::Results, ""));
        Code { blocks: threads.div_ceil(THREADS), shared: 0, text }
    }

    fn rows(&mut self, number: usize, work: &Work) -> Code {
        let rows = self.partition.parts[number].shape.rows.unwrap_or(1);
        let total = self.partition.replicas * rows;
        // Rows are few and their threads do much: few threads a block, so that many multiprocessors take part.
        let width = if total < 132 * THREADS { 32 } else { THREADS };
        let mut text = format!(
            "if (threadIdx.x >= {width}) return;\nconst int e = block * {width} + threadIdx.x;\n\
             if (e >= {total}) return;\nconst int r = e / {rows}, row = e % {rows};\n"
        );
        text.push_str(&self.starts(work));
        text.push_str(&self.items(&work.ending, Scope::Results, ""));
        Code { blocks: total.div_ceil(width), shared: 0, text }
    }
}

/// The shape with a quarter of its last long axis.
fn quarter(shape: &Shape) -> Shape {
    let mut shape = shape.clone();
    if let Some(last) = shape.dims.iter().rposition(|&d| d != 1) {
        shape.dims[last] /= 4;
    }
    shape
}

/// Declares `row`, `d0`, `d1`, … from the position of an entry in its replica.
fn indices(shape: &Shape, entry: &str) -> String {
    let features = shape.features();
    let mut text = format!("const int row = {entry} / {features};\n");
    let mut below = features;
    let (mut next, mut rest) = (0, format!("({entry} % {features})"));
    if shape.rows.is_none() {
        rest = entry.to_string();
    }
    for &d in shape.dims.iter().filter(|&&d| d != 1) {
        below /= d;
        let _ = writeln!(text, "const int d{next} = {rest} / {below};");
        rest = format!("({rest} % {below})");
        next += 1;
    }
    text
}
