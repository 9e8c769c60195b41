//! Special functions in f64: what partition functions, moments and p-values of our closed forms are made of.
//!
//! **Statement.** Each function says its own; arguments and values are plain numbers, computed on the host.
//! **Source.** docs/math §5; DLMF. **Conventions.** m is the number of coordinates of a point on S^{m−1}; orders of Bessel
//! functions are real and ≥ 0; what would overflow is given as its logarithm.
//! **Error.** A few rounding errors of the result, or, for a logarithm that is a difference of larger terms, of the
//! largest of them. **Checked by** tests/theory/energy_facts.rs (F42, F43, F46), tests/theory/special.rs.

mod bessel;
mod dot;
mod eigen;
mod factor;
mod gamma;
mod normal;
mod sphere;
mod uniform;
mod watson;

pub use bessel::{
    bessel_i_ratio, bessel_i_ratio_complement, bessel_i_ratio_slope, bessel_k_ratio, log_bessel_i, log_bessel_i_scaled,
    log_bessel_k, log_bessel_k_scaled,
};
pub(crate) use dot::{dot, dot_in_lanes};
pub use eigen::Eigen;
pub use factor::{semidefinite_root, singular_values};
pub use gamma::log_gamma;
pub use normal::{erf, erfc, normal_cdf};
pub use sphere::{
    hyperbolic_mean, log_hyperbolic_partition, log_mean_exp, log_sphere_area, log_vmf_constant, mean_resultant,
    mean_resultant_slope, vmf_divergence, vmf_divergence_slope,
};
pub use watson::{log_watson_mean, watson_spread};
