//! Stein variational gradient descent: particles that push one another, without noise.
//!
//! **Statement.** x⁻ = x + ε φ(x), φ(x) = E_{x'}[−τ k(x', x)∇E(x') + ∇_{x'}k(x', x)].
//! **Source.** liu2016svgd, liu2016ksd; wang2020mvl section 3.4 and appendix B with erratum P11; docs/math §2.7.
//! **Conventions.** The mean is over the particles themselves: all of them (V-statistic, as in the sampler), or all
//! others (U-statistic, unbiased). Steepness N = |∇E|².
//! **Error.** Limit L_svgd = KSD² − E tr∇∇'k, whose bias is O(ε); the V-statistic adds E[k(x,x)|∇E|²]/B and a constant.
//! **Checked by** tests/theory/objective_facts.rs (F18–F21).

use super::{Displacement, EnergyOf, Flow, Noise, Pace, Particles, langevin};
use crate::kernel::Kernel;

/// Which particles a particle is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistic {
    /// All, itself too: the mean over B² pairs.
    #[default]
    V,
    /// The others: the mean over B(B − 1) pairs.
    U,
}

/// Gradient flow of KL in the Wasserstein space of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stein {
    /// k.
    pub kernel: Kernel,
    /// V or U.
    pub statistic: Statistic,
}

impl Flow for Stein {
    fn step<'g>(
        &self,
        energy: EnergyOf<'_, 'g>,
        from: Particles<'g>,
        pace: Pace<'g>,
        _: Noise<'g>,
    ) -> Displacement<'g> {
        let start @ (x, _, gradient) = langevin::start(energy, from.at);
        let step = pace.over(gradient.square().sum(-1));
        let share = from.seen(self.statistic == Statistic::U);
        let others = x.collect();
        let k = self.kernel.between(x, others);
        let pull = (share * k.value).matmul(gradient.collect());
        // ∇_{x'} k = 2κ'(|x − x'|²)(x' − x).
        let push = ((share * k.slope).expand(-1) * (others - x.expand(0))).sum(0);
        let drift = 2.0 * push - pace.temper * pull;
        Displacement::straight_step(start, drift, None, step, |x| x)
    }
}
