//! Further data of a known form, as to score it: points of any number of rows, a block after another.

use super::blocks::{Blocks, Position};
use super::columns::{Column, Table, TableOptions};
use super::coordinates::Coordinates;
use super::dataset::WORTH_SAYING;
use super::input::Input;
use minvel::Error;
use serde::{Deserialize, Serialize};

/// What to do with a row in which a number is missing (an empty cell, `NA`, `NaN`, …).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// It is an error.
    #[default]
    Refused,
    /// It is no point, and passed over.
    Skipped,
}

/// What was seen of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Rows.
    pub rows: u64,
    /// Rows that are points.
    pub points: u64,
    /// Of each column of a point the largest size of its numbers.
    largest: Vec<f64>,
    /// How far rows were from the manifold, at most.
    pub(super) off: f64,
    /// Where the next block begins.
    pub position: Position,
}

/// Points of a block.
pub struct PointBlock {
    /// The block.
    pub table: Table,
    /// Its points, row-major.
    pub points: Vec<f64>,
    /// Which rows of the block they are; `None` if all.
    rows: Option<Vec<usize>>,
    /// What was seen of the file up to the end of this block.
    pub seen: Seen,
}

impl PointBlock {
    /// Which rows of the block are points; `None` if all.
    pub(super) fn rows(&self) -> Option<&[usize]> {
        self.rows.as_deref()
    }

    /// A column for the block from values of its points: empty cells elsewhere.
    pub fn column(&self, name: &str, values: Vec<f64>) -> Column {
        let Some(rows) = &self.rows else { return Column::numbers(name, values) };
        let mut column = Column::named(name);
        let mut values = rows.iter().zip(values).peekable();
        for row in 0..self.table.rows() {
            match values.next_if(|(at, _)| **at == row) {
                Some((_, value)) => column.push_number(value, || value.to_string()),
                None => column.push_odd(String::new()),
            }
        }
        column
    }
}

/// The blocks of a table of a known form, one after another, as points.
pub struct PointForm {
    /// The table without its rows.
    head: Table,
    coordinates: Coordinates,
    chosen: Vec<usize>,
    missing: Missing,
    seen: Seen,
}

impl PointForm {
    /// Of a table that has the columns of the coordinates; its rows are not looked at.
    pub fn of(head: Table, coordinates: &Coordinates, missing: Missing) -> Result<Self, Error> {
        let chosen = coordinates.find_in(&head)?;
        Ok(PointForm::of_chosen(head, coordinates, &chosen, missing))
    }

    fn of_chosen(head: Table, coordinates: &Coordinates, chosen: &[usize], missing: Missing) -> Self {
        let seen = Seen { largest: vec![0.0; chosen.len()], ..Seen::default() };
        PointForm { head, coordinates: coordinates.clone(), chosen: chosen.to_vec(), missing, seen }
    }

    /// The points of the next block.
    pub fn read(&mut self, table: Table) -> Result<PointBlock, Error> {
        let rows = if self.missing == Missing::Skipped { table.complete(&self.chosen) } else { None };
        let read = self.coordinates.points_of(&table, &self.chosen, rows.as_deref())?;
        let seen = &mut self.seen;
        for (largest, &c) in seen.largest.iter_mut().zip(&self.chosen) {
            let (low, high) = table.columns[c].range();
            *largest = largest.max(-low).max(high);
        }
        seen.off = seen.off.max(read.off);
        seen.rows += table.rows() as u64;
        seen.points += rows.as_ref().map_or(table.rows(), Vec::len) as u64;
        Ok(PointBlock { table, points: read.points, rows, seen: self.seen.clone() })
    }

    /// What is doubtful about all that was seen, in sentences; an error if there was no point.
    pub fn doubts(&self) -> Result<Vec<String>, Error> {
        let (head, seen) = (&self.head, &self.seen);
        match (seen.rows, seen.points) {
            (0, _) => return Err(Error::content(&head.path, "has no rows")),
            (rows, 0) => return Err(Error::content(&head.path, format!("all {rows} rows have missing values"))),
            _ => {}
        }
        let doubt = self.coordinates.doubt(head, &self.chosen, &seen.largest, seen.points as usize)?;
        Ok(doubt.into_iter().chain(off_the_manifold(seen.off)).collect())
    }
}

/// A file of points of a known form.
pub struct PointBlocks {
    /// Its rows.
    pub blocks: Blocks,
    form: PointForm,
}

impl PointBlocks {
    /// Opens a file that has the columns of the coordinates.
    pub fn open(
        input: impl Into<Input>,
        coordinates: &Coordinates,
        options: &TableOptions,
        missing: Missing,
    ) -> Result<Self, Error> {
        let blocks = Blocks::open(input, options)?;
        let form = PointForm::of(blocks.head().clone(), coordinates, missing)?;
        Ok(PointBlocks { blocks, form })
    }

    /// Of chosen columns.
    pub(super) fn of(blocks: Blocks, coordinates: &Coordinates, chosen: &[usize], missing: Missing) -> Self {
        let form = PointForm::of_chosen(blocks.head().clone(), coordinates, chosen, missing);
        PointBlocks { blocks, form }
    }

    /// What was seen so far.
    pub fn seen(&self) -> &Seen {
        &self.form.seen
    }

    /// The same in blocks of at most so many rows.
    pub fn of_rows(self, rows: usize) -> Self {
        PointBlocks { blocks: self.blocks.of_rows(rows), ..self }
    }

    /// Reads only the columns of points.
    pub fn points_only(mut self) -> Self {
        self.blocks.keep(&self.form.chosen);
        self
    }

    /// Goes on where a block of the same file ended.
    pub fn resume(&mut self, seen: Seen) -> Result<(), Error> {
        self.blocks.resume(seen.position)?;
        self.form.seen = seen;
        Ok(())
    }

    /// The next block; `None` at the end.
    pub fn next_block(&mut self) -> Result<Option<PointBlock>, Error> {
        let Some(table) = self.blocks.next_block()? else { return Ok(None) };
        self.form.seen.position = self.blocks.position();
        self.form.read(table).map(Some)
    }

    /// What is doubtful about all that was seen, in sentences; an error if there was no point.
    pub fn doubts(&self) -> Result<Vec<String>, Error> {
        self.form.doubts()
    }
}

/// That points were put on the manifold, if that is worth a sentence.
pub(super) fn off_the_manifold(off: f64) -> Option<String> {
    (off > WORTH_SAYING).then(|| format!("points were up to {off:.1e} off the manifold and were projected onto it"))
}
