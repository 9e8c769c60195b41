//! Numbers on a grid of the plane: between the grid points, and lines of equal height.
//!
//! **Statement.** f(x, y) ≈ Σ f_ij (1−|x−x_j|)₊(1−|y−y_i|)₊ in units of the grid. **Error.** O(h²) for smooth f.
//! **Checked by** tests/lab/plot_fields.rs.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Numbers at the corners of a grid that covers a rectangle with its borders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Numbers from left to right, at least 2.
    pub columns: usize,
    /// Numbers from bottom to top, at least 2.
    pub rows: usize,
    /// Row after row, the lowest first.
    pub values: Vec<f32>,
}

/// Lines of equal height in shares (right, up) of the rectangle.
pub type Contour = Vec<(f64, f64)>;

impl Field {
    /// Places of the numbers in order, over x and y from `low` to `high`.
    pub fn places(columns: usize, rows: usize, [x0, x1]: [f64; 2], [y0, y1]: [f64; 2]) -> Vec<(f64, f64)> {
        let x = |j: usize| x0 + (x1 - x0) * j as f64 / (columns - 1) as f64;
        let y = |i: usize| y0 + (y1 - y0) * i as f64 / (rows - 1) as f64;
        (0..rows).flat_map(|i| (0..columns).map(move |j| (x(j), y(i)))).collect()
    }

    fn value(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.columns + j] as f64
    }

    /// The number at a share (right, up) of the rectangle.
    pub fn at(&self, u: f64, v: f64) -> f64 {
        let split = |share: f64, count: usize| {
            let along = share.clamp(0.0, 1.0) * (count - 1) as f64;
            let k = (along as usize).min(count - 2);
            (k, along - k as f64)
        };
        let ((j, t), (i, s)) = (split(u, self.columns), split(v, self.rows));
        (1.0 - s) * ((1.0 - t) * self.value(i, j) + t * self.value(i, j + 1))
            + s * ((1.0 - t) * self.value(i + 1, j) + t * self.value(i + 1, j + 1))
    }

    /// The heights above which lie given shares of ∫ exp f: borders of the smallest regions of these probabilities, for
    /// a log density f. The shares rise.
    pub fn levels(&self, shares: &[f64]) -> Vec<f64> {
        levels(&self.values, |_| 1.0, shares)
    }

    /// Lines of a height: marching squares, with their pieces joined.
    pub fn contours(&self, height: f64) -> Vec<Contour> {
        let above = |i: usize, j: usize| self.value(i, j) > height;
        // A crossing is named by the edge of the grid it is on: (row, column, upwards?).
        let mut ends: HashMap<Edge, Vec<Edge>> = HashMap::new();
        let mut order = vec![];
        for i in 0..self.rows - 1 {
            for j in 0..self.columns - 1 {
                let edges = [(i, j, false), (i, j + 1, true), (i + 1, j, false), (i, j, true)];
                let corners = [above(i, j), above(i, j + 1), above(i + 1, j + 1), above(i + 1, j)];
                let crossed: Vec<Edge> =
                    (0..4).filter(|k| corners[*k] != corners[(k + 1) % 4]).map(|k| edges[k]).collect();
                for pair in crossed.chunks_exact(2) {
                    ends.entry(pair[0]).or_default().push(pair[1]);
                    ends.entry(pair[1]).or_default().push(pair[0]);
                    order.extend([pair[0], pair[1]]);
                }
            }
        }
        // Lines that end at the border are walked from an end, closed ones from anywhere.
        let open: Vec<Edge> = order.iter().copied().filter(|e| ends[e].len() == 1).collect();
        let starts = open.into_iter().chain(order);
        starts.filter_map(|start| self.walk(start, &mut ends, height)).collect()
    }

    /// Follows a line from an edge, and takes what it passes.
    fn walk(&self, start: Edge, ends: &mut HashMap<Edge, Vec<Edge>>, height: f64) -> Option<Contour> {
        let mut line = vec![self.crossing(start, height)];
        let mut at = start;
        while let Some(next) = ends.get_mut(&at).and_then(Vec::pop) {
            if let Some(back) = ends.get_mut(&next)
                && let Some(k) = back.iter().position(|e| *e == at)
            {
                back.swap_remove(k);
            }
            line.push(self.crossing(next, height));
            at = next;
        }
        (line.len() > 1).then_some(line)
    }

    /// Where a line crosses an edge.
    fn crossing(&self, (i, j, upwards): Edge, height: f64) -> (f64, f64) {
        let (from, to) = (self.value(i, j), if upwards { self.value(i + 1, j) } else { self.value(i, j + 1) });
        let t = if from == to { 0.5 } else { ((height - from) / (to - from)).clamp(0.0, 1.0) };
        let (x, y) = if upwards { (j as f64, i as f64 + t) } else { (j as f64 + t, i as f64) };
        (x / (self.columns - 1) as f64, y / (self.rows - 1) as f64)
    }
}

/// The heights above which lie given shares of Σ weight(k)·exp f_k, for log densities f_k on cells of these areas. The
/// shares rise.
pub fn levels(values: &[f32], weight: impl Fn(usize) -> f64, shares: &[f64]) -> Vec<f64> {
    let known =
        values.iter().enumerate().map(|(k, v)| (*v as f64, weight(k))).filter(|(v, w)| v.is_finite() && *w > 0.0);
    let mut heights: Vec<(f64, f64)> = known.collect();
    heights.sort_by(|a, b| b.0.total_cmp(&a.0));
    let Some(&(top, _)) = heights.first() else { return vec![] };
    let mass = |(height, area): &(f64, f64)| area * (height - top).exp();
    let total: f64 = heights.iter().map(mass).sum();
    let mut walk = heights.iter().scan(0.0, |sum, cell| {
        *sum += mass(cell) / total;
        Some((*sum, cell.0))
    });
    let mut last = (0.0, top);
    let mut level = |share: f64| {
        while last.0 < share {
            let Some(next) = walk.next() else { break };
            last = next;
        }
        last.1
    };
    shares.iter().map(|s| level(*s)).collect()
}

/// An edge of the grid from a corner (row, column), upwards or to the right.
type Edge = (usize, usize, bool);
