//! Random laws with known densities, on every model space.
//!
//! **Statement.** p = Σ_k w_k K_{κ_k}(x; c_k), natural kernels ([`Bump`]) of width about 1/√κ. Smooth: 3 wide ones. Multimodal: 8 that are
//! apart. Rough: 40 whose widths differ by a factor of ten. Heavy-tailed: 3 places, at each six kernels, each twice as wide and half as
//! heavy as the one before. **Conventions.** Centres are uniform, or in spaces without volume a wide kernel's; log κ is uniform on
//! its range, and w on the simplex. **Checked by** tests/lab/experiment_fit.rs.

use minvel::density::Bump;
use minvel::{Error, Manifold};
use minvel_engine::random::{Key, Stream};
use serde::Deserialize;

/// A kind of law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Smooth,
    Multimodal,
    Rough,
    HeavyTailed,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Smooth => "smooth",
            Kind::Multimodal => "multimodal",
            Kind::Rough => "rough",
            Kind::HeavyTailed => "heavy-tailed",
        }
    }

    /// How many places there are, and the least and largest κ there.
    fn places(self) -> (usize, [f64; 2]) {
        match self {
            Kind::Smooth => (3, [2.0, 10.0]),
            Kind::Multimodal => (8, [30.0, 120.0]),
            Kind::Rough => (40, [30.0, 3000.0]),
            Kind::HeavyTailed => (3, [300.0, 1000.0]),
        }
    }

    /// Kernels at a place.
    fn kernels(self) -> usize {
        if self == Kind::HeavyTailed { 6 } else { 1 }
    }
}

/// κ of the centres: uniform where the volume is finite, else with a deviation of about two.
const UNIFORM: f64 = 1e-3;
const APART: f64 = 0.25;

/// A law.
pub(super) struct Truth {
    bump: Bump,
    parts: Vec<Part>,
}

struct Part {
    share: f64,
    kappa: f64,
    centre: Vec<f64>,
}

impl Truth {
    /// The law of a kind and a seed; an error where a manifold has no natural kernels.
    pub fn new(manifold: &dyn Manifold, kind: Kind, seed: u64) -> Result<Truth, Error> {
        let bump = Bump::new(manifold)?;
        let mut stream = Stream::new(Key::new(seed, 0), 0);
        let (count, [low, high]) = kind.places();
        let spread = if manifold.volume().is_some() { UNIFORM } else { APART };
        let mut parts = vec![];
        for _ in 0..count {
            let centre = bump.sample(&manifold.origin(), spread, &mut stream);
            let (mut share, mut kappa) = (-stream.uniform().ln(), low * (high / low).powf(stream.uniform()));
            for _ in 0..kind.kernels() {
                parts.push(Part { share, kappa, centre: centre.clone() });
                (share, kappa) = (0.5 * share, 0.25 * kappa);
            }
        }
        let total: f64 = parts.iter().map(|part| part.share).sum();
        parts.iter_mut().for_each(|part| part.share /= total);
        Ok(Truth { bump, parts })
    }

    /// Points of it, row-major.
    pub fn points(&self, count: usize, seed: u64) -> Vec<f64> {
        let mut stream = Stream::new(Key::new(seed, 0), 0);
        let mut all = vec![];
        for _ in 0..count {
            let mut left = stream.uniform();
            let part = self.parts.iter().find(|part| {
                left -= part.share;
                left < 0.0
            });
            let Part { kappa, centre, .. } = part.unwrap_or(&self.parts[0]);
            all.extend(self.bump.sample(centre, *kappa, &mut stream));
        }
        all
    }

    /// log p at points.
    pub fn log_density(&self, points: &[f64]) -> Vec<f64> {
        let at = |x: &[f64]| {
            let logs = self.parts.iter().map(|p| p.share.ln() + self.bump.log_density(x, &p.centre, p.kappa));
            let logs: Vec<f64> = logs.collect();
            let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            top + logs.iter().map(|log| (log - top).exp()).sum::<f64>().ln()
        };
        points.chunks(self.bump.ambient()).map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minvel::estimate::Estimate;
    use minvel::manifold::parse;

    const KINDS: [Kind; 4] = [Kind::Smooth, Kind::Multimodal, Kind::Rough, Kind::HeavyTailed];

    #[test]
    fn every_law_integrates_to_one() {
        for (name, resolution) in [("sphere:1", 4000), ("sphere:2", 400), ("torus:2", 400), ("euclidean:2", 1700)] {
            let manifold = parse(name).unwrap();
            let grid = manifold.grid(resolution, 14.0).unwrap();
            for kind in KINDS {
                let law = Truth::new(&*manifold, kind, 7).unwrap();
                let logs = law.log_density(&grid.points);
                let excess = grid.weights.iter().zip(logs).map(|(w, l)| w * l.exp()).sum::<f64>() - 1.0;
                assert!(excess.abs() < 1e-6, "{name}, {}: {excess:+.1e}", kind.name());
            }
        }
    }

    /// −E log p by draws is the entropy: that of draws of another seed is the same, that of another law is not.
    #[test]
    fn points_follow_their_law_in_many_dimensions_too() {
        for name in ["sphere:5", "torus:7", "euclidean:8", "so3", "hyperbolic:2"] {
            let manifold = parse(name).unwrap();
            let law = Truth::new(&*manifold, Kind::Multimodal, 7).unwrap();
            let other = Truth::new(&*manifold, Kind::Multimodal, 8).unwrap();
            let mean = |of: &Truth, seed: u64| Estimate::of(of.log_density(&law.points(4000, seed)));
            let (one, two, off) = (mean(&law, 1), mean(&law, 2), mean(&other, 1));
            assert!(one.z(two).abs() < 4.0, "{name}: {one} and {two}");
            assert!(off.mean < one.mean - 4.0 * one.std_error, "{name}: {off} of another law, {one}");
        }
    }
}
