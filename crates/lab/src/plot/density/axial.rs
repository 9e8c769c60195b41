//! Axes are drawn at both of their ends, on the circle or sphere that covers them.

use super::{Coordinates, Shown};
use crate::plot::Figure;
use minvel::Error;
use minvel::manifold::Sphere;

/// The figures of a density on RPⁿ: those of the even density on Sⁿ, half as high, and of data at both ends.
pub(super) fn axial(shown: Shown) -> Result<Vec<Figure>, Error> {
    let ends = |points: &[f64]| points.iter().copied().chain(points.iter().map(|x| -x)).collect::<Vec<f64>>();
    let (data, samples) = (ends(shown.data), ends(shown.samples));
    let coordinates = Coordinates::of(&Sphere(shown.m - 1));
    let mut figures = Shown { coordinates, data: &data, samples: &samples, ..shown }.figures()?;
    for figure in &mut figures {
        figure.caption += " Each axis is drawn at both of its ends, with half of its density at each.";
    }
    Ok(figures)
}
