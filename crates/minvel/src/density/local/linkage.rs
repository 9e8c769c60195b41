//! Points that are linked: each to all within a distance, and to all that these are linked to.
//!
//! **Statement.** The components of the graph whose edges are the pairs with d(x, y) ≤ r, d the geodesic distance.
//! **Source.** gower1969single (single linkage). **Conventions.** Components are numbered in the order of their first points.
//! **Error.** None but rounding of distances: balls around blocks only say what is not looked at, since chords are no longer than geodesics,
//! and geodesics at most π/2 times as long as chords on spheres and rotations.
//! **Checked by** tests/densities/rows.rs, and below.

use super::index::{Ball, Index};
use super::kernels::{LocalKernels, padded};
use super::lanes::BLOCK;
use super::neighbours::chords;
use super::together;
use crate::density::by_rows;
use crate::train::Context;
use crate::{Error, Manifold};
use std::f64::consts::FRAC_PI_2;
use std::sync::Arc;

/// Sets that are united again and again.
pub(crate) struct Sets(Vec<u32>);

impl Sets {
    /// So many sets of one element.
    pub fn new(count: usize) -> Self {
        Sets((0..u32::try_from(count).expect("fewer than 2^32 points")).collect())
    }

    /// The first element of the set of i.
    fn first(&mut self, i: usize) -> usize {
        let mut at = i;
        while self.0[at] as usize != at {
            self.0[at] = self.0[self.0[at] as usize];
            at = self.0[at] as usize;
        }
        at
    }

    /// Makes one set of the sets of a and b.
    pub fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.first(a), self.first(b));
        self.0[a.max(b)] = a.min(b) as u32;
    }

    /// The set of each element, numbered in the order of their first elements.
    pub fn numbers(mut self) -> Vec<u32> {
        let (mut numbers, mut next) = (vec![0; self.0.len()], 0);
        for i in 0..self.0.len() {
            let first = self.first(i);
            numbers[i] = if first == i { next } else { numbers[first] };
            next += u32::from(first == i);
        }
        numbers
    }
}

/// Unites the sets of points that are within a distance of each other.
pub(crate) fn link(
    manifold: &Arc<dyn Manifold>,
    points: &[f64],
    distance: f64,
    sets: &mut Sets,
    context: &Context,
) -> Result<(), Error> {
    let space = LocalKernels::blank(manifold)?;
    let (m, n) = (space.ambient(), space.dim());
    let order = together(points, m, BLOCK, (0..points.len() / m).collect());
    let sorted: Vec<f64> = order.iter().flat_map(|&i| &points[i * m..][..m]).copied().collect();
    let index = Index::of(&space, &sorted);
    let own = |block: usize| block * BLOCK..((block + 1) * BLOCK).min(order.len());
    // Rounding of chords leaves no pair out.
    let reach = distance * (1.0 + 1e-9);
    let (mut squares, mut v) = (vec![0.0; BLOCK], vec![0.0; n]);
    for block in 0..index.blocks.len() {
        context.go_on()?;
        let ball = index.blocks.ball(block, m);
        let groups = (0..index.groups.len()).filter(|&g| index.groups.least_distance(&space, g, &ball) <= reach);
        let others = groups.flat_map(|g| index.members(g)).filter(|other| *other >= block);
        for other in others.filter(|&b| index.blocks.least_distance(&space, b, &ball) <= reach) {
            let Ball { centre, radius } = index.blocks.ball(other, m);
            if FRAC_PI_2 * (ball.distance(&space, centre) + ball.radius + radius) <= distance {
                own(block).chain(own(other)).for_each(|i| sets.unite(order[i], order[own(block).start]));
                continue;
            }
            for i in own(block) {
                let x = &sorted[i * m..][..m];
                let range = own(other);
                space.chords_squared(&sorted[range.start * m..range.end * m], x, &mut squares[..range.len()]);
                for (j, square) in range.zip(&squares) {
                    if *square > reach * reach {
                        continue;
                    }
                    space.to_normal(x, &sorted[j * m..][..m], &mut v);
                    if v.iter().map(|v| v * v).sum::<f64>().sqrt() <= distance {
                        sets.unite(order[i], order[j]);
                    }
                }
            }
        }
    }
    Ok(())
}

/// The geodesic distance from each query to the nearest of the points that `counts` for it.
pub(crate) fn nearest(
    manifold: &Arc<dyn Manifold>,
    points: &[f64],
    queries: &[f64],
    counts: impl Fn(usize, usize) -> bool + Sync,
    context: &Context,
) -> Result<Vec<f64>, Error> {
    let space = LocalKernels::blank(manifold)?;
    let (m, n) = (space.ambient(), space.dim());
    let order = together(points, m, BLOCK, (0..points.len() / m).collect());
    let sorted: Vec<f64> = order.iter().flat_map(|&i| &points[i * m..][..m]).copied().collect();
    let (index, columns) = (Index::of(&space, &sorted), padded(&sorted, m));
    by_rows(queries.len() / m, 1, context, |first, out| {
        let (mut squares, mut v) = ([0.0; BLOCK], vec![0.0; n]);
        for (query, out) in (first..).zip(out) {
            let x = &queries[query * m..][..m];
            let ball = Ball { centre: x, radius: 0.0 };
            let mut descent = index.descent(&space, &ball);
            let (mut least, mut nearest) = (f64::INFINITY, None);
            // Rounding of chords leaves no block out.
            while let Some(block) = descent.next(least.sqrt() * (1.0 + 1e-9)) {
                chords(&space, &columns, &sorted, block, x, &mut squares);
                for (&square, &row) in squares.iter().zip(&order[block * BLOCK..]) {
                    // Of equal ones the first row.
                    let is_nearer = square < least || square == least && nearest.is_none_or(|own| row < own);
                    if is_nearer && counts(query, row) {
                        (least, nearest) = (square, Some(row));
                    }
                }
            }
            *out = f64::INFINITY;
            if let Some(row) = nearest {
                space.to_normal(x, &points[row * m..][..m], &mut v);
                *out = v.iter().map(|v| v * v).sum::<f64>().sqrt();
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifold::parse;
    use minvel_engine::random::{Key, Stream};

    #[test]
    fn the_nearest_point_that_counts_is_found_on_every_space() {
        for name in ["sphere:2", "torus:7", "euclidean:3", "hyperbolic:2", "so3", "product(sphere:2,torus:1)"] {
            let manifold = parse(name).unwrap();
            let space = LocalKernels::blank(&manifold).unwrap();
            let (m, n) = (space.ambient(), space.dim());
            let mut stream = Stream::new(Key::new(3, 0), 2);
            let mut drawn = |count: usize| {
                let v: Vec<f64> = (0..count * n).map(|_| 0.4 * stream.normal()).collect();
                let mut points = vec![];
                space.points_about(&manifold.origin(), &v, &mut points);
                points
            };
            let (mut points, queries) = (drawn(3000), drawn(50));
            // A query that is a point, twice.
            points[..m].copy_from_slice(&queries[..m]);
            points[7 * m..][..m].copy_from_slice(&queries[..m]);
            for every in [1, 3] {
                let counts = |query: usize, row: usize| (query + row).is_multiple_of(every);
                let found = nearest(&manifold, &points, &queries, counts, &Context::bare()).unwrap();
                for (query, found) in found.into_iter().enumerate() {
                    let (x, mut v, mut squares) = (&queries[query * m..][..m], vec![0.0; n], vec![0.0; 3000]);
                    space.chords_squared(&points, x, &mut squares);
                    let rows = (0..squares.len()).filter(|&row| counts(query, row));
                    let row = rows.min_by(|a, b| squares[*a].total_cmp(&squares[*b])).unwrap();
                    space.to_normal(x, &points[row * m..][..m], &mut v);
                    assert_eq!(found, v.iter().map(|v| v * v).sum::<f64>().sqrt(), "{name}: query {query}");
                }
            }
            let none = nearest(&manifold, &points, &queries, |_, _| false, &Context::bare()).unwrap();
            assert!(none.iter().all(|d| *d == f64::INFINITY), "{name}");
        }
    }
}
