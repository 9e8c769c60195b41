//! Where tables go: a file, or standard output.

use crate::Failure;
use minvel::{Error, file};
use minvel_lab::stream::Broken;
use minvel_lab::table::{STANDARD, check_name};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file to write, or `-` for standard output.
#[derive(clap::Args)]
pub struct Target {
    /// Output file: .csv, .tsv (also .gz), .parquet or .npy; - for CSV on standard output.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

impl Target {
    /// Whether it is standard output.
    pub fn is_standard(&self) -> bool {
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

/// How a stream goes on after an interruption.
#[derive(clap::Args)]
pub struct Resumption {
    /// Continue where an interrupted run of the same command left off; without one, start from the beginning.
    #[arg(long)]
    pub resume: bool,
    /// Seconds between two entries of the journal.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, hide = true)]
    save_every: f64,
}

impl Resumption {
    /// Time between two entries of the journal.
    pub fn save_every(&self) -> Duration {
        Duration::try_from_secs_f64(self.save_every).unwrap_or(Duration::MAX)
    }

    /// Says how the user resumes the work, in case it is interrupted from now on.
    pub fn advise(possible: bool) {
        if possible {
            crate::stop::advise("interrupted; resume with the same command and --resume");
        }
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        match broken {
            // whoever listened has heard enough, as in crate::out
            Broken::Work(Error::File { path, source, .. })
                if path == Path::new(STANDARD) && source.kind() == ErrorKind::BrokenPipe =>
            {
                std::process::exit(0)
            }
            Broken::Input(why) => Failure::of_input(why),
            Broken::Work(why) => Failure::of_work(why),
        }
    }
}
