//! Classes of kernels by how near the neighbours of their centres are, each with shares of its own.
//!
//! **Statement.** Centres are cut into K classes of equal mass in the order of the distance to their k-th neighbour, k the least number of
//! neighbours that shapes a kernel: from the densest places to the sparsest. In place of π_s Σ_i w_i K_s(x; c_i) stands
//! Σ_j π_sj (1/M_j) Σ_{i∈j} w_i K_s(x; c_i), M_j the mass of class j, so that held-out points decide for dense and sparse places separately how wide
//! kernels are, compared with where the neighbours lie, and how much they count.
//! **Source.** Ours; abramson1982bandwidth has widths that follow the density by a rule. **Conventions.** A class is a list of centres of
//! its own; equal distances stay in their order. Neighbours of a fold's centres are points outside the fold.
//! **Error.** None: the density is normalised whatever the classes are. **Checked by** tests/densities/classes.rs.

use super::kernels::{LocalKernels, Sites};
use super::shape::Shape;

/// Rows that a class has at least: a share is known to 10⁻³ nats by them.
const ROWS: usize = 500;

/// Classes of so many rows, where K are wished for.
pub(super) fn borne(wished: usize, rows: usize) -> usize {
    wished.min(rows / ROWS).max(1)
}

impl LocalKernels {
    /// Cuts the shape that was added last, with its centres, into classes by the distances of neighbours; which shapes these are.
    pub(super) fn classed(&mut self, classes: usize, distances: &[f64]) -> Vec<usize> {
        let last = self.shapes.len() - 1;
        if classes == 1 {
            return vec![last];
        }
        let shape = self.shapes.pop().expect("a shape was added");
        // The rows themselves stay a list; groups are no list once they are cut.
        let sites = if shape.list == 0 { self.sites[0].clone() } else { self.sites.pop().expect("its list was added") };
        let of = by_mass(&sites, distances, classes);
        for class in 0..classes {
            let own: Vec<usize> = (0..of.len()).filter(|&i| of[i] == class).collect();
            let list = self.sites.len();
            self.sites.push(sites.part(&own, self.ambient));
            self.shapes.push(shape.part(list, &own));
        }
        (last..last + classes).collect()
    }
}

/// The class of each centre: parts of equal mass in the order of the distances.
fn by_mass(sites: &Sites, distances: &[f64], classes: usize) -> Vec<usize> {
    let total = distances.len();
    let mut order: Vec<usize> = (0..total).collect();
    order.sort_by(|&a, &b| distances[a].total_cmp(&distances[b]).then(a.cmp(&b)));
    let (mut below, mut of) = (0.0, vec![0; total]);
    for &i in &order {
        let weight = sites.weight(i, total);
        // Weights that are the same up to rounding give the same classes.
        of[i] = (((below + 0.5 * weight) * classes as f64 + 1e-9) as usize).min(classes - 1);
        below += weight;
    }
    // One centre may weigh more than a class: then classes of equal numbers, of which none is empty.
    if (0..classes).any(|class| !of.contains(&class)) {
        order.iter().enumerate().for_each(|(rank, &i)| of[i] = rank * classes / total);
    }
    of
}

impl Sites {
    /// Some of the centres, whose weights add up to one again.
    fn part(&self, of: &[usize], m: usize) -> Sites {
        let total = self.points.len() / m;
        let mass: f64 = of.iter().map(|&i| self.weight(i, total)).sum();
        Sites {
            points: of.iter().flat_map(|&i| &self.points[i * m..][..m]).copied().collect(),
            weights: of.iter().map(|&i| (self.weight(i, total) / mass).min(1.0)).collect(),
            groups: vec![],
        }
    }
}

impl Shape {
    /// The covariances of some of the centres, which are another list.
    pub(super) fn part(&self, list: usize, of: &[usize]) -> Shape {
        let entries = self.factors.chunks(self.log_det.len());
        Shape {
            list,
            neighbours: self.neighbours,
            factors: entries.flat_map(|entry| of.iter().map(|&i| entry[i])).collect(),
            log_det: of.iter().map(|&i| self.log_det[i]).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(weights: Vec<f64>) -> Vec<usize> {
        let distances: Vec<f64> = (0..weights.len()).map(|i| i as f64).collect();
        let of = by_mass(&Sites { weights, ..Sites::default() }, &distances, 4);
        assert!(of.is_sorted(), "classes follow the distances: {of:?}");
        (0..4).map(|class| of.iter().filter(|own| **own == class).count()).collect()
    }

    #[test]
    fn classes_have_equal_mass_and_none_is_empty() {
        assert_eq!(sizes(vec![1.0 / 8.0; 8]), [2, 2, 2, 2]);
        assert_eq!(sizes(vec![0.25, 0.125, 0.125, 0.25, 0.125, 0.125]), [1, 2, 1, 2]);
        // the first centre has nearly all of the mass
        assert_eq!(sizes([vec![0.93], vec![0.01; 7]].concat()), [2, 2, 2, 2]);
    }
}
