//! Points in blocks of near ones, and balls around them: what is far away is passed over unseen.
//!
//! **Statement.** A ball holds its points: d(x, p) ≥ d(x, c) − r for all p within r of c, by the triangle inequality of the
//! chord (on flat and hyperbolic space the distance itself). Two levels: blocks, and groups of blocks.
//! **Source.** omohundro1989balltree. **Conventions.** The order of the points is the caller's, near ones together
//! ([`together`](super::together)); a tile is some points that ask together.
//! **Error.** None: balls only say what is not looked at. **Checked by** tests/densities/kernel_sums.rs.

use super::kernels::LocalKernels;
use super::lanes::BLOCK;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Points that ask together.
pub(super) const TILE: usize = 64;
/// Blocks of a group.
pub(super) const GROUP: usize = 64;

/// Balls around lists of points: the centre of each, and its radius.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Balls {
    centres: Vec<f64>,
    radii: Vec<f64>,
}

impl Balls {
    /// Around each run of `each` points.
    fn around(space: &LocalKernels, points: &[f64], each: usize) -> Self {
        let m = space.ambient();
        let (mut balls, mut squares) = (Balls::default(), vec![]);
        for own in points.chunks(each * m) {
            let centre = middle(own, m);
            squares.resize(own.len() / m, 0.0);
            space.chords_squared(own, centre, &mut squares);
            balls.centres.extend_from_slice(centre);
            // Rounded up, so that rounding leaves no point outside.
            balls.radii.push(squares.iter().fold(0.0f64, |a, b| a.max(*b)).sqrt() * (1.0 + 1e-12));
        }
        balls
    }

    /// Centre and radius of ball k, of points with m coordinates.
    pub fn ball(&self, k: usize, m: usize) -> (&[f64], f64) {
        (&self.centres[k * m..][..m], self.radii[k])
    }

    pub fn len(&self) -> usize {
        self.radii.len()
    }

    /// The least distance of x from the points of ball k.
    pub fn distance(&self, space: &LocalKernels, k: usize, x: &[f64]) -> f64 {
        let m = space.ambient();
        let mut square = [0.0];
        space.chords_squared(&self.centres[k * m..][..m], x, &mut square);
        (square[0].sqrt() - self.radii[k]).max(0.0)
    }
}

/// The point nearest to the mean of the coordinates.
fn middle(points: &[f64], m: usize) -> &[f64] {
    let count = (points.len() / m) as f64;
    let mean: Vec<f64> = (0..m).map(|j| points.iter().skip(j).step_by(m).sum::<f64>() / count).collect();
    let square = |p: &&[f64]| p.iter().zip(&mean).map(|(p, mean)| (p - mean).powi(2)).sum::<f64>();
    points.chunks(m).min_by(|a, b| square(a).total_cmp(&square(b))).expect("a ball holds a point")
}

/// Balls around blocks, and around groups of blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Index {
    pub blocks: Balls,
    pub groups: Balls,
}

impl Index {
    pub fn of(space: &LocalKernels, points: &[f64]) -> Self {
        Index { blocks: Balls::around(space, points, BLOCK), groups: Balls::around(space, points, BLOCK * GROUP) }
    }

    /// The blocks of a group.
    pub fn members(&self, group: usize) -> std::ops::Range<usize> {
        group * GROUP..((group + 1) * GROUP).min(self.blocks.len())
    }
}

/// Points that ask together, within a ball of their own.
pub(super) struct Tile<'a> {
    pub points: &'a [f64],
    centre: &'a [f64],
    radius: f64,
}

impl<'a> Tile<'a> {
    pub fn new(space: &LocalKernels, points: &'a [f64]) -> Self {
        let balls = Balls::around(space, points, points.len());
        Tile { points, centre: middle(points, space.ambient()), radius: balls.radii[0] }
    }

    /// At most the distance of any of its points from the points of ball k.
    pub fn distance(&self, space: &LocalKernels, balls: &Balls, k: usize) -> f64 {
        (balls.distance(space, k, self.centre) - self.radius).max(0.0)
    }
}

/// A block or a group of blocks of one of several lists of centres, with what it promises at most.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Node {
    pub promise: f64,
    pub list: usize,
    pub which: Which,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Which {
    Group(usize),
    Block(usize),
}

impl Eq for Node {}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Node {
    fn cmp(&self, other: &Self) -> Ordering {
        let place = (other.list, other.which).cmp(&(self.list, self.which));
        self.promise.total_cmp(&other.promise).then(place)
    }
}

/// Blocks in the order of what they promise, groups opened as they come first.
pub(super) struct Descent<F> {
    heap: BinaryHeap<Node>,
    open: F,
}

impl<F: FnMut(usize, usize, &mut Vec<Node>)> Descent<F> {
    /// From all groups; `open` lists the blocks of a group of a list.
    pub fn new(groups: Vec<Node>, open: F) -> Self {
        Descent { heap: groups.into(), open }
    }

    /// What is left promises no more than this.
    pub fn next_promise(&self) -> f64 {
        self.heap.peek().map_or(f64::NEG_INFINITY, |node| node.promise)
    }

    /// The next block that promises more than `least`.
    pub fn next(&mut self, least: f64) -> Option<Node> {
        let mut blocks = vec![];
        while let Some(node) = self.heap.peek().copied() {
            if node.promise <= least {
                return None;
            }
            self.heap.pop();
            match node.which {
                Which::Block(_) => return Some(node),
                Which::Group(group) => {
                    blocks.clear();
                    (self.open)(node.list, group, &mut blocks);
                    self.heap.extend(blocks.drain(..));
                }
            }
        }
        None
    }
}
