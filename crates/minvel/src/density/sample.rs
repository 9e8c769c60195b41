//! Points with what each of them counts, and which belong together.
//!
//! **Statement.** A sample is points x_i with weights w_i > 0 and groups g_i. Its mean of f is Σ w_i f(x_i)/Σ w_i, with the variance
//! Σ_g (Σ_{i∈g} w_i (f(x_i) − mean))²/(Σ w_i)² · G/(G − 1), G the number of groups: rows of a group may depend on each other.
//! **Source.** liang1986longitudinal (the variance); kish1965survey (effective numbers).
//! **Conventions.** Weights add up to the effective number (Σw)²/Σw², which is n where all are equal: a constant factor of all weights
//! changes nothing. No weights: all are 1. No groups: every point is one of its own.
//! **Error.** Rounding. **Checked by** tests/densities/rows.rs.

use super::repeats::first_rows;
use crate::estimate::Estimate;
use std::borrow::Cow;

/// Points, row-major, with weights and groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    points: Cow<'a, [f64]>,
    /// None where all are equal.
    weights: Cow<'a, [f64]>,
    /// None where every point is a group.
    groups: Cow<'a, [u32]>,
}

impl<'a> From<&'a [f64]> for Sample<'a> {
    fn from(points: &'a [f64]) -> Self {
        Sample { points: points.into(), weights: Cow::Borrowed(&[]), groups: Cow::Borrowed(&[]) }
    }
}

impl<'a> From<&'a Vec<f64>> for Sample<'a> {
    fn from(points: &'a Vec<f64>) -> Self {
        points.as_slice().into()
    }
}

impl<'a, const N: usize> From<&'a [f64; N]> for Sample<'a> {
    fn from(points: &'a [f64; N]) -> Self {
        points.as_slice().into()
    }
}

impl From<Vec<f64>> for Sample<'static> {
    fn from(points: Vec<f64>) -> Self {
        Sample { points: points.into(), weights: Cow::Borrowed(&[]), groups: Cow::Borrowed(&[]) }
    }
}

impl<'a> From<&'a Sample<'_>> for Sample<'a> {
    fn from(other: &'a Sample<'_>) -> Self {
        let Sample { points, weights, groups } = other;
        Sample { points: (&**points).into(), weights: (&**weights).into(), groups: (&**groups).into() }
    }
}

/// Weights that differ by less than this are equal.
const EQUAL: f64 = 1e-12;

impl<'a> Sample<'a> {
    /// Points with positive weights (none: all equal) and groups (none: every point is one).
    pub fn new(points: Vec<f64>, weights: &[f64], groups: Vec<u32>) -> Sample<'static> {
        assert!(weights.iter().all(|w| *w > 0.0 && w.is_finite()), "weights are positive");
        assert!(groups.is_empty() || weights.is_empty() || groups.len() == weights.len(), "a group for each weight");
        // In units of the largest, sums of squares neither under- nor overflow.
        let largest = weights.iter().copied().fold(0.0, f64::max);
        let units = || weights.iter().map(|w| w / largest);
        let scale = units().sum::<f64>() / units().map(|w| w * w).sum::<f64>();
        let scaled: Vec<f64> = units().map(|w| w * scale).collect();
        let equal = scaled.iter().all(|w| (w - 1.0).abs() < EQUAL);
        Sample { points: points.into(), weights: if equal { vec![] } else { scaled }.into(), groups: groups.into() }
    }

    /// The points, row-major.
    pub fn points(&self) -> &[f64] {
        &self.points
    }

    /// How many points of so many numbers there are.
    pub fn rows(&self, ambient: usize) -> usize {
        self.points.len() / ambient
    }

    /// What each point counts; none where all are equal.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// What point i counts.
    pub fn weight(&self, i: usize) -> f64 {
        weight(&self.weights, i)
    }

    /// The group of each point; none where every point is one.
    pub fn groups(&self) -> &[u32] {
        &self.groups
    }

    /// The group of point i.
    pub fn group(&self, i: usize) -> usize {
        self.groups.get(i).map_or(i, |group| *group as usize)
    }

    /// The sum of the weights of this many points: the effective number of points.
    pub fn total(&self, ambient: usize) -> f64 {
        if self.weights.is_empty() { self.rows(ambient) as f64 } else { self.weights.iter().sum() }
    }

    /// Some of the points, with their weights and groups.
    pub fn select(&self, of: &[usize], ambient: usize) -> Sample<'static> {
        let points = of.iter().flat_map(|&i| &self.points[i * ambient..][..ambient]).copied().collect();
        let weights: Vec<f64> =
            if self.weights.is_empty() { vec![] } else { of.iter().map(|&i| self.weight(i)).collect() };
        let groups = if self.groups.is_empty() { vec![] } else { of.iter().map(|&i| self.groups[i]).collect() };
        Sample::new(points, &weights, groups)
    }

    /// The same, where a point that has no group belongs to those that it repeats.
    pub fn repeats_together(self, ambient: usize) -> Self {
        if self.groups.is_empty() { Sample { groups: first_rows(&self.points, ambient).into(), ..self } } else { self }
    }

    /// The same with points in other units.
    pub fn with_points<'b>(&'b self, points: Vec<f64>) -> Sample<'b> {
        Sample { points: points.into(), weights: (&*self.weights).into(), groups: (&*self.groups).into() }
    }

    /// The mean of a number for each point, in their order.
    pub fn mean(&self, values: &[f64]) -> f64 {
        mean(values, &self.weights)
    }

    /// The mean of a number for each point, with its error over groups.
    pub fn estimate(&self, values: &[f64]) -> Estimate {
        match self.weights.is_empty() && self.groups.is_empty() {
            true => Estimate::of(values.iter().copied()),
            false => estimate(values, &self.weights, |i| self.group(i)),
        }
    }

    /// The least value that more than a share of the points, by weight, is at most.
    pub fn quantile(&self, values: &[f64], share: f64) -> f64 {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let total = if self.weights.is_empty() { values.len() as f64 } else { self.weights.iter().sum() };
        quantile(order.iter().map(|&i| (values[i], self.weight(i))), share * total).unwrap_or(f64::NAN)
    }
}

/// The weight of a point, where no weights are equal ones.
pub(crate) fn weight(weights: &[f64], i: usize) -> f64 {
    weights.get(i).copied().unwrap_or(1.0)
}

/// Σ w x/Σ w.
pub(crate) fn mean(values: &[f64], weights: &[f64]) -> f64 {
    if weights.is_empty() {
        return values.iter().sum::<f64>() / values.len() as f64;
    }
    values.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>() / weights.iter().sum::<f64>()
}

/// The first of values in order at which their weights add up to more than `mass`, or the last.
pub(crate) fn quantile(sorted: impl Iterator<Item = (f64, f64)>, mass: f64) -> Option<f64> {
    let (mut sum, mut last) = (0.0, None);
    for (value, weight) in sorted {
        sum += weight;
        last = Some(value);
        if sum > mass {
            break;
        }
    }
    last
}

/// The weighted mean with its error over groups; of equal weights and single rows that of [`Estimate::of`].
pub(crate) fn estimate(values: &[f64], weights: &[f64], group: impl Fn(usize) -> usize) -> Estimate {
    let all = mean(values, weights);
    let total = if weights.is_empty() { values.len() as f64 } else { weights.iter().sum() };
    let mut parts: Vec<(usize, f64)> =
        values.iter().enumerate().map(|(i, x)| (group(i), weight(weights, i) * (x - all))).collect();
    parts.sort_by_key(|(group, _)| *group);
    let groups = parts.chunk_by(|a, b| a.0 == b.0);
    let sums: Vec<f64> = groups.map(|own| own.iter().map(|(_, x)| x).sum()).collect();
    let count = sums.len() as f64;
    let square: f64 = sums.iter().map(|sum| sum * sum).sum::<f64>() / (total * total);
    // A single group says nothing about its error.
    Estimate { mean: all, std_error: (square * (count / (count - 1.0))).sqrt(), count: sums.len() as u64 }
}
