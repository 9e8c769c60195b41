//! The nearest other points of each point.
//!
//! **Statement.** The k nearest by the chord, nearest first, found block by block in the order of their distance until the
//! next block is farther than the k-th. **Conventions.** Repeats of the point itself are no neighbours. Equal distances come
//! in the order of the rows. **Error.** None. **Checked by** tests/densities/kernel_sums.rs.

use super::geometry::Chords;
use super::index::{Ball, Descent, Index, Node, TILE, Which};
use super::kernels::{LocalKernels, padded};
use super::lanes::BLOCK;
use crate::Error;
use crate::density::by_pieces;
use crate::manifold::Space;
use crate::train::Context;
use minvel_engine::widest;

/// Lists of nearest points by the chord, nearest first; repeats of the point itself are no neighbours.
pub struct Neighbours {
    /// `[points, count]`, [`NONE`] where there are no more.
    lists: Vec<u32>,
    count: usize,
    /// The distance to the last of each list: how far a point's kernels reach, up to a factor.
    pub reach: Vec<f64>,
    /// A short distance between neighbours: that to the nearest, such that one in twenty is shorter.
    pub near: f64,
    /// The median distance to the nearest.
    pub median: f64,
    /// Root of the mean squared distance of two points.
    pub spread: f64,
}

const NONE: u32 = u32::MAX;
/// Words before a list: the distances to its first and its last.
const ENDS: usize = 4;
/// Points whose distances from each other tell the spread; more are taken at equal distances in their order.
const PAIRED: usize = 20_000;
const PAIRED_OF_MORE: usize = 4096;
/// Equal points differ by rounding only.
const SAME: f64 = 1e-24;

impl Neighbours {
    /// The `count` nearest of each point.
    pub fn of(space: &LocalKernels, points: &[f64], count: usize, context: &Context) -> Result<Self, Error> {
        let m = space.ambient();
        let total = points.len() / m;
        let order = super::together(points, m, BLOCK, (0..total).collect());
        let sorted: Vec<f64> = order.iter().flat_map(|&i| &points[i * m..][..m]).copied().collect();
        let search = Search { space, sorted: &sorted, order: &order, index: Index::of(space, &sorted), count };
        let search = Blocked { columns: padded(&sorted, m), search };
        let mut nearest = vec![];
        let (mut lists, mut reach) = (vec![NONE; total * count], vec![0.0; total]);
        let width = count + ENDS;
        let found = by_pieces(total, width, TILE, context, |first, rows: &mut [u32]| {
            for (k, rows) in rows.chunks_mut(TILE * width).enumerate() {
                search.tile(first + k * TILE, rows);
            }
        })?;
        for (&i, row) in order.iter().zip(found.chunks(width)) {
            lists[i * count..][..count].copy_from_slice(&row[ENDS..]);
            let number = |k: usize| f64::from_bits(u64::from(row[k]) << 32 | u64::from(row[k + 1]));
            let (first, last) = (number(0), number(2));
            reach[i] = last;
            nearest.extend(first.is_finite().then_some(first));
        }
        nearest.sort_by(f64::total_cmp);
        let near = nearest.get(nearest.len() / 20).copied().unwrap_or(1.0);
        let median = nearest.get(nearest.len() / 2).copied().unwrap_or(1.0);
        Ok(Neighbours { lists, count, reach, near, median, spread: spread(space, points, context)? })
    }

    /// Nearest points of point i, nearest first.
    pub fn list(&self, i: usize) -> &[u32] {
        let own = &self.lists[i * self.count..][..self.count];
        &own[..own.iter().position(|j| *j == NONE).unwrap_or(self.count)]
    }
}

/// Root of the mean squared chord of two points.
fn spread(space: &LocalKernels, points: &[f64], context: &Context) -> Result<f64, Error> {
    let m = space.ambient();
    let total = points.len() / m;
    let some = if total <= PAIRED { total } else { PAIRED_OF_MORE };
    let chosen: Vec<f64> = (0..some).flat_map(|k| &points[k * total / some * m..][..m]).copied().collect();
    let columns = padded(&chosen, m);
    let means = crate::density::by_rows(some, 1, &context.quiet(), |first, out| {
        let mut squares = vec![0.0; some.next_multiple_of(BLOCK)];
        for (i, out) in (first..).zip(out) {
            let x = &chosen[i * m..][..m];
            for (k, out) in squares.chunks_mut(BLOCK).enumerate() {
                chords(space, &columns, &chosen, k, x, out.first_chunk_mut().expect("whole blocks"));
            }
            *out = squares[..some].iter().sum::<f64>() / some as f64;
        }
    })?;
    Ok((means.iter().sum::<f64>() / some as f64).sqrt())
}

/// Squared chords of x from the points of block k, given by columns and by rows.
fn chords(space: &LocalKernels, columns: &[f64], rows: &[f64], k: usize, x: &[f64], out: &mut [f64; BLOCK]) {
    let m = space.ambient();
    if space.foreign.is_some() {
        let own = &rows[k * BLOCK * m..((k + 1) * BLOCK * m).min(rows.len())];
        out.fill(f64::INFINITY);
        space.chords_squared(own, x, &mut out[..own.len() / m]);
    } else {
        let spaces: &[Space] = &space.spaces;
        widest(Chords { spaces, x, centres: &columns[k * BLOCK * m..][..BLOCK * m], out });
    }
}

/// All points in an order in which near ones stand together.
struct Search<'a> {
    space: &'a LocalKernels,
    sorted: &'a [f64],
    order: &'a [usize],
    index: Index,
    count: usize,
}

struct Blocked<'a> {
    columns: Vec<f64>,
    search: Search<'a>,
}

impl Blocked<'_> {
    /// For each point of a tile: bits of the distance to the nearest, and its neighbours.
    fn tile(&self, first: usize, rows: &mut [u32]) {
        let Blocked { columns, search: Search { space, sorted, order, index, count } } = self;
        let (m, width) = (space.ambient(), count + ENDS);
        let points = rows.len() / width;
        let own = &sorted[first * m..][..points * m];
        let tile = Ball::around(space, own);
        let groups = (0..index.groups.len())
            .map(|g| Node { distance: index.groups.least_distance(space, g, &tile), which: Which::Group(g) });
        let mut descent = Descent::new(groups.collect(), |group, out: &mut Vec<Node>| {
            out.extend(
                index
                    .members(group)
                    .map(|b| Node { distance: index.blocks.least_distance(space, b, &tile), which: Which::Block(b) }),
            );
        });
        let mut lists: Vec<Nearest> = (0..points).map(|_| Nearest { most: *count, list: vec![] }).collect();
        let mut squares = [0.0; BLOCK];
        let mut farthest = f64::INFINITY;
        // Blocks at the same distance count too: equal distances come in the order of the rows.
        while let Some(b) = descent.next(farthest * (1.0 + 1e-9)) {
            let len = BLOCK.min(sorted.len() / m - b * BLOCK);
            for (x, list) in own.chunks(m).zip(&mut lists) {
                if index.blocks.least_distance(space, b, &Ball { centre: x, radius: 0.0 }) > list.reach() * (1.0 + 1e-9)
                {
                    continue;
                }
                chords(space, columns, sorted, b, x, &mut squares);
                for (&square, &j) in squares[..len].iter().zip(&order[b * BLOCK..]) {
                    if square > SAME {
                        list.offer(square, j as u32);
                    }
                }
            }
            farthest = lists.iter().map(Nearest::reach).fold(0.0, f64::max);
        }
        for (list, row) in lists.into_iter().zip(rows.chunks_mut(width)) {
            list.write(row);
        }
    }
}

/// The nearest so far.
struct Nearest {
    most: usize,
    /// (square, row), nearest first once it is full.
    list: Vec<(f64, u32)>,
}

impl Nearest {
    /// Points farther than this are of no use.
    fn reach(&self) -> f64 {
        if self.list.len() < self.most { f64::INFINITY } else { self.list.last().map_or(0.0, |l| l.0.sqrt()) }
    }

    fn offer(&mut self, square: f64, j: u32) {
        let before = |a: &(f64, u32)| a.0.total_cmp(&square).then(a.1.cmp(&j)).is_lt();
        if self.list.len() == self.most {
            if self.list.last().is_none_or(before) {
                return;
            }
            self.list.pop();
        }
        let at = self.list.partition_point(before);
        self.list.insert(at, (square, j));
    }

    fn write(self, row: &mut [u32]) {
        let distance = |l: Option<&(f64, u32)>| l.map_or(f64::INFINITY, |l| l.0.sqrt()).to_bits();
        let ends = [distance(self.list.first()), distance(self.list.last())];
        for (words, end) in row.chunks_mut(2).zip(ends) {
            (words[0], words[1]) = ((end >> 32) as u32, end as u32);
        }
        row[ENDS..].fill(NONE);
        row[ENDS..].iter_mut().zip(&self.list).for_each(|(row, l)| *row = l.1);
    }
}
