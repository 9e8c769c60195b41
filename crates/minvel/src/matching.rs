//! Matching: what pulls the law of codes to the prior.
//!
//! **Statement.** The auto-encoder minimises reconstruction + λ·pull(codes); what the pull has learnt is learnt in
//! alternation, on codes held fixed. **Source.** docs/math §4.0, §4.7, §4.10; tolstikhin2018wae, wang2020mvl.
//! **Conventions.** The prior is the base law of the latent manifold. A pull is a scalar whose gradient goes through the
//! codes; parameters of the match are constants in it because nobody differentiates by them there.
//! **Checked by** tests/theory/matching.rs, tests/theory/matching_facts.rs (F55).

mod adversarial;
mod discrepancy;
mod velocity;

pub use adversarial::Adversarial;
pub use discrepancy::{Discrepancy, bandwidth, maximum_mean_discrepancy};
pub use velocity::Velocity;

use crate::network::Parameter;
use minvel_engine::{Expr, Graph};
use std::fmt;

/// A way to pull the law of codes, given their images or not, to the prior.
pub trait Matching: fmt::Debug + Send + Sync {
    /// What the auto-encoder minimises beside the reconstruction: a scalar. Codes are `rows × [m]`, images their
    /// `rows × [pixels]`; random numbers come from the stream and its substreams.
    fn pull<'g>(&self, codes: Expr<'g>, images: Expr<'g>, stream: u32) -> Expr<'g>;

    /// What it learns.
    fn parameters(&self) -> Vec<Parameter> {
        vec![]
    }

    /// Variables that follow its parameters without being learnt.
    fn followers(&self) -> Vec<Parameter> {
        vec![]
    }

    /// Their new values, to be updated with every step.
    fn follow<'g>(&self, _graph: &'g Graph) -> Vec<(Expr<'g>, Expr<'g>)> {
        vec![]
    }

    /// What its own parameters minimise, a scalar; `None` where there are none.
    fn loss<'g>(&self, _codes: Expr<'g>, _images: Expr<'g>, _stream: u32) -> Option<Expr<'g>> {
        None
    }
}
