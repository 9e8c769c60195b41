//! The nearest other points of each point.

use super::LocalKernels;
use crate::Error;
use crate::train::Desk;

/// Lists of nearest points by the chord, nearest first; repeats of the point itself are no neighbours.
pub struct Neighbours {
    lists: Vec<Vec<u32>>,
    /// A short distance between neighbours: that to the nearest, such that one in twenty is shorter.
    pub near: f64,
    /// Root of the mean squared distance of two points.
    pub spread: f64,
}

impl Neighbours {
    /// The `count` nearest of each point.
    pub fn of(space: &LocalKernels, points: &[f64], count: usize, desk: &Desk) -> Result<Self, Error> {
        let m = space.ambient();
        let total = points.len() / m;
        let each = total.div_ceil(desk.threads()).max(1);
        let rows: Vec<(Vec<u32>, f64, f64)> = std::thread::scope(|scope| {
            let part = move |start: usize| -> Vec<_> {
                (start..(start + each).min(total)).map(|i| one(space, points, i, count)).collect()
            };
            let workers: Vec<_> = (0..total).step_by(each).map(|start| scope.spawn(move || part(start))).collect();
            workers.into_iter().flat_map(|w| w.join().expect("a worker that does not panic")).collect()
        });
        desk.go_on()?;
        let mut nearest: Vec<f64> = rows.iter().map(|r| r.1).filter(|d| d.is_finite()).collect();
        nearest.sort_by(f64::total_cmp);
        let near = nearest.get(nearest.len() / 20).copied().unwrap_or(1.0);
        let spread = (rows.iter().map(|r| r.2).sum::<f64>() / total as f64).sqrt();
        Ok(Neighbours { lists: rows.into_iter().map(|r| r.0).collect(), near, spread })
    }

    /// Nearest points of point i, nearest first.
    pub fn list(&self, i: usize) -> &[u32] {
        &self.lists[i]
    }
}

/// The list of point i, the distance of its first, and the mean squared distance of all.
fn one(space: &LocalKernels, points: &[f64], i: usize, count: usize) -> (Vec<u32>, f64, f64) {
    let m = space.ambient();
    let own = &points[i * m..][..m];
    let mut all: Vec<(f64, u32)> = vec![];
    let mut sum = 0.0;
    for (j, other) in points.chunks(m).enumerate() {
        let square = space.chord_squared(own, other);
        sum += square;
        // Equal points differ by rounding only.
        if square > 1e-24 {
            all.push((square, j as u32));
        }
    }
    let mean = sum / (points.len() / m) as f64;
    let count = count.min(all.len());
    if count == 0 {
        return (vec![], f64::INFINITY, mean);
    }
    all.select_nth_unstable_by(count - 1, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all.truncate(count);
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    (all.iter().map(|a| a.1).collect(), all[0].0.sqrt(), mean)
}
