//! Two densities on the nodes of a quadrature: their divergence and largest difference.
//!
//! **Statement.** KL(p‖q) = Σ w p (log p − log q), both normalised by the same rule: Σ w p = Σ w q = 1.
//! **Conventions.** Densities are given as logarithms up to a constant (minus an energy). Weights are volumes.
//! **Error.** That of the quadrature. **Checked by** tests/theory/eval.rs.

/// p and q on a grid, normalised.
#[derive(Clone, Debug, PartialEq)]
pub struct OnGrid {
    weights: Vec<f64>,
    /// log p at the nodes.
    pub log_p: Vec<f64>,
    /// log q at the nodes.
    pub log_q: Vec<f64>,
}

impl OnGrid {
    /// From the weights of the nodes, and log p and log q up to constants.
    pub fn new(weights: &[f64], log_p: &[f64], log_q: &[f64]) -> Self {
        let nodes = weights.len();
        assert!(
            log_p.len() == nodes && log_q.len() == nodes,
            "grid: {nodes} nodes, {} and {} values",
            log_p.len(),
            log_q.len()
        );
        OnGrid { weights: weights.to_vec(), log_p: normalised(weights, log_p), log_q: normalised(weights, log_q) }
    }

    /// KL(p‖q) in nats.
    ///
    /// As Σ w (p (log p − log q) − p + q), whose terms are all ≥ 0: the extra ones cancel in the sum, not in each term.
    pub fn divergence(&self) -> f64 {
        let term = |i: usize| {
            let (p, q) = (self.log_p[i].exp(), self.log_q[i].exp());
            if p == 0.0 { q } else { p * (self.log_p[i] - self.log_q[i]) - p + q }
        };
        (0..self.weights.len()).map(|i| self.weights[i] * term(i)).sum()
    }

    /// max |log p − log q| over the smallest region that holds the given share of p's mass.
    pub fn largest_log_error(&self, mass: f64) -> f64 {
        let mut nodes: Vec<usize> = (0..self.weights.len()).collect();
        nodes.sort_by(|&i, &j| self.log_p[j].total_cmp(&self.log_p[i]));
        let (mut held, mut largest) = (0.0, 0.0);
        for i in nodes {
            if held >= mass {
                break;
            }
            held += self.weights[i] * self.log_p[i].exp();
            let error = (self.log_p[i] - self.log_q[i]).abs();
            // not `max`, which forgets NaN
            if error > largest || error.is_nan() {
                largest = error;
            }
        }
        largest
    }
}

/// log p − log Σ w p.
fn normalised(weights: &[f64], logs: &[f64]) -> Vec<f64> {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = weights.iter().zip(logs).map(|(w, l)| w * (l - top).exp()).sum();
    let log_sum = top + sum.ln();
    logs.iter().map(|l| l - log_sum).collect()
}
