//! Tables of Python: names and arrays of one dimension, of any stride.

use minvel::Error;
use minvel::train::Context;
use minvel_lab::table::{Column, Coordinates, Missing, PointBlock, PointForm, ROWS, Table};
use numpy::PyReadonlyArray1;
use numpy::ndarray::{ArrayView1, s};
use pyo3::prelude::*;
use std::ops::Range;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// Rows of a block: more than of a file, as they are in memory already, and the more there are, the nearer are those of a tile.
const TOGETHER: usize = 4 * ROWS;

/// What tables of Python are called in messages.
const NAME: &str = "X";

/// A table's columns, as numpy's arrays.
#[derive(FromPyObject)]
pub struct Columns<'py> {
    #[pyo3(item("names"))]
    names: Vec<String>,
    #[pyo3(item("arrays"))]
    arrays: Vec<PyReadonlyArray1<'py, f64>>,
}

impl Columns<'_> {
    /// What a thread without Python sees of them.
    pub fn views(&self) -> Views<'_> {
        Views { names: &self.names, arrays: self.arrays.iter().map(|array| array.as_array()).collect() }
    }
}

/// Columns where they lie: numbers are copied when they become points, some rows at a time.
///
/// Whoever writes to an array while it is read gets mixed results, as with numpy's own functions that release Python's lock.
pub struct Views<'a> {
    names: &'a [String],
    arrays: Vec<ArrayView1<'a, f64>>,
}

impl Views<'_> {
    fn rows(&self) -> usize {
        self.arrays.first().map_or(0, |array| array.len())
    }

    /// Some rows; a name may be empty.
    fn block(&self, rows: Range<usize>) -> Table {
        let column = |(name, array): (&String, &ArrayView1<f64>)| {
            Column::numbers(name.clone(), array.slice(s![rows.clone()]).iter().copied().collect())
        };
        let columns = self.names.iter().zip(&self.arrays).map(column).collect();
        let whole = rows.len() == self.rows();
        Table { path: NAME.into(), columns, first: rows.start, whole, decimal: '.', ..Table::default() }
    }

    /// All rows.
    pub fn table(&self) -> Table {
        self.block(0..self.rows())
    }

    /// Does something with the points, a block after another, while the next block is read; what is doubtful about the rows.
    pub fn points(
        &self,
        coordinates: &Coordinates,
        stage: &str,
        context: &Context,
        mut each: impl FnMut(&[f64], &Context) -> Result<(), Error>,
    ) -> Result<Vec<String>, Error> {
        let mut form = PointForm::of(self.block(0..0), coordinates, Missing::Refused)?;
        let read = |sender: SyncSender<Result<PointBlock, Error>>| {
            for first in (0..self.rows()).step_by(TOGETHER) {
                let block = form.read(self.block(first..self.rows().min(first + TOGETHER)));
                let last = block.is_err();
                // nobody listens any more after an error of theirs, or Ctrl-C
                if sender.send(block).is_err() || last {
                    break;
                }
            }
            form
        };
        context.stage(stage, self.rows(), "rows", || {
            let quiet = context.quiet();
            thread::scope(|scope| {
                let (sender, blocks) = sync_channel(1);
                let reader = scope.spawn(move || read(sender));
                for block in blocks {
                    context.go_on()?;
                    let block = block?;
                    each(&block.points, &quiet)?;
                    context.worked(block.table.rows());
                }
                reader.join().expect("reading does not panic").doubts()
            })
        })
    }
}
