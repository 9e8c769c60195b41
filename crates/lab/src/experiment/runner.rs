//! The runner an experiment works at: it runs units, skips those that are finished, and keeps what they find.

use super::journal::{Finished, Journal};
use super::sharing::Sharing;
use crate::report::Timing;
use minvel::train::{Context, Observer, Stop};
use minvel::{Error, file};
use minvel_engine::{Device, Options, Precision};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Where units are run one after another.
pub struct Runner<'a> {
    /// Threads for programs; 0 means all cores. Results do not depend on it.
    pub threads: usize,
    /// Where programs run.
    pub device: Device,
    /// How a GPU computes matrix products.
    pub precision: Precision,
    /// Time between two checkpoints of a training.
    pub save_every: Duration,
    /// Whether to report what is finished, and to begin nothing.
    pub partial: bool,
    /// How units are shared with other processes in the same folder, if they are.
    pub sharing: Option<Sharing>,
    /// Git revision of the program, kept with each unit.
    pub revision: String,
    journal: Journal,
    observer: &'a dyn Observer,
    stop: Stop,
    planned: usize,
    /// Units that were asked for, finished or not.
    asked: usize,
    timings: Vec<Timing>,
    devices: BTreeSet<String>,
    revisions: BTreeSet<String>,
    missing: Vec<String>,
}

impl<'a> Runner<'a> {
    /// A runner with a journal, somebody who watches, and a way to be stopped.
    pub fn new(journal: Journal, observer: &'a dyn Observer, stop: Stop) -> Self {
        let (Options { device, precision, .. }, save_every) = (Options::default(), Duration::from_secs(10));
        let (timings, devices, missing) = (vec![], BTreeSet::new(), vec![]);
        let (partial, revision, revisions) = (false, String::new(), BTreeSet::new());
        Runner {
            threads: 0,
            device,
            precision,
            save_every,
            partial,
            sharing: None,
            revision,
            journal,
            observer,
            stop,
            planned: 0,
            asked: 0,
            timings,
            devices,
            revisions,
            missing,
        }
    }

    /// Says how many units there will be, for the observer.
    pub fn plan(&mut self, units: usize) {
        self.planned = units;
    }

    /// Where the units were computed, in words: a GPU with its name and the precision of its products.
    pub fn devices(&self) -> String {
        self.devices.iter().cloned().collect::<Vec<_>>().join("; ")
    }

    /// Git revisions of the programs that computed the units, other than this one; of units that do not record it,
    /// `unrecorded`.
    pub fn other_revisions(&self) -> Vec<&str> {
        let others = self.revisions.iter().map(String::as_str).filter(|revision| *revision != self.revision);
        others.map(|revision| if revision.is_empty() { "unrecorded" } else { revision }).collect()
    }

    fn device(&self) -> String {
        let Device::Cuda(index) = self.device else { return self.device.to_string() };
        let cards = minvel_engine::cards().unwrap_or_default();
        let name = cards.into_iter().nth(index).map_or(String::new(), |card| format!(" ({})", card.name));
        format!("{}{name}, products in {}", self.device, self.precision)
    }

    /// What a unit found, or `None` if only what is finished is asked for and it is not, or if another process works on it.
    pub fn if_finished<T>(&self, found: Result<T, Error>) -> Result<Option<T>, Error> {
        let goes_on = (self.partial || self.sharing.is_some()) && !self.stop.asked();
        match found {
            Err(Error::Interrupted) if goes_on => Ok(None),
            found => found.map(Some),
        }
    }

    /// What is found for each item, by units that do not need each other. Where one is not finished, because another process
    /// works on it, the others are begun before this fails for it.
    pub fn each<I: IntoIterator, T>(
        &mut self,
        items: I,
        mut find: impl FnMut(&mut Self, I::Item) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let (mut all, mut whole) = (vec![], true);
        for item in items {
            let found = find(self, item);
            match self.if_finished(found)? {
                Some(found) => all.push(found),
                None => whole = false,
            }
        }
        if whole { Ok(all) } else { Err(Error::Interrupted) }
    }

    /// Units that a partial report lacks, or that other processes work on.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// The folder of the run, for what is too large for the journal.
    pub fn folder(&self) -> &Path {
        self.journal.run()
    }

    /// How long the units took, in the order in which they were asked for.
    pub fn timings(&self) -> &[Timing] {
        &self.timings
    }

    /// What a unit finds: from the journal if it is finished, else by doing the work at a context of its own.
    ///
    /// The name (letters, digits, `-`, `_`, `=`, `.`) must be the unit's alone. The result passes through the journal in
    /// either case, so that a resumed run computes with the same bits.
    pub fn unit<T: Serialize + DeserializeOwned>(
        &mut self,
        name: &str,
        work: impl FnOnce(&Context) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let proper = |c: char| c.is_ascii_alphanumeric() || "-_=.+".contains(c);
        assert!(name.chars().all(proper) && !name.is_empty(), "unit: `{name}` is not a valid file name");
        assert!(self.timings.iter().all(|t| t.name != name), "unit: there are two named `{name}`");
        self.asked += 1;
        let number = self.timings.len() + 1;
        self.observer.unit(name, number, self.planned.max(number));
        let before = self.journal.find(name)?;
        let resumed = before.is_some();
        let found = match before {
            Some(finished) => Some(finished),
            None if self.partial => None,
            None if self.sharing.is_some() => self.share(name, work)?,
            None => Some(self.work(name, work)?),
        };
        let Some(finished) = found else {
            self.missing.push(name.to_string());
            return Err(Error::Interrupted);
        };
        if self.sharing.as_ref().is_none_or(|sharing| sharing.is_news(self.journal.units(), name)) {
            self.observer.unit_done(name, finished.seconds, resumed);
        }
        self.timings.push(Timing { name: name.to_string(), seconds: finished.seconds });
        self.devices.extend(Some(finished.device).filter(|device| !device.is_empty()));
        self.revisions.insert(finished.revision);
        Ok(finished.result)
    }

    /// As [`Runner::work`], unless another process works on the unit, or it is better to begin with others.
    fn share<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        work: impl FnOnce(&Context) -> Result<T, Error>,
    ) -> Result<Option<Finished<T>>, Error> {
        let Some(sharing) = &self.sharing else { return self.work(name, work).map(Some) };
        if self.stop.asked() {
            return Err(Error::Interrupted);
        }
        if (self.asked - 1) * sharing.count < sharing.index * self.planned {
            return Ok(None);
        }
        let Some(_claim) = sharing.claim(self.journal.units(), name)? else { return Ok(None) };
        // another may have finished it before the claim
        match self.journal.find(name)? {
            Some(finished) => Ok(Some(finished)),
            None => self.work(name, work).map(Some),
        }
    }

    fn work<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        work: impl FnOnce(&Context) -> Result<T, Error>,
    ) -> Result<Finished<T>, Error> {
        if self.stop.asked() {
            return Err(Error::Interrupted);
        }
        let place = self.journal.workplace(name);
        file::create_folder(&place)?;
        let purpose = format!("{} {name}", self.journal.purpose());
        let mut context = Context::new(self.observer, self.stop.clone(), &place, &purpose);
        (context.threads, context.save_every) = (self.threads, self.save_every);
        (context.device, context.precision) = (self.device, self.precision);
        let result = work(&context)?;
        let (seconds, device, revision) = (context.seconds(), self.device(), self.revision.clone());
        self.journal.keep(name, Finished { result, seconds, device, revision })?;
        let kept = self.journal.find(name)?;
        Ok(kept.unwrap_or_else(|| panic!("unit: `{name}` was written and is gone")))
    }
}
