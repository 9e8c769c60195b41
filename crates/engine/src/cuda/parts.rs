//! A program cut into parts: each is computed by some blocks of one kernel, and parts of one level by one kernel.
//!
//! Reductions (products, long sums, whatever crosses rows) anchor parts; elementwise work joins the part after which it
//! can first be done, as its epilogue, or is written out again wherever it is cheap. A part reads only what parts of
//! lower levels wrote, so a step is a chain of as many kernels as there are levels.

mod costs;
mod fuse;
mod sums;

pub(super) use fuse::{Spots, named_spot, quad_spots, row_spots, single_spot};

use super::product::Product;
use super::reduce::Reduce;
use crate::device::Precision;
use crate::graph::{Id, Node};
use crate::op::Op;
use crate::plan;
use crate::shape::Shape;

/// How the value of a node is had inside a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Read from its buffer.
    Buffer,
    /// Written out where it is needed.
    Inline,
    /// The part's own reduction: known only at the entry at hand.
    Own,
}

/// What a part does.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A thread for each entry.
    Map,
    /// A thread for each row, with all features of narrow values.
    Rows,
    /// A sum of matrix products, by tiles.
    Product(Product),
    /// A reduction, by threads that share an output.
    Reduce(Reduce),
}

/// Something computed by some blocks of a kernel.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub kind: Kind,
    pub level: usize,
    /// The entries that the part visits (for narrow values: rows).
    pub shape: Shape,
    /// What it computes, anchors included.
    pub nodes: Vec<Id>,
    /// Reductions that are its own: the first holds the sum, the others are summed into it.
    pub anchors: Vec<Id>,
    /// The part whose partial results this one sums up.
    pub sums: Option<usize>,
    /// Leaves that are results as they are.
    pub copies: Vec<Id>,
}

impl Part {
    /// About how long one of its blocks takes: multiplications of a product, and nothing for what moves data.
    pub fn effort(&self) -> usize {
        match &self.kind {
            Kind::Product(p) => p.tile.m * p.tile.n * p.terms.iter().map(|t| t.depth).sum::<usize>() / p.splits,
            Kind::Map | Kind::Rows | Kind::Reduce(_) => 0,
        }
    }

    /// Into how many pieces its reduction is cut.
    pub fn splits(&self) -> usize {
        match &self.kind {
            Kind::Product(p) => p.splits,
            Kind::Reduce(r) => r.splits,
            Kind::Map | Kind::Rows => 1,
        }
    }

    /// True if all features of a row are at hand in one thread.
    pub fn by_rows(&self) -> bool {
        match &self.kind {
            Kind::Rows => true,
            Kind::Product(p) => p.thin(),
            Kind::Map | Kind::Reduce(_) => false,
        }
    }
}

/// Values with at most this many features are computed row by row; sums this short are written out.
pub(super) const NARROW: usize = 16;

/// What numbers are computed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arithmetic {
    /// f32, not f64.
    pub single: bool,
    /// Of products, in f32.
    pub precision: Precision,
}

/// A program in parts.
pub(super) struct Partition {
    pub nodes: Vec<Node>,
    pub live: Vec<bool>,
    pub outputs: Vec<Id>,
    pub updates: Vec<(Id, Id)>,
    pub replicas: usize,
    pub arithmetic: Arithmetic,
    pub parts: Vec<Part>,
    /// The part that computes a node, if one does.
    pub part_of: Vec<Option<usize>>,
}

impl Partition {
    pub fn new(
        nodes: Vec<Node>,
        outputs: Vec<Id>,
        updates: Vec<(Id, Id)>,
        replicas: usize,
        arithmetic: Arithmetic,
    ) -> Self {
        let live = plan::live(&nodes, outputs.iter().copied().chain(updates.iter().flat_map(|&(v, e)| [v, e])));
        let part_of = vec![None; nodes.len()];
        let mut partition = Partition { nodes, live, outputs, updates, replicas, arithmetic, parts: vec![], part_of };
        partition.cut();
        partition
    }

    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    pub fn levels(&self) -> usize {
        self.parts.iter().map(|p| p.level + 1).max().unwrap_or(0)
    }

    /// What is computed for its own sake.
    pub fn results(&self) -> impl Iterator<Item = Id> + '_ {
        self.outputs.iter().copied().chain(self.updates.iter().map(|&(_, value)| value))
    }

    /// How part `own` (if any) has the value of a node.
    pub fn place(&self, own: Option<usize>, id: Id) -> Place {
        let buffer = || matches!(self.node(id).op, Op::Input(..) | Op::Variable(_) | Op::Table(_));
        match self.part_of[id as usize] {
            Some(part) if Some(part) == own => {
                if self.parts[part].anchors.contains(&id) {
                    Place::Own
                } else {
                    Place::Inline
                }
            }
            Some(_) => Place::Buffer,
            None if buffer() => Place::Buffer,
            None => Place::Inline,
        }
    }
}

/// Rows, and feature axes longer than one: values of one space are visited together.
pub(super) fn space(shape: &Shape) -> (Option<usize>, Vec<usize>) {
    (shape.rows, plan::space(&shape.dims))
}

/// True if all features of a row fit one thread.
pub(super) fn narrow(shape: &Shape) -> bool {
    shape.rows.is_some() && shape.features() <= NARROW
}
