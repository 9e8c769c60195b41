//! What can go wrong with files, configuration and numbers; mistakes of the programmer panic instead.

use crate::{ChainDivergence, Divergence};
use minvel_engine::DeviceError;
use std::fmt;
use std::path::{Path, PathBuf};

/// Trouble that is nobody's bug: it says where it happened and what to do.
#[derive(Debug)]
pub enum Error {
    /// A setting or argument that cannot be used.
    Config(String),
    /// A file that cannot be read or written.
    File {
        /// Which file.
        path: PathBuf,
        /// What was tried with it.
        action: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file whose contents are not what they should be.
    Content {
        /// Which file.
        path: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
    /// A file that can be read in several ways: a question.
    Ambiguous {
        /// Which file.
        path: PathBuf,
        /// What is not clear.
        what: String,
        /// The readings that fit.
        choices: Vec<Choice>,
    },
    /// A training that left the finite numbers.
    Diverged(Divergence),
    /// A device that failed, or has no memory left; what was kept before is still good.
    Device(DeviceError),
    /// Chains of a sampler that left the finite numbers.
    Chains(ChainDivergence),
    /// The user asked to stop; everything finished is on disk.
    Interrupted,
}

/// One of several readings of a file, as an option that chooses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The option, without dashes.
    pub option: &'static str,
    /// Its value; empty for a switch.
    pub value: String,
    /// What is chosen by it.
    pub meaning: String,
}

impl Choice {
    /// A reading.
    pub fn new(option: &'static str, value: impl Into<String>, meaning: impl Into<String>) -> Self {
        Choice { option, value: value.into(), meaning: meaning.into() }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let space = if self.value.is_empty() { "" } else { " " };
        write!(f, "--{}{space}{}", self.option, self.value)
    }
}

impl Error {
    /// A setting that cannot be used.
    pub fn config(what: impl Into<String>) -> Self {
        Error::Config(what.into())
    }

    /// A file that cannot be used as it is.
    pub fn content(path: &Path, what: impl Into<String>) -> Self {
        Error::Content { path: path.to_path_buf(), what: what.into() }
    }

    /// A file that can be read in several ways.
    pub fn ambiguous(path: &Path, what: impl Into<String>, choices: Vec<Choice>) -> Self {
        Error::Ambiguous { path: path.to_path_buf(), what: what.into(), choices }
    }

    /// A file that could not be opened, read, written, ….
    pub fn file(path: &Path, action: &'static str, source: std::io::Error) -> Self {
        Error::File { path: path.to_path_buf(), action, source }
    }

    /// Whether other input would help: the arguments, settings or files are at fault.
    pub fn is_input(&self) -> bool {
        matches!(self, Error::Config(_) | Error::Content { .. } | Error::Ambiguous { .. })
    }
}

/// A file's name in messages.
fn name(path: &Path) -> std::path::Display<'_> {
    let path = if path == Path::new("-") { Path::new("standard input") } else { path };
    path.display()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Config(what) => write!(f, "{what}"),
            Error::File { path, action, source } => write!(f, "cannot {action} {}: {source}", name(path)),
            Error::Content { path, what } => write!(f, "{}: {what}", name(path)),
            Error::Ambiguous { path, what, choices } => {
                let choices: Vec<String> = choices.iter().map(|c| format!("{c} ({})", c.meaning)).collect();
                write!(f, "{}: {what}: choose {}", name(path), choices.join(" or "))
            }
            Error::Diverged(divergence) => write!(f, "{divergence}"),
            Error::Device(why) => write!(f, "{why}"),
            Error::Chains(divergence) => write!(f, "{divergence}"),
            Error::Interrupted => write!(f, "interrupted"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::File { source, .. } => Some(source),
            Error::Device(why) => Some(why),
            _ => None,
        }
    }
}

impl From<Divergence> for Error {
    fn from(divergence: Divergence) -> Self {
        Error::Diverged(divergence)
    }
}

impl From<DeviceError> for Error {
    fn from(why: DeviceError) -> Self {
        Error::Device(why)
    }
}

impl From<ChainDivergence> for Error {
    fn from(divergence: ChainDivergence) -> Self {
        Error::Chains(divergence)
    }
}
