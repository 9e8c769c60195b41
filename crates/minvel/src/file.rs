//! Files that are there wholly or not at all.

use crate::Error;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// Writes a file so that a kill at any moment leaves the old contents or the new ones, never a part.
///
/// The bytes go to a neighbour `NAME.partial`, to the disk, and only then take the name.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_parts(path, &[bytes])
}

/// As [`write()`], of bytes that lie in several places.
pub fn write_parts(path: &Path, parts: &[&[u8]]) -> Result<(), Error> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = Path::new(&partial);
    unfinished().insert(partial.to_path_buf());
    let written = (|| {
        let mut file = fs::File::create(partial)?;
        parts.iter().try_for_each(|bytes| file.write_all(bytes))?;
        file.sync_all()
    })();
    let outcome = written.and_then(|()| fs::rename(partial, path)).map_err(|e| {
        let _ = fs::remove_file(partial); // a full disk is not filled further
        Error::file(path, "write", e)
    });
    unfinished().remove(partial);
    outcome
}

/// Neighbours `NAME.partial` that are being written.
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
        let what = format!("there is no folder {}: make it, or write elsewhere", folder.display());
        return Err(Error::content(path, what));
    }
    match path.is_dir() {
        true => Err(Error::content(path, "is a folder: give the name of a file in it")),
        false => Ok(()),
    }
}

/// Reads a file that may not be there.
pub fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::file(path, "read", e)),
    }
}

/// Reads a file as text.
pub fn read_text(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|e| Error::file(path, "read", e))
}

/// Creates a folder and those above it.
pub fn create_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(|e| Error::file(path, "create the folder", e))
}

/// Removes a file that may not be there.
pub fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::file(path, "remove", e)),
        _ => Ok(()),
    }
}
