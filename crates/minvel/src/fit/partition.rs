//! log Z of a corrected density: by quadrature where dimensions are few, else between bounds.
//!
//! **Statement.** Z = ∫ a e^{−tf} = E_a e^{−tf}. Up to three dimensions: a Gauss–Hermite rule of five nodes a dimension in
//! the normal coordinates of every kernel, and the manifold's own rule for the uniform part. Beyond: forward, from draws of
//! a, log Ê_a e^{−tf}, which is too small in the mean; in reverse, from draws of p, −log Ê_p e^{tf}, too large: annealed
//! importance sampling with a as base and a single temperature, enough while the weights stay even.
//! **Source.** METHODS 4.6; neal2001ais; grosse2015sandwiching. **Error.** Quadrature: the difference to four nodes.
//! Draws: the standard error of the forward mean, or half the bracket where that is wider.
//! **Checked by** tests/fit.rs.

use super::model::Model;
use crate::Error;
use crate::diagnostics::{log_mean_exp, weighted_sample_size};
use crate::eval::Estimate;
use crate::train::Desk;
use serde::{Deserialize, Serialize};

/// log Z and how it was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogZ {
    /// The number, with its error.
    pub value: Estimate,
    /// How it was found, in words.
    pub method: String,
    /// From below and from above, where it was found by draws.
    pub bracket: Option<[Estimate; 2]>,
    /// Effective share of the draws; 1 where there are none.
    pub efficiency: f64,
}

/// Nodes of a quadrature at most.
const NODES: usize = 8_000_000;
/// Draws in reverse.
const REVERSE: usize = 10_000;
/// Nodes a dimension of the manifold's own rule.
const GRID: usize = 64;

/// Gauss–Hermite rules for the standard normal law: E z^k is exact below k = 2·nodes.
fn rule(nodes: usize) -> Vec<(f64, f64)> {
    let pair = |x: f64, w: f64| [(x.sqrt(), w), (-x.sqrt(), w)];
    let (six, ten) = (6f64.sqrt(), 10f64.sqrt());
    match nodes {
        4 => [pair(3.0 - six, (3.0 + six) / 12.0), pair(3.0 + six, (3.0 - six) / 12.0)].concat(),
        5 => {
            let outer = [pair(5.0 - ten, (7.0 + 2.0 * ten) / 60.0), pair(5.0 + ten, (7.0 - 2.0 * ten) / 60.0)].concat();
            [vec![(0.0, 8.0 / 15.0)], outer].concat()
        }
        _ => panic!("there are rules of 4 and 5 nodes"),
    }
}

/// The rule in n dimensions: nodes one after another, and weights.
fn tensor(nodes: usize, n: usize) -> (Vec<f64>, Vec<f64>) {
    let line = rule(nodes);
    let (mut points, mut weights) = (vec![], vec![]);
    for k in 0..nodes.pow(n as u32) {
        let digits = (0..n).map(|j| line[k / nodes.pow(j as u32) % nodes]);
        weights.push(digits.clone().map(|d| d.1).product());
        points.extend(digits.map(|d| d.0));
    }
    (points, weights)
}

impl Model {
    /// log Z of the model as it is.
    pub(super) fn partition(&self, desk: &Desk) -> Result<LogZ, Error> {
        if self.share == 0.0 {
            let method = "the kernels are normalised and nothing corrects them".to_string();
            return Ok(LogZ { value: Estimate::exact(0.0), method, bracket: None, efficiency: 1.0 });
        }
        let n = self.manifold.dim();
        let kernels = self.anchor.centres() * self.anchor.families().len();
        if n <= 3 && kernels.saturating_mul(5usize.pow(n as u32)) <= NODES {
            return self.by_quadrature(desk);
        }
        self.by_draws(desk)
    }

    fn by_quadrature(&self, desk: &Desk) -> Result<LogZ, Error> {
        let n = self.manifold.dim();
        let log_z = |nodes: usize| {
            let (z, weights) = tensor(nodes, n);
            let mut sum = 0.0;
            let (mut points, mut masses) = (vec![], vec![]);
            let mut add = |points: &mut Vec<f64>, masses: &mut Vec<f64>| {
                let f = self.correction(points, desk)?;
                sum += f.iter().zip(&*masses).map(|(f, w)| w * (-self.share * f).exp()).sum::<f64>();
                points.clear();
                masses.clear();
                Ok::<(), Error>(())
            };
            self.anchor.spread(&z, |mass, nodes| {
                points.extend_from_slice(nodes);
                masses.extend(weights.iter().map(|w| mass * w));
                if masses.len() >= 1 << 17 {
                    add(&mut points, &mut masses)?;
                }
                Ok(())
            })?;
            if let Some(share) = self.anchor.uniform_share() {
                let grid = self.manifold.grid(GRID, 0.0).expect("a compact manifold of at most three dimensions");
                let volume: f64 = grid.weights.iter().sum();
                points.extend(grid.points);
                masses.extend(grid.weights.iter().map(|w| share * w / volume));
            }
            add(&mut points, &mut masses)?;
            Ok::<f64, Error>(sum.ln())
        };
        let kernels = self.anchor.centres() * self.anchor.families().len();
        let nodes = kernels * (5usize.pow(n as u32) + 4usize.pow(n as u32));
        let (fine, coarse) = desk.stage("normalising", nodes, "nodes", || Ok((log_z(5)?, log_z(4)?)))?;
        let value = Estimate { mean: fine, std_error: (fine - coarse).abs(), count: 1 };
        let method = "Gauss–Hermite quadrature of every kernel".to_string();
        Ok(LogZ { value, method, bracket: None, efficiency: 1.0 })
    }

    fn by_draws(&self, desk: &Desk) -> Result<LogZ, Error> {
        let seed = self.settings.seed;
        let draws = self.settings.partition.draws;
        let weights = |points: &[f64], sign: f64| -> Result<Vec<f64>, Error> {
            Ok(self.correction(points, desk)?.iter().map(|f| sign * self.share * f).collect())
        };
        let rows = draws + self.rows_of_draws(REVERSE) + REVERSE;
        let (forward, reverse) = desk.stage("normalising", rows, "draws", || {
            let forward = weights(&self.anchor.sample(draws, seed + 1), -1.0)?;
            let back = self.standard.apply(&self.sample(REVERSE, seed + 3, desk)?.points);
            Ok((forward, weights(&back, 1.0)?))
        })?;
        let (lower, upper) = (log_mean_exp(&forward), log_mean_exp(&reverse) * -1.0);
        let std_error = lower.std_error.max(0.5 * (upper.mean - lower.mean).abs());
        Ok(LogZ {
            value: Estimate { std_error, ..lower },
            method: format!("importance sampling, {draws} draws of the kernels and {REVERSE} of the model"),
            bracket: Some([lower, upper]),
            efficiency: weighted_sample_size(&forward) / draws as f64,
        })
    }
}
