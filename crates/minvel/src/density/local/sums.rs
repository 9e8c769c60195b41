//! Sums over kernels, to a relative error that is set: what a block can add at most decides whether it is looked at.
//!
//! **Statement.** log Σ_i w_i K(x; c_i) for each family. Blocks are looked at in the order of what they promise at x. A family's
//! kernels in a block are left out where they promise at most ε·q/F for F families and the sum q so far: as weights add up
//! to one, what is left out is at most ε·q ≤ ε·p. **Conventions.** What is looked at, and in which order it is added, depends
//! on x alone, not on the points that are asked for with it: the same row has the same bits in any table and on any number
//! of threads.
//! **Error.** ε of the density (all families together, by their shares), and rounding; ε = 0 looks at everything.
//! **Checked by** tests/densities/kernel_sums.rs.

use super::geometry::{Chords, Coordinates, Statistics};
use super::index::{Descent, Node, TILE, Tile, Which};
use super::kernels::{Kind, LocalKernels, padded};
use super::lanes::{AddUp, BLOCK, Lanes, Whiten, Work};
use super::layer::highest;
use crate::Error;
use crate::density::by_pieces;
use crate::manifold::Pairs;
use crate::train::Context;
use minvel_engine::{Loop, widest};
use std::collections::BinaryHeap;

/// Blocks that are looked for before the points of a tile go on.
const BATCH: usize = BLOCK;

/// What is known at a point.
struct Here {
    /// The largest exponent so far.
    top: f64,
    /// What promises no more than this is left out.
    least: f64,
    /// Blocks that were found and not yet looked at, those that promise most first.
    waiting: BinaryHeap<Node>,
    /// For natural kernels: the point in coordinates in which t is a sum of squares.
    embedded: Vec<f64>,
    /// Blocks that added something.
    added: usize,
    done: bool,
}

/// Blocks that were just found, and their balls.
struct Found<'a> {
    nodes: &'a [Node],
    /// Centres, row by row and in lanes.
    rows: Vec<f64>,
    lanes: Vec<f64>,
    radii: Lanes,
    /// One bound a + b d² each.
    logs: Lanes,
    rates: Lanes,
}

impl<'a> Found<'a> {
    fn new(kernels: &LocalKernels, nodes: &'a [Node]) -> Self {
        let (mut rows, mut radii) = (vec![], [0.0; BLOCK]);
        let (mut logs, mut rates) = ([f64::NEG_INFINITY; BLOCK], [0.0; BLOCK]);
        for (k, node) in nodes.iter().enumerate() {
            let Which::Block(block) = node.which else { continue };
            let layer = &kernels.layers[node.list];
            let (centre, radius) = layer.index.blocks.ball(block, kernels.ambient());
            rows.extend_from_slice(centre);
            radii[k] = radius;
            (logs[k], rates[k]) = layer.roughly(block);
        }
        let lanes = if nodes.is_empty() { vec![] } else { padded(&rows, kernels.ambient()) };
        Found { nodes, rows, lanes, radii, logs, rates }
    }

    /// The squares of the least distances of x from the points of each block, and a bound of what they promise.
    #[inline(always)]
    fn at(&self, kernels: &LocalKernels, x: &[f64]) -> (Lanes, Lanes) {
        let (mut out, mut bounds) = ([0.0; BLOCK], [f64::NEG_INFINITY; BLOCK]);
        if self.nodes.is_empty() {
            return (out, bounds);
        }
        if kernels.foreign.is_some() {
            kernels.chords_squared(&self.rows, x, &mut out[..self.nodes.len()]);
        } else {
            Chords { spaces: &kernels.spaces, x, centres: &self.lanes, out: &mut out }.run();
        }
        for k in 0..BLOCK {
            let d = out[k].sqrt() - self.radii[k];
            out[k] = if d > 0.0 { d * d } else { 0.0 };
            bounds[k] = self.logs[k] + self.rates[k] * out[k];
        }
        (out, bounds)
    }
}

/// log of each family's own density at the points of a tile.
struct SumUp<'a> {
    kernels: &'a LocalKernels,
    tile: Tile<'a>,
    work: &'a mut Work,
    out: &'a mut [f64],
}

impl Loop for SumUp<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.kernels.sum_up(&self.tile, self.work, self.out);
    }
}

impl LocalKernels {
    /// log of each family's own density at each point, `[points, families]`.
    pub fn log_families(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let (m, count) = (self.ambient(), self.families.len());
        let rows = points.len() / m;
        let order = super::together(points, m, (0..rows).collect());
        let sorted: Vec<f64> = order.iter().flat_map(|&i| &points[i * m..][..m]).copied().collect();
        let found = by_pieces(rows, count, TILE, context, |first, out| {
            let mut work = Work::new(self.dim());
            for (k, out) in out.chunks_mut(TILE * count).enumerate() {
                let own = &sorted[(first + k * TILE) * m..][..out.len() / count * m];
                widest(SumUp { kernels: self, tile: Tile::new(self, own), work: &mut work, out });
            }
        })?;
        let mut logs = vec![0.0; rows * count];
        for (&i, row) in order.iter().zip(found.chunks(count)) {
            logs[i * count..][..count].copy_from_slice(row);
        }
        Ok(logs)
    }

    #[inline(always)]
    fn sum_up(&self, tile: &Tile, work: &mut Work, out: &mut [f64]) {
        let (m, count) = (self.ambient(), self.families.len());
        let groups = self.layers.iter().enumerate().flat_map(|(list, layer)| {
            (0..layer.index.groups.len()).map(move |g| {
                let d = tile.distance(self, &layer.index.groups, g);
                Node { promise: highest(layer.of_group(g), d * d), list, which: Which::Group(g) }
            })
        });
        let mut descent = Descent::new(groups.collect(), |list, group, nodes: &mut Vec<Node>| {
            let layer = &self.layers[list];
            nodes.extend(layer.index.members(group).map(|b| {
                let d = tile.distance(self, &layer.index.blocks, b);
                Node { promise: highest(layer.of_block(b), d * d), list, which: Which::Block(b) }
            }));
        });
        let embeds = self.layers.iter().any(|layer| !layer.embedded.is_empty());
        let new = |x: &[f64]| {
            let mut embedded = vec![];
            if embeds {
                self.bump().embed(x, &mut embedded);
            }
            let nothing = f64::NEG_INFINITY;
            Here { top: nothing, least: nothing, waiting: BinaryHeap::new(), embedded, added: 0, done: false }
        };
        let mut all: Vec<Here> = tile.points.chunks(m).map(new).collect();
        out.fill(0.0);
        let mut found = vec![];
        while all.iter().any(|here| !here.done) {
            let open = all.iter().filter(|here| !here.done);
            let least = open.map(|here| here.least).fold(f64::INFINITY, f64::min);
            found.clear();
            found.extend(std::iter::from_fn(|| descent.next(least)).take(BATCH));
            // What has not been found promises no more than this, at any point of the tile.
            let rest = if found.len() < BATCH { least } else { descent.next_promise() };
            let balls = Found::new(self, &found);
            let points = tile.points.chunks(m).zip(&mut all).zip(out.chunks_mut(count));
            for ((x, here), sums) in points.filter(|((_, here), _)| !here.done) {
                self.go_on(x, here, &balls, rest, work, sums);
            }
        }
        for (here, sums) in all.iter().zip(out.chunks_mut(count)) {
            self.to_logs(here.top, sums);
        }
    }

    /// Looks at the blocks that promise more at x than anything that may still be found, those that promise most first.
    #[inline(always)]
    fn go_on(&self, x: &[f64], here: &mut Here, found: &Found, rest: f64, work: &mut Work, sums: &mut [f64]) {
        let (squares, bounds) = found.at(self, x);
        for ((node, square), bound) in found.nodes.iter().zip(&squares).zip(&bounds) {
            let Which::Block(block) = node.which else { continue };
            if *bound <= here.least {
                continue;
            }
            let promise = highest(self.layers[node.list].of_block(block), *square);
            if promise > here.least {
                here.waiting.push(Node { promise, ..*node });
            }
        }
        while let Some(node) = here.waiting.peek().copied() {
            if node.promise <= here.least {
                here.waiting.clear();
            } else if node.promise > rest || rest == f64::NEG_INFINITY {
                here.waiting.pop();
                let Which::Block(block) = node.which else { continue };
                if self.add_block((node.list, block), (x, &here.embedded), here.least, work, &mut here.top, sums) {
                    here.added += 1;
                    // It changes little once there are some.
                    if here.added.is_power_of_two() || here.added.is_multiple_of(8) {
                        here.least = self.least(here.top, sums);
                    }
                }
            } else {
                return;
            }
        }
        here.done = rest <= here.least;
    }

    /// Sums relative to e^top, as logs; kernels that are nowhere near are as good as none.
    fn to_logs(&self, top: f64, sums: &mut [f64]) {
        for (sum, family) in sums.iter_mut().zip(&self.families) {
            *sum = match (family.kind, self.log_volume) {
                (Kind::Uniform, Some(log_volume)) => -log_volume,
                _ if *sum == 0.0 => f64::MIN,
                _ => top + sum.ln(),
            };
        }
    }

    /// What can be left out where the density is at least that of these sums: log(ε p/F).
    fn least(&self, top: f64, sums: &[f64]) -> f64 {
        if self.tolerance == 0.0 {
            return f64::NEG_INFINITY;
        }
        let (mut p, mut uniform) = (0.0, f64::NEG_INFINITY);
        for (sum, family) in sums.iter().zip(&self.families) {
            match (family.kind, self.log_volume) {
                (Kind::Uniform, Some(log_volume)) => uniform = family.share.ln() - log_volume,
                _ => p += family.share * sum,
            }
        }
        let kernels = if p > 0.0 { top + p.ln() } else { f64::NEG_INFINITY };
        kernels.max(uniform) + (self.tolerance / self.families.len() as f64).ln()
    }

    /// Adds the kernels of a block that promise more than `least` to sums in units of e^top; whether there were any.
    #[inline(always)]
    fn add_block(
        &self,
        (list, block): (usize, usize),
        (x, embedded): (&[f64], &[f64]),
        least: f64,
        work: &mut Work,
        top: &mut f64,
        sums: &mut [f64],
    ) -> bool {
        let layer = &self.layers[list];
        let nearest = self.nearest_squared(x, list, block);
        let (mut placed, mut shaped, mut any) = (false, usize::MAX, false);
        let (mut statistics, ones) = ([0.0; BLOCK], [1.0; BLOCK]);
        for (member, promise) in layer.members.iter().zip(layer.of_block(block)) {
            if promise.at(nearest) <= least {
                continue;
            }
            let natural = matches!(member.kind, Kind::Natural { .. });
            if !placed && !natural {
                self.coordinates(x, list, block, work);
                placed = true;
            }
            let logs = &layer.log_weights[block * BLOCK..][..BLOCK];
            let (base, start) = (member.base, *top);
            let least = least - member.log_share - layer.log_count;
            let sum = match member.kind {
                Kind::Uniform => continue,
                Kind::Fixed { width } | Kind::Grouped { width, .. } => {
                    let (squares, factor, rate) = (&work.square, &work.factor, -0.5 / (width * width));
                    AddUp { base, logs, rate, squares, factor, top: start, least }
                }
                Kind::Natural { kappa } => {
                    self.statistics((x, embedded), list, block, &mut statistics);
                    AddUp { base, logs, rate: kappa, squares: &statistics, factor: &ones, top: start, least }
                }
                Kind::Local { shape, factor } => {
                    let own = layer.shapes[shape].as_ref().expect("a shape of this layer");
                    if shaped != shape {
                        let entries = own.factors.len() / layer.log_weights.len() * BLOCK;
                        Whiten { factors: &own.factors[block * entries..][..entries], work }.run();
                        shaped = shape;
                    }
                    let (squares, rate, logs) = (&work.quadratic, -0.5 / factor, &own.logs[block * BLOCK..][..BLOCK]);
                    AddUp { base, logs, rate, squares, factor: &work.factor, top: start, least }
                }
            };
            let (now, more) = sum.run();
            if now > start && start > f64::NEG_INFINITY {
                let shrink = (start - now).exp();
                sums.iter_mut().for_each(|sum| *sum *= shrink);
            }
            *top = now;
            sums[member.family] += more;
            any |= more > 0.0;
        }
        any
    }

    /// The square of at most the distance of x from the nearest centre of a block.
    #[inline(always)]
    fn nearest_squared(&self, x: &[f64], list: usize, block: usize) -> f64 {
        let (layer, m) = (&self.layers[list], self.ambient());
        if self.foreign.is_some() {
            return layer.index.blocks.distance(self, block, x).powi(2);
        }
        let centres = &layer.centres[block * m * BLOCK..][..m * BLOCK];
        let mut squares = [0.0; BLOCK];
        Chords { spaces: &self.spaces, x, centres, out: &mut squares }.run()
    }

    /// Normal coordinates of x about the centres of a block.
    #[inline(always)]
    pub(super) fn coordinates(&self, x: &[f64], list: usize, block: usize, work: &mut Work) {
        let (m, n) = (self.ambient(), self.dim());
        let Some(foreign) = &self.foreign else {
            let centres = &self.layers[list].centres[block * m * BLOCK..][..m * BLOCK];
            return Coordinates { spaces: &self.spaces, x, centres, work }.run();
        };
        let points = &self.sites[list].points;
        let (start, len) = (block * BLOCK, BLOCK.min(points.len() / m - block * BLOCK));
        let (centres, frames) = (&points[start * m..][..len * m], &self.frames[start * n * m..][..len * n * m]);
        let (mut v, mut logs) = (vec![0.0; len * n], vec![0.0; len]);
        foreign.coordinates(Pairs { centres, frames, points: x }, &mut v, &mut logs);
        self.end(&v, &mut logs);
        (work.factor, work.square) = ([0.0; BLOCK], [0.0; BLOCK]);
        for (i, (v, log)) in v.chunks(n).zip(&logs).enumerate() {
            v.iter().enumerate().for_each(|(j, v)| work.v[j][i] = *v);
            work.square[i] = v.iter().map(|v| v * v).sum();
            work.factor[i] = (-log).exp();
        }
    }

    /// t of x and the centres of a block.
    #[inline(always)]
    fn statistics(&self, (x, embedded): (&[f64], &[f64]), list: usize, block: usize, out: &mut Lanes) {
        let all = &self.layers[list].embedded;
        if all.is_empty() {
            let centres = self.sites[list].points.chunks(self.ambient()).skip(block * BLOCK);
            return centres.zip(out).for_each(|(c, out)| *out = self.bump().statistic(x, c));
        }
        let width = embedded.len() * BLOCK;
        Statistics { x: embedded, centres: &all[block * width..][..width], out }.run();
    }

    /// The blocks of a list of centres whose kernels promise more than `least` at x.
    pub(super) fn blocks_near(&self, list: usize, x: &[f64], least: f64, mut visit: impl FnMut(usize)) {
        let layer = &self.layers[list];
        for group in 0..layer.index.groups.len() {
            let d = layer.index.groups.distance(self, group, x);
            if highest(layer.of_group(group), d * d) > least {
                for block in layer.index.members(group) {
                    let d = layer.index.blocks.distance(self, block, x);
                    if highest(layer.of_block(block), d * d) > least {
                        visit(block);
                    }
                }
            }
        }
    }
}
