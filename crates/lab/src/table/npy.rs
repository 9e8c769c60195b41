//! Arrays of NumPy: NPY, and NPZ (a zip of them).
//!
//! **Source.** The format of `numpy.lib.format`, versions 1 to 3: the magic `\x93NUMPY`, two bytes of version, the length of
//! the header, the header as a Python dictionary, then the numbers.
//! **Conventions.** The first axis are rows; all further axes are columns, in C order. NPZ files hold one array, or one is
//! chosen by name, or all are of one axis and one length: then each is a column.
//! **Checked by** tests/lab/data_binary.rs, and by the fuzzer in `fuzz/`.

mod header;

use super::blocks::Want;
use super::columns::{Column, MOST_COLUMNS, Table, plain};
use super::input::{Input, skip};
use crate::bytes::{Counted, unreadable};
pub(super) use header::{Header, header};
use minvel::Error;
use minvel::limits::{Bounded, Meter, TooLarge};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

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
