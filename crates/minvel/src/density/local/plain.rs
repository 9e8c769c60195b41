//! A plain kernel density: natural kernels of several widths about every point, for data that is too little for more.
//!
//! **Statement.** p = (1−u) Σ_k π_k (1/N) Σ_i K_{κ_k}(x; c_i) + u/vol, κ_k twice κ_{k−1}; π maximises L(π) = Σ_i log p₋ᵢ(c_i) by
//! EM, which stops after N rounds: few points do not choose one width, they only lean towards some. It starts at shares
//! ∝ e^{L_k/2}, L_k that of one width, and a tenth in equal parts, so that sharp kernels need a reason.
//! **Source.** smyth1999stacking (shares by left-out points).
//! **Conventions.** u = 0 where the volume is infinite. Repeats of a point are left out with it. The widest kernel is wider
//! than the points lie apart, the narrowest about as wide as near neighbours do, so that there are no needles.
//! **Error.** On smooth laws a single best width is better by about 0.01 nats; where widths vary, stacking is better by far
//! (`minvel reproduce small`). **Checked by** tests/densities/few.rs.

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
        let left_out = KernelDensity::left_out(bump, points, UNIFORM, context)?;
        let (uniform, count) = (left_out.uniform, left_out.kappas.len());
        let all: Vec<usize> = (0..points.len() / manifold.ambient()).collect();
        let shares = super::shares(&left_out.logs, likely(&left_out.logs, count), false, all.len(), context)?;
        let mut plain = blank.with_centres(points, &super::together(points, manifold.ambient(), all));
        let kernels = left_out.kappas.iter().zip(&shares).filter(|(_, share)| **share > 0.0);
        let kernels =
            kernels.map(|(&kappa, share)| Family { kind: Kind::Natural { kappa }, share: (1.0 - uniform) * share });
        let rest = (uniform > 0.0).then_some(Family { kind: Kind::Uniform, share: uniform });
        plain.families = rest.into_iter().chain(kernels).collect();
        let held_out = left_out.logs.chunks(count).map(|row| log_mean(row, &shares)).collect();
        Ok(LocalFit { density: plain.bounded(), held_out, derivative: vec![] })
    }
}

/// The shares at which EM starts.
fn likely(logs: &[f64], count: usize) -> Vec<f64> {
    let sums: Vec<f64> = (0..count).map(|k| logs.iter().skip(k).step_by(count).sum()).collect();
    let top = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = sums.iter().map(|sum| (0.5 * (sum - top)).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| 0.9 * w / total + 0.1 / count as f64).collect()
}

/// log Σ_k π_k e^{logs_k}.
fn log_mean(logs: &[f64], shares: &[f64]) -> f64 {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    top + logs.iter().zip(shares).map(|(log, share)| share * (log - top).exp()).sum::<f64>().ln()
}
