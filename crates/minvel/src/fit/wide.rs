//! The wide law of a manifold and draws that cover both it and the kernels.
//!
//! **Statement.** b: the base law of the manifold, uniform where it is compact, else standard (wrapped) normal in standard units.
//! m = (1 − κ)·a + κ·b; a mean over p of any density is one over m with weights p/m ≤ p/((1 − κ)a + κb), so that a density that
//! is not far above both has even weights. **Conventions.** Log densities w.r.t. the volume, in standard units; the first draws
//! of a pool come from a, the last from b. **Error.** None but rounding. **Checked by** tests/densities/experts.rs.

use crate::density::LocalKernels;
use crate::train::Context;
use crate::{Error, Manifold};
use minvel_engine::{Clock, Graph, State};
use std::sync::Arc;

/// b.
#[derive(Clone)]
pub(super) struct Wide {
    manifold: Arc<dyn Manifold>,
}

/// Points that a program looks at at once.
const BATCH: usize = 1 << 14;

impl Wide {
    pub fn of(manifold: &Arc<dyn Manifold>) -> Self {
        Wide { manifold: manifold.clone() }
    }

    /// log b at points.
    pub fn log_density(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let m = self.manifold.ambient();
        if let Some(volume) = self.manifold.volume() {
            return Ok(vec![-volume.ln(); points.len() / m]);
        }
        let rows = BATCH.min((points.len() / m).max(1));
        let graph = Graph::new();
        let value = -self.manifold.base_energy(graph.input_rows("x", rows, [m]));
        let mut program = graph.try_compile::<f64>(&[value], &[], &context.options(1))?;
        let (mut all, mut batch) = (Vec::with_capacity(points.len() / m), vec![0.0; rows * m]);
        for chunk in points.chunks(rows * m) {
            context.go_on()?;
            batch.iter_mut().enumerate().for_each(|(k, to)| *to = chunk[if k < chunk.len() { k } else { k % m }]);
            program.try_run(&mut State::new(1), &[("x", &batch)], Clock { seed: 0, step: 0 })?;
            all.extend_from_slice(&program.try_output(0)?[..chunk.len() / m]);
        }
        Ok(all)
    }

    /// Draws of b.
    pub fn sample(&self, count: usize, seed: u64, context: &Context) -> Result<Vec<f64>, Error> {
        if count == 0 {
            return Ok(vec![]);
        }
        let graph = Graph::new();
        let points = self.manifold.sample_base(&graph, count, 0);
        let mut program = graph.try_compile::<f64>(&[points], &[], &context.options(1))?;
        program.try_run(&mut State::new(1), &[], Clock { seed, step: 0 })?;
        Ok(program.try_output(0)?.to_vec())
    }
}

/// Draws of m, and what a, b and m are there.
pub(super) struct Pool {
    pub points: Vec<f64>,
    pub log_anchor: Vec<f64>,
    pub log_wide: Vec<f64>,
    pub log_m: Vec<f64>,
    /// How many are of b: the last ones.
    pub wide: usize,
}

impl Pool {
    /// So many draws, the share κ of them from b.
    pub fn new(
        anchor: &LocalKernels,
        wide: &Wide,
        count: usize,
        share: f64,
        seed: u64,
        context: &Context,
    ) -> Result<Self, Error> {
        let some = (share * count as f64).round() as usize;
        let mut points = anchor.sample(count - some, seed);
        points.extend(wide.sample(some, seed, context)?);
        let (log_anchor, log_wide) = (anchor.log_density_of(&points, context)?, wide.log_density(&points, context)?);
        let share = some as f64 / count as f64;
        let log_m = log_anchor.iter().zip(&log_wide).map(|(a, b)| blended(*a, *b, share)).collect();
        Ok(Pool { points, log_anchor, log_wide, log_m, wide: some })
    }

    /// log p − log m of the draws for a density with these values.
    pub fn log_weights(&self, log_density: &[f64]) -> Vec<f64> {
        log_density.iter().zip(&self.log_m).map(|(p, m)| p - m).collect()
    }
}

/// log((1 − κ)e^a + κe^b).
pub(super) fn blended(a: f64, b: f64, share: f64) -> f64 {
    if share == 0.0 {
        return a;
    }
    let (a, b) = ((1.0 - share).ln() + a, share.ln() + b);
    let top = a.max(b);
    top + ((a - top).exp() + (b - top).exp()).ln()
}
