//! Data to fit a model to, from a file of any length: what is guessed is guessed from all rows, and of these no more is held
//! than the columns that may be points, then the points.
//!
//! **Statement.** The first pass keeps the columns that the first block makes likely; where later rows show that others are
//! needed (a column may turn out to hold numbers after all), a second pass keeps those. When it is known which columns
//! are points and how, they are dropped, and the last pass makes points block by block.
//! **Checked by** tests/lab/data_blocks.rs.

use super::blocks::Blocks;
use super::columns::Table;
use super::coordinates::Coordinates;
use super::dataset::Request;
use super::guess::candidates;
use super::input::Input;
use super::points::PointBlocks;
use minvel::Error;
use minvel::limits::Meter;
use std::collections::BTreeMap;

/// The columns of a file that may be points.
pub(super) struct Survey {
    /// They alone have values.
    pub table: Table,
    /// Columns of numbers, also those without values.
    pub numeric: Vec<usize>,
    /// The file, if it is read again for the points.
    pub file: Option<Input>,
}

/// Gives columns the names that a request has for them.
pub(super) fn rename(table: &mut Table, request: &Request) -> Result<(), Error> {
    for (name, which) in &request.names {
        let column = table.find(which)?;
        table.columns[column].name = name.clone();
    }
    Ok(())
}

impl Survey {
    /// Of a table that is held.
    pub fn of_table(table: Table) -> Survey {
        let numeric = (0..table.columns.len()).filter(|&c| table.columns[c].is_numeric()).collect();
        Survey { table, numeric, file: None }
    }

    /// Of a file; a table of one block is held as a whole.
    pub fn of_file(input: &Input, request: &Request) -> Result<Survey, Error> {
        let mut blocks = Blocks::open_again(input, &request.options)?;
        let first = blocks.next_block()?.unwrap_or_else(|| blocks.head().clone());
        if blocks.peek()?.is_none() {
            let mut table = Table { whole: true, sha256: input.sha256()?, ..first };
            rename(&mut table, request)?;
            return Ok(Survey::of_table(table));
        }
        let mut kept = Survey::kept_of(&first, request)?;
        loop {
            let mut survey = Survey::pass(input, request, &kept)?;
            let needed = candidates(&survey.table, &survey.points_among(request), request)?;
            if needed.iter().all(|column| kept.contains(column)) {
                survey.table.sha256 = input.sha256()?;
                return Ok(survey);
            }
            kept = needed;
        }
    }

    /// Columns of numbers that are not asked for as something else.
    pub fn points_among(&self, request: &Request) -> Vec<usize> {
        let taken: Vec<usize> = request.rows.names().filter_map(|name| self.table.find(name).ok()).collect();
        self.numeric.iter().copied().filter(|c| !taken.contains(c)).collect()
    }

    fn kept_of(first: &Table, request: &Request) -> Result<Vec<usize>, Error> {
        let mut first = first.clone();
        rename(&mut first, request)?;
        let survey = Survey::of_table(first);
        let kept = candidates(&survey.table, &survey.points_among(request), request)?;
        // a column to count rows by, and to show if none holds numbers
        Ok(if kept.is_empty() { vec![0] } else { kept })
    }

    /// Reads all rows, and keeps some columns.
    fn pass(input: &Input, request: &Request, kept: &[usize]) -> Result<Survey, Error> {
        let mut blocks = Blocks::open_again(input, &request.options)?;
        let mut table = Table { whole: true, ..blocks.head().clone() };
        rename(&mut table, request)?;
        let (mut rows, mut odd, mut meter) = (0, vec![0; table.columns.len()], Meter::new());
        while let Some(block) = blocks.next_block()? {
            rows += block.rows();
            let place = block.place(block.rows() - 1);
            for (k, column) in block.columns.into_iter().enumerate() {
                odd[k] += column.odd.len();
                if kept.contains(&k) {
                    let taken = meter.take(column.memory());
                    taken.map_err(|why| Error::content(input.path(), format!("up to {place} it {why}")))?;
                    table.columns[k].append(column);
                }
            }
            table.lines.extend(block.lines);
        }
        let numeric = (0..odd.len()).filter(|k| 2 * odd[*k] < rows).collect();
        Ok(Survey { table, numeric, file: Some(input.clone()) })
    }
}

/// The points of a file.
pub(super) struct FilePoints {
    pub points: Vec<f64>,
    /// How far they were from the manifold.
    pub off: f64,
    /// Which rows they are, and how many there are, if some were dropped.
    pub kept: Option<(Vec<usize>, usize)>,
    /// Missing values, by column.
    pub missing: BTreeMap<String, usize>,
}

/// The points of a file whose columns are known.
pub(super) fn points(
    input: &Input,
    request: &Request,
    coordinates: &Coordinates,
    chosen: &[usize],
    rows: usize,
) -> Result<FilePoints, Error> {
    let blocks = Blocks::open_again(input, &request.options)?;
    let mut blocks = PointBlocks::of(blocks, coordinates, chosen, request.missing).points_only();
    let (mut kept, mut missing, mut before): (Vec<usize>, BTreeMap<String, usize>, usize) =
        (vec![], BTreeMap::new(), 0);
    let mut points = Vec::with_capacity(rows * coordinates.manifold()?.ambient());
    while let Some(block) = blocks.next_block()? {
        let own = block.table.rows();
        match block.rows() {
            Some(rows) => kept.extend(rows.iter().map(|row| before + row)),
            None => kept.extend(before..before + own),
        }
        for (column, count) in block.table.missing(chosen) {
            *missing.entry(column).or_default() += count;
        }
        before += own;
        points.extend(block.points);
    }
    let kept = (kept.len() < before).then_some((kept, before));
    Ok(FilePoints { points, off: blocks.seen().off, kept, missing })
}
