//! Expressions as CUDA C: the value of a node at one place, with everything it is made of written out before it.
//!
//! Movements of data (slices, transposes, concatenations, gathers, …) become arithmetic on indices, short sums are
//! unrolled, and random numbers are drawn where they are used. Values and indices are named once and reused.

mod moves;
mod random;

use super::arguments::{constant, literal};
use super::parts::Place;
use crate::graph::{Id, Node};
use crate::op::{Binary, Element, Op, Unary};
use crate::shape::Shape;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

/// An index: a number known while the kernel is written, or the name of a variable of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ix {
    Number(i64),
    Name(String),
    /// Four times a variable and a number below four: neighbours share what comes in fours.
    Quad(String, i64),
}

impl Ix {
    pub fn name(name: &str) -> Ix {
        Ix::Name(name.to_string())
    }

    pub fn text(&self) -> String {
        match self {
            Ix::Number(n) => n.to_string(),
            Ix::Name(name) => name.clone(),
            Ix::Quad(name, i) => format!("(4 * {name} + {i})"),
        }
    }
}

/// One entry of a value: its row (0 without rows) and its place on each feature axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spot {
    pub row: Ix,
    pub dims: Vec<Ix>,
}

impl Spot {
    /// With 0 on axes of length 1 and as the row of a value without rows, so that equal places look equal.
    fn canonical(mut self, shape: &Shape) -> Spot {
        if shape.rows.is_none_or(|rows| rows == 1) {
            self.row = Ix::Number(0);
        }
        for (ix, &d) in self.dims.iter_mut().zip(&shape.dims) {
            if d == 1 {
                *ix = Ix::Number(0);
            }
        }
        self
    }
}

/// Writes the body of one scope of a kernel.
pub(super) struct Emitter<'a> {
    nodes: &'a [Node],
    place: &'a dyn Fn(Id) -> Place,
    single: bool,
    /// Statements so far.
    pub body: String,
    known: HashMap<(Id, Spot), String>,
    names: HashMap<String, String>,
    count: usize,
    prefix: &'static str,
    /// Nodes whose buffers were read.
    pub reads: BTreeSet<Id>,
    /// True if the clock is needed.
    pub random: bool,
    /// True if a value was needed that this scope does not have.
    pub trouble: bool,
}

impl<'a> Emitter<'a> {
    /// `prefix` keeps the names of nested scopes apart.
    pub fn new(nodes: &'a [Node], place: &'a dyn Fn(Id) -> Place, single: bool, prefix: &'static str) -> Self {
        Emitter {
            nodes,
            place,
            single,
            body: String::new(),
            known: HashMap::new(),
            names: HashMap::new(),
            count: 0,
            prefix,
            reads: BTreeSet::new(),
            random: false,
            trouble: false,
        }
    }

    pub fn shape(&self, id: Id) -> &'a Shape {
        &self.nodes[id as usize].shape
    }

    /// Declares that the value of a node at a place stands in a variable of the kernel.
    pub fn set(&mut self, id: Id, spot: Spot, name: String) {
        let spot = spot.canonical(self.shape(id));
        self.known.insert((id, spot), name);
    }

    fn fresh(&mut self, letter: &str) -> String {
        self.count += 1;
        format!("{}{letter}{}", self.prefix, self.count)
    }

    /// A named constant of the kernel, one for each expression.
    fn bind(&mut self, kind: &str, expression: String) -> String {
        if let Some(name) = self.names.get(&expression) {
            return name.clone();
        }
        let name = self.fresh(if kind == "int" { "at" } else { "v" });
        let _ = writeln!(self.body, "const {kind} {name} = {expression};");
        self.names.insert(expression, name.clone());
        name
    }

    /// A number in the program's precision.
    pub fn literal(&self, value: f64) -> String {
        literal(value, self.single)
    }

    // ------------------------------------------------------------------------------------------------- indices

    fn index(&mut self, expression: String) -> Ix {
        Ix::Name(self.bind("int", expression))
    }

    pub fn plus(&mut self, a: &Ix, b: &Ix) -> Ix {
        match (a, b) {
            (Ix::Number(x), Ix::Number(y)) => Ix::Number(x + y),
            (x, Ix::Number(0)) | (Ix::Number(0), x) => x.clone(),
            _ => self.index(format!("{} + {}", a.text(), b.text())),
        }
    }

    pub fn times(&mut self, a: &Ix, n: usize) -> Ix {
        match (a, n) {
            (Ix::Number(x), _) => Ix::Number(x * n as i64),
            (x, 1) => x.clone(),
            (_, 0) => Ix::Number(0),
            _ => self.index(format!("{} * {n}", a.text())),
        }
    }

    pub fn over(&mut self, a: &Ix, n: usize) -> Ix {
        match a {
            Ix::Number(x) => Ix::Number(x / n as i64),
            Ix::Quad(name, _) if n == 4 => Ix::name(name),
            x if n == 1 => x.clone(),
            _ => self.index(format!("{} / {n}", a.text())),
        }
    }

    pub fn modulo(&mut self, a: &Ix, n: usize) -> Ix {
        match a {
            Ix::Number(x) => Ix::Number(x % n as i64),
            Ix::Quad(_, i) if n == 4 => Ix::Number(*i),
            _ if n == 1 => Ix::Number(0),
            _ => self.index(format!("{} % {n}", a.text())),
        }
    }

    /// Position of a multi-index, row-major.
    pub fn ravel(&mut self, index: &[Ix], dims: &[usize]) -> Ix {
        let mut flat = Ix::Number(0);
        for (ix, &d) in index.iter().zip(dims) {
            flat = self.times(&flat, d);
            flat = self.plus(&flat, ix);
        }
        flat
    }

    /// The multi-index of a position.
    pub fn unravel(&mut self, flat: &Ix, dims: &[usize]) -> Vec<Ix> {
        let mut index = vec![Ix::Number(0); dims.len()];
        let mut rest = flat.clone();
        let outermost = dims.iter().position(|&d| d != 1);
        for i in (0..dims.len()).rev().filter(|&i| dims[i] != 1) {
            index[i] = if Some(i) == outermost { rest.clone() } else { self.modulo(&rest, dims[i]) };
            rest = self.over(&rest, dims[i]);
        }
        index
    }

    /// Position within one replica.
    pub fn flat(&mut self, spot: &Spot, shape: &Shape) -> Ix {
        let spot = spot.clone().canonical(shape);
        let features = self.ravel(&spot.dims, &shape.dims);
        let row = self.times(&spot.row, shape.features());
        self.plus(&row, &features)
    }

    // -------------------------------------------------------------------------------------------------- values

    /// The value of a node at a place: a name, or a literal.
    pub fn value(&mut self, id: Id, spot: Spot) -> String {
        let node = &self.nodes[id as usize];
        if let Op::Fill(bits) = node.op {
            return constant(id, f64::from_bits(bits), self.single);
        }
        let spot = spot.canonical(&node.shape);
        let key = (id, spot);
        if let Some(name) = self.known.get(&key) {
            return name.clone();
        }
        let spot = key.1.clone();
        let value = match (self.place)(id) {
            Place::Buffer => self.load(id, &spot),
            Place::Own => {
                self.trouble = true;
                "real(0)".into()
            }
            Place::Inline => self.compute(id, node, &spot),
        };
        self.known.insert(key, value.clone());
        value
    }

    /// The entry in the buffer; four neighbours are loaded together.
    fn load(&mut self, id: Id, spot: &Spot) -> String {
        let shape = self.shape(id);
        self.reads.insert(id);
        let bytes = matches!(self.nodes[id as usize].op, Op::Input(_, Element::Byte));
        let (mut spot, mut start) = (spot.clone(), format!("p@{id}"));
        // A position in a large table is no int; one within an entry of it is.
        if shape.len() > i32::MAX as usize && shape.rows.is_none() && shape.rank() > 1 {
            let entry = std::mem::replace(&mut spot.dims[0], Ix::Number(0));
            let _ = write!(start, " + (i64){} * {}", entry.text(), shape.len() / shape.dims[0]);
        }
        if let Some((first, offset)) = self.stretch(&spot, shape) {
            let flat = self.flat(&first, shape);
            let flat = self.plus(&flat, &Ix::Number(offset / 4 * 4));
            let read = if bytes { "shades" } else { "*(const Four*)" };
            let four = self.bind("Four", format!("{read}(b@{id} + {start} + {})", flat.text()));
            return format!("{four}.x[{}]", offset % 4);
        }
        let flat = self.flat(&spot, shape);
        let entry = format!("b@{id}[{start} + {}]", flat.text());
        self.bind("real", if bytes { format!("shade({entry})") } else { entry })
    }

    /// If a place lies at a known distance from a multiple of four, since it is one of four neighbours along an axis and all axes
    /// after that have numbers: that multiple, and the distance. All neighbours together have a stretch of memory without gaps.
    pub fn stretch(&self, spot: &Spot, shape: &Shape) -> Option<(Spot, i64)> {
        let axis = spot.dims.iter().rposition(|ix| !matches!(ix, Ix::Number(_)))?;
        let Ix::Quad(name, i) = &spot.dims[axis] else { return None };
        if !self.single || !shape.dims[axis].is_multiple_of(4) {
            return None;
        }
        let (mut first, mut offset) = (spot.clone(), *i);
        first.dims[axis] = Ix::Quad(name.clone(), 0);
        for (ix, &d) in first.dims.iter_mut().zip(&shape.dims).skip(axis + 1) {
            let Ix::Number(n) = std::mem::replace(ix, Ix::Number(0)) else { return None };
            offset = offset * d as i64 + n;
        }
        Some((first, offset))
    }

    fn compute(&mut self, id: Id, node: &Node, spot: &Spot) -> String {
        // A constant is told from others by who uses it, not by its value.
        let same = |e: &mut Self, k: usize| match e.nodes[node.args[k] as usize].op {
            Op::Fill(bits) => constant(format_args!("{id}_{k}"), f64::from_bits(bits), e.single),
            _ => e.value(node.args[k], spot.clone()),
        };
        match &node.op {
            Op::Unary(u) => {
                let x = same(self, 0);
                self.bind("real", unary(*u, &x))
            }
            Op::Binary(b) => {
                let (x, y) = (same(self, 0), same(self, 1));
                // Which argument of a sum comes first depends on which was made first, perhaps for another purpose.
                let swap = matches!(b, Binary::Add | Binary::Mul)
                    && matches!(self.nodes[node.args[1] as usize].op, Op::Fill(_));
                self.bind("real", if swap { binary(*b, &y, &x) } else { binary(*b, &x, &y) })
            }
            Op::Select => {
                let [c, x, y] = [0, 1, 2].map(|k| same(self, k));
                self.bind("real", format!("{c} != real(0) ? {x} : {y}"))
            }
            Op::Random(draw, stream) => self.draw(*draw, *stream, &node.shape, spot),
            Op::Step => {
                self.random = true;
                self.bind("real", "(real)step".into())
            }
            Op::Sum { axis } => self.unrolled(node, spot, *axis, |a, b| format!("{a} + {b}")),
            Op::Max { axis } => self.unrolled(node, spot, *axis, |a, b| format!("max_({a}, {b})")),
            Op::Matmul => {
                let r = node.shape.rank();
                let depth = self.shape(node.args[0]).dims[r - 1];
                let mut sum: Option<String> = None;
                for k in 0..depth as i64 {
                    let (mut left, mut right) = (spot.clone(), spot.clone());
                    left.dims[r - 1] = Ix::Number(k);
                    right.dims[r - 2] = Ix::Number(k);
                    let (x, y) = (self.value(node.args[0], left), self.value(node.args[1], right));
                    let next = sum.map_or_else(|| format!("{x} * {y}"), |s| format!("fma_({x}, {y}, {s})"));
                    sum = Some(self.bind("real", next));
                }
                sum.unwrap_or_else(|| self.literal(0.0))
            }
            Op::Col2im(window) => self.col2im(window, node, spot),
            _ => self.moved(id, node, spot),
        }
    }

    /// A short reduction over a feature axis, written out.
    fn unrolled(&mut self, node: &Node, spot: &Spot, axis: usize, join: fn(&str, &str) -> String) -> String {
        let length = self.shape(node.args[0]).dims[axis];
        let mut result: Option<String> = None;
        for i in 0..length as i64 {
            let mut from = spot.clone();
            from.dims.insert(axis, Ix::Number(i));
            let x = self.value(node.args[0], from);
            result = Some(match result {
                None => x,
                Some(so_far) => self.bind("real", join(&so_far, &x)),
            });
        }
        result.unwrap_or_else(|| self.literal(0.0))
    }
}

fn unary(op: Unary, x: &str) -> String {
    match op {
        Unary::Neg => format!("-({x})"),
        Unary::Abs => format!("fabs({x})"),
        Unary::Sign => format!("sign_({x})"),
        Unary::Floor => format!("floor({x})"),
        Unary::Recip => format!("div_(real(1), {x})"),
        Unary::Sqrt => format!("sqrt_({x})"),
        Unary::Rsqrt => format!("rsqrt_({x})"),
        Unary::Exp => format!("exp_({x})"),
        Unary::Expm1 => format!("expm1_({x})"),
        Unary::Log => format!("log_({x})"),
        Unary::Log1p => format!("log1p_({x})"),
        Unary::Tanh => format!("tanh_({x})"),
        Unary::Sigmoid => format!("sigmoid_({x})"),
        Unary::Softplus => format!("softplus_({x})"),
        Unary::Sin => format!("sin_({x})"),
        Unary::Cos => format!("cos_({x})"),
    }
}

fn binary(op: Binary, x: &str, y: &str) -> String {
    let truth = |symbol: &str| format!("{x} {symbol} {y} ? real(1) : real(0)");
    match op {
        Binary::Add => format!("{x} + {y}"),
        Binary::Sub => format!("{x} - {y}"),
        Binary::Mul => format!("{x} * {y}"),
        Binary::Div => format!("div_({x}, {y})"),
        Binary::Min => format!("min_({x}, {y})"),
        Binary::Max => format!("max_({x}, {y})"),
        Binary::Atan2 => format!("atan2_({x}, {y})"),
        Binary::Less => truth("<"),
        Binary::LessEqual => truth("<="),
        Binary::Equal => truth("=="),
    }
}
