//! How the rows of a value are cut into tiles and chunks.
//!
//! A tile is what one core works on at a time; a chunk is a run of tiles that adds into one partial sum. Both depend on
//! the program only, never on the number of threads or replicas: so sums are always formed in the same order.

use std::ops::Range;

/// Rows are handled in vectors of this many lanes, on every instruction set.
pub(crate) const LANES: usize = 16;
/// Partial sums per replica: enough for the threads of large machines, few enough to stay in cache.
const MAX_CHUNKS: usize = 32;
/// Small batches are still cut into this many tiles, so that several cores can share them.
const MIN_TILES: usize = 4;

/// Tiles of nearly equal length, each a whole number of vectors but for the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tiling {
    rows: usize,
    vectors: usize,
    tiles: usize,
}

impl Tiling {
    /// Tiles of at most `pitch` rows.
    pub fn new(rows: usize, pitch: usize) -> Self {
        let vectors = rows.div_ceil(LANES);
        let tiles = vectors.div_ceil(pitch / LANES).max(MIN_TILES.min(vectors));
        Tiling { rows, vectors, tiles }
    }

    pub fn tiles(&self) -> usize {
        self.tiles
    }

    /// Room for the rows of any tile: the distance between two features in memory.
    pub fn pitch(&self) -> usize {
        self.vectors.div_ceil(self.tiles) * LANES
    }

    /// The distance between two features of a value whose rows are all kept: an odd number of cache lines, so that the
    /// same rows of many features do not fall into the same cache sets.
    pub fn stored_pitch(&self) -> usize {
        (self.vectors | 1) * LANES
    }

    /// The rows of a tile.
    pub fn tile(&self, index: usize) -> Range<usize> {
        let start = |t: usize| (t * self.vectors / self.tiles * LANES).min(self.rows);
        start(index)..start(index + 1)
    }

    pub fn chunks(&self) -> usize {
        self.tiles.min(MAX_CHUNKS)
    }

    /// The tiles of a chunk.
    pub fn chunk(&self, index: usize) -> Range<usize> {
        let start = |c: usize| c * self.tiles / self.chunks();
        start(index)..start(index + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_and_chunks_cover_every_row_once() {
        for rows in (1..300).chain([1000, 4097, 50_000]) {
            for pitch in [16, 32, 64, 128] {
                let tiling = Tiling::new(rows, pitch);
                let mut next = 0;
                for chunk in 0..tiling.chunks() {
                    for tile in tiling.chunk(chunk) {
                        let range = tiling.tile(tile);
                        assert_eq!(range.start, next);
                        assert!(!range.is_empty() && range.len() <= tiling.pitch() && tiling.pitch() <= pitch);
                        next = range.end;
                    }
                }
                assert_eq!(next, rows);
            }
        }
    }
}
