//! Optimisers, schedules, clipping and weight averages: all of them expressions.
//!
//! [`Optimiser::minimise`] turns a loss into updates of variables, to be compiled into the same program as the loss.
//! State (second moments, momenta, averages) lives in variables named after the parameter, as `w/second`.

use crate::derive::grad;
use crate::graph::Expr;
use crate::math::Real;
use crate::op::Op;
use crate::state::State;

/// How a gradient becomes a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UpdateRule {
    /// θ ← θ − η·v with v ← μ·v + g (plain gradient descent for μ = 0).
    Sgd {
        /// μ.
        momentum: f64,
    },
    /// TensorFlow 1 (tieleman2012rmsprop): s ← ρs + (1−ρ)g², s₀ = 1; θ ← θ − η·g/√(s + ε).
    RmsPropTf {
        /// ρ.
        decay: f64,
        /// ε, inside the root.
        epsilon: f64,
    },
    /// PyTorch: s ← ρs + (1−ρ)g², s₀ = 0; θ ← θ − η·g/(√s + ε).
    RmsPropTorch {
        /// ρ.
        decay: f64,
        /// ε, outside the root.
        epsilon: f64,
    },
    /// Adam (kingma2015adam) with bias correction; `decay` > 0 is AdamW's decoupled weight decay (loshchilov2019adamw).
    Adam {
        /// β₁.
        first: f64,
        /// β₂.
        second: f64,
        /// ε, outside the root.
        epsilon: f64,
        /// Weight decay λ: θ ← θ − η·λ·θ besides the step.
        decay: f64,
    },
}

/// How the learning rate changes with the step t = 0, 1, ….
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateSchedule {
    /// 1 throughout.
    Constant,
    /// From 1 to `floor` over `steps` along half a cosine, then `floor`.
    Cosine {
        /// Steps of the descent.
        steps: u32,
        /// Where it ends.
        floor: f64,
    },
    /// factor^⌊t/every⌋.
    Steps {
        /// Steps between two changes.
        every: u32,
        /// What the rate is multiplied by.
        factor: f64,
    },
}

impl RateSchedule {
    /// The factor at a step, as an expression.
    pub fn at<'g>(&self, step: Expr<'g>) -> Expr<'g> {
        match *self {
            RateSchedule::Constant => step.like(1.0),
            RateSchedule::Cosine { steps, floor } => {
                let phase = (step * (std::f64::consts::PI / steps as f64)).min(std::f64::consts::PI);
                floor + (1.0 - floor) * 0.5 * (1.0 + phase.cos())
            }
            // Half a step more, since division by a constant is a product that may fall just short of a whole number.
            RateSchedule::Steps { every, factor } => (((step + 0.5) / every as f64).floor() * factor.ln()).exp(),
        }
    }
}

/// A rule with its learning rate, schedule and limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimiser {
    /// How a gradient becomes a step.
    pub rule: UpdateRule,
    /// Learning rate η.
    pub rate: f64,
    /// How it changes.
    pub schedule: RateSchedule,
    /// Largest norm of the whole gradient, per replica; longer ones are shortened to it.
    pub clip: Option<f64>,
    /// Decay of an exponential moving average of the weights, kept as `w/average`.
    pub average: Option<f64>,
}

impl Optimiser {
    /// A rule with constant rate, no clipping, no average.
    pub fn new(rule: UpdateRule, rate: f64) -> Self {
        Optimiser { rule, rate, schedule: RateSchedule::Constant, clip: None, average: None }
    }

    /// TensorFlow 1's RMSProp with its defaults (ρ = 0.9, ε = 1e-10 inside the root, s₀ = 1): the paper's optimiser.
    pub fn rmsprop_tf(rate: f64) -> Self {
        Self::new(UpdateRule::RmsPropTf { decay: 0.9, epsilon: 1e-10 }, rate)
    }

    /// PyTorch's RMSProp with its defaults (ρ = 0.99, ε = 1e-8 outside the root, s₀ = 0).
    pub fn rmsprop_torch(rate: f64) -> Self {
        Self::new(UpdateRule::RmsPropTorch { decay: 0.99, epsilon: 1e-8 }, rate)
    }

    /// Adam with its usual constants.
    pub fn adam(rate: f64) -> Self {
        Self::adamw(rate, 0.0)
    }

    /// AdamW with its usual constants.
    pub fn adamw(rate: f64, decay: f64) -> Self {
        Self::new(UpdateRule::Adam { first: 0.9, second: 0.999, epsilon: 1e-8, decay }, rate)
    }

    /// The same with a rate that falls to zero over so many steps, along half a cosine.
    pub fn cosine(self, steps: u32) -> Self {
        Optimiser { schedule: RateSchedule::Cosine { steps, floor: 0.0 }, ..self }
    }

    /// Updates that lower `loss` by changing `parameters`.
    pub fn minimise<'g>(&self, loss: Expr<'g>, parameters: &[Expr<'g>]) -> Updates<'g> {
        self.descend(&grad(loss, parameters), parameters)
    }

    /// Updates along given gradients.
    pub fn descend<'g>(&self, gradients: &[Expr<'g>], parameters: &[Expr<'g>]) -> Updates<'g> {
        let mut updates = Updates { updates: vec![], slots: vec![] };
        let Some(first) = parameters.first() else { return updates };
        let step = first.graph().step();
        let rate = self.rate * self.schedule.at(step);
        let shorten = self.clip.map(|limit| {
            let over_rows = |e: Expr<'g>| if e.shape().rows.is_some() { e.sum_rows() } else { e };
            let squares = gradients.iter().map(|g| over_rows(g.square().sum_all()));
            let norm = squares.reduce(|a, b| a + b).expect("at least one gradient").sqrt();
            norm.less_equal(limit).select(norm.like(1.0), limit / norm)
        });
        for (&parameter, &gradient) in parameters.iter().zip(gradients) {
            let gradient = shorten.map_or(gradient, |s| gradient * s);
            let value = parameter - self.rule.step(parameter, gradient, rate, step, &mut updates);
            updates.updates.push((parameter, value));
            if let Some(decay) = self.average {
                let average = updates.slot(parameter, "average", f64::NAN);
                updates.updates.push((average, average * decay + value * (1.0 - decay)));
            }
        }
        updates
    }
}

impl UpdateRule {
    /// What is subtracted from the parameter.
    fn step<'g>(
        &self,
        x: Expr<'g>,
        g: Expr<'g>,
        rate: Expr<'g>,
        step: Expr<'g>,
        updates: &mut Updates<'g>,
    ) -> Expr<'g> {
        match *self {
            UpdateRule::Sgd { momentum: 0.0 } => rate * g,
            UpdateRule::Sgd { momentum } => {
                let v = updates.keep(x, "momentum", 0.0, |old| old * momentum + g);
                rate * v
            }
            UpdateRule::RmsPropTf { decay, epsilon } => {
                let s = updates.keep(x, "second", 1.0, |old| old * decay + g.square() * (1.0 - decay));
                rate * g * (s + epsilon).rsqrt()
            }
            UpdateRule::RmsPropTorch { decay, epsilon } => {
                let s = updates.keep(x, "second", 0.0, |old| old * decay + g.square() * (1.0 - decay));
                rate * g / (s.sqrt() + epsilon)
            }
            UpdateRule::Adam { first, second, epsilon, decay } => {
                let m = updates.keep(x, "first", 0.0, |old| old * first + g * (1.0 - first));
                let s = updates.keep(x, "second", 0.0, |old| old * second + g.square() * (1.0 - second));
                // 1 − βᵗ for t = step + 1, from expm1 because β is close to 1.
                let correction = |beta: f64| -((step + 1.0) * beta.ln()).expm1();
                let ratio = m / correction(first) / ((s / correction(second)).sqrt() + epsilon);
                rate * (ratio + x * decay)
            }
        }
    }
}

/// Updates for [`crate::Graph::compile`], and the variables they keep.
#[derive(Default)]
pub struct Updates<'g> {
    /// Variables and their new values.
    pub updates: Vec<(Expr<'g>, Expr<'g>)>,
    /// Variables of the optimiser: expression and start value (NaN: the parameter's own).
    slots: Vec<(String, String, usize, f64)>,
}

impl<'g> Updates<'g> {
    /// A variable beside a parameter.
    fn slot(&mut self, parameter: Expr<'g>, suffix: &str, start: f64) -> Expr<'g> {
        let Op::Variable(name) = parameter.node().op else { panic!("optimise: {parameter:?} is not a variable") };
        let slot = format!("{name}/{suffix}");
        let shape = parameter.shape();
        self.slots.push((slot.clone(), name.to_string(), shape.len(), start));
        match shape.rows {
            Some(rows) => parameter.graph().variable_rows(&slot, rows, shape.dims),
            None => parameter.graph().variable(&slot, shape.dims),
        }
    }

    /// A variable that gets the value `next(old)` at every step, which is returned.
    fn keep(&mut self, x: Expr<'g>, suffix: &str, start: f64, next: impl Fn(Expr<'g>) -> Expr<'g>) -> Expr<'g> {
        let slot = self.slot(x, suffix, start);
        let value = next(slot);
        self.updates.push((slot, value));
        value
    }

    /// Gives the optimiser's variables their start values, unless the state has them already (a resumed run).
    pub fn initialise<T: Real>(&self, state: &mut State<T>) {
        for (slot, parameter, len, start) in &self.slots {
            if state.get(slot).is_some() {
                continue;
            }
            if start.is_nan() {
                let own = state.get(parameter).unwrap_or_else(|| panic!("optimise: set `{parameter}` first")).to_vec();
                state.set(slot, &own, *len);
            } else {
                state.set(slot, &vec![T::from_f64(*start); *len], *len);
            }
        }
    }
}
