//! Rules that decide whether a claim holds.

use minvel::estimate::{Estimate, format};
use std::fmt;

/// What a number has to satisfy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Claim {
    /// value < limit.
    Below(f64),
    /// value > limit.
    Above(f64),
    /// |value − of| ≤ by.
    Within {
        /// The middle.
        of: f64,
        /// Half the width.
        by: f64,
    },
    /// of/factor ≤ value ≤ of·factor.
    Factor {
        /// What it is compared with.
        of: f64,
        /// How much larger or smaller it may be.
        factor: f64,
    },
    /// |value − of| ≤ k standard errors of the difference; does not hold where an error is unknown.
    Sigmas {
        /// What it is compared with, independent of the value.
        of: Estimate,
        /// k.
        sigmas: f64,
    },
    /// value + k standard errors < limit: below it beyond doubt.
    SurelyBelow {
        /// The limit.
        limit: f64,
        /// k.
        sigmas: f64,
    },
}

impl Claim {
    /// Whether a number with its standard error satisfies it; NaN never does.
    pub fn holds(&self, value: f64, std_error: f64) -> bool {
        match *self {
            Claim::Below(limit) => value < limit,
            Claim::Above(limit) => value > limit,
            Claim::Within { of, by } => (value - of).abs() <= by,
            Claim::Factor { of, factor } => value / of <= factor && value / of >= 1.0 / factor,
            Claim::Sigmas { of, sigmas } => (value - of.mean).abs() <= sigmas * std_error.hypot(of.std_error),
            Claim::SurelyBelow { limit, sigmas } => value + sigmas * std_error < limit,
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let text = format::plain;
        match *self {
            Claim::Below(limit) => write!(f, "value < {}", text(limit)),
            Claim::Above(limit) => write!(f, "value > {}", text(limit)),
            Claim::Within { of, by } => write!(f, "value within {} ± {}", text(of), text(by)),
            Claim::Factor { of, factor } => write!(f, "value within a factor {} of {}", text(factor), text(of)),
            Claim::Sigmas { of, sigmas } => {
                write!(f, "value within {} standard errors of {of}", text(sigmas))
            }
            Claim::SurelyBelow { limit, sigmas } => {
                write!(f, "value + {} standard errors < {}", text(sigmas), text(limit))
            }
        }
    }
}
