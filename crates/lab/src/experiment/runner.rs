//! The runner an experiment works at: it runs units, skips those that are finished, and keeps what they find.

use super::journal::{Finished, Journal};
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
    journal: Journal,
    observer: &'a dyn Observer,
    stop: Stop,
    planned: usize,
    timings: Vec<Timing>,
    devices: BTreeSet<String>,
    missing: Vec<String>,
}

impl<'a> Runner<'a> {
    /// A runner with a journal, somebody who watches, and a way to be stopped.
    pub fn new(journal: Journal, observer: &'a dyn Observer, stop: Stop) -> Self {
        let (Options { device, precision, .. }, save_every) = (Options::default(), Duration::from_secs(10));
        let (timings, devices, missing) = (vec![], BTreeSet::new(), vec![]);
        let partial = false;
        Runner {
            threads: 0,
            device,
            precision,
            save_every,
            partial,
            journal,
            observer,
            stop,
            planned: 0,
            timings,
            devices,
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

    fn device(&self) -> String {
        let Device::Cuda(index) = self.device else { return self.device.to_string() };
        let cards = minvel_engine::cards().unwrap_or_default();
        let name = cards.into_iter().nth(index).map_or(String::new(), |card| format!(" ({})", card.name));
        format!("{}{name}, products in {}", self.device, self.precision)
    }

    /// What a unit found, or `None` if only what is finished is asked for and it is not.
    pub fn if_finished<T>(&self, found: Result<T, Error>) -> Result<Option<T>, Error> {
        match found {
            Err(Error::Interrupted) if self.partial => Ok(None),
            found => found.map(Some),
        }
    }

    /// Units that a partial report lacks.
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
        let number = self.timings.len() + 1;
        self.observer.unit(name, number, self.planned.max(number));
        let before = self.journal.find(name)?;
        let resumed = before.is_some();
        let finished = match before {
            Some(finished) => finished,
            None if self.partial => {
                self.missing.push(name.to_string());
                return Err(Error::Interrupted);
            }
            None => self.work(name, work)?,
        };
        self.observer.unit_done(name, finished.seconds, resumed);
        self.timings.push(Timing { name: name.to_string(), seconds: finished.seconds });
        self.devices.insert(finished.device);
        Ok(finished.result)
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
        self.journal.keep(name, &result, context.seconds(), &self.device())?;
        let kept = self.journal.find(name)?;
        Ok(kept.unwrap_or_else(|| panic!("unit: `{name}` was written and is gone")))
    }
}
