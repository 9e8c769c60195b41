//! Points to be drawn as dots over colours: white, a colour that their scale does not have.

use super::scene::Dots;
use serde::{Deserialize, Serialize};

/// Points with a name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cloud {
    /// What they are.
    pub name: String,
    /// Across; on maps longitudes in degrees.
    pub x: Vec<f32>,
    /// Up; on maps latitudes in degrees.
    pub y: Vec<f32>,
}

impl Cloud {
    /// Points with a name.
    pub fn new(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let (x, y) = points.into_iter().map(|(x, y)| (x as f32, y as f32)).unzip();
        Cloud { name: name.to_string(), x, y }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.x.len().min(self.y.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The points, those that are numbers.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let pairs = self.x.iter().zip(&self.y).map(|(x, y)| (*x as f64, *y as f64));
        pairs.filter(|(x, y)| x.is_finite() && y.is_finite())
    }

    /// As dots at the places that `place` gives, in a panel whose side is `side`.
    pub(super) fn dots(&self, side: f64, place: impl Fn(f64, f64) -> Option<(f64, f64)>) -> Dots {
        let at = self.points().filter_map(|(x, y)| place(x, y)).collect();
        Dots::new(at, [255; 3], side)
    }
}
