//! How good a model is on the rows of a file.

use super::{Broken, Pace, pipeline, rows_for};
use crate::table::{Coordinates, Fingerprint, Input, Missing, PointBlocks, Seen, TableOptions};
use minvel::density::Witness;
use minvel::fit::{Evaluation, Model, RunningEvaluation, RunningSums};
use minvel::stream::subseed;
use minvel::train::Context;
use minvel::{Error, file};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// What is to be judged.
pub struct Judging<'a> {
    /// The density.
    pub model: &'a Model,
    /// SHA-256 of its file.
    pub model_sha256: &'a str,
    /// Which columns of the file are its points.
    pub coordinates: &'a Coordinates,
    /// The file.
    pub input: &'a Input,
    /// How to read it.
    pub options: &'a TableOptions,
    /// Where to keep what is known so far: if it is there, work goes on from it. At the end it is removed.
    pub journal: Option<&'a Path>,
    /// Time between two writes of the journal.
    pub save_every: Duration,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The scores.
    pub evaluation: Evaluation,
    /// Rows of the file.
    pub rows: u64,
    /// Different points among them.
    pub distinct: Distinct,
    /// Share of the rows that the kernels stand on.
    pub known: f64,
    /// What is doubtful about the file.
    pub doubts: Vec<String>,
    /// The rows that were tested, in the units of the data.
    pub tested: Vec<f64>,
    /// Where they are too many or too few, at points in standard units; none of a few rows.
    pub witness: Option<Witness>,
}

/// Where it stands between two blocks.
#[derive(Clone, Default, Serialize, Deserialize)]
struct State {
    seen: Seen,
    sums: RunningSums,
    distinct: Distinct,
}

/// The journal.
#[derive(Serialize, Deserialize)]
struct Kept {
    purpose: Value,
    state: State,
}

impl Judging<'_> {
    /// Scores the rows under the model and its baselines, and tests whether they may come from the model.
    pub fn perform(&self, context: &Context) -> Result<Judged, Broken> {
        let purpose = self.input.fingerprint().map_err(Broken::Input)?.map(|data| self.purpose(&data));
        let mut points = PointBlocks::open(self.input, self.coordinates, self.options, Missing::Refused)
            .map_err(Broken::Input)?
            .of_rows(rows_for(self.model))
            .points_only();
        let mut state = self.kept(purpose.as_ref()).map_err(Broken::Input)?;
        match &state {
            Some(state) => points.resume(state.seen.clone()).map_err(Broken::Input)?,
            None => state = Some(State { seen: points.seen().clone(), ..State::default() }),
        }
        let mut state = state.expect("set above");
        let running = RunningEvaluation::new(self.model, self.model.settings().seed, context).map_err(Broken::Work)?;
        let (extent, m) = (points.blocks.extent(), self.model.manifold().ambient());
        let outcome = context.stage("test rows", Pace::total(extent), "rows", || {
            let (pace, quiet) = (Pace::new(context, extent, state.seen.position), context.quiet());
            let mut saved = Instant::now();
            let ended = pipeline(
                || points.next_block().map_err(Broken::Input),
                |block| {
                    running.add(&mut state.sums, &block.points, &quiet).map_err(Broken::Work)?;
                    block.points.chunks(m).for_each(|point| state.distinct.add(point));
                    state.seen = block.seen;
                    pace.tell(state.seen.position);
                    if saved.elapsed() >= self.save_every {
                        self.keep(purpose.as_ref(), &state).map_err(Broken::Work)?;
                        saved = Instant::now();
                    }
                    Ok(())
                },
                |()| Ok(()),
            );
            Ok(ended)
        });
        let outcome = outcome.map_err(Broken::Work).and_then(|ended| ended);
        if let Err(Broken::Work(Error::Interrupted)) = outcome {
            self.keep(purpose.as_ref(), &state).map_err(Broken::Work)?;
        }
        outcome?;
        let doubts = points.doubts().map_err(Broken::Input)?;
        let evaluation = running.finish(&state.sums, context).map_err(Broken::Work)?;
        if let Some(journal) = self.journal {
            file::remove(journal).map_err(Broken::Work)?;
        }
        let known = state.sums.known as f64 / state.sums.rows.max(1) as f64;
        let (tested, witness) = (state.sums.tested(), running.witness(&state.sums, &evaluation));
        Ok(Judged { evaluation, rows: state.sums.rows, distinct: state.distinct, known, doubts, tested, witness })
    }

    /// What the journal says, if there is one.
    fn kept(&self, purpose: Option<&Value>) -> Result<Option<State>, Error> {
        let (Some(journal), Some(purpose)) = (self.journal, purpose) else { return Ok(None) };
        let Some(text) = file::read_text_if_there(journal)? else { return Ok(None) };
        let wrong = |e| Error::content(journal, format!("is not the journal of an evaluation ({e})"));
        let kept: Kept = serde_json::from_str(&text).map_err(wrong)?;
        match kept.purpose == *purpose {
            true => Ok(Some(kept.state)),
            false => Err(Error::content(journal, "belongs to another evaluation: give another file, or remove it")),
        }
    }

    fn keep(&self, purpose: Option<&Value>, state: &State) -> Result<(), Error> {
        let (Some(journal), Some(purpose)) = (self.journal, purpose) else { return Ok(()) };
        let kept = Kept { purpose: purpose.clone(), state: state.clone() };
        file::write(journal, &serde_json::to_vec(&kept).expect("what is kept is plain data"))
    }

    /// All that the outcome depends on.
    fn purpose(&self, data: &Fingerprint) -> Value {
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "work": "evaluate",
            "data": data,
            "model": self.model_sha256,
            "columns": self.coordinates,
            "delimiter": self.options.delimiter,
            "header": self.options.header,
            "array": self.options.array,
        })
    }
}

/// Counts different points in bounded memory.
///
/// **Statement.** Hashes of points are kept whose last `level` bits are zero; when there are too many, the level rises. The
/// number is 2^level times that of the hashes. **Source.** Adaptive sampling, flajolet1990adaptive. **Error.** None up to
/// [`Distinct::EXACT`] points (but for equal hashes of different points, with probability 2⁻²⁵); beyond, about 0.1 %.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distinct {
    level: u32,
    hashes: BTreeSet<u64>,
}

impl Distinct {
    /// Up to so many different points are counted exactly.
    pub const EXACT: usize = 1 << 20;

    /// One more point.
    pub fn add(&mut self, point: &[f64]) {
        let hash = point.iter().fold(0, |hash, x| subseed(hash, (x + 0.0).to_bits().wrapping_add(1)));
        if hash.trailing_zeros() >= self.level {
            self.hashes.insert(hash);
        }
        while self.hashes.len() > Self::EXACT {
            self.level += 1;
            self.hashes.retain(|hash| hash.trailing_zeros() >= self.level);
        }
    }

    /// How many different points there were.
    pub fn count(&self) -> u64 {
        (self.hashes.len() as u64) << self.level
    }

    /// Whether that is the exact number.
    pub fn is_exact(&self) -> bool {
        self.level == 0
    }
}
