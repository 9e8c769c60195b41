//! Writing tables: CSV, TSV (both also in gzip), Parquet and NPY, by the name of the file.

mod lines;

use super::columns::{CellKind, Column, Table};
use super::input::STANDARD;
use lines::{cells, extended, line};
use minvel::{Error, file};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What a file is written as.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Text { delimiter: char, gzip: bool },
    Parquet,
    Npy,
}

impl Format {
    fn of(path: &Path) -> Result<Format, Error> {
        if path == Path::new(STANDARD) {
            return Ok(Format::Text { delimiter: ',', gzip: false });
        }
        let name = path.file_name().map_or(String::new(), |n| n.to_string_lossy().to_lowercase());
        let (stem, gzip) = name.strip_suffix(".gz").map_or((name.as_str(), false), |stem| (stem, true));
        match stem.rsplit_once('.').map(|(_, extension)| extension) {
            Some("csv") => Ok(Format::Text { delimiter: ',', gzip }),
            Some("tsv" | "tab") => Ok(Format::Text { delimiter: '\t', gzip }),
            Some("parquet") if !gzip => Ok(Format::Parquet),
            Some("npy") if !gzip => Ok(Format::Npy),
            _ => Err(Error::config(format!(
                "{}: unknown table format; expected a file name ending in .csv, .tsv, .csv.gz, .tsv.gz, .parquet or \
                 .npy",
                path.display()
            ))),
        }
    }
}

/// Checks that a table can be written under a name, before hours of work that end in it.
pub fn check_name(path: &Path) -> Result<(), Error> {
    file::check_place(path)?;
    match Format::of(path)? {
        Format::Parquet if cfg!(not(feature = "parquet")) => {
            Err(Error::config("this build of minvel cannot write Parquet files"))
        }
        _ => Ok(()),
    }
}

/// Writes columns of one length, wholly or not at all: the bytes of [`encode_table`].
pub fn write_table(path: &Path, columns: &[Column]) -> Result<(), Error> {
    file::write(path, &encode_table(path, columns)?)
}

/// The bytes of a file of this name with columns of one length.
///
/// Numbers are written with the fewest digits that give them back; NPY holds numbers only, and no names.
pub fn encode_table(path: &Path, columns: &[Column]) -> Result<Vec<u8>, Error> {
    let rows = columns.first().map_or(0, |c| c.values.len());
    assert!(columns.iter().all(|c| c.values.len() == rows), "columns of different lengths");
    let mut encoder = Encoder::new(path, columns.iter().map(|c| (c.name.clone(), c.kind())).collect())?;
    let table = Table { columns: columns.to_vec(), ..Table::default() };
    let mut bytes = encoder.block(&table, &[])?;
    bytes.extend(encoder.end()?);
    if let Some(start) = encoder.start() {
        bytes[..start.len()].copy_from_slice(&start);
    }
    Ok(bytes)
}

/// Names for the columns of a table and for further ones: `column1`, … where there is none, and `NAME_2`, … where the name
/// of a further one is taken.
pub fn appended_names(table: &Table, more: &[&str]) -> Vec<String> {
    let named = |(k, c): (usize, &Column)| match c.name.is_empty() {
        true => format!("column{}", k + 1),
        false => c.name.clone(),
    };
    let own = table.columns.iter().enumerate().map(named);
    let free = |name: &&str| {
        let mut names = std::iter::once(name.to_string()).chain((2..).map(|i| format!("{name}_{i}")));
        let taken = |name: &String| table.columns.iter().any(|other| other.name == *name);
        names.find(|name| !taken(name)).expect("there are more names than columns")
    };
    own.chain(more.iter().map(free)).collect()
}

/// Makes the bytes of a file of its blocks, one after another: the same for the same blocks, also after an interruption.
pub(super) struct Encoder {
    path: PathBuf,
    format: Format,
    columns: Vec<(String, CellKind)>,
    /// Rows encoded.
    rows: u64,
    /// Bytes given.
    bytes: u64,
    #[cfg(feature = "parquet")]
    groups: super::parquet::Groups,
}

/// How far an [`Encoder`] is: what it needs to go on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Encoded {
    pub rows: u64,
    pub bytes: u64,
}

/// What the table of contents at the end of a file has to say about a block.
#[cfg(feature = "parquet")]
pub(super) type Contents = super::parquet::RowGroup;
#[cfg(not(feature = "parquet"))]
pub(super) type Contents = ();

impl Encoder {
    pub fn new(path: &Path, columns: Vec<(String, CellKind)>) -> Result<Self, Error> {
        Encoder::resumed(path, columns, &Encoded::default(), vec![])
    }

    /// One that goes on after some blocks.
    #[cfg_attr(not(feature = "parquet"), allow(unused_variables))]
    pub fn resumed(
        path: &Path,
        columns: Vec<(String, CellKind)>,
        done: &Encoded,
        contents: Vec<Contents>,
    ) -> Result<Self, Error> {
        let format = Format::of(path)?;
        if let (Format::Npy, Some((name, _))) = (format, columns.iter().find(|c| c.1 == CellKind::Text)) {
            return Err(no_text(path, name));
        }
        Ok(Encoder {
            path: path.to_path_buf(),
            format,
            rows: done.rows,
            bytes: done.bytes,
            #[cfg(feature = "parquet")]
            groups: super::parquet::Groups::new(&columns, contents).map_err(|why| unwritable(path, &why))?,
            columns,
        })
    }

    /// How far it is.
    pub fn done(&self) -> Encoded {
        Encoded { rows: self.rows, bytes: self.bytes }
    }

    /// What the end of the file will say about the last block.
    pub fn contents(&self) -> Option<&Contents> {
        #[cfg(feature = "parquet")]
        return self.groups.last().filter(|_| self.format == Format::Parquet);
        #[cfg(not(feature = "parquet"))]
        return None;
    }

    /// The bytes of a block of a table, with further columns.
    ///
    /// From text to text every field stays as it was, but for decimal commas, which become points.
    pub fn block(&mut self, table: &Table, more: &[Column]) -> Result<Vec<u8>, Error> {
        let columns: Vec<&Column> = table.columns.iter().chain(more).collect();
        let rows = table.rows();
        let bytes = match self.format {
            Format::Text { delimiter, gzip } => {
                let mut out = if self.bytes == 0 { self.names(delimiter) } else { String::new() };
                match table.records.is_empty() {
                    true => (0..rows).for_each(|row| cells(&mut out, delimiter, &columns, row)),
                    false => extended(&mut out, table, delimiter, more),
                }
                pack(&self.path, out.into_bytes(), gzip)?
            }
            Format::Parquet => self.group(&columns)?,
            Format::Npy => self.numbers(&columns, rows)?,
        };
        self.rows += rows as u64;
        self.bytes += bytes.len() as u64;
        Ok(bytes)
    }

    /// The line of names, if there are any.
    fn names(&self, delimiter: char) -> String {
        let mut out = String::new();
        if self.columns.iter().any(|(name, _)| !name.is_empty()) {
            line(&mut out, delimiter, self.columns.iter().map(|(name, _)| name.into()));
        }
        out
    }

    #[cfg(feature = "parquet")]
    fn group(&mut self, columns: &[&Column]) -> Result<Vec<u8>, Error> {
        let kinds: Vec<CellKind> = self.columns.iter().map(|(_, kind)| *kind).collect();
        for (column, (name, kind)) in columns.iter().zip(&self.columns) {
            if *kind == CellKind::Number && column.kind() == CellKind::Text {
                let what =
                    "seemed to hold numbers only, but text follows: write .csv, or score a file instead of a pipe";
                return Err(unwritable(&self.path, &format!("column `{name}` {what}")));
            }
        }
        self.groups.add(columns, &kinds, self.bytes).map_err(|why| unwritable(&self.path, &why))
    }

    #[cfg(not(feature = "parquet"))]
    fn group(&mut self, _: &[&Column]) -> Result<Vec<u8>, Error> {
        check_name(&self.path).map(|()| vec![])
    }

    /// An array of f64 in C order, format 1.0.
    fn numbers(&self, columns: &[&Column], rows: usize) -> Result<Vec<u8>, Error> {
        // integers beyond 2⁵³ are kept as text
        if let Some(k) = columns.iter().position(|column| column.kind() == CellKind::Text) {
            return Err(no_text(&self.path, &self.columns[k].0));
        }
        let mut bytes = if self.bytes == 0 { npy_header(&[0, columns.len()]) } else { vec![] };
        bytes.reserve(8 * rows * columns.len());
        for row in 0..rows {
            columns.iter().for_each(|c| bytes.extend(c.values[row].to_le_bytes()));
        }
        Ok(bytes)
    }

    /// What follows the last block.
    pub fn end(&mut self) -> Result<Vec<u8>, Error> {
        let bytes = match self.format {
            // a file without rows is not without names
            _ if self.bytes == 0 && self.format != Format::Parquet => self.block(&Table::default(), &[])?,
            #[cfg(feature = "parquet")]
            Format::Parquet => self.groups.end().map_err(|why| unwritable(&self.path, &why))?,
            _ => vec![],
        };
        Ok(bytes)
    }

    /// The bytes that the file begins with, where they are known only at its end.
    pub fn start(&self) -> Option<Vec<u8>> {
        (self.format == Format::Npy).then(|| npy_header(&[self.rows as usize, self.columns.len()]))
    }
}

fn no_text(path: &Path, name: &str) -> Error {
    Error::content(path, format!("column `{name}` holds text, which .npy cannot store: write .csv or .parquet"))
}

#[cfg(feature = "parquet")]
fn unwritable(path: &Path, why: &str) -> Error {
    Error::content(path, format!("cannot be written as Parquet ({why})"))
}

/// The bytes as they are, or in gzip: a member of its own, of which one after another is a file.
fn pack(path: &Path, bytes: Vec<u8>, gzip: bool) -> Result<Vec<u8>, Error> {
    if !gzip {
        return Ok(bytes);
    }
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    let packed = encoder.write_all(&bytes).and_then(|()| encoder.finish());
    packed.map_err(|e| Error::file(path, "write", e))
}

/// What stands before numbers of f64 in C order, format 1.0.
pub(super) fn npy_header(shape: &[usize]) -> Vec<u8> {
    let axes = shape.iter().map(|n| format!("{n},")).collect::<Vec<_>>().join(" ");
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({axes}), }}");
    // the numbers begin at a multiple of 64 bytes, after 10 bytes of magic and the header with its end of line
    let padding = (10 + header.len() + 1).next_multiple_of(64) - 11 - header.len();
    header.extend(std::iter::repeat_n(' ', padding).chain(['\n']));
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes
}
