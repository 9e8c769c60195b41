//! Groups of near points from which mixtures start, and the best of several starts.
//!
//! **Statement.** One start is made of halves of halves along the principal axis, the largest group first; the others give each point to the nearest of centres
//! that are drawn one after another: of some points, each with a probability proportional to its squared distance from the centres before, the one that
//! leaves the least sum of squared distances. Each start is followed for a few rounds on some of the points, and the one under which these are likeliest goes on.
//! **Source.** boley1998principal (halves); arthur2007kmeans (drawn centres); biernacki2003em (short runs from several starts). **Conventions.** Distances are
//! chords and axes those of normal coordinates, so that a rotation of the data rotates the groups. Draws depend on the number of
//! groups and the start alone. **Checked by** tests/densities/components.rs.

use super::components::{Rows, Weighted, halves};
use super::kernels::LocalKernels;
use crate::Error;
use crate::density::draw;
use minvel_engine::random::{Key, Stream};

/// Starts at least and at most, components of all of them together in between, and rounds of each before the best is chosen. Few components
/// have few ways to be right and cost little: with three starts of three components on T⁷ one fit of six ended 0.4 nats behind the others.
const STARTS: [usize; 2] = [3, 8];
const IN_ALL: usize = 24;
const SHORT: usize = 8;
/// Points to choose a centre from, and as many more as the logarithm of the number of centres.
const TRIES: usize = 2;

/// Points cut into groups.
pub(super) struct Groups<'a> {
    pub of: &'a Weighted,
    pub each: Vec<Vec<usize>>,
}

/// The starts of `count` components.
pub(super) fn starts<'a>(space: &LocalKernels, rows: &'a Rows, count: usize) -> Vec<Groups<'a>> {
    let starts = if count == 1 { 1 } else { (IN_ALL / count).clamp(STARTS[0], STARTS[1]) };
    let of = |start: usize| match start {
        0 => Groups { of: &rows.some.in_order, each: halved(space, &rows.some.in_order, count) },
        _ => Groups { of: &rows.few.in_order, each: drawn(space, &rows.few.in_order, count, start) },
    };
    (0..starts).map(of).collect()
}

/// The start that is best after a few rounds, there.
pub(super) fn best<M>(
    starts: Vec<Groups>,
    first: impl Fn(&Groups) -> M,
    round: impl Fn(&M) -> Result<(M, f64), Error>,
) -> Result<M, Error> {
    if let [only] = starts.as_slice() {
        return Ok(first(only));
    }
    let mut best: Option<(f64, M)> = None;
    for groups in &starts {
        let (mut this, mut likelihood) = (first(groups), f64::NEG_INFINITY);
        for _ in 0..SHORT {
            (this, likelihood) = round(&this)?;
        }
        if best.as_ref().is_none_or(|(before, _)| likelihood > *before) {
            best = Some((likelihood, this));
        }
    }
    Ok(best.expect("there is a start").1)
}

/// Halves of halves, until there are so many groups.
fn halved(space: &LocalKernels, rows: &Weighted, count: usize) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = vec![(0..rows.points.len() / space.ambient()).collect()];
    while groups.len() < count {
        let largest = (0..groups.len()).rev().max_by_key(|k| groups[*k].len()).expect("a group");
        let [left, right] = halves(space, rows, std::mem::take(&mut groups[largest]));
        groups[largest] = left;
        groups.insert(largest + 1, right);
    }
    groups
}

/// Points by the nearest of drawn centres.
fn drawn(space: &LocalKernels, rows: &Weighted, count: usize, start: usize) -> Vec<Vec<usize>> {
    let (m, all) = (space.ambient(), rows.points.len() / space.ambient());
    let mut stream = Stream::new(Key::new(count as u64, start as u32), 0x5354_4152);
    let (mut nearest, mut owner) = (vec![f64::INFINITY; all], vec![0usize; all]);
    let [mut squares, mut fewest] = [vec![0.0; all], vec![0.0; all]];
    let mut shares: Vec<f64> = (0..all).map(|i| rows.weight(i)).collect();
    for k in 0..count {
        let total: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= total);
        let tries = if k == 0 { 1 } else { TRIES + (count as f64).ln() as usize };
        let mut least = f64::INFINITY;
        for _ in 0..tries {
            let centre = draw::weighted(&shares, &mut stream);
            space.chords_squared(&rows.points, &rows.points[centre * m..][..m], &mut squares);
            let left = |(i, square): (usize, &f64)| rows.weight(i) * square.min(nearest[i]);
            let sum: f64 = squares.iter().enumerate().map(left).sum();
            if sum < least {
                least = sum;
                std::mem::swap(&mut squares, &mut fewest);
            }
        }
        for (i, square) in fewest.iter().enumerate() {
            if *square < nearest[i] {
                (nearest[i], owner[i]) = (*square, k);
            }
            shares[i] = rows.weight(i) * nearest[i];
        }
        if least <= 0.0 {
            break;
        }
    }
    let mut groups = vec![vec![]; count];
    owner.into_iter().enumerate().for_each(|(i, k)| groups[k].push(i));
    groups.retain(|group| !group.is_empty());
    groups
}
