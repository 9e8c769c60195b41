//! Where tables go: a file, or standard output.

use crate::Failure;
use minvel::{Error, file};
use minvel_lab::table::{STANDARD, check_name};
use std::path::{Path, PathBuf};

/// A file to write, or `-` for standard output.
#[derive(clap::Args)]
pub struct Target {
    /// Output file: .csv, .tsv (also .gz), .parquet or .npy; - for CSV on standard output.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

impl Target {
    fn is_standard(&self) -> bool {
        self.out == Path::new(STANDARD)
    }

    /// Checks before any work that the table can be written.
    pub fn check(&self, json: bool) -> Result<(), Error> {
        check_name(&self.out)?;
        match json && self.is_standard() {
            true => Err(Error::config("--json and --out - both write to standard output; use only one of them")),
            false => Ok(()),
        }
    }

    /// Writes the bytes of a table.
    pub fn put(&self, bytes: &[u8]) -> Result<(), Failure> {
        if self.is_standard() {
            crate::out::put_bytes(bytes);
            return Ok(());
        }
        file::write(&self.out, bytes).map_err(Failure::Work)
    }

    /// Says what was done: beside the table if that is printed itself.
    pub fn say(&self, text: &str) {
        match self.is_standard() {
            true => note!("{text}"),
            false => say!("{text}\nWritten: {}", self.out.display()),
        }
    }
}
