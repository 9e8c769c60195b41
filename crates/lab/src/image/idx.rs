//! The idx format, in which MNIST and its relatives are published: arrays of bytes behind a header.
//!
//! **Statement.** Bytes 0, 0, 8 (unsigned bytes), the number of axes; the length of each as four bytes, highest first; then
//! the entries, row-major. The whole may be in gzip, which the first bytes tell.
//! **Source.** LeCun, Cortes and Burges, the page of the MNIST database. **Checked by** tests/lab/data_images.rs.

use super::images::Images;
use crate::bytes::{Hashing, unpacked, unreadable};
use minvel::Error;
use minvel::limits::{Bounded, TooLarge};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// An array of bytes.
struct Array {
    dims: Vec<usize>,
    entries: Vec<u8>,
    /// SHA-256 of the file.
    sha256: String,
}

/// Grey images: an array `[count, height, width]`.
pub fn images(path: &Path) -> Result<Images, Error> {
    of(path, array(path, 3, "images", None)?)
}

/// The same; of a file of another format the error says this.
pub fn images_or(path: &Path, other: &str) -> Result<Images, Error> {
    of(path, array(path, 3, "images", Some(other))?)
}

fn of(path: &Path, Array { dims, entries, sha256 }: Array) -> Result<Images, Error> {
    let [count, height, width] = dims[..] else { unreachable!("three were asked for") };
    if height * width == 0 {
        return Err(Error::content(path, format!("has images of {height} × {width} pixels")));
    }
    let name = path.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    Ok(Images { count, height, width, channels: 1, pixels: entries, name, sha256 })
}

/// Labels: an array `[count]`.
pub fn labels(path: &Path) -> Result<Vec<u8>, Error> {
    array(path, 1, "labels", None).map(|array| array.entries)
}

/// An array of so many axes; `what` it should be is for the error, and `other` is said of another format.
fn array(path: &Path, axes: usize, what: &str, other: Option<&str>) -> Result<Array, Error> {
    let file = File::open(path).map_err(|e| Error::file(path, "read", e))?;
    let mut bytes = Hashing::new(Bounded::new(BufReader::with_capacity(1 << 16, file)));
    let packed = bytes.fill_buf().map_err(|e| unreadable(path, e))?.starts_with(&[0x1f, 0x8b]);
    let (dims, entries) = match packed {
        true => entries(path, &mut unpacked(&mut bytes), axes, what, other)?,
        false => entries(path, &mut bytes, axes, what, other)?,
    };
    io::copy(&mut bytes, &mut io::sink()).map_err(|e| unreadable(path, e))?;
    Ok(Array { dims, entries, sha256: bytes.finish() })
}

/// Lengths of the axes and entries: memory is taken only for what the header announces and the limit allows.
fn entries(
    path: &Path,
    bytes: &mut dyn Read,
    axes: usize,
    what: &str,
    other: Option<&str>,
) -> Result<(Vec<usize>, Vec<u8>), Error> {
    let wrong = |why: String| Error::content(path, why);
    let mut start = Vec::with_capacity(4 + 4 * axes);
    bytes.take(4 + 4 * axes as u64).read_to_end(&mut start).map_err(|e| unreadable(path, e))?;
    let (magic, lengths) =
        start.split_first_chunk::<4>().ok_or_else(|| wrong("is too short for an idx file".into()))?;
    match magic {
        [0, 0, 8, n] if *n as usize == axes => (),
        [0, 0, 8, n] => return Err(wrong(format!("is an idx file with {n} axes; {what} have {axes}"))),
        [0, 0, 9 | 11..=14, _] => {
            return Err(wrong(format!("is an idx file whose numbers are not bytes; expected {what}")));
        }
        _ => {
            let plain =
                || format!("is not an idx file: it begins with {magic:02x?}, not with [00, 00, 08, {axes:02x}]");
            return Err(wrong(other.map_or_else(plain, str::to_string)));
        }
    }
    if lengths.len() < 4 * axes {
        return Err(wrong("is truncated in its header: fetch it again".into()));
    }
    let dims: Vec<usize> = lengths.as_chunks().0.iter().map(|b| u32::from_be_bytes(*b) as usize).collect();
    let shape = dims.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ");
    let expected = dims.iter().fold(1u64, |product, n| product.saturating_mul(*n as u64));
    TooLarge::check(expected, 1).map_err(|why| wrong(format!("declares {shape} bytes and {why}")))?;
    let mut entries = vec![];
    // one byte more than announced is enough to see that the header is wrong
    bytes.take(expected + 1).read_to_end(&mut entries).map_err(|e| unreadable(path, e))?;
    let found = entries.len() as u64;
    if found > expected {
        return Err(wrong(format!("is too long: its header declares {shape} bytes, and more follow")));
    }
    if found < expected {
        return Err(wrong(format!("is truncated: its header declares {shape} bytes, but {found} follow")));
    }
    Ok((dims, entries))
}
