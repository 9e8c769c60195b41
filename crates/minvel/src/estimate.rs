//! Numbers with their errors, and what may be concluded from them.
//!
//! **Statement.** An [`Estimate`] is a mean with the standard deviation of its own error.
//! **Conventions.** An unknown error (a single sample, a single seed) is NaN, never zero: it spreads to whatever is made
//! of it, and no rule that asks for it holds. Errors of independent estimates add in quadrature; those of differences
//! taken on the same data are computed from the differences ([`Estimate::paired`]).
//! **Error.** Standard errors are estimates themselves, by a relative 1/√(2n) for n normal samples.
//! **Checked by** tests/theory/eval.rs.

mod bridge;
mod diagnostics;
pub mod format;
mod line;
mod moments;
pub mod number;
mod on_grid;

pub use bridge::bridge;
pub use diagnostics::*;
pub use line::Line;
pub use moments::Moments;
pub use on_grid::OnGrid;

use crate::special::erfc;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Mul, Neg, Sub};

/// A number, the standard deviation of its error, and how many independent samples it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The number.
    #[serde(with = "crate::estimate::number")]
    pub mean: f64,
    /// Standard deviation of its error; NaN where it is not known.
    #[serde(with = "crate::estimate::number")]
    pub std_error: f64,
    /// Independent samples behind it.
    pub count: u64,
}

impl Estimate {
    /// The mean of independent samples, with error √(s²/n), s² = Σ(x − x̄)²/(n − 1).
    pub fn of(samples: impl IntoIterator<Item = f64>) -> Self {
        let mut moments = Moments::default();
        moments.extend(samples);
        moments.mean()
    }

    /// A number known exactly.
    pub const fn exact(mean: f64) -> Self {
        Estimate { mean, std_error: 0.0, count: 1 }
    }

    /// A number whose error is not known.
    pub const fn single(mean: f64) -> Self {
        Estimate { mean, std_error: f64::NAN, count: 1 }
    }

    /// The mean over seeds of what each seed gave.
    ///
    /// The scatter between seeds contains the error within each of them, so that errors within are not added; with one
    /// seed the scatter is unknown, and so is the error.
    pub fn across(seeds: &[Estimate]) -> Self {
        Self::of(seeds.iter().map(|e| e.mean))
    }

    /// The mean of a − b over seeds, where both of a pair saw the same data and noise.
    pub fn paired(a: &[f64], b: &[f64]) -> Self {
        assert!(a.len() == b.len(), "paired: {} against {} numbers", a.len(), b.len());
        Self::of(a.iter().zip(b).map(|(a, b)| a - b))
    }

    /// One estimate from disjoint samples of one quantity: the mean of all of them, weighted by count.
    ///
    /// The error is √Σ(n_i σ_i)²/n, which is right also where the parts scatter differently.
    pub fn pooled(parts: &[Estimate]) -> Self {
        let count: u64 = parts.iter().map(|e| e.count).sum();
        let share = |e: &Estimate| e.count as f64 / count as f64;
        let mean = parts.iter().map(|e| share(e) * e.mean).sum();
        let square: f64 = parts.iter().map(|e| (share(e) * e.std_error).powi(2)).sum();
        Estimate { mean, std_error: square.sqrt(), count }
    }

    /// f of the number, with the error to first order: |f′(mean)|·σ.
    pub fn map(self, f: impl Fn(f64) -> f64, slope: impl Fn(f64) -> f64) -> Self {
        Estimate { mean: f(self.mean), std_error: (slope(self.mean) * self.std_error).abs(), ..self }
    }

    /// The natural logarithm.
    pub fn ln(self) -> Self {
        self.map(f64::ln, f64::recip)
    }

    /// Distance from another, independent estimate in standard errors of the difference.
    pub fn z(self, other: Estimate) -> f64 {
        let difference = self - other;
        difference.mean / difference.std_error
    }

    /// Two-sided p-value of both having the same mean: P(|N(0,1)| ≥ |z|) = erfc(|z|/√2).
    pub fn p_value(self, other: Estimate) -> f64 {
        erfc(self.z(other).abs() / std::f64::consts::SQRT_2)
    }

    /// mean ± k standard errors.
    pub fn interval(self, sigmas: f64) -> (f64, f64) {
        (self.mean - sigmas * self.std_error, self.mean + sigmas * self.std_error)
    }
}

/// Of independent estimates.
impl Add for Estimate {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let count = self.count.min(other.count);
        Estimate { mean: self.mean + other.mean, std_error: self.std_error.hypot(other.std_error), count }
    }
}

/// Of independent estimates; for those on the same data see [`Estimate::paired`].
impl Sub for Estimate {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Neg for Estimate {
    type Output = Self;
    fn neg(self) -> Self {
        self * -1.0
    }
}

impl Mul<f64> for Estimate {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Estimate { mean: self.mean * factor, std_error: self.std_error * factor.abs(), ..self }
    }
}

/// As `−0.847 ± 0.003`: two digits of the error, and as many places of the number.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", crate::estimate::format::with_error(self.mean, Some(self.std_error)))
    }
}
