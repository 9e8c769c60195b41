//! `minvel data`: where known data sets are, and how to get them.

mod fetch;

use crate::Failure;
use clap::{Args, Subcommand};
use minvel::Error;
use minvel::data::catalogue::{self, Known, LIST};
use serde_json::{Value, json};
use std::path::PathBuf;

/// List, fetch and find known data sets.
///
/// Data sets lie in $MINVEL_DATA or in the cache folder of the user. Wherever a command takes a file of data, it takes the
/// name of a data set too.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel data list                                       what is known, and what is here
  minvel data fetch earthquake --from https://HOST/PATH  download from a mirror
  minvel data fetch rna --from /media/stick              copy from a folder of the same layout
  minvel data path rna                                   where it lies")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Say which data sets are known, with source and licence, and where they lie.
    List {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Download a data set and check it; goes on where an earlier attempt ended.
    Fetch {
        /// Name of the data set (see `minvel data list`).
        name: String,
        /// A mirror: the address or folder that holds data/ and weights/.
        #[arg(long, value_name = "URL")]
        from: String,
        /// Folder to put data/ and weights/ in [default: the user's cache folder].
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Print where a data set lies.
    Path {
        /// Name of the data set, or of a file of it as wine/winequality-red.csv.
        name: String,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.action {
        Action::List { json } => {
            if json {
                say!("{}", json!({ "sets": LIST.iter().map(describe).collect::<Vec<_>>() }));
            } else {
                crate::out::put(format_args!("{}", list()));
            }
            Ok(())
        }
        Action::Path { name, json } => {
            let path = path(&name).map_err(Failure::Input)?;
            match json {
                true => say!("{}", json!({ "name": name, "path": path })),
                false => say!("{}", path.display()),
            }
            Ok(())
        }
        Action::Fetch { name, from, to, json } => fetch_set(&name, &from, to, json),
    }
}

/// Where a set or one of its files lies; sets of several files have a folder.
fn path(name: &str) -> Result<PathBuf, Error> {
    if !name.contains('/') {
        let known = catalogue::find(name)?;
        if let Some(path) = known.path() {
            return Ok(path);
        }
    }
    catalogue::locate(name)
}

fn describe(known: &Known) -> Value {
    let files = known.files.iter().map(|f| json!({ "name": f.name, "bytes": f.bytes, "sha256": f.sha256 }));
    json!({
        "name": known.name, "what": known.what, "licence": known.licence, "source": known.source,
        "folder": known.folder, "bytes": known.bytes(), "files": files.collect::<Vec<_>>(), "path": known.path(),
    })
}

/// A number of bytes, readable.
fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

fn list() -> String {
    let mut text = String::new();
    for known in LIST {
        let size = known.bytes().map_or("size unknown".into(), size);
        let place = known.path().map_or("not on this machine".into(), |path| path.display().to_string());
        text += &format!("{}: {}\n", known.name, known.what);
        text += &format!("    {size}; licence: {}; source: {}\n    {place}\n", known.licence, known.source);
    }
    text
}

fn fetch_set(name: &str, from: &str, to: Option<PathBuf>, json: bool) -> Result<(), Failure> {
    let known = catalogue::find(name).map_err(Failure::Input)?;
    if known.files.is_empty() {
        let what = format!(
            "the checksums of `{name}` are not known, so it cannot be fetched: take it from its source ({}) and put it \
             into the folder {} below $MINVEL_DATA",
            known.source, known.folder
        );
        return Err(Failure::Input(Error::config(what)));
    }
    let no_cache = || Error::config("there is no cache folder, as HOME is not set: give a folder by --to");
    let root = to.or_else(catalogue::cache).ok_or_else(no_cache).map_err(Failure::Input)?;
    let mirror = fetch::Mirror::new(from).map_err(Failure::Input)?;
    let folder = root.join(known.folder);
    let mut received = 0;
    for known_file in known.files {
        received += fetch::file(&mirror, known.folder, known_file, &folder).map_err(Failure::Work)?;
    }
    let path = known.path_in(&root);
    match json {
        true => say!("{}", json!({ "name": name, "path": path, "bytes": known.bytes(), "received": received })),
        false => say!("{}", path.display()),
    }
    Ok(())
}
