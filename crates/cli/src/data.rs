//! `minvel data`: where known data sets are, and how to get them.

mod download;
mod fetch;

use crate::Failure;
use clap::{Args, Subcommand};
use fetch::Fetch;
use minvel::{Error, file};
use minvel_lab::catalogue;
use minvel_lab::catalogue::Known;
use minvel_lab::catalogue::locate;
use minvel_lab::table::Input;
use serde_json::{Value, json};
use std::path::PathBuf;

/// List, download and locate public data sets.
///
/// Data sets are stored in $MINVEL_DATA or in the user's cache folder. Every command that reads a data file also accepts
/// the name of a data set. `earthquake` is built into the program.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel data list                            available data sets and their locations
  minvel data fetch mnist                     download from its public addresses
  minvel data fetch volcano flood fire rna    several at once
  minvel data fetch rna --from /media/stick   copy from a folder or mirror of the same layout
  minvel data path rna                        print the path
Environment:
  MINVEL_DATA        folder with data/ and weights/, searched before the cache folder
  https_proxy, ...   proxy for downloads (also http_proxy, all_proxy, no_proxy)
  SSL_CERT_FILE      PEM file of trusted certificates instead of the built-in ones
  MINVEL_CATALOGUE   TOML file to use instead of the built-in catalogue of data sets")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List data sets with source, licence and location on this machine.
    List {
        /// Print one JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Download data sets and verify their checksums; resume interrupted downloads.
    ///
    /// Public addresses are tried in order. If all fail, the message says which file to download by hand and where to put it;
    /// then run the same command again.
    Fetch(Fetch),
    /// Print the path of a data set.
    ///
    /// A data set that is built into the program is first written to the cache folder.
    Path {
        /// Name of the data set, or of one of its files, for example wine/winequality-red.csv.
        name: String,
        /// Print one JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.action {
        Action::List { json } => {
            let sets = catalogue::list().map_err(Failure::Input)?;
            if json {
                say!("{}", json!({ "sets": sets.iter().map(describe).collect::<Vec<_>>() }));
            } else {
                crate::out::put(format_args!("{}", list(sets)));
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
        Action::Fetch(fetch) => fetch.run(),
    }
}

/// Where a set or one of its files lies; sets of several files have a folder.
fn path(name: &str) -> Result<PathBuf, Error> {
    let set = name.split('/').next().unwrap_or(name);
    let known = catalogue::find(set)?;
    if let Some(path) = known.path().filter(|_| set == name) {
        return Ok(path);
    }
    match locate(name)? {
        Input::File(path) => Ok(path),
        Input::Embedded { name, bytes } => {
            let built_in = || {
                let what =
                    format!("`{set}` is built into the program, but there is no cache folder to write it to; set HOME");
                Error::config(what)
            };
            let folder = catalogue::cache().ok_or_else(built_in)?.join(&known.folder);
            let path = folder.join(name.file_name().unwrap_or_default());
            if file::read_if_there(&path)?.as_deref() != Some(bytes) {
                file::create_folder(&folder)?;
                file::write(&path, bytes)?;
            }
            Ok(path)
        }
        Input::Standard => unreachable!("no data set is called so"),
    }
}

fn describe(known: &Known) -> Value {
    let file = |f: &catalogue::KnownFile| json!({ "name": f.name, "bytes": f.bytes, "sha256": f.sha256, "addresses": f.addresses });
    json!({
        "name": known.name, "what": known.what, "licence": known.licence, "source": known.source, "folder": known.folder,
        "bytes": known.bytes(), "files": known.files.iter().map(file).collect::<Vec<_>>(),
        "archive": known.archive.as_ref().map(|archive| file(&archive.file)),
        "embedded": known.is_embedded(), "path": known.path(),
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

fn list(sets: &[Known]) -> String {
    let mut text = String::new();
    for known in sets {
        let place = match known.path() {
            _ if known.is_embedded() => "built into the program".into(),
            Some(path) => path.display().to_string(),
            None => format!("not on this machine: {}", catalogue::advice(&[&known.name])),
        };
        text += &format!("{}: {}\n", known.name, known.what);
        let size = size(known.download());
        text += &format!("    {size}; licence: {}; source: {}\n    {place}\n", known.licence, known.source);
    }
    text
}
