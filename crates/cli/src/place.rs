//! Where a run is made: its folder, what was asked for, and the device.

use crate::Failure;
use minvel::{Device, DeviceError, Error, file};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// File of a run folder that records the request, so that the run can be resumed.
pub const ASKED: &str = "run.json";

/// `runs/STEM`, or the first of `runs/STEM-2`, … that is not there.
pub fn free(stem: &str) -> PathBuf {
    let names = std::iter::once(stem.to_string()).chain((2..).map(|i| format!("{stem}-{i}")));
    let mut folders = names.map(|name| Path::new("runs").join(name));
    folders.find(|folder| !folder.exists()).expect("there are more numbers than folders")
}

/// Takes a folder for a run: one that is new or empty.
pub fn claim(folder: &Path, asked: &impl Serialize) -> Result<(), Error> {
    if folder.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        let what = "the folder is not empty; resume with --resume, or choose another --out";
        return Err(Error::content(folder, what));
    }
    file::create_folder(folder)?;
    let text = serde_json::to_vec_pretty(asked).expect("what was asked is plain data");
    file::write(&folder.join(ASKED), &text)
}

/// Takes a folder for a run that several processes share: whoever comes first records the request, the others must ask for
/// the same.
pub fn join<T: Serialize + DeserializeOwned>(folder: &Path, kind: &str, request: &T) -> Result<(), Error> {
    file::create_folder(folder)?;
    let path = folder.join(ASKED);
    if !path.exists() {
        let is_other = |entry: std::fs::DirEntry| !entry.file_name().to_string_lossy().contains(ASKED);
        let entries = folder.read_dir().map_err(|e| Error::file(folder, "read", e))?;
        // a folder that another process has just begun has the request before all else
        if entries.flatten().any(is_other) && !path.exists() {
            return Err(Error::content(
                folder,
                format!("the folder is not empty and holds no {kind}; choose another --out"),
            ));
        }
        let text = serde_json::to_vec_pretty(request).expect("what was asked is plain data");
        let own = folder.join(format!(".{ASKED}.{}", std::process::id()));
        file::write(&own, &text)?;
        // a link is made wholly or not at all, and never over another; where there are no links, the first writer wins
        let linked = std::fs::hard_link(&own, &path);
        let outcome = match linked {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists && !path.exists() => file::write(&path, &text),
            _ => Ok(()),
        };
        let _ = std::fs::remove_file(&own);
        outcome?;
    }
    let value = |request: &T| serde_json::to_value(request).expect("what was asked is plain data");
    let (theirs, own) = (value(&asked(folder, kind)?), value(request));
    match difference(&theirs, &own, "") {
        None => Ok(()),
        Some(what) => {
            let advice = "choose another --out, or join the run in this folder with --resume";
            Err(Error::content(folder, format!("belongs to a {kind} with other settings: {what}; {advice}")))
        }
    }
}

/// The first thing that two requests differ in, but for the revision of the program.
fn difference(theirs: &Value, own: &Value, key: &str) -> Option<String> {
    match (theirs, own) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys()).filter(|key| *key != "revision");
            let of = |map: &serde_json::Map<String, Value>, key: &str| map.get(key).cloned().unwrap_or_default();
            keys.into_iter().find_map(|key| difference(&of(a, key), &of(b, key), key))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).find_map(|(a, b)| difference(a, b, key))
        }
        (Value::String(a), Value::String(b)) if a != b && (a.contains('\n') || b.contains('\n')) => {
            // settings, one on each line
            let lost = |from: &str, other: &str| -> String {
                from.lines().find(|line| !other.lines().any(|own| own == *line)).unwrap_or("nothing").to_string()
            };
            Some(format!("`{}` there, `{}` here", lost(a, b), lost(b, a)))
        }
        (a, b) if a == b => None,
        (a, b) => Some(format!("{key} is {a} there, {b} here")),
    }
}

/// What was asked for in the folder of a `kind` of work.
pub fn asked<T: DeserializeOwned>(folder: &Path, kind: &str) -> Result<T, Error> {
    let path = folder.join(ASKED);
    let nothing = || Error::content(folder, format!("no {kind} to resume here ({ASKED} is missing)"));
    let text = file::read_text_if_there(&path)?.ok_or_else(nothing)?;
    let other = "it may belong to another command: `minvel fit --resume` is for fits, `minvel train … --resume` and `minvel reproduce --resume` for the others";
    serde_json::from_str(&text).map_err(|e| Error::content(&path, format!("does not describe a {kind} ({e}); {other}")))
}

/// Says how the user resumes work in a folder, in case it is interrupted from now on.
pub fn resumable(command: &str, folder: &Path) {
    crate::stop::advise(format!("interrupted; {}", resume_with(command, folder)));
}

fn resume_with(command: &str, folder: &Path) -> String {
    format!("resume with: minvel {command} --resume {}", folder.display())
}

/// Why work in a folder ended early, and how the user resumes it.
pub fn ended(error: Error, command: &str, folder: &Path) -> Failure {
    match error {
        Error::File { .. } => Failure::Halted(error, format!("once fixed, {}", resume_with(command, folder))),
        Error::Device(_) => {
            let resume = resume_with(command, folder);
            Failure::Halted(error, format!("saved work is intact; {resume} (add --device cpu to run without the GPU)"))
        }
        error => Failure::of_work(error),
    }
}

/// An error if another version began the work.
pub fn check_version(folder: &Path, kind: &str, version: &str) -> Result<(), Error> {
    if version == env!("CARGO_PKG_VERSION") {
        return Ok(());
    }
    let what = format!("this {kind} was started by minvel {version}; resume it with that version");
    Err(Error::content(&folder.join(ASKED), what))
}

/// An error if a device cannot be used.
pub fn check_device(device: Device) -> Result<(), Error> {
    let unusable = |why: DeviceError| Error::config(format!("{why} (--device cpu)"));
    device.checked().map(drop).map_err(unusable)
}
