//! Matrix products: their geometry, their tiles, and how their operands are loaded.
//!
//! Both kinds are `C[m, n] = Σ_k A(m, k)·B(k, n)` for each replica and each entry of the leading axes: in `Matmul` the
//! rows join m (or n, if the right operand has them), in `Contract` they join k.

use crate::cuda::THREADS;
use crate::cuda::parts::{Arithmetic, NARROW};
use crate::cuda::tiles::Choice;
use crate::cuda::trace::{Index, Ix, Spot, Trace};
use crate::device::Precision;
use crate::graph::{Id, Node};
use crate::op::Op;
use crate::shape::Shape;

/// Where the rows went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    Left,
    Right,
    Summed,
    Nowhere,
}

/// Leading axes, and the rows and columns of C: rows of data counted in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    pub lead: Vec<usize>,
    pub rows: Rows,
    pub data: usize,
    /// The last two axes of the result.
    pub m: usize,
    pub n: usize,
}

impl Geometry {
    /// Rows of C.
    pub fn height(&self) -> usize {
        self.m * if self.rows == Rows::Left { self.data } else { 1 }
    }

    /// The leading axes, as the kernel counts them.
    pub fn lead_indices(&self) -> Vec<Ix> {
        let index = |(i, &d)| if d == 1 { Ix::Number(0) } else { Ix::Variable(Index::Lead(i)) };
        self.lead.iter().enumerate().map(index).collect()
    }

    /// Columns of C.
    pub fn width(&self) -> usize {
        self.n * if self.rows == Rows::Right { self.data } else { 1 }
    }
}

/// One product of a sum.
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub left: Id,
    pub right: Id,
    pub contracts: bool,
    /// Length of the sum over k, rows of data counted in.
    pub depth: usize,
    /// The axis summed along with the rows.
    pub inner: usize,
    pub scale: f64,
}

impl Term {
    pub fn new(nodes: &[Node], id: Id, scale: f64) -> Self {
        let node = &nodes[id as usize];
        let left = &nodes[node.args[0] as usize].shape;
        let contracts = node.op == Op::Contract;
        let inner = left.dims[left.rank() - if contracts { 2 } else { 1 }];
        let depth = if contracts { inner * left.rows.unwrap_or(1) } else { inner };
        Term { left: node.args[0], right: node.args[1], contracts, depth, inner, scale }
    }
}

/// Longest sum over k.
pub(super) fn longest(terms: &[Term]) -> usize {
    terms.iter().map(|t| t.depth).max().unwrap_or(1)
}

/// How large a tile is, and how it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// Blocks of k on their way at a time; 1: each term is one block, and all terms are on their way at once.
    pub stages: usize,
    /// Warps along m and n, on tensor cores; others take slices of k.
    pub warps: Option<(usize, usize)>,
}

impl Tile {
    fn slices(&self) -> usize {
        self.warps.map_or(THREADS * 16 / (self.m * self.n), |(m, n)| 8 / (m * n))
    }

    /// Numbers of a block of an operand in shared memory, `Block::SIZE` of the prelude.
    pub fn block(&self, x: usize, k_is_fast: bool) -> usize {
        if k_is_fast { x * (self.k + 8) } else { self.k * (x + 4) }
    }

    /// Numbers of the tiles of all slices of k, once they are summed: `PITCH` of the prelude, for tensor cores.
    pub fn staged(&self) -> usize {
        self.slices() * self.m * (self.n + if self.warps.is_some() { 4 } else { 0 })
    }

    /// Most numbers of shared memory that the tile may take, however its operands lie.
    pub fn shared(&self, terms: usize) -> usize {
        let blocks = if self.stages == 1 { terms } else { self.stages };
        let most = |x| self.block(x, true).max(self.block(x, false));
        (blocks * (most(self.m) + most(self.n))).max(self.staged())
    }

    /// As a type of the kernel, for sums over k of some length; `along` says for each operand whether never k, but always its
    /// rows (columns) lie together.
    pub fn name(&self, precision: Precision, depth: usize, along: [bool; 2]) -> String {
        let Tile { m, n, k, .. } = self;
        let products = if precision == Precision::Tf32 { 1 } else { 3 };
        let fresh = products == 3 && depth > FRESH;
        match self.warps {
            None => format!("Scalars<{m}, {n}, {k}>"),
            Some((wm, wn)) => {
                format!("Tensors<{m}, {n}, {k}, {wm}, {wn}, {products}, {fresh}, {}, {}>", along[0], along[1])
            }
        }
    }
}

/// Tensor cores cut off what they add; in f32 longer sums than this are added up from pieces by other means.
const FRESH: usize = 256;

/// A sum of products.
#[derive(Clone, Debug)]
pub(super) struct Product {
    pub geometry: Geometry,
    pub terms: Vec<Term>,
    /// Matrices of that geometry, those of all replicas.
    pub batch: usize,
    pub tile: Tile,
    /// Into how many pieces k is cut, each computed by blocks of its own.
    pub splits: usize,
}

impl Product {
    pub fn geometry(nodes: &[Node], id: Id) -> Geometry {
        let node = &nodes[id as usize];
        let [a, b] = [0, 1].map(|k| &nodes[node.args[k] as usize].shape);
        let r = node.shape.rank();
        let rows = match (a.rows, b.rows) {
            _ if node.op == Op::Contract => Rows::Summed,
            (Some(_), _) => Rows::Left,
            (None, Some(_)) => Rows::Right,
            (None, None) => Rows::Nowhere,
        };
        Geometry {
            lead: node.shape.dims[..r - 2].to_vec(),
            rows,
            data: a.rows.or(b.rows).unwrap_or(1),
            m: node.shape.dims[r - 2],
            n: node.shape.dims[r - 1],
        }
    }

    pub fn new(nodes: &[Node], terms: &[(Id, f64)], replicas: usize, arithmetic: Arithmetic) -> Self {
        let geometry = Self::geometry(nodes, terms[0].0);
        let terms: Vec<Term> = terms.iter().map(|&(id, scale)| Term::new(nodes, id, scale)).collect();
        let batch = replicas * geometry.lead.iter().product::<usize>();
        let choice = Choice::new(&geometry, &terms, batch, arithmetic);
        let (tile, splits) = choice.best();
        Product { geometry, terms, batch, tile, splits }
    }

    /// How its tile is chosen, if other products of the kernel have some broad tiles.
    pub fn choice(&self, beside: usize, arithmetic: Arithmetic) -> Choice<'_> {
        Choice { beside, ..Choice::new(&self.geometry, &self.terms, self.batch, arithmetic) }
    }

    /// True if it has large tiles, and its sum is in one piece.
    pub fn large(&self) -> bool {
        self.splits == 1 && self.tile.m * self.tile.n >= 64 * 64
    }

    /// True if a row of C is a narrow row of data, finished by one thread.
    pub fn thin(&self) -> bool {
        let g = &self.geometry;
        g.rows == Rows::Left && g.m == 1 && g.n <= NARROW && g.lead.iter().all(|&d| d == 1) && self.splits == 1
    }

    /// Scale of the last term relative to the first: the sum is kept in units of the last.
    pub fn factor(&self) -> f64 {
        self.terms[self.terms.len() - 1].scale / self.terms[0].scale
    }

    /// Longest sum over k.
    pub fn depth(&self) -> usize {
        longest(&self.terms)
    }

    /// The piece of k that a block sums, in its kernel's words, and what to ask before.
    pub fn range(&self, term: &Term) -> (String, String) {
        if self.splits == 1 {
            return (format!("0, {}", term.depth), String::new());
        }
        let piece = term.depth.div_ceil(self.splits).next_multiple_of(self.tile.k);
        let range = format!("split * {piece}, min((split + 1) * {piece}, {})", term.depth);
        (range, format!("if (split * {piece} < {}) ", term.depth))
    }

    /// Tiles of one replica and one entry of the leading axes.
    pub fn tiles(&self) -> (usize, usize) {
        (self.geometry.height().div_ceil(self.tile.m), self.geometry.width().div_ceil(self.tile.n))
    }

    /// Where in an operand entry (x, k) stands.
    pub fn spot(&self, trace: &mut Trace, term: &Term, left: bool) -> Spot {
        let shape: &Shape = trace.shape(if left { term.left } else { term.right });
        let g = &self.geometry;
        let mut dims = g.lead_indices();
        if term.contracts {
            let row = trace.over(Ix::K, term.inner);
            dims.push(trace.modulo(Ix::K, term.inner));
            dims.push(Ix::X);
            return Spot { row, dims };
        }
        let length = if left { g.m } else { g.n };
        let (row, x) = match shape.rows {
            Some(_) => (trace.over(Ix::X, length), trace.modulo(Ix::X, length)),
            None => (Ix::Number(0), Ix::X),
        };
        dims.extend(if left { [x, Ix::K] } else { [Ix::K, x] });
        Spot { row, dims }
    }
}
