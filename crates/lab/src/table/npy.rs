//! Arrays of NumPy: NPY, and NPZ (a zip of them).
//!
//! **Source.** The format of `numpy.lib.format`, versions 1 to 3: the magic `\x93NUMPY`, two bytes of version, the length of
//! the header, the header as a Python dictionary, then the numbers.
//! **Conventions.** The first axis are rows; all further axes are columns, in C order. NPZ files hold one array, or one is
//! chosen by name, or all are of one axis and one length: then each is a column.
//! **Checked by** tests/lab/data_binary.rs, and by the fuzzer in `fuzz/`.

use super::blocks::Want;
use super::columns::{Column, MOST_COLUMNS, Table, plain};
use super::input::{Input, skip};
use crate::bytes::{Counted, unreadable};
use half::f16;
use minvel::Error;
use minvel::limits::{Bounded, Meter, TooLarge};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The longest header that is read.
const LONGEST_HEADER: usize = 1 << 16;

/// The most axes of an array, as in NumPy.
const MOST_AXES: usize = 64;

/// Trouble with an array, before it is known of which file.
pub(super) enum Trouble {
    Content(String),
    Reading(io::Error),
}

impl Trouble {
    pub fn of(self, path: &Path) -> Error {
        match self {
            Trouble::Content(what) => Error::content(path, what),
            Trouble::Reading(error) => unreadable(path, error),
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Reading(error)
    }
}

impl From<TooLarge> for Trouble {
    fn from(why: TooLarge) -> Self {
        Trouble::Content(why.to_string())
    }
}

impl From<String> for Trouble {
    fn from(what: String) -> Self {
        Trouble::Content(what)
    }
}

/// What the header says.
pub(super) struct Header {
    kind: char,
    pub bytes: usize,
    big_endian: bool,
    pub fortran: bool,
    pub shape: Vec<usize>,
}

/// The text after `'key':` in the header's dictionary.
fn entry<'a>(header: &'a str, key: &str) -> Result<&'a str, String> {
    let quoted = [format!("'{key}'"), format!("\"{key}\"")];
    let at = quoted.iter().find_map(|k| header.find(k.as_str()).map(|i| i + k.len()));
    let rest = at.and_then(|i| header[i..].trim_start().strip_prefix(':'));
    rest.map(str::trim_start).ok_or_else(|| format!("the header of the array has no `{key}`: the file is damaged"))
}

impl Header {
    fn parse(text: &str) -> Result<Self, String> {
        let descr = entry(text, "descr")?;
        let name: String = match descr.chars().next() {
            Some(quote @ ('\'' | '"')) => descr[1..].chars().take_while(|c| *c != quote).collect(),
            _ => return Err("the array has named fields: save its columns as a plain array of numbers".into()),
        };
        let unknown = || format!("the numbers are of type `{name}`; expected floats or integers of at most 8 bytes");
        let (order, rest) = match name.chars().next() {
            Some(c @ ('<' | '>' | '|' | '=')) => (c, &name[1..]),
            _ => ('<', name.as_str()),
        };
        let kind = rest.chars().next().filter(|k| "fiub".contains(*k)).ok_or_else(unknown)?;
        let bytes: usize = rest[1..].parse().map_err(|_| unknown())?;
        if !matches!((kind, bytes), ('f', 2 | 4 | 8) | ('i' | 'u', 1 | 2 | 4 | 8) | ('b', 1)) {
            return Err(unknown());
        }
        let fortran = entry(text, "fortran_order")?.starts_with("True");
        let shape = entry(text, "shape")?;
        let shape = shape.strip_prefix('(').and_then(|s| s.split(')').next());
        let shape = shape.ok_or("the array's shape cannot be read: the file is damaged")?;
        let axes = shape.split(',').map(str::trim).filter(|s| !s.is_empty());
        let shape: Vec<usize> = axes
            .map(|n| n.parse().map_err(|_| format!("the array's shape contains `{n}`")))
            .collect::<Result<_, _>>()?;
        if shape.is_empty() {
            return Err("the array is a single number, not a table".into());
        }
        if shape.len() > MOST_AXES {
            return Err(format!("the array has {} axes: at most {MOST_AXES} are supported", shape.len()));
        }
        Ok(Header { kind, bytes, big_endian: order == '>', fortran, shape })
    }

    /// Rows and columns.
    fn sizes(&self) -> Result<(usize, usize), String> {
        let columns = self.shape[1..].iter().try_fold(1usize, |p, n| p.checked_mul(*n));
        match columns {
            Some(columns @ 1..=MOST_COLUMNS) => Ok((self.shape[0], columns)),
            _ => {
                Err(format!("the array has shape {:?}: 1 to {MOST_COLUMNS} numbers per row are supported", self.shape))
            }
        }
    }

    /// The number in some bytes, and its text where f64 does not hold it.
    pub fn number(&self, raw: &[u8]) -> f64 {
        let mut little = [0; 8];
        little[..self.bytes].copy_from_slice(raw);
        if self.big_endian {
            little[..self.bytes].reverse();
        }
        let bits = u64::from_le_bytes(little);
        let unused = 64 - 8 * self.bytes as u32;
        match (self.kind, self.bytes) {
            ('f', 8) => f64::from_bits(bits),
            ('f', 4) => f32::from_bits(bits as u32) as f64,
            ('f', _) => f16::from_bits(bits as u16).to_f64(),
            ('i', _) => ((bits << unused) as i64 >> unused) as f64,
            _ => bits as f64,
        }
    }
}

pub(super) fn header(bytes: &mut dyn Read) -> Result<Header, Trouble> {
    let mut start = [0; 8];
    bytes.read_exact(&mut start)?;
    if start[..6] != *b"\x93NUMPY" {
        return Err("is not a NumPy array".to_string().into());
    }
    let length = match start[6] {
        1 => {
            let mut length = [0; 2];
            bytes.read_exact(&mut length)?;
            u16::from_le_bytes(length) as usize
        }
        2 | 3 => {
            let mut length = [0; 4];
            bytes.read_exact(&mut length)?;
            u32::from_le_bytes(length) as usize
        }
        version => return Err(format!("is a NumPy array of format {version}; expected 1 to 3").into()),
    };
    if length > LONGEST_HEADER {
        return Err(format!("the array's header has {length} bytes: the file is damaged").into());
    }
    let mut text = vec![0; length];
    bytes.read_exact(&mut text)?;
    Ok(Header::parse(&String::from_utf8_lossy(&text))?)
}

/// An array, a block of rows after another.
pub(super) struct NpyBlocks {
    header: Header,
    bytes: Box<dyn BufRead + Send>,
    /// Where the numbers begin.
    start: u64,
    rows: usize,
    /// Columns, in the order of the numbers of a row.
    column_of: Vec<usize>,
    /// Rows read.
    done: usize,
    /// Whether the file can be opened anew at any place.
    on_disk: Option<Input>,
}

impl NpyBlocks {
    /// An array without a name; its columns where its rows cannot be met one after another.
    pub fn new(
        mut bytes: Box<dyn BufRead + Send>,
        input: &Input,
        zipped: bool,
    ) -> Result<Result<NpyBlocks, Vec<Column>>, Trouble> {
        let mut counted = Counted { inner: &mut bytes, count: 0 };
        let header = header(&mut counted)?;
        let start = counted.count;
        let (rows, count) = header.sizes()?;
        let on_disk = Some(input.clone()).filter(|input| !zipped && matches!(input, Input::File(_)));
        if header.fortran && count > 1 && on_disk.is_none() {
            return columns(&header, &mut bytes, "", &mut Meter::new()).map(Err);
        }
        let column_of = column_order(&header.shape[1..], header.fortran);
        Ok(Ok(NpyBlocks { header, bytes, start, rows, column_of, done: 0, on_disk }))
    }

    pub fn names(&self) -> Vec<String> {
        vec![String::new(); self.column_of.len()]
    }

    /// Rows of the array.
    pub fn total(&self) -> usize {
        self.rows
    }

    /// Goes on after so many rows.
    pub fn skip(&mut self, input: &Input, rows: usize) -> Result<(), Error> {
        self.done = rows;
        let before = rows as u64 * (self.column_of.len() * self.header.bytes) as u64;
        match &self.on_disk {
            Some(input) => self.bytes = input.open_at(self.start + before)?,
            None => skip(&mut self.bytes, before).map_err(|e| unreadable(input.path(), e))?,
        }
        Ok(())
    }

    /// Adds rows to a table, as many as a block has.
    pub fn fill(&mut self, table: &mut Table, want: &Want, meter: &mut Meter) -> Result<(), Trouble> {
        let (count, size) = (self.column_of.len(), self.header.bytes);
        if want.rows == usize::MAX {
            let too_large = |why| format!("the array of shape {:?} {why}", self.header.shape);
            TooLarge::check((self.rows as u64).saturating_mul(8 * count as u64), 1).map_err(too_large)?;
        }
        let fitting = usize::try_from(want.bytes / (8 * count as u64)).unwrap_or(usize::MAX).max(1);
        let rows = (self.rows - self.done).min(want.rows).min(fitting);
        if !self.header.fortran || count == 1 {
            each(&mut self.bytes, rows, count, &self.header, |k, value| {
                if want.keeps(k) {
                    table.columns[k].push_number(value, || value.to_string());
                    meter.take(table.columns[k].last_cell())?;
                }
                Ok(())
            })?;
        } else {
            for (k, &column) in self.column_of.iter().enumerate().filter(|(_, column)| want.keeps(**column)) {
                let input = self.on_disk.as_ref().expect("looked at before");
                let offset = self.start + ((k * self.rows + self.done) * size) as u64;
                let mut bytes = input.open_at(offset).map_err(|e| Trouble::Content(e.to_string()))?;
                each(&mut bytes, rows, 1, &self.header, |_, value| {
                    table.columns[column].push_number(value, || value.to_string());
                    Ok(meter.take(table.columns[column].last_cell())?)
                })?;
            }
        }
        self.done += rows;
        Ok(())
    }
}

/// Tells each number of so many rows, with its place in the row. Memory grows with what is read, not with what the header promises.
fn each(
    bytes: &mut dyn Read,
    rows: usize,
    count: usize,
    header: &Header,
    mut tell: impl FnMut(usize, f64) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let total = rows.checked_mul(count).and_then(|n| n.checked_mul(header.bytes));
    let total = total.ok_or_else(|| format!("the array's shape {:?} is too large", header.shape))?;
    let mut chunk = vec![0; header.bytes << 13];
    let (mut done, mut element) = (0, 0);
    while done < total {
        let size = chunk.len().min(total - done);
        bytes.read_exact(&mut chunk[..size]).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => {
                let (rows, count) = (header.shape[0], header.shape[1..].iter().product::<usize>());
                let what =
                    format!("ends before its {rows} rows of {count} numbers do: it was truncated, write it again");
                Trouble::Content(what)
            }
            _ => Trouble::Reading(e),
        })?;
        for raw in chunk[..size].chunks_exact(header.bytes) {
            tell(element % count, header.number(raw))?;
            element += 1;
        }
        done += size;
    }
    Ok(())
}

/// Reads an array as columns `name` or `name[0]`, `name[1]`, …; without a name they have none.
fn read(bytes: &mut dyn Read, name: &str, meter: &mut Meter) -> Result<Vec<Column>, Trouble> {
    columns(&header(bytes)?, bytes, name, meter)
}

/// The columns of an array, no further than the meter allows.
fn columns(header: &Header, bytes: &mut dyn Read, name: &str, meter: &mut Meter) -> Result<Vec<Column>, Trouble> {
    let (rows, count) = header.sizes()?;
    let too_large = |why| format!("the array of shape {:?} {why}", header.shape);
    TooLarge::check((rows as u64).saturating_mul(8 * count as u64), 1).map_err(too_large)?;
    meter.take(count as u64 * (size_of::<Column>() + name.len() + 32) as u64)?;
    let names = (0..count).map(|c| match (name, count) {
        ("", _) => String::new(),
        (_, 1) => name.to_string(),
        _ => format!("{name}[{c}]"),
    });
    let mut columns: Vec<Column> = names.map(Column::named).collect();
    let order = column_order(&header.shape[1..], header.fortran);
    // of an array in Fortran order the numbers of a column come one after another
    let (outer, inner) = if header.fortran { (count, 1) } else { (1, count) };
    for part in 0..outer {
        each(bytes, rows, inner, header, |k, value| {
            let column = &mut columns[if header.fortran { order[part] } else { k }];
            column.push_number(value, || value.to_string());
            Ok(meter.take(column.last_cell())?)
        })?;
    }
    Ok(columns)
}

/// Which column, in C order, the k-th number of a row is: of a row in Fortran order the first axis is the fastest.
fn column_order(shape: &[usize], fortran: bool) -> Vec<usize> {
    if !fortran {
        return (0..shape.iter().product()).collect();
    }
    let place = |k: usize| {
        let mut rest = k;
        let index: Vec<usize> = shape
            .iter()
            .map(|n| {
                let i = rest % n;
                rest /= n;
                i
            })
            .collect();
        index.iter().zip(shape).fold(0, |at, (i, n)| at * n + i)
    };
    (0..shape.iter().product()).map(place).collect()
}

/// Reads an NPZ file: the array asked for, its only one, or all of one axis as columns.
pub(super) fn read_npz(path: &Path, wanted: Option<&str>) -> Result<Table, Error> {
    let file = File::open(path).map_err(|e| Error::file(path, "read", e))?;
    let damaged = |e: zip::result::ZipError| Error::content(path, format!("is damaged or not an NPZ file ({e})"));
    let mut archive = zip::ZipArchive::new(BufReader::new(file)).map_err(damaged)?;
    let mut meter = Meter::new();
    let names: Vec<String> =
        archive.file_names().filter_map(|n| Some(n.ok()?.strip_suffix(".npy")?.to_string())).collect();
    if names.is_empty() {
        let what = "is a zip file without NumPy arrays; if it is a spreadsheet (Excel), export it as CSV";
        return Err(Error::content(path, what));
    }
    let mut load = |name: &str| {
        let entry = archive.by_name(&format!("{name}.npy")).map_err(damaged)?;
        read(&mut Bounded::new(BufReader::new(entry)), name, &mut meter).map_err(|why| why.of(path))
    };
    let list = || names.join(", ");
    let columns = match wanted {
        Some(name) if names.iter().any(|n| n == name) => load(name)?,
        Some(name) => {
            return Err(Error::content(path, format!("holds no array `{name}`: it holds {}", list())));
        }
        None if names.len() == 1 => load(&names[0])?,
        None => {
            let mut columns: Vec<Column> = vec![];
            for name in names.iter().take(MOST_COLUMNS) {
                let array = load(name)?;
                let rows = columns.first().or(array.first()).map(|c| c.values.len());
                if array.len() != 1 || array.first().map(|c| c.values.len()) != rows {
                    let what = format!("holds several arrays; choose one by name: {}", list());
                    return Err(Error::content(path, what));
                }
                columns.extend(array);
            }
            columns
        }
    };
    Ok(plain(path, columns))
}
