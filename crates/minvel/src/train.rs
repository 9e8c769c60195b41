//! Training: a program repeated, watched, and kept safe.
//!
//! **Statement.** state ← program(state, inputs; seed, step) for step = 0, 1, …, steps − 1.
//! **Conventions.** Randomness is keyed by (seed, step), so that a training resumed from a checkpoint ends with the bits of
//! one that was never interrupted. A training that leaves the finite numbers is a value, a [`Divergence`] for each
//! replica concerned; the other replicas go on.
//! **Checked by** tests/theory/train.rs, and by killing the program at random moments in
//! crates/cli/tests/interruptions/resume.rs.

mod checkpoint;
mod context;
mod kept;
mod learner;
mod rows;

pub use checkpoint::{Checkpoint, Scalar, check_header};
pub use context::{Context, Observer, Silent, Stop};
pub use kept::{Fingerprint, lists};
pub use learner::{Drawing, Learner, Learning, Step};
pub(crate) use rows::{FEW_AT_ONCE, MANY_AT_ONCE, side_by_side, summed_together};
pub use rows::{by_pieces, by_rows};

use crate::{Divergence, Error};
use minvel_engine::{Loaded, Program, State};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The loop around a compiled step.
#[derive(Clone, Debug, PartialEq)]
pub struct Trainer {
    /// What is trained: the name of its checkpoint, and of its bar on the screen.
    pub name: String,
    /// Number of the first step: that of an earlier training which this one goes on with, or 0.
    pub from: u32,
    /// Number of the step before which it ends.
    pub steps: u32,
    /// Steps between two looks at the loss.
    pub block: u32,
    /// Seed of the program's randomness.
    pub seed: u64,
    /// Which output of the program is the loss.
    pub loss: usize,
}

/// The loss of each replica after some steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Steps made.
    pub step: u32,
    /// Loss of the last of them, replica by replica.
    #[serde(with = "crate::estimate::number::list")]
    pub loss: Vec<f64>,
}

/// What a training leaves behind, beside the state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// Learning curve, a look after each block.
    pub looks: Vec<Look>,
    /// Replicas that left the finite numbers.
    pub divergences: Vec<Divergence>,
}

/// How long steps are made before somebody may stop them.
const PIECE: Duration = Duration::from_millis(250);

/// What a checkpoint of a training knows besides the state.
#[derive(Serialize, Deserialize)]
struct Note {
    training: Training,
    seconds: f64,
}

impl Training {
    /// Replicas that stayed finite, of so many.
    pub fn finite(&self, replicas: usize) -> Vec<usize> {
        (0..replicas).filter(|r| self.divergences.iter().all(|d| d.replica != *r)).collect()
    }

    /// The training itself if no replica diverged, else the first divergence.
    pub fn all_finite(self) -> Result<Self, Divergence> {
        match self.divergences.first() {
            Some(divergence) => Err(divergence.clone()),
            None => Ok(self),
        }
    }
}

impl Trainer {
    /// A training of so many steps, looked at about a hundred times; the loss is output 0.
    pub fn new(name: &str, steps: u32, seed: u64) -> Self {
        Trainer { name: name.to_string(), from: 0, steps, block: (steps / 100).max(1), seed, loss: 0 }
    }

    /// Runs all steps on `state`, from the context's checkpoint if there is one.
    pub fn run<T: Scalar>(
        &self,
        program: &mut Program<T>,
        state: &mut State<T>,
        inputs: &[(&str, &[T])],
        context: &Context,
    ) -> Result<Training, Error> {
        self.run_loaded(&mut program.loaded(inputs), state, context)
    }

    /// As [`Trainer::run`], with inputs that are there already; some of them may be bytes.
    pub fn run_loaded<T: Scalar>(
        &self,
        program: &mut Loaded<T>,
        state: &mut State<T>,
        context: &Context,
    ) -> Result<Training, Error> {
        assert!(self.block > 0, "trainer: a block of no steps");
        let (mut done, mut training) = self.resume(state, context)?;
        context.begin(&self.name, self.steps as u64, done as u64);
        let (mut saved, mut piece) = (Instant::now(), 1);
        while done < self.steps && !self.all_lost(&training, state.replicas()) {
            // A training that was stopped inside a block goes on to its end.
            let end = done.saturating_add(self.block - (done - self.from) % self.block).min(self.steps);
            let before = state.clone();
            let reached = self.pieces(program, state, done..end, &mut piece, context)?;
            if reached < end {
                self.save(state, reached, &training, context)?;
                return Err(Error::Interrupted);
            }
            let loss: Vec<f64> = self.losses(program, state.replicas())?;
            for replica in fresh_losses(&loss, &training) {
                let step = self.first_bad_step(program, before.clone(), done..end, replica)?;
                training.divergences.push(Divergence { step, replica, where_: "the loss".into() });
            }
            done = end;
            context.advance(done as u64, &words(&loss));
            training.looks.push(Look { step: done, loss });
            let asked = context.stop.asked();
            if asked || done == self.steps || saved.elapsed() >= context.save_every {
                self.save(state, done, &training, context)?;
                saved = Instant::now();
            }
            if asked && done < self.steps {
                return Err(Error::Interrupted);
            }
        }
        state.fetch()?; // whoever reads it later finds it here
        lost_variables(state, done, &mut training);
        context.end();
        Ok(training)
    }

    /// Runs steps in pieces, of a length that fits the time they take, until somebody asks to stop; the step before which it
    /// ended.
    fn pieces<T: Scalar>(
        &self,
        program: &mut Loaded<T>,
        state: &mut State<T>,
        steps: std::ops::Range<u32>,
        piece: &mut u32,
        context: &Context,
    ) -> Result<u32, Error> {
        let mut at = steps.start;
        while at < steps.end && (at == steps.start || !context.stop.asked()) {
            let next = at.saturating_add(*piece).min(steps.end);
            let begun = Instant::now();
            program.try_run_steps(state, self.seed, at..next)?;
            let each = begun.elapsed() / (next - at);
            *piece = (PIECE.as_nanos() / each.as_nanos().max(1)).clamp(1, 2 * *piece as u128) as u32;
            at = next;
        }
        Ok(at)
    }

    fn resume<T: Scalar>(&self, state: &mut State<T>, context: &Context) -> Result<(u32, Training), Error> {
        let fresh = (self.from, Training::default());
        let Some(path) = context.checkpoint(&self.name) else { return Ok(fresh) };
        let Some(checkpoint) = Checkpoint::<T>::read_if_there(&path)? else { return Ok(fresh) };
        checkpoint.belongs_to(&path, &context.purpose(&self.name), state)?;
        let note: Note = checkpoint.note(&path)?;
        context.resumed(note.seconds);
        *state = checkpoint.state;
        Ok((checkpoint.step, note.training))
    }

    fn save<T: Scalar>(
        &self,
        state: &State<T>,
        step: u32,
        training: &Training,
        context: &Context,
    ) -> Result<(), Error> {
        let Some(path) = context.checkpoint(&self.name) else { return Ok(()) };
        state.fetch()?;
        let note = Note { training: training.clone(), seconds: context.seconds() };
        Checkpoint::new(state.clone(), step, &context.purpose(&self.name), &note).write(&path)
    }

    fn all_lost(&self, training: &Training, replicas: usize) -> bool {
        training.finite(replicas).is_empty()
    }

    /// The loss of each replica: the sum of the output's entries, if it has several.
    fn losses<T: Scalar>(&self, program: &Loaded<T>, replicas: usize) -> Result<Vec<f64>, Error> {
        let output = program.try_output(self.loss)?;
        Ok(output.chunks(output.len() / replicas).map(|own| own.iter().map(|x| x.to_f64()).sum()).collect())
    }

    /// Repeats a block step by step: the same bits, so that the first bad step shows itself.
    fn first_bad_step<T: Scalar>(
        &self,
        program: &mut Loaded<T>,
        mut state: State<T>,
        steps: std::ops::Range<u32>,
        replica: usize,
    ) -> Result<u32, Error> {
        let last = steps.end - 1;
        for step in steps {
            program.try_run_steps(&mut state, self.seed, step..step + 1)?;
            if !self.losses(program, state.replicas())?[replica].is_finite() {
                return Ok(step);
            }
        }
        Ok(last)
    }
}

/// Replicas whose loss is not finite and that were not known as lost.
fn fresh_losses(loss: &[f64], training: &Training) -> Vec<usize> {
    training.finite(loss.len()).into_iter().filter(|&r| !loss[r].is_finite()).collect()
}

/// The last update may have spoilt a variable without the loss having seen it.
fn lost_variables<T: Scalar>(state: &State<T>, done: u32, training: &mut Training) {
    for replica in training.finite(state.replicas()) {
        let own = |values: &[T]| {
            let len = values.len() / state.replicas();
            values[replica * len..][..len].iter().any(|x| !x.to_f64().is_finite())
        };
        if let Some((name, _)) = state.iter().find(|(_, values)| own(values)) {
            let where_ = format!("variable `{name}`");
            training.divergences.push(Divergence { step: done.saturating_sub(1), replica, where_ });
        }
    }
}

/// The mean loss of the replicas that still have one, for the screen.
fn words(loss: &[f64]) -> String {
    let finite: Vec<f64> = loss.iter().copied().filter(|x| x.is_finite()).collect();
    let lost = if finite.len() < loss.len() { format!(", {} lost", loss.len() - finite.len()) } else { String::new() };
    format!("loss {:.4}{lost}", finite.iter().sum::<f64>() / finite.len() as f64)
}
