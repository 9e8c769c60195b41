//! A sampler that is wrong on purpose.

use minvel::Manifold;
use minvel::sampler::{Hamiltonian, Sampler, Spot, SpotOf, Transition, leapfrog};
use minvel_engine::Expr;

/// Trajectories that are always accepted.
#[derive(Debug)]
pub struct Untested(pub Hamiltonian);

impl Sampler for Untested {
    fn manifold(&self) -> &dyn Manifold {
        &*self.0.manifold
    }

    fn transition<'g>(&self, target: SpotOf<'_, 'g>, from: Spot<'g>, step: Expr<'g>, stream: u32) -> Transition<'g> {
        let m = self.manifold();
        let p = m.tangent_normal(from.at, from.at.graph().normal_like(stream, from.at));
        let (to, _) = leapfrog(m, target, from, p, step, self.0.leapfrogs);
        Transition { to, acceptance: Some(to.energy.like(1.0)) }
    }
}
