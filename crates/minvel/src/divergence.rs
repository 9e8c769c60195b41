//! Numbers that are no longer finite: a training or a chain that diverged is a value, not a panic.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a replica left the finite numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Divergence {
    /// The step (counted from 0) that first gave a number that is not finite.
    pub step: u32,
    /// Which replica.
    pub replica: usize,
    /// In what: the loss, or a variable.
    pub where_: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Divergence { step, replica, where_ } = self;
        write!(f, "training diverged: {where_} of replica {replica} is not finite at step {step}; ")?;
        write!(f, "a smaller learning rate, or a larger step size of the flow, may help")
    }
}

/// A chain whose point or energy is no longer a finite number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainDivergence {
    /// The first step after which it was not.
    pub step: u32,
    /// Of which replica.
    pub replica: usize,
    /// Of which chain.
    pub chain: usize,
}

impl fmt::Display for ChainDivergence {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let ChainDivergence { step, replica, chain } = self;
        write!(
            f,
            "chain {chain} of replica {replica} is no longer finite after step {step}: is the step size too large?"
        )
    }
}

impl std::error::Error for ChainDivergence {}
