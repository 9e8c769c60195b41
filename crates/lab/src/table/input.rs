//! Where the bytes of a table come from: a file, a file inside the program, or standard input.

use crate::bytes::{Hashing, hexadecimal, unreadable};
use minvel::limits::TooLarge;
use minvel::{Error, Limits};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

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

    /// Its bytes from the beginning; standard input is kept, so that it can be opened again.
    pub(crate) fn open(&self) -> Result<Box<dyn BufRead + Send>, Error> {
        match self {
            Input::File(path) => Ok(Box::new(BufReader::with_capacity(1 << 16, open(path)?))),
            Input::Embedded { bytes, .. } => Ok(Box::new(*bytes)),
            Input::Standard => Ok(Box::new(standard_input()?)),
        }
    }

    /// Its bytes from the beginning, for those who read it once.
    pub(super) fn open_once(&self) -> Result<Box<dyn BufRead + Send>, Error> {
        match self {
            Input::Standard => Ok(Box::new(BufReader::with_capacity(1 << 16, io::stdin()))),
            _ => self.open(),
        }
    }

    /// Its bytes from one of them on.
    pub(super) fn open_at(&self, offset: u64) -> Result<Box<dyn BufRead + Send>, Error> {
        let failed = |e| unreadable(self.path(), e);
        if let Input::File(path) = self {
            let mut file = open(path)?;
            file.seek(SeekFrom::Start(offset)).map_err(failed)?;
            return Ok(Box::new(BufReader::with_capacity(1 << 16, file)));
        }
        let mut bytes = self.open()?;
        skip(&mut bytes, offset).map_err(failed)?;
        Ok(bytes)
    }

    /// Which file it is: its path, its length and when it was last written, and the hash of its beginning. `None` for what
    /// can be read only once.
    pub fn fingerprint(&self) -> Result<Option<Fingerprint>, Error> {
        let path = self.path();
        if *self == Input::Standard {
            return Ok(None);
        }
        let mut start = vec![];
        self.open()?.take(START).read_to_end(&mut start).map_err(|e| unreadable(path, e))?;
        let about = path.metadata().ok();
        let modified = about.as_ref().and_then(|about| about.modified().ok());
        let nanoseconds = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map(|age| age.as_nanos());
        Ok(Some(Fingerprint {
            path: path.canonicalize().unwrap_or_else(|_| path.to_path_buf()),
            bytes: about.map_or(0, |about| about.len()),
            modified: nanoseconds.map_or(String::new(), |time| time.to_string()),
            start: hexadecimal(&Sha256::digest(&start)),
        }))
    }

    /// SHA-256 of its bytes, in hexadecimal.
    pub(super) fn sha256(&self) -> Result<String, Error> {
        let mut bytes = Hashing::new(self.open()?);
        io::copy(&mut bytes, &mut io::sink()).map_err(|e| unreadable(self.path(), e))?;
        Ok(bytes.finish())
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

/// Bytes of a file that its [`Fingerprint`] looks at.
const START: u64 = 1 << 16;

/// What tells a file from another, and from what it was before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Its path from the root.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// When it was last written, in nanoseconds.
    pub modified: String,
    /// SHA-256 of its beginning.
    pub start: String,
}

fn open(path: &Path) -> Result<File, Error> {
    let file = File::open(path).map_err(|e| Error::file(path, "read", e))?;
    match path.is_dir() {
        true => Err(Error::content(path, "is a folder: give one of its files")),
        false => Ok(file),
    }
}

/// Goes on by so many bytes, which must be there.
pub(super) fn skip(bytes: &mut dyn Read, count: u64) -> io::Result<()> {
    match io::copy(&mut bytes.take(count), &mut io::sink())? {
        found if found < count => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
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
