//! Which numbers a figure shows, and with how many digits it keeps them.
//!
//! **Checked by** tests/lab/plot_density.rs.

/// From what lies around all but a thousandth of the probability to the top: below, the colours stay the same.
pub(super) fn range(logs: &[f64], weight: impl Fn(usize) -> f64) -> [f64; 2] {
    let mut heights: Vec<(f64, f64)> =
        logs.iter().enumerate().filter(|(_, l)| l.is_finite()).map(|(k, l)| (*l, weight(k))).collect();
    heights.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (Some(&(top, _)), Some(&(bottom, _))) = (heights.first(), heights.last()) else { return [0.0, 1.0] };
    let total: f64 = heights.iter().map(|(l, w)| w * (l - top).exp()).sum();
    let mut mass = 0.0;
    let rim = heights.iter().find(|(l, w)| {
        mass += w * (l - top).exp();
        mass > 0.999 * total
    });
    let low = rim.map_or(bottom, |r| r.0).min(top - 3.0) - 0.5;
    let round = |x: f64| (10.0 * x).round() / 10.0;
    [round(low.max(bottom)).min(round(top) - 0.1), round(top)]
}

/// Thousandths of a nat are more than colours and contours show; what is far below its range is put just below.
pub(super) fn stored(logs: &[f64], [low, high]: [f64; 2]) -> Vec<f32> {
    let floor = low - 0.5 * (high - low);
    logs.iter().map(|l| ((1000.0 * if l.is_nan() { floor } else { l.max(floor) }).round() / 1000.0) as f32).collect()
}

/// Six digits.
pub(super) fn significant(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let unit = 10f64.powi(5 - x.abs().log10().floor() as i32);
    (x * unit).round() / unit
}

/// A range that shows all but a few thousandths at the ends, with margins; extremes would make the rest small.
pub(super) fn spread(mut values: Vec<f64>, margin: f64) -> [f64; 2] {
    values.retain(|x| x.is_finite());
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return [-1.0, 1.0] };
    let at = |share: f64| values[(share * last as f64).round() as usize];
    let (low, high) = (at(0.002), at(0.998));
    let room = if high > low { margin * (high - low) } else { 0.5 * low.abs().max(1.0) };
    [low - room, high + room]
}

/// A third of the data along a line.
pub(super) struct Third {
    /// From where to where.
    pub from: f64,
    pub to: f64,
    /// Its median.
    pub middle: f64,
}

impl Third {
    /// Whether a value belongs to it.
    pub fn holds(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }
}

/// The lowest, the middle and the highest third of values; none where there are no values.
pub(super) fn thirds(mut values: Vec<f64>) -> Option<[Third; 3]> {
    values.retain(|x| x.is_finite());
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |sixths: usize| values[sixths * last / 6];
    Some([0, 2, 4].map(|k| Third { from: at(k), to: at(k + 2), middle: at(k + 1) }))
}

/// A number as text, with three digits.
pub(super) fn significant_digits(x: f64) -> String {
    let digits = if x == 0.0 { 0 } else { (2 - x.abs().log10().floor() as i32).clamp(0, 12) };
    format!("{x:.*}", digits as usize).replace('-', "−")
}

/// Distance of the quartiles over the shortest interval that holds a quarter, for a normal law: 0.6745/0.3186.
const QUARTILES: f64 = 2.117;

/// Bins as wide as Freedman and Diaconis advise, 2·IQR·n^(−1/3), with the IQR of a normal law as dense as the densest
/// quarter of the data where that is less: the distance of the quartiles itself would hide a narrow mode beside another.
pub(super) fn bin_count(values: &[f64], [low, high]: [f64; 2]) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return 20 };
    let quartiles = sorted[(0.75 * last as f64) as usize] - sorted[(0.25 * last as f64) as usize];
    let quarters = sorted.iter().zip(&sorted[(0.25 * last as f64) as usize..]).map(|(from, to)| to - from);
    // a quarter may be repeats of one number
    let densest = Some(quarters.fold(f64::INFINITY, f64::min)).filter(|width| *width > 0.0);
    let scale = densest.map_or(quartiles, |width| quartiles.min(QUARTILES * width));
    let width = 2.0 * scale / (sorted.len() as f64).cbrt();
    if width > 0.0 { ((high - low) / width).ceil().clamp(12.0, 100.0) as usize } else { 30 }
}
