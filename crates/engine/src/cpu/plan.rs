//! What a compiled program is made of: buffers, instructions and stages.
//!
//! A stage is either **rows** (each task takes one chunk of one replica and runs all instructions tile by tile) or
//! **whole** (values without row axis; each task takes one instruction of one replica, or a piece of it).
//! Within a tile a value is stored feature by feature, rows contiguous: rows are the SIMD lanes, so every operation
//! is a plain loop over lanes, broadcasting a parameter is broadcasting a scalar, and nothing needs padding.

use super::tiling::Tiling;
use crate::inputs::Named;
use crate::op::{Binary, Unary, Window};
use crate::random::Draw;
use crate::shape::Shape;

/// Where a buffer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// The program's own memory.
    Memory,
    /// The arena of the worker, valid within one tile.
    Tile,
    /// An input of the run.
    Input(usize),
    /// An input of bytes.
    Bytes(usize),
    /// A variable as it was before this step.
    Variable(usize),
    /// Where the new value of a variable is written.
    Next(usize),
}

/// A buffer: base address and the distances between replicas, rows and chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub home: Home,
    pub base: usize,
    pub per_replica: usize,
    /// 1 for row values kept in memory, feature after feature: a tile starts at its first row.
    pub per_row: usize,
    pub per_chunk: usize,
}

/// A place in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ptr {
    pub buffer: usize,
    pub offset: usize,
}

/// A strided array: feature axes with strides, and whether neighbouring lanes differ.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub at: Ptr,
    pub dims: Vec<usize>,
    pub strides: Vec<usize>,
    /// 1 if there is one value per lane, 0 if all lanes share it.
    pub lane: usize,
}

/// Where an operand of a chain lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    At(Ptr),
    /// A block in the worker's registers (first-level cache).
    Register(usize),
}

/// An operand of a chain: strides over the outer loops, the inner features and the lanes.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub slot: Slot,
    pub outer: Vec<usize>,
    pub feature: usize,
    pub lane: usize,
}

/// What one operation of a chain does; operands are `dst` and `src[..]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Unary(Unary),
    Binary(Binary),
    /// src0 ≠ 0 ? src1 : src2
    Select,
    /// src0·src1 + src2
    MulAdd,
    /// src0·src1 − src2
    MulSub,
    /// src2 − src0·src1
    NegMulAdd,
    /// dst += src0 (over repeated entries of dst)
    AddInto,
    /// dst = max(dst, src0)
    MaxInto,
    /// dst += Σ over the valid lanes of src0
    AddRows,
    /// dst = max over the valid lanes of src0
    MaxRows,
    /// Sum of the partial results of all chunks, `stride` apart.
    SumChunks {
        chunks: usize,
        stride: usize,
    },
    /// Maximum of the partial results of all chunks.
    MaxChunks {
        chunks: usize,
        stride: usize,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainOp {
    pub code: Code,
    pub dst: usize,
    pub src: [usize; 3],
}

/// How many lanes an instruction runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lanes {
    /// Those of the tile, rounded up to whole vectors.
    Tile,
    Fixed(usize),
}

/// Elementwise operations fused into one pass over blocks that stay in the first-level cache.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub outer: Vec<usize>,
    pub features: usize,
    pub lanes: Lanes,
    pub operands: Vec<Operand>,
    pub ops: Vec<ChainOp>,
    pub registers: usize,
    /// Blocks may be run by different threads: nothing is reduced.
    pub splits: bool,
}

/// A counted loop around a product: how far each operand moves per turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub count: usize,
    pub w: usize,
    pub a: usize,
    pub c: usize,
}

/// `C[j][l] = bias[j] + Σ_i w[i,j]·a[i][l]`, lanes l contiguous.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub n: usize,
    pub k: usize,
    pub lanes: Lanes,
    pub w: Ptr,
    pub w_strides: [usize; 2],
    pub a: Ptr,
    pub a_stride: usize,
    pub c: Ptr,
    pub c_stride: usize,
    pub bias: Option<(Ptr, usize)>,
    pub turns: [Turn; 2],
}

/// `C[i][j] += scale·Σ_l a[i][l]·b[j][l]` over the valid lanes.
#[derive(Clone, Debug)]
pub(crate) struct Contraction {
    pub m: usize,
    pub n: usize,
    pub a: Ptr,
    pub a_stride: usize,
    pub b: Ptr,
    pub b_stride: usize,
    pub c: Ptr,
    pub scale: f64,
    /// Batch, and the feature axis that is summed along with the rows; `w` is a's step, `a` is b's.
    pub turns: [Turn; 2],
}

#[derive(Clone, Debug)]
#[rustfmt::skip] // one line per instruction reads best
pub(crate) enum Instr {
    Chain(Chain),
    Product(Product),
    Contraction(Contraction),
    /// Several contractions over all rows into one matrix, which starts at zero.
    Contractions { terms: Vec<Contraction>, rows: usize },
    /// Row-major rows `[features]` at `from` into a tile; features `stride` apart.
    Load { from: Ptr, features: usize, to: Ptr, stride: usize },
    /// A tile value into row-major rows.
    Save { from: Array, to: Ptr },
    Random { draw: Draw, stream: u32, features: usize, rows: Option<usize>, to: Ptr, stride: usize },
    Fill { to: Ptr, len: usize, value: f64 },
    /// The same number in every lane of every feature of a tile value.
    FillLanes { to: Ptr, features: usize, stride: usize, value: f64 },
    /// A strided copy, over lanes if rowed.
    Copy { from: Array, to: Array, lanes: Lanes },
    /// `strides`: distance between neighbouring features of `from` and of `to`.
    Im2col { window: Window, image: [usize; 3], from: Ptr, to: Ptr, strides: [usize; 2], rowed: bool },
    Col2im { window: Window, image: [usize; 3], from: Ptr, to: Ptr, strides: [usize; 2], rowed: bool },
    /// `to[i, j] = table[index[i], j]`, entries of `width`.
    Gather { table: Ptr, len: usize, width: usize, index: Array, to: Ptr, stride: usize, rowed: bool },
    /// `to[index[i], j] += values[i, j]`, over all rows of a stored value in order.
    Scatter { to: Ptr, len: usize, width: usize, index: Array, values: Array, rows: usize },
    /// A stored row value as a matrix `[rows, features]`.
    Collect { from: Array, to: Ptr, rows: usize },
    Kth { k: usize, len: usize, from: Array, copy: Ptr, to: Ptr },
}

/// Work of instructions that are rare in stages without rows, and not cheap.
const RARE: usize = usize::MAX / (1 << 20);

impl Instr {
    /// About how many elements are touched: to decide whether a stage is worth sharing.
    pub fn work(&self) -> usize {
        match self {
            Instr::Chain(c) => {
                let lanes = if let Lanes::Fixed(n) = c.lanes { n } else { 1 };
                c.outer.iter().product::<usize>() * c.features * lanes * c.ops.len()
            }
            Instr::Product(p) => {
                let lanes = if let Lanes::Fixed(n) = p.lanes { n } else { 1 };
                p.n * p.k * lanes * p.turns[0].count * p.turns[1].count / 8
            }
            Instr::Fill { len, .. } => len / 8,
            Instr::Random { features, .. } => *features,
            Instr::Copy { from, .. } | Instr::Save { from, .. } => from.dims.iter().product(),
            Instr::Contraction(_) | Instr::Contractions { .. } | Instr::Load { .. } | Instr::FillLanes { .. } => RARE,
            Instr::Im2col { .. } | Instr::Col2im { .. } | Instr::Gather { .. } | Instr::Scatter { .. } => RARE,
            Instr::Collect { .. } | Instr::Kth { .. } => RARE,
        }
    }

    /// Every buffer the instruction touches.
    pub fn buffers(&self) -> Vec<usize> {
        let places = match self {
            Instr::Chain(chain) => {
                let in_memory = |o: &Operand| match o.slot {
                    Slot::At(at) => Some(at),
                    Slot::Register(_) => None,
                };
                chain.operands.iter().filter_map(in_memory).collect()
            }
            Instr::Product(p) => [p.w, p.a, p.c].into_iter().chain(p.bias.map(|(at, _)| at)).collect(),
            Instr::Contraction(c) => vec![c.a, c.b, c.c],
            Instr::Contractions { terms, .. } => terms.iter().flat_map(|c| [c.a, c.b, c.c]).collect(),
            Instr::Load { from, to, .. } => vec![*from, *to],
            Instr::Save { from, to } => vec![from.at, *to],
            Instr::Random { to, .. } | Instr::Fill { to, .. } | Instr::FillLanes { to, .. } => vec![*to],
            Instr::Copy { from, to, .. } => vec![from.at, to.at],
            Instr::Im2col { from, to, .. } | Instr::Col2im { from, to, .. } => vec![*from, *to],
            Instr::Gather { table, index, to, .. } => vec![*table, index.at, *to],
            Instr::Scatter { to, index, values, .. } => vec![*to, index.at, values.at],
            Instr::Collect { from, to, .. } => vec![from.at, *to],
            Instr::Kth { from, copy, to, .. } => vec![from.at, *copy, *to],
        };
        places.into_iter().map(|p| p.buffer).collect()
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Stage {
    Rows {
        tiling: Tiling,
        /// Partial results to reset at the start of a chunk: place, length, start value.
        partials: Vec<(Ptr, usize, f64)>,
        instrs: Vec<Instr>,
    },
    Whole {
        instrs: Vec<Instr>,
    },
}

/// A program ready to run.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub buffers: Vec<Buffer>,
    pub memory: usize,
    pub stages: Vec<Stage>,
    /// Elements of a worker's arena, of its registers, and of its scratch for products.
    pub arena: usize,
    pub registers: usize,
    pub scratch: usize,
    /// Lanes per feature in the largest tile.
    pub pitch: usize,
    /// Most operands in one chain.
    pub operands: usize,
    pub inputs: Vec<Named>,
    pub bytes: Vec<Named>,
    pub variables: Vec<Named>,
    /// Variables that get a new value.
    pub updated: Vec<usize>,
    /// Place and shape of each output, row-major, replica after replica.
    pub outputs: Vec<(usize, Shape)>,
    /// Constants to write into memory once.
    pub constants: Vec<(usize, Vec<f64>)>,
    /// Where the number of the step goes, if the program asks for it.
    pub step: Option<usize>,
}
