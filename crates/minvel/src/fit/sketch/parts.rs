//! What a fit takes from a summary: rows by what they are for, standard units, and points that stand for the rows of each cell.

use super::chart::Chart;
use super::{ChosenRows, Sketch};
use crate::density::{RowParts, Sample, cholesky};
use crate::fit::standard::Standard;
use crate::manifold::Space;

/// Rows of a summary by what they are for.
pub(in crate::fit) struct Roles {
    pub train: usize,
    pub validation: usize,
    pub test: usize,
}

impl Sketch {
    /// All different points and how many rows each is, in the order of their hashes; none of many.
    pub fn all_rows(&self) -> Option<(Vec<f64>, Vec<u64>)> {
        self.all.as_ref().map(ChosenRows::points)
    }

    /// How many rows are for what.
    pub(in crate::fit) fn roles(&self) -> Roles {
        let [validation, test] = [&self.validation, &self.test].map(|rows| rows.seen() as usize);
        Roles { train: self.rows as usize - validation - test, validation, test }
    }

    /// The validation points that were kept, by how many rows each is.
    pub(in crate::fit) fn validation(&self) -> Sample<'static> {
        weighed(self.validation.points())
    }

    /// And the test points.
    pub(in crate::fit) fn test(&self) -> Sample<'static> {
        weighed(self.test.points())
    }

    /// Means and deviations of the training rows in Euclidean coordinates.
    pub(in crate::fit) fn standard(&self) -> Standard {
        let m = self.manifold.ambient();
        let rows = self.roles().train as f64;
        let euclidean =
            self.spaces.iter().flat_map(|space| vec![matches!(space, Space::Euclidean(_)); space.ambient()]);
        let (mut shift, mut variance) = (vec![0.0; m], vec![0.0; m]);
        for (j, _) in euclidean.enumerate().filter(|(_, euclidean)| *euclidean) {
            let cell = |k: usize| {
                let spread = self.cells.spread(k);
                let own = spread.covariance.map_or(0.0, |c| c[j * (j + 1) / 2 + j]) * Chart::STEP * Chart::STEP;
                (self.cells.count(k) as f64 / rows, Chart::height(self.cells.origin(k, j), spread.mean[j]), own)
            };
            let all: Vec<(f64, f64, f64)> = (0..self.cells.len()).map(cell).collect();
            let mean: f64 = all.iter().map(|(share, y, _)| share * y).sum();
            let square: f64 = all.iter().map(|(share, y, own)| share * ((y - mean).powi(2) + own)).sum();
            let unit = self.plan.chart.unit[j];
            shift[j] = self.plan.chart.centre[j] + unit * mean;
            variance[j] = unit * unit * square;
        }
        standard(shift, variance)
    }

    /// Points in standard units that stand for the training rows of each cell.
    pub(in crate::fit) fn parts(&self, standard: &Standard) -> RowParts {
        let m = self.manifold.ambient();
        let (mut points, mut stand_ins, mut rows) = (vec![], vec![], vec![]);
        for k in 0..self.cells.len() {
            let spread = self.cells.spread(k);
            let mean: Vec<f64> = (0..m).map(|j| Chart::height(self.cells.origin(k, j), spread.mean[j])).collect();
            rows.push(self.cells.count(k));
            let Some(covariance) = spread.covariance else {
                self.plan.chart.point(&self.spaces, &mean, &mut points);
                stand_ins.push(1);
                continue;
            };
            let factor = factor(&covariance, m);
            for a in 0..m {
                for sign in [1.0, -1.0] {
                    let beside = |b: usize| mean[b] + sign * (m as f64).sqrt() * Chart::STEP * factor[b * m + a];
                    let y: Vec<f64> = (0..m).map(beside).collect();
                    self.plan.chart.point(&self.spaces, &y, &mut points);
                }
            }
            stand_ins.push(2 * m);
        }
        RowParts { points: standard.apply(&points), stand_ins, rows }
    }
}

/// C with CCᵀ = S + 10⁻¹⁰ tr S, of the lower triangle of S row by row.
fn factor(lower: &[f64], m: usize) -> Vec<f64> {
    let trace: f64 = (0..m).map(|a| lower[a * (a + 1) / 2 + a]).sum();
    let mut c = vec![0.0; m * m];
    for a in 0..m {
        (0..=a).for_each(|b| c[a * m + b] = lower[a * (a + 1) / 2 + b]);
        c[a * m + a] += 1e-10 * trace;
    }
    cholesky(&mut c, m);
    c
}

/// Chosen points with the numbers of their rows as weights.
fn weighed((points, counts): (Vec<f64>, Vec<u64>)) -> Sample<'static> {
    let weights: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
    Sample::new(points, &weights, vec![])
}

/// Means and deviations of Euclidean coordinates, 0 and 1 of others.
fn standard(shift: Vec<f64>, variance: Vec<f64>) -> Standard {
    let scale = variance.iter().map(|v| if *v > 0.0 { v.sqrt() } else { 1.0 }).collect();
    Standard::known(shift, scale)
}
