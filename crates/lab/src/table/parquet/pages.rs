//! Pages of a column, looked at before they are decoded: the decoder takes memory for whatever a page announces.
//!
//! **Source.** The format of Apache Parquet: `PageHeader` in Thrift's compact protocol (fields 2 and 3 are the sizes, 5, 7 and
//! 8 the headers of data, dictionaries and data of version 2), and the encoding `DELTA_BINARY_PACKED`.
//! **Checked by** crates/cli/tests/program/limits.rs, and by the fuzzer in `fuzz/`.

use crate::bytes::Counted;
use minvel::limits::TooLarge;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// Memory of an entry of a dictionary, decoded.
const ENTRY: u64 = 32;

/// How deep structures may be nested.
const DEEPEST: usize = 8;

fn damaged(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}

/// Checks what the pages of a column announce; gives the size of the largest.
pub(super) fn check(file: &File, chunk: &ColumnChunkMetaData) -> Result<u64> {
    let (mut at, mut left) = chunk.byte_range();
    if at.checked_add(left).is_none_or(|end| end > file.metadata().map_or(0, |about| about.len())) {
        return Err(damaged("a column ends beyond the end of the file"));
    }
    let mut largest = 0;
    while left > 0 {
        let mut bytes = file.try_clone()?;
        bytes.seek(SeekFrom::Start(at))?;
        let mut bytes = Counted { inner: BufReader::new(bytes).take(left), count: 0 };
        let header = Header::read(&mut bytes)?;
        let room = left - bytes.count;
        let sizes = (u64::try_from(header.compressed), u64::try_from(header.uncompressed));
        let (Ok(compressed), Ok(uncompressed)) = sizes else { return Err(damaged("a page has a negative size")) };
        if compressed > room {
            return Err(damaged(format!("a page has {compressed} bytes, but only {room} are left")));
        }
        TooLarge::check(uncompressed, 1).map_err(|why| damaged(format!("a page {why}")))?;
        if let Some(entries) = header.dictionary.map(|n| u64::try_from(n).unwrap_or(u64::MAX)) {
            // even of bits there are no more than eight in a byte
            if entries > 8 * uncompressed.max(compressed) {
                return Err(damaged(format!("a dictionary of {uncompressed} bytes declares {entries} entries")));
            }
            TooLarge::check(entries.saturating_mul(ENTRY), 1).map_err(|why| damaged(format!("a dictionary {why}")))?;
        }
        if matches!(chunk.compression(), Compression::GZIP(_)) && header.is_compressed {
            let levels = u64::try_from(header.levels).unwrap_or(0).min(compressed);
            io::copy(&mut bytes.by_ref().take(levels), &mut io::sink())?;
            check_gzip(bytes.inner.take(compressed - levels), uncompressed)?;
        }
        largest = largest.max(uncompressed);
        (at, left) = (at + (left - room) + compressed, room - compressed);
    }
    Ok(largest)
}

/// The crate unpacks all that gzip holds, whatever the page announces.
fn check_gzip(bytes: impl Read, announced: u64) -> Result<()> {
    let mut inside = flate2::read::MultiGzDecoder::new(bytes).take(announced + 1);
    match io::copy(&mut inside, &mut io::sink()) {
        Ok(count) if count > announced => {
            Err(damaged(format!("a page decompresses to more than its {announced} bytes")))
        }
        _ => Ok(()),
    }
}

/// What a page says about itself.
#[derive(Default)]
struct Header {
    compressed: i64,
    uncompressed: i64,
    /// Entries, if it is a dictionary.
    dictionary: Option<i64>,
    /// Bytes of levels before what is compressed.
    levels: i64,
    is_compressed: bool,
}

impl Header {
    fn read(bytes: &mut dyn Read) -> Result<Header> {
        let mut header = Header { is_compressed: true, ..Header::default() };
        structure(bytes, 0, DEEPEST, &mut |parent, field, value| match (parent, field) {
            (0, 2) => header.uncompressed = value,
            (0, 3) => header.compressed = value,
            (7, 1) => header.dictionary = Some(value),
            (8, 5 | 6) => header.levels = header.levels.saturating_add(value.max(0)),
            (8, 7) => header.is_compressed = value != 0,
            _ => {}
        })?;
        Ok(header)
    }
}

fn byte(bytes: &mut dyn Read) -> Result<u8> {
    let mut one = [0];
    bytes.read_exact(&mut one)?;
    Ok(one[0])
}

/// A number of seven bits a byte.
fn varint(bytes: &mut dyn Read) -> Result<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let next = byte(bytes)?;
        value |= u64::from(next & 0x7f) << shift;
        if next & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(damaged("a number is too long"))
}

fn zigzag(bytes: &mut dyn Read) -> Result<i64> {
    varint(bytes).map(|n| (n >> 1) as i64 ^ -((n & 1) as i64))
}

/// Goes on by so many bytes, which must be there: else a list of any length would be walked through at the end of a file.
fn skip(bytes: &mut dyn Read, count: u64) -> Result<()> {
    match io::copy(&mut bytes.take(count), &mut io::sink())? {
        found if found < count => Err(damaged("the header of a page is truncated")),
        _ => Ok(()),
    }
}

/// Walks over a structure and tells its numbers, with the fields they and their structure are.
fn structure(bytes: &mut dyn Read, parent: i64, depth: usize, tell: &mut dyn FnMut(i64, i64, i64)) -> Result<()> {
    let mut field = 0i64;
    loop {
        let head = byte(bytes)?;
        if head == 0 {
            return Ok(());
        }
        field = if head >> 4 == 0 { zigzag(bytes)? } else { field + i64::from(head >> 4) };
        match head & 15 {
            1 => tell(parent, field, 1),
            2 => tell(parent, field, 0),
            kind => value(bytes, kind, parent, field, depth, tell)?,
        }
    }
}

fn value(
    bytes: &mut dyn Read,
    kind: u8,
    parent: i64,
    field: i64,
    depth: usize,
    tell: &mut dyn FnMut(i64, i64, i64),
) -> Result<()> {
    match kind {
        1..=3 => skip(bytes, 1)?,
        7 => skip(bytes, 8)?,
        4..=6 => tell(parent, field, zigzag(bytes)?),
        8 => {
            let count = varint(bytes)?;
            skip(bytes, count)?;
        }
        9 | 10 if depth > 0 => {
            let head = byte(bytes)?;
            let count = if head >> 4 == 15 { varint(bytes)? } else { u64::from(head >> 4) };
            for _ in 0..count {
                value(bytes, head & 15, -1, -1, depth - 1, tell)?;
            }
        }
        12 if depth > 0 => structure(bytes, field, depth - 1, tell)?,
        _ => return Err(damaged("the header of a page cannot be read")),
    }
    Ok(())
}

/// Pages whose lists of lengths are no longer than the column: the decoder takes memory for as many as they announce.
pub(super) struct Checked {
    pub inner: Box<dyn PageReader>,
    /// Whether there are definition levels, and of how many bits.
    pub level_bits: u32,
    /// The most values that there can be.
    pub rows: u64,
}

impl Checked {
    fn check(&self, page: &Page) -> Result<()> {
        let (buffer, encoding, start) = match page {
            Page::DataPage { buf, encoding, def_level_encoding, num_values, .. } => {
                (buf, *encoding, self.levels(buf, *def_level_encoding, *num_values))
            }
            Page::DataPageV2 { buf, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
                (buf, *encoding, u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len))
            }
            Page::DictionaryPage { .. } => return Ok(()),
        };
        let lists = match encoding {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
            Encoding::DELTA_BYTE_ARRAY => 2,
            _ => return Ok(()),
        };
        let mut values = usize::try_from(start).ok().and_then(|start| buffer.get(start..)).unwrap_or(&[]);
        (0..lists).try_for_each(|_| self.skip_lengths(&mut values))
    }

    /// Bytes of the definition levels before the values of a page of version 1.
    fn levels(&self, buffer: &[u8], encoding: Encoding, values: u32) -> u64 {
        match (self.level_bits, encoding, buffer.first_chunk::<4>()) {
            (0, ..) => 0,
            (_, Encoding::RLE, Some(length)) => 4 + u64::from(u32::from_le_bytes(*length)),
            // packed, as old files have them
            (bits, ..) => (u64::from(values) * u64::from(bits)).div_ceil(8),
        }
    }

    /// Goes behind a list of lengths.
    fn skip_lengths(&self, values: &mut &[u8]) -> Result<()> {
        let (block, minis, count) = (varint(values)?, varint(values)?, varint(values)?);
        zigzag(values)?;
        if count > self.rows {
            return Err(damaged(format!("a page declares {count} texts, but the column has {} rows", self.rows)));
        }
        if minis == 0 || block % minis != 0 || block / minis == 0 {
            return Err(damaged(format!("a page has blocks of {block} numbers in {minis} parts")));
        }
        let (each, mut left) = (block / minis, count.saturating_sub(1));
        while left > 0 {
            zigzag(values)?;
            let widths = usize::try_from(minis).ok().and_then(|n| values.split_at_checked(n));
            let (widths, rest) = widths.ok_or_else(|| damaged("a page is truncated"))?;
            let used = widths.iter().take_while(|_| {
                let used = left > 0;
                left = left.saturating_sub(each);
                used
            });
            let bytes = used.fold(0u64, |sum, bits| sum.saturating_add(each.saturating_mul(u64::from(*bits)) / 8));
            *values = usize::try_from(bytes).ok().and_then(|n| rest.get(n..)).unwrap_or(&[]);
        }
        Ok(())
    }
}

impl Iterator for Checked {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Checked {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        page.as_ref().map_or(Ok(()), |page| self.check(page))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.inner.at_record_boundary()
    }
}
