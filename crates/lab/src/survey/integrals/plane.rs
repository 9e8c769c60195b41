//! ∫ of positive functions over a manifold of two dimensions, by cells that are halved until their rules agree.
//!
//! **Statement.** A chart (u, v) with area element A(u): Cartesian coordinates of R², geodesic polar ones of S² and H². A cell has
//! 6 × 6 nodes of Gauss and Legendre; where it and its four quarters differ by more than the tolerance, the quarters take its place.
//! **Conventions.** No cell is trusted before it has met the points: cells at a centre are first halved until they are smaller
//! than half the distance to the nearest other centre, and than half a distance that one in twenty centres has to its nearest. Kernels
//! may be thinner: witnesses, centres and draws of the density, tell; a cell is halved as long as a function is more than twice as
//! high at a witness inside as at all nodes of its quarters.
//! Spaces without end are cut off far beyond the points. **Error.** At most the tolerance for each cell, which is the error of the
//! coarser of two rules. Nothing is shared with the quadrature of fits, which works kernel by kernel.
//! **Checked by** the kernels, whose integrals are known.

use minvel::Error;
use minvel::manifold::quadrature::gauss_legendre;
use minvel::manifold::{Manifold, Space};
use minvel::train::Context;
use std::f64::consts::PI;

/// Nodes of a cell in each direction.
const NODES: usize = 6;
/// A cell and its quarters agree when they differ by less.
const AGREE: f64 = 1e-7;
/// Halvings at most: a million to one.
const DEEPEST: u32 = 40;
/// How far beyond a cell its centres are looked for, in distances of theirs to the nearest.
const MARGIN: f64 = 1.0;
/// Cells that are asked for at once.
const BATCH: usize = 2000;
/// Radius up to which points of the hyperbolic plane are known in double precision.
const LAST_RADIUS: f64 = 30.0;
/// How far beyond the points spaces without end are cut off: in units of the farthest point, or of length.
const BEYOND: f64 = 10.0;

/// How much higher, in nats, a function may be at a witness than at the nodes about it.
const SEEN: f64 = std::f64::consts::LN_2;

/// log densities of points, a list for each function.
pub(super) type Functions<'a> = &'a dyn Fn(&[f64]) -> Result<Vec<Vec<f64>>, Error>;

/// A rectangle of the chart.
#[derive(Clone, Copy)]
struct Cell {
    from: [f64; 2],
    to: [f64; 2],
    depth: u32,
}

/// Coordinates of a space of two dimensions.
struct Chart {
    space: Space,
    whole: Cell,
    /// Beyond this radius circles count as no longer: nothing there is finer than an angle of the points.
    farthest: f64,
}

/// What a rule says of a function on a cell: the sum, and the highest log at a node.
#[derive(Clone, Copy)]
struct Told {
    sum: f64,
    top: f64,
}

/// ∫ e^log of each function over a manifold with these centres and draws, row-major.
pub(super) fn integrals(
    manifold: &dyn Manifold,
    centres: &[f64],
    draws: &[f64],
    logs: Functions,
    context: &Context,
) -> Result<Vec<f64>, Error> {
    let chart = Chart::of(manifold, centres);
    let witnesses = [centres, draws].concat();
    let heights = logs(&witnesses)?;
    let places: Vec<[f64; 2]> = witnesses.chunks(manifold.ambient()).map(|x| chart.place(x)).collect();
    let (mut pending, mut within): (Vec<Cell>, Vec<Vec<usize>>) = chart.mesh(centres, &places).into_iter().unzip();
    let mut told = chart.all_told(&pending, logs, context)?;
    let mut totals = vec![0.0; heights.len()];
    while !pending.is_empty() {
        let quarters: Vec<Cell> = pending.iter().flat_map(|c| c.quarters()).collect();
        let finer = chart.all_told(&quarters, logs, context)?;
        let (mut next, mut next_within, mut next_told) = (vec![], vec![], vec![]);
        for (k, (cell, coarse)) in pending.iter().zip(&told).enumerate() {
            let own = &finer[4 * k..][..4];
            let is_settled = |f: usize| {
                let fine: f64 = own.iter().map(|q| q[f].sum).sum();
                let top = own.iter().map(|q| q[f].top).fold(f64::NEG_INFINITY, f64::max);
                let seen = within[k].iter().all(|&i| heights[f][i] <= top + SEEN);
                !fine.is_finite() || (seen && (coarse[f].sum - fine).abs() <= AGREE)
            };
            if (0..totals.len()).all(is_settled) || cell.depth >= DEEPEST {
                totals.iter_mut().enumerate().for_each(|(f, sum)| *sum += own.iter().map(|q| q[f].sum).sum::<f64>());
            } else {
                next.extend(&quarters[4 * k..][..4]);
                next_within.extend(quarters[4 * k..][..4].iter().map(|quarter| quarter.inside(&within[k], &places)));
                next_told.extend_from_slice(own);
            }
        }
        (pending, within, told) = (next, next_within, next_told);
    }
    Ok(totals)
}

impl Cell {
    fn halves(&self, side: usize) -> [Cell; 2] {
        let middle = 0.5 * (self.from[side] + self.to[side]);
        let (mut left, mut right) = (*self, *self);
        (left.to[side], right.from[side]) = (middle, middle);
        (left.depth, right.depth) = (self.depth + 1, self.depth + 1);
        [left, right]
    }

    fn quarters(&self) -> [Cell; 4] {
        let [left, right] = self.halves(0);
        let ([a, b], [c, d]) = (left.halves(1), right.halves(1));
        [a, b, c, d]
    }

    /// Whether a place is in the cell, or no farther from it than these distances in the chart; v may be an angle.
    fn reaches(&self, [u, v]: [f64; 2], [across, up]: [f64; 2]) -> bool {
        let within = |x: f64, side: usize, margin: f64| self.from[side] - margin <= x && x < self.to[side] + margin;
        within(u, 0, across) && [v - 2.0 * PI, v, v + 2.0 * PI].into_iter().any(|v| within(v, 1, up))
    }

    /// Those of the places that are in the cell.
    fn inside(&self, of: &[usize], places: &[[f64; 2]]) -> Vec<usize> {
        of.iter().copied().filter(|&i| self.reaches(places[i], [0.0; 2])).collect()
    }
}

impl Chart {
    fn of(manifold: &dyn Manifold, points: &[f64]) -> Chart {
        let space = manifold.spaces().expect("checked")[0];
        let far = points.iter().fold(0.0, |far: f64, x| far.max(x.abs()));
        let cell = |from, to| Cell { from, to, depth: 0 };
        let polar = |end: f64| cell([0.0, -PI], [end, PI]);
        match space {
            Space::Sphere(_) => Chart { space, whole: polar(PI), farthest: PI },
            Space::Hyperbolic(_) => {
                let radius = |x: &[f64]| 2.0 * x.iter().map(|x| x * x).sum::<f64>().sqrt().atanh();
                let farthest = points.chunks(2).map(radius).fold(0.0, f64::max);
                // The widest kernels are as wide as the points are spread; beyond, the disk ends in rounding errors.
                Chart { space, whole: polar((2.0 * farthest + BEYOND).min(LAST_RADIUS)), farthest }
            }
            Space::Projective(_) => Chart { space, whole: polar(0.5 * PI), farthest: PI },
            Space::Torus(_) => Chart { space, whole: cell([-PI; 2], [PI; 2]), farthest: f64::INFINITY },
            _ => {
                let end = (1.0 + BEYOND) * far;
                Chart { space, whole: cell([-end; 2], [end; 2]), farthest: f64::INFINITY }
            }
        }
    }

    /// Cells that are not much longer than wide, and the smaller the nearer the points in them are to others, with the witnesses in each.
    fn mesh(&self, points: &[f64], witnesses: &[[f64; 2]]) -> Vec<(Cell, Vec<usize>)> {
        let places: Vec<[f64; 2]> = points.chunks(self.space.ambient()).map(|x| self.place(x)).collect();
        let mut all: Vec<(usize, f64)> = nearest(self.space, points).into_iter().enumerate().collect();
        let mut sorted: Vec<f64> = all.iter().map(|(_, d)| *d).filter(|d| d.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let narrow = sorted.get(sorted.len() / 20).copied().unwrap_or(f64::INFINITY);
        all.iter_mut().for_each(|(_, d)| *d = d.min(narrow));
        let (mut mesh, mut pending) = (vec![], vec![(self.whole, all, (0..witnesses.len()).collect::<Vec<usize>>())]);
        while let Some((cell, inside, seen)) = pending.pop() {
            let sides = self.sides(&cell);
            let side = if sides[0] >= sides[1] { 0 } else { 1 };
            let least = inside.iter().map(|(_, d)| 0.5 * d).fold(f64::INFINITY, f64::min);
            let whole = self.sides(&self.whole);
            let wanted = least.min(0.1 * whole[0].max(whole[1]));
            if (sides[side] <= wanted && sides[side] <= 3.0 * sides[1 - side]) || cell.depth >= DEEPEST {
                mesh.push((cell, seen));
                continue;
            }
            for half in cell.halves(side) {
                // Kernels reach beyond the cell of their centre.
                let sides = self.sides(&half);
                let scale = [0, 1].map(|s| (half.to[s] - half.from[s]) / sides[s]);
                let margin = |d: f64| [0, 1].map(|s| MARGIN * d * scale[s]);
                let own = inside.iter().filter(|(i, d)| half.reaches(places[*i], margin(*d))).copied().collect();
                pending.push((half, own, half.inside(&seen, witnesses)));
            }
        }
        mesh
    }

    /// Lengths of a cell's sides.
    fn sides(&self, cell: &Cell) -> [f64; 2] {
        let (u, v) = (cell.to[0] - cell.from[0], cell.to[1] - cell.from[1]);
        let end = cell.to[0].min(self.farthest);
        [
            u,
            v * match self.space {
                Space::Sphere(_) | Space::Projective(_) if (cell.from[0]..cell.to[0]).contains(&(0.5 * PI)) => 1.0,
                Space::Sphere(_) | Space::Projective(_) => cell.to[0].sin().max(cell.from[0].sin()),
                Space::Hyperbolic(_) => end.sinh(),
                _ => 1.0,
            },
        ]
    }

    fn place(&self, x: &[f64]) -> [f64; 2] {
        match self.space {
            Space::Sphere(_) => [x[1].hypot(x[2]).atan2(x[0]), x[2].atan2(x[1])],
            Space::Projective(_) if x[0] < 0.0 => [x[1].hypot(x[2]).atan2(-x[0]), (-x[2]).atan2(-x[1])],
            Space::Projective(_) => [x[1].hypot(x[2]).atan2(x[0]), x[2].atan2(x[1])],
            Space::Hyperbolic(_) => [2.0 * x[0].hypot(x[1]).atanh(), x[1].atan2(x[0])],
            _ => [x[0], x[1]],
        }
    }

    /// The point at (u, v), and the area element there.
    fn point(&self, u: f64, v: f64, out: &mut Vec<f64>) -> f64 {
        match self.space {
            Space::Sphere(_) | Space::Projective(_) => {
                out.extend([u.cos(), u.sin() * v.cos(), u.sin() * v.sin()]);
                u.sin()
            }
            Space::Hyperbolic(_) => {
                let r = (0.5 * u).tanh();
                out.extend([r * v.cos(), r * v.sin()]);
                u.sinh()
            }
            _ => {
                out.extend([u, v]);
                1.0
            }
        }
    }

    fn all_told(&self, cells: &[Cell], logs: Functions, context: &Context) -> Result<Vec<Vec<Told>>, Error> {
        let (nodes, weights) = gauss_legendre(NODES);
        let node = |k: usize| {
            let (i, j) = (k / NODES, k % NODES);
            [nodes[i], nodes[j], 0.25 * weights[i] * weights[j]]
        };
        let rule: Vec<[f64; 3]> = (0..NODES * NODES).map(node).collect();
        let mut all = vec![];
        for batch in cells.chunks(BATCH) {
            context.go_on()?;
            all.extend(self.told(batch, &rule, logs)?);
        }
        Ok(all)
    }

    /// What the rule says of every function on every cell.
    fn told(&self, cells: &[Cell], rule: &[[f64; 3]], logs: Functions) -> Result<Vec<Vec<Told>>, Error> {
        let (mut points, mut weights) = (vec![], vec![]);
        for cell in cells {
            let (size, middle) =
                ([0, 1].map(|s| cell.to[s] - cell.from[s]), [0, 1].map(|s| 0.5 * (cell.from[s] + cell.to[s])));
            for [s, t, weight] in rule {
                let area = self.point(middle[0] + 0.5 * size[0] * s, middle[1] + 0.5 * size[1] * t, &mut points);
                weights.push(weight * size[0] * size[1] * area);
            }
        }
        let logs = logs(&points)?;
        let told = |k: usize, logs: &Vec<f64>| {
            let own = k * rule.len()..(k + 1) * rule.len();
            let sum = weights[own.clone()].iter().zip(&logs[own.clone()]).map(|(w, l)| w * l.exp()).sum();
            Told { sum, top: logs[own].iter().copied().fold(f64::NEG_INFINITY, f64::max) }
        };
        Ok((0..cells.len()).map(|k| logs.iter().map(|l| told(k, l)).collect()).collect())
    }
}

/// The distance of each point to the nearest that is not the same.
fn nearest(space: Space, points: &[f64]) -> Vec<f64> {
    let mut v = [0.0; 2];
    let mut distance = |a: &[f64], b: &[f64]| {
        space.to_normal(a, b, &mut v);
        v[0].hypot(v[1])
    };
    let all: Vec<&[f64]> = points.chunks(space.ambient()).collect();
    all.iter().map(|a| all.iter().map(|b| distance(a, b)).filter(|d| *d > 0.0).fold(f64::INFINITY, f64::min)).collect()
}
