//! What can go wrong with files, configuration and numbers; mistakes of the programmer panic instead.

use crate::train::Divergence;
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
    /// A training that left the finite numbers.
    Diverged(Divergence),
    /// A device that failed, or has no memory left; what was kept before is still good.
    Device(DeviceError),
    /// Chains of a sampler that left the finite numbers.
    Chains(crate::sampler::Divergence),
    /// The user asked to stop; everything finished is on disk.
    Interrupted,
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

    /// A file that could not be opened, read, written, ….
    pub fn file(path: &Path, action: &'static str, source: std::io::Error) -> Self {
        Error::File { path: path.to_path_buf(), action, source }
    }

    /// Whether other input would help: the arguments, settings or files are at fault.
    pub fn is_input(&self) -> bool {
        matches!(self, Error::Config(_) | Error::Content { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Config(what) => write!(f, "{what}"),
            Error::File { path, action, source } => write!(f, "cannot {action} {}: {source}", path.display()),
            Error::Content { path, what } => write!(f, "{}: {what}", path.display()),
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

impl From<crate::sampler::Divergence> for Error {
    fn from(divergence: crate::sampler::Divergence) -> Self {
        Error::Chains(divergence)
    }
}
