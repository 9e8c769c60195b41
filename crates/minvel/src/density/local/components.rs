//! Mixtures of normal laws in normal coordinates, by expectation and maximisation.
//!
//! **Statement.** p(x) = Σ_k w_k N(v_k(x); 0, Σ_k)·|dv_k/dvol|, v_k the normal coordinates about the centre of component k. A
//! round moves each centre to the mean of v_k under the responsibilities, and Σ_k is their covariance there, carried to the
//! frame of the new centre by the differential of the change of coordinates.
//! **Source.** dempster1977em; how rounds start: [`starts`](super::starts).
//! **Conventions.** Covariances are shrunk towards round ones as by n + 1 more points, have at least the variance `floor`, and stay clear of the
//! cut locus: angles apart, each five deviations, and curved spaces six.
//! Starts and rounds use no coordinates of the embedding, so that a rotation of the data rotates the mixture. Sums are taken
//! over pieces of a fixed length: the same bits on any number of threads.
//! **Error.** On curved spaces the mean is the first step of a Karcher mean, and rounds take the rest of the steps.
//! **Checked by** tests/densities/components.rs.
#![allow(clippy::needless_range_loop)] // iterators with closures are not inlined everywhere, and then not vectorised

use super::clusters::{Clusters, Moments};
use super::geometry::{Chords, Coordinates};
use super::index::Ball;
use super::kernels::{Family, Kind, LocalKernels, Sites};
use super::lanes::{BLOCK, ROWS, Work, exp, square, whiten};
use super::places::Rows as Lanes;
use super::shape::{Shape, cholesky};
use super::starts::{Groups, best, starts};
use super::together;
use crate::Error;
use crate::density::sample::weight;
use crate::density::{by_rows, summed_together};
use crate::manifold::Space;
use crate::train::Context;
use minvel_engine::{Loop, widest};
use std::ops::Range;

/// Rounds at most; they end when the mean log-likelihood grows by less.
const ROUNDS: usize = 60;
const ENOUGH: f64 = 3e-5;
/// More points than this are represented by as many where starts are compared.
const FEW: usize = 4000;
/// More points than this are at first represented by as many, at equal distances in their order.
const REPRESENTED: usize = 20_000;
/// Rounds with all of them then.
const LAST_ROUNDS: usize = 4;
/// Points for each number of a component that there are at least.
pub(super) const LEAST: usize = 5;
/// A responsibility below this is none, and so is one of which the component promises no more.
const NOTHING: f64 = 1e-9;
const FAR: f64 = 22.0;

/// A mixture of normal laws.
#[derive(Clone, Debug)]
pub(super) struct Components {
    /// Row-major.
    centres: Vec<f64>,
    /// Lower Cholesky factors of the covariances, n × n each.
    factors: Vec<f64>,
    weights: Vec<f64>,
}

/// What becomes of a component.
struct Found<'a> {
    /// How many points it has, in parts of points, by their weights.
    points: f64,
    mean: &'a [f64],
    /// Second moments, the lower triangle row by row.
    second: &'a [f64],
}

/// What is at most beyond the cut locus of a space: five deviations of an angle, six of all directions of a curved space together.
const NARROWER_THAN_A_CIRCLE: f64 = 5.0;
const NARROWER_THAN_A_BALL: f64 = 6.0;

/// How many numbers of sums a component has.
fn width(n: usize) -> usize {
    1 + n + n * (n + 1) / 2
}

/// What the covariances of a mixture may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
    /// Any.
    Full,
    /// Of coordinates that do not depend on each other, on flat spaces.
    Diagonal,
}

impl Form {
    /// The form of `count` components that so many points can bear, if any.
    pub fn borne(space: &LocalKernels, rows: usize, count: usize) -> Option<Self> {
        let n = space.dim();
        let flat = space.spaces.iter().all(|s| matches!(s, Space::Euclidean(_) | Space::Torus(_)));
        let enough = |numbers: usize| rows >= count * LEAST * numbers;
        match (enough(width(n)), flat && enough(1 + 2 * n)) {
            (true, _) => Some(Form::Full),
            (false, true) => Some(Form::Diagonal),
            (false, false) => None,
        }
    }
}

/// Points that mixtures are fitted to.
pub(super) struct Rows {
    /// A part on which starts are compared.
    pub few: Orders,
    /// Those of most rounds: some of them, or all.
    pub some: Orders,
    /// All where those are not all, near ones together.
    pub all: Weighted,
}

/// The same points in two orders.
#[derive(Clone)]
pub(super) struct Orders {
    /// That of the rows.
    pub in_order: Weighted,
    /// Near ones together, so that what is far from all of them is passed over.
    pub near: Weighted,
}

/// Points, and what each counts; no weights: all are 1.
#[derive(Clone, Default)]
pub(super) struct Weighted {
    pub points: Vec<f64>,
    pub weights: Vec<f64>,
}

impl Weighted {
    fn of(clusters: &Clusters, m: usize, of: &[usize]) -> Self {
        let points = of.iter().flat_map(|&i| &clusters.points[i * m..][..m]).copied().collect();
        let weights =
            if clusters.masses().is_empty() { vec![] } else { of.iter().map(|&i| clusters.mass(i)).collect() };
        Weighted { points, weights }
    }

    pub fn weight(&self, i: usize) -> f64 {
        weight(&self.weights, i)
    }
}

impl Rows {
    /// Points of these numbers.
    pub fn of(space: &LocalKernels, clusters: &Clusters, of: &[usize]) -> Self {
        let (m, rows) = (space.ambient(), of.len());
        let near = |of: &[usize]| Weighted::of(clusters, m, &together(&clusters.points, m, ROWS, of.to_vec()));
        let at_most = |most: usize| {
            let own: Vec<usize> = (0..rows.min(most)).map(|k| of[k * rows / rows.min(most)]).collect();
            Orders { in_order: Weighted::of(clusters, m, &own), near: near(&own) }
        };
        let all = if rows > REPRESENTED { near(of) } else { Weighted::default() };
        Rows { few: at_most(FEW), some: at_most(REPRESENTED), all }
    }
}

impl Components {
    /// Of `count` components at most.
    pub fn of(
        space: &LocalKernels,
        rows: &Rows,
        count: usize,
        bounds: (Form, f64),
        context: &Context,
    ) -> Result<Self, Error> {
        let round = |this: &Self, of: &Weighted| this.round(space, of, bounds, context);
        let first = |groups: &Groups| Components::start(space, groups, bounds);
        let mut this = best(starts(space, rows, count), first, |this| round(this, &rows.few.near))?;
        let mut before = f64::NEG_INFINITY;
        for _ in 0..ROUNDS {
            let likelihood;
            (this, likelihood) = round(&this, &rows.some.near)?;
            if likelihood - before < ENOUGH {
                break;
            }
            before = likelihood;
        }
        for _ in 0..if rows.all.points.is_empty() { 0 } else { LAST_ROUNDS } {
            (this, _) = round(&this, &rows.all)?;
        }
        Ok(this)
    }

    /// One component for each group of near points.
    fn start(space: &LocalKernels, groups: &Groups, bounds: (Form, f64)) -> Self {
        let (m, n, rows) = (space.ambient(), space.dim(), groups.of);
        let mut this = Components { centres: vec![], factors: vec![], weights: vec![] };
        for own in &groups.each {
            let (v, pivot) = coordinates(space, &rows.points, own);
            let moments = moments(&v, n, own.iter().map(|&i| rows.weight(i)));
            let second: Vec<f64> = moments.products.iter().map(|s| s / moments.mass).collect();
            let found = Found { points: moments.mass, mean: &moments.mean(), second: &second };
            this.push(space, &rows.points[pivot * m..][..m], &found, bounds);
        }
        this.even_out();
        this
    }

    /// A round of expectation and maximisation, and the mean log-likelihood before it.
    fn round(
        &self,
        space: &LocalKernels,
        of: &Weighted,
        bounds: (Form, f64),
        context: &Context,
    ) -> Result<(Self, f64), Error> {
        let (m, n, count) = (space.ambient(), space.dim(), self.weights.len());
        let (rows, width) = (of.points.len() / m, width(n));
        let length = count * width + 1;
        let kernels = self.as_kernels(space);
        let each = summed_together(rows);
        let pieces = by_rows(rows.div_ceil(each), length, &context.quiet(), |first, out| {
            for (piece, out) in (first..).zip(out.chunks_mut(length)) {
                let own = piece * each..((piece + 1) * each).min(rows);
                let points = &of.points[own.start * m..own.end * m];
                let weights = if of.weights.is_empty() { &[] } else { &of.weights[own] };
                widest(Expectation { kernels: &kernels, points, weights, out });
            }
        })?;
        let mut next = Components { centres: vec![], factors: vec![], weights: vec![] };
        for (k, centre) in self.centres.chunks(m).enumerate() {
            let sum = |j: usize| pieces.iter().skip(k * width + j).step_by(length).sum::<f64>();
            let mass = sum(0);
            if mass > (n + 1) as f64 {
                let mean: Vec<f64> = (1..=n).map(|j| sum(j) / mass).collect();
                let second: Vec<f64> = (n + 1..width).map(|j| sum(j) / mass).collect();
                next.push(space, centre, &Found { points: mass, mean: &mean, second: &second }, bounds);
            }
        }
        next.even_out();
        let mass = if of.weights.is_empty() { rows as f64 } else { of.weights.iter().sum() };
        let likelihood = pieces.iter().skip(length - 1).step_by(length).sum::<f64>() / mass;
        Ok((if next.weights.is_empty() { self.clone() } else { next }, likelihood))
    }

    /// Adds the component that has these moments in the coordinates about `from`.
    fn push(&mut self, space: &LocalKernels, from: &[f64], found: &Found, (form, floor): (Form, f64)) {
        let n = space.dim();
        let &Found { points, mean, second } = found;
        let (mut centre, mut c) = (vec![0.0; from.len()], vec![0.0; n * n]);
        space.point_at(from, mean, &mut centre);
        let turn = change_of_coordinates(space, from, mean, &centre);
        let entry = |a: usize, b: usize| second[a.max(b) * (a.max(b) + 1) / 2 + a.min(b)] - mean[a] * mean[b];
        for a in 0..n {
            for b in 0..=a {
                let row = |i: usize| (0..n).map(|j| entry(i, j) * turn[b * n + j]).sum::<f64>();
                c[a * n + b] = (0..n).map(|i| turn[a * n + i] * row(i)).sum();
            }
        }
        let trace: f64 = (0..n).map(|a| c[a * n + a]).sum::<f64>().max(f64::MIN_POSITIVE);
        // As if there were n + 1 more points, round about the centre.
        let more = (n + 1) as f64 / (points + (n + 1) as f64);
        for a in 0..n {
            for b in 0..=a {
                c[a * n + b] *= if form == Form::Full || a == b { 1.0 - more } else { 0.0 };
            }
            c[a * n + a] += more * trace / n as f64 + floor;
        }
        narrow(&space.spaces, &mut c, n);
        cholesky(&mut c, n);
        self.centres.extend(centre);
        self.factors.extend(c);
        self.weights.push(points);
    }

    /// Weights that add up to one.
    fn even_out(&mut self) {
        let all: f64 = self.weights.iter().sum();
        self.weights.iter_mut().for_each(|w| *w /= all);
    }

    /// Centres with their weights, and a shape for a list of that number.
    pub fn laid_out_as(&self, list: usize, n: usize) -> (Sites, Shape) {
        let (count, entries) = (self.weights.len(), n * (n + 1) / 2);
        let (mut factors, mut log_det) = (vec![0.0; entries * count], vec![0.0; count]);
        for (k, c) in self.factors.chunks(n * n).enumerate() {
            for a in 0..n {
                (0..a).for_each(|b| factors[(a * (a + 1) / 2 + b) * count + k] = c[a * n + b]);
                factors[(a * (a + 1) / 2 + a) * count + k] = 1.0 / c[a * n + a];
                log_det[k] += c[a * n + a].ln();
            }
        }
        let sites = Sites { points: self.centres.clone(), weights: self.weights.clone(), groups: vec![] };
        (sites, Shape { list, neighbours: 0, factors, log_det })
    }

    /// The mixture as a density of its own.
    fn as_kernels(&self, space: &LocalKernels) -> LocalKernels {
        let (sites, shape) = self.laid_out_as(0, space.dim());
        let mut kernels = space.standing_on(sites);
        kernels.shapes = vec![shape];
        kernels.families = vec![Family { kind: Kind::Local { shape: 0, factor: 1.0 }, share: 1.0 }];
        kernels.laid_out()
    }
}

/// Makes a covariance as narrow along each space as the cut locus there asks for: D C D with a diagonal D.
fn narrow(spaces: &[Space], c: &mut [f64], n: usize) {
    let mut at = 0;
    for space in spaces {
        let (own, radius) = (at..at + space.dim(), space.injectivity());
        at = own.end;
        let parts: Vec<(Range<usize>, f64)> = match space {
            Space::Torus(_) => own.map(|a| (a..a + 1, radius / NARROWER_THAN_A_CIRCLE)).collect(),
            _ => vec![(own, radius / NARROWER_THAN_A_BALL)],
        };
        for (part, widest) in parts {
            let deviation = part.clone().map(|a| c[a * n + a]).sum::<f64>().sqrt();
            if deviation > widest {
                for a in part {
                    (0..=a).for_each(|b| c[a * n + b] *= widest / deviation);
                    (a..n).for_each(|b| c[b * n + a] *= widest / deviation);
                }
            }
        }
    }
}

/// Normal coordinates of some points about the one in their middle, and which that is.
fn coordinates(space: &LocalKernels, points: &[f64], of: &[usize]) -> (Vec<f64>, usize) {
    let (m, n) = (space.ambient(), space.dim());
    let pivot = of[of.len() / 2];
    let mut all = vec![0.0; of.len() * n];
    for (v, &i) in all.chunks_mut(n).zip(of) {
        space.to_normal(&points[pivot * m..][..m], &points[i * m..][..m], v);
    }
    (all, pivot)
}

/// Of points with these coordinates and weights.
fn moments(v: &[f64], n: usize, weights: impl Iterator<Item = f64>) -> Moments {
    let mut moments = Moments::none(n);
    v.chunks(n).zip(weights).for_each(|(v, weight)| moments.add(v, weight));
    moments
}

/// Two halves of some points, along their principal axis.
pub(super) fn halves(space: &LocalKernels, rows: &Weighted, of: Vec<usize>) -> [Vec<usize>; 2] {
    let n = space.dim();
    let (v, _) = coordinates(space, &rows.points, &of);
    let moments = moments(&v, n, of.iter().map(|&i| rows.weight(i)));
    let mean = moments.mean();
    let entry = |a: usize, b: usize| moments.second(a.max(b), a.min(b)) - mean[a] * mean[b];
    // Powers of the matrix lead to the axis from the farthest point, which has a side; directions of equal variance, as in standard units, have none.
    let from_mean = |v: &[f64]| v.iter().zip(&mean).map(|(v, mean)| v - mean).collect::<Vec<f64>>();
    let length = |v: &Vec<f64>| v.iter().map(|v| v * v).sum::<f64>();
    let farthest = v.chunks(n).map(from_mean).max_by(|a, b| length(a).total_cmp(&length(b)));
    let mut axis = farthest.expect("a point");
    for _ in 0..30 {
        let next: Vec<f64> = (0..n).map(|a| (0..n).map(|b| entry(a, b) * axis[b]).sum()).collect();
        let norm = next.iter().map(|x| x * x).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        axis = next.iter().map(|x| x / norm).collect();
    }
    let along: Vec<f64> = v.chunks(n).map(|v| v.iter().zip(&axis).map(|(v, a)| v * a).sum()).collect();
    let mut order: Vec<usize> = (0..of.len()).collect();
    let middle = of.len() / 2;
    order.select_nth_unstable_by(middle, |a, b| along[*a].total_cmp(&along[*b]).then(of[*a].cmp(&of[*b])));
    let mut left: Vec<usize> = order[..middle].iter().map(|&k| of[k]).collect();
    let mut right: Vec<usize> = order[middle..].iter().map(|&k| of[k]).collect();
    left.sort_unstable();
    right.sort_unstable();
    [left, right]
}

/// The differential of the coordinates about `to` in those about `from`, at the point with coordinates `at`, by differences.
fn change_of_coordinates(space: &LocalKernels, from: &[f64], at: &[f64], to: &[f64]) -> Vec<f64> {
    const H: f64 = 1e-4;
    let n = at.len();
    let (mut turn, mut x) = (vec![0.0; n * n], vec![0.0; from.len()]);
    let (mut up, mut down) = (vec![0.0; n], vec![0.0; n]);
    for j in 0..n {
        let mut v = at.to_vec();
        v[j] = at[j] + H;
        space.point_at(from, &v, &mut x);
        space.to_normal(to, &x, &mut up);
        v[j] = at[j] - H;
        space.point_at(from, &v, &mut x);
        space.to_normal(to, &x, &mut down);
        (0..n).for_each(|a| turn[a * n + j] = (up[a] - down[a]) / (2.0 * H));
    }
    turn
}

/// Sums of the responsibilities of each component, and of v and v vᵀ under them, over some points.
struct Expectation<'a> {
    kernels: &'a LocalKernels,
    points: &'a [f64],
    /// None where all are 1.
    weights: &'a [f64],
    /// `[component, 1 + n + n(n+1)/2]`, then the sum of the log-likelihoods.
    out: &'a mut [f64],
}

/// What is worked with: some points, and the components that count there.
struct Desk {
    points: Vec<Lanes>,
    centre: Vec<Lanes>,
    y: Vec<Lanes>,
    work: Work<ROWS>,
    /// Of each component: at least the log of what it says at any of the points, but for |dv/dvol|.
    bounds: Vec<f64>,
    /// Those that count.
    chosen: Vec<usize>,
    /// Of these: v, the log of what they say but for |dv/dvol|, and that.
    v: Vec<Lanes>,
    logs: Vec<Lanes>,
    factors: Vec<Lanes>,
}

impl Loop for Expectation<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Expectation { kernels, points, weights, out } = self;
        let (m, n) = (kernels.ambient(), kernels.dim());
        let width = width(n);
        let (none, mut likelihood) = ([0.0; ROWS], 0.0);
        let mut desk = Desk {
            points: vec![none; m],
            centre: vec![none; m],
            y: vec![none; n],
            work: Work::new(n),
            bounds: vec![],
            chosen: vec![],
            v: vec![],
            logs: vec![],
            factors: vec![],
        };
        for (k, own) in points.chunks(ROWS * m).enumerate() {
            let rows = own.len() / m;
            desk.look(kernels, own);
            let Desk { chosen, v, logs, factors, .. } = &mut desk;
            let mut top = [f64::MIN; ROWS];
            for (log, factor) in logs.iter().zip(factors.iter()) {
                for l in 0..ROWS {
                    let known = if factor[l] > 0.0 { log[l] } else { f64::MIN };
                    top[l] = top[l].max(known);
                }
            }
            let mut total = [0.0; ROWS];
            for (log, factor) in logs.iter_mut().zip(factors.iter()) {
                for l in 0..ROWS {
                    log[l] -= top[l];
                }
                *log = exp(*log);
                for l in 0..ROWS {
                    log[l] *= factor[l];
                    total[l] += log[l];
                }
            }
            for l in 0..ROWS {
                let weight = if l < rows && total[l] > 0.0 { weight(weights, k * ROWS + l) } else { 0.0 };
                likelihood += if weight > 0.0 { weight * (top[l] + total[l].ln()) } else { 0.0 };
                total[l] = if weight > 0.0 { weight / total[l] } else { 0.0 };
            }
            for ((k, values), v) in chosen.iter().zip(logs).zip(v.chunks(n)) {
                let (mut r, mut most) = ([0.0; ROWS], 0.0f64);
                for l in 0..ROWS {
                    r[l] = values[l] * total[l];
                    most = most.max(r[l]);
                }
                if most > NOTHING {
                    add_to(&mut out[k * width..], v, &r);
                }
            }
        }
        *out.last_mut().expect("a place for the likelihood") += likelihood;
    }
}

impl Desk {
    /// Chooses the components that may count at some points, and looks at them: the most promising one, and those that promise
    /// more than e^−FAR of what it says where it says least.
    #[inline(always)]
    fn look(&mut self, kernels: &LocalKernels, own: &[f64]) {
        let (m, rows) = (kernels.ambient(), own.len() / kernels.ambient());
        for (j, x) in self.points.iter_mut().enumerate() {
            *x = std::array::from_fn(|l| own[l.min(rows - 1) * m + j]);
        }
        self.promise(kernels, own);
        self.chosen.clear();
        self.v.clear();
        self.logs.clear();
        self.factors.clear();
        let most = |a: &usize, b: &usize| self.bounds[*a].total_cmp(&self.bounds[*b]);
        let best = (0..self.bounds.len()).max_by(most).expect("a component");
        self.look_at(kernels, best);
        let least = self.logs[0].iter().copied().fold(f64::INFINITY, f64::min);
        for k in (0..self.bounds.len()).filter(|k| *k != best) {
            if self.bounds[k] > least - FAR {
                self.look_at(kernels, k);
            }
        }
    }

    #[inline(always)]
    fn promise(&mut self, kernels: &LocalKernels, own: &[f64]) {
        let (m, layer) = (kernels.ambient(), &kernels.layers[0]);
        let (ball, member, mut squares) = (Ball::around(kernels, own), &layer.members[0], [0.0; BLOCK]);
        let count = kernels.centres();
        self.bounds.resize(count.next_multiple_of(BLOCK), 0.0);
        for (block, bounds) in self.bounds.chunks_mut(BLOCK).enumerate() {
            let centres = &layer.centres[block * m * BLOCK..][..m * BLOCK];
            Chords { spaces: &kernels.spaces, x: ball.centre, centres, out: &mut squares }.run();
            let (highs, rates) = (&member.highs[block * BLOCK..][..BLOCK], &member.rates[block * BLOCK..][..BLOCK]);
            for k in 0..BLOCK {
                let d = (squares[k].sqrt() - ball.radius).max(0.0);
                bounds[k] = rates[k].mul_add(d * d, highs[k]);
            }
        }
        self.bounds.truncate(count);
    }

    #[inline(always)]
    fn look_at(&mut self, kernels: &LocalKernels, i: usize) {
        let (m, n, layer) = (kernels.ambient(), kernels.dim(), &kernels.layers[0]);
        let Desk { points, centre, y, work, .. } = self;
        for (j, c) in centre.iter_mut().enumerate() {
            *c = [kernels.points()[i * m + j]; ROWS];
        }
        Coordinates { spaces: &kernels.spaces, points, centres: centre, work }.run();
        let own = layer.shapes[0].as_ref().expect("the only shape");
        whiten(&work.v, &own.factors[i / BLOCK * n * (n + 1) / 2 * BLOCK + i % BLOCK..], BLOCK, y);
        let (q, mut log) = (square(y), [layer.members[0].base + own.logs[i] + layer.weights[i].ln(); ROWS]);
        for l in 0..ROWS {
            log[l] = (-0.5f64).mul_add(q[l], log[l]);
        }
        self.chosen.push(i);
        self.v.extend_from_slice(&work.v);
        self.logs.push(log);
        self.factors.push(work.factor);
    }
}

/// Adds r, r v and r v vᵀ, all lanes together.
#[inline(always)]
fn add_to(sums: &mut [f64], v: &[Lanes], r: &Lanes) {
    let n = v.len();
    sums[0] += r.iter().sum::<f64>();
    let mut at = n + 1;
    for a in 0..n {
        let mut first = [0.0; ROWS];
        for l in 0..ROWS {
            first[l] = r[l] * v[a][l];
        }
        sums[1 + a] += first.iter().sum::<f64>();
        for b in 0..=a {
            let mut second = [0.0; ROWS];
            for l in 0..ROWS {
                second[l] = first[l] * v[b][l];
            }
            sums[at] += second.iter().sum::<f64>();
            at += 1;
        }
    }
}
