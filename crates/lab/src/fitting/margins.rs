//! What was read: every column of the data with its unit and range, so that a wrong guess is seen.
//!
//! **Checked by** tests/lab/fit_use.rs.

use crate::plot::{Axis, Bins, Figure, Histogram, Plot};
use crate::table::Coordinates;

/// Columns that are shown at most, and side by side.
const MOST: usize = 9;
const ABREAST: usize = 3;
/// Bins of a histogram.
const BINS: usize = 36;

/// Histograms of the columns of points, in the units of the file, over the range that they have by nature.
pub fn margin_figures(coordinates: &Coordinates, points: &[f64]) -> Vec<Figure> {
    let (Ok(columns), Ok(ranges)) = (coordinates.table(points), coordinates.ranges()) else { return vec![] };
    let panels: Vec<Plot> = columns
        .iter()
        .zip(ranges)
        .take(MOST)
        .enumerate()
        .map(|(k, (column, range))| {
            let (low, high) = column.range();
            let [from, to] = range.unwrap_or(if low < high { [low, high] } else { [low - 0.5, low + 0.5] });
            let x = Axis::linear(&label(coordinates, k, &column.name, range.is_some())).over(from, to);
            // Quarters of a turn are what one looks for.
            let x = if range.is_some() { x.every(0.25 * (to - from)) } else { x };
            let bins = Bins::of("data", "data", &column.values, BINS, [from, to]);
            Plot::Histogram(Histogram { title: String::new(), x, y: Axis::linear("density"), bins, curves: vec![] })
        })
        .collect();
    let caption = format!(
        "The columns as they were read: {coordinates}. Angles are shown over the whole range that they have in this reading; \
         data that fill another one (half of it, or a small part) speak for other units, another period or axes."
    );
    let figure = |(k, plots): (usize, &[Plot])| {
        let name = if k == 0 { "columns".to_string() } else { format!("columns-{}", k + 1) };
        let plot = if let [one] = plots { one.clone() } else { Plot::Row { plots: plots.to_vec() } };
        Figure::new(&name, &caption, plot)
    };
    panels.chunks(ABREAST).enumerate().map(figure).collect()
}

/// A column's name with its unit.
fn label(coordinates: &Coordinates, column: usize, name: &str, angle: bool) -> String {
    let period = coordinates.periods.get(column).copied().flatten();
    match (period, coordinates.units.filter(|_| angle)) {
        (Some(period), _) => format!("{name} (period {period})"),
        (None, Some(units)) => format!("{name} ({units})"),
        (None, None) => name.to_string(),
    }
}
