//! Points side by side, and what the kernels about one centre after another add to them.
//!
//! **Statement.** Σ_i π_s w_i K_s(x; c_i) for each family s, in units of e^u for a u of each point's own, so that nothing
//! overflows: a point whose sums leave the range of numbers is summed again with a better u. A kernel is left out at a point
//! where π K ≤ e^least. **Conventions.** Kernels are added in the order of their lists, whatever the other points are.
//! **Error.** Rounding. **Checked by** tests/densities/kernel_sums.rs.
#![allow(clippy::needless_range_loop)] // iterators with closures are not inlined everywhere, and then not vectorised

use super::geometry::Chords;
use super::index::Ball;
use super::kernels::{Kind, LocalKernels};
use super::lanes::{BLOCK, RANGE, ROWS, exp, square, whiten};
use super::layer::Layer;
use super::places::{Anywhere, Elsewhere, Inside, Place, Rows};
use crate::density::Bump;
use crate::manifold::Space;
use minvel_engine::Loop;

/// Bounds are compared with so much to spare, so that rounding decides nothing.
const SPARE: f64 = 1e-6;
/// Sums beyond e^± this are summed again in better units.
const GOOD: f64 = RANGE - 50.0;

/// Some points, those beyond the last repeat it.
pub(super) struct Octet<'a> {
    pub points: &'a [f64],
    /// Coordinate by coordinate.
    columns: Vec<Rows>,
    /// For natural kernels: coordinates in which t is a sum of squares.
    embedded: Vec<Rows>,
    pub ball: Ball<'a>,
    /// Kernels below e^this are left out.
    pub least: Rows,
    /// u.
    pub unit: Rows,
    /// e^{least − u}.
    threshold: Rows,
    /// The largest exponent that counted, over u; known where sums are taken with care.
    most: Rows,
    /// Of each family.
    pub sums: Vec<Rows>,
}

/// Which kernels of which block are added, and where.
pub(super) struct Chosen<'a> {
    pub list: usize,
    pub block: usize,
    /// Centres that may count, for each member of the layer.
    masks: &'a [u32],
    /// And for any of them.
    all: u32,
    /// Points at which they are added: 1 or 0. None: at all of them.
    pub only: Option<Rows>,
}

impl<'a> Octet<'a> {
    pub fn new(kernels: &LocalKernels, points: &'a [f64]) -> Self {
        let m = kernels.ambient();
        let last = points.len() / m - 1;
        let in_lanes = |rows: &[f64], width: usize| -> Vec<Rows> {
            (0..width).map(|j| std::array::from_fn(|l| rows[l.min(last) * width + j])).collect()
        };
        let mut embedded = vec![];
        if kernels.layers.iter().any(|layer| !layer.embedded.is_empty()) {
            let mut rows = vec![];
            points.chunks(m).for_each(|x| kernels.bump().embed(x, &mut rows));
            embedded = in_lanes(&rows, rows.len() / (last + 1));
        }
        let sums = vec![[0.0; ROWS]; kernels.families.len()];
        let [least, unit, threshold, most] = [[f64::NEG_INFINITY; ROWS], [0.0; ROWS], [0.0; ROWS], [0.0; ROWS]];
        let (columns, ball) = (in_lanes(points, m), Ball::around(kernels, points));
        Octet { points, columns, embedded, ball, least, unit, threshold, most, sums }
    }

    /// Kernels that promise no more than this are left out at all points.
    pub fn bar(&self) -> f64 {
        self.least.iter().copied().fold(f64::INFINITY, f64::min) - SPARE
    }

    /// Starts to sum: at each point what is at most e^least is left out, and sums are in units of e^unit.
    pub fn start(&mut self) {
        self.sums.fill([0.0; ROWS]);
        self.most = [f64::NEG_INFINITY; ROWS];
        for l in 0..ROWS {
            self.threshold[l] = (self.least[l] - self.unit[l]).exp();
        }
    }

    /// Whether sums are to be taken with care: so that their units can be bettered.
    pub fn needs_care(&self) -> bool {
        let outside = |sum: f64| sum > GOOD.exp();
        self.threshold.contains(&0.0) || self.sums.iter().flatten().any(|sum| outside(*sum))
    }

    /// Whether all sums, which were taken with care, are within the range of numbers; else their units are bettered.
    pub fn is_settled(&mut self) -> bool {
        let mut settled = true;
        for l in 0..ROWS {
            let outside = self.most[l] > GOOD || (self.most[l] < -GOOD && self.threshold[l] == 0.0);
            if outside && self.most[l] > f64::NEG_INFINITY {
                self.unit[l] += self.most[l];
                settled = false;
            }
        }
        settled
    }

    /// Adds the kernels of a block.
    #[inline(always)]
    pub fn add_block<const CARE: bool>(
        &mut self,
        kernels: &LocalKernels,
        (list, block): (usize, usize),
        only: Option<Rows>,
        masks: &mut Vec<u32>,
    ) {
        let all = self.choose(kernels, &kernels.layers[list], block, masks);
        let chosen = &Chosen { list, block, masks, all, only };
        match *kernels.spaces.as_slice() {
            _ if all == 0 => {}
            [space @ (Space::Euclidean(1) | Space::Torus(1))] => {
                self.add_chosen::<Inside<1, 1>, CARE>(kernels, &mut Inside::new(space), chosen)
            }
            [space @ (Space::Euclidean(2) | Space::Hyperbolic(2))] => {
                self.add_chosen::<Inside<2, 2>, CARE>(kernels, &mut Inside::new(space), chosen)
            }
            [Space::Torus(2)] => {
                self.add_chosen::<Inside<2, 2>, CARE>(kernels, &mut Inside::new(Space::Torus(2)), chosen)
            }
            [Space::Sphere(2)] => {
                self.add_chosen::<Inside<3, 2>, CARE>(kernels, &mut Inside::new(Space::Sphere(2)), chosen)
            }
            [Space::Euclidean(3)] => {
                self.add_chosen::<Inside<3, 3>, CARE>(kernels, &mut Inside::new(Space::Euclidean(3)), chosen)
            }
            [] => self.add_chosen::<Elsewhere, CARE>(
                kernels,
                &mut Elsewhere::new(kernels, chosen.centres(), self.points),
                chosen,
            ),
            _ => self.add_chosen::<Anywhere, CARE>(kernels, &mut Anywhere::new(kernels), chosen),
        }
    }

    /// Which centres of a block may count at some point, for each member of the layer, and for any.
    #[inline(always)]
    fn choose(&self, kernels: &LocalKernels, layer: &Layer, block: usize, masks: &mut Vec<u32>) -> u32 {
        let (m, bar) = (kernels.ambient(), self.bar());
        let mut squares = [0.0; BLOCK];
        if kernels.foreign.is_some() {
            squares = [layer.index.blocks.least_distance(kernels, block, &self.ball).powi(2); BLOCK];
        } else {
            let centres = &layer.centres[block * m * BLOCK..][..m * BLOCK];
            Chords { spaces: &kernels.spaces, x: self.ball.centre, centres, out: &mut squares }.run();
            for k in 0..BLOCK {
                let d = (squares[k].sqrt() - self.ball.radius).max(0.0);
                squares[k] = d * d;
            }
        }
        masks.clear();
        let mut all = 0;
        for member in &layer.members {
            let highs = &member.highs[block * BLOCK..][..BLOCK];
            let rates = &member.rates[block * BLOCK..][..BLOCK];
            let mut mask = 0;
            for k in 0..BLOCK {
                mask |= u32::from(rates[k].mul_add(squares[k], highs[k]) > bar) << k;
            }
            all |= mask;
            masks.push(mask);
        }
        all
    }

    /// Adds the kernels that were chosen, centre by centre.
    #[inline(always)]
    fn add_chosen<P: Place, const CARE: bool>(&mut self, kernels: &LocalKernels, place: &mut P, chosen: &Chosen) {
        let (layer, m) = (&kernels.layers[chosen.list], kernels.ambient());
        let (block, mut left) = (chosen.block, chosen.all);
        let (mut v, mut y) = (place.buffer(), place.buffer());
        let placed = layer.members.iter().any(|member| !member.kind.is_natural());
        while left != 0 {
            let k = left.trailing_zeros() as usize;
            left &= left - 1;
            let mut factor = [1.0; ROWS];
            if placed {
                factor = place.place(&layer.centres[block * m * BLOCK + k..], &self.columns, &mut v);
            }
            let round = square(v.as_ref());
            let (weight, mut shaped, mut quadratic) = (layer.weights[block * BLOCK + k], usize::MAX, [0.0; ROWS]);
            for (member, mask) in layer.members.iter().zip(chosen.masks) {
                if mask >> k & 1 == 0 {
                    continue;
                }
                let log = member.base + member.log_share;
                let (log, squares, factor) = match member.kind {
                    Kind::Uniform => continue,
                    Kind::Fixed { .. } | Kind::Grouped { .. } => (log, round, factor),
                    Kind::Natural { .. } => {
                        (log, self.statistics(layer, (block, k), || kernels.bump(), |_| 1.0), [1.0; ROWS])
                    }
                    Kind::Component { shape } => {
                        let own = layer.shapes[shape].as_ref().expect("a shape of this layer");
                        let n = kernels.dim();
                        let kappas = &own.factors[block * n * (n + 1) / 2 * BLOCK + k..];
                        let law = || &own.natural[block * BLOCK + k];
                        let statistics = self.statistics(layer, (block, k), law, |direction| kappas[direction * BLOCK]);
                        (log + own.logs[block * BLOCK + k], statistics, [1.0; ROWS])
                    }
                    Kind::Local { shape, .. } => {
                        let own = layer.shapes[shape].as_ref().expect("a shape of this layer");
                        if shaped != shape {
                            let n = v.as_ref().len();
                            whiten(v.as_ref(), &own.factors[block * n * (n + 1) / 2 * BLOCK + k..], BLOCK, y.as_mut());
                            quadratic = square(y.as_ref());
                            shaped = shape;
                        }
                        (log + own.logs[block * BLOCK + k], quadratic, factor)
                    }
                };
                let mut terms = [0.0; ROWS];
                for l in 0..ROWS {
                    terms[l] = member.rate.mul_add(squares[l], log) - self.unit[l];
                }
                self.add::<CARE>(member.family, weight, &terms, &factor, chosen.only.as_ref());
            }
        }
    }

    /// Adds w e^term·factor where it counts.
    #[inline(always)]
    fn add<const CARE: bool>(&mut self, family: usize, weight: f64, terms: &Rows, factor: &Rows, only: Option<&Rows>) {
        let mut values = exp(*terms);
        for l in 0..ROWS {
            values[l] *= factor[l];
        }
        if let Some(only) = only {
            for l in 0..ROWS {
                values[l] *= only[l];
            }
        }
        for l in 0..ROWS {
            values[l] = if values[l] > self.threshold[l] { values[l] } else { 0.0 };
        }
        if CARE {
            for l in 0..ROWS {
                let term = if values[l] > 0.0 { terms[l] } else { f64::NEG_INFINITY };
                self.most[l] = self.most[l].max(term);
            }
        }
        let sums = &mut self.sums[family];
        for l in 0..ROWS {
            sums[l] = weight.mul_add(values[l], sums[l]);
        }
    }

    /// t of the points and a centre, by a kernel, or where t is a sum of squares by what it is multiplied with in each direction.
    #[inline(always)]
    fn statistics<'b>(
        &self,
        layer: &Layer,
        (block, k): (usize, usize),
        kernel: impl Fn() -> &'b Bump,
        kappa: impl Fn(usize) -> f64,
    ) -> Rows {
        let (mut sum, width) = ([0.0; ROWS], self.embedded.len());
        if width == 0 {
            let (kernel, m) = (kernel(), self.columns.len());
            let centre: Vec<f64> = (0..m).map(|j| layer.centres[(block * m + j) * BLOCK + k]).collect();
            for (sum, x) in sum.iter_mut().zip(self.points.chunks(m)) {
                *sum = kernel.statistic(x, &centre);
            }
            return sum;
        }
        for (j, x) in self.embedded.iter().enumerate() {
            let c = layer.embedded[(block * width + j) * BLOCK + k];
            let half = -0.5 * kappa(layer.directions[j]);
            for l in 0..ROWS {
                let d = x[l] - c;
                sum[l] = (half * d).mul_add(d, sum[l]);
            }
        }
        sum
    }
}

impl Chosen<'_> {
    /// Numbers of the centres that may count.
    fn centres(&self) -> impl Iterator<Item = usize> {
        let (start, all) = (self.block * BLOCK, self.all);
        (0..BLOCK).filter(move |k| all >> k & 1 == 1).map(move |k| start + k)
    }
}
