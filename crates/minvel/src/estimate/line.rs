//! A straight line through points, with the errors of its slope and height.
//!
//! **Statement.** min Σ w_i (y_i − a − b(x_i − x̄))²; b = S_xy/S_xx, Var b = 1/S_xx for w_i = 1/σ_i².
//! **Error.** Without known σ_i the scatter about the line stands in for them (n − 2 degrees of freedom).
//! **Checked by** tests/theory/eval.rs.

use super::Estimate;

/// y = height + slope·(x − centre).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// b.
    pub slope: Estimate,
    /// a, at the centre, where it does not depend on the slope.
    pub height: Estimate,
    /// x̄.
    pub centre: f64,
    /// Σ w_i (y_i − line)² per degree of freedom: about 1 if points of known error lie on a line.
    pub chi_square: f64,
}

impl Line {
    /// Through points of equal, unknown error.
    pub fn through(points: &[(f64, f64)]) -> Self {
        let weighted: Vec<_> = points.iter().map(|&(x, y)| (x, y, 1.0)).collect();
        let line = Self::fit(&weighted);
        let scatter = line.chi_square.sqrt();
        let scaled = |e: Estimate| Estimate { std_error: e.std_error * scatter, ..e };
        Line { slope: scaled(line.slope), height: scaled(line.height), ..line }
    }

    /// Through points (x, y ± σ) of known, independent errors.
    pub fn weighted(points: &[(f64, Estimate)]) -> Self {
        Self::fit(&points.iter().map(|&(x, y)| (x, y.mean, y.std_error.powi(-2))).collect::<Vec<_>>())
    }

    /// Through (ln x, ln y), so that the slope is the exponent b of y ∝ xᵇ.
    ///
    /// Points count equally: over decades the question is the exponent, and points so exact that curvature shows would
    /// otherwise decide alone. The error is the larger of the scatter about the line and the errors of the points.
    pub fn power(points: &[(f64, Estimate)]) -> Self {
        let logs: Vec<_> = points.iter().map(|&(x, y)| (x.ln(), y.ln())).collect();
        let line = Self::through(&logs.iter().map(|&(x, y)| (x, y.mean)).collect::<Vec<_>>());
        let spread: f64 = logs.iter().map(|(x, _)| (x - line.centre).powi(2)).sum();
        let carried = |weight: &dyn Fn(f64) -> f64| {
            logs.iter().map(|(x, y)| (weight(*x) * y.std_error).powi(2)).sum::<f64>().sqrt()
        };
        // max of a number and NaN would forget the NaN
        let larger = |a: f64, b: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) };
        let slope = larger(line.slope.std_error, carried(&|x| (x - line.centre) / spread));
        let height = larger(line.height.std_error, carried(&|_| 1.0 / logs.len() as f64));
        Line {
            slope: Estimate { std_error: slope, ..line.slope },
            height: Estimate { std_error: height, ..line.height },
            ..line
        }
    }

    /// y at x.
    pub fn at(&self, x: f64) -> f64 {
        self.height.mean + self.slope.mean * (x - self.centre)
    }

    fn fit(points: &[(f64, f64, f64)]) -> Self {
        assert!(points.len() >= 2, "line: {} points are not enough", points.len());
        let total: f64 = points.iter().map(|(_, _, w)| w).sum();
        let mean = |f: &dyn Fn(f64, f64) -> f64| points.iter().map(|&(x, y, w)| w * f(x, y)).sum::<f64>() / total;
        let (centre, height) = (mean(&|x, _| x), mean(&|_, y| y));
        let spread = total * mean(&|x, _| (x - centre).powi(2));
        assert!(spread > 0.0, "line: all points have the same x");
        let slope = total * mean(&|x, y| (x - centre) * (y - height)) / spread;
        let residual = |&(x, y, w): &(f64, f64, f64)| w * (y - height - slope * (x - centre)).powi(2);
        let count = points.len() as u64;
        let freedom = points.len() as f64 - 2.0; // none for two points: the scatter is then unknown, 0/0
        Line {
            slope: Estimate { mean: slope, std_error: spread.powf(-0.5), count },
            height: Estimate { mean: height, std_error: total.powf(-0.5), count },
            centre,
            chi_square: points.iter().map(residual).sum::<f64>() / freedom,
        }
    }
}
