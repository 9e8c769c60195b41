//! Records of a text file: lines, or several of them where a quoted field spans them.

use super::DELIMITERS;
use crate::bytes::unreadable;
use minvel::Error;
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// The longest record, so that a file of something else does not fill the memory.
const LONGEST: usize = 1 << 24;

/// A line, or the lines of a quoted field that spans several.
#[derive(Clone, Debug)]
pub struct Record {
    /// The line it begins on, from 1.
    pub line: usize,
    /// Its text without the end of the line.
    pub text: String,
    /// Where the next one begins.
    pub end: Place,
}

/// A place between two records.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// Lines before it.
    pub line: usize,
    /// Bytes before it, unpacked.
    pub offset: u64,
}

/// The records of a file one after another, without comments and blank lines.
pub struct Records {
    path: PathBuf,
    pub bytes: Box<dyn BufRead + Send>,
    /// Where the next one begins.
    pub at: Place,
    /// The last comment before the first record, without its mark.
    pub comment: Option<String>,
}

impl Records {
    pub fn new(path: &Path, bytes: Box<dyn BufRead + Send>) -> Self {
        Records { path: path.to_path_buf(), bytes, at: Place::default(), comment: None }
    }

    /// The next line with its end; empty at the end of the file.
    fn next_line(&mut self) -> Result<String, Error> {
        let mut raw = vec![];
        let mut limited = std::io::Read::take(&mut *self.bytes, LONGEST as u64 + 1);
        limited.read_until(b'\n', &mut raw).map_err(|e| unreadable(&self.path, e))?;
        self.at.line += usize::from(!raw.is_empty());
        self.at.offset += raw.len() as u64;
        let line = self.at.line;
        if raw.len() > LONGEST {
            let what = format!("line {line} is longer than {LONGEST} bytes: is this a table?");
            return Err(Error::content(&self.path, what));
        }
        if raw.contains(&0) {
            let what = format!(
                "line {line} contains zero bytes: this is neither text nor another supported format (gzip, Parquet, \
                 NPY, NPZ)"
            );
            return Err(Error::content(&self.path, what));
        }
        // what is not UTF-8 is taken for Latin-1, as spreadsheets of Western Europe write it
        let text = String::from_utf8(raw).unwrap_or_else(|e| e.as_bytes().iter().map(|b| char::from(*b)).collect());
        Ok(if line == 1 && text.starts_with('\u{feff}') {
            text.trim_start_matches('\u{feff}').to_string()
        } else {
            text
        })
    }

    /// The next record, if there is one.
    pub fn next(&mut self) -> Result<Option<Record>, Error> {
        loop {
            let at = self.at.line;
            let mut text = self.next_line()?;
            if self.at.line == at {
                return Ok(None);
            }
            let start = text.trim_start();
            if let Some(mark) = ["#", "%", "//"].into_iter().find(|mark| start.starts_with(mark)) {
                self.comment = Some(start[mark.len()..].trim().to_string());
                continue;
            }
            if start.is_empty() {
                continue;
            }
            let line = self.at.line;
            let mut quotes = Quotes { open: false, fresh: true };
            if text.contains('"') {
                quotes.pass(&text);
            }
            while quotes.open {
                let more = self.next_line()?;
                quotes.pass(&more);
                if more.is_empty() || text.len() + more.len() > LONGEST {
                    let what = format!("line {line} opens a quotation mark that is never closed: close or remove it");
                    return Err(Error::content(&self.path, what));
                }
                text.push_str(&more);
            }
            let end = text.trim_end_matches(['\n', '\r']).len();
            text.truncate(end);
            return Ok(Some(Record { line, text, end: self.at }));
        }
    }
}

/// Whether the text read so far ends inside a quoted field. Only a mark at the start of a field opens one.
struct Quotes {
    open: bool,
    fresh: bool,
}

impl Quotes {
    /// Reads on.
    fn pass(&mut self, text: &str) {
        let mut letters = text.chars().peekable();
        while let Some(c) = letters.next() {
            match (c, self.open) {
                // `""` inside a field is a mark of the text
                ('"', true) if letters.peek() == Some(&'"') => drop(letters.next()),
                ('"', true) => (self.open, self.fresh) = (false, false),
                ('"', false) if self.fresh => self.open = true,
                (_, true) => {}
                (_, false) => self.fresh = DELIMITERS.contains(&c) || (self.fresh && c.is_whitespace()),
            }
        }
    }
}
