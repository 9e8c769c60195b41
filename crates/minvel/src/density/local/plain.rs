//! A plain kernel density: one kernel about every point, for data that is too little for more.
//!
//! **Statement.** p = (1−u)·(1/N) Σ_i K_κ(x; c_i) + u/vol, κ the maximiser of Σ_i log p₋ᵢ(c_i). K is the natural kernel on
//! products of model spaces, elsewhere the wrapped normal one of width κ^{−1/2}.
//! **Conventions.** u = 0 where the volume is infinite or unknown. Repeats of a point are left out with it.
//! **Error.** Wrapped widths are in equal ratios of 1.15 or less, and at most an eighth of the injectivity radius.
//! **Checked by** tests/local_kernels.rs, tests/densities/foreign.rs.

use super::LocalFit;
use super::kernels::{BLOCK, Family, Kind, LocalKernels};
use super::neighbours::Neighbours;
use super::work::Work;
use crate::density::{Bump, KernelDensity, blend, by_rows, share};
use crate::train::Context;
use crate::{Error, Manifold};
use std::f64::consts::TAU;

/// u where the volume is finite.
const UNIFORM: f64 = 0.01;
/// Widths that are tried.
const WIDTHS: usize = 24;
/// The narrowest, over the median distance to the nearest point and √n: few points would now and then ask for needles.
const NARROWEST: f64 = 1.5;

impl LocalKernels {
    /// The plain kernel density of at least two different points, and what the others say about each of them; without
    /// derivatives.
    pub fn plain(manifold: &dyn Manifold, points: &[f64], context: &Context) -> Result<LocalFit, Error> {
        let blank = LocalKernels::blank(manifold)?;
        let (kind, uniform, held_out) = match &blank.bump {
            Some(bump) => natural(bump.clone(), points, context)?,
            None => wrapped(&blank, points, context)?,
        };
        let kernel = Family { kind, share: 1.0 - uniform };
        let rest = Family { kind: Kind::Uniform, share: uniform };
        let all: Vec<usize> = (0..points.len() / manifold.ambient()).collect();
        let mut plain = blank.with_centres(points, &super::together(points, manifold.ambient(), all));
        plain.families = if uniform > 0.0 { vec![rest, kernel] } else { vec![kernel] };
        Ok(LocalFit { density: plain.bounded(), held_out, derivative: vec![] })
    }
}

/// The best natural kernel, the share of the uniform law, and log p of each point by the others.
fn natural(bump: Bump, points: &[f64], context: &Context) -> Result<(Kind, f64, Vec<f64>), Error> {
    let (density, held_out) = KernelDensity::left_out(bump, points, UNIFORM, context)?;
    Ok((Kind::Natural { kappa: density.kappa() }, density.uniform(), held_out))
}

/// The same with wrapped normal kernels.
fn wrapped(blank: &LocalKernels, points: &[f64], context: &Context) -> Result<(Kind, f64, Vec<f64>), Error> {
    let (n, rows) = (blank.dim() as f64, points.len() / blank.ambient());
    let neighbours = Neighbours::of(blank, points, 1, context)?;
    let top = blank.widest().min(2.0 * neighbours.spread / n.sqrt());
    let bottom = (NARROWEST * neighbours.median / n.sqrt()).min(0.5 * top);
    let ratio = |k: usize| k as f64 / (WIDTHS - 1) as f64;
    let widths: Vec<f64> = (0..WIDTHS).map(|k| bottom * (top / bottom).powf(ratio(k))).collect();
    let all: Vec<usize> = (0..rows).collect();
    let kernels = blank.with_centres(points, &all);
    let uniform = share(UNIFORM, blank.log_volume());
    let logs = by_rows(rows, WIDTHS, context, |first, out| {
        let mut work = Work::new(blank.dim(), 0);
        for (i, out) in (first..).zip(out.chunks_mut(WIDTHS)) {
            kernels.without(i, &widths, &mut work, out);
            out.iter_mut().for_each(|log| *log = blend(*log, uniform));
        }
    })?;
    let total = |k: usize| logs.iter().skip(k).step_by(WIDTHS).sum::<f64>();
    let best = (0..WIDTHS).max_by(|a, b| total(*a).total_cmp(&total(*b))).expect("some width");
    let held_out = logs.iter().skip(best).step_by(WIDTHS).copied().collect();
    Ok((Kind::Fixed { width: widths[best] }, uniform.map_or(0.0, |(u, _)| u), held_out))
}

impl LocalKernels {
    /// log of the mean kernel of each width at centre i, about all centres elsewhere.
    fn without(&self, i: usize, widths: &[f64], work: &mut Work, out: &mut [f64]) {
        let (m, n, total) = (self.ambient(), self.dim() as f64, self.centres());
        let x = &self.centres[i * m..][..m];
        let mut others: Vec<(f64, f64)> = vec![];
        for start in (0..total).step_by(BLOCK) {
            let len = BLOCK.min(total - start);
            self.coordinates(x, start, len, work);
            let pairs = work.square[..len].iter().zip(&work.jacobian);
            // Equal points differ by rounding only.
            others.extend(pairs.map(|(s, j)| (*s, *j)).filter(|(s, j)| *s > 1e-24 || *j == f64::INFINITY));
        }
        for (width, out) in widths.iter().zip(out) {
            let log = |(square, log): &(f64, f64)| -0.5 * square / (width * width) - log;
            let top = others.iter().map(log).fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = others.iter().map(|o| (log(o) - top).exp()).sum();
            let count = others.len() as f64;
            *out = if top > f64::NEG_INFINITY {
                top + (sum / count).ln() - n * (0.5 * TAU.ln() + width.ln())
            } else {
                f64::MIN
            };
        }
    }
}
