//! Where the bytes of a table come from: a file, or a file inside the program.

use crate::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// A file to read. Paths turn into it by themselves; [`super::locate`] finds the one that a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file on disk.
    File(PathBuf),
    /// A file inside the program: text or NPY, also in gzip.
    Embedded {
        /// What [`super::locate`] finds it by, as `earthquake/quakes_all.csv`.
        name: PathBuf,
        /// Its bytes.
        bytes: &'static [u8],
    },
}

impl Input {
    /// Its path, or what stands for it in messages and reports.
    pub fn path(&self) -> &Path {
        match self {
            Input::File(path) => path,
            Input::Embedded { name, .. } => name,
        }
    }

    /// Its bytes from the beginning.
    pub(super) fn open(&self) -> Result<Box<dyn BufRead>, Error> {
        match self {
            Input::File(path) => {
                let file = File::open(path).map_err(|e| Error::file(path, "read", e))?;
                match path.is_dir() {
                    true => Err(Error::content(path, "is a folder: name one of the files in it")),
                    false => Ok(Box::new(BufReader::with_capacity(1 << 16, file))),
                }
            }
            Input::Embedded { bytes, .. } => Ok(Box::new(*bytes)),
        }
    }

    /// Its path, for formats that are read from any place in a file.
    pub(super) fn on_disk(&self) -> Result<&Path, Error> {
        match self {
            Input::File(path) => Ok(path),
            Input::Embedded { name, .. } => Err(Error::content(name, "is of a format that is read from disk only")),
        }
    }
}

impl From<&PathBuf> for Input {
    fn from(path: &PathBuf) -> Self {
        Input::File(path.clone())
    }
}

impl From<&Path> for Input {
    fn from(path: &Path) -> Self {
        Input::File(path.to_path_buf())
    }
}

impl From<&Input> for Input {
    fn from(input: &Input) -> Self {
        input.clone()
    }
}
