//! What a kernel computes, as data: the value of a node at one place, and every formula that it is made of.
//!
//! Movements of data (slices, transposes, concatenations, gathers, …) become arithmetic on indices, short sums are unrolled,
//! and random numbers are drawn where they are used. Equal formulas are bound once. A trace tells what is read; `emit` writes
//! it as CUDA C.

mod formula;
mod index;
mod moves;
mod random;

pub(super) use formula::{Entry, Formula, Item, Needs, Owner, Site, Test, Value};
pub(super) use index::{Index, Ix, Spot};

use super::parts::Place;
use crate::graph::{Id, Node};
use crate::op::{Binary, Element, Op};
use crate::shape::Shape;
use std::collections::HashMap;

/// Values of nodes at places, in one scope of a kernel.
pub(super) struct Trace<'a> {
    nodes: &'a [Node],
    place: &'a dyn Fn(Id) -> Place,
    single: bool,
    known: HashMap<(Id, Spot), Value>,
    bound: HashMap<Formula, usize>,
    pub items: Vec<Item>,
    pub needs: Needs,
}

impl<'a> Trace<'a> {
    /// `place` tells how the kernel has the value of a node; `single` is for programs in f32.
    pub fn new(nodes: &'a [Node], place: &'a dyn Fn(Id) -> Place, single: bool) -> Self {
        let (known, bound) = (HashMap::new(), HashMap::new());
        Trace { nodes, place, single, known, bound, items: vec![], needs: Needs::default() }
    }

    pub fn shape(&self, id: Id) -> &'a Shape {
        &self.nodes[id as usize].shape
    }

    /// Declares what stands for the value of a node at a place.
    pub fn set(&mut self, id: Id, spot: Spot, value: Value) {
        let spot = spot.canonical(self.shape(id));
        self.known.insert((id, spot), value);
    }

    /// The variable of a formula: one for each.
    fn bind(&mut self, formula: Formula) -> usize {
        if let Some(&variable) = self.bound.get(&formula) {
            return variable;
        }
        let variable = self.bound.len() + 1;
        self.items.push(Item::Let(variable, formula.clone()));
        self.bound.insert(formula, variable);
        variable
    }

    fn number(&mut self, formula: Formula) -> Value {
        Value::Bound(self.bind(formula))
    }

    /// The value of a node at a place.
    pub fn value(&mut self, id: Id, spot: Spot) -> Value {
        let node = &self.nodes[id as usize];
        if let Op::Fill(bits) = node.op {
            return Value::number(Owner::Node(id), f64::from_bits(bits));
        }
        let key = (id, spot.canonical(&node.shape));
        if let Some(&value) = self.known.get(&key) {
            return value;
        }
        let value = match (self.place)(id) {
            Place::Buffer => self.load(id, &key.1),
            Place::Own => {
                self.needs.missing = true;
                Value::ZERO
            }
            Place::Inline => self.compute(id, node, &key.1),
        };
        self.known.insert(key, value);
        value
    }

    /// The entry in the buffer; four neighbours are loaded together.
    fn load(&mut self, id: Id, spot: &Spot) -> Value {
        let shape = self.shape(id);
        self.needs.reads.insert(id);
        let bytes = matches!(self.nodes[id as usize].op, Op::Input(_, Element::Byte));
        let (mut spot, mut entry) = (spot.clone(), None);
        // A position in a large table is no int; one within an entry of it is.
        if shape.len() > i32::MAX as usize && shape.rows.is_none() && shape.rank() > 1 {
            let chosen = std::mem::replace(&mut spot.dims[0], Ix::Number(0));
            entry = Some((chosen, shape.len() / shape.dims[0]));
        }
        if let Some((first, offset)) = self.stretch(&spot, shape) {
            let flat = self.flat(&first, shape);
            let at = self.plus(flat, Ix::Number(offset / 4 * 4));
            let four = self.bind(Formula::LoadFour(Site { id, bytes, entry, at }));
            return Value::OfFour(four, offset % 4);
        }
        let at = self.flat(&spot, shape);
        self.number(Formula::Load(Site { id, bytes, entry, at }))
    }

    /// If a place lies at a known distance from a multiple of four, since it is one of four neighbours along an axis and all axes
    /// after that have numbers: that multiple, and the distance. All neighbours together have a stretch of memory without gaps.
    pub fn stretch(&self, spot: &Spot, shape: &Shape) -> Option<(Spot, i64)> {
        let axis = spot.dims.iter().rposition(|ix| !matches!(ix, Ix::Number(_)))?;
        let Ix::Quad(name, i) = spot.dims[axis] else { return None };
        if !self.single || !shape.dims[axis].is_multiple_of(4) {
            return None;
        }
        let (mut first, mut offset) = (spot.clone(), i);
        first.dims[axis] = Ix::Quad(name, 0);
        for (ix, &d) in first.dims.iter_mut().zip(&shape.dims).skip(axis + 1) {
            let Ix::Number(n) = std::mem::replace(ix, Ix::Number(0)) else { return None };
            offset = offset * d as i64 + n;
        }
        Some((first, offset))
    }

    fn compute(&mut self, id: Id, node: &Node, spot: &Spot) -> Value {
        // A constant is told from others by who uses it, not by its value.
        let same = |t: &mut Self, k: usize| {
            if let Op::Fill(bits) = t.nodes[node.args[k] as usize].op {
                return Value::number(Owner::Argument(id, k), f64::from_bits(bits));
            }
            t.value(node.args[k], spot.clone())
        };
        match &node.op {
            Op::Unary(f) => {
                let x = same(self, 0);
                self.number(Formula::Unary(*f, x))
            }
            Op::Binary(f) => {
                let (x, y) = (same(self, 0), same(self, 1));
                // Which argument of a sum comes first depends on which was made first, perhaps for another purpose.
                let swap = matches!(f, Binary::Add | Binary::Mul)
                    && matches!(self.nodes[node.args[1] as usize].op, Op::Fill(_));
                self.number(if swap { Formula::Binary(*f, y, x) } else { Formula::Binary(*f, x, y) })
            }
            Op::Select => {
                let [c, x, y] = [0, 1, 2].map(|k| same(self, k));
                self.number(Formula::Select(c, x, y))
            }
            Op::Random(draw, stream) => self.draw(*draw, *stream, &node.shape, spot),
            Op::Step => {
                self.needs.step = true;
                self.number(Formula::Step)
            }
            Op::Sum { axis } => self.unrolled(node, spot, *axis, Binary::Add),
            Op::Max { axis } => self.unrolled(node, spot, *axis, Binary::Max),
            Op::Matmul => self.short_product(node, spot),
            Op::StopGradient | Op::Pin => self.value(node.args[0], spot.clone()),
            Op::Broadcast => self.broadcast(node, spot),
            Op::Reshape => self.reshape(node, spot),
            Op::Transpose(order) => self.transpose(node, spot, order),
            Op::Slice { axis, start } => self.slice(node, spot, *axis, *start),
            Op::Collect => self.collect(node, spot),
            Op::Distribute => self.distribute(node, spot),
            Op::Pad { axis, before } => self.pad(node, spot, *axis, *before),
            Op::Concat { axis } => self.concat(node, spot, *axis),
            Op::Gather => self.gather(node, spot),
            Op::Im2col(window) => self.im2col(window, node, spot),
            Op::Col2im(window) => self.col2im(window, node, spot),
            Op::SumRows | Op::MaxRows | Op::Contract | Op::Scatter | Op::Kth(_) => {
                unreachable!("{} of node {id} has a kernel of its own", node.op.name())
            }
            Op::Input(..) | Op::Variable(_) | Op::Table(_) | Op::Fill(_) => {
                unreachable!("{} of node {id} is not computed", node.op.name())
            }
        }
    }

    /// A short reduction over a feature axis, written out.
    fn unrolled(&mut self, node: &Node, spot: &Spot, axis: usize, join: Binary) -> Value {
        let length = self.shape(node.args[0]).dims[axis];
        let mut result: Option<Value> = None;
        for i in 0..length as i64 {
            let mut from = spot.clone();
            from.dims.insert(axis, Ix::Number(i));
            let x = self.value(node.args[0], from);
            result = Some(match result {
                None => x,
                Some(so_far) => self.number(Formula::Binary(join, so_far, x)),
            });
        }
        result.unwrap_or(Value::ZERO)
    }

    /// A short product, written out.
    fn short_product(&mut self, node: &Node, spot: &Spot) -> Value {
        let r = node.shape.rank();
        let depth = self.shape(node.args[0]).dims[r - 1];
        let mut sum: Option<Value> = None;
        for k in 0..depth as i64 {
            let (mut left, mut right) = (spot.clone(), spot.clone());
            left.dims[r - 1] = Ix::Number(k);
            right.dims[r - 2] = Ix::Number(k);
            let (x, y) = (self.value(node.args[0], left), self.value(node.args[1], right));
            sum = Some(self.number(match sum {
                None => Formula::Binary(Binary::Mul, x, y),
                Some(sum) => Formula::MulAdd(x, y, sum),
            }));
        }
        sum.unwrap_or(Value::ZERO)
    }
}
