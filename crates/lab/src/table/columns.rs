//! What a file holds: named columns of numbers and text.

use super::{Blocks, Input};
use minvel::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The most columns a table may have.
pub const MOST_COLUMNS: usize = 1 << 16;

/// How a file is to be read, where its contents do not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableOptions {
    /// What separates fields of a text file: found from its first lines if not given; a space means any white space.
    pub delimiter: Option<char>,
    /// Whether the first line of a text file holds names: found from its contents if not given.
    pub header: Option<bool>,
    /// Which array of an NPZ file.
    pub array: Option<String>,
}

/// What the cells of a column are, where that is known before they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CellKind {
    /// Numbers, or nothing.
    Number,
    /// Whole numbers of 64 bits, or nothing.
    Integer,
    /// Whole numbers of 64 bits without sign, or nothing.
    Unsigned,
    /// Anything.
    Text,
}

/// A column: a number for each row, and the text of those cells that hold no finite number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// Its name; empty if it has none.
    pub name: String,
    /// One number for each row; NaN where the cell holds none.
    pub values: Vec<f64>,
    /// Rows whose cell is not a finite number, in order, with what stands there instead (text, `nan`, or nothing).
    pub odd: Vec<(usize, String)>,
}

impl Column {
    /// A column of numbers.
    pub fn numbers(name: impl Into<String>, values: Vec<f64>) -> Self {
        let odd = values.iter().enumerate().filter(|(_, v)| !v.is_finite()).map(|(i, v)| (i, v.to_string())).collect();
        Column { name: name.into(), values, odd }
    }

    /// An empty column.
    pub fn named(name: impl Into<String>) -> Self {
        Column { name: name.into(), ..Column::default() }
    }

    /// Adds a cell of text, a number if it reads as one.
    pub fn push_text(&mut self, cell: &str) {
        match cell.trim().parse::<f64>() {
            Ok(value) => self.push_number(value, || cell.trim().to_string()),
            Err(_) => self.push_odd(cell.to_string()),
        }
    }

    /// Adds a number, with its text in case it is not finite.
    pub fn push_number(&mut self, value: f64, text: impl FnOnce() -> String) {
        if !value.is_finite() {
            self.odd.push((self.values.len(), text()));
        }
        self.values.push(value);
    }

    /// Adds a cell that holds no number.
    pub fn push_odd(&mut self, cell: String) {
        self.odd.push((self.values.len(), cell));
        self.values.push(f64::NAN);
    }

    /// Some of its rows.
    pub(super) fn slice(&self, rows: std::ops::Range<usize>) -> Column {
        let at = |row: usize| self.odd.partition_point(|(odd, _)| *odd < row);
        let odd = &self.odd[at(rows.start)..at(rows.end)];
        let odd = odd.iter().map(|(row, text)| (row - rows.start, text.clone())).collect();
        Column { name: self.name.clone(), values: self.values[rows].to_vec(), odd }
    }

    /// Adds the rows of another.
    pub(super) fn append(&mut self, other: Column) {
        let rows = self.values.len();
        self.odd.extend(other.odd.into_iter().map(|(row, text)| (rows + row, text)));
        self.values.extend(other.values);
    }

    /// Memory of its cells.
    pub(super) fn memory(&self) -> u64 {
        8 * self.values.len() as u64 + self.odd.iter().map(|(_, text)| 48 + text.len() as u64).sum::<u64>()
    }

    /// Memory of the last cell.
    pub(super) fn last_cell(&self) -> u64 {
        let odd = self.odd.last().filter(|(row, _)| row + 1 == self.values.len());
        // a number; of an odd cell also its row, its text and what the allocator adds
        8 + odd.map_or(0, |(_, text)| 48 + text.len() as u64)
    }

    /// Numbers, if every cell is one, or empty, or not finite; else text.
    pub fn kind(&self) -> CellKind {
        let number = |(_, text): &(usize, String)| text.is_empty() || text.parse().is_ok_and(|v: f64| !v.is_finite());
        if self.odd.iter().all(number) { CellKind::Number } else { CellKind::Text }
    }

    /// Whether most cells hold numbers.
    pub fn is_numeric(&self) -> bool {
        2 * self.odd.len() < self.values.len()
    }

    /// A cell as text; numbers with the fewest digits that give them back.
    pub fn text(&self, row: usize) -> String {
        match self.odd.binary_search_by_key(&row, |(i, _)| *i) {
            Ok(at) => self.odd[at].1.clone(),
            Err(_) => self.values[row].to_string(),
        }
    }

    /// The least and the largest number.
    pub fn range(&self) -> (f64, f64) {
        self.values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)))
    }
}

/// Whether a cell says that there is no number.
pub(super) fn is_missing(cell: &str) -> bool {
    let cell = cell.trim();
    cell.is_empty() || ["na", "n/a", "nan", "null", "none"].iter().any(|word| cell.eq_ignore_ascii_case(word))
}

/// Rows and columns of a file: all of them, or a block of a [`Blocks`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Which file.
    pub path: PathBuf,
    /// Its columns, all of one length; those that were not asked for are empty.
    pub columns: Vec<Column>,
    /// Rows of the file before the first of these.
    pub first: usize,
    /// Whether these are all rows of the file.
    pub whole: bool,
    /// The line each row begins on, from 1; empty for formats without lines.
    pub lines: Vec<usize>,
    /// The text of each row as it stands in the file, if that was asked for.
    pub records: Vec<String>,
    /// SHA-256 of the file's bytes, in hexadecimal; of a block empty.
    pub sha256: String,
    /// What separates the fields of a text file.
    pub delimiter: Option<char>,
    /// What stands before decimals in a text file: a point or a comma.
    pub decimal: char,
}

impl Table {
    /// Reads a file.
    pub fn read(input: impl Into<Input>, options: &TableOptions) -> Result<Table, Error> {
        Blocks::whole(input, options)
    }

    /// The same without its rows.
    pub(super) fn without_rows(mut self) -> Table {
        self.columns.iter_mut().for_each(|column| (column.values, column.odd) = (vec![], vec![]));
        (self.lines, self.records) = (vec![], vec![]);
        self
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.columns.iter().map(|c| c.values.len()).max().unwrap_or(0)
    }

    /// Where a row stands: `line 17`, or `row 17` in formats without lines.
    pub fn place(&self, row: usize) -> String {
        match self.lines.get(row) {
            Some(line) => format!("line {line}"),
            None => format!("row {}", self.first + row + 1),
        }
    }

    /// A column for messages: its number from 1, and its name.
    pub fn label(&self, column: usize) -> String {
        match self.columns[column].name.as_str() {
            "" => format!("column {}", column + 1),
            name => format!("column {} (`{name}`)", column + 1),
        }
    }

    /// A column's name, or its number from 1 where it has none.
    pub fn short_name(&self, column: usize) -> String {
        match self.columns[column].name.as_str() {
            "" => (column + 1).to_string(),
            name => name.to_string(),
        }
    }

    /// The rows in which no number of these columns is missing; `None` if that is so in all of them.
    pub(super) fn complete(&self, of: &[usize]) -> Option<Vec<usize>> {
        let missing = || of.iter().flat_map(|&c| &self.columns[c].odd).filter(|(_, text)| is_missing(text));
        missing().next()?;
        let mut complete = vec![true; self.rows()];
        missing().for_each(|(row, _)| complete[*row] = false);
        Some((0..self.rows()).filter(|row| complete[*row]).collect())
    }

    /// How many numbers are missing in each of these columns, where some are.
    pub(super) fn missing(&self, of: &[usize]) -> BTreeMap<String, usize> {
        let count = |&c: &usize| self.columns[c].odd.iter().filter(|(_, text)| is_missing(text)).count();
        of.iter().map(|c| (self.short_name(*c), count(c))).filter(|(_, count)| *count > 0).collect()
    }

    /// The index of a column given by its name, or by its number from 1.
    pub fn find(&self, wanted: &str) -> Result<usize, Error> {
        let named = |same: fn(&str, &str) -> bool| -> Vec<usize> {
            (0..self.columns.len()).filter(|&c| same(self.columns[c].name.trim(), wanted.trim())).collect()
        };
        let only = |hits: Vec<usize>| if let [hit] = hits[..] { Some(hit) } else { None };
        let number =
            || wanted.trim().parse().ok().filter(|n| (1..=self.columns.len()).contains(n)).map(|n: usize| n - 1);
        let found = only(named(|a, b| a == b)).or_else(|| only(named(str::eq_ignore_ascii_case))).or_else(number);
        found.ok_or_else(|| {
            let what = match &named(str::eq_ignore_ascii_case)[..] {
                [] => format!("there is no column `{wanted}`; the file has {}", self.describe_columns()),
                hits => {
                    let numbers: Vec<String> = hits.iter().map(|c| (c + 1).to_string()).collect();
                    format!("columns {} are called `{wanted}`: choose one by its number", numbers.join(" and "))
                }
            };
            Error::content(&self.path, what)
        })
    }

    /// What columns there are, in words.
    pub fn describe_columns(&self) -> String {
        let count = self.columns.len();
        let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).take(24).collect();
        match (names.iter().all(|n| n.is_empty()), count) {
            (true, 1) => "1 column without a name (its number is 1)".to_string(),
            (true, _) => format!("{count} columns without names (give numbers from 1 to {count})"),
            (false, 1) => format!("1 column: {}", names[0]),
            (false, _) => {
                let more = if count > names.len() { ", …" } else { "" };
                format!("{count} columns: {}{more}", names.join(", "))
            }
        }
    }
}

/// A table without lines.
pub(super) fn plain(path: &Path, columns: Vec<Column>) -> Table {
    Table { path: path.to_path_buf(), columns, decimal: '.', ..Table::default() }
}
