//! How an auto-encoder is learnt: one step for encoder and decoder, one for what pulls the codes.
//!
//! **Statement.** On one batch: (1) encoder and decoder descend mean[−log p(x|z)] + λ·pull, what pulls being held fixed;
//! (2) what pulls descends its own loss on codes of the new encoder with fresh noise, held fixed.
//! **Source.** docs/math §4.0, §4.10. **Conventions.** Images are a table `[count, pixels]` in [0, 1], the same for all
//! replicas, of which bytes take the least room; batches are shuffled epochs, whose pixels are drawn afresh at each step where the likelihood has noise.
//! **Checked by** tests/theory/autoencoder.rs.

use super::{Autoencoder, initialise};
use crate::matching::Matching;
use crate::network::Parameter;
use crate::train::Step;
use minvel_engine::math::Real;
use minvel_engine::optim::{Optimiser, Updates};
use minvel_engine::{Draw, Expr, State, replace};
use std::sync::Arc;

/// What keeps codes near the prior.
#[derive(Clone, Debug)]
pub enum Match {
    /// KL of an explicit posterior.
    Divergence,
    /// Something learnt in alternation.
    Learnt(Arc<dyn Matching>),
}

/// An auto-encoder and how it is learnt.
#[derive(Clone, Debug)]
pub struct AutoencoderLearning {
    /// The model.
    pub model: Autoencoder,
    /// What keeps codes near the prior.
    pub pull: Match,
    /// λ.
    pub weight: f64,
    /// Images of a step.
    pub batch: usize,
    /// For all parameters.
    pub optimiser: Optimiser,
}

/// Streams of a step.
const BATCH: u32 = 0;
const PIXELS: u32 = 1;
const CODES: u32 = 2;
const FRESH_CODES: u32 = 3;
const PULL: u32 = 4;
const MATCH: u32 = 5;

impl AutoencoderLearning {
    /// All that is learnt.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.model.parameters().into_iter().chain(self.matched()).collect()
    }

    /// Parameters of what pulls.
    fn matched(&self) -> Vec<Parameter> {
        if let Match::Learnt(matching) = &self.pull { matching.parameters() } else { vec![] }
    }

    /// What follows the parameters of what pulls.
    pub fn followers(&self) -> Vec<Parameter> {
        if let Match::Learnt(matching) = &self.pull { matching.followers() } else { vec![] }
    }

    /// A batch of images, `rows × [pixels]`.
    fn batch<'g>(&self, images: Expr<'g>) -> Expr<'g> {
        let count = images.shape().dims[0] as u32;
        let batch = images.gather(images.graph().random_rows(Draw::Epoch(count), BATCH, self.batch, []));
        self.model.decoder.likelihood.drawn(batch, PIXELS)
    }

    /// The step, on images `[count, pixels]`: an input of intensities, or of bytes
    /// ([`Graph::input_bytes`](minvel_engine::Graph::input_bytes)).
    ///
    /// Outputs: the loss of the auto-encoder, its reconstruction part, its pull, and the loss of what pulls (0 if nothing is
    /// learnt).
    pub fn step<'g>(&self, images: Expr<'g>) -> Step<'g> {
        let (g, model) = (images.graph(), &self.model);
        let x = self.batch(images);
        let code = model.encoder.encode(x, CODES);
        let reconstruction = -model.decoder.log_prob(x, code.at).mean_rows();
        let pull = match &self.pull {
            Match::Divergence => code.law.expect("a divergence needs an explicit posterior").0.mean_rows(),
            Match::Learnt(matching) => matching.pull(code.at, x, PULL),
        };
        let loss = reconstruction + self.weight * pull;
        let variables = |all: Vec<Parameter>| all.iter().map(|p| p.variable(g)).collect::<Vec<Expr>>();
        let coded = self.optimiser.minimise(loss, &variables(model.parameters()));
        let zero = g.scalar(0.0);
        let none = Updates::default();
        let mut following = vec![];
        let (matching, learnt) = match &self.pull {
            Match::Learnt(matching) => {
                following = matching.follow(g);
                let fresh = model.encoder.encode(x, FRESH_CODES).at;
                let codes = replace(&[fresh], &coded.updates)[0].stop_gradient();
                match matching.loss(codes, x, MATCH) {
                    Some(loss) => (loss, self.optimiser.minimise(loss, &variables(matching.parameters()))),
                    None => (zero, none),
                }
            }
            Match::Divergence => (zero, none),
        };
        Step { outputs: vec![loss, reconstruction, pull, matching], updates: vec![coded, learnt], following }
    }

    /// Start values of all parameters and followers.
    pub fn start<T: Real>(&self, replicas: usize, seed: u64) -> State<T> {
        let mut state = State::new(replicas);
        initialise(&[self.parameters(), self.followers()].concat(), &mut state, seed);
        state
    }
}

/// A stream of its own for whoever draws codes outside of a step.
pub(super) fn outside(purpose: &str) -> u32 {
    crate::stream::named(purpose)
}
