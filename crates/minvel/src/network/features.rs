//! What a network is fed: functions f(x) of a point.
//!
//! **Statement.** f = s·g(x), followed by cos and sin of Bf for random Fourier features; g is the point itself, the
//! features of a manifold ([`Manifold::features`]), or cos kθ_i, sin kθ_i for k = 1 … K on the torus.
//! **Source.** docs/math §3.4, §3.7 (latent scaling); tancik2020fourier. **Conventions.** B is `[features, count]`, of
//! independent N(0, scale²), or of deviations that fall by a spread from column to column, fixed by its own seed: the same for all replicas, and not learnt.
//! **Error.** None. **Checked by** tests/theory/energy_laws.rs.

use crate::manifold::{Manifold, Space};
use minvel_engine::random::{Draw, Key, Stream};
use minvel_engine::{Expr, Graph, concat};
use std::sync::Arc;

/// The input of a network as a function of a point.
#[derive(Clone, Debug)]
pub struct Features {
    coordinates: usize,
    base: Base,
    scale: f64,
    fourier: Option<Fourier>,
}

#[derive(Clone, Debug)]
enum Base {
    Point,
    Manifold(Arc<dyn Manifold>),
    Harmonics(usize),
}

#[derive(Clone, Copy, Debug)]
struct Fourier {
    count: usize,
    scale: f64,
    seed: u64,
    /// The last column has this many times less.
    spread: f64,
}

impl Features {
    /// f(x) = x, of the given number of coordinates.
    pub fn of_point(coordinates: usize) -> Self {
        Features { coordinates, base: Base::Point, scale: 1.0, fourier: None }
    }

    /// The features of a manifold: angles as cos and sin, quaternions up to sign.
    pub fn of(manifold: Arc<dyn Manifold>) -> Self {
        Features { base: Base::Manifold(manifold.clone()), ..Self::of_point(manifold.ambient()) }
    }

    /// cos kθ_i and sin kθ_i for k = 1 … `highest` of n angles.
    pub fn of_angles(n: usize, highest: usize) -> Self {
        assert!(highest > 0, "harmonics begin with 1");
        Features { base: Base::Harmonics(highest), ..Self::of_point(n) }
    }

    /// All of it times a factor: √m for latents on S^{m−1} in the paper's networks.
    pub fn scaled(mut self, factor: f64) -> Self {
        self.scale *= factor;
        self
    }

    /// f becomes (f, cos Bf, sin Bf) with B of `count` columns of deviation `scale`.
    pub fn with_fourier(mut self, count: usize, scale: f64, seed: u64) -> Self {
        self.fourier = Some(Fourier { count, scale, seed, spread: 1.0 });
        self
    }

    /// The deviations of the columns of B fall geometrically from `scale` to `scale`/`spread`; 1: all are the same.
    pub fn over_octaves(mut self, spread: f64) -> Self {
        assert!(spread >= 1.0, "features: a spread of {spread}");
        self.fourier = self.fourier.map(|fourier| Fourier { spread, ..fourier });
        self
    }

    /// Coordinates of a point.
    pub fn coordinates(&self) -> usize {
        self.coordinates
    }

    /// Number of features.
    pub fn count(&self) -> usize {
        let graph = Graph::new();
        self.apply(graph.input_rows("x", 1, [self.coordinates])).shape().features()
    }

    /// f(x), `rows × [m]` → `rows × [count]`.
    pub fn apply<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let f = match &self.base {
            Base::Point => x,
            Base::Manifold(manifold) => manifold.features(x),
            Base::Harmonics(highest) => {
                let waves = (1..=*highest).flat_map(|k| [(k as f64 * x).cos(), (k as f64 * x).sin()]);
                concat(&waves.collect::<Vec<Expr>>(), -1)
            }
        };
        let f = if self.scale == 1.0 { f } else { f * self.scale };
        let Some(Fourier { count, scale, seed, spread }) = self.fourier else { return f };
        let width = f.shape().features();
        let normals = Stream::new(Key::new(seed, 0), 0).samples(Draw::Normal);
        let last = count.max(2) as f64 - 1.0;
        // with a spread of 1 the factor is 1 exactly
        let deviation = |k: usize| scale * spread.powf(-((k % count) as f64) / last);
        let b: Vec<f64> = normals.enumerate().map(|(k, z)| deviation(k) * z).take(width * count).collect();
        let phase = f.matmul(f.graph().table(&b, [width, count]));
        concat(&[f, phase.cos(), phase.sin()], -1)
    }
}

/// What networks see of a code: features of the manifold, on a sphere times √m so that coordinates are of order one.
pub fn latent_features(latent: &Arc<dyn Manifold>) -> Features {
    let features = Features::of(latent.clone());
    match latent.spaces().as_deref() {
        Some([Space::Sphere(_)]) => features.scaled((latent.ambient() as f64).sqrt()),
        _ => features,
    }
}
