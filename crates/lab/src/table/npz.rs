//! NPZ files as what they are: named arrays of NumPy in a zip.
//!
//! **Conventions.** Arrays are row-major; numbers are read as f64 and written so. **Checked by** tests/lab/statistics.rs.

use super::npy::{self, Trouble};
use super::write::npy_header;
use minvel::limits::{Bounded, TooLarge};
use minvel::{Error, file};
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Write};
use std::path::Path;
use zip::result::ZipError;

/// Numbers along some axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Lengths of the axes.
    pub shape: Vec<usize>,
    /// The numbers, row-major.
    pub values: Vec<f64>,
}

/// A file whose arrays are read one by one.
pub struct Npz<'a> {
    path: &'a Path,
    archive: zip::ZipArchive<BufReader<File>>,
}

impl<'a> Npz<'a> {
    /// Opens a file.
    pub fn open(path: &'a Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|e| Error::file(path, "read", e))?;
        let damaged = |e: ZipError| Error::content(path, format!("is damaged or not an NPZ file ({e})"));
        Ok(Npz { path, archive: zip::ZipArchive::new(BufReader::new(file)).map_err(damaged)? })
    }

    /// The array of a name, if there is one.
    pub fn array(&mut self, name: &str) -> Result<Option<Array>, Error> {
        let entry = match self.archive.by_name(&format!("{name}.npy")) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(e) => return Err(Error::content(self.path, format!("is damaged ({e})"))),
        };
        read(&mut Bounded::new(BufReader::new(entry)), name).map(Some).map_err(|why| why.of(self.path))
    }
}

fn read(bytes: &mut dyn Read, name: &str) -> Result<Array, Trouble> {
    let header = npy::header(bytes)?;
    let count = header.shape.iter().try_fold(1usize, |product, n| product.checked_mul(*n));
    let total = count.and_then(|n| n.checked_mul(header.bytes));
    let total = total.ok_or_else(|| format!("`{name}` has the shape {:?}, which is too large", header.shape))?;
    let too_large = |why| format!("`{name}` of shape {:?} {why}", header.shape);
    TooLarge::check((total / header.bytes) as u64 * 8, 1).map_err(too_large)?;
    // memory grows with what is read, not with what the header promises
    let mut raw = vec![];
    bytes.take(total as u64).read_to_end(&mut raw)?;
    if raw.len() < total {
        return Err(format!("`{name}` is truncated: it has {} of {total} bytes", raw.len()).into());
    }
    let mut values: Vec<f64> = raw.chunks_exact(header.bytes).map(|raw| header.number(raw)).collect();
    if header.fortran
        && let [rows, columns] = header.shape[..]
    {
        values = (0..rows * columns).map(|i| values[i % columns * rows + i / columns]).collect();
    } else if header.fortran && header.shape.len() > 2 {
        return Err(format!("`{name}` has {} axes in Fortran order: save it in C order", header.shape.len()).into());
    }
    Ok(Array { shape: header.shape, values })
}

/// Writes named arrays, wholly or not at all.
pub fn write(path: &Path, arrays: &[(&str, Array)]) -> Result<(), Error> {
    let mut archive = zip::ZipWriter::new(Cursor::new(vec![]));
    let packed = (|| {
        for (name, Array { shape, values }) in arrays {
            assert!(shape.iter().product::<usize>() == values.len(), "npz: {} values for {shape:?}", values.len());
            archive.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default())?;
            archive.write_all(&npy_header(shape))?;
            archive.write_all(&values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())?;
        }
        archive.finish()
    })();
    let bytes = packed.map_err(|e: ZipError| Error::content(path, format!("cannot be written ({e})")))?.into_inner();
    file::write(path, &bytes)
}
