//! The kernels themselves: evaluated, differentiated, sampled.

use super::neighbours::Neighbours;
use crate::density::{Density, by_rows};
use crate::manifold::{Manifold, Space};
use minvel_engine::random::{Draw, Key, Stream};
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// One kind of kernel about every centre.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// No kernel at all: the uniform law.
    Uniform,
    /// Round, of one width.
    Fixed {
        /// σ.
        width: f64,
    },
    /// As the neighbours lie.
    Local {
        /// Which of the lists of covariances.
        shape: usize,
        /// c.
        factor: f64,
    },
}

/// A kind of kernel and its share π.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Family {
    /// Which kernel.
    pub kind: Kind,
    /// Its share of the mass.
    pub share: f64,
}

/// Covariances of all centres, as Cholesky factors C: entry (a, b), b ≤ a, of all centres after one another; the diagonal
/// is kept as 1/C_aa.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    pub factors: Vec<f64>,
    /// log det C.
    pub log_det: Vec<f64>,
}

/// A normalised density of local kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalKernels {
    spaces: Vec<Space>,
    log_volume: Option<f64>,
    centres: Vec<f64>,
    pub(super) shapes: Vec<Shape>,
    pub(super) families: Vec<Family>,
    /// For each centre the highest log of its kernels, and −½ over their largest variance: together they bound them.
    bounds: Vec<(f64, f64)>,
}

/// Centres that are worked on together.
pub(super) const BLOCK: usize = 64;
/// Kernels on curved compact spaces end at this share of the injectivity radius, and are at most this much narrower: what
/// they leave beyond is e^{−26} in two dimensions.
const END: f64 = 0.9;
const NARROWER: f64 = 8.0;
/// Kernels smaller than e^{−FAR} of the largest so far are not added up.
const FAR: f64 = 42.0;

impl LocalKernels {
    /// On a manifold, without centres.
    pub(super) fn blank(manifold: &dyn Manifold) -> Self {
        let spaces =
            manifold.spaces().unwrap_or_else(|| panic!("local kernels: {manifold} is no product of known spaces"));
        let log_volume = manifold.volume().map(f64::ln);
        LocalKernels { spaces, log_volume, centres: vec![], shapes: vec![], families: vec![], bounds: vec![] }
    }

    pub(super) fn with_centres(&self, points: &[f64], of: &[usize]) -> Self {
        let m = self.ambient();
        LocalKernels { centres: of.iter().flat_map(|&i| &points[i * m..][..m]).copied().collect(), ..self.clone() }
    }

    /// The same with these shares; families without a share are dropped.
    pub(super) fn with_shares(mut self, shares: &[f64]) -> Self {
        self.families.iter_mut().zip(shares).for_each(|(family, share)| family.share = *share);
        self.families.retain(|family| family.share > 0.0);
        self.bounded()
    }

    /// The same with bounds of the kernels as they are now.
    pub(super) fn bounded(mut self) -> Self {
        let (n, total) = (self.dim(), self.centres());
        let bound = |i: usize| {
            let mut bound = (f64::NEG_INFINITY, 0.0f64);
            for family in &self.families {
                let (log, variance) = match family.kind {
                    Kind::Uniform => continue,
                    Kind::Fixed { width } => (-(n as f64) * width.ln(), width * width),
                    Kind::Local { shape, factor } => {
                        let shape = &self.shapes[shape];
                        (-shape.log_det[i] - 0.5 * n as f64 * factor.ln(), factor * shape.trace(i, total, n))
                    }
                };
                bound = (bound.0.max(log), bound.1.max(variance));
            }
            (bound.0, -0.5 / bound.1.max(f64::MIN_POSITIVE))
        };
        self.bounds = (0..total).map(bound).collect();
        self
    }

    /// The blocks that may matter at x, those with the highest bound first, each with its bound.
    fn blocks(&self, x: &[f64], blocks: &mut Vec<(f64, usize)>) {
        let m = self.ambient();
        blocks.clear();
        for (k, bounds) in self.bounds.chunks(BLOCK).enumerate() {
            let centres = self.centres[k * BLOCK * m..].chunks(m);
            let highest = bounds
                .iter()
                .zip(centres)
                .map(|((log, rate), c)| log + rate * self.chord_squared(c, x))
                .fold(f64::NEG_INFINITY, f64::max);
            blocks.push((highest, k * BLOCK));
        }
        blocks.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    }

    pub(super) fn chord_squared(&self, c: &[f64], x: &[f64]) -> f64 {
        let mut at = 0;
        let mut part = |s: &Space| {
            let own = at..at + s.ambient();
            at = own.end;
            s.chord_squared(&c[own.clone()], &x[own])
        };
        self.spaces.iter().map(&mut part).sum()
    }

    /// All numbers of the density but the shares, each list under a name, to be kept in a file.
    pub fn tensors(&self) -> Vec<(String, &[f64])> {
        let shapes = self.shapes.iter().enumerate().flat_map(|(k, shape)| {
            [(format!("shape{k}"), shape.factors.as_slice()), (format!("log-det{k}"), shape.log_det.as_slice())]
        });
        std::iter::once(("centres".to_string(), self.centres.as_slice())).chain(shapes).collect()
    }

    /// The inverse of [`LocalKernels::tensors`]; `None` where something is missing or does not fit.
    pub fn from_tensors<'a>(
        manifold: &dyn Manifold,
        families: &[Family],
        find: impl Fn(&str) -> Option<&'a [f64]>,
    ) -> Option<Self> {
        let mut this = LocalKernels { families: families.to_vec(), ..Self::blank(manifold) };
        this.centres = find("centres")?.to_vec();
        let (total, n) = (this.centres.len() / this.ambient(), this.dim());
        while let (Some(factors), Some(log_det)) =
            (find(&format!("shape{}", this.shapes.len())), find(&format!("log-det{}", this.shapes.len())))
        {
            if factors.len() != n * (n + 1) / 2 * total || log_det.len() != total {
                return None;
            }
            this.shapes.push(Shape { factors: factors.to_vec(), log_det: log_det.to_vec() });
        }
        let known = |family: &Family| match family.kind {
            Kind::Local { shape, factor } => shape < this.shapes.len() && factor > 0.0,
            Kind::Fixed { width } => width > 0.0,
            Kind::Uniform => this.log_volume.is_some(),
        };
        if families.is_empty() || families.iter().any(|family| !(0.0..=1.0).contains(&family.share)) {
            return None;
        }
        (total > 0 && this.centres.len() == total * this.ambient() && families.iter().all(known))
            .then(|| this.bounded())
    }

    /// Coordinates of the centres, row-major.
    pub fn points(&self) -> &[f64] {
        &self.centres
    }

    /// Intrinsic dimension.
    pub fn dim(&self) -> usize {
        self.spaces.iter().map(|s| s.dim()).sum()
    }

    /// Numbers of a point.
    pub fn ambient(&self) -> usize {
        self.spaces.iter().map(|s| s.ambient()).sum()
    }

    /// Number of centres.
    pub fn centres(&self) -> usize {
        self.centres.len() / self.ambient()
    }

    /// Kinds of kernels and their shares.
    pub fn families(&self) -> &[Family] {
        &self.families
    }

    /// log vol, where it is finite.
    pub(super) fn log_volume(&self) -> Option<f64> {
        self.log_volume
    }

    /// The widest kernel that stays clear of the cut locus.
    pub(super) fn widest(&self) -> f64 {
        self.spaces.iter().map(|s| s.injectivity()).fold(f64::INFINITY, f64::min) / NARROWER
    }

    /// Normal coordinates of x about c and log|dvol/dv|; infinite near the cut locus of a curved space, where kernels end.
    pub(super) fn to_normal(&self, c: &[f64], x: &[f64], v: &mut [f64]) -> f64 {
        let (mut at, mut from, mut log) = (0, 0, 0.0);
        for s in &self.spaces {
            let (m, n) = (s.ambient(), s.dim());
            let own = &mut v[from..from + n];
            log += s.to_normal(&c[at..at + m], &x[at..at + m], own);
            if matches!(s, Space::Sphere(_) | Space::So3) {
                let end = END * s.injectivity();
                if own.iter().map(|v| v * v).sum::<f64>() > end * end {
                    log = f64::INFINITY;
                }
            }
            (at, from) = (at + m, from + n);
        }
        log
    }

    /// The point with normal coordinates v about c.
    fn place(&self, c: &[f64], v: &[f64], x: &mut [f64]) {
        let (mut at, mut from) = (0, 0);
        for s in &self.spaces {
            let (m, n) = (s.ambient(), s.dim());
            s.from_normal(&c[at..at + m], &v[from..from + n], &mut x[at..at + m]);
            (at, from) = (at + m, from + n);
        }
    }

    /// Second moments of `count` neighbours about each centre, shrunk, and no wider than `widest`; points `outside` are not
    /// looked at.
    pub(super) fn add_shape(
        &mut self,
        points: &[f64],
        of: &[usize],
        neighbours: &Neighbours,
        count: usize,
        shrinkage: f64,
        widest: f64,
        outside: &dyn Fn(usize) -> bool,
    ) {
        let (m, n) = (self.ambient(), self.dim());
        let floor = (0.1 * neighbours.near).powi(2) / n as f64;
        let entries = n * (n + 1) / 2;
        let total = of.len();
        let mut shape = Shape { factors: vec![0.0; entries * total], log_det: vec![0.0; total] };
        let (mut v, mut c) = (vec![0.0; n], vec![0.0; n * n]);
        for (i, &at) in of.iter().enumerate() {
            c.fill(0.0);
            let near = neighbours.list(at).iter().map(|&j| j as usize).filter(|&j| !outside(j)).take(count);
            let mut found: f64 = 0.0;
            for j in near {
                self.to_normal(&points[at * m..][..m], &points[j * m..][..m], &mut v);
                for a in 0..n {
                    for b in 0..=a {
                        c[a * n + b] += v[a] * v[b];
                    }
                }
                found += 1.0;
            }
            let trace: f64 = (0..n).map(|a| c[a * n + a]).sum::<f64>() / found.max(1.0);
            let scale = (widest.powi(2) / trace.max(1e-300)).min(1.0);
            for a in 0..n {
                for b in 0..=a {
                    c[a * n + b] *= (1.0 - shrinkage) * scale / found.max(1.0);
                }
                c[a * n + a] += shrinkage * scale * trace / n as f64 + floor;
            }
            cholesky(&mut c, n);
            for a in 0..n {
                for b in 0..a {
                    shape.factors[(a * (a + 1) / 2 + b) * total + i] = c[a * n + b];
                }
                shape.factors[(a * (a + 1) / 2 + a) * total + i] = 1.0 / c[a * n + a];
                shape.log_det[i] += c[a * n + a].ln();
            }
        }
        self.shapes.push(shape);
    }

    /// log of each family's own density at each point, `[points, families]`.
    pub fn log_families(&self, points: &[f64], threads: usize) -> Vec<f64> {
        let (m, count) = (self.ambient(), self.families.len());
        by_rows(points.len() / m, count, threads, |first, out| {
            let mut work = Work::new(self.dim(), count);
            for (k, row) in out.chunks_mut(count).enumerate() {
                self.log_families_at(&points[(first + k) * m..][..m], &mut work, row);
            }
        })
    }

    /// log p at each point.
    pub fn log_density_of(&self, points: &[f64], threads: usize) -> Vec<f64> {
        let count = self.families.len();
        self.log_families(points, threads).chunks(count).map(|row| self.blended(row)).collect()
    }

    fn blended(&self, logs: &[f64]) -> f64 {
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        top + logs.iter().zip(&self.families).map(|(l, f)| f.share * (l - top).exp()).sum::<f64>().ln()
    }

    fn log_families_at(&self, x: &[f64], work: &mut Work, out: &mut [f64]) {
        let (m, total) = (self.ambient(), self.centres());
        work.sums.fill((f64::NEG_INFINITY, 0.0));
        let mut blocks = std::mem::take(&mut work.blocks);
        self.blocks(x, &mut blocks);
        let mut highest = f64::NEG_INFINITY;
        for &(bound, start) in &blocks {
            if bound < highest - FAR && highest > f64::NEG_INFINITY {
                break;
            }
            let len = BLOCK.min(total - start);
            self.coordinates(x, start, len, work);
            let mut shaped = usize::MAX;
            for (s, family) in self.families.iter().enumerate() {
                let top = match family.kind {
                    Kind::Uniform => continue,
                    Kind::Fixed { width } => work.fixed(len, width),
                    Kind::Local { shape, factor } => {
                        if shaped != shape {
                            work.whiten(&self.shapes[shape], start, total, len);
                            shaped = shape;
                        }
                        work.local(&self.shapes[shape].log_det[start..][..len], factor)
                    }
                };
                add_up(&mut work.sums[s], &work.logs[..len], top);
                highest = highest.max(top);
            }
        }
        work.blocks = blocks;
        let shared = (total as f64).ln() + 0.5 * self.dim() as f64 * TAU.ln();
        for ((out, family), (top, sum)) in out.iter_mut().zip(&self.families).zip(&work.sums) {
            *out = match (family.kind, self.log_volume) {
                (Kind::Uniform, Some(log_volume)) => -log_volume,
                // Kernels that are nowhere near are as good as none.
                _ if *sum == 0.0 => f64::MIN,
                _ => top + sum.ln() - shared,
            };
        }
        debug_assert_eq!(x.len(), m);
    }

    /// Normal coordinates of x about the centres of a block, one coordinate after another.
    fn coordinates(&self, x: &[f64], start: usize, len: usize, work: &mut Work) {
        let (m, n) = (self.ambient(), self.dim());
        for i in 0..len {
            work.jacobian[i] = self.to_normal(&self.centres[(start + i) * m..][..m], x, &mut work.one);
            let mut square = 0.0;
            for j in 0..n {
                work.v[j * BLOCK + i] = work.one[j];
                square += work.one[j] * work.one[j];
            }
            work.square[i] = square;
        }
    }

    /// ∂ log p in the coordinates of the points, at each point: its tangent part is what counts.
    pub fn derivative(&self, points: &[f64], threads: usize) -> Vec<f64> {
        let m = self.ambient();
        by_rows(points.len() / m, m, threads, |first, out| {
            let mut work = Work::new(self.dim(), self.families.len());
            for (k, row) in out.chunks_mut(m).enumerate() {
                self.derivative_at(&points[(first + k) * m..][..m], &mut work, row);
            }
        })
    }

    /// Σ over kernels of their part in p times −∂(½|C⁻¹v|² + log|dvol/dv|); kernels without a part are passed over.
    fn derivative_at(&self, x: &[f64], work: &mut Work, out: &mut [f64]) {
        const PART: f64 = 1e-10;
        let (m, n, total) = (self.ambient(), self.dim(), self.centres());
        let mut logs = vec![0.0; self.families.len()];
        self.log_families_at(x, work, &mut logs);
        let log_p = self.blended(&logs);
        let shared = (total as f64).ln() + 0.5 * n as f64 * TAU.ln();
        let (mut v, mut y, mut pull) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        out.fill(0.0);
        let relevant = work.blocks.iter().filter(|(bound, _)| *bound - shared > log_p - FAR);
        for i in relevant.flat_map(|&(_, start)| start..(start + BLOCK).min(total)) {
            let centre = &self.centres[i * m..][..m];
            let jacobian = self.to_normal(centre, x, &mut v);
            let square: f64 = v.iter().map(|v| v * v).sum();
            let mut all = 0.0;
            pull.fill(0.0);
            for family in &self.families {
                let (log, shape, variance) = match family.kind {
                    Kind::Uniform => continue,
                    Kind::Fixed { width } => {
                        (-0.5 * square / (width * width) - n as f64 * width.ln(), None, width * width)
                    }
                    Kind::Local { shape, factor } => {
                        let shape = &self.shapes[shape];
                        shape.solve(i, total, &v, &mut y);
                        let q: f64 = y.iter().map(|y| y * y).sum();
                        (-0.5 * q / factor - shape.log_det[i] - 0.5 * n as f64 * factor.ln(), Some(shape), factor)
                    }
                };
                let part = family.share * (log - jacobian - shared - log_p).exp();
                if part < PART {
                    continue;
                }
                all += part;
                match shape {
                    None => pull.iter_mut().zip(&v).for_each(|(p, v)| *p -= part * v / variance),
                    Some(shape) => {
                        shape.solve(i, total, &v, &mut y);
                        shape.solve_transposed(i, total, &mut y);
                        pull.iter_mut().zip(&y).for_each(|(p, y)| *p -= part * y / variance);
                    }
                }
            }
            if all > 0.0 {
                self.pull_back(centre, x, &pull, all, out);
            }
        }
    }

    /// Adds pull·∂v/∂x − part·∂log|dvol/dv|/∂x, by central differences of the coordinates.
    fn pull_back(&self, centre: &[f64], x: &[f64], pull: &[f64], part: f64, out: &mut [f64]) {
        let n = self.dim();
        let (mut to, mut up, mut down) = (x.to_vec(), vec![0.0; n], vec![0.0; n]);
        let mut start = 0;
        for space in &self.spaces {
            let own = start..start + space.ambient();
            start = own.end;
            // Inside the ball of hyperbolic space, steps shrink with the distance from its edge.
            let room = match space {
                Space::Hyperbolic(_) => 1.0 - x[own.clone()].iter().map(|x| x * x).sum::<f64>().min(0.999_999),
                _ => 1.0,
            };
            let h = 1e-6 * room;
            for j in own {
                to[j] = x[j] + h;
                let above = self.to_normal(centre, &to, &mut up);
                to[j] = x[j] - h;
                let below = self.to_normal(centre, &to, &mut down);
                to[j] = x[j];
                let slope: f64 = pull.iter().zip(&up).zip(&down).map(|((p, a), b)| p * (a - b)).sum();
                out[j] += (slope - part * (above - below)) / (2.0 * h);
            }
        }
    }

    /// Independent draws.
    pub fn sample(&self, count: usize, seed: u64) -> Vec<f64> {
        let (m, n, total) = (self.ambient(), self.dim(), self.centres());
        let mut stream = Stream::new(Key::new(seed, 0), 0);
        let (mut v, mut z) = (vec![0.0; n], vec![0.0; n]);
        let mut points = vec![0.0; count * m];
        for point in points.chunks_mut(m) {
            let mut left = stream.uniform();
            let family = self.families.iter().find(|f| {
                left -= f.share;
                left < 0.0
            });
            let family = family.or(self.families.last()).expect("a density has a family");
            let i = stream.draw(Draw::Integer(total as u32)) as usize;
            z.iter_mut().for_each(|z| *z = stream.normal());
            match family.kind {
                Kind::Uniform => self.uniform(&mut stream, point),
                Kind::Fixed { width } => {
                    v.iter_mut().zip(&z).for_each(|(v, z)| *v = width * z);
                    self.place(&self.centres[i * m..][..m], &v, point);
                }
                Kind::Local { shape, factor } => {
                    self.shapes[shape].multiply(i, total, &z, &mut v);
                    v.iter_mut().for_each(|v| *v *= factor.sqrt());
                    self.place(&self.centres[i * m..][..m], &v, point);
                }
            }
        }
        points
    }

    /// Tells `each` of every kernel its mass and the points at standard coordinates `z` (n numbers each) about its centre.
    pub fn spread(&self, z: &[f64], each: &mut dyn FnMut(f64, &[f64])) {
        let (m, n, total) = (self.ambient(), self.dim(), self.centres());
        let mut v = vec![0.0; n];
        let mut points = vec![0.0; z.len() / n * m];
        for family in &self.families {
            for i in 0..total {
                let centre = &self.centres[i * m..][..m];
                for (z, point) in z.chunks(n).zip(points.chunks_mut(m)) {
                    match family.kind {
                        Kind::Uniform => continue,
                        Kind::Fixed { width } => v.iter_mut().zip(z).for_each(|(v, z)| *v = width * z),
                        Kind::Local { shape, factor } => {
                            self.shapes[shape].multiply(i, total, z, &mut v);
                            v.iter_mut().for_each(|v| *v *= factor.sqrt());
                        }
                    }
                    self.place(centre, &v, point);
                }
                if family.kind != Kind::Uniform {
                    each(family.share / total as f64, &points);
                }
            }
        }
    }

    /// Share of the uniform law, if it has one.
    pub fn uniform_share(&self) -> Option<f64> {
        self.families.iter().find(|f| f.kind == Kind::Uniform).map(|f| f.share)
    }

    /// A point of the uniform law of a compact manifold.
    fn uniform(&self, stream: &mut Stream, point: &mut [f64]) {
        let mut at = 0;
        for s in &self.spaces {
            let own = &mut point[at..at + s.ambient()];
            match s {
                Space::Torus(_) => own.iter_mut().for_each(|x| *x = TAU * (stream.uniform() - 0.5)),
                _ => {
                    own.iter_mut().for_each(|x| *x = stream.normal());
                    let length = own.iter().map(|x| x * x).sum::<f64>().sqrt();
                    own.iter_mut().for_each(|x| *x /= length);
                }
            }
            at += s.ambient();
        }
    }
}

impl Density for LocalKernels {
    fn name(&self) -> &str {
        "local kernels"
    }

    fn log_density(&self, points: &[f64], threads: usize) -> Vec<f64> {
        self.log_density_of(points, threads)
    }
}

impl Shape {
    fn entry(&self, a: usize, b: usize, i: usize, total: usize) -> f64 {
        self.factors[(a * (a + 1) / 2 + b) * total + i]
    }

    /// Tr CCᵀ, at least the largest variance.
    fn trace(&self, i: usize, total: usize, n: usize) -> f64 {
        let square = |a: usize, b: usize| {
            let c = self.entry(a, b, i, total);
            if a == b { 1.0 / (c * c) } else { c * c }
        };
        (0..n).flat_map(|a| (0..=a).map(move |b| (a, b))).map(|(a, b)| square(a, b)).sum()
    }

    /// y = C⁻¹v.
    fn solve(&self, i: usize, total: usize, v: &[f64], y: &mut [f64]) {
        for a in 0..v.len() {
            let rest: f64 = (0..a).map(|b| self.entry(a, b, i, total) * y[b]).sum();
            y[a] = (v[a] - rest) * self.entry(a, a, i, total);
        }
    }

    /// y ← C⁻ᵀy.
    fn solve_transposed(&self, i: usize, total: usize, y: &mut [f64]) {
        let n = y.len();
        for a in (0..n).rev() {
            let rest: f64 = (a + 1..n).map(|b| self.entry(b, a, i, total) * y[b]).sum();
            y[a] = (y[a] - rest) * self.entry(a, a, i, total);
        }
    }

    /// v = Cz.
    fn multiply(&self, i: usize, total: usize, z: &[f64], v: &mut [f64]) {
        for a in 0..z.len() {
            let below: f64 = (0..a).map(|b| self.entry(a, b, i, total) * z[b]).sum();
            v[a] = below + z[a] / self.entry(a, a, i, total);
        }
    }
}

/// What one thread works with.
struct Work {
    n: usize,
    one: Vec<f64>,
    v: Vec<f64>,
    whitened: Vec<f64>,
    jacobian: Vec<f64>,
    square: Vec<f64>,
    quadratic: Vec<f64>,
    logs: Vec<f64>,
    /// Largest log so far and Σ e^{log − largest}, family by family.
    sums: Vec<(f64, f64)>,
    /// Blocks by their bound.
    blocks: Vec<(f64, usize)>,
}

impl Work {
    fn new(n: usize, families: usize) -> Self {
        let block = || vec![0.0; BLOCK];
        Work {
            n,
            one: vec![0.0; n],
            v: vec![0.0; n * BLOCK],
            whitened: vec![0.0; n * BLOCK],
            jacobian: block(),
            square: block(),
            quadratic: block(),
            logs: block(),
            sums: vec![(f64::NEG_INFINITY, 0.0); families],
            blocks: vec![],
        }
    }

    /// Logs of round kernels, and the largest.
    fn fixed(&mut self, len: usize, width: f64) -> f64 {
        let (rate, norm) = (-0.5 / (width * width), self.n as f64 * width.ln());
        let mut top = f64::NEG_INFINITY;
        for i in 0..len {
            self.logs[i] = rate * self.square[i] - norm - self.jacobian[i];
            top = top.max(self.logs[i]);
        }
        top
    }

    /// |C⁻¹v|² about each centre of the block.
    fn whiten(&mut self, shape: &Shape, start: usize, total: usize, len: usize) {
        self.quadratic[..len].fill(0.0);
        for a in 0..self.n {
            let (done, rest) = self.whitened.split_at_mut(a * BLOCK);
            let y = &mut rest[..len];
            y.copy_from_slice(&self.v[a * BLOCK..][..len]);
            for b in 0..a {
                let c = &shape.factors[(a * (a + 1) / 2 + b) * total + start..][..len];
                y.iter_mut().zip(c).zip(&done[b * BLOCK..][..len]).for_each(|((y, c), d)| *y -= c * d);
            }
            let c = &shape.factors[(a * (a + 1) / 2 + a) * total + start..][..len];
            let q = &mut self.quadratic[..len];
            y.iter_mut().zip(c).zip(q).for_each(|((y, c), q)| {
                *y *= c;
                *q += *y * *y;
            });
        }
    }

    /// Logs of local kernels, and the largest.
    fn local(&mut self, log_det: &[f64], factor: f64) -> f64 {
        let (rate, norm) = (-0.5 / factor, 0.5 * self.n as f64 * factor.ln());
        let mut top = f64::NEG_INFINITY;
        for (i, log_det) in log_det.iter().enumerate() {
            self.logs[i] = rate * self.quadratic[i] - log_det - norm - self.jacobian[i];
            top = top.max(self.logs[i]);
        }
        top
    }
}

/// Adds e^{log} of a block with largest `top` to (largest, sum).
fn add_up((largest, sum): &mut (f64, f64), logs: &[f64], top: f64) {
    if top < *largest - FAR || top == f64::NEG_INFINITY {
        return;
    }
    if top > *largest {
        *sum *= (*largest - top).exp();
        *largest = top;
    }
    let limit = *largest - FAR;
    *sum += logs.iter().filter(|l| **l > limit).map(|l| (l - *largest).exp()).sum::<f64>();
}

/// Lower Cholesky factor in place of a symmetric positive matrix given by its lower triangle.
fn cholesky(c: &mut [f64], n: usize) {
    for a in 0..n {
        for b in 0..=a {
            let sum: f64 = (0..b).map(|k| c[a * n + k] * c[b * n + k]).sum();
            let left = c[a * n + b] - sum;
            c[a * n + b] = if a == b { left.max(f64::MIN_POSITIVE).sqrt() } else { left / c[b * n + b] };
        }
    }
}
