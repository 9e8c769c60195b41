//! Operands that lie in a buffer with fixed distances between their entries, or are windows of an image that does: these are
//! copied four at a time.

use super::parts::{Partition, Place};
use super::product::{Product, Rows, Term};
use crate::graph::Id;
use crate::op::{Op, Window};

/// Distances in a buffer.
#[derive(Clone, Debug)]
struct Strided {
    root: Id,
    offset: usize,
    row: usize,
    dims: Vec<usize>,
}

/// An operand of a product as addresses: `b{root}[offset + lead·… + x·along_x + k·along_k]`.
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
    pub root: Id,
    from: Strided,
    window: Window,
    /// Height, width and channels of an image.
    image: [usize; 3],
    /// True if windows are counted by k, their entries by x.
    contracts: bool,
}

impl Partition {
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
                let dims = crate::cpu::regroup(&from.shape.dims, &s.dims, &node.shape.dims)?;
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
            _ => None,
        }
    }

    /// One side of a product as addresses, if it has them.
    pub(super) fn direct(&self, product: &Product, term: &Term, left: bool) -> Option<Direct> {
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
    pub(super) fn windowed(&self, term: &Term, left: bool) -> Option<Windowed> {
        let id = if left { term.left } else { term.right };
        let node = self.node(id);
        let &Op::Im2col(window) = &node.op else { return None };
        let from = self.strided(node.args[0])?;
        let image = &self.node(node.args[0]).shape.dims;
        let dense = from.dims[2] == 1 || image[2] == 1;
        let known = self.place(None, id) == Place::Inline && dense && (left || term.contracts);
        known.then(|| Windowed {
            root: from.root,
            from,
            window,
            image: [image[0], image[1], image[2]],
            contracts: term.contracts,
        })
    }
}

impl Windowed {
    /// True if k runs along memory; false: x does.
    pub fn k_is_fast(&self) -> bool {
        !self.contracts
    }

    /// True if four entries of a window can be copied at once.
    pub fn by_four(&self, per_replica: usize) -> bool {
        let Strided { offset, row, dims, .. } = &self.from;
        [self.image[2], *offset, *row, dims[0], dims[1], per_replica].iter().all(|n| n.is_multiple_of(4))
    }

    /// The address of entry (x, k); outside of the image there is none.
    pub fn load(&self) -> String {
        let Window { kernel: [_, kw], stride, pad: [[top, _], [left, _]] } = self.window;
        let [h, w, c] = self.image;
        let [oh, ow] = self.window.output([h, w]);
        let (place, entry) = if self.contracts { ("k", "x") } else { ("x", "k") };
        let Strided { root, offset, row, dims } = &self.from;
        let whole = oh * ow;
        format!(
            "[&](int x, int k, bool& inside) {{\n\
             const int pixel = {place} % {whole}, tap = {entry} / {c};\n\
             const int line = pixel / {ow} * {stride} + tap / {kw} - {top};\n\
             const int column = pixel % {ow} * {stride} + tap % {kw} - {left};\n\
             inside = inside && (u32)line < {h}u && (u32)column < {w}u;\n\
             const i64 at = (i64)({place} / {whole}) * {row} + line * {} + column * {} + {entry} % {c};\n\
             return b@{root} + p@{root} + {offset} + (inside ? at : 0);\n}}",
            dims[0], dims[1],
        )
    }
}

impl Direct {
    /// True if k runs along memory; false: x does, or nothing does.
    pub fn k_is_fast(&self) -> bool {
        self.k == 1 && self.x != 1
    }

    /// True if four entries along memory can be copied at once, wherever they start.
    pub fn by_four(&self, width: usize, depth: usize, per_replica: usize) -> bool {
        let (fast, slow, length) = if self.k_is_fast() { (self.k, self.x, depth) } else { (self.x, self.k, width) };
        let aligned = [slow, length, self.offset, per_replica].iter().chain(&self.lead).all(|n| n.is_multiple_of(4));
        fast == 1 && aligned
    }
}
