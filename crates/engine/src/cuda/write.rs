//! Parts as CUDA C: what a block does for each kind of part.

use super::THREADS;
use super::arguments::constant;
use super::emit::{Emitter, Ix, Spot};
use super::parts::{Kind, Part, Partition, named_spot, quad_spots, row_spots};
use super::plan::Names;
use crate::graph::Id;
use crate::shape::Shape;
use std::collections::BTreeSet;
use std::fmt::Write;

mod product;
mod reduce;

/// A part as code.
pub(super) struct Code {
    pub blocks: usize,
    /// Numbers of shared memory.
    pub shared: usize,
    pub text: String,
    /// Nodes whose buffers are read.
    pub reads: BTreeSet<Id>,
    /// True if the clock is needed.
    pub random: bool,
}

/// Writes one part; `names` tells where results are stored (everything computed is, if there is none yet).
pub(super) fn part(partition: &Partition, number: usize, names: Option<&Names>) -> Code {
    let writer = Writer { partition, number, part: &partition.parts[number], names };
    match &writer.part.kind {
        Kind::Map => writer.map(),
        Kind::Rows => writer.rows(),
        Kind::Product(p) => writer.product(p),
        Kind::Reduce(r) => writer.reduce(r),
    }
}

struct Writer<'a> {
    partition: &'a Partition,
    number: usize,
    part: &'a Part,
    names: Option<&'a Names>,
}

/// What the scopes of a part read.
#[derive(Default)]
struct Needs {
    reads: BTreeSet<Id>,
    random: bool,
}

impl Needs {
    fn take(&mut self, e: &Emitter) {
        assert!(!e.trouble, "a part needs a reduction of its own at another entry");
        self.reads.extend(&e.reads);
        self.random |= e.random;
    }
}

impl Writer<'_> {
    /// A scope of the part, written by `f`.
    fn scope(&self, needs: &mut Needs, prefix: &'static str, f: impl FnOnce(&mut Emitter)) -> String {
        let place = |id: Id| self.partition.place(Some(self.number), id);
        let mut e = Emitter::new(&self.partition.nodes, &place, self.partition.arithmetic.single, prefix);
        f(&mut e);
        needs.take(&e);
        e.body
    }

    /// A number that is no node's.
    fn constant(&self, owner: std::fmt::Arguments, value: f64) -> String {
        constant(owner, value, self.partition.arithmetic.single)
    }

    fn finished(&self, blocks: usize, shared: usize, needs: Needs, head: &str, rest: &str) -> Code {
        let mut text = head.to_string();
        for &id in &needs.reads {
            let stride = match self.names {
                Some(names) => names.stride(self.partition, id),
                None => String::new(),
            };
            let _ = writeln!(text, "const i64 p@{id} = (i64)r * {stride};");
        }
        text.push_str(rest);
        Code { blocks, shared, text, reads: needs.reads, random: needs.random }
    }

    /// Everything the part computes at the places at hand, and the stores, each behind the guard.
    fn results(&self, e: &mut Emitter, spots: fn(&Shape) -> Vec<Spot>, guard: &str) {
        self.partition.announce(e, self.number, spots);
        for &id in self.part.nodes.iter().chain(&self.part.copies) {
            let shape = e.shape(id);
            let targets = self.names.map_or(vec![], |n| n.targets(id));
            if self.names.is_some() && targets.is_empty() {
                continue; // needed only by others of this part, which ask for it
            }
            let spots = spots(shape);
            let values: Vec<String> = spots.iter().map(|spot| e.value(id, spot.clone())).collect();
            let replica = format!("(i64)r * {}", shape.len());
            if let Some((first, _)) = e.stretch(&spots[0], shape) {
                let flat = e.flat(&first, shape).text();
                for target in &targets {
                    let _ = writeln!(
                        e.body,
                        "{guard}*(Four*)({target} + {replica} + {flat}) = Four{{{{{}}}}};",
                        values.join(", ")
                    );
                }
                continue;
            }
            for (spot, value) in spots.iter().zip(values) {
                let flat = e.flat(spot, shape).text();
                for target in &targets {
                    let _ = writeln!(e.body, "{guard}{target}[{replica} + {flat}] = {value};");
                }
            }
        }
    }

    fn map(&self) -> Code {
        let shape = &self.part.shape;
        let total = self.partition.replicas * shape.len();
        let mut needs = Needs::default();
        // Four entries a thread, if there are many and the last axis allows it.
        let four = total >= FOUR_FROM && self.by_four();
        let (threads, len) = if four { (total / 4, shape.len() / 4) } else { (total, shape.len()) };
        let body = self.scope(&mut needs, "", |e| self.results(e, if four { quad_spots } else { single_spot }, ""));
        // Divisions of 64 bits are slow.
        let integer = if threads.next_multiple_of(THREADS) < 1 << 31 { "int" } else { "i64" };
        let head = format!(
            "const {integer} e = ({integer})block * THREADS + threadIdx.x;\nif (e >= {threads}) return;\n\
             const int r = (int)(e / {len}), entry = (int)(e % {len});\n{}",
            indices(&if four { quarter(shape) } else { shape.clone() }, "entry")
        );
        self.finished(threads.div_ceil(THREADS), 0, needs, &head, &body)
    }

    /// True if entries can be taken in fours along the last axis.
    fn by_four(&self) -> bool {
        let last = self.part.shape.dims.iter().copied().rfind(|&d| d != 1);
        self.partition.arithmetic.single && last.is_some_and(|d| d >= 8 && d.is_multiple_of(4))
    }

    fn rows(&self) -> Code {
        let rows = self.part.shape.rows.unwrap_or(1);
        let total = self.partition.replicas * rows;
        let mut needs = Needs::default();
        let body = self.scope(&mut needs, "", |e| self.results(e, row_spots, ""));
        // Rows are few and their threads do much: few threads a block, so that many multiprocessors take part.
        let width = if total < 132 * THREADS { 32 } else { THREADS };
        let head = format!(
            "if (threadIdx.x >= {width}) return;\nconst int e = block * {width} + threadIdx.x;\n\
             if (e >= {total}) return;\nconst int r = e / {rows}, row = e % {rows};\n"
        );
        self.finished(total.div_ceil(width), 0, needs, &head, &body)
    }
}

/// Values with as many entries as this are mapped four entries a thread.
const FOUR_FROM: usize = 1 << 16;

fn single_spot(shape: &Shape) -> Vec<Spot> {
    vec![named_spot(shape)]
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

/// Leading axes of a product, from the number of the matrix.
fn lead(dims: &[usize]) -> (String, Vec<Ix>) {
    let mut text = String::new();
    let mut below: usize = dims.iter().product();
    let mut rest = "matrix".to_string();
    let mut names = vec![];
    for (i, &d) in dims.iter().enumerate() {
        below /= d;
        if d == 1 {
            names.push(Ix::Number(0));
            continue;
        }
        let _ = writeln!(text, "const int q{i} = {rest} / {below};");
        rest = format!("({rest} % {below})");
        names.push(Ix::Name(format!("q{i}")));
    }
    (text, names)
}
