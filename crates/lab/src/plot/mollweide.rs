//! Mollweide's projection of the sphere.
//!
//! **Statement.** x = (2/π) λ cos t, y = sin t, 2t + sin 2t = π sin φ: equal areas stay equal.
//! **Source.** Snyder 1987, chapter 31. **Conventions.** λ ∈ [−π, π] to the right, φ ∈ [−π/2, π/2] upwards; the sphere is
//! the ellipse |x| ≤ 2, |y| ≤ 1. **Error.** Rounding; its root near the poles.
//! **Checked by** tests/lab/plot_maps.rs.

use std::f64::consts::{FRAC_PI_2, PI};

/// From latitude and longitude (rad) to the plane: |x| ≤ 2, |y| ≤ 1.
pub fn project(latitude: f64, longitude: f64) -> (f64, f64) {
    let mut t = latitude;
    if latitude.abs() < FRAC_PI_2 - 1e-9 {
        for _ in 0..50 {
            let step = (2.0 * t + (2.0 * t).sin() - PI * latitude.sin()) / (2.0 + 2.0 * (2.0 * t).cos());
            t -= step;
            if step.abs() < 1e-12 {
                break;
            }
        }
    }
    (2.0 / PI * longitude * t.cos(), t.sin())
}

/// Back again; the longitude may lie beyond ±π, outside the map.
pub fn unproject(x: f64, y: f64) -> (f64, f64) {
    let parallel = Parallel::at(y);
    (parallel.latitude, parallel.longitude(x))
}

/// A line of the plane from left to right.
#[derive(Clone, Copy)]
pub struct Parallel {
    /// The latitude of all its points.
    pub latitude: f64,
    /// x at longitude π.
    width: f64,
}

impl Parallel {
    /// At this height of the plane.
    pub fn at(y: f64) -> Self {
        let t = y.clamp(-1.0, 1.0).asin();
        let latitude = ((2.0 * t + (2.0 * t).sin()) / PI).clamp(-1.0, 1.0).asin();
        Parallel { latitude, width: 2.0 * t.cos().max(1e-12) }
    }

    /// The longitude at x.
    pub fn longitude(&self, x: f64) -> f64 {
        PI * x / self.width
    }
}
