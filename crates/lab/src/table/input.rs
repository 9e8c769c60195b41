//! Where the bytes of a table come from: a file, a file inside the program, or standard input.

use minvel::limits::TooLarge;
use minvel::{Error, Limits};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The name of standard input and output.
pub const STANDARD: &str = "-";

/// A file to read. Paths turn into it by themselves; [`locate`](crate::catalogue::locate) finds the one that a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file on disk.
    File(PathBuf),
    /// A file inside the program: text or NPY, also in gzip.
    Embedded {
        /// What [`locate`](crate::catalogue::locate) finds it by, as `earthquake/quakes_all.csv`.
        name: PathBuf,
        /// Its bytes.
        bytes: &'static [u8],
    },
    /// Standard input: text or NPY, also in gzip.
    Standard,
}

impl Input {
    /// Its path, or what stands for it in messages and reports.
    pub fn path(&self) -> &Path {
        match self {
            Input::File(path) => path,
            Input::Embedded { name, .. } => name,
            Input::Standard => Path::new(STANDARD),
        }
    }

    /// Its bytes from the beginning.
    pub(crate) fn open(&self) -> Result<Box<dyn BufRead>, Error> {
        match self {
            Input::File(path) => {
                let file = File::open(path).map_err(|e| Error::file(path, "read", e))?;
                match path.is_dir() {
                    true => Err(Error::content(path, "is a folder: give one of its files")),
                    false => Ok(Box::new(BufReader::with_capacity(1 << 16, file))),
                }
            }
            Input::Embedded { bytes, .. } => Ok(Box::new(*bytes)),
            Input::Standard => Ok(Box::new(standard_input()?)),
        }
    }

    /// Its path, for formats that are read from any place in a file.
    pub(super) fn on_disk(&self) -> Result<&Path, Error> {
        match self {
            Input::File(path) => Ok(path),
            Input::Embedded { name, .. } => {
                Err(Error::content(name, "has a format that can only be read from a file on disk"))
            }
            Input::Standard => {
                let what = "Parquet and NPZ cannot be read from standard input: give a file name";
                Err(Error::content(Path::new(STANDARD), what))
            }
        }
    }
}

/// All of standard input, kept, since it can be read only once.
fn standard_input() -> Result<&'static [u8], Error> {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(bytes) = BYTES.get() {
        return Ok(bytes);
    }
    let (name, mut bytes) = (Path::new(STANDARD), vec![]);
    let most = Limits::current().bytes.saturating_add(1);
    io::stdin().take(most).read_to_end(&mut bytes).map_err(|e| Error::file(name, "read", e))?;
    TooLarge::check(bytes.len() as u64, 1).map_err(|why| Error::content(name, why.to_string()))?;
    Ok(BYTES.get_or_init(|| bytes))
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
