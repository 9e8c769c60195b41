//! Normalised densities: log p, its gradient and its draws, on a manifold.
//!
//! **Statement.** [`EnergyDensity`]: p = e^{−E}/Z. [`LocalKernels`]: kernels that follow the data. [`Uniform`]: p = 1/vol. [`KernelDensity`]: p = (1−u)·Σ w_i K_κ(x; c_i) + u/vol. [`Mixture`]: p = (1−u)·Σ
//! π_k p(x; η_k) + u/vol, each p(·; η) of the natural exponential family of the manifold.
//! **Source.** mardia2000directional, chapters 9 and 12. **Conventions.** Log densities in nats w.r.t. the Riemannian
//! volume; u = 0 where the volume is infinite. Points are rows of numbers as [`crate::manifold`] has them, in f64.
//! **Error.** None but rounding. **Checked by** tests/densities/density.rs, tests/densities/density_fit.rs.

mod bump;
mod cloud;
mod component;
mod draw;
mod energy_density;
mod family;
mod goodness;
mod kernel_density;
mod local;
mod mixture;
mod natural;
mod one_width;
pub(crate) mod repeats;
pub(crate) mod sample;
pub(crate) mod slope;
mod wrapped;

pub use bump::Bump;
pub use energy_density::EnergyDensity;
pub use goodness::{
    Goodness, ScaleTest, SteinKernel, SteinPoint, TestPlan, TwoSample, Witness, goodness_of_fit, stein_test,
    two_sample_test,
};
pub use kernel_density::{BandwidthSearch, KernelDensity, LeftOut, Search};
pub use local::{Family, Kind, LocalFit, LocalKernels, LocalSettings};
pub use mixture::{Mixture, MixtureSearch};
pub use one_width::OneWidth;
pub use sample::Sample;
pub use wrapped::WrappedMixture;

pub(crate) use crate::train::{FEW_AT_ONCE, MANY_AT_ONCE, by_pieces, by_rows, side_by_side, summed_together};
pub(crate) use local::{FEW_DIMENSIONS, Reweighted, RowParts, Sets, cholesky, link, nearest};

use crate::train::Context;
use crate::{Error, Manifold};
use minvel_engine::random::Stream;
use minvel_engine::{Clock, Graph, State};
use std::fmt;
use std::sync::Arc;

/// A normalised density on a manifold. Points are row-major numbers of the manifold's coordinates.
pub trait Density: fmt::Debug + Send + Sync {
    /// What it is, in a few words.
    fn name(&self) -> &str;

    /// Where its points live.
    fn manifold(&self) -> Arc<dyn Manifold>;

    /// log p at each point, in nats, w.r.t. the Riemannian volume. An error only where the context is asked to stop, or a
    /// device fails.
    fn log_density(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error>;

    /// grad log p at each point, a tangent vector in the manifold's coordinates.
    ///
    /// By default from differences of log p along geodesics, (log p(exp_x(hv)) − log p(exp_x(−hv)))/2h with h = 10⁻⁵ for
    /// the projections v of the axes: the error is O(h²), and rounding errors of log p over h.
    fn score(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        slope::by_differences(&*self.manifold(), points, &|points| self.log_density(points, context), context)
    }

    /// Independent draws, the same ones for the same seed.
    fn sample(&self, count: usize, seed: u64, context: &Context) -> Result<Vec<f64>, Error>;
}

/// p = 1/vol.
#[derive(Clone, Debug)]
pub struct Uniform {
    manifold: Arc<dyn Manifold>,
    log_volume: f64,
}

impl Uniform {
    /// Of a manifold of finite volume.
    pub fn new(manifold: &Arc<dyn Manifold>) -> Option<Self> {
        manifold.volume().map(|volume| Uniform { manifold: manifold.clone(), log_volume: volume.ln() })
    }
}

impl Density for Uniform {
    fn name(&self) -> &str {
        "uniform"
    }

    fn manifold(&self) -> Arc<dyn Manifold> {
        self.manifold.clone()
    }

    fn log_density(&self, points: &[f64], _: &Context) -> Result<Vec<f64>, Error> {
        Ok(vec![-self.log_volume; rows(points, self.manifold.ambient())])
    }

    fn score(&self, points: &[f64], _: &Context) -> Result<Vec<f64>, Error> {
        Ok(vec![0.0; points.len()])
    }

    fn sample(&self, count: usize, seed: u64, context: &Context) -> Result<Vec<f64>, Error> {
        uniform_points(&*self.manifold, count, seed, context)
    }
}

/// Points of the base law of a manifold: the uniform one where its volume is finite.
fn uniform_points(manifold: &dyn Manifold, count: usize, seed: u64, context: &Context) -> Result<Vec<f64>, Error> {
    let graph = Graph::new();
    let points = manifold.sample_base(&graph, count, 0);
    let mut program = graph.try_compile::<f64>(&[points], &[], &context.options(1))?;
    program.try_run(&mut State::new(1), &[], Clock { seed, step: 0 })?;
    Ok(program.try_output(0)?.to_vec())
}

/// Draws of the uniform law with its share, and of `component` otherwise.
fn blended_draws(
    share: Option<(f64, f64)>,
    uniform: &[f64],
    ambient: usize,
    stream: &mut Stream,
    mut component: impl FnMut(&mut Stream) -> Vec<f64>,
) -> Vec<f64> {
    let mut points = Vec::with_capacity(uniform.len());
    for uniform in uniform.chunks(ambient) {
        if share.is_some_and(|(share, _)| draw::uniform(stream) < share) {
            points.extend(uniform);
        } else {
            points.extend(component(stream));
        }
    }
    points
}

/// How many points there are; panics where the numbers are not whole points.
fn rows(points: &[f64], ambient: usize) -> usize {
    assert!(points.len().is_multiple_of(ambient), "{} numbers are not points of {ambient}", points.len());
    points.len() / ambient
}

/// log((1−u)·e^a + u/vol), and a itself without a share.
fn blend(log_density: f64, share: Option<(f64, f64)>) -> f64 {
    let Some((uniform, log_volume)) = share else {
        return log_density;
    };
    let (a, b) = ((1.0 - uniform).ln() + log_density, uniform.ln() - log_volume);
    let top = a.max(b);
    top + ((a - top).exp() + (b - top).exp()).ln()
}

/// The share of the uniform law, with the logarithm of the volume, where both exist.
fn share(uniform: f64, log_volume: Option<f64>) -> Option<(f64, f64)> {
    assert!((0.0..1.0).contains(&uniform), "the share of the uniform law is in [0, 1), not {uniform}");
    log_volume.filter(|_| uniform > 0.0).map(|volume| (uniform, volume))
}
