//! Operands that lie in a buffer with fixed distances between their entries, or are windows of an image that does: these are
//! copied four at a time.

use super::THREADS;
use super::parts::{Partition, Place};
use super::product::{Product, Rows, Term};
use crate::graph::Id;
use crate::op::{Op, Window};

/// Distances in a buffer.
#[derive(Clone, Debug)]
pub(super) struct Strided {
    pub root: Id,
    pub offset: usize,
    pub row: usize,
    pub dims: Vec<usize>,
}

/// An operand of a product as addresses: `root[offset + lead·… + x·along_x + k·along_k]`.
#[derive(Clone, Debug)]
pub(super) struct Direct {
    pub root: Id,
    pub offset: usize,
    pub lead: Vec<usize>,
    pub x: usize,
    pub k: usize,
}

/// An operand of a product that is windows of images: which entry of which window stands at (x, k).
#[derive(Clone, Debug)]
pub(super) struct Windowed {
    pub from: Strided,
    pub window: Window,
    /// Height, width and channels of an image.
    pub image: [usize; 3],
    /// True if windows are counted by k, their entries by x.
    pub contracts: bool,
}

/// How a kernel finds entry (x, k) of an operand that is copied.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// By fixed distances that the prelude's `Strided` knows; whether all tiles are whole, along x and along k.
    Strided(Direct, [bool; 2]),
    /// By a function of x and k.
    Function(Direct),
    Windows(Windowed),
}

/// An operand that is copied from a buffer.
pub(super) struct Address {
    /// Whose buffer.
    pub root: Id,
    /// True if k runs along memory.
    pub k_is_fast: bool,
    /// True if four entries along memory can be copied at once, wherever they start.
    pub by_four: bool,
    pub way: Way,
}

impl Partition {
    /// How one side of a product is copied, if it can be.
    pub(super) fn address(&self, product: &Product, term: &Term, left: bool) -> Option<Address> {
        let size = |root: Id| self.node(root).shape.len();
        if let Some(windows) = self.windowed(term, left) {
            let root = windows.from.root;
            let by_four = self.arithmetic.single && windows.by_four(size(root));
            let k_is_fast = !windows.contracts;
            return Some(Address { root, k_is_fast, by_four, way: Way::Windows(windows) });
        }
        let direct = self.direct(product, term, left)?;
        let (g, t) = (&product.geometry, &product.tile);
        let (width, tile) = if left { (g.height(), t.m) } else { (g.width(), t.n) };
        let (k_is_fast, by_four) = (direct.k_is_fast(), direct.by_four(width, term.depth, size(direct.root)));
        let by_four = by_four && self.arithmetic.single;
        let root = direct.root;
        let line = if k_is_fast { t.k } else { tile } / if by_four { 4 } else { 1 };
        let way = if THREADS.is_multiple_of(line) {
            Way::Strided(direct, [width.is_multiple_of(tile), term.depth.is_multiple_of(t.k)])
        } else {
            Way::Function(direct)
        };
        Some(Address { root, k_is_fast, by_four, way })
    }

    fn strided(&self, id: Id) -> Option<Strided> {
        let node = self.node(id);
        if self.place(None, id) == Place::Buffer {
            return Some(Strided { root: id, offset: 0, row: node.shape.features(), dims: node.shape.strides() });
        }
        let from = self.node(*node.args.first()?);
        let arg = || self.strided(node.args[0]);
        match &node.op {
            Op::StopGradient | Op::Pin => arg(),
            Op::Broadcast => {
                let s = arg()?;
                let (own, other) = (&node.shape.dims, &from.shape.dims);
                let lead = own.len() - other.len();
                let stride = |i: usize| if i < lead || other[i - lead] == 1 { 0 } else { s.dims[i - lead] };
                let row = if from.shape.rows.is_some() { s.row } else { 0 };
                Some(Strided { dims: (0..own.len()).map(stride).collect(), row, ..s })
            }
            Op::Transpose(order) => {
                let s = arg()?;
                Some(Strided { dims: order.iter().map(|&i| s.dims[i]).collect(), ..s })
            }
            Op::Slice { axis, start } => {
                let s = arg()?;
                Some(Strided { offset: s.offset + start * s.dims[*axis], ..s })
            }
            Op::Reshape => {
                let s = arg()?;
                let dims = crate::plan::regroup(&from.shape.dims, &s.dims, &node.shape.dims)?;
                Some(Strided { dims, ..s })
            }
            Op::Collect => {
                let s = arg()?;
                Some(Strided { dims: std::iter::once(s.row).chain(s.dims).collect(), row: 0, ..s })
            }
            Op::Distribute => {
                let s = arg()?;
                Some(Strided { row: s.dims[0], dims: s.dims[1..].to_vec(), ..s })
            }
            Op::Input(..) | Op::Variable(_) | Op::Fill(_) | Op::Table(_) | Op::Random(..) | Op::Step => None,
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Pad { .. } | Op::Concat { .. } => None,
            Op::Sum { .. } | Op::Max { .. } | Op::SumRows | Op::MaxRows | Op::Kth(_) => None,
            Op::Matmul | Op::Contract | Op::Gather | Op::Scatter | Op::Im2col(_) | Op::Col2im(_) => None,
        }
    }

    /// One side of a product as addresses, if it has them.
    fn direct(&self, product: &Product, term: &Term, left: bool) -> Option<Direct> {
        let id = if left { term.left } else { term.right };
        let (s, shape) = (self.strided(id)?, &self.node(id).shape);
        let (g, r) = (&product.geometry, shape.rank());
        // The axis of the rows and the axis beside it, as one.
        let joined = |length: usize, stride: usize| match length {
            1 => Some(s.row),
            _ if shape.rows.is_none() => Some(stride),
            _ => (s.row == length * stride).then_some(stride),
        };
        let (x, k) = if term.contracts {
            (s.dims[r - 1], joined(term.inner, s.dims[r - 2])?)
        } else {
            let own = if left { (g.m, s.dims[r - 2], s.dims[r - 1]) } else { (g.n, s.dims[r - 1], s.dims[r - 2]) };
            let rowed = g.rows == if left { Rows::Left } else { Rows::Right };
            (if rowed { joined(own.0, own.1)? } else { own.1 }, own.2)
        };
        Some(Direct { root: s.root, offset: s.offset, lead: s.dims[..r - 2].to_vec(), x, k })
    }

    /// One side of a product as windows, if it is.
    fn windowed(&self, term: &Term, left: bool) -> Option<Windowed> {
        let id = if left { term.left } else { term.right };
        let node = self.node(id);
        let &Op::Im2col(window) = &node.op else { return None };
        let from = self.strided(node.args[0])?;
        let image = &self.node(node.args[0]).shape.dims;
        let dense = from.dims[2] == 1 || image[2] == 1;
        let known = self.place(None, id) == Place::Inline && dense && (left || term.contracts);
        let image = [image[0], image[1], image[2]];
        known.then_some(Windowed { from, window, image, contracts: term.contracts })
    }
}

impl Windowed {
    /// True if four entries of a window can be copied at once.
    fn by_four(&self, per_replica: usize) -> bool {
        let Strided { offset, row, dims, .. } = &self.from;
        [self.image[2], *offset, *row, dims[0], dims[1], per_replica].iter().all(|n| n.is_multiple_of(4))
    }
}

impl Direct {
    /// True if k runs along memory; false: x does, or nothing does.
    fn k_is_fast(&self) -> bool {
        self.k == 1 && self.x != 1
    }

    /// True if four entries along memory can be copied at once, wherever they start.
    fn by_four(&self, width: usize, depth: usize, per_replica: usize) -> bool {
        let (fast, slow, length) = if self.k_is_fast() { (self.k, self.x, depth) } else { (self.x, self.k, width) };
        let aligned = [slow, length, self.offset, per_replica].iter().chain(&self.lead).all(|n| n.is_multiple_of(4));
        fast == 1 && aligned
    }
}
