//! Rows as they are given, and the different points that a fit is made of.
//!
//! **Statement.** Rows of weight 0 are dropped; rows with equal points become one point with the sum of their weights, in the order of
//! first appearance. Groups are the components of rows that share a label, a point, or a neighbour within the blocking distance.
//! So weight 2 is the row twice, weight 0 is no row, and a factor of all weights changes nothing, everywhere: all that follows sees
//! points, weights up to a factor, and groups. **Source.** scikit-learn's conventions of sample weights.
//! **Error.** None. **Checked by** tests/densities/rows.rs.

use crate::density::repeats::first_rows;
use crate::density::{Sample, Sets, link};
use crate::train::Context;
use crate::{Error, Manifold};
use std::sync::Arc;

/// What is said about rows besides their points.
#[derive(Clone, Default)]
pub(super) struct About {
    pub weights: Option<Vec<f64>>,
    /// Numbers of their labels.
    pub groups: Option<Vec<u32>>,
    /// Rows within this distance belong together.
    pub block: Option<f64>,
}

impl About {
    /// Whether anything is said.
    pub fn is_some(&self) -> bool {
        self.weights.is_some() || self.groups.is_some() || self.block.is_some()
    }
}

/// The group of each row, numbered from 0: rows with equal points are one, and so, with a distance, are rows within it and all that
/// they are linked to, as [`Fit::block`](super::Fit::block) has them.
pub fn linked_rows(
    manifold: &Arc<dyn Manifold>,
    points: &[f64],
    distance: Option<f64>,
    context: &Context,
) -> Result<Vec<u32>, Error> {
    let rows = (points.len() / manifold.ambient()) as u32;
    let about = About { weights: None, groups: Some((0..rows).collect()), block: distance };
    Ok(Given::new(manifold, points, &about, context)?.groups)
}

/// Rows with positive weights.
pub(super) struct Given<'a> {
    points: &'a [f64],
    ambient: usize,
    /// The rows that count, in order.
    pub rows: Vec<usize>,
    /// What each of them counts,
    weights: Vec<f64>,
    /// and its group; none where every point is one.
    groups: Vec<u32>,
}

/// Different points, and the given rows of each.
pub(super) struct Distinct {
    pub sample: Sample<'static>,
    /// The given rows, in order,
    rows: Vec<usize>,
    /// and the point that each of them is.
    points: Vec<u32>,
}

impl Distinct {
    /// The given rows of some of the points, in order.
    pub fn given(&self, of: &[usize]) -> Vec<usize> {
        let mut wanted = vec![false; self.points.iter().max().map_or(0, |last| *last as usize + 1)];
        of.iter().for_each(|&i| wanted[i] = true);
        let rows = self.rows.iter().zip(&self.points);
        rows.filter(|(_, point)| wanted[**point as usize]).map(|(row, _)| *row).collect()
    }
}

impl<'a> Given<'a> {
    /// Checks what is said about the rows; errors name the row, counted from 0.
    pub fn new(
        manifold: &Arc<dyn Manifold>,
        points: &'a [f64],
        about: &About,
        context: &Context,
    ) -> Result<Self, Error> {
        let m = manifold.ambient();
        let count = points.len() / m;
        let fits = |what: &str, len: usize| match len == count {
            true => Ok(()),
            false => Err(Error::config(format!("there are {len} {what} for {count} rows: give one for each row"))),
        };
        let weights = about.weights.as_deref().unwrap_or_default();
        if about.weights.is_some() {
            fits("weights", weights.len())?;
        }
        if let Some((row, weight)) = weights.iter().enumerate().find(|(_, w)| !(w.is_finite() && **w >= 0.0)) {
            let what = format!("row {row} (counted from 0): the weight {weight} is not a finite number from 0 on");
            return Err(Error::config(what));
        }
        if let Some(groups) = &about.groups {
            fits("groups", groups.len())?;
        }
        if let Some(block) = about.block.filter(|block| !(block.is_finite() && *block > 0.0)) {
            return Err(Error::config(format!("the blocking distance {block} is not a positive number")));
        }
        let weight = |row: usize| weights.get(row).copied().unwrap_or(1.0);
        let rows: Vec<usize> = (0..count).filter(|&row| weight(row) > 0.0).collect();
        if rows.is_empty() && count > 0 {
            return Err(Error::config("all weights are 0: no row is left"));
        }
        let weights = rows.iter().map(|&row| weight(row)).collect();
        let mut this = Given { points, ambient: m, rows, weights, groups: vec![] };
        this.groups = this.linked(manifold, about, context)?;
        Ok(this)
    }

    fn select(&self, rows: &[usize]) -> Vec<f64> {
        let mut points = Vec::with_capacity(rows.len() * self.ambient);
        rows.iter()
            .for_each(|&i| points.extend_from_slice(&self.points[self.rows[i] * self.ambient..][..self.ambient]));
        points
    }

    /// The group of each row that counts.
    fn linked(&self, manifold: &Arc<dyn Manifold>, about: &About, context: &Context) -> Result<Vec<u32>, Error> {
        if about.groups.is_none() && about.block.is_none() {
            return Ok(vec![]);
        }
        let all: Vec<usize> = (0..self.rows.len()).collect();
        let points = self.select(&all);
        let first = first_rows(&points, self.ambient);
        let mut sets = Sets::new(all.len());
        first.iter().enumerate().for_each(|(i, first)| sets.unite(i, *first as usize));
        if let Some(labels) = &about.groups {
            let mut seen = std::collections::HashMap::new();
            all.iter().for_each(|&i| sets.unite(i, *seen.entry(labels[self.rows[i]]).or_insert(i)));
        }
        if let Some(distance) = about.block {
            context.stage("blocks", 0, "rows", || link(manifold, &points, distance, &mut sets, context))?;
        }
        Ok(sets.numbers())
    }

    /// The different points of some of the given rows, which come in order.
    pub fn distinct(&self, rows: &[usize]) -> Distinct {
        let all: Vec<usize> = rows.iter().filter_map(|row| self.rows.binary_search(row).ok()).collect();
        let points = self.select(&all);
        let mut point_of = first_rows(&points, self.ambient);
        let (mut kept, mut weights): (Vec<usize>, Vec<f64>) = (vec![], vec![]);
        for (k, &i) in all.iter().enumerate() {
            let first = point_of[k] as usize;
            point_of[k] = if first == k {
                kept.push(i);
                weights.push(0.0);
                kept.len() as u32 - 1
            } else {
                point_of[first]
            };
            weights[point_of[k] as usize] += self.weights[i];
        }
        let groups = if self.groups.is_empty() { vec![] } else { kept.iter().map(|&i| self.groups[i]).collect() };
        let points = if kept.len() == all.len() { points } else { self.select(&kept) };
        let rows = all.iter().map(|&i| self.rows[i]).collect();
        Distinct { sample: Sample::new(points, &weights, groups), rows, points: point_of }
    }
}
