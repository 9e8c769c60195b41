//! Random mixtures with known densities.
//!
//! **Statement.** p = Σ_k w_k p_k: von Mises–Fisher laws on a sphere, products of von Mises laws on a torus, normal laws in
//! flat space. **Conventions.** K is uniform on its range, w on the simplex; means are uniform (in flat space in a cube),
//! log κ and log σ uniform, axes of normal laws uniform on the rotations.
//! **Checked by** tests/lab/experiment_fit.rs.

use crate::experiment::Config;
use minvel::energy::{Energy, Gaussian, MixtureEnergy, VonMises, VonMisesFisher};
use minvel::manifold::Space;
use minvel::{Error, Manifold};
use minvel_engine::random::{Key, Stream};
use serde::Deserialize;
use std::f64::consts::TAU;
use std::sync::Arc;

/// What mixtures are drawn from.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Truths {
    components: [usize; 2],
    concentrations: [f64; 2],
    deviations: [f64; 2],
    spread: f64,
}

impl Truths {
    pub fn check(&self, config: &Config) -> Result<(), Error> {
        let demand = |key: &str, ok: bool, what: &str| if ok { Ok(()) } else { Err(config.refuse(key, what)) };
        let [few, many] = self.components;
        demand("mixtures.components", 0 < few && few <= many, "must be positive, and rise")?;
        let rising = |[low, high]: [f64; 2]| 0.0 < low && low <= high && high.is_finite();
        demand("mixtures.concentrations", rising(self.concentrations), "must be positive, and rise")?;
        demand("mixtures.deviations", rising(self.deviations), "must be positive, and rise")?;
        demand("mixtures.spread", self.spread >= 0.0 && self.spread.is_finite(), "must not be negative")
    }

    /// Whether there are such mixtures on a manifold, and grids to integrate them.
    pub fn live_on(manifold: &dyn Manifold) -> bool {
        let known = |spaces: Vec<Space>| {
            matches!(spaces.as_slice(), [Space::Sphere(1..=3) | Space::Torus(1..=3) | Space::Euclidean(1..=3)])
        };
        manifold.spaces().is_some_and(known)
    }

    /// The mixture of a seed, and how many components it has.
    pub fn draw(&self, manifold: &dyn Manifold, seed: u64) -> (usize, Arc<dyn Energy>) {
        let mut stream = Stream::new(Key::new(seed, 0), 0);
        let [few, many] = self.components;
        let count = few + (stream.uniform() * (many - few + 1) as f64) as usize;
        let weights: Vec<f64> = (0..count).map(|_| -stream.uniform().ln()).collect();
        let space = manifold.spaces().expect("checked")[0];
        let component = |weight: f64| (weight, self.component(space, &mut stream));
        (count, Arc::new(MixtureEnergy::new(weights.into_iter().map(component).collect())))
    }

    fn component(&self, space: Space, stream: &mut Stream) -> Arc<dyn Energy> {
        let between = |[low, high]: [f64; 2], u: f64| low * (high / low).powf(u);
        match space {
            Space::Sphere(n) => {
                let mean: Vec<f64> = (0..=n).map(|_| stream.normal()).collect();
                Arc::new(VonMisesFisher::new(&mean, between(self.concentrations, stream.uniform())))
            }
            Space::Torus(n) => {
                let means: Vec<f64> = (0..n).map(|_| TAU * (stream.uniform() - 0.5)).collect();
                let kappas: Vec<f64> = (0..n).map(|_| between(self.concentrations, stream.uniform())).collect();
                Arc::new(VonMises::new(&means, &kappas))
            }
            Space::Euclidean(n) => {
                let mean: Vec<f64> = (0..n).map(|_| self.spread * (2.0 * stream.uniform() - 1.0)).collect();
                let axes = frame(n, stream);
                let mut precision = vec![0.0; n * n];
                for axis in &axes {
                    let rate = between(self.deviations, stream.uniform()).powi(-2);
                    (0..n * n).for_each(|i| precision[i] += rate * (axis[i / n] * axis[i % n]));
                }
                Arc::new(Gaussian::new(&mean, &precision))
            }
            other => unreachable!("checked: no mixtures on {other:?}"),
        }
    }
}

/// Orthonormal vectors of uniform directions, by Gram and Schmidt.
fn frame(n: usize, stream: &mut Stream) -> Vec<Vec<f64>> {
    let mut axes: Vec<Vec<f64>> = vec![];
    while axes.len() < n {
        let mut axis: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
        for other in &axes {
            let along: f64 = axis.iter().zip(other).map(|(a, b)| a * b).sum();
            axis.iter_mut().zip(other).for_each(|(a, b)| *a -= along * b);
        }
        let length = axis.iter().map(|a| a * a).sum::<f64>().sqrt();
        axes.push(axis.iter().map(|a| a / length).collect());
    }
    axes
}
