//! Tables of any length, a block of rows after another.
//!
//! The format is told by the first bytes, not by the name: Parquet, NPY, NPZ, gzip of text or NPY, else text.
//!
//! **Conventions.** A block has [`ROWS`] rows, or as many as asked for, and fewer where they are wide; where it ends depends on the file and
//! that number alone, so that work that is resumed between two blocks meets the same blocks. Text, Parquet and NPY are read as they are needed; NPZ,
//! and NPY in Fortran order inside gzip or a pipe, are held as a whole, since their rows lie all over the file. The
//! limits of [`minvel::limits`] hold for a block, and for the whole of what is held.
//! **Checked by** tests/lab/data_blocks.rs.

use super::columns::{CellKind, Column, Table, TableOptions, plain};
use super::input::{Input, skip};
use super::npy::{self, NpyBlocks};
use super::text::{Place, TextBlocks};
use crate::bytes::{unpacked, unreadable, unzipped};
use minvel::Error;
use minvel::limits::{Bounded, Meter};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Cursor, Read};
use std::path::Path;

/// Rows of a block.
pub const ROWS: usize = 1 << 16;

/// Memory that a block takes at most, in bytes, if it has several rows.
const BYTES: u64 = 1 << 25;

/// A place between two blocks of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Rows before it.
    pub rows: u64,
    /// Lines before it, of text.
    pub lines: u64,
    /// Bytes before it, of text.
    pub bytes: u64,
}

/// How long a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many rows.
    Rows(u64),
    /// So many bytes.
    Bytes(u64),
    /// Nobody knows before its end.
    Unknown,
}

/// What a block is to be.
pub(super) struct Want {
    pub rows: usize,
    pub bytes: u64,
    /// Which columns; all if `None`.
    pub columns: Option<Vec<bool>>,
    /// Whether to keep the text of each row.
    pub records: bool,
}

impl Want {
    pub fn keeps(&self, column: usize) -> bool {
        self.columns.as_ref().is_none_or(|kept| kept[column])
    }
}

/// A table that is read block by block.
pub struct Blocks {
    input: Input,
    source: Source,
    /// The table without its rows.
    head: Table,
    want: Want,
    /// Rows read.
    rows: usize,
    /// A block that was looked at before its turn.
    peeked: Option<Table>,
}

enum Source {
    Text {
        blocks: TextBlocks,
        zipped: bool,
    },
    Npy(NpyBlocks),
    #[cfg(feature = "parquet")]
    Parquet(Box<super::parquet::ParquetBlocks>),
    Held(Table),
}

impl Blocks {
    /// Opens a table, to be read once and without holding all of it.
    pub fn open(input: impl Into<Input>, options: &TableOptions) -> Result<Blocks, Error> {
        let input = input.into();
        let bytes = input.open_once()?;
        let want = Want { rows: ROWS, bytes: BYTES, columns: None, records: false };
        Blocks::of(input, bytes, want, options)
    }

    /// Opens a table that is read several times: standard input is kept.
    pub(super) fn open_again(input: &Input, options: &TableOptions) -> Result<Blocks, Error> {
        let want = Want { rows: ROWS, bytes: BYTES, columns: None, records: false };
        Blocks::of(input.clone(), input.open()?, want, options)
    }

    /// All of a table, no larger than the limits allow.
    pub(super) fn whole(input: impl Into<Input>, options: &TableOptions) -> Result<Table, Error> {
        let input = input.into();
        let bytes = Box::new(Bounded::new(input.open()?));
        let want = Want { rows: usize::MAX, bytes: u64::MAX, columns: None, records: false };
        let mut blocks = Blocks::of(input, bytes, want, options)?;
        let table = blocks.next_block()?;
        Ok(Table { whole: true, sha256: blocks.input.sha256()?, ..table.unwrap_or(blocks.head) })
    }

    fn of(
        input: Input,
        mut bytes: Box<dyn BufRead + Send>,
        want: Want,
        options: &TableOptions,
    ) -> Result<Blocks, Error> {
        let path = input.path();
        let magic = peek(&mut bytes, path)?;
        let source = match magic.as_slice() {
            [b'P', b'A', b'R', b'1', ..] => open_parquet(input.on_disk()?, &want)?,
            [b'P', b'K', 3 | 5, 4 | 6, ..] => Source::Held(npy::read_npz(input.on_disk()?, options.array.as_deref())?),
            [0x1f, 0x8b, ..] => {
                let mut inside: Box<dyn BufRead + Send> =
                    if want.rows == usize::MAX { Box::new(unpacked(bytes)) } else { Box::new(unzipped(bytes)) };
                let magic = peek(&mut inside, path)?;
                stream(&input, inside, &magic, options, true)?
            }
            _ => stream(&input, bytes, &magic, options, false)?,
        };
        let head = source.head(path);
        Ok(Blocks { input, source, head, want, rows: 0, peeked: None })
    }

    /// The same in blocks of at most so many rows.
    pub fn of_rows(mut self, rows: usize) -> Self {
        assert!(rows > 0, "a block has rows");
        self.want.rows = rows;
        self
    }

    /// Reads only some columns from now on; the others stay empty.
    pub fn keep(&mut self, columns: &[usize]) {
        self.want.columns = Some((0..self.head.columns.len()).map(|k| columns.contains(&k)).collect());
    }

    /// Keeps the text of each row, if the file is text.
    pub fn keep_records(&mut self) {
        self.want.records = true;
    }

    /// The table without its rows: names, and how it is written.
    pub fn head(&self) -> &Table {
        &self.head
    }

    /// What the cells of each column are; `None` for text, of which any cell may be anything.
    pub fn kinds(&self) -> Option<Vec<CellKind>> {
        match &self.source {
            Source::Text { .. } => None,
            Source::Npy(_) => Some(vec![CellKind::Number; self.head.columns.len()]),
            #[cfg(feature = "parquet")]
            Source::Parquet(blocks) => Some(blocks.kinds()),
            Source::Held(table) => Some(table.columns.iter().map(Column::kind).collect()),
        }
    }

    /// How long it is.
    pub fn extent(&self) -> Extent {
        match &self.source {
            Source::Text { zipped: false, .. } => match self.input.path().metadata() {
                Ok(about) if matches!(self.input, Input::File(_)) && about.is_file() => Extent::Bytes(about.len()),
                _ => Extent::Unknown,
            },
            Source::Text { zipped: true, .. } => Extent::Unknown,
            Source::Npy(blocks) => Extent::Rows(blocks.total() as u64),
            #[cfg(feature = "parquet")]
            Source::Parquet(blocks) => Extent::Rows(blocks.total()),
            Source::Held(table) => Extent::Rows(table.rows() as u64),
        }
    }

    /// Where the next block begins.
    pub fn position(&self) -> Position {
        let place = match &self.source {
            Source::Text { blocks, .. } => blocks.place(),
            _ => Place::default(),
        };
        Position { rows: self.rows as u64, lines: place.line as u64, bytes: place.offset }
    }

    /// Goes on where a block of the same file ended.
    pub fn resume(&mut self, position: Position) -> Result<(), Error> {
        let rows = position.rows as usize;
        match &mut self.source {
            _ if rows == 0 => return Ok(()),
            Source::Text { blocks, zipped } => {
                let place = Place { line: position.lines as usize, offset: position.bytes };
                let bytes: Box<dyn BufRead + Send> = match zipped {
                    false => self.input.open_at(place.offset)?,
                    true => {
                        let mut inside = unzipped(self.input.open()?);
                        skip(&mut inside, place.offset).map_err(|e| unreadable(self.input.path(), e))?;
                        Box::new(inside)
                    }
                };
                blocks.resume(place, bytes);
            }
            Source::Npy(blocks) => blocks.skip(&self.input, rows)?,
            #[cfg(feature = "parquet")]
            Source::Parquet(blocks) => blocks.skip(rows as u64)?,
            Source::Held(_) => {}
        }
        self.rows = rows;
        Ok(())
    }

    /// A look at the next rows, which [`Blocks::next_block`] then gives; until then [`Blocks::position`] is behind them.
    pub fn peek(&mut self) -> Result<Option<&Table>, Error> {
        if self.peeked.is_none() {
            self.peeked = self.next_block()?;
        }
        Ok(self.peeked.as_ref())
    }

    /// The next rows; `None` at the end.
    pub fn next_block(&mut self) -> Result<Option<Table>, Error> {
        if let Some(table) = self.peeked.take() {
            return Ok(Some(table));
        }
        let mut table = Table { first: self.rows, ..self.head.clone() };
        let mut meter = Meter::new();
        match &mut self.source {
            Source::Text { blocks, .. } => blocks.fill(&mut table, &self.want, &mut meter)?,
            Source::Npy(blocks) => {
                blocks.fill(&mut table, &self.want, &mut meter).map_err(|why| why.of(self.input.path()))?;
            }
            #[cfg(feature = "parquet")]
            Source::Parquet(blocks) => blocks.fill(&mut table, &self.want, &mut meter)?,
            Source::Held(all) => {
                let end = all.rows().min(self.rows.saturating_add(self.want.rows));
                let pick = |(k, column): (usize, &Column)| match self.want.keeps(k) {
                    true => column.slice(self.rows..end),
                    false => Column::named(column.name.clone()),
                };
                table.columns = all.columns.iter().enumerate().map(pick).collect();
            }
        }
        let rows = table.rows();
        self.rows += rows;
        Ok((rows > 0).then_some(table))
    }
}

impl Source {
    fn head(&self, path: &Path) -> Table {
        let named = |names: Vec<String>| plain(path, names.into_iter().map(Column::named).collect());
        match self {
            Source::Text { blocks, .. } => {
                let form = &blocks.form;
                Table { delimiter: Some(form.delimiter), decimal: form.decimal, ..named(form.names.clone()) }
            }
            Source::Npy(blocks) => named(blocks.names()),
            #[cfg(feature = "parquet")]
            Source::Parquet(blocks) => named(blocks.names()),
            Source::Held(table) => named(table.columns.iter().map(|c| c.name.clone()).collect()),
        }
    }
}

/// Text or NPY.
fn stream(
    input: &Input,
    bytes: Box<dyn BufRead + Send>,
    magic: &[u8],
    options: &TableOptions,
    zipped: bool,
) -> Result<Source, Error> {
    let path = input.path();
    match magic {
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => {
            let blocks = NpyBlocks::new(bytes, input, zipped).map_err(|why| why.of(path))?;
            match blocks {
                Ok(blocks) => Ok(Source::Npy(blocks)),
                Err(columns) => Ok(Source::Held(plain(path, columns))),
            }
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            Err(Error::content(path, "is text in UTF-16: save it as UTF-8, which most programs call plain CSV"))
        }
        _ => Ok(Source::Text { blocks: TextBlocks::new(path, bytes, options)?, zipped }),
    }
}

#[cfg(feature = "parquet")]
fn open_parquet(path: &Path, want: &Want) -> Result<Source, Error> {
    super::parquet::ParquetBlocks::open(path, want).map(|blocks| Source::Parquet(Box::new(blocks)))
}

#[cfg(not(feature = "parquet"))]
fn open_parquet(path: &Path, _: &Want) -> Result<Source, Error> {
    Err(Error::content(path, "is a Parquet file, which this build of minvel does not read (feature `parquet`)"))
}

/// The first bytes, put back where they were; fewer than 8 only at the end.
fn peek(bytes: &mut Box<dyn BufRead + Send>, path: &Path) -> Result<Vec<u8>, Error> {
    let mut start = vec![];
    bytes.take(8).read_to_end(&mut start).map_err(|e| unreadable(path, e))?;
    let rest = std::mem::replace(bytes, Box::new(&[][..]));
    *bytes = Box::new(Cursor::new(start.clone()).chain(rest));
    Ok(start)
}
