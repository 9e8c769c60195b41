//! Writing tables of any length, a block after another, so that work that was killed goes on and ends with the same bytes.
//!
//! **Statement.** Bytes go to a [`Partial`] file. A journal beside it says how many of them belong to whole blocks, and what the
//! writer needs to go on from there; bytes are on the disk before the journal says so. To resume is to cut the file to
//! that length and to make the next block.
//! **Conventions.** The journal of `NAME` is a partial file of `NAME.journal` that never takes its name: a line of JSON that says
//! what is made ([`Head`]), then lines of where it stands ([`Entry`]); a last line without end was being written when the program was
//! killed, and is ignored. **Checked by** tests/lab/stream.rs, crates/cli/tests/interruptions/streams.rs.

use super::columns::{CellKind, Column, Table};
use super::input::STANDARD;
use super::write::{Contents, Encoded, Encoder};
use minvel::Error;
use minvel::file::Partial;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{self, BufWriter, Read, Stdout, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is made.
#[derive(Serialize, Deserialize)]
struct Head {
    /// Where its bytes lie.
    partial: PathBuf,
    /// All that its bytes depend on.
    purpose: Value,
    columns: Vec<(String, CellKind)>,
}

/// Where it stands.
#[derive(Serialize, Deserialize)]
struct Entry<S> {
    done: Encoded,
    /// Of the blocks since the last entry.
    contents: Vec<Contents>,
    state: S,
}

/// A table that is being written: to a file, or to standard output.
pub struct Output {
    path: PathBuf,
    encoder: Encoder,
    sink: Sink,
    /// Of the blocks that the journal does not know of.
    contents: Vec<Contents>,
    /// When the journal was last written, and how often it is.
    told: Instant,
    every: Duration,
}

enum Sink {
    Standard(BufWriter<Stdout>),
    File { partial: Partial, journal: Option<Partial> },
}

impl Output {
    /// A new one of these columns. With a purpose it can be resumed: by the same purpose alone.
    pub fn create(path: &Path, columns: Vec<(String, CellKind)>, purpose: Option<&Value>) -> Result<Self, Error> {
        let sink = match path == Path::new(STANDARD) {
            true => Sink::Standard(BufWriter::new(io::stdout())),
            false => {
                let partial = Partial::create(path)?;
                let mut journal = purpose.map(|_| Partial::create(&journal_of(path))).transpose()?;
                if let (Some(journal), Some(purpose)) = (&mut journal, purpose) {
                    let (partial, purpose) = (partial.place().to_path_buf(), purpose.clone());
                    put(journal, path, &Head { partial, purpose, columns: columns.clone() })?;
                }
                Sink::File { partial, journal }
            }
        };
        Ok(Self::of(path, Encoder::new(path, columns)?, sink))
    }

    fn of(path: &Path, encoder: Encoder, sink: Sink) -> Self {
        let (path, told) = (path.to_path_buf(), Instant::now());
        Output { path, encoder, sink, contents: vec![], told, every: SAVE_EVERY }
    }

    /// The one that an interruption left behind, and the state it was in; `None` if there is none. An error if it was made
    /// for another purpose.
    pub fn resume<S: DeserializeOwned>(path: &Path, purpose: &Value) -> Result<Option<(Self, S)>, Error> {
        if path == Path::new(STANDARD) {
            return Ok(None);
        }
        let mut journal = Partial::resume(&journal_of(path))?;
        let Some(Kept { head, last, contents, length }) = Kept::<S>::read(&mut journal, path)? else { return Ok(None) };
        if head.purpose != *purpose {
            journal.keep()?;
            let what = format!(
                "was begun with other {}: repeat that command, or start anew without --resume",
                differing(&head.purpose, purpose)
            );
            return Err(Error::content(path, what));
        }
        let Some(mut partial) = Partial::resume_at(path, &head.partial) else { return Ok(None) };
        if partial.len()? < last.done.bytes {
            return Ok(None);
        }
        journal.truncate(length)?;
        partial.truncate(last.done.bytes)?;
        let encoder = Encoder::resumed(path, head.columns, &last.done, contents)?;
        let sink = Sink::File { partial, journal: Some(journal) };
        Ok(Some((Self::of(path, encoder, sink), last.state)))
    }

    /// Removes what interruptions left behind for this name.
    pub fn forget(path: &Path) {
        if path != Path::new(STANDARD) {
            Partial::remove_leftovers(&journal_of(path));
            Partial::remove_leftovers(path);
        }
    }

    /// The same with another time between two entries of the journal.
    pub fn saved_every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// Writes a block of a table with further columns, and where it stands then.
    pub fn write(&mut self, table: &Table, more: &[Column], state: &impl Serialize) -> Result<(), Error> {
        let bytes = self.encoder.block(table, more)?;
        self.contents.extend(self.encoder.contents().cloned());
        self.put(&bytes)?;
        if self.told.elapsed() >= self.every { self.save(state) } else { Ok(()) }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = match &mut self.sink {
            Sink::Standard(out) => out.write_all(bytes).and_then(|()| out.flush()),
            Sink::File { partial, .. } => partial.write_all(bytes),
        };
        written.map_err(|e| Error::file(&self.path, "write", e))
    }

    fn save(&mut self, state: &impl Serialize) -> Result<(), Error> {
        if let Sink::File { partial, journal: Some(journal) } = &mut self.sink {
            partial.sync()?;
            let contents = std::mem::take(&mut self.contents);
            put(journal, &self.path, &Entry { done: self.encoder.done(), contents, state })?;
            journal.sync()?;
        }
        self.told = Instant::now();
        Ok(())
    }

    /// Ends the file and gives it its name.
    pub fn finish(mut self) -> Result<(), Error> {
        let end = self.encoder.end()?;
        self.put(&end)?;
        match self.sink {
            Sink::Standard(mut out) => out.flush().map_err(|e| Error::file(&self.path, "write", e)),
            Sink::File { mut partial, journal } => {
                if let Some(start) = self.encoder.start() {
                    partial.rewrite_start(&start)?;
                }
                partial.finish()?;
                drop(journal);
                Ok(())
            }
        }
    }

    /// Leaves it there to be resumed, if it can be; else nothing is left.
    pub fn keep(mut self, state: &impl Serialize) -> Result<(), Error> {
        self.save(state)?;
        match self.sink {
            Sink::File { partial, journal: Some(journal) } => partial.keep().and_then(|()| journal.keep()),
            _ => Ok(()),
        }
    }
}

/// Time between two entries of the journal.
const SAVE_EVERY: Duration = Duration::from_secs(2);

/// What a journal says.
struct Kept<S> {
    head: Head,
    last: Entry<S>,
    /// Of all blocks.
    contents: Vec<Contents>,
    /// Bytes of the journal up to the last entry.
    length: u64,
}

impl<S: DeserializeOwned> Kept<S> {
    /// `None` if it says nothing, or nothing that can be read.
    fn read(journal: &mut Partial, path: &Path) -> Result<Option<Self>, Error> {
        let mut text = String::new();
        if journal.rewind()?.read_to_string(&mut text).is_err() {
            return Err(Error::content(path, "has a damaged journal: start anew without --resume"));
        }
        let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let Some(head) = lines.next().and_then(|line| serde_json::from_str(line).ok()) else { return Ok(None) };
        let mut length = text.find('\n').map_or(0, |at| at as u64 + 1);
        let (mut last, mut contents) = (None, vec![]);
        for line in lines {
            let Ok(mut entry) = serde_json::from_str::<Entry<S>>(line) else { break };
            contents.append(&mut entry.contents);
            length += line.len() as u64;
            last = Some(entry);
        }
        Ok(last.map(|last| Kept { head, last, contents, length }))
    }
}

/// Where the journal of a file would lie.
fn journal_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".journal");
    path.with_file_name(name)
}

/// Adds a line to a journal.
fn put(journal: &mut Partial, path: &Path, line: &impl Serialize) -> Result<(), Error> {
    let mut text = serde_json::to_string(line).expect("what is kept is plain data");
    text.push('\n');
    journal.write_all(text.as_bytes()).map_err(|e| Error::file(path, "write", e))
}

/// The keys in which two purposes differ.
fn differing(one: &Value, other: &Value) -> String {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return "settings".to_string() };
    let keys: Vec<&str> =
        one.keys().chain(other.keys().filter(|key| !one.contains_key(*key))).map(String::as_str).collect();
    let differ = keys.into_iter().filter(|key| one.get(*key) != other.get(*key));
    differ.collect::<Vec<_>>().join(", ")
}
