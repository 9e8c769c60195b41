//! Tables in Parquet files, column by column.
//!
//! **Conventions.** Numbers of all kinds become f64; integers beyond 2⁵³ and bytes stay text; nulls are empty cells; lists
//! and other nested columns are kept as text that cannot be chosen, and not decoded. No more rows are decoded than the
//! file's own table of contents declares: a damaged page may promise billions of them in a few bytes.
//! **Checked by** tests/lab/data_binary.rs, and by the fuzzer in `fuzz/`.

mod groups;
mod pages;

use super::blocks::Want;
use super::columns::{CellKind, Column, MOST_COLUMNS, Table};
pub(super) use groups::{Groups, RowGroup};
use minvel::limits::{Meter, TooLarge};
use minvel::{Error, Limits};
use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor, SchemaDescPtr};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Values read at once.
const BATCH: usize = 8192;

/// A Parquet file, a block of rows after another.
pub(super) struct ParquetBlocks {
    path: PathBuf,
    file: File,
    reader: SerializedFileReader<File>,
    schema: SchemaDescPtr,
    /// The next row group.
    group: usize,
    /// Rows of the present group that are not read.
    left: u64,
    /// Its columns on their way, with the values to read at once; `None` for those that were not asked for.
    columns: Vec<Option<(ColumnReader, usize)>>,
}

impl ParquetBlocks {
    pub fn open(path: &Path, want: &Want) -> Result<Self, Error> {
        trusting(path, || Self::open_trusting(path, want))
    }

    fn open_trusting(path: &Path, want: &Want) -> Result<Self, Error> {
        let file = File::open(path).map_err(|e| Error::file(path, "read", e))?;
        let reader = SerializedFileReader::new(file.try_clone().map_err(|e| Error::file(path, "read", e))?);
        let reader = reader.map_err(|e| damaged(path, e))?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        if schema.num_columns() > MOST_COLUMNS {
            return Err(Error::content(
                path,
                format!("has {} columns: at most {MOST_COLUMNS} are supported", schema.num_columns()),
            ));
        }
        let mut chunks = reader.metadata().row_groups().iter().flat_map(|group| group.columns());
        let places = |c: &ColumnChunkMetaData| {
            [c.compressed_size(), c.data_page_offset(), c.dictionary_page_offset().unwrap_or(0)]
        };
        if chunks.any(|chunk| places(chunk).iter().any(|place| *place < 0)) {
            return Err(Error::content(path, "is a damaged Parquet file: it has chunks at negative offsets"));
        }
        if schema.columns().iter().all(is_nested) {
            return Err(Error::content(path, "has no columns of plain values, only nested ones"));
        }
        check_rows(path, reader.metadata(), want.rows == usize::MAX)?;
        Ok(ParquetBlocks { path: path.to_path_buf(), file, reader, schema, group: 0, left: 0, columns: vec![] })
    }

    pub fn names(&self) -> Vec<String> {
        self.schema.columns().iter().map(|c| c.path().string()).collect()
    }

    pub fn kinds(&self) -> Vec<CellKind> {
        self.schema.columns().iter().map(kind).collect()
    }

    /// Rows of the file.
    pub fn total(&self) -> u64 {
        self.reader.metadata().row_groups().iter().map(|group| group.num_rows() as u64).sum()
    }

    /// Rows of a block: fewer where they are wide, by what the file says about itself.
    fn rows(&self, want: &Want) -> usize {
        let groups = self.reader.metadata().row_groups();
        let bytes: u64 = groups.iter().map(|group| u64::try_from(group.total_byte_size()).unwrap_or(0)).sum();
        let bytes = (bytes / self.total().max(1)).max(8 * self.schema.num_columns() as u64).max(1);
        usize::try_from(want.bytes / bytes).unwrap_or(usize::MAX).clamp(1, want.rows)
    }

    /// Goes on after so many rows.
    pub fn skip(&mut self, rows: u64) -> Result<(), Error> {
        let path = self.path.clone();
        trusting(&path, || {
            let mut rest = rows;
            let groups = self.reader.metadata().row_groups();
            while let Some(group) = groups.get(self.group).filter(|group| group.num_rows() as u64 <= rest) {
                rest -= group.num_rows() as u64;
                self.group += 1;
            }
            if rest > 0 {
                self.next_group(&|_| true).map_err(|e| damaged(&path, e))?;
                for (reader, _) in self.columns.iter_mut().flatten() {
                    skip_records(reader, rest as usize).map_err(|e| damaged(&path, e))?;
                }
                self.left -= rest;
            }
            Ok(())
        })
    }

    /// Adds rows to a table, as many as a block has.
    pub fn fill(&mut self, table: &mut Table, want: &Want, meter: &mut Meter) -> Result<(), Error> {
        let path = self.path.clone();
        trusting(&path, || self.fill_trusting(table, want, meter))
    }

    fn fill_trusting(&mut self, table: &mut Table, want: &Want, meter: &mut Meter) -> Result<(), Error> {
        let (path, all) = (self.path.clone(), self.rows(want));
        let damaged = |e: ParquetError| damaged(&path, e);
        let mut rows = 0;
        while rows < all {
            if self.left == 0 {
                if self.group == self.reader.num_row_groups() {
                    break;
                }
                self.next_group(&|k| want.keeps(k)).map_err(damaged)?;
                continue;
            }
            let more = self.left.min((all - rows) as u64) as usize;
            rows += more;
            for (k, column) in table.columns.iter_mut().enumerate().filter(|(k, _)| want.keeps(*k)) {
                let about = self.schema.column(k);
                let Some((reader, batch)) = &mut self.columns[k] else {
                    if is_nested(&about) {
                        for _ in 0..more {
                            column.push_odd("(list)".into());
                            meter.take(column.last_cell()).map_err(|why| Error::content(&path, why.to_string()))?;
                        }
                    }
                    continue;
                };
                Filling { about: &about, column, rows, batch: *batch, meter }.read(reader).map_err(damaged)?;
                if column.values.len() != rows {
                    let (name, count) = (&column.name, column.values.len() + table.first);
                    let what = format!(
                        "is damaged: column `{name}` has {count} rows, but {} are declared",
                        rows + table.first
                    );
                    return Err(Error::content(&path, what));
                }
            }
            self.left -= more as u64;
        }
        Ok(())
    }

    /// Opens the columns of the next row group.
    fn next_group(&mut self, keeps: &dyn Fn(usize) -> bool) -> Result<(), ParquetError> {
        let group = self.reader.get_row_group(self.group)?;
        let rows = group.metadata().num_rows() as u64; // checked before
        let open = |k: usize| {
            let about = self.schema.column(k);
            if is_nested(&about) || !keeps(k) {
                return Ok(None);
            }
            let largest = pages::check(&self.file, group.metadata().column(k))?;
            let level_bits = u32::from(about.max_def_level().unsigned_abs()).checked_ilog2().map_or(0, |n| n + 1);
            let checked = pages::Checked { inner: group.get_column_page_reader(k)?, level_bits, rows };
            Ok(Some((get_column_reader(about, Box::new(checked)), batch(largest))))
        };
        self.columns = (0..self.schema.num_columns()).map(open).collect::<Result<_, ParquetError>>()?;
        (self.left, self.group) = (rows, self.group + 1);
        Ok(())
    }
}

/// The crate asserts things that a damaged file does not keep (found by fuzzing): such a panic is the file's fault, and
/// becomes an error here.
fn trusting<T>(path: &Path, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Error::content(path, "is a damaged Parquet file: fetch or write it again")))
}

fn damaged(path: &Path, error: ParquetError) -> Error {
    Error::content(path, format!("is a damaged or unusual Parquet file ({error})"))
}

fn is_nested(column: &ColumnDescPtr) -> bool {
    column.max_rep_level() > 0
}

/// What a column's cells are.
fn kind(column: &ColumnDescPtr) -> CellKind {
    let decimal = matches!(column.logical_type_ref(), Some(LogicalType::Decimal(_)))
        || column.converted_type() == ConvertedType::DECIMAL;
    match column.physical_type() {
        _ if is_nested(column) => CellKind::Text,
        Physical::INT32 | Physical::INT64 if decimal => CellKind::Number,
        Physical::INT32 | Physical::INT64 if is_unsigned(column) => CellKind::Unsigned,
        Physical::INT32 | Physical::INT64 => CellKind::Integer,
        Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE => CellKind::Number,
        Physical::INT96 | Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => CellKind::Text,
    }
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    matches!(column.converted_type(), ConvertedType::UINT_32 | ConvertedType::UINT_64)
}

fn skip_records(reader: &mut ColumnReader, rows: usize) -> Result<(), ParquetError> {
    let skipped = match reader {
        ColumnReader::BoolColumnReader(r) => r.skip_records(rows),
        ColumnReader::Int32ColumnReader(r) => r.skip_records(rows),
        ColumnReader::Int64ColumnReader(r) => r.skip_records(rows),
        ColumnReader::Int96ColumnReader(r) => r.skip_records(rows),
        ColumnReader::FloatColumnReader(r) => r.skip_records(rows),
        ColumnReader::DoubleColumnReader(r) => r.skip_records(rows),
        ColumnReader::ByteArrayColumnReader(r) => r.skip_records(rows),
        ColumnReader::FixedLenByteArrayColumnReader(r) => r.skip_records(rows),
    };
    match skipped? {
        found if found < rows => Err(ParquetError::General("a column has fewer rows than its group".into())),
        _ => Ok(()),
    }
}

/// An error if the rows that are declared are none or, where all are held, take more memory than they may.
fn check_rows(path: &Path, metadata: &ParquetMetaData, held: bool) -> Result<(), Error> {
    let mut rows = 0u64;
    for group in metadata.row_groups() {
        let declared = u64::try_from(group.num_rows());
        let declared = declared
            .map_err(|_| Error::content(path, "is a damaged Parquet file: it has a negative number of rows"))?;
        rows = rows.saturating_add(declared);
    }
    let columns = metadata.file_metadata().schema_descr().num_columns() as u64;
    let too_large = |why| Error::content(path, format!("declares {rows} rows of {columns} columns and {why}"));
    let needed = if held { rows.saturating_mul(8 * columns) } else { 0 };
    TooLarge::check(needed, 1).map_err(too_large)
}

/// Values to read at once: a text may be as long as a page.
fn batch(page: u64) -> usize {
    (Limits::current().bytes / page.max(1)).clamp(1, BATCH as u64) as usize
}

/// A column on its way.
struct Filling<'a> {
    about: &'a ColumnDescriptor,
    column: &'a mut Column,
    /// Rows that it has in the end.
    rows: usize,
    batch: usize,
    meter: &'a mut Meter,
}

impl Filling<'_> {
    /// Appends the next values of a row group.
    fn read(self, reader: &mut ColumnReader) -> Result<(), ParquetError> {
        let about = self.about;
        let scale = match about.logical_type_ref() {
            Some(LogicalType::Decimal(decimal)) => decimal.scale,
            _ if about.converted_type() == ConvertedType::DECIMAL => about.type_scale(),
            _ => 0,
        };
        let unsigned = is_unsigned(about);
        let integer = |column: &mut Column, value: i128| match value.unsigned_abs() > 1 << 53 {
            true => column.push_odd(value.to_string()),
            false => column.push_number(value as f64 / 10f64.powi(scale.clamp(0, 64)), String::new),
        };
        let real = |column: &mut Column, value: f64| column.push_number(value, || value.to_string());
        let text = |column: &mut Column, bytes: &[u8]| column.push_odd(String::from_utf8_lossy(bytes).into_owned());
        match reader {
            ColumnReader::BoolColumnReader(r) => self.each(r, |c, v| real(c, *v as u8 as f64)),
            ColumnReader::Int32ColumnReader(r) => {
                self.each(r, |c, v| integer(c, if unsigned { *v as u32 as i128 } else { *v as i128 }))
            }
            ColumnReader::Int64ColumnReader(r) => {
                self.each(r, |c, v| integer(c, if unsigned { *v as u64 as i128 } else { *v as i128 }))
            }
            ColumnReader::Int96ColumnReader(r) => self.each(r, |c, v| c.push_odd(format!("{v:?}"))),
            ColumnReader::FloatColumnReader(r) => self.each(r, |c, v| real(c, *v as f64)),
            ColumnReader::DoubleColumnReader(r) => self.each(r, |c, v| real(c, *v)),
            ColumnReader::ByteArrayColumnReader(r) => self.each(r, |c, v| text(c, v.data())),
            ColumnReader::FixedLenByteArrayColumnReader(r) => self.each(r, |c, v| text(c, v.data())),
        }
    }

    /// Reads values and pushes each until there are all rows, or no more values; a null is an empty cell.
    fn each<T: DataType>(
        self,
        reader: &mut ColumnReaderImpl<T>,
        push: impl Fn(&mut Column, &T::T),
    ) -> Result<(), ParquetError> {
        let full = self.about.max_def_level();
        let (mut levels, mut values) = (vec![], vec![]);
        loop {
            levels.clear();
            values.clear();
            let wanted = self.batch.min(self.rows - self.column.values.len());
            let (records, _, _) = reader.read_records(wanted, Some(&mut levels), None, &mut values)?;
            if records == 0 {
                return Ok(());
            }
            let mut present = values.iter();
            for row in 0..records {
                let there = full == 0 || levels.get(row).is_some_and(|level| *level == full);
                match if there { present.next() } else { None } {
                    Some(value) => push(self.column, value),
                    None => self.column.push_odd(String::new()),
                }
                self.meter.take(self.column.last_cell()).map_err(|why| ParquetError::External(Box::new(why)))?;
            }
        }
    }
}
