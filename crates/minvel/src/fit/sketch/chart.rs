//! Points as whole numbers: a lattice in coordinates that need no cut.
//!
//! **Statement.** A point is y ∈ R^m, and u = 2⁶² + round(2³² y): Rⁿ: y = (x − c)/s; Sⁿ: y = x; RPⁿ and SO(3): of x and −x the one
//! whose last number that is not zero is positive; Tⁿ: y is the angle; Hⁿ: y = 2x/(1 − |x|²).
//! **Source.** None: sums of whole numbers do not depend on their order. **Conventions.** c is the median and s, a power of two, about the
//! spread of an example of the rows: all parts of the rows must have the same. **Error.** 2⁻³³ of a unit in each y; rows farther away than 2²⁹ units are
//! refused. **Checked by** its own tests.

use crate::manifold::Space;
use serde::{Deserialize, Serialize};

/// log₂ of the lattice points of a unit, and of the place of y = 0.
const FINE: u32 = 32;
const MIDDLE: u64 = 1 << 62;
/// The farthest place, in units: farther rows would leave no room for sums.
const FAR: f64 = (1u64 << 29) as f64;

/// How points are whole numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Chart {
    /// c and s of each coordinate: 0 and 1 but on Rⁿ.
    pub centre: Vec<f64>,
    pub unit: Vec<f64>,
}

impl Chart {
    /// A step of the lattice.
    pub const STEP: f64 = 1.0 / (1u64 << FINE) as f64;

    /// With the units that an example of the rows asks for.
    pub fn of(spaces: &[Space], example: &[f64]) -> Chart {
        let m: usize = spaces.iter().map(|space| space.ambient()).sum();
        let (mut centre, mut unit, mut at) = (vec![0.0; m], vec![1.0; m], 0);
        for space in spaces {
            for j in at..at + space.ambient() {
                if let Space::Euclidean(_) = space {
                    let mut column: Vec<f64> = example.iter().skip(j).step_by(m).copied().collect();
                    column.sort_by(f64::total_cmp);
                    (centre[j], unit[j]) = scale(&column);
                }
            }
            at += space.ambient();
        }
        Chart { centre, unit }
    }

    /// Whether it is one for points of so many numbers.
    pub fn is_for(&self, m: usize) -> bool {
        let sound = |unit: &f64| unit.is_finite() && *unit > 0.0;
        self.centre.len() == m
            && self.unit.len() == m
            && self.centre.iter().all(|c| c.is_finite())
            && self.unit.iter().all(sound)
    }

    /// Of all ways to write a point one; equal points have equal bits then.
    pub fn settle(spaces: &[Space], point: &mut [f64]) {
        let mut at = 0;
        for space in spaces {
            let own = &mut point[at..at + space.ambient()];
            if matches!(space, Space::Projective(_) | Space::So3)
                && own.iter().rev().find(|x| **x != 0.0).is_some_and(|last| *last < 0.0)
            {
                own.iter_mut().for_each(|x| *x = -*x);
            }
            own.iter_mut().for_each(|x| *x += 0.0); // −0 is 0
            at += space.ambient();
        }
    }

    /// The place of a settled point; the number of the coordinate that is too far away otherwise.
    pub fn place(&self, spaces: &[Space], point: &[f64], out: &mut [u64]) -> Result<(), usize> {
        let mut at = 0;
        for space in spaces {
            let own = at..at + space.ambient();
            let stretch = match space {
                Space::Hyperbolic(_) => 2.0 / (1.0 - point[own.clone()].iter().map(|x| x * x).sum::<f64>()),
                _ => 1.0,
            };
            for j in own.clone() {
                let y = stretch * (point[j] - self.centre[j]) / self.unit[j];
                if y.is_nan() || y.abs() > FAR {
                    return Err(j);
                }
                let steps = (y / Self::STEP).round() as i64;
                out[j] = MIDDLE.wrapping_add_signed(steps);
            }
            at = own.end;
        }
        Ok(())
    }

    /// y at so many lattice points from a place.
    pub fn height(place: u64, beyond: f64) -> f64 {
        (place.wrapping_sub(MIDDLE) as i64 as f64 + beyond) * Self::STEP
    }

    /// The point of the manifold at, or nearest to, y.
    pub fn point(&self, spaces: &[Space], y: &[f64], out: &mut Vec<f64>) {
        let mut at = 0;
        for space in spaces {
            let own = at..at + space.ambient();
            let square: f64 = y[own.clone()].iter().map(|y| y * y).sum();
            let factor = match space {
                Space::Sphere(_) | Space::Projective(_) | Space::So3 => 1.0 / square.sqrt(),
                Space::Hyperbolic(_) => 1.0 / (1.0 + (1.0 + square).sqrt()),
                Space::Euclidean(_) | Space::Torus(_) => 1.0,
            };
            out.extend(own.clone().map(|j| self.centre[j] + self.unit[j] * (factor * y[j])));
            at = own.end;
        }
    }
}

/// The median of numbers in order, and a power of two about half their interquartile range; where that is nothing, half of the range.
fn scale(sorted: &[f64]) -> (f64, f64) {
    let at = |share: f64| sorted.get((share * sorted.len() as f64) as usize).copied().unwrap_or(0.0);
    let range = sorted.last().copied().unwrap_or(0.0) - sorted.first().copied().unwrap_or(0.0);
    let spread = 0.5 * if at(0.75) > at(0.25) { at(0.75) - at(0.25) } else { range };
    let unit = spread.log2().round().exp2();
    (at(0.5), if unit.is_normal() { unit } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::Bump;
    use crate::manifold::parse;
    use minvel_engine::random::{Key, Stream};

    #[test]
    fn a_place_is_the_point_up_to_half_a_step_of_the_lattice() {
        for name in [
            "euclidean:2",
            "sphere:2",
            "projective:3",
            "torus:2",
            "hyperbolic:3",
            "so3",
            "product(sphere:1,euclidean:2)",
        ] {
            let (manifold, mut stream) = (parse(name).unwrap(), Stream::new(Key::new(1, 0), 9));
            let (spaces, bump, m) = (manifold.spaces().unwrap(), Bump::new(&*manifold).unwrap(), manifold.ambient());
            let rows: Vec<f64> = (0..200).flat_map(|_| bump.sample(&manifold.origin(), 0.7, &mut stream)).collect();
            let chart = Chart::of(&spaces, &rows);
            assert!(chart.is_for(m) && !chart.is_for(m + 1));
            for row in rows.chunks(m) {
                let (mut point, mut place, mut back) = (row.to_vec(), vec![0; m], vec![]);
                Chart::settle(&spaces, &mut point);
                chart.place(&spaces, &point, &mut place).unwrap();
                let y: Vec<f64> = place.iter().map(|u| Chart::height(*u, 0.0)).collect();
                chart.point(&spaces, &y, &mut back);
                let off = point.iter().zip(&back).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                // Half a step in each coordinate, in units of at most 2, and what putting it on the manifold adds.
                assert!(off <= 2.0 * 4.0 * f64::powi(2.0, -33), "{name}: {off:e}");
            }
        }
    }

    #[test]
    fn rows_beyond_the_lattice_are_named_by_their_coordinate() {
        let spaces = [Space::Euclidean(2)];
        let chart = Chart::of(&spaces, &[0.0, 0.0, 1.0, 10.0, 2.0, 20.0, 3.0, 30.0]);
        let mut place = [0; 2];
        assert_eq!(chart.place(&spaces, &[1e8, 1.0], &mut place), Ok(()));
        assert_eq!(chart.place(&spaces, &[1.0, 1e12], &mut place), Err(1));
        assert_eq!(chart.place(&spaces, &[f64::NAN, 1.0], &mut place), Err(0));
    }
}
