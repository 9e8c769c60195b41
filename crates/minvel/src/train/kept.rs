//! Results of a stage, kept for a run that goes on after an interruption.

use super::checkpoint::Checkpoint;
use super::context::Context;
use crate::Error;
use minvel_engine::State;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// FNV-1a of numbers: tells results of other inputs apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Fingerprint::new()
    }
}

impl Fingerprint {
    /// Of nothing.
    pub fn new() -> Self {
        Fingerprint(0xcbf2_9ce4_8422_2325)
    }

    /// And of these numbers.
    pub fn and(self, numbers: &[f64]) -> Self {
        let step = |hash: u64, byte: u8| (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3);
        Fingerprint(numbers.iter().flat_map(|x| x.to_bits().to_le_bytes()).fold(self.0, step))
    }
}

/// Lists of numbers under their names; empty ones are left out.
pub fn lists<'a>(all: impl IntoIterator<Item = (&'a str, &'a [f64])>) -> State<f64> {
    let mut state = State::new(1);
    all.into_iter().filter(|(_, values)| !values.is_empty()).for_each(|(name, values)| {
        state.set(name, values, values.len());
    });
    state
}

/// What a file says beside the numbers.
#[derive(Serialize, Deserialize)]
struct Note<N> {
    seconds: f64,
    more: N,
}

impl Context<'_> {
    /// Lists of numbers, and what else `make` gives, or gave before an interruption from the same inputs; without a place
    /// for checkpoints they are made anew.
    pub fn kept<N: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        inputs: Fingerprint,
        make: impl FnOnce() -> Result<(State<f64>, N), Error>,
    ) -> Result<(State<f64>, N), Error> {
        let Some(path) = self.checkpoint(name) else { return make() };
        let purpose = format!("{} {:016x}", self.purpose(name), inputs.0);
        if let Some(kept) = Checkpoint::<f64>::read_if_there(&path)?.filter(|kept| kept.purpose == purpose) {
            let note: Note<N> = kept.note(&path)?;
            self.resumed(note.seconds);
            return Ok((kept.state, note.more));
        }
        let (state, more) = make()?;
        let note = Note { seconds: self.seconds(), more };
        let kept = Checkpoint::new(state, 0, &purpose, &note);
        kept.write(&path)?;
        Ok((kept.state, note.more))
    }
}
