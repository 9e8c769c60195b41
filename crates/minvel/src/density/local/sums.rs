//! Sums over kernels, to a relative error that is set: what a kernel can add at most decides whether it is looked at.
//!
//! **Statement.** log Σ_i w_i K(x; c_i) for each family. A first sum q over the block of centres nearest to x, of the list of
//! centres that holds most of the mass, is a lower bound of p. A kernel is left out where π K ≤ ε·q/F for F families: as
//! weights add up to one, what is left out is at most ε·q ≤ ε·p. Tiles, blocks and kernels that promise no more are passed
//! over unseen. **Conventions.** Which kernels count at x, and in which order they are added, depends on x alone, not on the
//! points that are asked for with it: the same row has the same bits in any table and on any number of threads.
//! **Error.** ε of the density (all families together, by their shares), and rounding; ε = 0 looks at everything.
//! **Checked by** tests/densities/kernel_sums.rs.
#![allow(clippy::needless_range_loop)] // iterators with closures are not inlined everywhere, and then not vectorised

use super::card::Wanted;
use super::geometry::{Chords, Coordinates};
use super::index::{Ball, TILE};
use super::kernels::{Kind, LocalKernels, padded};
use super::lanes::{BLOCK, Lanes, ROWS, Work, columns, spread};
use super::layer::highest;
use super::octet::Octet;
use super::places::Rows;
use crate::Error;
use crate::density::by_pieces;
use crate::manifold::Pairs;
use crate::train::Context;
use minvel_engine::{Loop, widest};

/// Blocks that may count somewhere in a tile, with their balls.
struct Found {
    /// List and block.
    blocks: Vec<(usize, usize)>,
    /// Centres, row by row and in lanes.
    rows: Vec<f64>,
    lanes: Vec<f64>,
    radii: Lanes,
    /// One bound a + b d² each.
    logs: Lanes,
    rates: Lanes,
}

impl Found {
    /// Of at most [`BLOCK`] blocks.
    fn new(kernels: &LocalKernels, blocks: &[(usize, usize)]) -> Self {
        let (mut rows, mut radii) = (vec![], [0.0; BLOCK]);
        let (mut logs, mut rates) = ([f64::NEG_INFINITY; BLOCK], [0.0; BLOCK]);
        for (k, &(list, block)) in blocks.iter().enumerate() {
            let layer = &kernels.layers[list];
            let ball = layer.index.blocks.ball(block, kernels.ambient());
            rows.extend_from_slice(ball.centre);
            radii[k] = ball.radius;
            (logs[k], rates[k]) = layer.roughly(block);
        }
        Found { blocks: blocks.to_vec(), lanes: padded(&rows, kernels.ambient()), rows, radii, logs, rates }
    }

    /// Squares of the chords of x from the centres of the balls.
    #[inline(always)]
    fn chords(&self, kernels: &LocalKernels, x: &[f64]) -> Lanes {
        let mut out = [f64::INFINITY; BLOCK];
        if kernels.foreign.is_some() {
            kernels.chords_squared(&self.rows, x, &mut out[..self.blocks.len()]);
        } else {
            Chords { spaces: &kernels.spaces, x, centres: &self.lanes, out: &mut out }.run();
        }
        out
    }

    /// Those that promise more than `bar` at some point of a ball.
    #[inline(always)]
    fn near(&self, kernels: &LocalKernels, ball: &Ball, bar: f64) -> u32 {
        let squares = self.chords(kernels, ball.centre);
        let mut mask = 0;
        for k in 0..BLOCK {
            let d = squares[k].sqrt() - self.radii[k] - ball.radius;
            let square = if d > 0.0 { d * d } else { 0.0 };
            mask |= u32::from(self.logs[k] + self.rates[k] * square > bar) << k;
        }
        mask
    }
}

/// log of each family's own density at the points of a tile.
struct SumUp<'a> {
    kernels: &'a LocalKernels,
    points: &'a [f64],
    masks: &'a mut Vec<u32>,
    out: &'a mut [f64],
}

impl Loop for SumUp<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.kernels.sum_up(self.points, self.masks, self.out);
    }
}

impl LocalKernels {
    /// log of each family's own density at each point, `[points, families]`.
    pub fn log_families(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        if let Some(logs) = self.on_device(points, Wanted::Families, context)? {
            return Ok(logs);
        }
        self.tile_by_tile(points, self.families.len(), context, |logs, out| out.copy_from_slice(logs))
    }

    /// log p at each point.
    pub fn log_density_of(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        if let Some(logs) = self.on_device(points, Wanted::Density, context)? {
            return Ok(logs);
        }
        self.tile_by_tile(points, 1, context, |logs, out| {
            out.iter_mut().zip(logs.chunks(self.families.len())).for_each(|(out, row)| *out = self.blended(row));
        })
    }

    /// `width` numbers for each point, made of the log densities of the families at the points of a tile.
    fn tile_by_tile(
        &self,
        points: &[f64],
        width: usize,
        context: &Context,
        make: impl Fn(&[f64], &mut [f64]) + Sync,
    ) -> Result<Vec<f64>, Error> {
        let (m, count) = (self.ambient(), self.families.len());
        let rows = points.len() / m;
        let order = super::together(points, m, ROWS, (0..rows).collect());
        let sorted: Vec<f64> = order.iter().flat_map(|&i| &points[i * m..][..m]).copied().collect();
        let found = by_pieces(rows, width, TILE, context, |first, out| {
            let (mut masks, mut logs) = (vec![], vec![0.0; TILE * count]);
            for (k, out) in out.chunks_mut(TILE * width).enumerate() {
                let points = &sorted[(first + k * TILE) * m..][..out.len() / width * m];
                let logs = &mut logs[..out.len() / width * count];
                widest(SumUp { kernels: self, points, masks: &mut masks, out: logs });
                make(logs, out);
            }
        })?;
        let mut numbers = vec![0.0; rows * width];
        for (&i, row) in order.iter().zip(found.chunks(width)) {
            numbers[i * width..][..width].copy_from_slice(row);
        }
        Ok(numbers)
    }

    #[inline(always)]
    fn sum_up(&self, points: &[f64], masks: &mut Vec<u32>, out: &mut [f64]) {
        let (m, count) = (self.ambient(), self.families.len());
        let mut octets: Vec<Octet> = points.chunks(ROWS * m).map(|points| Octet::new(self, points)).collect();
        let tile = Ball::around(self, points);
        self.look_first(&tile, &mut octets, masks);
        let bar = octets.iter().map(Octet::bar).fold(f64::INFINITY, f64::min);
        let found = self.blocks_of(&tile, bar);
        for (octet, out) in octets.iter_mut().zip(out.chunks_mut(ROWS * count)) {
            self.add_everything(octet, &found, masks);
            for (l, out) in out.chunks_mut(count).enumerate() {
                self.to_logs(octet, l, out);
            }
        }
    }

    /// Blocks of all lists that promise more than `bar` at some point of a ball.
    fn blocks_of(&self, ball: &Ball, bar: f64) -> Vec<Found> {
        let mut blocks = vec![];
        for (list, layer) in self.layers.iter().enumerate() {
            for group in 0..layer.index.groups.len() {
                let d = layer.index.groups.least_distance(self, group, ball);
                if highest(layer.of_group(group), d * d) <= bar {
                    continue;
                }
                for block in layer.index.members(group) {
                    let d = layer.index.blocks.least_distance(self, block, ball);
                    if highest(layer.of_block(block), d * d) > bar {
                        blocks.push((list, block));
                    }
                }
            }
        }
        blocks.chunks(BLOCK).map(|blocks| Found::new(self, blocks)).collect()
    }

    /// Sums, in units in which they are numbers.
    #[inline(always)]
    fn add_everything(&self, octet: &mut Octet, found: &[Found], masks: &mut Vec<u32>) {
        octet.start();
        if !octet.needs_care() {
            self.add_all::<false>(octet, found, masks);
        }
        while octet.needs_care() {
            octet.start();
            self.add_all::<true>(octet, found, masks);
            if octet.is_settled() {
                return;
            }
        }
    }

    #[inline(always)]
    fn add_all<const CARE: bool>(&self, octet: &mut Octet, found: &[Found], masks: &mut Vec<u32>) {
        let bar = octet.bar();
        for found in found {
            let mut near = found.near(self, &octet.ball, bar);
            while near != 0 {
                let (list, block) = found.blocks[near.trailing_zeros() as usize];
                near &= near - 1;
                let layer = &self.layers[list];
                let d = layer.index.blocks.least_distance(self, block, &octet.ball);
                if highest(layer.of_block(block), d * d) > bar {
                    octet.add_block::<CARE>(self, (list, block), None, masks);
                }
            }
        }
    }

    /// What can be left out at each point, by the block of centres that is nearest to it.
    #[inline(always)]
    fn look_first(&self, tile: &Ball, octets: &mut [Octet], masks: &mut Vec<u32>) {
        let list = self.heaviest();
        let blocks: Vec<(usize, usize)> = self.nearest_of(tile, list).into_iter().map(|block| (list, block)).collect();
        let found: Vec<Found> = blocks.chunks(BLOCK).map(|blocks| Found::new(self, blocks)).collect();
        for octet in octets {
            let mut nearest = [(f64::INFINITY, usize::MAX); ROWS];
            for found in &found {
                for (x, nearest) in octet.points.chunks(self.ambient()).zip(&mut nearest) {
                    let squares = found.chords(self, x);
                    for (square, &(_, block)) in squares.iter().zip(&found.blocks) {
                        if *square < nearest.0 {
                            *nearest = (*square, block);
                        }
                    }
                }
            }
            let rows = octet.points.len() / self.ambient();
            let nearest: [usize; ROWS] = std::array::from_fn(|l| nearest[l.min(rows - 1)].1);
            loop {
                octet.start();
                for l in 0..ROWS {
                    let block = nearest[l];
                    if block < usize::MAX && !nearest[..l].contains(&block) {
                        let only: Rows = std::array::from_fn(|l| if nearest[l] == block { 1.0 } else { 0.0 });
                        octet.add_block::<true>(self, (list, block), Some(only), masks);
                    }
                }
                if octet.is_settled() {
                    break;
                }
            }
            self.set_least(octet);
        }
    }

    /// The list of centres that holds most of the mass.
    pub(super) fn heaviest(&self) -> usize {
        let share = |list: usize| self.layers[list].members.iter().map(|member| member.log_share.exp()).sum::<f64>();
        (0..self.layers.len()).max_by(|a, b| share(*a).total_cmp(&share(*b))).expect("a list of centres")
    }

    /// log of the uniform law's part of the density.
    pub(super) fn log_uniform(&self) -> f64 {
        let share = self.families.iter().find(|f| f.kind == Kind::Uniform).map_or(0.0, |f| f.share);
        share.ln() - self.log_volume.unwrap_or(f64::INFINITY)
    }

    /// Blocks of a list one of which has the centre nearest to a point of the ball.
    fn nearest_of(&self, ball: &Ball, list: usize) -> Vec<usize> {
        let index = &self.layers[list].index;
        let distance = |block: usize| index.blocks.ball(block, self.ambient()).distance(self, ball.centre);
        let mut groups: Vec<(f64, usize)> =
            (0..index.groups.len()).map(|g| (index.groups.least_distance(self, g, ball), g)).collect();
        groups.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut best, mut near) = (f64::INFINITY, vec![]);
        let reach = |best: f64| (best + 2.0 * ball.radius) * (1.0 + 1e-9);
        for (least, group) in groups {
            if least > reach(best) {
                break;
            }
            for block in index.members(group) {
                let d = distance(block);
                best = best.min(d);
                near.push((d, block));
            }
        }
        near.retain(|(d, _)| *d <= reach(best));
        near.sort_by_key(|(_, block)| *block);
        near.into_iter().map(|(_, block)| block).collect()
    }

    /// Sets what can be left out where the density is at least that of the sums so far: log(ε p/F).
    fn set_least(&self, octet: &mut Octet) {
        let uniform = self.log_uniform();
        for l in 0..ROWS {
            let sum: f64 = octet.sums.iter().map(|sums| sums[l]).sum();
            let log_p = if sum > 0.0 { octet.unit[l] + sum.ln() } else { f64::NEG_INFINITY };
            octet.unit[l] = if log_p > f64::NEG_INFINITY { log_p } else { 0.0 };
            if self.tolerance > 0.0 {
                let least = log_p.max(uniform) + (self.tolerance / self.families.len() as f64).ln();
                octet.least[l] = least;
                octet.unit[l] = if least > f64::NEG_INFINITY { least } else { octet.unit[l] };
            }
        }
    }

    /// log of each family's own density at one of the points; kernels that are nowhere near are as good as none.
    fn to_logs(&self, octet: &Octet, l: usize, out: &mut [f64]) {
        for ((out, sums), family) in out.iter_mut().zip(&octet.sums).zip(&self.families) {
            *out = match (family.kind, self.log_volume) {
                (Kind::Uniform, Some(log_volume)) => -log_volume,
                _ if sums[l] == 0.0 => f64::MIN,
                _ => octet.unit[l] + sums[l].ln() - family.share.ln(),
            };
        }
    }

    /// Normal coordinates of x about the centres of a block.
    pub(super) fn coordinates(&self, x: &[f64], list: usize, block: usize, work: &mut Work<BLOCK>) {
        let (m, n) = (self.ambient(), self.dim());
        let Some(foreign) = &self.foreign else {
            let centres = columns(&self.layers[list].centres[block * m * BLOCK..][..m * BLOCK]);
            return widest(Coordinates { spaces: &self.spaces, points: &spread(x), centres, work });
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

    /// The blocks of a list of centres whose kernels promise more than `least` at x.
    pub(super) fn blocks_near(&self, list: usize, x: &[f64], least: f64, mut visit: impl FnMut(usize)) {
        let (layer, ball) = (&self.layers[list], Ball { centre: x, radius: 0.0 });
        for group in 0..layer.index.groups.len() {
            let d = layer.index.groups.least_distance(self, group, &ball);
            if highest(layer.of_group(group), d * d) > least {
                for block in layer.index.members(group) {
                    let d = layer.index.blocks.least_distance(self, block, &ball);
                    if highest(layer.of_block(block), d * d) > least {
                        visit(block);
                    }
                }
            }
        }
    }
}
