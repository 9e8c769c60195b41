//! Writing Parquet files, a row group for each block.
//!
//! **Statement.** The pages of a block are made as a small file of their own, whose table of contents is kept. At the end the
//! tables of contents, with offsets moved to where the pages lie, become the one of the whole file. So nothing but the tables
//! of contents is needed to go on after an interruption.
//! **Checked by** tests/lab/data_blocks.rs.

use crate::table::columns::{CellKind, Column};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{SchemaDescriptor, Type};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a file begins with.
const MAGIC: &[u8] = b"PAR1";

/// Bytes after the table of contents: its length, and the magic.
const TAIL: usize = 8;

/// A row group that is written: its own table of contents, and where its pages lie.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowGroup {
    /// As in a file of this row group alone, in base 64.
    contents: String,
    /// Where its pages begin.
    offset: u64,
}

/// The row groups of a file of these columns.
#[derive(Clone, Debug)]
pub struct Groups {
    schema: Arc<Type>,
    written: Vec<RowGroup>,
}

fn words(error: ParquetError) -> String {
    error.to_string()
}

impl Groups {
    /// Of a new file, or of one with these row groups.
    pub fn new(columns: &[(String, CellKind)], written: Vec<RowGroup>) -> Result<Self, String> {
        let field = |(name, kind): &(String, CellKind)| {
            let (physical, logical) = match kind {
                CellKind::Number => (Physical::DOUBLE, None),
                CellKind::Integer => (Physical::INT64, None),
                CellKind::Unsigned => (Physical::INT64, Some(LogicalType::integer(64, false))),
                CellKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            };
            let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
            field.with_logical_type(logical).build().map(Arc::new)
        };
        let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>().map_err(words)?;
        let schema = Type::group_type_builder("table").with_fields(fields).build().map_err(words)?;
        Ok(Groups { schema: Arc::new(schema), written })
    }

    /// The row group that was written last.
    pub fn last(&self) -> Option<&RowGroup> {
        self.written.last()
    }

    /// The bytes of a row group at this offset; 0 if the file is new.
    pub fn add(&mut self, columns: &[&Column], kinds: &[CellKind], offset: u64) -> Result<Vec<u8>, String> {
        let mut bytes = self.alone(columns, kinds)?;
        let tail = bytes.len().checked_sub(TAIL).and_then(|at| bytes.get(at..at + 4)).ok_or("a file is too short")?;
        let length = u32::from_le_bytes(tail.try_into().expect("four bytes")) as usize;
        let contents = bytes.split_off(bytes.len() - TAIL - length);
        if offset > 0 {
            bytes.drain(..MAGIC.len());
        }
        let offset = offset.max(MAGIC.len() as u64);
        self.written.push(RowGroup { contents: BASE64_STANDARD.encode(&contents[..length]), offset });
        Ok(bytes)
    }

    /// What stands at the end of the file, and at its beginning if nothing is written yet.
    pub fn end(&self) -> Result<Vec<u8>, String> {
        let mut bytes = if self.written.is_empty() { MAGIC.to_vec() } else { vec![] };
        let schema = Arc::new(SchemaDescriptor::new(self.schema.clone()));
        let mut groups = vec![];
        for (ordinal, group) in self.written.iter().enumerate() {
            groups.push(group.moved(ordinal)?);
        }
        let rows = groups.iter().map(RowGroupMetaData::num_rows).sum();
        let about =
            FileMetaData::new(1, rows, Some(format!("minvel {}", env!("CARGO_PKG_VERSION"))), None, schema, None);
        let all = ParquetMetaData::new(about, groups);
        ParquetMetaDataWriter::new(&mut bytes, &all).finish().map_err(words)?;
        Ok(bytes)
    }

    /// A file of one row group.
    fn alone(&self, columns: &[&Column], kinds: &[CellKind]) -> Result<Vec<u8>, String> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .build();
        let mut writer = SerializedFileWriter::new(vec![], self.schema.clone(), Arc::new(properties)).map_err(words)?;
        let mut group = writer.next_row_group().map_err(words)?;
        for (column, kind) in columns.iter().zip(kinds) {
            let mut out = group.next_column().map_err(words)?.ok_or("the schema has too few columns")?;
            put(column, *kind, &mut out)?;
            out.close().map_err(words)?;
        }
        group.close().map_err(words)?;
        writer.into_inner().map_err(words)
    }
}

/// Writes the cells of a column.
fn put(column: &Column, kind: CellKind, out: &mut SerializedColumnWriter) -> Result<(), String> {
    let rows = 0..column.values.len();
    let mut levels = vec![1; rows.len()];
    if kind != CellKind::Text {
        column.odd.iter().filter(|(_, text)| text.is_empty()).for_each(|(row, _)| levels[*row] = 0);
    }
    match kind {
        CellKind::Text => {
            let values: Vec<ByteArray> = rows.map(|row| ByteArray::from(column.text(row).as_str())).collect();
            out.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)
        }
        CellKind::Number if column.odd.is_empty() => {
            out.typed::<DoubleType>().write_batch(&column.values, Some(&levels), None)
        }
        CellKind::Number => {
            let values: Vec<f64> = rows.filter(|row| levels[*row] == 1).map(|row| column.values[row]).collect();
            out.typed::<DoubleType>().write_batch(&values, Some(&levels), None)
        }
        CellKind::Integer | CellKind::Unsigned => {
            let mut values: Vec<i64> = column.values.iter().map(|value| *value as i64).collect();
            for (row, text) in column.odd.iter().filter(|(_, text)| !text.is_empty()) {
                let whole = text.parse().ok().or_else(|| text.parse::<u64>().ok().map(|n| n as i64));
                values[*row] = whole.ok_or_else(|| format!("`{text}` is not a whole number"))?;
            }
            let mut levels_left = levels.iter();
            values.retain(|_| levels_left.next() == Some(&1));
            out.typed::<Int64Type>().write_batch(&values, Some(&levels), None)
        }
    }
    .map(drop)
    .map_err(words)
}

impl RowGroup {
    /// Its entry in the table of contents of the whole file.
    fn moved(&self, ordinal: usize) -> Result<RowGroupMetaData, String> {
        let contents = BASE64_STANDARD.decode(&self.contents).map_err(|e| e.to_string())?;
        let all = ParquetMetaDataReader::decode_metadata(&contents).map_err(words)?;
        let group = all.row_groups().first().ok_or("a row group is missing")?.clone();
        let shift = self.offset as i64 - MAGIC.len() as i64;
        let moved = |column: &ColumnChunkMetaData| {
            let (pages, words_at) = (column.data_page_offset() + shift, column.dictionary_page_offset());
            let column = column.clone().into_builder().set_data_page_offset(pages);
            column.set_dictionary_page_offset(words_at.map(|at| at + shift)).build()
        };
        let columns = group.columns().iter().map(moved).collect::<Result<Vec<_>, _>>().map_err(words)?;
        let group = group.into_builder().set_column_metadata(columns).set_file_offset(self.offset as i64);
        group.set_ordinal(ordinal as i32).build().map_err(words)
    }
}
