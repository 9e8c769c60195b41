//! The nearest other points of each point.

use super::LocalKernels;
use crate::Error;
use crate::density::by_rows;
use crate::train::Context;

/// Lists of nearest points by the chord, nearest first; repeats of the point itself are no neighbours.
pub struct Neighbours {
    lists: Vec<Vec<u32>>,
    /// A short distance between neighbours: that to the nearest, such that one in twenty is shorter.
    pub near: f64,
    /// The median distance to the nearest.
    pub median: f64,
    /// Root of the mean squared distance of two points.
    pub spread: f64,
}

impl Neighbours {
    /// The `count` nearest of each point.
    pub fn of(space: &LocalKernels, points: &[f64], count: usize, context: &Context) -> Result<Self, Error> {
        let m = space.ambient();
        let total = points.len() / m;
        let rows = by_rows(total, 1, context, |first, rows: &mut [Near]| {
            for (i, row) in (first..).zip(rows) {
                *row = Near::of(space, points, i, count);
            }
        })?;
        let mut nearest: Vec<f64> = rows.iter().map(|r| r.first).filter(|d| d.is_finite()).collect();
        nearest.sort_by(f64::total_cmp);
        let near = nearest.get(nearest.len() / 20).copied().unwrap_or(1.0);
        let median = nearest.get(nearest.len() / 2).copied().unwrap_or(1.0);
        let spread = (rows.iter().map(|r| r.mean).sum::<f64>() / total as f64).sqrt();
        Ok(Neighbours { lists: rows.into_iter().map(|r| r.list).collect(), near, median, spread })
    }

    /// Nearest points of point i, nearest first.
    pub fn list(&self, i: usize) -> &[u32] {
        &self.lists[i]
    }
}

/// What is near a point.
#[derive(Clone, Default)]
struct Near {
    list: Vec<u32>,
    /// Distance of the first.
    first: f64,
    /// Mean squared distance of all points.
    mean: f64,
}

impl Near {
    /// Of point i.
    fn of(space: &LocalKernels, points: &[f64], i: usize, count: usize) -> Self {
        let m = space.ambient();
        let own = &points[i * m..][..m];
        let mut all: Vec<(f64, u32)> = vec![];
        let mut sum = 0.0;
        let mut squares = vec![0.0; points.len() / m];
        space.chords_squared(points, own, &mut squares);
        for (j, &square) in squares.iter().enumerate() {
            sum += square;
            // Equal points differ by rounding only.
            if square > 1e-24 {
                all.push((square, j as u32));
            }
        }
        let mean = sum / (points.len() / m) as f64;
        let count = count.min(all.len());
        if count == 0 {
            return Near { list: vec![], first: f64::INFINITY, mean };
        }
        all.select_nth_unstable_by(count - 1, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        all.truncate(count);
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        Near { list: all.iter().map(|a| a.1).collect(), first: all[0].0.sqrt(), mean }
    }
}
