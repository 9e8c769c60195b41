//! The kernels themselves, and their density.

use super::shape::Shape;
use super::work::{Work, add_up};
use crate::Error;
use crate::density::{Bump, Density, by_rows, slope};
use crate::manifold::{InNumbers, Manifold, Space};
use crate::train::Context;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;
use std::sync::Arc;

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
    /// The natural kernel of a product of model spaces ([`Bump`]), normalised at any width.
    Natural {
        /// κ.
        kappa: f64,
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

/// A normalised density of local kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalKernels {
    pub(super) dim: usize,
    pub(super) ambient: usize,
    /// The model spaces that the manifold is a product of; none where it is another one.
    pub(super) spaces: Vec<Space>,
    /// Any other manifold.
    pub(super) foreign: Option<Arc<InNumbers>>,
    pub(super) log_volume: Option<f64>,
    pub(super) centres: Vec<f64>,
    /// A frame at each centre, on other manifolds.
    pub(super) frames: Vec<f64>,
    pub(super) shapes: Vec<Shape>,
    pub(super) families: Vec<Family>,
    /// Where there are model spaces.
    pub(super) bump: Option<Bump>,
    /// log N(κ) of families of natural kernels, 0 of others.
    normalisers: Vec<f64>,
    /// For each centre the highest log of its kernels, and −½ over their largest variance: together they bound them.
    bounds: Vec<(f64, f64)>,
}

/// Centres that are worked on together.
pub(super) const BLOCK: usize = 64;
/// Kernels smaller than e^{−FAR} of the largest so far are not added up.
pub(super) const FAR: f64 = 42.0;

impl LocalKernels {
    /// On a manifold, without centres; an error where its geometry contradicts itself.
    pub(super) fn blank(manifold: &Arc<dyn Manifold>) -> Result<Self, Error> {
        let (spaces, bump, foreign) = match manifold.spaces() {
            Some(spaces) => (spaces, Some(Bump::new(&**manifold)?), None),
            None => (vec![], None, Some(Arc::new(InNumbers::new(manifold)?))),
        };
        Ok(LocalKernels {
            dim: manifold.dim(),
            ambient: manifold.ambient(),
            spaces,
            foreign,
            log_volume: manifold.volume().map(f64::ln),
            centres: vec![],
            frames: vec![],
            shapes: vec![],
            families: vec![],
            bump,
            normalisers: vec![],
            bounds: vec![],
        })
    }

    pub(super) fn with_centres(&self, points: &[f64], of: &[usize]) -> Self {
        let m = self.ambient();
        self.standing_on(of.iter().flat_map(|&i| &points[i * m..][..m]).copied().collect())
    }

    fn standing_on(&self, centres: Vec<f64>) -> Self {
        let frames = self.foreign.as_ref().map(|m| m.frames(&centres)).unwrap_or_default();
        LocalKernels { centres, frames, ..self.clone() }
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
        let normaliser = |family: &Family| match family.kind {
            Kind::Natural { kappa } => self.bump().log_normaliser(kappa),
            _ => 0.0,
        };
        self.normalisers = self.families.iter().map(normaliser).collect();
        let bound = |i: usize| {
            let mut bound = (f64::NEG_INFINITY, 0.0f64);
            for (family, normaliser) in self.families.iter().zip(&self.normalisers) {
                let (log, variance) = match family.kind {
                    Kind::Uniform => continue,
                    // t is at most −⅛ of the squared chord on every space.
                    Kind::Natural { kappa } => (0.5 * n as f64 * TAU.ln() - normaliser, 4.0 / kappa),
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
        let mut squares = [0.0; BLOCK];
        for (k, bounds) in self.bounds.chunks(BLOCK).enumerate() {
            let squares = &mut squares[..bounds.len()];
            self.chords_squared(&self.centres[k * BLOCK * m..][..bounds.len() * m], x, squares);
            let highest = bounds
                .iter()
                .zip(squares)
                .map(|((log, rate), square)| log + rate * *square)
                .fold(f64::NEG_INFINITY, f64::max);
            blocks.push((highest, k * BLOCK));
        }
        blocks.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
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
        manifold: &Arc<dyn Manifold>,
        families: &[Family],
        find: impl Fn(&str) -> Option<&'a [f64]>,
    ) -> Option<Self> {
        let centres = find("centres")?.to_vec();
        let total = centres.len() / manifold.ambient();
        if total == 0 || centres.len() != total * manifold.ambient() {
            return None;
        }
        let mut this = Self::blank(manifold).ok()?.standing_on(centres);
        this.families = families.to_vec();
        let n = this.dim();
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
            Kind::Natural { kappa } => kappa > 0.0 && kappa.is_finite() && this.bump.is_some(),
            Kind::Uniform => this.log_volume.is_some(),
        };
        if families.is_empty() || families.iter().any(|family| !(0.0..=1.0).contains(&family.share)) {
            return None;
        }
        families.iter().all(known).then(|| this.bounded())
    }

    /// Coordinates of the centres, row-major.
    pub fn points(&self) -> &[f64] {
        &self.centres
    }

    /// Intrinsic dimension.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Numbers of a point.
    pub fn ambient(&self) -> usize {
        self.ambient
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

    /// The natural kernel; panics where there is none, and no density has one then.
    pub(super) fn bump(&self) -> &Bump {
        self.bump.as_ref().expect("natural kernels stand on model spaces")
    }

    /// log of each family's own density at each point, `[points, families]`.
    pub fn log_families(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let (m, count) = (self.ambient(), self.families.len());
        by_rows(points.len() / m, count, context, |first, out| {
            let mut work = Work::new(self.dim(), count);
            for (k, row) in out.chunks_mut(count).enumerate() {
                self.log_families_at(&points[(first + k) * m..][..m], &mut work, row);
            }
        })
    }

    /// log p at each point.
    pub fn log_density_of(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let count = self.families.len();
        Ok(self.log_families(points, context)?.chunks(count).map(|row| self.blended(row)).collect())
    }

    pub(super) fn blended(&self, logs: &[f64]) -> f64 {
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        top + logs.iter().zip(&self.families).map(|(l, f)| f.share * (l - top).exp()).sum::<f64>().ln()
    }

    pub(super) fn log_families_at(&self, x: &[f64], work: &mut Work, out: &mut [f64]) {
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
                    Kind::Natural { .. } => self.natural(x, s, start, &mut work.logs[..len]),
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

    /// Logs of natural kernels about the centres of a block, and the largest; 2π counts as in those of normal kernels.
    fn natural(&self, x: &[f64], family: usize, start: usize, logs: &mut [f64]) -> f64 {
        let m = self.ambient();
        for (i, log) in logs.iter_mut().enumerate() {
            *log = self.log_natural(x, family, &self.centres[(start + i) * m..][..m]);
        }
        logs.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// log of a natural kernel about c, times (2π)^{n/2}.
    pub(super) fn log_natural(&self, x: &[f64], family: usize, c: &[f64]) -> f64 {
        let Kind::Natural { kappa } = self.families[family].kind else { unreachable!("a family of natural kernels") };
        kappa * self.bump().statistic(x, c) - self.normalisers[family] + 0.5 * self.dim() as f64 * TAU.ln()
    }
}

impl Density for LocalKernels {
    fn name(&self) -> &str {
        "local kernels"
    }

    fn manifold(&self) -> Arc<dyn Manifold> {
        self.foreign.as_ref().map_or_else(|| Space::product(&self.spaces), |other| other.manifold.clone())
    }

    fn log_density(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        self.log_density_of(points, context)
    }

    fn score(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let derivative = self.derivative(points, context)?;
        slope::gradient(&*self.manifold(), points, &derivative, context)
    }

    fn sample(&self, count: usize, seed: u64, _: &Context) -> Result<Vec<f64>, Error> {
        Ok(self.sample(count, seed))
    }
}
