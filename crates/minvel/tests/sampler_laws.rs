//! Laws of samplers: what one step must leave as it is, over every manifold, and how steps, sizes and clocks behave.
//!
//! Expectations under a law q ∝ e^{−E₀−V} are taken exactly in distribution: points of the base law e^{−E₀}, which every
//! manifold can draw, weighted by e^{−V}. The noise of such a mean is that of independent rows.

#[macro_use]
mod support;

use minvel::energy::draw::substream;
use minvel::flow::{EnergyOf, Form, RiemannianLangevin};
use minvel::manifold::{self, Manifold};
use minvel::sampler::{ChartLaw, Hamiltonian, Metropolis, Repeated, Sampler, Spot, Transition, leapfrog};
use minvel_engine::{Expr, Graph};
use std::sync::Arc;
use support::geometry::wave;
use support::{estimate, values};

const ROWS: usize = 100_000;
const SEED: u64 = 7;

fn shared(m: &dyn Manifold) -> Arc<dyn Manifold> {
    manifold::parse(&m.to_string()).unwrap()
}

/// V, a bump of height 4 or so.
fn bump<'g>(m: &dyn Manifold, x: Expr<'g>) -> Expr<'g> {
    2.0 * wave(m, x, 1.3)
}

/// Trajectories that are never tested.
#[derive(Debug)]
struct Untested(Hamiltonian);

impl Sampler for Untested {
    fn manifold(&self) -> &dyn Manifold {
        &*self.0.manifold
    }

    fn transition<'g>(&self, energy: EnergyOf<'_, 'g>, from: Spot<'g>, step: Expr<'g>, stream: u32) -> Transition<'g> {
        let m = self.manifold();
        let p = m.tangent_normal(from.at, from.at.graph().normal_like(stream, from.at));
        let (to, _) = leapfrog(m, energy, from, p, step, self.0.leapfrogs);
        Transition { to, acceptance: None }
    }
}

/// Standard scores of E[f(x)h(x') − f(x')h(x)] and of E[f(x') − f(x)] for one step from the law itself.
fn balance(sampler: &dyn Sampler, step: f64) -> [f64; 3] {
    let m = sampler.manifold();
    let g = Graph::new();
    let x = m.sample_base(&g, ROWS, 1);
    let energy = |x| m.base_energy(x) + bump(m, x);
    let moved = sampler.transition(&energy, Spot::of(&energy, x), g.scalar(step), 2);
    let y = moved.to.at;
    let [f, h] = [0.7, 1.9].map(|pitch| [wave(m, x, pitch), wave(m, y, pitch)]);
    let weight = (-bump(m, x)).exp();
    let acceptance = moved.acceptance.unwrap_or(weight.like(1.0));
    let outputs = [weight * (f[0] * h[1] - f[1] * h[0]), weight * (f[1] - f[0]), weight * (bump(m, y) - bump(m, x)), weight * acceptance, weight];
    let rows = values(&outputs, &[], SEED);
    let z = [0, 1, 2].map(|k| { let (mean, error) = estimate(&rows[k]); mean / error });
    let rate = rows[3].iter().sum::<f64>() / rows[4].iter().sum::<f64>();
    println!("{m}: z = {:+.2} (balance), {:+.2} (stationary), {:+.2}, acceptance {rate:.2}", z[0], z[1], z[2]);
    z
}

mod law {
    use super::*;

    pub fn explore(m: &dyn Manifold) {
        let m = shared(m);
        let eps = 0.5 / m.dim() as f64; let time = 1.2 / (m.dim() as f64).sqrt();
        print!("MH    "); balance(&Metropolis::on(m.clone()), eps);
        print!("MHoff "); balance(&Metropolis{charts: ChartLaw::OfState, ..Metropolis::on(m.clone())}, eps);
        print!("ULA   "); balance(&Repeated::on(m.clone(), RiemannianLangevin { manifold: m.clone(), form: Form::Geodesic }), eps);
        print!("HMC   "); balance(&Hamiltonian::on(m.clone(), 2), time);
        print!("HMCno "); balance(&Untested(Hamiltonian::on(m.clone(), 2)), time);
    }
}
for_every_manifold! { explore }
