//! Samplers: steps that leave the law q ∝ e^{−E} as it is, repeated from anywhere, for many chains at once.
//!
//! **Statement.** x' ~ K(x, ·) with ∫ q(x)K(x, ·) dx = q: exactly where a Metropolis test corrects the step, to O(ε)
//! where a flow is merely repeated.
//! **Source.** docs/math §2.7–§2.9, §3, §4.6; roberts1996langevin, byrne2013geodesic.
//! **Conventions.** Each row is a chain. A step is a pure function of the state ([`Spot`]) and of the clock's random
//! numbers; it returns the new state and its acceptance. τ = 1: q itself is targeted.
//! **Error.** That of each sampler; states that are not finite are reported ([`ChainDivergence`]), never passed on.
//! **Checked by** tests/theory/sampler_laws.rs, sampler_moments.rs, sampler_particles.rs, sampler_facts.rs (F47–F51),
//! annealed.rs.

mod adaptation;
mod annealed;
mod chains;
mod draws;
mod hamiltonian;
mod metropolis;
mod repeated;
mod schedule;

pub use crate::ChainDivergence;
pub use adaptation::Adaptation;
pub use annealed::{Annealed, Annealing, LogWeights};
pub use chains::{Chains, Walk};
pub use draws::Draws;
pub use hamiltonian::{Hamiltonian, leapfrog};
pub use metropolis::{ChartLaw, Metropolis};
pub use repeated::{Repeated, systematic};
pub use schedule::AnnealingSchedule;

use crate::flow::{Blend, EnergyOf, FlowForm, RiemannianLangevin, Stein, leaf};
use crate::manifold::{Manifold, Space};
use minvel_engine::{Draw, Expr, grad};
use std::fmt;
use std::sync::Arc;

/// Where each chain is, with the energy there and its derivative: all that the next step needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'g> {
    /// x, `rows × [m]`.
    pub at: Expr<'g>,
    /// E(x), `rows × []`.
    pub energy: Expr<'g>,
    /// ∂E in the coordinates of x, `rows × [m]`.
    pub gradient: Expr<'g>,
    /// V(x) and ∂V where E = E_0 + βV is one of a family: what another β needs to know.
    pub part: Option<(Expr<'g>, Expr<'g>)>,
}

/// What is known of a target at points: E and ∂E, in the way that is cheapest for it. `&|x| Spot::of(energy, x)` for an
/// energy.
pub type SpotOf<'a, 'g> = &'a dyn Fn(Expr<'g>) -> Spot<'g>;

impl<'g> Spot<'g> {
    /// At x.
    pub fn of(energy: EnergyOf<'_, 'g>, x: Expr<'g>) -> Self {
        let at = leaf(x);
        let value = energy(at);
        Spot { at, energy: value, gradient: grad(value, &[at])[0], part: None }
    }

    /// Linear in the point, with E's own value and gradient at this one: a flow that starts here asks for no more, so
    /// that E need not be evaluated again.
    pub fn tangent(self) -> impl Fn(Expr<'g>) -> Expr<'g> {
        let slope = self.gradient.stop_gradient();
        let height = (self.energy - self.gradient.dot(self.at)).stop_gradient();
        move |x| height + slope.dot(x)
    }

    /// `new` where accepted (`rows × []` of 0 and 1), else this.
    fn replaced(self, accepted: Expr<'g>, new: Self) -> Self {
        let choose = |new: Expr<'g>, old: Expr<'g>| accepted.expand(-1).select(new, old);
        Spot {
            at: choose(new.at, self.at),
            energy: accepted.select(new.energy, self.energy),
            gradient: choose(new.gradient, self.gradient),
            part: new.part.zip(self.part).map(|(new, old)| (accepted.select(new.0, old.0), choose(new.1, old.1))),
        }
    }
}

/// One step of each chain.
#[derive(Clone, Copy, Debug)]
pub struct Transition<'g> {
    /// Where the chains are now.
    pub to: Spot<'g>,
    /// The probability with which the proposal was accepted, `rows × []`; `None` where nothing is tested.
    pub acceptance: Option<Expr<'g>>,
}

impl<'g> Transition<'g> {
    /// Metropolis' test: to `there` with probability min(1, e^{log_ratio}), else back to `here`. A ratio that is not a
    /// number (a proposal off the chart, an infinite energy) rejects.
    pub fn tested(here: Spot<'g>, there: Spot<'g>, log_ratio: Expr<'g>, stream: u32) -> Self {
        let rows = here.at.shape().rows.expect("chains are rows");
        let uniform = here.at.graph().random_rows(Draw::Uniform, stream, rows, []);
        let accepted = uniform.log().less_equal(log_ratio);
        let number = log_ratio.less_equal(f64::INFINITY);
        let acceptance = number.select(log_ratio.min(0.0).exp(), log_ratio.like(0.0));
        Transition { to: here.replaced(accepted, there), acceptance: Some(acceptance) }
    }
}

/// A Markov chain on a manifold.
pub trait Sampler: fmt::Debug + Send + Sync {
    /// Where the chains live.
    fn manifold(&self) -> &dyn Manifold;

    /// One step of size ε (a scalar) towards the law of `target`, with random numbers of `stream` and its substreams
    /// ([`crate::stream::substream`]).
    fn transition<'g>(&self, target: SpotOf<'_, 'g>, from: Spot<'g>, step: Expr<'g>, stream: u32) -> Transition<'g>;
}

/// How a name becomes a sampler on a manifold.
type Make = fn(Arc<dyn Manifold>) -> Result<Arc<dyn Sampler>, String>;

/// The list: a new sampler is a file and a line here. (Birth and death needs a bandwidth, and is built in code.)
const SAMPLERS: [(&str, Make); 6] = [
    ("langevin", |m| {
        Ok(Arc::new(Repeated::on(m.clone(), RiemannianLangevin { manifold: m, form: FlowForm::Geodesic })))
    }),
    ("metropolis", |m| Ok(Arc::new(Metropolis::on(m)))),
    ("metropolis-official", |m| Ok(Arc::new(Metropolis { charts: ChartLaw::OfState, ..Metropolis::on(m) }))),
    ("hamiltonian", |m| Ok(Arc::new(Hamiltonian::on(m, Hamiltonian::LEAPFROGS)))),
    ("stein", |m| Ok(Arc::new(Repeated::on(flat(m)?, Stein::default())))),
    ("blend", |m| Ok(Arc::new(Repeated::on(flat(m)?, Blend::convex(0.5, Stein::default()))))),
];

/// The manifold, if it is Rⁿ.
fn flat(manifold: Arc<dyn Manifold>) -> Result<Arc<dyn Manifold>, String> {
    match manifold.spaces().as_deref() {
        Some([Space::Euclidean(_)]) => Ok(manifold),
        _ => Err(format!("Stein particles need Euclidean space, not {manifold}: use metropolis or hamiltonian")),
    }
}

/// The sampler of a name, on a manifold.
///
/// ```
/// use minvel::{manifold, sampler};
/// let sphere = manifold::parse("sphere:2").unwrap();
/// assert_eq!(sampler::parse("metropolis", sphere.clone()).unwrap().manifold().dim(), 2);
/// assert!(sampler::parse("stein", sphere.clone()).unwrap_err().contains("sphere:2"));
/// assert!(sampler::parse("gibbs", sphere).unwrap_err().contains("hamiltonian"));
/// ```
pub fn parse(name: &str, manifold: Arc<dyn Manifold>) -> Result<Arc<dyn Sampler>, String> {
    match SAMPLERS.iter().find(|(known, _)| *known == name.trim()) {
        Some((_, make)) => make(manifold),
        None => {
            let known: Vec<&str> = SAMPLERS.iter().map(|(known, _)| *known).collect();
            Err(format!("unknown sampler `{name}`; expected {}", known.join(", ")))
        }
    }
}
