//! An energy with its log Z is a density.
//!
//! **Statement.** log p(x) = −E(x) − log Z; grad log p = −grad E. **Conventions.** The energy's parameters are constants, read
//! from a state. **Error.** That of log Z, which whoever gives it knows. **Checked by** tests/densities/density.rs.

use super::{Density, rows};
use crate::Error;
use crate::energy::Energy;
use crate::manifold::Manifold;
use crate::train::Context;
use minvel_engine::{Clock, Expr, Graph, State, grad};
use std::sync::Arc;

/// p = e^{−E}/Z.
#[derive(Clone, Debug)]
pub struct EnergyDensity {
    manifold: Arc<dyn Manifold>,
    energy: Arc<dyn Energy>,
    state: State<f64>,
    log_z: f64,
}

impl EnergyDensity {
    /// Of an energy whose log Z is known in closed form; `None` where it is not.
    pub fn closed(manifold: Arc<dyn Manifold>, energy: Arc<dyn Energy>) -> Option<Self> {
        let log_z = energy.log_partition()?;
        Some(EnergyDensity { manifold, energy, state: State::new(1), log_z })
    }

    /// Of an energy with parameters (one replica) and its log Z, found elsewhere.
    pub fn new(manifold: Arc<dyn Manifold>, energy: Arc<dyn Energy>, state: State<f64>, log_z: f64) -> Self {
        assert!(state.replicas() == 1, "a density is one replica, not {}", state.replicas());
        EnergyDensity { manifold, energy, state, log_z }
    }

    /// log Z.
    pub fn log_z(&self) -> f64 {
        self.log_z
    }

    /// What an expression of the points gives.
    fn values(
        &self,
        points: &[f64],
        context: &Context,
        of: impl for<'g> Fn(Expr<'g>) -> Expr<'g>,
    ) -> Result<Vec<f64>, Error> {
        let m = self.manifold.ambient();
        let rows = rows(points, m);
        if rows == 0 {
            return Ok(vec![]);
        }
        let g = Graph::new();
        let mut program = g.try_compile::<f64>(&[of(g.input_rows("x", rows, [m]))], &[], &context.options(1))?;
        program.try_run(&mut self.state.clone(), &[("x", points)], Clock { seed: 0, step: 0 })?;
        Ok(program.try_output(0)?.to_vec())
    }
}

impl Density for EnergyDensity {
    fn name(&self) -> &str {
        "energy"
    }

    fn manifold(&self) -> Arc<dyn Manifold> {
        self.manifold.clone()
    }

    fn log_density(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let energy = self.values(points, context, |x| self.energy.energy(x))?;
        Ok(energy.into_iter().map(|e| -e - self.log_z).collect())
    }

    fn score(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        self.values(points, context, |x| -self.manifold.gradient(x, grad(self.energy.energy(x), &[x])[0]))
    }

    /// Exact draws, of energies that know how; others are drawn from by a [`Sampler`](crate::Sampler).
    fn sample(&self, count: usize, seed: u64, context: &Context) -> Result<Vec<f64>, Error> {
        let g = Graph::new();
        let points = self.energy.sample(&g, count, 0).ok_or_else(|| {
            Error::config("this energy cannot be sampled exactly: run a sampler (minvel::sampler::Chains) instead")
        })?;
        let mut program = g.try_compile::<f64>(&[points], &[], &context.options(1))?;
        program.try_run(&mut self.state.clone(), &[], Clock { seed, step: 0 })?;
        Ok(program.try_output(0)?.to_vec())
    }
}
