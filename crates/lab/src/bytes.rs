//! Bytes of files as they pass: unpacked, counted against the limits, and hashed.

use minvel::Error;
use minvel::limits::{Bounded, TooLarge};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// What gzip holds: no more of it than memory allows.
pub(crate) fn unpacked<R: BufRead>(bytes: R) -> impl BufRead {
    Bounded::new(unzipped(bytes))
}

/// What gzip holds, of any length: for those who do not keep it.
pub(crate) fn unzipped<R: BufRead>(bytes: R) -> impl BufRead {
    BufReader::with_capacity(1 << 16, flate2::bufread::MultiGzDecoder::new(bytes))
}

/// An error of reading: of the contents if a decoder complains, else of the file.
pub(crate) fn unreadable(path: &Path, error: io::Error) -> Error {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    if let Some(why) = error.get_ref().and_then(|inner| inner.downcast_ref::<TooLarge>()) {
        return Error::content(path, why.to_string());
    }
    match error.kind() {
        InvalidData | InvalidInput | UnexpectedEof => {
            Error::content(path, format!("is damaged or truncated ({error}): fetch or write it again"))
        }
        _ => Error::file(path, "read", error),
    }
}

/// A reader that counts what passes.
pub(crate) struct Counted<R> {
    pub inner: R,
    pub count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(out)?;
        self.count += count as u64;
        Ok(count)
    }
}

/// A reader that hashes what passes.
pub(crate) struct Hashing<R> {
    inner: R,
    hash: Sha256,
}

impl<R: BufRead> Hashing<R> {
    pub fn new(inner: R) -> Self {
        Hashing { inner, hash: Sha256::new() }
    }

    /// SHA-256 of what passed, in hexadecimal.
    pub fn finish(self) -> String {
        hexadecimal(&self.hash.finalize())
    }
}

impl<R: BufRead> Read for Hashing<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(out)?;
        self.hash.update(&out[..count]);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Hashing<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        // what is consumed was given by the last `fill_buf`, so this reads nothing anew
        if let Ok(buffer) = self.inner.fill_buf() {
            self.hash.update(&buffer[..count.min(buffer.len())]);
        }
        self.inner.consume(count);
    }
}

/// SHA-256 of a file, in hexadecimal.
pub fn sha256(path: &Path) -> Result<String, Error> {
    let file = File::open(path).map_err(|e| Error::file(path, "read", e))?;
    let mut bytes = Hashing::new(BufReader::with_capacity(1 << 16, file));
    io::copy(&mut bytes, &mut io::sink()).map_err(|e| Error::file(path, "read", e))?;
    Ok(bytes.finish())
}

/// Bytes as pairs of digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, b| {
        let _ = write!(text, "{b:02x}");
        text
    })
}
