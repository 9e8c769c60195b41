//! Points in blocks of near ones, and balls around them: what is far away is passed over unseen.
//!
//! **Statement.** A ball holds its points: d(x, p) ≥ d(x, c) − r for all p within r of c, by the triangle inequality of the
//! chord (on flat and hyperbolic space the distance itself). Two levels: blocks, and groups of blocks.
//! **Source.** omohundro1989balltree. **Conventions.** The order of the points is the caller's, near ones together
//! ([`together`](super::together)).
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
        let mut balls = Balls::default();
        for own in points.chunks(each * m) {
            let ball = Ball::around(space, own);
            balls.centres.extend_from_slice(ball.centre);
            balls.radii.push(ball.radius);
        }
        balls
    }

    /// Ball k, of points with m coordinates.
    pub fn ball(&self, k: usize, m: usize) -> Ball<'_> {
        Ball { centre: &self.centres[k * m..][..m], radius: self.radii[k] }
    }

    pub fn len(&self) -> usize {
        self.radii.len()
    }

    /// The least distance of a point of ball k from a point of another ball.
    pub fn least_distance(&self, space: &LocalKernels, k: usize, other: &Ball) -> f64 {
        self.gap(space, k, other).max(0.0)
    }

    /// The same, negative where balls overlap: the more, the deeper.
    fn gap(&self, space: &LocalKernels, k: usize, other: &Ball) -> f64 {
        let own = self.ball(k, space.ambient());
        own.distance(space, other.centre) - own.radius - other.radius
    }
}

/// A ball about a point.
#[derive(Clone, Copy)]
pub(super) struct Ball<'a> {
    pub centre: &'a [f64],
    pub radius: f64,
}

impl<'a> Ball<'a> {
    /// That holds some points.
    pub fn around(space: &LocalKernels, points: &'a [f64]) -> Self {
        let m = space.ambient();
        let centre = middle(points, m);
        let mut squares = vec![0.0; points.len() / m];
        space.chords_squared(points, centre, &mut squares);
        // Rounded up, so that rounding leaves no point outside.
        let radius = squares.iter().fold(0.0f64, |a, b| a.max(*b)).sqrt() * (1.0 + 1e-12);
        Ball { centre, radius }
    }

    /// The distance of x from the centre.
    pub fn distance(&self, space: &LocalKernels, x: &[f64]) -> f64 {
        let mut square = [0.0];
        space.chords_squared(self.centre, x, &mut square);
        square[0].sqrt()
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

    /// All blocks in the order of their distance from a ball, those first that overlap it most.
    pub fn descent<'a>(
        &'a self,
        space: &'a LocalKernels,
        ball: &'a Ball,
    ) -> Descent<impl FnMut(usize, &mut Vec<Node>)> {
        let group = |g: usize| Node { distance: self.groups.gap(space, g, ball), which: Which::Group(g) };
        Descent::new((0..self.groups.len()).map(group).collect(), move |group, out: &mut Vec<Node>| {
            let block = |b: usize| Node { distance: self.blocks.gap(space, b, ball), which: Which::Block(b) };
            out.extend(self.members(group).map(block));
        })
    }
}

/// A block or a group of blocks, and its distance.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Node {
    pub distance: f64,
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
        // The nearest is the greatest: heaps give that first.
        other.distance.total_cmp(&self.distance).then(other.which.cmp(&self.which))
    }
}

/// Blocks in the order of their distance, groups opened as they come first.
pub(super) struct Descent<F> {
    heap: BinaryHeap<Node>,
    open: F,
}

impl<F: FnMut(usize, &mut Vec<Node>)> Descent<F> {
    /// From all groups; `open` lists the blocks of a group.
    pub fn new(groups: Vec<Node>, open: F) -> Self {
        Descent { heap: groups.into(), open }
    }

    /// The next block that is no farther than this.
    pub fn next(&mut self, farthest: f64) -> Option<usize> {
        let mut blocks = vec![];
        while self.heap.peek().is_some_and(|node| node.distance <= farthest) {
            match self.heap.pop()?.which {
                Which::Block(block) => return Some(block),
                Which::Group(group) => {
                    blocks.clear();
                    (self.open)(group, &mut blocks);
                    self.heap.extend(blocks.drain(..));
                }
            }
        }
        None
    }
}
