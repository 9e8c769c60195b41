//! Reductions other than products: threads of a block share an output and meet in a fixed tree.

use crate::cuda::THREADS;
use crate::graph::{Id, Node};
use crate::op::Op;

/// What is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// A feature axis.
    Axis(usize),
    /// The rows.
    Rows,
    /// All values whose index is the entry at hand.
    Matches,
    /// All entries: the one of rank k remains.
    Rank(usize),
    /// Partial results of a reduction that was cut into pieces, scaled (bits of an f64).
    Partials(u64),
}

/// A reduction.
#[derive(Clone, Debug)]
pub(super) struct Reduce {
    pub over: Over,
    pub maximum: bool,
    /// Entries that meet in one output.
    pub length: usize,
    /// Threads that share an output: 1, 8, 32 or 256.
    pub lanes: usize,
    /// True if they are neighbours, since what they read is.
    pub fast: bool,
    /// Into how many pieces the entries are cut, each reduced by blocks of its own.
    pub splits: usize,
}

/// Why an operation is not expected here.
const PLAIN: &str = "only reductions anchor parts";
/// As many outputs as threads that fill a card.
const MANY: usize = 1 << 16;

impl Reduce {
    pub fn new(nodes: &[Node], id: Id, replicas: usize) -> Self {
        let node = &nodes[id as usize];
        let first = &nodes[node.args[0] as usize].shape;
        let (over, length, maximum) = match node.op {
            Op::Sum { axis } => (Over::Axis(axis), first.dims[axis], false),
            Op::Max { axis } => (Over::Axis(axis), first.dims[axis], true),
            Op::SumRows => (Over::Rows, first.rows.unwrap_or(1), false),
            Op::MaxRows => (Over::Rows, first.rows.unwrap_or(1), true),
            Op::Scatter => (Over::Matches, first.len(), false),
            Op::Kth(k) => (Over::Rank(k), first.len(), true),
            Op::Matmul | Op::Contract => unreachable!("{} is a product", node.op.name()),
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::StopGradient | Op::Pin => unreachable!("{PLAIN}"),
            Op::Broadcast | Op::Reshape | Op::Transpose(_) | Op::Slice { .. } => unreachable!("{PLAIN}"),
            Op::Pad { .. } | Op::Concat { .. } | Op::Collect | Op::Distribute => unreachable!("{PLAIN}"),
            Op::Gather | Op::Im2col(_) | Op::Col2im(_) => unreachable!("{PLAIN}"),
            Op::Input(..) | Op::Variable(_) | Op::Fill(_) | Op::Table(_) | Op::Random(..) | Op::Step => {
                unreachable!("{PLAIN}")
            }
        };
        if let Over::Rank(_) = over {
            // a block for each output, whose threads count together
            return Reduce { over, maximum, length, lanes: THREADS, fast: true, splits: 1 };
        }
        let outputs = replicas * node.shape.len();
        let last_axis = matches!(over, Over::Axis(axis) if axis + 1 == first.rank());
        let fast = last_axis || node.shape.features() < 8;
        let lanes = match (fast, outputs) {
            (_, 0..64) => THREADS,
            (true, _) => 32,
            (false, _) => 8,
        };
        let blocks = outputs.div_ceil(THREADS / lanes);
        let splits = if length >= 8192 { (528 / blocks).min(length / 512).max(1) } else { 1 };
        Reduce { over, maximum, length, lanes, fast, splits }
    }

    /// What sums up the pieces of a product with so many outputs.
    pub fn partials(splits: usize, factor: f64, outputs: usize) -> Self {
        let over = Over::Partials(factor.to_bits());
        let lanes = if outputs < MANY { 8 } else { 1 };
        Reduce { over, maximum: false, length: splits, lanes, fast: false, splits: 1 }
    }

    /// What joins the pieces of this one.
    pub fn rest(&self) -> Self {
        Reduce { maximum: self.maximum, ..Self::partials(self.splits, 1.0, 1) }
    }
}
