//! Files that are there wholly or not at all, and that are read no further than memory allows.

mod partial;

pub use partial::Partial;

use crate::Error;
use crate::limits::TooLarge;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// Writes a file so that a kill at any moment leaves the old contents or the new ones, never a part.
///
/// The bytes go to a [`Partial`] file beside it, to the disk, and only then take the name.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_parts(path, &[bytes])
}

/// As [`write()`], of bytes that lie in several places.
pub fn write_parts(path: &Path, parts: &[&[u8]]) -> Result<(), Error> {
    let mut partial = Partial::create(path)?;
    let place = partial.place().to_path_buf();
    unfinished().insert(place.clone());
    let written = parts.iter().try_for_each(|bytes| partial.write_all(bytes));
    let outcome = written.map_err(|e| Error::file(path, "write", e)).and_then(|()| partial.finish());
    unfinished().remove(&place);
    outcome
}

/// [`Partial`] files of [`write()`] that are being written.
fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    UNFINISHED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Removes what is being written: for a program that ends at once.
pub fn abandon() {
    unfinished().iter().for_each(|partial| {
        let _ = fs::remove_file(partial);
    });
}

/// Checks that a file has a folder to lie in, before work that ends in it.
pub fn check_place(path: &Path) -> Result<(), Error> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        let what = format!("there is no folder {}: create it, or choose another path", folder.display());
        return Err(Error::content(path, what));
    }
    match path.is_dir() {
        true => Err(Error::content(path, "is a folder; expected a file")),
        false => Ok(()),
    }
}

/// Reads a file of at most as many bytes as the [limit](crate::Limits) allows.
pub fn read(path: &Path) -> Result<Vec<u8>, Error> {
    there(path, read_share(path, 1)?)
}

/// As [`read`], of a file that may not be there.
pub fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    read_share(path, 1)
}

/// Reads a file as text, at most as long as the [limit](crate::Limits::text) of texts allows.
pub fn read_text(path: &Path) -> Result<String, Error> {
    there(path, read_text_if_there(path)?)
}

/// As [`read_text`], of a file that may not be there.
pub fn read_text_if_there(path: &Path) -> Result<Option<String>, Error> {
    let wrong = |_| Error::content(path, "is not text in UTF-8");
    read_share(path, TEXT)?.map(String::from_utf8).transpose().map_err(wrong)
}

/// Texts may take one of so many parts of the limit: see [`crate::limits`].
pub const TEXT: u64 = 64;

fn there<T>(path: &Path, found: Option<T>) -> Result<T, Error> {
    found.ok_or_else(|| Error::file(path, "read", ErrorKind::NotFound.into()))
}

/// The bytes of a file, if there is one: no more than its share of the limit, one of so many.
fn read_share(path: &Path, share: u64) -> Result<Option<Vec<u8>>, Error> {
    let failed = |e| Error::file(path, "read", e);
    let file = match File::open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let too_large = |why: TooLarge| Error::content(path, why.to_string());
    let length = file.metadata().map_err(failed)?.len();
    TooLarge::check(length, share).map_err(too_large)?;
    // what is no plain file announces no length, and a plain one may grow meanwhile
    let most = crate::Limits::current().bytes / share;
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    TooLarge::check(bytes.len() as u64, share).map_err(too_large)?;
    Ok(Some(bytes))
}

/// Creates a folder and those above it.
pub fn create_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(|e| Error::file(path, "create the folder", e))
}

/// Removes a file that may not be there.
pub fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::file(path, "remove", e)),
        _ => Ok(()),
    }
}
