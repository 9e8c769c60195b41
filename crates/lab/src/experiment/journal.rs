//! What was found so far: one file for each finished unit, written wholly or not at all.

use super::sharing::Sharing;
use minvel::file::Partial;
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
    /// Earlier versions did not record it.
    #[serde(default)]
    device: String,
    /// Nor this.
    #[serde(default)]
    revision: String,
    result: serde_json::Value,
}

/// What a unit found, and how long it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished<T> {
    /// What it found.
    pub result: T,
    /// How long it took.
    pub seconds: f64,
    /// Where it was computed, in words; empty where it was not recorded.
    pub device: String,
    /// Git revision of the program that computed it; empty where it was not recorded.
    pub revision: String,
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

    /// The folder of units and of claims to them.
    pub fn units(&self) -> &Path {
        &self.folder
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
        let Record { seconds, device, revision, .. } = record;
        Ok(Some(Finished { result, seconds, device, revision }))
    }

    /// Removes what processes that died left of finished units: claims, checkpoints, and files that they were writing.
    pub fn tidy(&self, sharing: &Sharing) -> Result<(), Error> {
        let wrong = |e| Error::file(&self.folder, "read", e);
        for entry in std::fs::read_dir(&self.folder).map_err(wrong)? {
            let name = entry.map_err(wrong)?.file_name();
            let Some(name) = name.to_str() else { continue };
            if let Some((unit, _)) = name.rsplit_once(".claim.").filter(|(unit, _)| self.path(unit).exists()) {
                // whoever gets the claim of a dead owner clears up; it goes with those before it
                if let Some(_claim) = sharing.claim(&self.folder, unit)? {
                    self.clear(unit)?;
                }
            }
            let partial = name.strip_prefix('.').and_then(|name| name.strip_suffix(".partial")?.rsplit_once('.'));
            let target = partial.map(|(target, _)| self.folder.join(target));
            target.filter(|target| target.exists()).iter().for_each(|target| Partial::remove_leftovers(target));
        }
        Ok(())
    }

    fn clear(&self, unit: &str) -> Result<(), Error> {
        match std::fs::remove_dir_all(self.workplace(unit)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::file(&self.workplace(unit), "remove", e)),
            _ => Ok(()),
        }
    }

    /// Keeps what a unit found, and clears its workplace.
    pub fn keep<T: Serialize>(&self, unit: &str, finished: Finished<T>) -> Result<(), Error> {
        let Finished { result, seconds, device, revision } = finished;
        let result = serde_json::to_value(result).expect("what a unit finds is plain data");
        let (unit_name, purpose) = (unit.to_string(), self.purpose.clone());
        let record = Record { unit: unit_name, purpose, seconds, device, revision, result };
        let text = serde_json::to_vec(&record).expect("a record is plain data");
        file::write(&self.path(unit), &text)?;
        self.clear(unit)
    }
}
