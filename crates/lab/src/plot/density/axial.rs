//! Axes are drawn at both of their ends, on the circle or sphere that covers them.

use super::{FigureStyle, LogDensity, figures};
use crate::plot::Figure;
use minvel::manifold::Sphere;
use std::f64::consts::LN_2;

/// The figures of a density on RPⁿ: those of the even density on Sⁿ, half as high, and of data at both ends.
pub(super) fn axial(
    n: usize,
    log_density: &LogDensity,
    data: &[f64],
    samples: &[f64],
    look: &FigureStyle,
) -> Vec<Figure> {
    let half = |points: &[f64]| log_density(points).into_iter().map(|l| l - LN_2).collect::<Vec<f64>>();
    let ends = |points: &[f64]| points.iter().copied().chain(points.iter().map(|x| -x)).collect::<Vec<f64>>();
    let mut figures = figures(&Sphere(n), &half, &ends(data), &ends(samples), look);
    for figure in &mut figures {
        figure.caption += " Each axis is drawn at both of its ends, with half of its density at each.";
    }
    figures
}
