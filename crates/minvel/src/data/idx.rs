//! The idx format, in which MNIST and its relatives are published: arrays of bytes behind a header.
//!
//! **Statement.** Bytes 0, 0, 8 (unsigned bytes), the number of axes; the length of each as four bytes, highest first; then
//! the entries, row-major. The whole may be in gzip, which the first bytes tell.
//! **Source.** LeCun, Cortes and Burges, the page of the MNIST database. **Checked by** tests/data_images.rs.

use super::images::Images;
use super::table::{hexadecimal, unreadable};
use crate::Error;
use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};
use std::io::Read;
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
    let Array { dims, entries, sha256 } = array(path, 3, "images")?;
    let [count, height, width] = dims[..] else { unreachable!("three were asked for") };
    if height * width == 0 {
        return Err(Error::content(path, format!("has images of {height} × {width} pixels")));
    }
    let name = path.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    Ok(Images { count, height, width, channels: 1, pixels: entries, name, sha256 })
}

/// Labels: an array `[count]`.
pub fn labels(path: &Path) -> Result<Vec<u8>, Error> {
    array(path, 1, "labels").map(|array| array.entries)
}

/// An array of so many axes; `what` it should be is for the error.
fn array(path: &Path, axes: usize, what: &str) -> Result<Array, Error> {
    let file = std::fs::read(path).map_err(|e| Error::file(path, "read", e))?;
    let mut bytes = Vec::new();
    let entries: &[u8] = if file.starts_with(&[0x1f, 0x8b]) {
        MultiGzDecoder::new(&file[..]).read_to_end(&mut bytes).map_err(|e| unreadable(path, e))?;
        &bytes
    } else {
        &file
    };
    let wrong = |why: String| Error::content(path, why);
    let (magic, rest) = entries.split_first_chunk::<4>().ok_or_else(|| wrong("is too short for an idx file".into()))?;
    match magic {
        [0, 0, 8, n] if *n as usize == axes => (),
        [0, 0, 8, n] => return Err(wrong(format!("is an idx file of {n} axes, where {what} have {axes}"))),
        [0, 0, 9 | 11..=14, _] => {
            return Err(wrong(format!("is an idx file of numbers that are no bytes: not {what}")));
        }
        _ => {
            return Err(wrong(format!(
                "is no idx file: it begins with {magic:02x?}, not with [00, 00, 08, {axes:02x}]"
            )));
        }
    }
    let cut = || wrong("is cut off in its header: fetch it again".into());
    let (lengths, entries) = rest.split_at_checked(4 * axes).ok_or_else(cut)?;
    let dims: Vec<usize> = lengths.as_chunks().0.iter().map(|b| u32::from_be_bytes(*b) as usize).collect();
    let expected = dims.iter().try_fold(1usize, |product, n| product.checked_mul(*n));
    if expected != Some(entries.len()) {
        let shape = dims.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ");
        let which = if expected.is_none_or(|n| n > entries.len()) { "is cut off" } else { "is too long" };
        return Err(wrong(format!("{which}: its header says {shape} bytes, and {} follow", entries.len())));
    }
    Ok(Array { dims, entries: entries.to_vec(), sha256: hexadecimal(&Sha256::digest(&file)) })
}
