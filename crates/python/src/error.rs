//! Errors of the library as those of Python: ValueError where other input would help, OSError for files, else RuntimeError.

use minvel::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};

/// An error as Python's; options are keywords there.
pub fn raised(error: Error) -> PyErr {
    match &error {
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::File { .. } => PyOSError::new_err(error.to_string()),
        Error::Ambiguous { path, what, choices } => {
            let choice = |c: &minvel::Choice| {
                let (name, value) = c.option.split_once('=').unwrap_or((c.option, &c.value));
                let value = match value {
                    "true" => "True".to_string(),
                    "false" => "False".to_string(),
                    "P" => "P".to_string(), // any number
                    text => format!("\"{text}\""),
                };
                format!("{name}={value} ({})", c.meaning)
            };
            let choices: Vec<String> = choices.iter().map(choice).collect();
            let what = Error::content(path, format!("{what}: choose {}", choices.join(" or ")));
            PyValueError::new_err(keywords(&what.to_string()))
        }
        error if error.is_input() => PyValueError::new_err(keywords(&error.to_string())),
        error => PyRuntimeError::new_err(error.to_string()),
    }
}

/// A setting that cannot be used.
pub fn refused(why: impl ToString) -> PyErr {
    PyValueError::new_err(keywords(&why.to_string()))
}

/// Options of the command line, `--step-size`, as keywords, `step_size`.
fn keywords(text: &str) -> String {
    let mut parts = text.split("--");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(part.len());
        out += &part[..end].replace('-', "_");
        out += &part[end..];
    }
    out
}
