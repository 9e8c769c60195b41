//! Maximum mean discrepancy: how far the law of a sample is from another that can be sampled.
//!
//! **Statement.** MMD² = mean_{i≠j} k(x_i, x_j) + mean_{i≠j} k(y_i, y_j) − 2 mean_{ij} k(x_i, y_j), k = e^{−d²/(2σ²)}.
//! **Source.** docs/math §4.7 (the WAE-MMD of the paper's code), gretton2012mmd.
//! **Conventions.** Rows of x and y are as many; within a sample the diagonal is left out (unbiased). σ² is the sum of two
//! quantiles: the h-th largest of all n² distances between the samples and of the n² within y, h = (n² − n)/2; its
//! derivative goes through the entry that attains it.
//! **Error.** Unbiased for a fixed σ; variance O(1/n).
//! **Checked by** tests/theory/matching_facts.rs (F55), tests/theory/matching.rs.

use super::Matching;
use crate::manifold::Manifold;
use minvel_engine::Expr;
use std::sync::Arc;

/// MMD² between codes and as many points of the prior, times a factor (100 in the paper's code); codes are not scaled.
#[derive(Clone, Debug)]
pub struct Discrepancy {
    /// Where codes live.
    pub latent: Arc<dyn Manifold>,
    /// What MMD² is multiplied by.
    pub factor: f64,
}

impl Matching for Discrepancy {
    fn pull<'g>(&self, codes: Expr<'g>, _: Expr<'g>, stream: u32) -> Expr<'g> {
        let rows = codes.shape().rows.expect("codes are rows");
        let prior = self.latent.sample_base(codes.graph(), rows, stream);
        self.factor * maximum_mean_discrepancy(codes, prior, bandwidth(codes, prior))
    }
}

/// The squared bandwidth σ² of the paper's code for samples x and y, both `rows × [d]`; a scalar.
pub fn bandwidth<'g>(x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
    let points = y.collect();
    let n = points.shape().dims[0];
    assert!(n > 1, "matching: a sample of one point");
    let h = (n * n - n) / 2;
    largest(x.squared_distances(points).collect(), h) + largest(y.squared_distances(points).collect(), h)
}

/// The h-th largest entry (h from 1), differentiable through the entries that equal it.
fn largest(distances: Expr<'_>, h: usize) -> Expr<'_> {
    let count = distances.shape().len();
    let value = distances.kth_smallest(count - h);
    let attained = distances.equal(value).stop_gradient();
    (attained * distances).sum_all() / attained.sum_all()
}

/// MMD² between samples x and y, `rows × [d]` each, with the Gaussian kernel of squared bandwidth σ²; a scalar.
pub fn maximum_mean_discrepancy<'g>(x: Expr<'g>, y: Expr<'g>, bandwidth: Expr<'g>) -> Expr<'g> {
    let (xs, ys) = (x.collect(), y.collect());
    let n = xs.shape().dims[0] as f64;
    assert!(ys.shape() == xs.shape(), "matching: samples {} and {} differ in size", xs.shape(), ys.shape());
    let kernel = |a: Expr<'g>, b: Expr<'g>| (a.squared_distances(b) * (-0.5 / bandwidth)).exp().sum(-1).sum_rows();
    let within = |sum: Expr<'g>| (sum - n) / (n * n - n); // the diagonal is n ones
    within(kernel(x, xs)) + within(kernel(y, ys)) - 2.0 / (n * n) * kernel(x, ys)
}
