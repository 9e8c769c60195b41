//! Scores of the rows of a file.

use super::{Broken, Pace, kinds, pipeline, rows_for};
use crate::table::{
    CellKind, Column, Coordinates, Fingerprint, Input, Missing, Output, PointBlocks, Seen, TableOptions, appended_names,
};
use minvel::estimate::{Estimate, Moments};
use minvel::fit::{Levels, Model, NO_REFERENCE, Reference, Uncertainty};
use minvel::train::Context;
use minvel::{Device, Error};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// What is to be scored.
pub struct Scoring<'a> {
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
    /// Whether to add highest-density levels.
    pub level: bool,
    /// Whether to add p-values of outliers and flags, with at most this share of false ones on average.
    pub outliers: Option<f64>,
    /// Whether to add the standard error of log p.
    pub error: bool,
    /// Where the table with its scores is written.
    pub out: &'a Path,
    /// Whether to go on where an interruption left off.
    pub resume: bool,
    /// Time between two entries of the journal.
    pub save_every: Duration,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// Rows of the file.
    pub rows: u64,
    /// Rows with missing values, which have no scores.
    pub missing: u64,
    /// The mean of log p.
    pub log_density: Estimate,
    /// What is doubtful about the file.
    pub doubts: Vec<String>,
    /// Rows that were scored before an interruption.
    pub resumed: u64,
    /// Rows flagged as outliers, where that was asked for.
    pub flagged: Option<u64>,
}

/// Where it stands between two blocks.
#[derive(Clone, Serialize, Deserialize)]
struct State {
    seen: Seen,
    log_density: Moments,
    /// Rows of lower rank than this are outliers,
    flagged_below: usize,
    /// so many up to now.
    flagged: u64,
}

/// The columns that may be added.
const NAMES: [&str; 6] = ["log_density", "energy", "level", "p_value", "outlier", "log_density_error"];

/// The seed of levels is that of the fit and this: other seeds near it are taken.
const LEVEL_SEED: u64 = 4;

impl Scoring<'_> {
    /// Writes the file again with the columns `log_density`, `energy` and, if asked for, `level`, `p_value` and `outlier`.
    ///
    /// Flags need the p-values of all rows: the file is read and scored once before, for counts of them.
    pub fn perform(&self, context: &Context) -> Result<Scored, Broken> {
        let reference = self.reference().map_err(Broken::Input)?;
        let fingerprint = self.input.fingerprint().map_err(Broken::Input)?;
        let open = || PointBlocks::open(self.input, self.coordinates, self.options, Missing::Skipped);
        let mut points = open().map_err(Broken::Input)?.of_rows(rows_for(self.model));
        points.blocks.keep_records();
        let (mut output, mut state) = self.output(fingerprint, &mut points, context)?;
        let resumed = state.seen.position.rows;
        if resumed > 0 {
            points.resume(state.seen.clone()).map_err(Broken::Input)?;
        }
        let model = self.model;
        if let (Some((reference, level)), 0) = (reference, resumed) {
            state.flagged_below = self.flagged_below(reference, level, context)?;
        }
        let levels = || Levels::of(model, model.settings().seed + LEVEL_SEED, context);
        let levels = match self.level {
            true => Some(context.stage("levels", Levels::DRAWS, "draws", levels).map_err(Broken::Work)?),
            false => None,
        };
        let uncertainty = self.error.then(|| Uncertainty::of(model, context)).transpose().map_err(Broken::Work)?;
        let extent = points.blocks.extent();
        let outcome = context.stage("scoring", Pace::total(extent), "rows", || {
            let (pace, quiet) = (Pace::new(context, extent, state.seen.position), context.quiet());
            let (mut sums, mut last) = (state.clone(), state.clone());
            let ended = pipeline(
                || points.next_block().map_err(Broken::Input),
                |block| {
                    let energy = model.energy(&block.points, &quiet).map_err(Broken::Work)?;
                    let logs = model.log_density_of_energy(&energy);
                    sums.log_density.extend(logs.iter().copied());
                    let (p_values, flags) = sums.outliers(reference.map(|(reference, _)| reference), &logs);
                    let at = levels.as_ref().map(|levels| logs.iter().map(|l| levels.at(*l)).collect::<Vec<f64>>());
                    let errors = uncertainty.as_ref().map(|known| known.errors(&block.points, &quiet));
                    let errors = errors.transpose().map_err(Broken::Work)?;
                    let new = [Some(logs), Some(energy), at, p_values, flags, errors].into_iter().zip(NAMES);
                    let more: Vec<Column> =
                        new.filter_map(|(values, name)| Some(block.column(name, values?))).collect();
                    pace.tell(block.seen.position);
                    sums.seen = block.seen;
                    Ok((block.table, more, sums.clone()))
                },
                |(table, more, state)| {
                    output.write(&table, &more, &state).map_err(Broken::Work)?;
                    last = state;
                    Ok(())
                },
            );
            state = last;
            Ok(ended)
        });
        // only a stage that never began is an error of its own
        let outcome = outcome.map_err(Broken::Work).and_then(|ended| ended);
        match outcome.and_then(|()| points.doubts().map_err(Broken::Input)) {
            Ok(doubts) => {
                output.finish().map_err(Broken::Work)?;
                let Seen { rows, points, .. } = state.seen;
                let log_density = state.log_density.mean();
                let flagged = self.outliers.map(|_| state.flagged);
                Ok(Scored { rows, missing: rows - points, log_density, doubts, resumed, flagged })
            }
            Err(Broken::Work(Error::Interrupted)) => {
                output.keep(&state).map_err(Broken::Work)?;
                Err(Broken::Work(Error::Interrupted))
            }
            Err(why) => Err(why),
        }
    }

    /// What p-values refer to, and the level of flags, where they are asked for.
    fn reference(&self) -> Result<Option<(&Reference, f64)>, Error> {
        let Some(level) = self.outliers else { return Ok(None) };
        if *self.input == Input::Standard {
            return Err(Error::config(
                "flags of outliers need a file: they depend on the p-values of all rows, and standard input cannot be read twice",
            ));
        }
        Ok(Some((self.model.reference().ok_or_else(|| Error::config(NO_REFERENCE))?, level)))
    }

    /// The rank below which rows are outliers, from the p-values of all rows.
    fn flagged_below(&self, reference: &Reference, level: f64, context: &Context) -> Result<usize, Broken> {
        let mut points = PointBlocks::open(self.input, self.coordinates, self.options, Missing::Skipped)
            .map_err(Broken::Input)?
            .of_rows(rows_for(self.model))
            .points_only();
        let (extent, mut counts) = (points.blocks.extent(), reference.counts());
        let outcome = context.stage("p-values", Pace::total(extent), "rows", || {
            let (pace, quiet) = (Pace::new(context, extent, points.seen().position), context.quiet());
            let ended = pipeline(
                || points.next_block().map_err(Broken::Input),
                |block| {
                    let logs = self.model.log_density(&block.points, &quiet).map_err(Broken::Work)?;
                    logs.iter().for_each(|log| counts.add(*log));
                    pace.tell(block.seen.position);
                    Ok(())
                },
                |()| Ok(()),
            );
            Ok(ended)
        });
        outcome.map_err(Broken::Work).and_then(|ended| ended)?;
        Ok(counts.flagged_below(level))
    }

    /// The names of the columns that are added.
    fn names(&self) -> Vec<&'static str> {
        let wanted = [true, true, self.level, self.outliers.is_some(), self.outliers.is_some(), self.error];
        NAMES.into_iter().zip(wanted).filter(|(_, wanted)| *wanted).map(|(name, _)| name).collect()
    }

    /// The output of an interrupted run, or a new one.
    fn output(
        &self,
        fingerprint: Option<Fingerprint>,
        points: &mut PointBlocks,
        context: &Context,
    ) -> Result<(Output, State), Broken> {
        let purpose = fingerprint.map(|data| self.purpose(&data, context.device));
        if let (true, Some(purpose)) = (self.resume, &purpose)
            && let Some((output, state)) = Output::resume(self.out, purpose).map_err(Broken::Input)?
        {
            return Ok((output.saved_every(self.save_every), state));
        }
        Output::forget(self.out);
        let names = self.names();
        // text takes whatever comes
        let kinds = match is_text(self.out) {
            true => vec![CellKind::Text; points.blocks.head().columns.len()],
            false => {
                let look = || kinds(self.input, &mut points.blocks, self.options);
                context.stage("looking at the columns", 0, "rows", look).map_err(Broken::Input)?
            }
        };
        let kinds = kinds.into_iter().chain(vec![CellKind::Number; names.len()]);
        let columns = appended_names(points.blocks.head(), &names).into_iter().zip(kinds).collect();
        let output = Output::create(self.out, columns, purpose.as_ref()).map_err(Broken::Work)?;
        Ok((
            output.saved_every(self.save_every),
            State { seen: points.seen().clone(), log_density: Moments::default(), flagged_below: 0, flagged: 0 },
        ))
    }

    /// All that the bytes of the output depend on.
    fn purpose(&self, data: &Fingerprint, device: Device) -> Value {
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "work": "score",
            "data": data,
            "model": self.model_sha256,
            "columns": self.coordinates,
            "delimiter": self.options.delimiter,
            "header": self.options.header,
            "array": self.options.array,
            "level": self.level,
            "outliers": self.outliers,
            "error": self.error,
            "device": device.to_string(),
        })
    }
}

impl State {
    /// p-values and flags of rows, which are counted.
    fn outliers(&mut self, reference: Option<&Reference>, logs: &[f64]) -> (Option<Vec<f64>>, Option<Vec<f64>>) {
        let Some(reference) = reference else { return (None, None) };
        let flags: Vec<f64> =
            logs.iter().map(|log| f64::from(u8::from(reference.rank(*log) < self.flagged_below))).collect();
        self.flagged += flags.iter().filter(|flag| **flag > 0.0).count() as u64;
        (Some(logs.iter().map(|log| reference.p_value(*log)).collect()), Some(flags))
    }
}

/// Whether a table of this name is text.
fn is_text(path: &Path) -> bool {
    !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet") || e.eq_ignore_ascii_case("npy"))
}
