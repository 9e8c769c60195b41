//! Standard units: Euclidean coordinates are shifted and scaled to mean 0 and deviation 1, others are left alone.

use crate::Manifold;
use crate::density::Sample;
use crate::manifold::Space;
use serde::{Deserialize, Serialize};

/// Deviations, over the size of the numbers, that are those of a constant.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

/// x ↦ (x − shift)/scale, coordinate by coordinate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standard {
    shift: Vec<f64>,
    scale: Vec<f64>,
}

impl Standard {
    /// As points of a manifold ask for, by their weights.
    pub fn of(manifold: &dyn Manifold, sample: &Sample) -> Self {
        let (m, points) = (manifold.ambient(), sample.points());
        let (mut shift, mut scale) = (vec![0.0; m], vec![1.0; m]);
        let mut at = 0;
        for space in manifold.spaces().unwrap_or_default() {
            for j in at..at + space.ambient() {
                if let Space::Euclidean(_) = space {
                    let column: Vec<f64> = points.iter().skip(j).step_by(m).copied().collect();
                    shift[j] = sample.mean(&column);
                    let squares: Vec<f64> = column.iter().map(|x| (x - shift[j]).powi(2)).collect();
                    let (deviation, size) =
                        (sample.mean(&squares).sqrt(), column.iter().fold(0.0, |a: f64, x| a.max(x.abs())));
                    // a column of one number may differ from its weighted mean by rounding
                    scale[j] = if deviation > ROUNDING * size { deviation } else { 1.0 };
                }
            }
            at += space.ambient();
        }
        Standard { shift, scale }
    }

    /// With known means and deviations.
    pub(super) fn known(shift: Vec<f64>, scale: Vec<f64>) -> Self {
        Standard { shift, scale }
    }

    /// Whether it is one for points of so many numbers.
    pub fn is_for(&self, ambient: usize) -> bool {
        let usable = |scale: &f64| scale.is_finite() && *scale > 0.0;
        let numbers = self.shift.iter().all(|x| x.is_finite()) && self.scale.iter().all(usable);
        self.shift.len() == ambient && self.scale.len() == ambient && numbers
    }

    /// In standard units.
    pub fn apply(&self, points: &[f64]) -> Vec<f64> {
        let m = self.shift.len();
        points.iter().enumerate().map(|(k, x)| (x - self.shift[k % m]) / self.scale[k % m]).collect()
    }

    /// In the units of the data.
    pub fn undo(&self, points: &[f64]) -> Vec<f64> {
        let m = self.shift.len();
        points.iter().enumerate().map(|(k, x)| x * self.scale[k % m] + self.shift[k % m]).collect()
    }

    /// Derivatives per standard unit, of those per unit of the data.
    pub fn slopes(&self, derivatives: &[f64]) -> Vec<f64> {
        let m = self.scale.len();
        derivatives.iter().enumerate().map(|(k, d)| d * self.scale[k % m]).collect()
    }

    /// Derivatives per unit of the data, of those per standard unit.
    pub fn undo_slopes(&self, derivatives: &[f64]) -> Vec<f64> {
        let m = self.scale.len();
        derivatives.iter().enumerate().map(|(k, d)| d / self.scale[k % m]).collect()
    }

    /// log of a unit volume of the data in standard units: what log densities in the units of the data gain.
    pub fn log_volume(&self) -> f64 {
        -self.scale.iter().map(|s| s.ln()).sum::<f64>()
    }
}
