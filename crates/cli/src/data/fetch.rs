//! `minvel data fetch`: from public addresses or a mirror to files that are there wholly and checked, or not at all.
//!
//! Bytes go to a [`Partial`] file, which a later attempt continues; only one whose checksum is right takes the name.

use super::download::{Client, Rest, Source, timed_out};
use crate::Failure;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use minvel::file::Partial;
use minvel::{Error, file};
use minvel_lab::catalogue;
use minvel_lab::catalogue::archive;
use minvel_lab::catalogue::{Archive, Form, Known, KnownFile, sha256};
use minvel_lab::fid::Inception;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a connection that breaks off is resumed before the next address is tried.
const ATTEMPTS: usize = 5;

#[derive(Args)]
pub struct Fetch {
    /// Names of data sets (see `minvel data list`), or `all`.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Mirror to use instead: address or folder that contains data/ and weights/.
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Folder in which data/ and weights/ are written [default: the user's cache folder].
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Time without data after which a server is given up, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    timeout: f64,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl Fetch {
    /// Fetches every set that can be had, and fails if one could not.
    pub fn run(&self) -> Result<(), Failure> {
        let (sets, work) = self.prepare().map_err(Failure::Input)?;
        let (mut outcomes, mut failures) = (vec![], vec![]);
        for known in sets {
            match work.fetch(known) {
                Ok(outcome) => {
                    if !self.json {
                        say!("{}", outcome["path"].as_str().unwrap_or_default());
                    }
                    outcomes.push(outcome);
                }
                Err(error) => failures.push(error.to_string()),
            }
        }
        if self.json && (failures.is_empty() || !outcomes.is_empty()) {
            match (outcomes.as_slice(), self.names.as_slice()) {
                ([only], [name]) if name != "all" => say!("{only}"),
                _ => say!("{}", json!({ "sets": outcomes })),
            }
        }
        match failures.is_empty() {
            true => Ok(()),
            false => Err(Failure::Work(Error::config(failures.join("\n")))),
        }
    }

    /// Checks everything before anything is written.
    fn prepare(&self) -> Result<(Vec<&'static Known>, Work), Error> {
        let mut sets: Vec<&Known> = vec![];
        for name in &self.names {
            match name.as_str() {
                "all" => sets.extend(catalogue::list()?),
                name => sets.push(catalogue::find(name)?),
            }
        }
        let no_cache = || Error::config("no cache folder, because HOME is not set; choose a folder with --to");
        let root = self.to.clone().or_else(catalogue::cache).ok_or_else(no_cache)?;
        let mirror = self.from.as_deref().map(mirror).transpose()?;
        let patience = Duration::try_from_secs_f64(self.timeout).ok().filter(|d| !d.is_zero());
        let patience = patience.ok_or_else(|| Error::config("--timeout must be a positive number of seconds"))?;
        Ok((sets, Work { root, mirror, client: Client::new(patience)? }))
    }
}

/// A mirror: an address of http or https, or a folder, also as an address of file.
fn mirror(from: &str) -> Result<Source, Error> {
    if from.starts_with("http://") || from.starts_with("https://") {
        return Ok(Source::Address(from.trim_end_matches('/').to_string()));
    }
    let folder = match from.split_once("://") {
        Some(("file", path)) => PathBuf::from(path.strip_prefix("localhost").unwrap_or(path)),
        Some((other, _)) => {
            let what = format!(
                "`{from}`: unsupported mirror type {other}; expected an http, https or file address, or a folder"
            );
            return Err(Error::config(what));
        }
        None => PathBuf::from(from),
    };
    match folder.is_dir() {
        true => Ok(Source::File(folder)),
        false => Err(Error::config(format!("--from {}: folder not found", folder.display()))),
    }
}

/// What all sets have in common.
struct Work {
    root: PathBuf,
    mirror: Option<Source>,
    client: Client,
}

impl Work {
    /// Brings a set below the root, complete and checked; what is there already is not fetched again.
    fn fetch(&self, known: &Known) -> Result<Value, Error> {
        let folder = self.root.join(&known.folder);
        let made = known.archive.as_ref().and_then(|archive| archive.makes.as_ref());
        let received = match &known.archive {
            _ if made.is_some_and(|name| folder.join(name).is_file()) => 0,
            Some(archive) if self.mirror.is_none() => self.archive(known, archive, &folder)?,
            Some(archive) => match self.files(known, &folder) {
                Ok(received) => received,
                // a mirror holds the files, or the archive
                Err(first) => self.archive(known, archive, &folder).map_err(|_| first)?,
            },
            None => self.files(known, &folder)?,
        };
        let path = known.path_in(&self.root);
        Ok(json!({ "name": known.name, "path": path, "bytes": known.bytes(), "received": received }))
    }

    fn files(&self, known: &Known, folder: &Path) -> Result<u64, Error> {
        known.files.iter().map(|file| self.file(known, file, folder)).sum()
    }

    /// Fetches an archive, unless its files or itself are there already, and takes the files out of it.
    fn archive(&self, known: &Known, archive: &Archive, folder: &Path) -> Result<u64, Error> {
        let there = |file: &KnownFile| is_there(&folder.join(&file.name), file);
        if archive.makes.is_none() && known.files.iter().map(there).collect::<Result<Vec<_>, _>>()?.iter().all(|b| *b) {
            return Ok(0);
        }
        let path = folder.join(&archive.file.name);
        let received = self.file(known, &archive.file, folder)?;
        match (archive.form, &archive.makes) {
            (Form::TarGz, _) => archive::unpack(&path, &archive.inside, &known.files, folder)?,
            (Form::Inception, Some(name)) => Inception::convert(&path, &folder.join(name))?,
            (Form::Inception, None) => return Err(Error::config(format!("`{}` makes no file", known.name))),
        }
        // what the user put there by hand stays
        if received > 0 {
            file::remove(&path)?;
        }
        Ok(received)
    }

    /// Brings a file to a folder from the first source that has it; returns how many bytes were received.
    fn file(&self, known: &Known, wanted: &KnownFile, folder: &Path) -> Result<u64, Error> {
        let path = folder.join(&wanted.name);
        if is_there(&path, wanted)? {
            return Ok(0);
        }
        if let Some(bytes) = wanted.embedded() {
            file::create_folder(folder)?;
            return file::write(&path, bytes).map(|()| 0);
        }
        let mut reasons = String::new();
        for source in self.sources(known, wanted) {
            match self.download(&source, wanted, folder)? {
                Ok(received) => return Ok(received),
                Err(why) => reasons += &format!("\n  {}: {why}", source.text()),
            }
        }
        let (name, bytes, sum) = (&wanted.name, wanted.bytes, &wanted.sha256);
        let other = if path.is_file() { " (the existing file of this name there has different content)" } else { "" };
        Err(Error::config(format!(
            "cannot download {name} of data set `{}`:{reasons}\nDownload the file by hand ({bytes} bytes, SHA-256 {sum}), put it \
             into the folder\n  {}{other}\nand run `minvel data fetch {}` again.",
            known.name,
            folder.display(),
            known.name
        )))
    }

    fn sources(&self, known: &Known, wanted: &KnownFile) -> Vec<Source> {
        match &self.mirror {
            Some(Source::File(root)) => vec![Source::File(root.join(&known.folder).join(&wanted.name))],
            Some(Source::Address(root)) => {
                vec![Source::Address(format!("{root}/{}/{}", known.folder, wanted.name))]
            }
            None => wanted.addresses.iter().cloned().map(Source::Address).collect(),
        }
    }

    /// Downloads from one source, resuming a few times; the outer error is trouble of this machine, the inner one of the source.
    fn download(&self, source: &Source, wanted: &KnownFile, folder: &Path) -> Result<Result<u64, String>, Error> {
        let path = folder.join(&wanted.name);
        // a source that does not answer leaves no folder behind
        let mut part = if folder.is_dir() { Some(Partial::resume(&path)?) } else { None };
        let mut received = 0;
        for attempt in 1.. {
            let begin = part.as_ref().map_or(Ok(0), Partial::len)?;
            if begin == wanted.bytes && begin > 0 {
                break;
            }
            let begin = if begin < wanted.bytes { begin } else { 0 };
            let rest = match self.client.open(source, begin) {
                Ok(rest) => rest,
                Err(why) => return keep(part).map(|()| Err(why)),
            };
            file::create_folder(folder)?;
            if part.is_none() {
                part = Some(Partial::create(&path)?);
            }
            let to = part.as_mut().expect("just made");
            let saved = save(rest, to, wanted)?;
            received += saved.received;
            let have = to.len()?;
            // a server that fell silent is not asked again
            if have < wanted.bytes && (saved.silent || have <= begin || attempt == ATTEMPTS) {
                let why = saved.why.map_or(String::new(), |why| format!(" ({why})"));
                let bytes = wanted.bytes;
                let what = format!(
                    "the connection closed after {have} of {bytes} bytes{why}; run the command again to resume"
                );
                return keep(part).map(|()| Err(what));
            }
            if have >= wanted.bytes {
                break;
            }
        }
        let part = part.expect("the loop ends with a part");
        let found = sha256(part.place())?;
        if part.len()? > wanted.bytes || found != wanted.sha256 {
            let what = format!("wrong content (SHA-256 {found}, expected {}); the download was deleted", wanted.sha256);
            return Ok(Err(what));
        }
        part.finish()?;
        Ok(Ok(received))
    }
}

/// Leaves what has come for a later command.
fn keep(part: Option<Partial>) -> Result<(), Error> {
    match part {
        Some(part) if !part.is_empty()? => part.keep(),
        _ => Ok(()),
    }
}

/// Whether the very file is there.
fn is_there(path: &Path, wanted: &KnownFile) -> Result<bool, Error> {
    Ok(fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() == wanted.bytes) && sha256(path)? == wanted.sha256)
}

/// What came.
#[derive(Default)]
struct Saved {
    received: u64,
    /// Why it ended early.
    why: Option<String>,
    /// Whether it ended because nothing came any more.
    silent: bool,
}

/// Writes what comes behind what is here. A connection that ends early is no error: the caller keeps the part.
fn save(mut rest: Rest, part: &mut Partial, wanted: &KnownFile) -> Result<Saved, Error> {
    if rest.skipped == 0 {
        part.clear()?;
    }
    let bar = bar(wanted, rest.skipped);
    let (mut chunk, mut saved) = (vec![0; 1 << 16], Saved::default());
    // one byte too many is enough to see that it is another file
    while rest.skipped + saved.received <= wanted.bytes {
        match rest.bytes.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => {
                part.write_all(&chunk[..count]).map_err(|e| Error::file(part.place(), "write", e))?;
                saved.received += count as u64;
                bar.set_position(rest.skipped + saved.received);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => {
                (saved.why, saved.silent) = (Some(e.to_string()), timed_out(&e));
                break;
            }
        }
    }
    bar.finish_and_clear();
    Ok(saved)
}

fn bar(wanted: &KnownFile, start: u64) -> ProgressBar {
    let visible = console::user_attended_stderr();
    let target = if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(wanted.bytes), target).with_position(start);
    let style = "{prefix:.bold} {wide_bar:.blue} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a sound template").progress_chars("━╸ "));
    bar.set_prefix(wanted.name.clone());
    bar.reset_eta();
    bar
}
