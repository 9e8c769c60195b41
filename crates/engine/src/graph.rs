//! The graph that owns expressions, and the handle of one. Equal expressions are stored once.

use crate::op::{Element, Op};
use crate::random::Draw;
use crate::shape::Shape;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Index of a node in its graph. Arguments always have smaller indices than their users.
pub(crate) type Id = u32;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub op: Op,
    pub args: Vec<Id>,
    pub shape: Shape,
}

/// Owner of expressions. Equal expressions are stored once.
#[derive(Default)]
pub struct Graph {
    nodes: RefCell<Vec<Node>>,
    index: RefCell<HashMap<Node, Id>>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn node(&self, id: Id) -> Node {
        self.nodes.borrow()[id as usize].clone()
    }

    pub(crate) fn nodes(&self) -> std::cell::Ref<'_, Vec<Node>> {
        self.nodes.borrow()
    }

    pub(crate) fn at(&self, id: Id) -> Expr<'_> {
        Expr { graph: self, id }
    }

    /// Number of distinct nodes built so far.
    pub fn len(&self) -> usize {
        self.nodes.borrow().len()
    }

    /// True before anything was built.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A node exactly as given.
    pub(crate) fn intern(&self, node: Node) -> Expr<'_> {
        // Fields of a shape are public: here every value passes, whoever made its shape.
        let node = Node { shape: node.shape.checked(), ..node };
        if let Op::Random(draw, _) = node.op {
            assert!(draw.items() != Some(0), "random: {draw:?} has nothing to permute");
            let counted = [node.shape.features(), node.shape.rows.unwrap_or(1)].iter().all(|&n| n < 1 << 32);
            assert!(counted, "random: {} has too many rows or features", node.shape);
        }
        if let Some(&id) = self.index.borrow().get(&node) {
            return self.at(id);
        }
        let mut nodes = self.nodes.borrow_mut();
        let id = nodes.len() as Id;
        nodes.push(node.clone());
        self.index.borrow_mut().insert(node, id);
        self.at(id)
    }

    fn named(&self, op: Op, shape: Shape) -> Expr<'_> {
        for node in self.nodes.borrow().iter() {
            let clash = match (&node.op, &op) {
                (Op::Input(a, _) | Op::Variable(a), Op::Input(b, _) | Op::Variable(b)) => a == b,
                _ => false,
            };
            assert!(
                !clash || (node.op == op && node.shape == shape),
                "{} {op:?} of shape {shape}: the name is taken by {:?} of shape {}",
                op.name(),
                node.op,
                node.shape
            );
        }
        self.intern(Node { op, args: vec![], shape })
    }

    /// A value without row axis, given at every run.
    pub fn input(&self, name: &str, dims: impl Into<Vec<usize>>) -> Expr<'_> {
        self.named(Op::Input(name.into(), Element::Real), Shape::whole(dims))
    }

    /// A value with one entry of `dims` per row, given at every run.
    pub fn input_rows(&self, name: &str, rows: usize, dims: impl Into<Vec<usize>>) -> Expr<'_> {
        self.named(Op::Input(name.into(), Element::Real), Shape::rowed(rows, dims))
    }

    /// A table without row axis, given as bytes at every run ([`crate::Loaded::with_bytes`]): byte p is the number p/255.
    ///
    /// A data set of images then takes a quarter of the room; it is read by [`Expr::gather`], and by nothing else.
    pub fn input_bytes(&self, name: &str, dims: impl Into<Vec<usize>>) -> Expr<'_> {
        self.named(Op::Input(name.into(), Element::Byte), Shape::whole(dims))
    }

    /// State kept between runs (parameters, optimiser slots).
    pub fn variable(&self, name: &str, dims: impl Into<Vec<usize>>) -> Expr<'_> {
        self.named(Op::Variable(name.into()), Shape::whole(dims))
    }

    /// State with one entry of `dims` per row (chains of a sampler).
    pub fn variable_rows(&self, name: &str, rows: usize, dims: impl Into<Vec<usize>>) -> Expr<'_> {
        self.named(Op::Variable(name.into()), Shape::rowed(rows, dims))
    }

    /// A scalar constant.
    pub fn scalar(&self, value: f64) -> Expr<'_> {
        self.fill(value, Shape::whole([]))
    }

    /// The same number everywhere.
    pub fn fill(&self, value: f64, shape: Shape) -> Expr<'_> {
        self.intern(Node { op: Op::fill(value), args: vec![], shape })
    }

    /// A constant tensor, row-major.
    pub fn table(&self, values: &[f64], dims: impl Into<Vec<usize>>) -> Expr<'_> {
        let shape = Shape::whole(dims);
        assert!(values.len() == shape.len(), "table: {} values for shape {shape}", values.len());
        let bits: Arc<[u64]> = values.iter().map(|v| v.to_bits()).collect();
        self.intern(Node { op: Op::Table(bits), args: vec![], shape })
    }

    /// Random numbers without row axis: entry i is number i of (seed, replica; stream, step).
    pub fn random(&self, draw: Draw, stream: u32, dims: impl Into<Vec<usize>>) -> Expr<'_> {
        self.intern(Node { op: Op::Random(draw, stream), args: vec![], shape: Shape::whole(dims) })
    }

    /// Random numbers, one block of `dims` per row.
    pub fn random_rows(&self, draw: Draw, stream: u32, rows: usize, dims: impl Into<Vec<usize>>) -> Expr<'_> {
        self.intern(Node { op: Op::Random(draw, stream), args: vec![], shape: Shape::rowed(rows, dims) })
    }

    /// Random numbers shaped like `like`.
    pub fn draw_like<'g>(&'g self, draw: Draw, stream: u32, like: Expr<'g>) -> Expr<'g> {
        self.intern(Node { op: Op::Random(draw, stream), args: vec![], shape: like.shape() })
    }

    /// Standard normal noise shaped like `like`.
    pub fn normal_like<'g>(&'g self, stream: u32, like: Expr<'g>) -> Expr<'g> {
        self.draw_like(Draw::Normal, stream, like)
    }

    /// The number of the current step (0, 1, …) as a scalar.
    pub fn step(&self) -> Expr<'_> {
        self.intern(Node { op: Op::Step, args: vec![], shape: Shape::whole([]) })
    }
}

/// A value in a [`Graph`]: a cheap handle that can be copied.
#[derive(Clone, Copy)]
pub struct Expr<'g> {
    pub(crate) graph: &'g Graph,
    pub(crate) id: Id,
}

impl<'g> Expr<'g> {
    /// The shape, without the replica axis.
    pub fn shape(self) -> Shape {
        self.graph.nodes()[self.id as usize].shape.clone()
    }

    pub(crate) fn node(self) -> Node {
        self.graph.node(self.id)
    }

    /// The number everywhere, if this is a constant fill.
    pub fn as_fill(self) -> Option<f64> {
        let Op::Fill(bits) = self.node().op else { return None };
        Some(f64::from_bits(bits))
    }

    /// True for an input of bytes, which has no other reader than [`Expr::gather`].
    pub(crate) fn is_bytes(self) -> bool {
        matches!(self.graph.nodes()[self.id as usize].op, Op::Input(_, Element::Byte))
    }

    /// The graph this expression lives in.
    pub fn graph(self) -> &'g Graph {
        self.graph
    }
}

impl fmt::Debug for Expr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let node = self.node();
        write!(f, "%{} = {}{:?}: {}", self.id, node.op.name(), node.args, node.shape)
    }
}
