//! The gradient flow of KL in the Wasserstein–Fisher–Rao space over a manifold: transport, birth and death.
//!
//! **Statement.** x⁻ = exp_x(ε(−τw grad E + grad w) + √(2wε)·ζ), and particle i dies at rate λ(ℓ_i + τE_i − mean), ℓ = log p.
//! The squared speed is E_p[w|grad(E + log p)|²] + λ·Var_p(E + log p). The mobility w is 1, or follows the local width:
//! w = 1/(1 + (p/p̃)^{2/n}), p̃ a typical density, the squared width of a kernel that holds a given mass.
//! **Source.** lu2019birthdeath; docs/math §2.9, §2.14; the mobility is ours. **Conventions.** λ is the ratio of birth and death
//! to transport; λ = 0 is transport alone. ℓ is constant in θ, and constants in E and ℓ do not matter. w does not depend on θ.
//! **Error.** Bias O(ε) of transport; that of ℓ moves the minimiser, noise of ℓ that is independent of the row does not
//! (docs/math §2.14).
//! **Checked by** tests/theory/objective_facts/fisher_rao.rs (F57–F61), tests/theory/objective_laws.rs.

use super::{DensityEstimate, Displacement, EnergyOf, Flow, Noise, Pace, Particles, langevin};
use crate::energy::Energy;
use crate::manifold::Manifold;
use minvel_engine::{Expr, grad};
use std::sync::Arc;

/// How fast particles move where they are.
#[derive(Clone, Debug)]
pub enum Mobility {
    /// The same everywhere.
    Constant,
    /// With the squared local width of a density.
    LocalWidth {
        /// −log p up to nothing: it must be normalised, or `typical` be in its units.
        density: Arc<dyn Energy>,
        /// log p̃.
        typical: f64,
    },
}

impl Mobility {
    /// w at points of a manifold of n dimensions, `rows × []`.
    pub fn at<'g>(&self, x: Expr<'g>, n: usize) -> Expr<'g> {
        match self {
            Mobility::Constant => x.sum(-1).like(1.0),
            Mobility::LocalWidth { density, typical } => {
                let above = (-density.energy(x) - *typical) * (2.0 / n as f64);
                (-above).sigmoid()
            }
        }
    }
}

/// Transport with a mobility, birth and death with a ratio.
#[derive(Clone, Debug)]
pub struct WassersteinFisherRao {
    /// Where the points live.
    pub manifold: Arc<dyn Manifold>,
    /// λ.
    pub ratio: f64,
    /// log p.
    pub density: DensityEstimate,
    /// w.
    pub mobility: Mobility,
}

impl WassersteinFisherRao {
    /// Constant mobility.
    pub fn new(manifold: impl Manifold + 'static, ratio: f64, density: DensityEstimate) -> Self {
        assert!(ratio >= 0.0, "Wasserstein–Fisher–Rao: the ratio must not be negative, not {ratio}");
        WassersteinFisherRao { manifold: Arc::new(manifold), ratio, density, mobility: Mobility::Constant }
    }
}

impl Flow for WassersteinFisherRao {
    fn step<'g>(
        &self,
        energy: EnergyOf<'_, 'g>,
        from: Particles<'g>,
        pace: Pace<'g>,
        noise: Noise<'g>,
    ) -> Displacement<'g> {
        let manifold = &self.manifold;
        let (at, value, derivative) = langevin::start(energy, from.at);
        let gradient = manifold.gradient(at, derivative);
        let mut drift = -pace.temper * gradient;
        let mut normal = manifold.tangent_normal(at, noise.like(at));
        let mut steepness = manifold.inner(at, gradient, gradient);
        if let Mobility::LocalWidth { .. } = self.mobility {
            let w = self.mobility.at(at, manifold.dim());
            let climb = manifold.gradient(at, grad(w, &[at])[0]);
            drift = w.expand(-1) * drift + climb;
            normal = w.sqrt().expand(-1) * normal;
            steepness = w * steepness;
        }
        let step = pace.over(steepness);
        let u = (2.0 * step).sqrt().expand(-1) * normal;
        let delta = manifold.exp_delta(at, step.expand(-1) * drift + u);
        let rate = self.density.log_density(from).stop_gradient() + pace.temper * value;
        Displacement {
            at,
            energy: value,
            gradient: derivative,
            drift,
            diffusion: Some(u),
            delta,
            straight: false,
            to: manifold.settle(at + delta),
            step,
            rate: (self.ratio > 0.0).then(|| self.ratio * (rate - from.mean(rate))),
        }
    }
}
