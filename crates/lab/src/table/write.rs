//! Writing tables: CSV, TSV (both also in gzip), Parquet and NPY, by the name of the file.

use super::columns::{Column, Table, TableOptions};
use super::input::{Input, STANDARD};
use super::text::{Form, Records, fields, form, pointed};
use crate::bytes::unpacked;
use minvel::limits::Bounded;
use minvel::{Error, file};
use std::io::{BufRead, Write};
use std::path::Path;

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
    match Format::of(path)? {
        Format::Text { delimiter, gzip } => pack(path, text(columns, rows, delimiter).into_bytes(), gzip),
        Format::Parquet => parquet(path, columns),
        Format::Npy => npy(path, columns, rows),
    }
}

/// Writes a table again with further columns: the bytes of [`encode_appended`].
pub fn append_columns(
    source: impl Into<Input>,
    options: &TableOptions,
    path: &Path,
    more: &[Column],
) -> Result<(), Error> {
    file::write(path, &encode_appended(source, options, path, more)?)
}

/// The bytes of a file of this name that holds a table with further columns; from text to text every field stays as it was
/// but for decimal commas, which become points, and comments go. Where a name is taken, the new column is called `NAME_2`, ….
pub fn encode_appended(
    source: impl Into<Input>,
    options: &TableOptions,
    path: &Path,
    more: &[Column],
) -> Result<Vec<u8>, Error> {
    let source = &source.into();
    let table = Table::read(source, options)?;
    if let Some(column) = more.iter().find(|c| c.values.len() != table.rows()) {
        let (rows, given) = (table.rows(), column.values.len());
        let what = format!(
            "has {rows} rows, but there are {given} values of {}: did the file change in the meantime?",
            column.name
        );
        return Err(Error::content(source.path(), what));
    }
    let more: Vec<Column> = more.iter().map(|column| free_name(&table.columns, column)).collect();
    match (Format::of(path)?, table.delimiter) {
        (Format::Text { delimiter, gzip }, Some(_)) => {
            let text = extended(source, options, delimiter, &more)?;
            pack(path, text.into_bytes(), gzip)
        }
        _ => encode_table(path, &[name_all(table.columns), more].concat()),
    }
}

/// A column under the first of `NAME`, `NAME_2`, … that others do not have.
fn free_name(others: &[Column], column: &Column) -> Column {
    let names = std::iter::once(column.name.clone()).chain((2..).map(|i| format!("{}_{i}", column.name)));
    let taken = |name: &String| others.iter().any(|other| other.name == *name);
    let name = names.into_iter().find(|name| !taken(name)).expect("there are more names than columns");
    Column { name, ..column.clone() }
}

/// Columns with a name each: `column1`, … where there was none.
fn name_all(mut columns: Vec<Column>) -> Vec<Column> {
    for (k, column) in columns.iter_mut().enumerate().filter(|(_, c)| c.name.is_empty()) {
        column.name = format!("column{}", k + 1);
    }
    columns
}

/// The text of a file with further fields on each line.
fn extended(input: &Input, options: &TableOptions, delimiter: char, more: &[Column]) -> Result<String, Error> {
    let source = input.path();
    let mut raw = Bounded::new(input.open()?);
    let zipped = raw.fill_buf().map_err(|e| Error::file(source, "read", e))?.starts_with(&[0x1f, 0x8b]);
    let mut inside;
    let bytes: &mut dyn BufRead = if zipped {
        inside = unpacked(raw);
        &mut inside
    } else {
        &mut raw
    };
    let mut records = Records::new(source, bytes);
    let Some(Form { delimiter: old, decimal, header, start, names }) = form(&mut records, options)? else {
        return Err(Error::content(source, "is empty"));
    };
    let names = name_all(names.into_iter().map(Column::named).collect());
    let mut out = String::new();
    line(&mut out, delimiter, names.iter().chain(more).map(|c| c.name.clone()));
    let mut row = 0;
    let mut add = |text: &str| {
        let kept = fields(text, old).into_iter().map(|field| pointed(field, decimal));
        // a file that grew since it was first read keeps its first rows
        if more.iter().all(|c| row < c.values.len()) {
            line(&mut out, delimiter, kept.chain(more.iter().map(|c| c.text(row))));
        }
        row += 1;
    };
    start.iter().skip(usize::from(header)).for_each(|record| add(&record.text));
    while let Some(record) = records.next()? {
        add(&record.text);
    }
    Ok(out)
}

fn text(columns: &[Column], rows: usize, delimiter: char) -> String {
    let mut out = String::new();
    if columns.iter().any(|c| !c.name.is_empty()) {
        line(&mut out, delimiter, columns.iter().map(|c| c.name.clone()));
    }
    for row in 0..rows {
        line(&mut out, delimiter, columns.iter().map(|c| c.text(row)));
    }
    out
}

/// Adds a line, quoting fields that need it.
fn line(out: &mut String, delimiter: char, fields: impl Iterator<Item = String>) {
    for (k, field) in fields.enumerate() {
        if k > 0 {
            out.push(delimiter);
        }
        let special = |c: char| c == delimiter || matches!(c, '"' | '\n' | '\r');
        // marks of comments, outer spaces and an empty first field are quoted too, or they would not be read back
        let misread = ["#", "%", "//"].iter().any(|mark| field.starts_with(mark)) || field.trim() != field;
        match field.contains(special) || misread || (k == 0 && field.is_empty()) {
            true => {
                out.push('"');
                out.push_str(&field.replace('"', "\"\""));
                out.push('"');
            }
            false => out.push_str(&field),
        }
    }
    out.push('\n');
}

/// The bytes as they are, or in gzip.
fn pack(path: &Path, bytes: Vec<u8>, gzip: bool) -> Result<Vec<u8>, Error> {
    if !gzip {
        return Ok(bytes);
    }
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    let packed = encoder.write_all(&bytes).and_then(|()| encoder.finish());
    packed.map_err(|e| Error::file(path, "write", e))
}

#[cfg(feature = "parquet")]
fn parquet(path: &Path, columns: &[Column]) -> Result<Vec<u8>, Error> {
    super::parquet::write(columns).map_err(|why| Error::content(path, format!("cannot be written as Parquet ({why})")))
}

#[cfg(not(feature = "parquet"))]
fn parquet(path: &Path, _: &[Column]) -> Result<Vec<u8>, Error> {
    check_name(path).map(|()| vec![])
}

/// An array of f64 in C order, format 1.0.
fn npy(path: &Path, columns: &[Column], rows: usize) -> Result<Vec<u8>, Error> {
    // integers beyond 2⁵³ are kept as text
    let is_text = |c: &&Column| {
        c.odd.iter().any(|(_, text)| !text.is_empty() && text.parse().map_or(true, |v: f64| v.is_finite()))
    };
    if let Some(column) = columns.iter().find(is_text) {
        let what = format!("column `{}` holds text, which .npy cannot store: write .csv or .parquet", column.name);
        return Err(Error::content(path, what));
    }
    let mut bytes = npy_header(&[rows, columns.len()]);
    for row in 0..rows {
        columns.iter().for_each(|c| bytes.extend(c.values[row].to_le_bytes()));
    }
    Ok(bytes)
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
