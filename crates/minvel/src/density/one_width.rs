//! Kernels of one width, summed by an index: on any manifold, and of any number of points.
//!
//! **Statement.** p = (1−u)·(1/N) Σ_i K(x; c_i) + u/vol. Of many points, κ of the natural kernel is the maximiser of the log
//! density of [`JUDGES`] points that are left out, by golden sections between a quarter and four times κ₀·(N/n)^{2/(d+4)}, κ₀
//! the cross-validated one of n = [`SOME`] points: the rate at which the best bandwidth shrinks.
//! In more than three dimensions kernels reach most points: there κ is looked for with [`STANDING`] of them, and carried over by the same rate.
//! **Source.** wand1995kernel for the rate. **Conventions.** Elsewhere K is the wrapped normal kernel, whose width the left-out
//! likelihood chooses. **Error.** log κ to 0.1, which costs second order; sums as those of [`LocalKernels`].
//! **Checked by** tests/densities/density_fit.rs, tests/densities/foreign.rs.

use super::kernel_density::golden;
use super::local::FEW_DIMENSIONS;
use super::{Bump, Density, KernelDensity, LocalKernels, Sample, Search};
use crate::train::Context;
use crate::{Error, Manifold};
use std::collections::HashSet;
use std::sync::Arc;

/// Kernels of one width.
#[derive(Clone, Debug)]
pub struct OneWidth(LocalKernels);

/// Points that tell where to look for κ.
const SOME: usize = 5000;
/// Points that judge it.
const JUDGES: usize = 2000;
/// Points that kernels stand on while κ is looked for, at most, in more than three dimensions.
const STANDING: usize = 20_000;

impl OneWidth {
    /// Wrapped normal kernels about at least two different points, on any manifold.
    pub fn wrapped<'p>(
        manifold: &Arc<dyn Manifold>,
        points: impl Into<Sample<'p>>,
        context: &Context,
    ) -> Result<Self, Error> {
        Ok(OneWidth(LocalKernels::plain(manifold, points, context)?.density))
    }

    /// Natural kernels about many points, in an order in which every n-th point is like all others.
    pub fn natural<'p>(
        manifold: &Arc<dyn Manifold>,
        points: impl Into<Sample<'p>>,
        search: &Search,
        context: &Context,
    ) -> Result<Self, Error> {
        let (m, sample) = (manifold.ambient(), &points.into());
        let rows = sample.rows(m);
        let every = |step: usize| sample.select(&(0..rows).step_by(step).collect::<Vec<usize>>(), m);
        let bump = Bump::new(&**manifold)?;
        let first = KernelDensity::cross_validated(bump, every(rows.div_ceil(SOME)), None, search, context)?.1;
        let rate = 2.0 / (manifold.dim() as f64 + 4.0);
        let guess = first.kappa.ln() + rate * (rows as f64 / rows.min(SOME) as f64).ln();
        let step = rows.div_ceil(JUDGES);
        let judges = every(step);
        // Groups of the judges are not looked at.
        let seen: HashSet<usize> = (0..rows).step_by(step).map(|i| sample.group(i)).collect();
        let mut others: Vec<usize> = (0..rows).filter(|&i| !seen.contains(&sample.group(i))).collect();
        let unseen = others.len();
        if manifold.dim() > FEW_DIMENSIONS && unseen > STANDING {
            others = (0..STANDING).map(|k| others[k * unseen / STANDING]).collect();
        }
        let carried = rate * (unseen.max(1) as f64 / others.len().max(1) as f64).ln();
        let others = if others.is_empty() { sample.clone() } else { sample.select(&others, m) };
        let mut kernels = LocalKernels::natural(manifold, &others, 1.0, search.uniform)?;
        let guess = guess - carried;
        let mut best = (f64::NEG_INFINITY, guess);
        golden(guess - 4f64.ln(), guess + 4f64.ln(), &mut |log_kappa| {
            kernels = kernels.clone().with_kappa(log_kappa.exp());
            let mean = judges.mean(&kernels.log_density_of(judges.points(), context)?);
            if mean > best.0 {
                best = (mean, log_kappa);
            }
            Ok(mean)
        })?;
        Ok(OneWidth(LocalKernels::natural(manifold, sample, (best.1 + carried).exp(), search.uniform)?))
    }

    /// Rows that [`OneWidth::natural`] looks at.
    pub fn work(rows: usize) -> usize {
        Search::PASSES * rows.min(SOME) + (Search::PASSES - 1) * rows.min(JUDGES)
    }
}

impl Density for OneWidth {
    fn name(&self) -> &str {
        "kernel density"
    }

    fn manifold(&self) -> Arc<dyn Manifold> {
        self.0.manifold()
    }

    fn log_density(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        self.0.log_density_of(points, context)
    }

    fn score(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        self.0.score(points, context)
    }

    fn sample(&self, count: usize, seed: u64, _: &Context) -> Result<Vec<f64>, Error> {
        Ok(self.0.sample(count, seed))
    }
}
