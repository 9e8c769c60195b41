//! Normalised densities that need no training by gradients: the rows to beat.
//!
//! **Statement.** [`Uniform`]: p = 1/vol. [`KernelDensity`]: p = (1−u)·Σ w_i K_κ(x; c_i) + u/vol. [`Mixture`]: p = (1−u)·Σ
//! π_k p(x; η_k) + u/vol, each p(·; η) of the natural exponential family of the manifold.
//! **Source.** mardia2000directional, chapters 9 and 12. **Conventions.** Log densities in nats w.r.t. the Riemannian
//! volume; u = 0 where the volume is infinite. Points are rows of numbers as [`crate::manifold`] has them, in f64.
//! **Error.** None but rounding. **Checked by** tests/density.rs, tests/density_fit.rs.

mod bump;
mod cloud;
mod draw;
mod family;
mod goodness;
mod kernel_density;
mod local;
mod mixture;
mod natural;
mod wrapped;

pub use bump::Bump;
pub use goodness::{Goodness, SteinKernel, SteinPoint, TestPlan, goodness_of_fit};
pub use kernel_density::{BandwidthSearch, KernelDensity, Search};
pub use local::{Family, Kind, LocalFit, LocalKernels, LocalSettings};
pub use mixture::{Mixture, MixtureSearch};
pub use wrapped::{WrappedKernels, WrappedMixture};

pub(crate) use crate::train::by_rows;

use crate::train::Context;
use crate::{Error, Manifold};
use std::fmt;

/// A normalised density on a manifold.
pub trait Density: fmt::Debug + Send + Sync {
    /// What it is, in a few words.
    fn name(&self) -> &str;

    /// log p at each point, in nats; `points` is row-major. An error only where the context is asked to stop.
    fn log_density(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error>;
}

/// p = 1/vol.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uniform {
    ambient: usize,
    log_volume: f64,
}

impl Uniform {
    /// Of a manifold of finite volume.
    pub fn new(manifold: &dyn Manifold) -> Option<Self> {
        manifold.volume().map(|volume| Uniform { ambient: manifold.ambient(), log_volume: volume.ln() })
    }
}

impl Density for Uniform {
    fn name(&self) -> &str {
        "uniform"
    }

    fn log_density(&self, points: &[f64], _: &Context) -> Result<Vec<f64>, Error> {
        Ok(vec![-self.log_volume; rows(points, self.ambient)])
    }
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
