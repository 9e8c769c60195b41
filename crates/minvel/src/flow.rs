//! Flows: one step of a dynamics that carries any law of points towards the model's.
//!
//! **Statement.** x⁻ = x + ε·drift(x) + u with u = √(2ε)·z (the flow of KL(·‖q^τ) followed for a time ε).
//! **Source.** wang2020mvl section 2; docs/math §1.1, §2.5–§2.9.
//! **Conventions.** q ∝ e^{−E}; `temper` τ: the step targets q^τ (½ when learning, 1 when sampling); z has E zzᵀ = I.
//! A step is a value ([`Displacement`]) that knows how far it goes, so that differences along it need not cancel.
//! **Error.** One step of Euler–Maruyama: E f(x⁻) is right to O(ε²).
//! **Checked by** tests/theory/objective_laws.rs, tests/theory/objective_facts.rs, tests/theory/golden.rs.

mod birth_death;
mod blend;
mod langevin;
mod riemannian;
mod stein;
mod wasserstein_fisher_rao;

pub use birth_death::{BirthDeath, DensityEstimate};
pub use blend::Blend;
pub use langevin::Langevin;
pub use riemannian::{FlowForm, RiemannianLangevin};
pub use stein::{Statistic, Stein};
pub use wasserstein_fisher_rao::{Mobility, WassersteinFisherRao};

use minvel_engine::{Draw, Expr, Shape, difference};
use std::fmt;

/// An energy as a function of points `rows × [m]` → `rows × []`: a model, or one that is given a condition.
pub type EnergyOf<'a, 'g> = &'a dyn Fn(Expr<'g>) -> Expr<'g>;

/// A dynamics whose stationary law is q^τ.
pub trait Flow: fmt::Debug + Send + Sync {
    /// One step of the flow of `energy` from each particle.
    fn step<'g>(
        &self,
        energy: EnergyOf<'_, 'g>,
        from: Particles<'g>,
        pace: Pace<'g>,
        noise: Noise<'g>,
    ) -> Displacement<'g>;
}

/// One step: where it starts, how far it goes, and what is needed to weigh it.
///
/// Coordinates are those in which the flow moves: the point itself, or its chart.
#[derive(Clone, Copy, Debug)]
pub struct Displacement<'g> {
    /// Coordinates of the start, `rows × [k]`: a leaf, by which `energy` can be differentiated.
    pub at: Expr<'g>,
    /// E at the start, as a function of `at`, `rows × []`.
    pub energy: Expr<'g>,
    /// ∂E in these coordinates, `rows × [k]`.
    pub gradient: Expr<'g>,
    /// Velocity of the mean, `rows × [k]`.
    pub drift: Expr<'g>,
    /// The random part u of the step, of mean zero, `rows × [k]`.
    pub diffusion: Option<Expr<'g>>,
    /// The step in coordinates: x⁻ − x, `rows × [k]`.
    pub delta: Expr<'g>,
    /// Whether delta = ε·drift + u (it does not where a geodesic bends).
    pub straight: bool,
    /// x⁻, a point of the manifold, `rows × [m]`.
    pub to: Expr<'g>,
    /// ε, a scalar or one for each row; constant in differentiation.
    pub step: Expr<'g>,
    /// Λ, the rate at which a particle dies (is born, where negative), of mean zero, `rows × []`.
    pub rate: Option<Expr<'g>>,
}

impl<'g> Displacement<'g> {
    /// The step ε·drift + u from (x, E(x), ∂E(x)); `land` turns coordinates into a point.
    fn straight_step(
        (at, energy, gradient): (Expr<'g>, Expr<'g>, Expr<'g>),
        drift: Expr<'g>,
        diffusion: Option<Expr<'g>>,
        step: Expr<'g>,
        land: impl Fn(Expr<'g>) -> Expr<'g>,
    ) -> Self {
        let carried = step.expand(-1) * drift;
        let delta = diffusion.map_or(carried, |u| carried + u);
        let to = land(at + delta);
        Displacement { at, energy, gradient, drift, diffusion, delta, straight: true, to, step, rate: None }
    }

    /// E(x⁻) − E(x), propagated operation by operation: nothing cancels, however short the step.
    pub fn energy_change(&self) -> Expr<'g> {
        difference(self.energy, &[(self.at, self.delta)])
    }

    /// u·∂E(x), the part of the change of order √ε; its mean over the noise is exactly zero.
    pub fn first_order(&self) -> Option<Expr<'g>> {
        self.diffusion.map(|u| u.dot(self.gradient))
    }

    /// Shares of the particles after birth and death for a time ε: w_i e^{−εΛ_i} / Σ_j w_j e^{−εΛ_j}, `rows × []`.
    pub fn shares(&self, particles: Particles<'g>) -> Option<Expr<'g>> {
        self.rate.map(|rate| {
            let survival = (-self.step * rate).exp();
            let before = particles.weights.unwrap_or_else(|| survival.like(1.0 / particles.count() as f64));
            before * survival / (before * survival).sum_rows()
        })
    }
}

/// Points that stand for a law: Σ_i w_i δ(x_i), with equal weights unless given.
#[derive(Clone, Copy, Debug)]
pub struct Particles<'g> {
    /// The points, `rows × [m]`.
    pub at: Expr<'g>,
    /// Weights that add up to 1, `rows × []`: the law itself then, not a sample of it.
    pub weights: Option<Expr<'g>>,
    /// log p at each, up to a constant, by an estimate that has not seen it, `rows × []`.
    pub log_density: Option<Expr<'g>>,
}

impl<'g> From<Expr<'g>> for Particles<'g> {
    fn from(at: Expr<'g>) -> Self {
        Particles { at, weights: None, log_density: None }
    }
}

impl<'g> Particles<'g> {
    /// Points with weights that add up to 1.
    pub fn weighted(at: Expr<'g>, weights: Expr<'g>) -> Self {
        Particles { at, weights: Some(weights), log_density: None }
    }

    /// The same with held-out log densities: what [`DensityEstimate::Given`] takes.
    pub fn with_log_density(self, log_density: Expr<'g>) -> Self {
        Particles { log_density: Some(log_density), ..self }
    }

    /// How many.
    pub fn count(self) -> usize {
        self.at.shape().rows.unwrap_or_else(|| panic!("particles: {} has no row axis", self.at.shape()))
    }

    /// Σ_i w_i f_i of a row value `rows × []`.
    pub fn mean(self, f: Expr<'g>) -> Expr<'g> {
        match self.weights {
            Some(w) => (w * f).sum_rows(),
            None => f.mean_rows(),
        }
    }

    /// Rows whose mean is Cov(a, b): unbiased for a sample (divisor B − 1), plain for weighted particles.
    pub fn covariance_rows(self, a: Expr<'g>, b: Expr<'g>) -> Expr<'g> {
        let rows = (a - self.mean(a)) * (b - self.mean(b));
        let count = self.count() as f64;
        if self.weights.is_some() { rows } else { rows * (count / (count - 1.0)) }
    }

    /// The share of particle j in a mean seen from particle i: w_j, or without itself 1[j ≠ i]·w_j/(1 − w_i); `[B]` or
    /// `rows × [B]`.
    fn seen(self, without_itself: bool) -> Expr<'g> {
        let (g, count) = (self.at.graph(), self.count());
        let uniform = || g.fill(1.0 / count as f64, Shape::whole([count]));
        let w = self.weights.map_or_else(uniform, Expr::collect);
        if !without_itself {
            return w;
        }
        assert!(count > 1, "particles: at least two are needed");
        let index = g.table(&(0..count).map(|i| i as f64).collect::<Vec<_>>(), [count]);
        let other = 1.0 - index.distribute().expand(-1).equal(index);
        match self.weights {
            Some(own) => other * w / (1.0 - own).expand(-1),
            None => other * (1.0 / (count - 1) as f64),
        }
    }
}

/// How far and towards what a step goes.
#[derive(Clone, Copy, Debug)]
pub struct Pace<'g> {
    /// ε, a scalar or one for each row.
    pub step: Expr<'g>,
    /// τ: the step targets q^τ.
    pub temper: f64,
    /// Whether ε is divided by max(1, N_i), where N_i tells how steep the energy is at row i (docs/math §1.6).
    pub adaptive: bool,
}

impl<'g> Pace<'g> {
    /// Steps of the same size towards q.
    pub fn sampling(step: Expr<'g>) -> Self {
        Pace { step, temper: 1.0, adaptive: false }
    }

    /// Steps of the same size towards q^{1/2}: the tempering that makes the loss proper (docs/math §1.1).
    pub fn learning(step: Expr<'g>) -> Self {
        Pace { step, temper: 0.5, adaptive: false }
    }

    /// ε of each row, given N: ε/max(1, N) if adaptive, constant in differentiation.
    fn over(self, steepness: Expr<'g>) -> Expr<'g> {
        if self.adaptive { (self.step / steepness.max(1.0)).stop_gradient() } else { self.step.stop_gradient() }
    }
}

/// A law of z with E z = 0, E zzᵀ = I and no third moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Law {
    /// N(0, I).
    #[default]
    Gaussian,
    /// Independent ±1.
    Rademacher,
    /// Uniform on the sphere of radius √d.
    Sphere,
}

/// Where the noise of a step comes from: given, or drawn from a stream of the program.
#[derive(Clone, Copy, Debug)]
pub struct Noise<'g> {
    source: Source<'g>,
    sign: f64,
}

#[derive(Clone, Copy, Debug)]
enum Source<'g> {
    Given(Expr<'g>),
    Drawn(Law, u32),
}

impl<'g> Noise<'g> {
    /// Numbers given for each row.
    pub fn given(z: Expr<'g>) -> Self {
        Noise { source: Source::Given(z), sign: 1.0 }
    }

    /// Numbers of a stream that nothing else uses.
    pub fn drawn(law: Law, stream: u32) -> Self {
        Noise { source: Source::Drawn(law, stream), sign: 1.0 }
    }

    /// −z.
    pub fn opposite(self) -> Self {
        Noise { sign: -self.sign, ..self }
    }

    /// z, one number for each of `x`.
    pub fn like(self, x: Expr<'g>) -> Expr<'g> {
        let shape = x.shape();
        let rows = shape.rows.unwrap_or_else(|| panic!("noise: {shape} has no row axis"));
        let draw = |draw, stream| x.graph().random_rows(draw, stream, rows, shape.dims.clone());
        let z = match self.source {
            Source::Given(z) => {
                assert!(z.shape() == shape, "noise: {} was given, {shape} is needed", z.shape());
                z
            }
            Source::Drawn(Law::Gaussian, stream) => draw(Draw::Normal, stream),
            Source::Drawn(Law::Rademacher, stream) => draw(Draw::Rademacher, stream),
            Source::Drawn(Law::Sphere, stream) => {
                let z = draw(Draw::Normal, stream);
                z * (z.square().mean(-1)).rsqrt().expand(-1)
            }
        };
        self.sign * z
    }
}

/// The point as a leaf, at which derivatives are taken: the engine moves scalings outward, so that an expression built
/// from 2·y need not contain 2·y.
pub(crate) fn leaf(x: Expr<'_>) -> Expr<'_> {
    assert!(x.as_fill().is_none(), "flow: the points are one constant, which cannot be told from others");
    x.stop_gradient()
}
