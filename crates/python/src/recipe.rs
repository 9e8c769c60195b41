//! Flows, objectives and samplers by name.

use crate::error::refused;
use minvel::Manifold;
use minvel::flow::{
    BirthDeath, Blend, DensityEstimate, Flow, FlowForm, Langevin, Mobility, RiemannianLangevin, Stein,
    WassersteinFisherRao,
};
use minvel::manifold::Space;
use minvel::objective::{
    Contrastive, Denoising, MinimumVelocity, Objective, ProbabilityFlow, Reduction, ScoreMatching, Sliced,
    TransportReaction,
};
use minvel::sampler::{self, Repeated, Sampler};
use pyo3::prelude::*;
use std::sync::Arc;

/// What an objective is made of, by name; ε is a step, a variance or a squared deviation.
#[derive(FromPyObject)]
pub struct Recipe {
    name: String,
    flow: String,
    step: f64,
    reduction: String,
    adaptive: bool,
    penalty: f64,
    bandwidth: f64,
    ratio: f64,
}

/// Names of the flows.
const FLOWS: &str = "langevin, chart, stein, blend, birth-death or wasserstein-fisher-rao";

/// Whether a manifold is Rⁿ.
fn is_flat(manifold: &dyn Manifold) -> bool {
    matches!(manifold.spaces().as_deref(), Some([Space::Euclidean(_)]))
}

/// The flow of a name on a manifold; h is the bandwidth of births and deaths, λ their ratio to transport.
fn flow(name: &str, manifold: &Arc<dyn Manifold>, h: f64, ratio: f64) -> PyResult<Arc<dyn Flow>> {
    let flat = is_flat(&**manifold);
    let on = |form| Arc::new(RiemannianLangevin { manifold: manifold.clone(), form }) as Arc<dyn Flow>;
    match (name, flat) {
        ("langevin" | "chart", true) => Ok(Arc::new(Langevin)),
        ("langevin", false) => Ok(on(FlowForm::Geodesic)),
        ("chart", false) => Ok(on(FlowForm::Chart)),
        ("stein", true) => Ok(Arc::new(Stein::default())),
        ("blend", true) => Ok(Arc::new(Blend::convex(0.5, Stein::default()))),
        ("stein" | "blend", false) => {
            Err(refused(format!("Stein particles need Euclidean space, not {manifold}: use flow=\"langevin\"")))
        }
        ("birth-death", _) => {
            let motion = flow("langevin", manifold, h, ratio)?;
            Ok(Arc::new(BirthDeath { motion, density: estimate(&**manifold, h)? }))
        }
        ("wasserstein-fisher-rao", _) => Ok(Arc::new(WassersteinFisherRao {
            manifold: manifold.clone(),
            ratio: within(ratio, "ratio")?,
            density: estimate(&**manifold, h)?,
            mobility: Mobility::Constant,
        })),
        (other, _) => Err(refused(format!("unknown flow `{other}`; expected {FLOWS}"))),
    }
}

/// The density of particles among themselves, by kernels of straight distances.
fn estimate(manifold: &dyn Manifold, bandwidth: f64) -> PyResult<DensityEstimate> {
    let straight = |space: &Space| matches!(space, Space::Euclidean(_) | Space::Sphere(_));
    if !manifold.spaces().is_some_and(|spaces| spaces.iter().all(straight)) {
        let what = format!("births and deaths need Euclidean space or spheres, not {manifold}: use flow=\"langevin\"");
        return Err(refused(what));
    }
    Ok(DensityEstimate::Kernel { bandwidth: within(bandwidth, "bandwidth")?, leave_one_out: true })
}

/// A number that must be positive and finite.
fn within(value: f64, name: &str) -> PyResult<f64> {
    match value > 0.0 && value.is_finite() {
        true => Ok(value),
        false => Err(refused(format!("{name} is {value}: expected a positive number"))),
    }
}

impl Recipe {
    /// The objective on a manifold.
    pub fn objective(&self, manifold: &Arc<dyn Manifold>) -> PyResult<Box<dyn Objective>> {
        let step = within(self.step, "step")?;
        let reduction = match self.reduction.as_str() {
            "control-variate" => Reduction::ControlVariate,
            "antithetic" => Reduction::Antithetic,
            "none" => Reduction::None,
            other => {
                let what = format!("unknown reduction `{other}`; expected control-variate, antithetic or none");
                return Err(refused(what));
            }
        };
        let flow = || flow(&self.flow, manifold, self.bandwidth, self.ratio);
        let velocity = || {
            let (adaptive, penalty) = (self.adaptive, self.penalty);
            Ok::<_, PyErr>(MinimumVelocity {
                flow: flow()?,
                step,
                adaptive,
                reduction,
                exact_difference: true,
                penalty,
            })
        };
        match (self.name.as_str(), is_flat(&**manifold)) {
            ("minimum-velocity", _) => Ok(Box::new(velocity()?)),
            ("transport-reaction", _) => Ok(Box::new(TransportReaction {
                transport: Arc::new(velocity()?),
                ratio: within(self.ratio, "ratio")?,
                density: estimate(&**manifold, self.bandwidth)?,
                bound: f64::INFINITY,
            })),
            ("contrastive", _) => {
                let adaptive = self.adaptive;
                Ok(Box::new(Contrastive { flow: flow()?, step, adaptive, reduction, exact_difference: true }))
            }
            ("score-matching", true) => Ok(Box::new(ScoreMatching::new())),
            ("score-matching", false) => Ok(Box::new(ScoreMatching { manifold: Some(manifold.clone()) })),
            ("sliced", true) => Ok(Box::new(Sliced { reduced: reduction != Reduction::None })),
            ("denoising", true) => Ok(Box::new(Denoising { reduction, ..Denoising::new(step) })),
            ("probability-flow", true) => {
                Ok(Box::new(ProbabilityFlow { reduction, ..ProbabilityFlow::new(step.sqrt()) }))
            }
            (name @ ("sliced" | "denoising" | "probability-flow"), false) => Err(refused(format!(
                "the objective {name} needs Euclidean space, not {manifold}: use minimum-velocity or score-matching"
            ))),
            (other, _) => Err(refused(format!(
                "unknown objective `{other}`; expected minimum-velocity, score-matching, sliced, denoising, contrastive, \
                 probability-flow or transport-reaction"
            ))),
        }
    }
}

/// The sampler of a name: those of the library, and births and deaths with their bandwidth.
pub fn sampler(name: &str, manifold: &Arc<dyn Manifold>, bandwidth: f64) -> PyResult<Arc<dyn Sampler>> {
    match name {
        "birth-death" | "wasserstein-fisher-rao" => {
            let flow = flow(name, manifold, bandwidth, 1.0)?;
            Ok(Arc::new(Repeated { manifold: manifold.clone(), flow }))
        }
        _ => sampler::parse(name, manifold.clone()).map_err(|why| match why.starts_with("unknown") {
            true => refused(format!("{why}, birth-death, wasserstein-fisher-rao")),
            false => refused(why),
        }),
    }
}
