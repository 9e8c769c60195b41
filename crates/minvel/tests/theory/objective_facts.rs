//! Facts about objectives and flows (docs/math §6), by exact expectations over data and noise.
//!
//! Expectations are Gauss rules given as weighted rows, so that a fact holds to 1e-9 or fails. Each erratum of the paper
//! (docs/math §1.5) has a twin here: the formula as printed, shown to fail.

mod euclid;
mod fisher_rao;
mod kernels;
mod manifolds;
