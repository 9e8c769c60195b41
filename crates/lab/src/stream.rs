//! Streams: tables of any length are scored, judged and drawn by blocks, in little memory, and go on after an interruption.
//!
//! **Statement.** One thread reads a block while another works on the one before and a third writes the one before that. What
//! comes out depends on the file and the model alone: not on threads, and not on interruptions.
//! **Checked by** tests/lab/stream.rs, crates/cli/tests/interruptions/streams.rs.

mod drawing;
mod judging;
mod scoring;

pub use drawing::{Drawing, Drew};
pub use judging::{Distinct, Judged, Judging};
pub use scoring::{Scored, Scoring};

use crate::table::{Blocks, CellKind, Extent, Input, Position, ROWS, Table, TableOptions};
use minvel::Error;
use minvel::estimate::format;
use minvel::fit::Model;
use minvel::train::Context;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Instant;

/// Why a stream ended early.
#[derive(Debug)]
pub enum Broken {
    /// The input was at fault.
    Input(Error),
    /// Work failed, or was interrupted.
    Work(Error),
}

/// Reads, works and writes at the same time, a block each, in order, until nothing is left to read.
fn pipeline<A: Send, B: Send>(
    mut read: impl FnMut() -> Result<Option<A>, Broken> + Send,
    mut work: impl FnMut(A) -> Result<B, Broken>,
    mut write: impl FnMut(B) -> Result<(), Broken> + Send,
) -> Result<(), Broken> {
    thread::scope(|scope| {
        let (to_work, blocks) = sync_channel(1);
        let (to_write, made) = sync_channel(1);
        scope.spawn(move || {
            // whoever does not listen any more has met an error of its own
            while let Some(block) = read().transpose() {
                let last = block.is_err();
                if to_work.send(block).is_err() || last {
                    return;
                }
            }
        });
        let writer = scope.spawn(move || made.into_iter().try_for_each(&mut write));
        let mut worked = Ok(());
        for block in blocks {
            let sent = block.and_then(&mut work).map(|block| to_write.send(block).is_ok());
            match sent {
                Ok(true) => {}
                Ok(false) => break,
                Err(why) => {
                    worked = Err(why);
                    break;
                }
            }
        }
        drop(to_write);
        let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        written.and(worked)
    })
}

/// Rows of a block that a model scores: more where it has many centres, so that points of a tile lie as near to each other as centres of
/// a block do, and fewer kernels are looked at in vain.
pub fn rows_for(model: &Model) -> usize {
    (model.kernels().centres() / 4).next_power_of_two().clamp(ROWS, 4 * ROWS)
}

/// What the cells of each column are: of text by looking at all of them, or at the first block where they pass only once.
fn kinds(input: &Input, blocks: &mut Blocks, options: &TableOptions) -> Result<Vec<CellKind>, Error> {
    if let Some(kinds) = blocks.kinds() {
        return Ok(kinds);
    }
    let mut kinds = vec![CellKind::Number; blocks.head().columns.len()];
    let mut look = |block: &Table| {
        let text = kinds.iter_mut().zip(&block.columns).filter(|(_, column)| column.kind() == CellKind::Text);
        text.for_each(|(kind, _)| *kind = CellKind::Text);
    };
    if *input == Input::Standard {
        blocks.peek()?.into_iter().for_each(look);
        return Ok(kinds);
    }
    let mut all = Blocks::open(input, options)?;
    while let Some(block) = all.next_block()? {
        look(&block);
    }
    Ok(kinds)
}

/// Tells how far a stream is.
struct Pace<'a> {
    context: &'a Context<'a>,
    extent: Extent,
    begun: Instant,
    /// Rows done before.
    before: u64,
}

impl<'a> Pace<'a> {
    /// Inside a stage of the context, at this position.
    fn new(context: &'a Context<'a>, extent: Extent, position: Position) -> Self {
        context.begin("", 0, position.rows);
        Pace { context, extent, begun: Instant::now(), before: position.rows }
    }

    /// Rows that the stage has, as far as they are known before.
    fn total(extent: Extent) -> usize {
        if let Extent::Rows(rows) = extent { rows as usize } else { 0 }
    }

    /// Says where the stream is; of a file of known length in bytes, its rows are about as many as its beginning promises.
    fn tell(&self, position: Position) {
        let note = match self.extent {
            Extent::Rows(_) => String::new(),
            Extent::Bytes(bytes) => {
                let rows = position.rows as f64 * bytes as f64 / position.bytes.max(1) as f64;
                self.context.observer.expect(rows.round() as u64);
                String::new()
            }
            Extent::Unknown => {
                let (rows, taken) = (position.rows, self.begun.elapsed().as_secs_f64());
                let rate = (rows - self.before) as f64 / taken.max(1e-3);
                format!("{rows} rows in {}, {rate:.0} rows/s", format::duration(taken))
            }
        };
        self.context.advance(position.rows, &note);
    }
}
