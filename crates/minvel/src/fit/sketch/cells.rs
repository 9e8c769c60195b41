//! Rows counted and summed up in nested cells, exactly: the same cells for any parts of the rows, merged in any order.
//!
//! **Statement.** Places u ∈ [0, 2⁶³)^d are cut in halves, coordinate after coordinate, bit after bit: level l has made the first l cuts, so
//! that cells of level l + 1 lie in those of level l. A cell has N, Σr and Σrrᵀ, r = u − o, as whole numbers, o the place of the cell nearest to the middle 2⁶². For rows S let
//! c_l(S) be the number of occupied cells, and ℓ(S) the finest level with c_l(S) ≤ limit. The summary of S is the cells of level ℓ(S).
//! **Proof that parts do not matter.** c_l grows with l, since cells are nested, and c_l(P) ≤ c_l(S) for P ⊂ S. So ℓ(P) ≥ ℓ(S): no part is
//! coarser than the whole. Sums about the o of a coarser cell follow from those about that of a finer one in whole numbers (r' = r + δ: Σr' = Σr + Nδ,
//! Σr'r'ᵀ = Σrrᵀ + δΣrᵀ + Σrδᵀ + Nδδᵀ), which adds up the same in any order. Hence of the summaries of A and B one knows the cells of A ∪ B at level
//! min(ℓ(A), ℓ(B)) ≥ ℓ(A ∪ B), and c_l for all levels up to it; so ℓ(A ∪ B), and the summary. By induction over any tree of merges, that of all rows.
//! **Source.** zhang1996birch (sums that describe a cluster). **Conventions.** Cells stand in the order of their bits, interleaved (Morton's order):
//! cells that become one are neighbours. **Error.** None; where sums would exceed 127 bits that is an error.
//! **Checked by** its own tests, and tests/densities/sketches.rs.

use super::bytes::{Reader, Writer};
use std::cmp::Ordering;

/// Bits of a place, and how many of them may be cut.
const BITS: u32 = 63;
/// Where rows lie about.
const MIDDLE: u64 = 1 << 62;
const CUT: u32 = 51;

/// What is said where whole numbers do not suffice.
pub(super) const TOO_FAR: &str =
    "the rows lie too far apart to be summed up exactly: remove rows that are far from all others";

/// Occupied cells with their sums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cells {
    d: usize,
    limit: usize,
    level: u32,
    /// Corners, d numbers each.
    corners: Vec<u64>,
    counts: Vec<u64>,
    /// Σr, d each.
    sums: Vec<i128>,
    /// Σrrᵀ, the lower triangle row by row.
    products: Vec<i128>,
}

/// Mean and covariance of the rows of a cell, in steps of the lattice from its [`Cells::origin`].
pub(super) struct Spread {
    pub mean: Vec<f64>,
    /// The lower triangle row by row; none where all rows are at one place.
    pub covariance: Option<Vec<f64>>,
}

impl Cells {
    pub fn new(d: usize, limit: usize) -> Self {
        let level = CUT * d as u32;
        Cells { d, limit, level, corners: vec![], counts: vec![], sums: vec![], products: vec![] }
    }

    pub fn len(&self) -> usize {
        self.counts.len()
    }

    pub fn count(&self, k: usize) -> u64 {
        self.counts[k]
    }

    fn corner(&self, k: usize) -> &[u64] {
        &self.corners[k * self.d..][..self.d]
    }

    /// o of a cell in one coordinate.
    pub fn origin(&self, k: usize, a: usize) -> u64 {
        origin(self.corner(k)[a], self.level, a, self.d)
    }

    fn triangle(&self) -> usize {
        self.d * (self.d + 1) / 2
    }

    /// Adds rows at some places.
    pub fn add(&mut self, places: &[u64]) -> Result<(), &'static str> {
        let d = self.d;
        let mut order: Vec<u32> = (0..(places.len() / d) as u32).collect();
        let place = |k: u32| &places[k as usize * d..][..d];
        order.sort_unstable_by(|a, b| compare(place(*a), place(*b)));
        let mut own = Cells { level: self.level, ..Cells::new(d, self.limit) };
        let none = (vec![0; d], vec![0; self.triangle()]);
        for k in order {
            own.push(place(k), |a| place(k)[a], 1, (&none.0, &none.1))?;
        }
        self.join(own)
    }

    /// Adds the rows of another summary with the same limit.
    pub fn merge(&mut self, other: &Cells) -> Result<(), &'static str> {
        assert!((self.d, self.limit) == (other.d, other.limit), "summaries of one plan are merged");
        let level = self.level.min(other.level);
        self.coarsen(level)?;
        let mut other = other.clone();
        other.coarsen(level)?;
        self.join(other)
    }

    /// Adds the cells of another of the same level, and makes them as coarse as the limit asks for.
    fn join(&mut self, other: Cells) -> Result<(), &'static str> {
        let own = std::mem::replace(self, Cells { level: self.level, ..Cells::new(self.d, self.limit) });
        let (mut a, mut b) = (0, 0);
        while a < own.len() || b < other.len() {
            let first =
                a < own.len() && (b == other.len() || compare(own.corner(a), other.corner(b)) != Ordering::Greater);
            let (from, k) = if first { (&own, &mut a) } else { (&other, &mut b) };
            self.push_cell(from, *k)?;
            *k += 1;
        }
        self.settle()
    }

    fn push_cell(&mut self, from: &Cells, k: usize) -> Result<(), &'static str> {
        let (d, t) = (self.d, self.triangle());
        let sums = (&from.sums[k * d..][..d], &from.products[k * t..][..t]);
        self.push(from.corner(k), |a| from.origin(k, a), from.counts[k], sums)
    }

    /// Adds rows of the cell of a place, which is not before the last cell in their order, with sums about a place of that cell.
    fn push(
        &mut self,
        place: &[u64],
        about: impl Fn(usize) -> u64,
        count: u64,
        (sums, products): (&[i128], &[i128]),
    ) -> Result<(), &'static str> {
        let (d, t, level) = (self.d, self.triangle(), self.level);
        let corner = |a: usize| place[a] & mask(level, a, d);
        let last = self.len().wrapping_sub(1);
        if self.counts.is_empty() || (0..d).any(|a| self.corner(last)[a] != corner(a)) {
            self.corners.extend((0..d).map(corner));
            self.counts.push(0);
            self.sums.resize(self.sums.len() + d, 0);
            self.products.resize(self.products.len() + t, 0);
        }
        let k = self.len() - 1;
        let delta = |a: usize| i128::from(about(a)) - i128::from(origin(corner(a), level, a, d));
        let n = i128::from(count);
        let add = |to: &mut i128, more: Option<i128>| {
            *to = more.and_then(|more| to.checked_add(more)).ok_or(TOO_FAR)?;
            Ok(())
        };
        for a in 0..d {
            for b in 0..=a {
                let both = n.checked_mul(delta(a)).and_then(|x| x.checked_mul(delta(b)));
                let one = delta(a).checked_mul(sums[b]).zip(delta(b).checked_mul(sums[a]));
                let crossed = one.and_then(|(x, y)| x.checked_add(y));
                let entry = a * (a + 1) / 2 + b;
                let all = both.zip(crossed).and_then(|(x, y)| x.checked_add(y)?.checked_add(products[entry]));
                add(&mut self.products[k * t + entry], all)?;
            }
            add(&mut self.sums[k * d + a], n.checked_mul(delta(a)).and_then(|x| x.checked_add(sums[a])))?;
        }
        self.counts[k] = self.counts[k].checked_add(count).ok_or(TOO_FAR)?;
        Ok(())
    }

    /// The same rows in cells of a coarser level.
    fn coarsen(&mut self, level: u32) -> Result<(), &'static str> {
        if level >= self.level {
            return Ok(());
        }
        let own = std::mem::replace(self, Cells { level, ..Cells::new(self.d, self.limit) });
        (0..own.len()).try_for_each(|k| self.push_cell(&own, k))
    }

    /// As coarse as the limit asks for, and no coarser.
    fn settle(&mut self) -> Result<(), &'static str> {
        if self.len() <= self.limit {
            return Ok(());
        }
        // The cut that parts each cell from the next: as many cells as cuts before a level, and one, are left there.
        let mut parted = vec![0usize; self.level as usize];
        for k in 1..self.len() {
            parted[first_cut(self.corner(k - 1), self.corner(k)).expect("cells differ").0 as usize] += 1;
        }
        let (mut cells, mut level) = (1, 0);
        while cells + parted[level as usize] <= self.limit {
            cells += parted[level as usize];
            level += 1;
        }
        self.coarsen(level)
    }

    /// Where the rows of a cell lie.
    pub fn spread(&self, k: usize) -> Spread {
        let (d, t, n) = (self.d, self.triangle(), self.counts[k]);
        let (sums, products) = (&self.sums[k * d..][..d], &self.products[k * t..][..t]);
        let mean: Vec<f64> = sums.iter().map(|sum| *sum as f64 / n as f64).collect();
        let entry = |(a, b): (usize, usize)| {
            let product = products[a * (a + 1) / 2 + b];
            // In whole numbers nothing cancels; they suffice but for cells of very many rows.
            let exact = || i128::from(n).checked_mul(product)?.checked_sub(sums[a].checked_mul(sums[b])?);
            match exact() {
                Some(whole) => whole as f64 / (n as f64 * n as f64),
                None => product as f64 / n as f64 - mean[a] * mean[b],
            }
        };
        let covariance: Vec<f64> = (0..d).flat_map(|a| (0..=a).map(move |b| (a, b))).map(entry).collect();
        Spread { covariance: covariance.iter().any(|c| *c != 0.0).then_some(covariance), mean }
    }

    pub fn write(&self, out: &mut Writer) {
        out.number(self.level.into());
        out.number(self.len() as u64);
        self.corners.iter().chain(&self.counts).for_each(|x| out.number(*x));
        self.sums.iter().chain(&self.products).for_each(|x| out.long(*x));
    }

    /// What was written, of cells in so many dimensions with this limit; none where it cannot be.
    pub fn read(from: &mut Reader, d: usize, limit: usize) -> Option<Self> {
        let (level, len) = (u32::try_from(from.number()?).ok()?, usize::try_from(from.number()?).ok()?);
        let each = d * (d + 1) / 2;
        if len > limit || level > CUT * d as u32 || !from.has(len.checked_mul(8 * (d + 1) + 16 * (d + each))?) {
            return None;
        }
        let mut numbers = |count: usize| (0..count).map(|_| from.number()).collect::<Option<Vec<u64>>>();
        let (corners, counts) = (numbers(len * d)?, numbers(len)?);
        let mut longs = |count: usize| (0..count).map(|_| from.long()).collect::<Option<Vec<i128>>>();
        let (sums, products) = (longs(len * d)?, longs(len * each)?);
        let cells = Cells { d, limit, level, corners, counts, sums, products };
        let on_level = (0..len * d).all(|i| cells.corners[i] & !mask(level, i % d, d) == 0);
        let in_order = (1..len).all(|k| compare(cells.corner(k - 1), cells.corner(k)) == Ordering::Less);
        let whole = cells.counts.iter().all(|count| *count > 0);
        (on_level && in_order && whole).then_some(cells)
    }
}

/// log₂ of the side of a cell in coordinate a.
fn side(level: u32, a: usize, d: usize) -> u32 {
    BITS - ((level as usize + d - 1 - a) / d) as u32
}

/// The bits of coordinate a that the first cuts have made.
fn mask(level: u32, a: usize, d: usize) -> u64 {
    (u64::MAX >> 1) & !((1u64 << side(level, a, d)) - 1)
}

/// The place of a cell nearest to the middle: sums about it are as small as the rows' distances from there, however wide the cell.
fn origin(corner: u64, level: u32, a: usize, d: usize) -> u64 {
    MIDDLE.clamp(corner, corner + (1u64 << side(level, a, d)))
}

/// The first cut that parts two places, and its coordinate.
fn first_cut(x: &[u64], y: &[u64]) -> Option<(u32, usize)> {
    let d = x.len() as u32;
    let cut = |a: usize| {
        let differ = x[a] ^ y[a];
        (differ != 0).then(|| ((differ.leading_zeros() - 1) * d + a as u32, a))
    };
    (0..x.len()).filter_map(cut).min()
}

fn compare(x: &[u64], y: &[u64]) -> Ordering {
    first_cut(x, y).map_or(Ordering::Equal, |(_, a)| x[a].cmp(&y[a]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use minvel_engine::random::{Draw, Key, Stream};

    /// Places of rows in clumps of several widths, some repeated.
    fn places(rows: usize, d: usize, seed: u64) -> Vec<u64> {
        let mut stream = Stream::new(Key::new(seed, 0), 4);
        let mut row = |k: usize| -> Vec<u64> {
            let width = [1e-6, 1e-2, 1.0][k % 3] * f64::from(1u32 << 31) * 2.0;
            (0..d)
                .map(|a| (1u64 << 62).wrapping_add_signed(((k % 3 + a) as f64 * 3e8 + width * stream.normal()) as i64))
                .collect()
        };
        let mut all: Vec<Vec<u64>> = (0..rows).map(&mut row).collect();
        (0..rows / 10).for_each(|k| all[k] = all[rows - 1 - k].clone());
        all.concat()
    }

    fn summary(places: &[u64], d: usize, limit: usize) -> Cells {
        let mut cells = Cells::new(d, limit);
        cells.add(places).unwrap();
        cells
    }

    fn bytes(cells: &Cells) -> Vec<u8> {
        let mut out = Writer::default();
        cells.write(&mut out);
        out.0
    }

    #[test]
    fn any_parts_merged_in_any_order_are_the_same_bytes() {
        for (d, limit) in [(1, 7), (2, 50), (3, 200), (5, 1000)] {
            let rows = 3000;
            let places = places(rows, d, 1);
            let whole = bytes(&summary(&places, d, limit));
            for trial in 0..12 {
                let mut stream = Stream::new(Key::new(trial, 0), 5);
                let parts = 1 + stream.draw(Draw::Integer(40)) as usize;
                let mut heaps = vec![vec![]; parts];
                (0..rows).for_each(|k| {
                    heaps[stream.draw(Draw::Integer(parts as u32)) as usize].extend(&places[k * d..][..d])
                });
                let mut summaries: Vec<Cells> = heaps.iter().map(|heap| summary(heap, d, limit)).collect();
                while summaries.len() > 1 {
                    let other = summaries.swap_remove(stream.draw(Draw::Integer(summaries.len() as u32)) as usize);
                    let into = stream.draw(Draw::Integer(summaries.len() as u32)) as usize;
                    summaries[into].merge(&other).unwrap();
                }
                assert_eq!(bytes(&summaries[0]), whole, "{d} dimensions, {parts} parts");
            }
            // One row less is another summary.
            assert_ne!(bytes(&summary(&places[d..], d, limit)), whole);
        }
    }

    #[test]
    fn the_level_is_the_finest_that_the_limit_allows() {
        let (d, limit) = (2, 100);
        let places = places(2000, d, 2);
        let cells = summary(&places, d, limit);
        let occupied = |level: u32| {
            let corner = |row: &[u64]| (0..d).map(|a| row[a] & mask(level, a, d)).collect::<Vec<u64>>();
            places.chunks(d).map(corner).collect::<std::collections::HashSet<_>>().len()
        };
        assert_eq!(cells.len(), occupied(cells.level));
        assert!(cells.len() <= limit && occupied(cells.level + 1) > limit);
    }

    #[test]
    fn sums_are_those_of_the_rows() {
        let (d, limit) = (2, 20);
        let places = places(500, d, 3);
        let cells = summary(&places, d, limit);
        let mut left = 500;
        for k in 0..cells.len() {
            let own: Vec<&[u64]> = places
                .chunks(d)
                .filter(|row| (0..d).all(|a| row[a] & mask(cells.level, a, d) == cells.corner(k)[a]))
                .collect();
            assert_eq!(own.len() as u64, cells.count(k));
            left -= own.len();
            let r = |row: &[u64], a: usize| i128::from(row[a]) - i128::from(cells.origin(k, a));
            for a in 0..d {
                assert_eq!(own.iter().map(|row| r(row, a)).sum::<i128>(), cells.sums[k * d + a]);
                for b in 0..=a {
                    let product: i128 = own.iter().map(|row| r(row, a) * r(row, b)).sum();
                    assert_eq!(product, cells.products[k * 3 + a * (a + 1) / 2 + b]);
                }
            }
            assert_eq!(cells.spread(k).covariance.is_none(), own.iter().all(|row| *row == own[0]));
        }
        assert_eq!(left, 0);
    }

    /// With more dimensions than the limit has bits, cells were so wide that sums about their corners did not fit.
    #[test]
    fn cells_that_are_halves_of_everything_have_sums_that_fit() {
        let d = 9;
        let places = places(5000, d, 4);
        let cells = summary(&places, d, 100);
        assert!(cells.level < d as u32, "level {}", cells.level);
        assert_eq!((0..cells.len()).map(|k| cells.count(k)).sum::<u64>(), 5000);
    }

    #[test]
    fn sums_that_would_not_fit_are_an_error() {
        let far = [0u64, (1 << 63) - 1];
        let mut cells = Cells::new(1, 1);
        assert_eq!((0..8).try_for_each(|_| cells.add(&far)), Err(TOO_FAR));
    }
}
