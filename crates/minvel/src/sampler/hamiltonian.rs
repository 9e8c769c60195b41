//! Hamiltonian Monte Carlo along geodesics; in flat space the usual one.
//!
//! **Statement.** H(x, p) = E(x) + ½|p|²_x. Kick p ← p − ½ε grad E, drift (x, p) ← the geodesic from x with velocity p
//! after time ε, kick; L times; accept with probability min(1, e^{H − H'}).
//! **Source.** docs/math §4.6 (half kick, drift, 10×(kick, drift), half kick: L = 11); neal2011hmc; byrne2013geodesic.
//! **Conventions.** Unit mass: p is normal in the metric and drawn anew for each trajectory. ε is a time here: one leapfrog
//! step spreads by ε²|p|², where a Langevin step spreads by 2ε.
//! **Error.** None: the geodesic flow keeps the volume and kicks shear it, and both can be run back. H' − H = O(ε²).
//! **Checked by** tests/theory/sampler_facts.rs (F48, F49, F51), tests/theory/sampler_laws.rs, tests/theory/sampler_moments.rs.

use super::{Sampler, Spot, SpotOf, Transition};
use crate::flow::leaf;
use crate::manifold::Manifold;
use crate::stream::substream;
use minvel_engine::{Expr, jvp};
use std::sync::Arc;

/// Trajectories of fixed length, corrected.
#[derive(Clone, Debug)]
pub struct Hamiltonian {
    /// Where the chains live.
    pub manifold: Arc<dyn Manifold>,
    /// L, steps of each trajectory.
    pub leapfrogs: usize,
}

impl Hamiltonian {
    /// Steps of a trajectory in the official annealing.
    pub const LEAPFROGS: usize = 11;

    /// On a manifold.
    pub fn new(manifold: impl Manifold + 'static, leapfrogs: usize) -> Self {
        Self::on(Arc::new(manifold), leapfrogs)
    }

    /// On a shared manifold.
    pub fn on(manifold: Arc<dyn Manifold>, leapfrogs: usize) -> Self {
        assert!(leapfrogs > 0, "Hamiltonian: a trajectory has at least one step");
        Hamiltonian { manifold, leapfrogs }
    }
}

/// The geodesic from x with velocity p, after time `step`: the point and the velocity there.
fn geodesic<'g>(manifold: &dyn Manifold, x: Expr<'g>, p: Expr<'g>, step: Expr<'g>) -> (Expr<'g>, Expr<'g>) {
    let way = leaf(step.expand(-1) * p);
    let delta = manifold.exp_delta(x, way);
    let to = manifold.settle(x + delta);
    // d/dt exp_x(tp): the way grows by p.
    let velocity = jvp(&[delta], &[(way, p)])[0];
    (to, manifold.project(to, velocity))
}

/// `count` leapfrog steps of size ε from a point with momentum p, a tangent vector there.
pub fn leapfrog<'g>(
    manifold: &dyn Manifold,
    target: SpotOf<'_, 'g>,
    from: Spot<'g>,
    momentum: Expr<'g>,
    step: Expr<'g>,
    count: usize,
) -> (Spot<'g>, Expr<'g>) {
    let kicked = |spot: Spot<'g>, p: Expr<'g>, share: f64| {
        p - share * step.expand(-1) * manifold.gradient(spot.at, spot.gradient)
    };
    let (mut spot, mut p) = (from, kicked(from, momentum, 0.5));
    for k in 1..=count {
        let (x, velocity) = geodesic(manifold, spot.at, p, step);
        spot = target(x);
        p = kicked(spot, velocity, if k < count { 1.0 } else { 0.5 });
    }
    (spot, p)
}

impl Sampler for Hamiltonian {
    fn manifold(&self) -> &dyn Manifold {
        &*self.manifold
    }

    fn transition<'g>(&self, target: SpotOf<'_, 'g>, from: Spot<'g>, step: Expr<'g>, stream: u32) -> Transition<'g> {
        let m = &*self.manifold;
        let p = m.tangent_normal(from.at, from.at.graph().normal_like(stream, from.at));
        let (there, q) = leapfrog(m, target, from, p, step, self.leapfrogs);
        let kinetic = |x: Expr<'g>, p: Expr<'g>| 0.5 * m.inner(x, p, p);
        let log_ratio = from.energy - there.energy + kinetic(from.at, p) - kinetic(there.at, q);
        Transition::tested(from, there, log_ratio, substream(stream, 1))
    }
}
