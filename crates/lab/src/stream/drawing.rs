//! Draws of a model, as a table.

use super::{Broken, Pace, pipeline};
use crate::table::{CellKind, Coordinates, Extent, Output, Position, ROWS, Table};
use minvel::Error;
use minvel::fit::Model;
use minvel::stream::subseed;
use minvel::train::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// What is to be drawn.
pub struct Drawing<'a> {
    /// The density.
    pub model: &'a Model,
    /// SHA-256 of its file.
    pub model_sha256: &'a str,
    /// The columns of its points.
    pub coordinates: &'a Coordinates,
    /// How many points.
    pub number: usize,
    /// The seed.
    pub seed: u64,
    /// Where they are written.
    pub out: &'a Path,
    /// Whether to go on where an interruption left off.
    pub resume: bool,
    /// Time between two entries of the journal.
    pub save_every: Duration,
}

/// How it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drew {
    /// Points written.
    pub rows: u64,
    /// Share of the proposals that were accepted.
    pub acceptance: f64,
    /// Share of the chains that accepted at least one.
    pub moved: f64,
}

impl Drew {
    /// With so many further points.
    fn and(self, rows: u64, acceptance: f64, moved: f64) -> Drew {
        let all = self.rows + rows;
        let mean = |old: f64, new: f64| old + (new - old) * rows as f64 / all.max(1) as f64;
        Drew { rows: all, acceptance: mean(self.acceptance, acceptance), moved: mean(self.moved, moved) }
    }
}

impl Drawing<'_> {
    /// Writes the points.
    ///
    /// Block b of [`ROWS`] points is drawn by the seed [`subseed`]`(seed, b)` alone, whatever their number: any part of a draw can
    /// be made anywhere. A draw of no more than one block is drawn at once.
    pub fn perform(&self, context: &Context) -> Result<Drew, Broken> {
        let (mut output, begun) = self.output()?;
        let position = |rows: u64| Position { rows, ..Position::default() };
        let mut last = begun;
        let outcome = context.stage("sampling", self.number, "rows", || {
            let pace = Pace::new(context, Extent::Rows(self.number as u64), position(begun.rows));
            let (mut next, mut drew, quiet) = (begun.rows, begun, context.quiet());
            let ended = pipeline(
                || {
                    let first = next;
                    next = (next + ROWS as u64).min(self.number as u64);
                    Ok((next > first).then_some(first))
                },
                |first| {
                    context.go_on().map_err(Broken::Work)?;
                    let rows = ROWS.min(self.number - first as usize);
                    let count = if self.number > ROWS { ROWS } else { rows };
                    let seed = subseed(self.seed, first / ROWS as u64);
                    let drawn = self.model.sample(count, seed, &quiet).map_err(Broken::Work)?;
                    let points = &drawn.points[..rows * self.model.manifold().ambient()];
                    drew = drew.and(rows as u64, drawn.acceptance, drawn.moved);
                    let columns = self.coordinates.table(points).map_err(Broken::Input)?;
                    pace.tell(position(drew.rows));
                    Ok((Table { columns, ..Table::default() }, drew))
                },
                |(table, drew)| {
                    output.write(&table, &[], &drew).map_err(Broken::Work)?;
                    last = drew;
                    Ok(())
                },
            );
            Ok(ended)
        });
        match outcome.map_err(Broken::Work).and_then(|ended| ended) {
            Ok(()) => output.finish().map(|()| last).map_err(Broken::Work),
            Err(Broken::Work(Error::Interrupted)) => {
                output.keep(&last).map_err(Broken::Work)?;
                Err(Broken::Work(Error::Interrupted))
            }
            Err(why) => Err(why),
        }
    }

    /// The output of an interrupted run, or a new one.
    fn output(&self) -> Result<(Output, Drew), Broken> {
        let purpose = self.purpose();
        if self.resume
            && let Some((output, drew)) = Output::resume(self.out, &purpose).map_err(Broken::Input)?
        {
            return Ok((output.saved_every(self.save_every), drew));
        }
        Output::forget(self.out);
        let columns = self.coordinates.table(&[]).map_err(Broken::Input)?;
        let columns = columns.into_iter().map(|column| (column.name, CellKind::Number)).collect();
        let output = Output::create(self.out, columns, Some(&purpose)).map_err(Broken::Work)?;
        Ok((output.saved_every(self.save_every), Drew::default()))
    }

    /// All that the bytes of the output depend on.
    fn purpose(&self) -> Value {
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "work": "sample",
            "model": self.model_sha256,
            "number": self.number,
            "seed": self.seed,
        })
    }
}
