//! Tables in Parquet files, column by column.
//!
//! **Conventions.** Numbers of all kinds become f64; integers beyond 2⁵³ and bytes stay text; nulls are empty cells; lists
//! and other nested columns are kept as text that cannot be chosen, and not decoded. No more rows are decoded than the
//! file's own table of contents declares: a damaged page may promise billions of them in a few bytes.
//! **Checked by** tests/lab/data_binary.rs, and by the fuzzer in `fuzz/`.

mod pages;

use super::columns::{Column, MOST_COLUMNS, Table, plain};
use minvel::limits::{Meter, TooLarge};
use minvel::{Error, Limits};
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescriptor, Type};
use std::fs::File;
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::Arc;

/// Values read at once.
const BATCH: usize = 8192;

/// Reads a Parquet file.
///
/// The crate asserts things that a damaged file does not keep (found by fuzzing): such a panic is the file's fault, and
/// becomes an error here.
pub(super) fn read(path: &Path) -> Result<Table, Error> {
    catch_unwind(|| read_trusting(path))
        .unwrap_or_else(|_| Err(Error::content(path, "is a damaged Parquet file: fetch or write it again")))
}

fn read_trusting(path: &Path) -> Result<Table, Error> {
    let file = File::open(path).map_err(|e| Error::file(path, "read", e))?;
    let damaged = |e: ParquetError| Error::content(path, format!("is a damaged or unusual Parquet file ({e})"));
    let reader = SerializedFileReader::new(file.try_clone().map_err(|e| Error::file(path, "read", e))?);
    let reader = reader.map_err(damaged)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    if schema.num_columns() > MOST_COLUMNS {
        return Err(Error::content(
            path,
            format!("has {} columns: at most {MOST_COLUMNS} are supported", schema.num_columns()),
        ));
    }
    let mut chunks = reader.metadata().row_groups().iter().flat_map(|group| group.columns());
    let places =
        |c: &ColumnChunkMetaData| [c.compressed_size(), c.data_page_offset(), c.dictionary_page_offset().unwrap_or(0)];
    if chunks.any(|chunk| places(chunk).iter().any(|place| *place < 0)) {
        return Err(Error::content(path, "is a damaged Parquet file: it has chunks at negative offsets"));
    }
    check_rows(path, reader.metadata())?;
    let mut columns: Vec<Column> = schema.columns().iter().map(|c| Column::named(c.path().string())).collect();
    let nested = |k: usize| schema.column(k).max_rep_level() > 0;
    let (mut rows, mut meter) = (0usize, Meter::new());
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(damaged)?;
        rows += group.metadata().num_rows() as usize; // checked above
        for (k, column) in columns.iter_mut().enumerate().filter(|(k, _)| !nested(*k)) {
            let about = schema.column(k);
            let largest = pages::check(&file, group.metadata().column(k)).map_err(damaged)?;
            let level_bits = u32::from(about.max_def_level().unsigned_abs()).checked_ilog2().map_or(0, |n| n + 1);
            let inner = group.get_column_page_reader(k).map_err(damaged)?;
            let checked = pages::Checked { inner, level_bits, rows: rows as u64 };
            let values = get_column_reader(about.clone(), Box::new(checked));
            Filling { about: &about, column, rows, batch: batch(largest), meter: &mut meter }
                .read(values)
                .map_err(damaged)?;
            if column.values.len() != rows {
                let (name, count) = (&column.name, column.values.len());
                let what = format!("is damaged: column `{name}` has {count} rows, but {rows} are declared");
                return Err(Error::content(path, what));
            }
        }
    }
    if (0..columns.len()).all(nested) {
        return Err(Error::content(path, "has no columns of plain values, only nested ones"));
    }
    for (_, column) in columns.iter_mut().enumerate().filter(|(k, _)| nested(*k)) {
        for _ in 0..rows {
            column.push_odd("(list)".into());
            meter.take(column.last_cell()).map_err(|why| Error::content(path, why.to_string()))?;
        }
    }
    Ok(plain(path, columns))
}

/// An error if the rows that are declared are none, or take more memory than they may.
fn check_rows(path: &Path, metadata: &ParquetMetaData) -> Result<(), Error> {
    let mut rows = 0u64;
    for group in metadata.row_groups() {
        let declared = u64::try_from(group.num_rows());
        let declared = declared
            .map_err(|_| Error::content(path, "is a damaged Parquet file: it has a negative number of rows"))?;
        rows = rows.saturating_add(declared);
    }
    let columns = metadata.file_metadata().schema_descr().num_columns() as u64;
    let too_large = |why| Error::content(path, format!("declares {rows} rows of {columns} columns and {why}"));
    TooLarge::check(rows.saturating_mul(8 * columns), 1).map_err(too_large)
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
    /// Appends the values of a row group.
    fn read(self, reader: ColumnReader) -> Result<(), ParquetError> {
        let about = self.about;
        let scale = match about.logical_type_ref() {
            Some(LogicalType::Decimal(decimal)) => decimal.scale,
            _ if about.converted_type() == ConvertedType::DECIMAL => about.type_scale(),
            _ => 0,
        };
        let unsigned = matches!(about.converted_type(), ConvertedType::UINT_32 | ConvertedType::UINT_64);
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
        mut reader: ColumnReaderImpl<T>,
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

/// What a column becomes in a file: doubles where every cell is a number or empty, else text.
fn is_double(column: &Column) -> bool {
    column.odd.iter().all(|(_, text)| text.is_empty() || text.parse().is_ok_and(|v: f64| !v.is_finite()))
}

/// The bytes of a Parquet file with these columns.
pub(super) fn write(columns: &[Column]) -> Result<Vec<u8>, String> {
    let sick = |e: ParquetError| e.to_string();
    let field = |column: &Column| {
        let kind = if is_double(column) { Physical::DOUBLE } else { Physical::BYTE_ARRAY };
        let logical = (!is_double(column)).then_some(LogicalType::String);
        Type::primitive_type_builder(&column.name, kind)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>().map_err(sick)?;
    let schema = Type::group_type_builder("table").with_fields(fields).build().map_err(sick)?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(vec![], Arc::new(schema), Arc::new(properties)).map_err(sick)?;
    let mut group = writer.next_row_group().map_err(sick)?;
    for column in columns {
        let mut out = group.next_column().map_err(sick)?.ok_or("the schema has too few columns")?;
        let rows = 0..column.values.len();
        if is_double(column) {
            let mut levels = vec![1; rows.len()];
            column.odd.iter().filter(|(_, text)| text.is_empty()).for_each(|(row, _)| levels[*row] = 0);
            let values: Vec<f64> = rows.filter(|row| levels[*row] == 1).map(|row| column.values[row]).collect();
            out.typed::<DoubleType>().write_batch(&values, Some(&levels), None).map_err(sick)?;
        } else {
            let levels = vec![1; rows.len()];
            let values: Vec<ByteArray> = rows.map(|row| ByteArray::from(column.text(row).as_str())).collect();
            out.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None).map_err(sick)?;
        }
        out.close().map_err(sick)?;
    }
    group.close().map_err(sick)?;
    writer.into_inner().map_err(sick)
}
