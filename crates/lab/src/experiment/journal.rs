//! What was found so far: one file for each finished unit, written wholly or not at all.

use minvel::{Error, file};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The folder `units/` of a run.
#[derive(Clone, Debug)]
pub struct Journal {
    folder: PathBuf,
    purpose: String,
}

#[derive(Serialize, Deserialize)]
struct Record {
    unit: String,
    purpose: String,
    seconds: f64,
    device: String,
    result: serde_json::Value,
}

/// What a unit found, and how long it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished<T> {
    /// What it found.
    pub result: T,
    /// How long it took.
    pub seconds: f64,
    /// Where it was computed, in words.
    pub device: String,
}

impl Journal {
    /// Opens the journal of a run folder. `purpose` names experiment and settings: units of other ones are refused.
    pub fn open(run: &Path, purpose: &str) -> Result<Self, Error> {
        let folder = run.join("units");
        file::create_folder(&folder)?;
        Ok(Journal { folder, purpose: purpose.to_string() })
    }

    /// The folder of the run.
    pub fn run(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    /// What finished units must belong to.
    pub fn purpose(&self) -> &str {
        &self.purpose
    }

    fn path(&self, unit: &str) -> PathBuf {
        self.folder.join(format!("{unit}.json"))
    }

    /// Folder for the checkpoints of a unit, while it is at work.
    pub fn workplace(&self, unit: &str) -> PathBuf {
        self.folder.join(format!("{unit}.work"))
    }

    /// What a unit found, if it is finished.
    pub fn find<T: DeserializeOwned>(&self, unit: &str) -> Result<Option<Finished<T>>, Error> {
        let path = self.path(unit);
        let Some(text) = file::read_text_if_there(&path)? else { return Ok(None) };
        let unreadable =
            |e: serde_json::Error| Error::content(&path, format!("unreadable: {e}; delete it to redo the unit"));
        let record: Record = serde_json::from_str(&text).map_err(unreadable)?;
        if record.purpose != self.purpose || record.unit != unit {
            return Err(Error::content(&path, "this unit belongs to other settings; choose another folder"));
        }
        let result = serde_json::from_value(record.result).map_err(unreadable)?;
        Ok(Some(Finished { result, seconds: record.seconds, device: record.device }))
    }

    /// Keeps what a unit found, and clears its workplace.
    pub fn keep<T: Serialize>(&self, unit: &str, result: &T, seconds: f64, device: &str) -> Result<(), Error> {
        let result = serde_json::to_value(result).expect("what a unit finds is plain data");
        let (purpose, device) = (self.purpose.clone(), device.to_string());
        let record = Record { unit: unit.to_string(), purpose, seconds, device, result };
        let text = serde_json::to_vec(&record).expect("a record is plain data");
        file::write(&self.path(unit), &text)?;
        match std::fs::remove_dir_all(self.workplace(unit)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::file(&self.workplace(unit), "remove", e)),
            _ => Ok(()),
        }
    }
}
