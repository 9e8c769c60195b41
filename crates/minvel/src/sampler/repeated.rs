//! A flow, repeated: unadjusted Langevin dynamics, Stein particles, their blend, birth and death.
//!
//! **Statement.** x' = the flow's step from x; where the flow gives particles shares w_i ∝ e^{−εΛ_i}, the population is
//! then drawn anew from them, systematically: particle i has ⌊Bw_i⌋ or ⌈Bw_i⌉ children, Bw_i on average.
//! **Source.** docs/math §2.5–§2.9, §3.5; roberts1996langevin; liu2016svgd; lu2019birthdeath; kitagawa1996 (resampling).
//! **Conventions.** Chains are independent where the flow treats rows apart, else the rows of a replica are one population.
//! Drawn systematically, a particle dies with probability εΛ_i + O(ε²) where Λ_i > 0, as in the jump process.
//! **Error.** The stationary law is q up to O(ε) (Langevin), O(1/B) (Stein), the kernel's bias (birth and death).
//! **Checked by** tests/theory/sampler_moments.rs, tests/theory/sampler_particles.rs, tests/theory/sampler_laws.rs.

use super::{Sampler, Spot, SpotOf, Transition};
use crate::flow::{Flow, Law, Noise, Pace, Particles};
use crate::manifold::{Euclidean, Manifold};
use crate::stream::substream;
use minvel_engine::{Draw, Expr};
use std::sync::Arc;

/// A flow followed step by step.
#[derive(Clone, Debug)]
pub struct Repeated {
    /// Where the points live.
    pub manifold: Arc<dyn Manifold>,
    /// What moves them.
    pub flow: Arc<dyn Flow>,
}

impl Repeated {
    /// On Rⁿ.
    pub fn new(n: usize, flow: impl Flow + 'static) -> Self {
        Self::on(Arc::new(Euclidean(n)), flow)
    }

    /// On a manifold, by a flow that keeps to it.
    pub fn on(manifold: Arc<dyn Manifold>, flow: impl Flow + 'static) -> Self {
        Repeated { manifold, flow: Arc::new(flow) }
    }
}

impl Sampler for Repeated {
    fn manifold(&self) -> &dyn Manifold {
        &*self.manifold
    }

    fn transition<'g>(&self, target: SpotOf<'_, 'g>, from: Spot<'g>, step: Expr<'g>, stream: u32) -> Transition<'g> {
        let particles = Particles::from(from.at);
        let noise = Noise::drawn(Law::Gaussian, stream);
        let moved = self.flow.step(&from.tangent(), particles, Pace::sampling(step), noise);
        let to = match moved.shares(particles) {
            Some(shares) => systematic(moved.to, shares, substream(stream, 1)),
            None => moved.to,
        };
        Transition { to: target(self.manifold.settle(to)), acceptance: None }
    }
}

/// A population drawn from points `rows × [m]` with shares `rows × []` that add up to 1: slot k takes the point in whose
/// part of the interval [0, 1] the number (k + u)/B falls, u uniform and common to all slots.
pub fn systematic<'g>(points: Expr<'g>, shares: Expr<'g>, stream: u32) -> Expr<'g> {
    let (g, count) = (points.graph(), points.shape().rows.expect("particles are rows"));
    let slots = g.table(&(0..count).map(|k| k as f64).collect::<Vec<_>>(), [count]);
    let own = slots.distribute();
    // The upper end of each point's part, in units of 1/B: Σ_{j ≤ i} B w_j.
    let ends = count as f64 * (slots.less_equal(own.expand(-1)) * shares.collect()).sum(-1);
    let place = own + g.random(Draw::Uniform, stream, []);
    let index = ends.collect().less_equal(place.expand(-1)).sum(-1).min(count as f64 - 1.0);
    points.collect().gather(index)
}
