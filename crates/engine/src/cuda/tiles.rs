//! Which tile a product takes, and into how many pieces its sum is cut: those that should be done first, by a model.
//!
//! Blocks take turns on the multiprocessors; each loads its operands and multiplies them. For large tiles the time of a step was
//! measured, for small ones it is estimated from loads and products.

use super::parts::{Arithmetic, NARROW};
use super::product::{Geometry, Rows, Term, Tile, longest};
use crate::device::Precision;

/// Multiprocessors to be filled: those of an H200. Fixed, so that results do not depend on the card.
const FILL: usize = 132;
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
    (128, 64, 4, 2, Some([26.0, 42.0])),
    (128, 112, 4, 2, Some([36.0, 60.0])),
    (128, 128, 2, 2, Some([39.0, 68.0])),
];
/// Tiles by scalars.
const SCALARS: [(usize, usize); 5] = [(16, 16), (16, 4), (64, 4), (32, 32), (64, 64)];
/// Bytes of shared memory that one block may take, and that two may take each.
const SHARED: usize = 227 << 10;
const WHOLE: usize = 114 << 10;
/// From as many bytes of shared memory on a kernel has large tiles.
const SPACIOUS: usize = 32 << 10;
/// The tile that many products take together, if they fill the card.
const BROAD: (usize, usize) = (128, 64);
/// From this length on a sum over k is long.
const LONG: usize = 1024;
/// Nanoseconds until a large tile is under way.
const LARGE: f64 = 2000.0;
/// Nanoseconds until the pieces of a sum are added up by a kernel of its own, and bytes that it moves in each.
const SUMMED: f64 = 2500.0;
const MOVED: f64 = 2500.0;

/// Blocks of a kernel that are to fit on a multiprocessor side by side, if the compiler should see to that: as many as the
/// shared memory of large tiles allows, up to three. It knows only then how many registers it may take, and loads early what
/// tensor cores multiply.
pub(super) fn bounds(shared: usize, arithmetic: Arithmetic) -> String {
    if arithmetic.precision != Precision::Tf32 || shared < SPACIOUS {
        return String::new();
    }
    format!(", {}", (SHARED / (shared + 1024)).clamp(1, 3))
}

/// What a tile is chosen for.
pub(super) struct Choice<'a> {
    pub geometry: &'a Geometry,
    /// Matrices of that geometry.
    pub batch: usize,
    /// Length of the sum over k.
    pub depth: usize,
    /// How many products are summed.
    pub terms: usize,
    pub arithmetic: Arithmetic,
    /// Broad tiles of other products of the same kernel, as far as they are known.
    pub beside: usize,
}

/// A tile, and how long a step of k takes if that was measured.
struct Candidate {
    tile: Tile,
    step: Option<f64>,
}

impl<'a> Choice<'a> {
    pub fn new(geometry: &'a Geometry, terms: &[Term], batch: usize, arithmetic: Arithmetic) -> Self {
        Choice { geometry, batch, depth: longest(terms), terms: terms.len(), arithmetic, beside: 0 }
    }

    /// The tile, and into how many pieces k is cut.
    pub fn best(&self) -> (Tile, usize) {
        let candidates = self.candidates();
        // A row of data is finished by one thread if the tile holds all of it.
        let (g, width) = (self.geometry, self.geometry.width());
        let whole_rows = g.rows == Rows::Left && g.m == 1 && width <= NARROW;
        let fits = |c: &&Candidate| (!whole_rows || c.tile.n >= width) && self.worth(&c.tile);
        let all = candidates.iter().filter(fits).flat_map(|c| {
            let whole = whole_rows || c.tile.stages == 1 || self.depth < LONG;
            let most = if whole { 1 } else { self.depth / (4 * c.tile.k) };
            (1..=most.clamp(1, 2 * FILL)).map(move |splits| (c, splits))
        });
        let best = all.min_by(|a, b| self.cost(a.0, a.1).total_cmp(&self.cost(b.0, b.1)));
        best.map_or((candidates[0].tile, 1), |(c, splits)| (c.tile, splits))
    }

    fn candidates(&self) -> Vec<Candidate> {
        let tensors = |&(m, n, wm, wn, steps): &Tensors| Candidate {
            tile: self.tile(m, n, Some((wm, wn))),
            step: steps.map(|[tf32, f32]| if self.fast() { tf32 } else { f32 }),
        };
        let scalars = |&(m, n): &(usize, usize)| Candidate { tile: self.tile(m, n, None), step: None };
        match self.arithmetic.single {
            true => TENSORS.iter().map(tensors).collect(),
            false => SCALARS.iter().map(scalars).collect(),
        }
    }

    fn fast(&self) -> bool {
        self.arithmetic.precision == Precision::Tf32
    }

    /// A tile of this size: all of k on its way at once, if that leaves room for several blocks; else a few blocks of k at a time.
    /// Of many products, three blocks should fit on a multiprocessor whatever their tiles, so that one loads or ends while
    /// another multiplies.
    fn tile(&self, m: usize, n: usize, warps: Option<(usize, usize)>) -> Tile {
        let single = self.arithmetic.single;
        let whole = Tile { m, n, k: self.depth.next_multiple_of(8), stages: 1, warps };
        let size = if single { 4 } else { 8 };
        let (broad, many) = (m * n >= BROAD.0 * BROAD.1, self.batch > 1);
        let room = if m * n < 512 || (broad && !many) { WHOLE } else { WHOLE * 2 / 3 };
        if whole.shared(self.terms) * size <= room {
            return whole;
        }
        let k = match (m * n, single) {
            (..=256, _) => 128,
            (..=1024, true) => 64,
            (_, true) => 32,
            (_, false) => 16,
        };
        Tile { k, stages: if !single || (broad && many) { 2 } else { 3 }, ..whole }
    }

    fn count(&self, (m, n): (usize, usize)) -> usize {
        self.batch * self.geometry.height().div_ceil(m) * self.geometry.width().div_ceil(n)
    }

    /// How many broad tiles there would be.
    pub fn broad(&self) -> usize {
        self.count(BROAD)
    }

    /// Large tiles leave no room for other work of their kernel, nor for the next to begin: short sums are worth that only if
    /// they are many (with those beside them), and the largest tiles only if they are one product of very many rows.
    fn worth(&self, t: &Tile) -> bool {
        let (size, many) = (t.m * t.n, self.count((t.m, t.n)) + self.beside >= 2 * FILL);
        let tall = self.geometry.rows == Rows::Left && self.batch == 1;
        let long = self.depth >= if self.batch == 1 { LONG / 2 } else { LONG };
        size <= 1024 || long || (many && (size <= BROAD.0 * BROAD.1 || (tall && size < 128 * 128)))
    }

    /// Nanoseconds until all is done.
    fn cost(&self, c: &Candidate, splits: usize) -> f64 {
        let (t, blocks, piece) = (&c.tile, splits * self.count((c.tile.m, c.tile.n)), self.depth.div_ceil(splits));
        let (turns, size) = (blocks as f64 / FILL as f64, (t.m * t.n) as f64);
        let time = match c.step {
            Some(step) => {
                // The last turn may be short of blocks, unless other work of the kernel takes their places.
                let turns = (turns.ceil() + turns) / 2.0;
                // The largest tile has a multiprocessor for itself: nothing hides how it ends.
                let ending = size * if size < 16384.0 { 0.1 } else { 0.3 };
                turns * (piece as f64 * step + ending) + LARGE
            }
            None => {
                // Loads from the second-level cache, which all multiprocessors share, and products.
                let speed = if self.fast() { 0.0015 } else { 0.0035 };
                let step = 0.096 * turns.clamp(0.36, 1.0) * (t.m + t.n) as f64 + speed * size;
                let waits = if t.stages == 1 { 2 } else { piece.div_ceil(t.k) };
                turns.ceil() * piece as f64 * step + 300.0 * waits as f64
            }
        };
        let bytes = (8 * splits * self.batch * self.geometry.height() * self.geometry.width()) as f64;
        time + if splits > 1 { SUMMED + bytes / MOVED } else { 0.0 }
    }
}
