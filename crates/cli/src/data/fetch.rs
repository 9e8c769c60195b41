//! Downloads: from a mirror to a file that is there wholly and checked, or not at all.
//!
//! Bytes go to `FILE.part`, which a later attempt continues; only a part whose checksum is right takes the name.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use minvel::data::catalogue::{KnownFile, sha256};
use minvel::{Error, file};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Where files come from.
#[derive(Debug, PartialEq)]
pub enum Mirror {
    /// A folder.
    Folder(PathBuf),
    /// An address of http or https.
    Address(String),
}

/// The rest of a file: how many bytes of it the sender leaves out since they are here already, and the others.
struct Rest {
    skipped: u64,
    bytes: Box<dyn Read>,
}

impl Mirror {
    /// Understands addresses of http, https and file, and folders.
    pub fn new(from: &str) -> Result<Mirror, Error> {
        if from.starts_with("http://") || from.starts_with("https://") {
            if cfg!(not(feature = "fetch")) {
                return Err(Error::config(
                    "this build of minvel cannot download: give a folder, or build it with `fetch`",
                ));
            }
            return Ok(Mirror::Address(from.trim_end_matches('/').to_string()));
        }
        let folder = match from.split_once("://") {
            Some(("file", path)) => PathBuf::from(path.strip_prefix("localhost").unwrap_or(path)),
            Some((other, _)) => {
                return Err(Error::config(format!(
                    "`{from}`: mirrors are http, https and file addresses or folders, not {other}"
                )));
            }
            None => PathBuf::from(from),
        };
        match folder.is_dir() {
            true => Ok(Mirror::Folder(folder)),
            false => Err(Error::config(format!("there is no folder {}", folder.display()))),
        }
    }

    /// Opens a file from byte `start` on.
    fn open(&self, name: &str, start: u64) -> Result<Rest, Error> {
        match self {
            Mirror::Folder(folder) => {
                let path = folder.join(name);
                let missing = |e| Error::file(&path, "read", e);
                let mut source = File::open(&path).map_err(missing)?;
                source.seek(SeekFrom::Start(start)).map_err(missing)?;
                Ok(Rest { skipped: start, bytes: Box::new(source) })
            }
            Mirror::Address(base) => request(&format!("{base}/{name}"), start),
        }
    }
}

/// Asks a server for the rest of a file.
#[cfg(feature = "fetch")]
fn request(url: &str, start: u64) -> Result<Rest, Error> {
    use std::time::Duration;
    let failed = |why: String| Error::config(format!("cannot download {url}: {why}"));
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_connect(Some(Duration::from_secs(30)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .http_status_as_error(false)
        .build()
        .into();
    let mut asked = agent.get(url);
    if start > 0 {
        asked = asked.header("Range", format!("bytes={start}-"));
    }
    let response = asked.call().map_err(|e| failed(e.to_string()))?;
    let range = response.headers().get("content-range").and_then(|v| v.to_str().ok()).map(str::to_string);
    let skipped = match response.status().as_u16() {
        200 => 0,
        206 if range.is_some_and(|r| r.starts_with(&format!("bytes {start}-"))) => start,
        // the part here is longer than the file there: it is of something else
        206 | 416 if start > 0 => return request(url, 0),
        404 => {
            return Err(failed(
                "the mirror does not have it (404): is this the folder that holds data/ and weights/?".into(),
            ));
        }
        status => return Err(failed(format!("the server answers {status}"))),
    };
    let bytes = response.into_body().into_with_config().limit(u64::MAX).reader();
    Ok(Rest { skipped, bytes: Box::new(bytes) })
}

#[cfg(not(feature = "fetch"))]
fn request(url: &str, _: u64) -> Result<Rest, Error> {
    Err(Error::config(format!("cannot download {url}: this build of minvel has no `fetch`")))
}

/// Brings a file to a folder, unless it is there already; returns how many bytes were received.
pub fn file(mirror: &Mirror, below: &str, known: &KnownFile, folder: &Path) -> Result<u64, Error> {
    let path = folder.join(known.name);
    if path.is_file() && sha256(&path)? == known.sha256 {
        return Ok(0);
    }
    let part = folder.join(format!("{}.part", known.name));
    let mut have = fs::metadata(&part).map_or(0, |m| m.len());
    let mut received = 0;
    if have > known.bytes {
        file::remove(&part)?;
        have = 0;
    }
    if have < known.bytes || have == 0 {
        let rest = mirror.open(&format!("{below}/{}", known.name), have)?;
        file::create_folder(folder)?;
        received = save(rest, &part, known)?;
        have = fs::metadata(&part).map_err(|e| Error::file(&part, "read", e))?.len();
    }
    if have < known.bytes {
        let what =
            format!("the connection ended after {have} of {} bytes; the same command goes on from there", known.bytes);
        return Err(Error::content(&part, what));
    }
    let found = sha256(&part)?;
    if have > known.bytes || found != known.sha256 {
        file::remove(&part)?;
        let what = format!(
            "what the mirror sent is not the known file (SHA-256 {found}, expected {}); it was removed: try another mirror",
            known.sha256
        );
        return Err(Error::content(&path, what));
    }
    fs::rename(&part, &path).map_err(|e| Error::file(&path, "write", e))?;
    Ok(received)
}

/// Writes what comes behind what is here; what has come stays on the disk whatever happens.
fn save(mut rest: Rest, part: &Path, known: &KnownFile) -> Result<u64, Error> {
    let sick = |e| Error::file(part, "write", e);
    let mut out = OpenOptions::new().create(true).append(true).open(part).map_err(sick)?;
    if rest.skipped == 0 {
        out.set_len(0).map_err(sick)?;
    }
    let bar = bar(known, rest.skipped);
    let (mut chunk, mut received) = (vec![0; 1 << 16], 0);
    // one byte too many is enough to see that it is another file
    while rest.skipped + received <= known.bytes {
        match rest.bytes.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => {
                out.write_all(&chunk[..count]).map_err(sick)?;
                received += count as u64;
                bar.set_position(rest.skipped + received);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // what is missing is said by the caller, by its length
            Err(_) => break,
        }
    }
    out.sync_all().map_err(sick)?;
    bar.finish_and_clear();
    Ok(received)
}

fn bar(known: &KnownFile, start: u64) -> ProgressBar {
    let visible = console::user_attended_stderr();
    let target = if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(known.bytes), target).with_position(start);
    let style = "{prefix:.bold} {wide_bar:.blue} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a sound template").progress_chars("━╸ "));
    bar.set_prefix(known.name);
    bar.reset_eta();
    bar
}
