//! How near learnt densities are to the truth, by quadrature on the manifold.
//!
//! **Statement.** KL(p‖q) = ∫ p log(p/q), D_F = ½∫ p |grad(E_q − E_p)|², J = ∫ p (½|grad E_q|² − ΔE_q) = D_F − I(p)/2.
//! **Conventions.** Both densities are normalised by the same rule; f64 from the trained parameters on.
//! **Error.** That of the quadrature, which falls exponentially for smooth densities: J and D_F, computed apart, agree to
//! rounding. **Checked by** tests/lab/experiment_directions.rs.

use minvel::Error;
use minvel::energy::{Energy, Mlp, Toy};
use minvel::estimate::OnGrid;
use minvel::flow::{Law, Noise};
use minvel::objective::{Objective, ScoreMatching};
use minvel::train::Context;
use minvel_engine::{Clock, Graph, State, grad};
use serde::{Deserialize, Serialize};

/// How near a model is to the truth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Quality {
    /// KL(p‖q).
    #[serde(with = "minvel::estimate::number")]
    pub divergence: f64,
    /// D_F.
    #[serde(with = "minvel::estimate::number")]
    pub fisher: f64,
    /// J = L/2.
    #[serde(with = "minvel::estimate::number")]
    pub loss: f64,
    /// max |log p − log q| in the region of high density.
    #[serde(with = "minvel::estimate::number")]
    pub log_error: f64,
    /// The same over the whole manifold.
    #[serde(with = "minvel::estimate::number")]
    pub log_error_anywhere: f64,
}

/// Who compares.
pub(super) struct Judge<'a> {
    /// The truth.
    pub law: &'a Toy,
    /// The model.
    pub model: &'a Mlp,
    /// Points of the quadrature in each dimension.
    pub grid: usize,
    /// Share of the truth in the region of high density.
    pub mass: f64,
}

/// The parameters of a trained model, or what is kept beside them under a suffix, in double precision.
pub(super) fn parameters(model: &Mlp, trained: &State<f32>, suffix: &str) -> State<f64> {
    let mut state = State::of_replicas(trained.numbers());
    for p in model.parameters() {
        let values = trained.get(&format!("{}{suffix}", p.name)).expect("it was trained");
        let values: Vec<f64> = values.iter().map(|&x| x.into()).collect();
        state.set(&p.name, &values, values.len() / trained.replicas());
    }
    state
}

impl Judge<'_> {
    /// The model of each replica.
    pub fn grades(&self, parameters: &State<f64>, context: &Context) -> Result<Vec<Quality>, Error> {
        let manifold = &self.law.manifold;
        let grid = manifold.grid(self.grid, 0.0).expect("circle and sphere have grids");
        let (nodes, seeds) = (grid.weights.len(), parameters.replicas());
        let g = Graph::new();
        let y = g.input_rows("y", nodes, [manifold.ambient()]);
        let (truth, model) = (self.law.energy(y), self.model.energy(y));
        let difference = manifold.gradient(y, grad(model - truth, &[y])[0]);
        let fisher = 0.5 * manifold.inner(y, difference, difference);
        let matching = ScoreMatching { manifold: Some(manifold.clone()) };
        // It is exact and takes no noise.
        let loss = matching.rows(&|y| self.model.energy(y), y.into(), Noise::drawn(Law::Gaussian, 0));
        let mut program = g.try_compile::<f64>(&[-truth, -model, fisher, loss], &[], &context.options(seeds))?;
        program.try_run(&mut parameters.clone(), &[("y", &grid.points)], Clock { seed: 0, step: 0 })?;

        let found = (0..4).map(|k| program.try_output(k)).collect::<Result<Vec<_>, _>>()?;
        let own = |k: usize, seed: usize| &found[k][seed * nodes..][..nodes];
        let qualities = (0..seeds)
            .map(|seed| {
                let both = OnGrid::new(&grid.weights, own(0, seed), own(1, seed));
                let mean = |f: &[f64]| (0..nodes).map(|i| grid.weights[i] * both.log_p[i].exp() * f[i]).sum::<f64>();
                Quality {
                    divergence: both.divergence(),
                    fisher: mean(own(2, seed)),
                    loss: mean(own(3, seed)),
                    log_error: both.largest_log_error(self.mass),
                    log_error_anywhere: both.largest_log_error(f64::INFINITY),
                }
            })
            .collect();
        Ok(qualities)
    }

    /// log q of each replica at given points, normalised by the quadrature.
    pub fn log_densities(
        &self,
        parameters: &State<f64>,
        points: &[f64],
        context: &Context,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let manifold = &self.law.manifold;
        let grid = manifold.grid(self.grid, 0.0).expect("circle and sphere have grids");
        let (nodes, seeds) = (grid.weights.len(), parameters.replicas());
        let count = points.len() / manifold.ambient();
        let g = Graph::new();
        let y = g.input_rows("y", nodes + count, [manifold.ambient()]);
        let mut program = g.try_compile::<f64>(&[-self.model.energy(y)], &[], &context.options(seeds))?;
        let all = [&grid.points, points].concat();
        program.try_run(&mut parameters.clone(), &[("y", &all)], Clock { seed: 0, step: 0 })?;

        let learnt = |own: &[f64]| {
            let (on_grid, at_points) = own.split_at(nodes);
            let normalised = OnGrid::new(&grid.weights, on_grid, on_grid).log_q;
            let log_z = on_grid[0] - normalised[0];
            at_points.iter().map(|l| (l - log_z) as f32).collect()
        };
        Ok(program.try_output(0)?.chunks(nodes + count).map(learnt).collect())
    }
}
