//! The nearest other points of each point.
//!
//! **Statement.** The k nearest by the chord, nearest first, found block by block in the order of their distance until the
//! next block is farther than the k-th. **Conventions.** Repeats of the point itself are no neighbours. Equal distances come
//! in the order of the rows. **Error.** None in up to three dimensions, and of up to 20 480 points. In more dimensions balls about blocks
//! overlap, and of more points nearly all would be looked at: there a tile looks at the [`VISITED`] blocks that overlap it most, and neighbours in
//! others are missed. **Checked by** tests/densities/kernel_sums.rs, and below.

use super::FEW_DIMENSIONS;
use super::geometry::Chords;
use super::index::{Ball, Index, TILE};
use super::kernels::{LocalKernels, padded};
use super::lanes::BLOCK;
use crate::Error;
use crate::density::by_pieces;
use crate::density::sample::{mean, quantile, weight};
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
/// Blocks that a tile looks at, at most, in many dimensions.
const VISITED: usize = 640;
/// Equal points differ by rounding only.
const SAME: f64 = 1e-24;

impl Neighbours {
    /// The `count` nearest of each point; distances count by the weights of the points (none: all equal).
    pub fn of(
        space: &LocalKernels,
        (points, weights): (&[f64], &[f64]),
        count: usize,
        context: &Context,
    ) -> Result<Self, Error> {
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
            nearest.extend(first.is_finite().then_some((first, weight(weights, i))));
        }
        nearest.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mass: f64 = nearest.iter().map(|(_, weight)| weight).sum();
        let below = |share: f64| quantile(nearest.iter().copied(), share * mass).unwrap_or(1.0);
        let (near, median) = (below(0.05), below(0.5));
        Ok(Neighbours { lists, count, reach, near, median, spread: spread(space, (points, weights), context)? })
    }

    /// Nearest points of point i, nearest first.
    pub fn list(&self, i: usize) -> &[u32] {
        let own = &self.lists[i * self.count..][..self.count];
        &own[..own.iter().position(|j| *j == NONE).unwrap_or(self.count)]
    }
}

/// Root of the mean squared chord of two points.
fn spread(space: &LocalKernels, (points, weights): (&[f64], &[f64]), context: &Context) -> Result<f64, Error> {
    let m = space.ambient();
    let total = points.len() / m;
    let some = if total <= PAIRED { total } else { PAIRED_OF_MORE };
    let chosen: Vec<f64> = (0..some).flat_map(|k| &points[k * total / some * m..][..m]).copied().collect();
    let weights: Vec<f64> = match weights {
        [] => vec![],
        weights => (0..some).map(|k| weights[k * total / some]).collect(),
    };
    let columns = padded(&chosen, m);
    let means = crate::density::by_rows(some, 1, &context.quiet(), |first, out| {
        let mut squares = vec![0.0; some.next_multiple_of(BLOCK)];
        for (i, out) in (first..).zip(out) {
            let x = &chosen[i * m..][..m];
            for (k, out) in squares.chunks_mut(BLOCK).enumerate() {
                chords(space, &columns, &chosen, k, x, out.first_chunk_mut().expect("whole blocks"));
            }
            *out = mean(&squares[..some], &weights);
        }
    })?;
    Ok(mean(&means, &weights).sqrt())
}

/// Squared chords of x from the points of block k, given by columns and by rows.
pub(super) fn chords(space: &LocalKernels, columns: &[f64], rows: &[f64], k: usize, x: &[f64], out: &mut [f64; BLOCK]) {
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
        let mut descent = index.descent(space, &tile);
        let mut lists: Vec<Nearest> = (0..points).map(|_| Nearest::of(*count)).collect();
        let mut squares = [0.0; BLOCK];
        let (mut farthest, mut visited) = (f64::INFINITY, 0);
        let most = if space.dim() > FEW_DIMENSIONS { VISITED } else { usize::MAX };
        // Blocks at the same distance count too: equal distances come in the order of the rows.
        while visited < most || farthest == f64::INFINITY {
            let Some(b) = descent.next(farthest * (1.0 + 1e-9)) else { break };
            visited += 1;
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

/// The nearest so far: the `most` nearest of those offered, and perhaps some farther ones.
struct Nearest {
    most: usize,
    /// (square, row), in any order.
    list: Vec<(f64, u32)>,
    /// Squares above this are of no use.
    bound: f64,
}

impl Nearest {
    fn of(most: usize) -> Self {
        Nearest { most, list: vec![], bound: f64::INFINITY }
    }

    /// Points farther than this are of no use.
    fn reach(&self) -> f64 {
        self.bound.sqrt()
    }

    fn offer(&mut self, square: f64, j: u32) {
        if square > self.bound {
            return;
        }
        self.list.push((square, j));
        // The bound is known as soon as there are enough, and bettered when there are half as many again.
        let full = if self.bound == f64::INFINITY { self.most } else { self.most + self.most.div_ceil(2) };
        if self.list.len() >= full.max(1) {
            self.cut();
        }
    }

    /// Leaves the nearest, nearer rows before later ones at equal distances.
    fn cut(&mut self) {
        let before = |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        if let Some(last) = self.most.checked_sub(1).filter(|last| *last < self.list.len()) {
            let (_, last, _) = self.list.select_nth_unstable_by(last, before);
            self.bound = last.0;
        }
        self.list.truncate(self.most);
    }

    fn write(mut self, row: &mut [u32]) {
        self.cut();
        self.list.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let distance = |l: Option<&(f64, u32)>| l.map_or(f64::INFINITY, |l| l.0.sqrt()).to_bits();
        let ends = [distance(self.list.first()), distance(self.list.last())];
        for (words, end) in row.chunks_mut(2).zip(ends) {
            (words[0], words[1]) = ((end >> 32) as u32, end as u32);
        }
        row[ENDS..].fill(NONE);
        row[ENDS..].iter_mut().zip(&self.list).for_each(|(row, l)| *row = l.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifold::{parse, wrap};
    use minvel_engine::random::{Key, Stream};

    /// A point, and its true neighbours.
    type Truth = (usize, Vec<(f64, u32)>);

    /// Neighbours of so many points about some places of a torus, and for every 97th point the true ones.
    fn found(name: &str, rows: usize, count: usize) -> (Neighbours, Vec<Truth>) {
        let space = LocalKernels::blank(&parse(name).unwrap()).unwrap();
        let (m, mut stream) = (space.ambient(), Stream::new(Key::new(7, 0), 1));
        let mut points = vec![];
        for i in 0..rows {
            points.extend((0..m).map(|j| wrap((i % 5 * (j + 1)) as f64 + 0.5 * stream.normal())));
        }
        let found = Neighbours::of(&space, (&points, &[]), count, &Context::of_threads(2)).unwrap();
        let truth = |i: usize| {
            let mut squares = vec![0.0; rows];
            space.chords_squared(&points, &points[i * m..][..m], &mut squares);
            let mut all: Vec<(f64, u32)> = squares.into_iter().zip(0..).filter(|pair| pair.0 > SAME).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            all.truncate(count);
            (i, all)
        };
        (found, (0..rows).step_by(97).map(truth).collect())
    }

    #[test]
    fn neighbours_are_the_nearest_in_few_dimensions_and_wherever_all_blocks_are_looked_at() {
        for (name, rows, count) in [("torus:2", 25_000, 56), ("torus:7", 5000, 60), ("torus:2", 40, 56)] {
            let (found, truth) = found(name, rows, count);
            for (i, truth) in truth {
                let nearest: Vec<u32> = truth.iter().map(|pair| pair.1).collect();
                assert_eq!(found.list(i), nearest, "{name}: point {i}");
                assert_eq!(found.reach[i], truth.last().unwrap().0.sqrt(), "{name}: point {i}");
            }
        }
    }

    #[test]
    fn in_many_dimensions_most_neighbours_are_found_and_the_others_are_hardly_farther() {
        let (found, truth) = found("torus:7", 40_000, 60);
        let (mut hits, mut all, mut farther) = (0, 0, 0.0);
        for (i, truth) in &truth {
            hits += truth.iter().filter(|pair| found.list(*i).contains(&pair.1)).count();
            all += truth.len();
            farther += found.reach[*i] / truth.last().unwrap().0.sqrt();
        }
        let (share, farther) = (hits as f64 / all as f64, farther / truth.len() as f64);
        println!("{share:.3} of the neighbours; reach {farther:.4} times the true one");
        assert!(hits < all, "nothing was missed: this tests nothing");
        assert!(share > 0.8 && (1.0..1.05).contains(&farther), "{share} of the neighbours, reach {farther}");
    }
}
