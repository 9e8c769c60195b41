//! Langevin proposals with Metropolis' test, on any manifold: in flat space the Metropolis-adjusted Langevin algorithm.
//!
//! **Statement.** In a chart, y' ~ N(y + ε(−g^{ij}∂_jE + b), 2εG⁻¹); accepted with probability min(1, e^a),
//! a = E(y) − E(y') + log|G(y')| − log|G(y)| + Q(y→y') − Q(y'→y), Q(y→y') = |y' − y − ε·drift(y)|²_{G(y)}/4ε.
//! On a manifold that is no product of model spaces, along geodesics: x' = exp_x(v), v ~ N(−ε grad E, 2ε), and back by
//! v' = log_{x'} x: a = E(x) − E(x') + (|v + ε grad E|² − |v' + ε grad' E|²)/4ε, since |dvol/dv| is the same both ways.
//! **Source.** docs/math §4.6; roberts1996langevin; girolami2011riemann. **Conventions.** The target's density in the chart
//! is e^{−E}|G|^{1/2}, the proposal's normaliser |G(y)|^{1/2}: hence log|G| with weight 1.
//! **Error.** Geodesic steps longer than the injectivity radius are rejected; else none, if the chart is drawn independently of the state: for each chart the step is reversible, so their
//! mixture is. A chart chosen by the state (the official code) breaks that where a proposal crosses the equator, since the
//! way back would be proposed in the other chart; annealed log Z is then too high by 0.03–0.4.
//! **Checked by** tests/theory/sampler_laws.rs, tests/theory/sampler_moments.rs, tests/theory/sampler_facts.rs (F50).

use super::{Sampler, Spot, SpotOf, Transition};
use crate::flow::{FlowForm, Law, Noise, Pace, RiemannianLangevin};
use crate::manifold::Manifold;
use crate::stream::substream;
use minvel_engine::{Draw, Expr};
use std::sync::Arc;

/// In which chart a step is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChartLaw {
    /// One drawn for each step and chain, whatever the state.
    #[default]
    Independent,
    /// The manifold's choice for the state, as in the official code: **not** reversible. Only to compare with its numbers.
    OfState,
}

/// Langevin steps, corrected.
#[derive(Clone, Debug)]
pub struct Metropolis {
    /// Where the chains live.
    pub manifold: Arc<dyn Manifold>,
    /// How charts are chosen.
    pub charts: ChartLaw,
}

impl Metropolis {
    /// On a manifold.
    pub fn new(manifold: impl Manifold + 'static) -> Self {
        Self::on(Arc::new(manifold))
    }

    /// On a shared manifold.
    pub fn on(manifold: Arc<dyn Manifold>) -> Self {
        Metropolis { manifold, charts: ChartLaw::Independent }
    }

    fn chart<'g>(&self, x: Expr<'g>, stream: u32) -> Expr<'g> {
        match self.charts {
            ChartLaw::OfState => self.manifold.choose_chart(x),
            // Charts of ours are named by signs; where one chart covers, the sign is not looked at.
            ChartLaw::Independent => {
                let rows = x.shape().rows.expect("chains are rows");
                x.graph().random_rows(Draw::Rademacher, stream, rows, [self.manifold.charts()])
            }
        }
    }
}

impl Metropolis {
    /// A step along a geodesic, on any manifold.
    fn along_geodesics<'g>(
        &self,
        target: SpotOf<'_, 'g>,
        from: Spot<'g>,
        step: Expr<'g>,
        stream: u32,
    ) -> Transition<'g> {
        let m = &*self.manifold;
        let drift = |spot: Spot<'g>| -step.expand(-1) * m.gradient(spot.at, spot.gradient);
        let way = |spot: Spot<'g>, u: Expr<'g>| m.inner(spot.at, u, u) / (4.0 * step);
        let z = Noise::drawn(Law::Gaussian, stream).like(from.at);
        let u = (2.0 * step).sqrt().expand(-1) * m.tangent_normal(from.at, z);
        let v = drift(from) + u;
        let there = target(m.exp(from.at, v));
        let back = m.log(there.at, from.at);
        let log_ratio = from.energy - there.energy + way(from, u) - way(there, back - drift(there));
        // Beyond the injectivity radius the way back is another one.
        let near = m.inner(from.at, v, v).less(m.injectivity().powi(2));
        let log_ratio = near.select(log_ratio, log_ratio.like(f64::NEG_INFINITY));
        Transition::tested(from, there, log_ratio, substream(stream, 2))
    }
}

impl Sampler for Metropolis {
    fn manifold(&self) -> &dyn Manifold {
        &*self.manifold
    }

    fn transition<'g>(&self, target: SpotOf<'_, 'g>, from: Spot<'g>, step: Expr<'g>, stream: u32) -> Transition<'g> {
        if self.manifold.spaces().is_none() {
            return self.along_geodesics(target, from, step, stream);
        }
        let flow = RiemannianLangevin { manifold: self.manifold.clone(), form: FlowForm::Chart };
        let pace = Pace::sampling(step);
        let chart = self.chart(from.at, substream(stream, 1));
        let forth = flow.step_in_chart(&from.tangent(), from.at, chart, pace, Noise::drawn(Law::Gaussian, stream));
        let there = target(forth.to);
        let still = Noise::given(forth.at.like(0.0));
        let back = flow.step_in_chart(&there.tangent(), there.at, chart, pace, still);

        let (here, after) = (self.manifold.metric(forth.at), self.manifold.metric(back.at));
        let length = |u: Expr<'g>, inverse: Expr<'g>| (u.square() / inverse).sum(-1) / (4.0 * step);
        let forward = length(forth.diffusion.expect("Langevin steps have noise"), here.inverse);
        let backward = length(forth.delta + step.expand(-1) * back.drift, after.inverse);
        let log_ratio = from.energy - there.energy + after.log_det - here.log_det + forward - backward;
        // Settled only now: a wrapped angle would make the way back look long.
        let there = Spot { at: self.manifold.settle(there.at), ..there };
        Transition::tested(from, there, log_ratio, substream(stream, 2))
    }
}
