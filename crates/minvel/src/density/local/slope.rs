//! The score of a density of local kernels.

use super::kernels::{BLOCK, FAR, Kind, LocalKernels};
use super::work::Work;
use crate::Error;
use crate::density::by_rows;
use crate::manifold::{Pairs, Space};
use crate::train::Context;
use std::f64::consts::TAU;

/// What all kernels have in common at a point.
struct Here {
    /// log N + (n/2) log 2π.
    shared: f64,
    log_p: f64,
}

/// Pulls of the kernels of another manifold, which are brought back together.
#[derive(Default)]
struct Pulls {
    centres: Vec<f64>,
    frames: Vec<f64>,
    pulls: Vec<f64>,
    parts: Vec<f64>,
}

impl Pulls {
    fn add(&mut self, kernels: &LocalKernels, i: usize, pull: &[f64], part: f64) {
        let m = kernels.ambient();
        self.centres.extend_from_slice(&kernels.centres[i * m..][..m]);
        self.frames.extend_from_slice(kernels.frame(i));
        self.pulls.extend_from_slice(pull);
        self.parts.push(part);
    }
}

impl LocalKernels {
    /// ∂ log p in the coordinates of the points, at each point: its tangent part is what counts.
    pub fn derivative(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        Ok(self.with_derivative(points, context)?.1)
    }

    /// log p and ∂ log p at each point.
    pub fn with_derivative(&self, points: &[f64], context: &Context) -> Result<(Vec<f64>, Vec<f64>), Error> {
        let m = self.ambient();
        let both = by_rows(points.len() / m, 1 + m, context, |first, out| {
            let mut work = Work::new(self.dim(), self.families.len());
            for (k, row) in out.chunks_mut(1 + m).enumerate() {
                row[0] = self.derivative_at(&points[(first + k) * m..][..m], &mut work, &mut row[1..]);
            }
        })?;
        Ok((
            both.iter().step_by(1 + m).copied().collect(),
            both.chunks(1 + m).flat_map(|row| &row[1..]).copied().collect(),
        ))
    }

    /// log p, and into `out` its derivative: Σ over kernels of their part in p times −∂(½|C⁻¹v|² + log|dvol/dv|); kernels without a part are passed over.
    fn derivative_at(&self, x: &[f64], work: &mut Work, out: &mut [f64]) -> f64 {
        let (m, n, total) = (self.ambient(), self.dim(), self.centres());
        let mut logs = vec![0.0; self.families.len()];
        self.log_families_at(x, work, &mut logs);
        let log_p = self.blended(&logs);
        let shared = (total as f64).ln() + 0.5 * n as f64 * TAU.ln();
        let here = Here { shared, log_p };
        let (mut v, mut pull) = (vec![0.0; n], vec![0.0; n]);
        let mut pulls = Pulls::default();
        out.fill(0.0);
        let blocks = std::mem::take(&mut work.blocks);
        for &(_, start) in blocks.iter().filter(|(bound, _)| *bound - shared > log_p - FAR) {
            let len = BLOCK.min(total - start);
            if self.foreign.is_some() {
                self.coordinates(x, start, len, work);
            }
            for i in start..start + len {
                let centre = &self.centres[i * m..][..m];
                let jacobian = if self.foreign.is_some() {
                    v.copy_from_slice(&work.rows[(i - start) * n..][..n]);
                    work.jacobian[i - start]
                } else {
                    self.to_normal(centre, x, &mut v)
                };
                let all = self.pull_of(i, x, &here, jacobian, &v, &mut pull, out);
                if all > 0.0 && self.foreign.is_some() {
                    pulls.add(self, i, &pull, all);
                } else if all > 0.0 {
                    self.pull_back(centre, x, &pull, all, out);
                }
            }
        }
        work.blocks = blocks;
        if let Some(foreign) = &self.foreign {
            let Pulls { centres, frames, pulls, parts } = &pulls;
            foreign.add_slopes(Pairs { centres, frames, points: x }, pulls, parts, out);
        }
        log_p
    }
    /// The part of centre i's kernels in p, and their pull on v; what natural kernels say is added to `out`.
    #[allow(clippy::too_many_arguments)] // a piece of the loop above
    fn pull_of(
        &self,
        i: usize,
        x: &[f64],
        here: &Here,
        jacobian: f64,
        v: &[f64],
        pull: &mut [f64],
        out: &mut [f64],
    ) -> f64 {
        const PART: f64 = 1e-10;
        let &Here { shared, log_p } = here;
        let (n, total, centre) = (self.dim(), self.centres(), &self.centres[i * self.ambient()..][..self.ambient()]);
        let square: f64 = v.iter().map(|v| v * v).sum();
        let (mut all, mut y) = (0.0, vec![0.0; n]);
        pull.fill(0.0);
        for (k, family) in self.families.iter().enumerate() {
            let (log, shape, variance) = match family.kind {
                Kind::Uniform => continue,
                Kind::Natural { kappa } => {
                    let part = family.share * (self.log_natural(x, k, centre) - shared - log_p).exp();
                    self.bump().add_slope(x, centre, part * kappa, out);
                    continue;
                }
                Kind::Fixed { width } => (-0.5 * square / (width * width) - n as f64 * width.ln(), None, width * width),
                Kind::Local { shape, factor } => {
                    let shape = &self.shapes[shape];
                    shape.solve(i, total, v, &mut y);
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
                None => pull.iter_mut().zip(v).for_each(|(p, v)| *p -= part * v / variance),
                Some(shape) => {
                    shape.solve(i, total, v, &mut y);
                    shape.solve_transposed(i, total, &mut y);
                    pull.iter_mut().zip(&y).for_each(|(p, y)| *p -= part * y / variance);
                }
            }
        }
        all
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
}
