//! Matrix products: their geometry, their tiles, and how their operands are loaded.
//!
//! Both kinds are `C[m, n] = Σ_k A(m, k)·B(k, n)` for each replica and each entry of the leading axes: in `Matmul` the
//! rows join m (or n, if the right operand has them), in `Contract` they join k.

use crate::cuda::emit::{Ix, Spot};
use crate::cuda::parts::{Arithmetic, NARROW};
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
        self.warps.map_or(256 * 16 / (self.m * self.n), |(m, n)| 8 / (m * n))
    }

    /// Numbers of shared memory: the blocks on their way, and afterwards the tiles of all slices.
    pub fn shared(&self, terms: usize) -> usize {
        let blocks = if self.stages == 1 { terms } else { self.stages };
        (blocks * self.stage()).max(self.slices() * self.m * self.n)
    }

    /// Numbers of a block of both operands.
    pub fn stage(&self) -> usize {
        let block = |x: usize| (x * (self.k + 8)).max(self.k * (x + 4));
        block(self.m) + block(self.n)
    }

    /// As a type of the kernel, for sums over k of some length.
    pub fn name(&self, precision: Precision, depth: usize) -> String {
        let Tile { m, n, k, .. } = self;
        let products = if precision == Precision::Tf32 { 1 } else { 3 };
        let fresh = products == 3 && depth > FRESH;
        match self.warps {
            None => format!("Scalars<{m}, {n}, {k}>"),
            Some((wm, wn)) => format!("Tensors<{m}, {n}, {k}, {wm}, {wn}, {products}, {fresh}>"),
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
    pub tile: Tile,
    /// Into how many pieces k is cut, each computed by blocks of its own.
    pub splits: usize,
}

/// Multiprocessors to be filled: those of an H200. Fixed, so that results do not depend on the card.
const FILL: usize = 132;

impl Product {
    pub fn geometry(nodes: &[Node], id: Id) -> Geometry {
        let node = &nodes[id as usize];
        let [a, b] = [0, 1].map(|k| &nodes[node.args[k] as usize].shape);
        let r = node.shape.rank();
        let rows = match (&node.op, a.rows, b.rows) {
            (Op::Contract, ..) => Rows::Summed,
            (_, Some(_), _) => Rows::Left,
            (_, _, Some(_)) => Rows::Right,
            _ => Rows::Nowhere,
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
        let term = |&(id, scale): &(Id, f64)| {
            let node = &nodes[id as usize];
            let left = &nodes[node.args[0] as usize].shape;
            let contracts = node.op == Op::Contract;
            let inner = left.dims[left.rank() - if contracts { 2 } else { 1 }];
            let depth = if contracts { inner * left.rows.unwrap_or(1) } else { inner };
            Term { left: node.args[0], right: node.args[1], contracts, depth, inner, scale }
        };
        let terms: Vec<Term> = terms.iter().map(term).collect();
        let depth = terms.iter().map(|t| t.depth).max().unwrap_or(1);
        let batch = replicas * geometry.lead.iter().product::<usize>();
        let (tile, splits) = choose(&geometry, batch, depth, terms.len(), arithmetic);
        Product { geometry, terms, tile, splits }
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
        self.terms.iter().map(|t| t.depth).max().unwrap_or(1)
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

    /// Where in an operand entry (x, k) stands, given the leading axes.
    pub fn spot(&self, e: &mut super::emit::Emitter, term: &Term, left: bool, lead: &[Ix], x: &Ix, k: &Ix) -> Spot {
        let shape: &Shape = e.shape(if left { term.left } else { term.right });
        let g = &self.geometry;
        let mut dims = lead.to_vec();
        if term.contracts {
            let row = e.over(k, term.inner);
            dims.push(e.modulo(k, term.inner));
            dims.push(x.clone());
            return Spot { row, dims };
        }
        let length = if left { g.m } else { g.n };
        let (row, x) =
            if shape.rows.is_some() { (e.over(x, length), e.modulo(x, length)) } else { (Ix::Number(0), x.clone()) };
        dims.extend(if left { [x, k.clone()] } else { [k.clone(), x] });
        Spot { row, dims }
    }
}

/// Tiles by tensor cores: height, width, warps along each; and for large ones the nanoseconds that a step of k was measured to
/// take on an H200, with TF32 and with f32.
type Tensors = (usize, usize, usize, usize, Option<[f64; 2]>);
const TENSORS: [Tensors; 10] = [
    (16, 8, 1, 1, None),
    (16, 16, 1, 1, None),
    (32, 32, 1, 2, None),
    (64, 8, 4, 1, None),
    (64, 16, 4, 1, None),
    (16, 64, 1, 4, None),
    (64, 64, 2, 2, Some([16.0, 22.5])),
    (128, 64, 4, 2, Some([29.0, 42.0])),
    (128, 112, 4, 2, Some([36.0, 60.0])),
    (128, 128, 2, 2, Some([39.0, 68.0])),
];
/// Tiles by scalars.
const SCALARS: [(usize, usize); 5] = [(16, 16), (16, 4), (64, 4), (32, 32), (64, 64)];
/// Bytes of shared memory that two blocks may take each.
const WHOLE: usize = 114 << 10;
/// From this length on a sum over k is long.
const LONG: usize = 1024;
/// Nanoseconds until a large tile is under way.
const LARGE: f64 = 2000.0;
/// Nanoseconds until the pieces of a sum are added up by a kernel of its own, and bytes that it moves in each.
const SUMMED: f64 = 2500.0;
const MOVED: f64 = 2500.0;

/// A tile, and how long a step of k takes if that was measured.
struct Candidate {
    tile: Tile,
    step: Option<f64>,
}

/// The tile, and the number of pieces that k is cut into, that should be done first by a model: blocks take turns on the
/// multiprocessors, each loads its operands and multiplies them.
fn choose(
    g: &Geometry,
    batch: usize,
    depth: usize,
    terms: usize,
    Arithmetic { single, precision }: Arithmetic,
) -> (Tile, usize) {
    let (height, width) = (g.height(), g.width());
    let tile = |m: usize, n: usize, warps: Option<(usize, usize)>| {
        // All of k on its way at once, if that leaves room for several blocks; else a few blocks of k at a time.
        let whole = Tile { m, n, k: depth.next_multiple_of(8), stages: 1, warps };
        let size = if single { 4 } else { 8 };
        let room = if (512..8192).contains(&(m * n)) { WHOLE * 2 / 3 } else { WHOLE };
        if whole.shared(terms) * size <= room {
            return whole;
        }
        let k = match (m * n, single) {
            (..=256, _) => 128,
            (..=1024, true) => 64,
            (_, true) => 32,
            (_, false) => 16,
        };
        Tile { k, stages: if single { 3 } else { 2 }, ..whole }
    };
    let fast = precision == Precision::Tf32;
    let tensors = |&(m, n, wm, wn, steps): &Tensors| Candidate {
        tile: tile(m, n, Some((wm, wn))),
        step: steps.map(|[tf32, f32]| if fast { tf32 } else { f32 }),
    };
    let scalars = |&(m, n): &(usize, usize)| Candidate { tile: tile(m, n, None), step: None };
    let candidates: Vec<Candidate> =
        if single { TENSORS.iter().map(tensors).collect() } else { SCALARS.iter().map(scalars).collect() };
    let count = |t: &Tile| batch * height.div_ceil(t.m) * width.div_ceil(t.n);
    let cost = |c: &Candidate, splits: usize| {
        let (t, blocks, piece) = (&c.tile, splits * count(&c.tile), depth.div_ceil(splits));
        let (turns, size) = (blocks as f64 / FILL as f64, (t.m * t.n) as f64);
        let bytes = (8 * splits * batch * height * width) as f64;
        let summed = if splits > 1 { SUMMED + bytes / MOVED } else { 0.0 };
        summed
            + match c.step {
                Some(step) => {
                    // The last turn may be short of blocks, unless other work of the kernel takes their places.
                    let turns = (turns.ceil() + turns) / 2.0;
                    // The largest tile has a multiprocessor for itself: nothing hides how it ends.
                    let ending = size * if size < 16384.0 { 0.1 } else { 0.3 };
                    turns * (piece as f64 * step + ending) + LARGE
                }
                None => {
                    // Loads from the second-level cache, which all multiprocessors share, and products.
                    let speed = if fast { 0.0015 } else { 0.0035 };
                    let step = 0.096 * turns.clamp(0.36, 1.0) * (t.m + t.n) as f64 + speed * size;
                    let waits = if t.stages == 1 { 2 } else { piece.div_ceil(t.k) };
                    turns.ceil() * piece as f64 * step + 300.0 * waits as f64
                }
            }
    };
    // A row of data is finished by one thread if the tile holds all of it.
    let whole_rows = g.rows == Rows::Left && g.m == 1 && width <= NARROW;
    // Large tiles leave no room for other work of their kernel, nor for the next to begin: short sums are worth that only if
    // they are many, and the largest tiles only if they are one product of very many rows.
    let worth = |t: &Tile| {
        let (size, many, tall) = (t.m * t.n, count(t) >= 2 * FILL, g.rows == Rows::Left && batch == 1);
        let long = depth >= if batch == 1 { LONG / 2 } else { LONG };
        size <= 1024 || long || (many && (size <= 128 * 64 || (tall && size < 128 * 128)))
    };
    let fits = |c: &&Candidate| (!whole_rows || c.tile.n >= width) && worth(&c.tile);
    let all = candidates.iter().filter(fits).flat_map(|c| {
        let most = if whole_rows || c.tile.stages == 1 || depth < LONG { 1 } else { depth / (4 * c.tile.k) };
        (1..=most.clamp(1, 2 * FILL)).map(move |splits| (c, splits))
    });
    let best = all.min_by(|a, b| cost(a.0, a.1).total_cmp(&cost(b.0, b.1)));
    best.map_or((candidates[0].tile, 1), |(c, splits)| (c.tile, splits))
}
