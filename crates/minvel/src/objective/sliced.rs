//! Sliced score matching: the Laplacian in one random direction.
//!
//! **Statement.** SSM = ½(v·∇E)² − vᵀ∇²E v; SSM-VR = ½|∇E|² − vᵀ∇²E v; E vvᵀ = I.
//! **Source.** song2019ssm; docs/math §2.2.
//! **Conventions.** Scale J; v is not normalised to length 1 (that would divide the loss by d).
//! **Error.** Unbiased. Var SSM-VR = Var J + 2E‖∇²E‖² with Gaussian v; with Rademacher v only entries off the diagonal count.
//! **Checked by** tests/theory/objective_facts.rs (F8, F9), tests/theory/golden.rs.

use super::Objective;
use crate::flow::{EnergyOf, Noise, Particles, leaf};
use minvel_engine::{Expr, grad, jvp};

/// J with its second derivative along noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sliced {
    /// Whether |∇E|² is taken in full (SSM-VR) or sliced too (SSM).
    pub reduced: bool,
}

impl Objective for Sliced {
    fn rows<'g>(&self, energy: EnergyOf<'_, 'g>, data: Particles<'g>, noise: Noise<'g>) -> Expr<'g> {
        let x = leaf(data.at);
        let v = noise.like(x);
        let gradient = grad(energy(x), &[x])[0];
        let slope = v.dot(gradient);
        let curvature = jvp(&[slope], &[(x, v)])[0];
        let squared = if self.reduced { gradient.square().sum(-1) } else { slope.square() };
        0.5 * squared - curvature
    }

    fn scale(&self) -> f64 {
        1.0
    }
}
