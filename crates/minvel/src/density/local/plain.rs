//! A plain kernel density: kernels of several widths about every point, for data that is too little for more.
//!
//! **Statement.** p = (1−u) Σ_k π_k (1/N) Σ_i K_{κ_k}(x; c_i) + u/vol, κ_k twice κ_{k−1}; π maximises L(π) = Σ_i w_i log p₋ᵢ(c_i) by
//! EM, which stops after N rounds: few points do not choose one width, they only lean towards some. It starts at shares
//! ∝ e^{L_k/2}, L_k that of one width, and a tenth in equal parts, so that sharp kernels need a reason.
//! K is the natural kernel on products of model spaces; elsewhere it is the wrapped normal one, and of one width, the best.
//! **Source.** smyth1999stacking (shares by left-out points).
//! **Conventions.** u = 0 where the volume is infinite. Repeats of a point, and points of its group, are left out with it. The widest kernel is wider
//! than the points lie apart, the narrowest about as wide as near neighbours do, so that there are no needles.
//! **Error.** On smooth laws a single best width is better by about 0.01 nats; where widths vary, stacking is better by far
//! (`minvel reproduce small`). **Checked by** tests/densities/few.rs, tests/densities/foreign.rs.

use super::LocalFit;
use super::clusters::Clusters;
use super::kernels::{Family, Kind, LocalKernels};
use super::lanes::{BLOCK, Work};
use super::neighbours::Neighbours;
use super::shares::Rows;
use crate::density::sample::{Sample, weight};
use crate::density::{Bump, KernelDensity, blend, by_rows, share};
use crate::train::Context;
use crate::{Error, Manifold};
use std::f64::consts::TAU;
use std::sync::Arc;

/// u where the volume is finite.
const UNIFORM: f64 = 0.01;
/// Widths that are tried.
const WIDTHS: usize = 24;
/// The narrowest, over the median distance to the nearest point and √n: few points would now and then ask for needles.
const NARROWEST: f64 = 1.5;

impl LocalKernels {
    /// The plain kernel density of at least two different points, and what the others say about each of them; without
    /// derivatives.
    pub fn plain<'p>(
        manifold: &Arc<dyn Manifold>,
        points: impl Into<Sample<'p>>,
        context: &Context,
    ) -> Result<LocalFit, Error> {
        let (blank, sample) = (LocalKernels::blank(manifold)?, &points.into());
        let (kernels, uniform, held_out) = match &blank.bump {
            Some(bump) => natural(bump.clone(), sample, context)?,
            None => wrapped(&blank, sample, context)?,
        };
        let mut plain = blank.about(sample);
        let rest = (uniform > 0.0).then_some(Family { kind: Kind::Uniform, share: uniform });
        let kernels = kernels.into_iter().map(|(kind, share)| Family { kind, share: (1.0 - uniform) * share });
        plain.families = rest.into_iter().chain(kernels).collect();
        Ok(LocalFit { density: plain.laid_out(), held_out, derivative: vec![] })
    }
}

impl LocalKernels {
    /// Standing on all points of a sample, near ones together.
    fn about(&self, sample: &Sample) -> Self {
        let (clusters, m) = (Clusters::rows(sample), self.ambient());
        let order = super::together(sample.points(), m, BLOCK, (0..sample.rows(m)).collect());
        let mut kernels = self.with_centres(sample.points(), &order);
        (kernels.sites[0].weights, kernels.sites[0].groups) = (clusters.weights(&order), clusters.groups(&order));
        kernels
    }

    /// Natural kernels of one κ about points, and the share u of the uniform law where the volume is finite.
    pub(in crate::density) fn natural(
        manifold: &Arc<dyn Manifold>,
        sample: &Sample,
        kappa: f64,
        uniform: f64,
    ) -> Result<Self, Error> {
        let blank = LocalKernels::blank(manifold)?;
        let mut plain = blank.about(sample);
        let rest = share(uniform, blank.log_volume()).map(|(share, _)| Family { kind: Kind::Uniform, share });
        let kernels = Family { kind: Kind::Natural { kappa }, share: 1.0 - rest.map_or(0.0, |rest| rest.share) };
        plain.families = rest.into_iter().chain([kernels]).collect();
        Ok(plain.laid_out())
    }

    /// The same with another κ of all natural kernels.
    pub(in crate::density) fn with_kappa(mut self, to: f64) -> Self {
        for family in &mut self.families {
            if let Kind::Natural { kappa } = &mut family.kind {
                *kappa = to;
            }
        }
        self.laid_out()
    }
}

/// Kernels with their shares, the share of the uniform law, and log p of each point by the others.
type Chosen = (Vec<(Kind, f64)>, f64, Vec<f64>);

/// Natural kernels of several widths.
fn natural(bump: Bump, sample: &Sample, context: &Context) -> Result<Chosen, Error> {
    let rounds = sample.rows(bump.ambient());
    let left_out = KernelDensity::left_out(bump, sample, UNIFORM, context)?;
    let count = left_out.kappas.len();
    let rows = Rows { logs: &left_out.logs, weights: sample.weights(), uniform_first: false };
    let shares = super::shares::shares(&rows, likely(&rows, count), rounds, 0.0, context)?;
    let kernels = left_out.kappas.iter().zip(&shares).filter(|(_, share)| **share > 0.0);
    let kernels = kernels.map(|(&kappa, share)| (Kind::Natural { kappa }, *share)).collect();
    let held_out = left_out.logs.chunks(count).map(|row| super::shares::log_mean(row, &shares)).collect();
    Ok((kernels, left_out.uniform, held_out))
}

/// The shares at which EM starts.
fn likely(rows: &Rows, count: usize) -> Vec<f64> {
    let of = |k: usize| rows.logs.iter().skip(k).step_by(count).enumerate();
    let sums: Vec<f64> = (0..count).map(|k| of(k).map(|(i, log)| weight(rows.weights, i) * log).sum()).collect();
    let top = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = sums.iter().map(|sum| (0.5 * (sum - top)).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| 0.9 * w / total + 0.1 / count as f64).collect()
}

/// Wrapped normal kernels of the best width.
fn wrapped(blank: &LocalKernels, sample: &Sample, context: &Context) -> Result<Chosen, Error> {
    let (n, rows, points) = (blank.dim() as f64, sample.rows(blank.ambient()), sample.points());
    let neighbours = Neighbours::of(blank, (points, sample.weights()), 1, context)?;
    let top = blank.widest().min(2.0 * neighbours.spread / n.sqrt());
    let bottom = (NARROWEST * neighbours.median / n.sqrt()).min(0.5 * top);
    let ratio = |k: usize| k as f64 / (WIDTHS - 1) as f64;
    let widths: Vec<f64> = (0..WIDTHS).map(|k| bottom * (top / bottom).powf(ratio(k))).collect();
    let all: Vec<usize> = (0..rows).collect();
    let kernels = blank.with_centres(points, &all).laid_out();
    let uniform = share(UNIFORM, blank.log_volume());
    let logs = by_rows(rows, WIDTHS, context, |first, out| {
        let mut work = Work::new(blank.dim());
        for (i, out) in (first..).zip(out.chunks_mut(WIDTHS)) {
            kernels.without(i, sample, &widths, &mut work, out);
            out.iter_mut().for_each(|log| *log = blend(*log, uniform));
        }
    })?;
    let total = |k: usize| {
        let of = logs.iter().skip(k).step_by(WIDTHS).enumerate();
        of.map(|(i, log)| sample.weight(i) * log).sum::<f64>()
    };
    let best = (0..WIDTHS).max_by(|a, b| total(*a).total_cmp(&total(*b))).expect("some width");
    let held_out = logs.iter().skip(best).step_by(WIDTHS).copied().collect();
    Ok((vec![(Kind::Fixed { width: widths[best] }, 1.0)], uniform.map_or(0.0, |(u, _)| u), held_out))
}

impl LocalKernels {
    /// log of the mean kernel of each width at centre i, about all centres elsewhere and of other groups; the centres are those
    /// of the sample, in its order.
    fn without(&self, i: usize, sample: &Sample, widths: &[f64], work: &mut Work<BLOCK>, out: &mut [f64]) {
        let (m, n, total) = (self.ambient(), self.dim() as f64, self.centres());
        let x = &self.points()[i * m..][..m];
        let mut others: Vec<(f64, f64, f64)> = vec![];
        for block in 0..total.div_ceil(BLOCK) {
            let len = BLOCK.min(total - block * BLOCK);
            self.coordinates(x, 0, block, work);
            let pairs = (block * BLOCK..).zip(work.square[..len].iter().zip(&work.factor));
            let pairs = pairs.filter(|(j, _)| sample.groups().is_empty() || sample.group(*j) != sample.group(i));
            let pairs = pairs.map(|(j, (s, f))| (*s, -f.ln(), sample.weight(j)));
            // Equal points differ by rounding only.
            others.extend(pairs.filter(|(s, j, _)| *s > 1e-24 || *j == f64::INFINITY));
        }
        for (width, out) in widths.iter().zip(out) {
            let log = |(square, log, _): &(f64, f64, f64)| -0.5 * square / (width * width) - log;
            let top = others.iter().map(log).fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = others.iter().map(|o| o.2 * (log(o) - top).exp()).sum();
            let count: f64 = others.iter().map(|o| o.2).sum();
            *out = if top > f64::NEG_INFINITY {
                top + (sum / count).ln() - n * (0.5 * TAU.ln() + width.ln())
            } else {
                f64::MIN
            };
        }
    }
}
