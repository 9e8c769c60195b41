//! A plain kernel density: one natural kernel about every point, for data that is too little for more.
//!
//! **Statement.** p = (1−u)·(1/N) Σ_i K_κ(x; c_i) + u/vol, κ the maximiser of Σ_i log p₋ᵢ(c_i).
//! **Conventions.** u = 0 where the volume is infinite. Repeats of a point are left out with it.
//! **Checked by** tests/densities/local_kernels.rs.

use super::LocalFit;
use super::kernels::{Family, Kind, LocalKernels};
use crate::density::{Bump, KernelDensity};
use crate::train::Context;
use crate::{Error, Manifold};

/// u where the volume is finite.
const UNIFORM: f64 = 0.01;

impl LocalKernels {
    /// The plain kernel density of at least two different points, and what the others say about each of them; without
    /// derivatives.
    pub fn plain(manifold: &dyn Manifold, points: &[f64], context: &Context) -> Result<LocalFit, Error> {
        let blank = LocalKernels::blank(manifold);
        let bump = Bump::new(manifold).expect("the spaces are known");
        let (density, held_out) = KernelDensity::left_out(bump, points, UNIFORM, context)?;
        let uniform = density.uniform();
        let kernel = Family { kind: Kind::Natural { kappa: density.kappa() }, share: 1.0 - uniform };
        let rest = Family { kind: Kind::Uniform, share: uniform };
        let all: Vec<usize> = (0..points.len() / manifold.ambient()).collect();
        let mut plain = blank.with_centres(points, &super::together(points, manifold.ambient(), all));
        plain.families = if uniform > 0.0 { vec![rest, kernel] } else { vec![kernel] };
        Ok(LocalFit { density: plain.bounded(), held_out, derivative: vec![] })
    }
}
