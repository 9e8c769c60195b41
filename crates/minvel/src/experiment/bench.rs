//! The bench an experiment works at: it runs units, skips those that are finished, and keeps what they find.

use super::ledger::{Finished, Ledger};
use crate::report::Timing;
use crate::train::{Desk, Observer, Stop};
use crate::{Error, file};
use minvel_engine::{Device, Options, Precision};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use std::time::Duration;

/// Where units are run one after another.
pub struct Bench<'a> {
    /// Threads for programs; 0 means all cores. Results do not depend on it.
    pub threads: usize,
    /// Where programs run.
    pub device: Device,
    /// How a GPU computes matrix products.
    pub precision: Precision,
    /// Time between two checkpoints of a training.
    pub save_every: Duration,
    ledger: Ledger,
    observer: &'a dyn Observer,
    stop: Stop,
    planned: usize,
    timings: Vec<Timing>,
}

impl<'a> Bench<'a> {
    /// A bench with a ledger, somebody who watches, and a way to be stopped.
    pub fn new(ledger: Ledger, observer: &'a dyn Observer, stop: Stop) -> Self {
        let (Options { device, precision, .. }, save_every) = (Options::default(), Duration::from_secs(10));
        Bench { threads: 0, device, precision, save_every, ledger, observer, stop, planned: 0, timings: vec![] }
    }

    /// Says how many units there will be, for the observer.
    pub fn plan(&mut self, units: usize) {
        self.planned = units;
    }

    /// The device in words, for reports: a GPU with its name and the precision of its products.
    pub fn device(&self) -> String {
        let Device::Cuda(index) = self.device else { return self.device.to_string() };
        let cards = minvel_engine::cards().unwrap_or_default();
        let name = cards.into_iter().nth(index).map_or(String::new(), |card| format!(" ({})", card.name));
        format!("{}{name}, products in {}", self.device, self.precision)
    }

    /// The folder of the run, for what is too large for the ledger.
    pub fn folder(&self) -> &Path {
        self.ledger.run()
    }

    /// How long the units took, in the order in which they were asked for.
    pub fn timings(&self) -> &[Timing] {
        &self.timings
    }

    /// What a unit finds: from the ledger if it is finished, else by doing the work at a desk of its own.
    ///
    /// The name (letters, digits, `-`, `_`, `=`, `.`) must be the unit's alone. The result passes through the ledger in
    /// either case, so that a resumed run computes with the same bits.
    pub fn unit<T: Serialize + DeserializeOwned>(
        &mut self,
        name: &str,
        work: impl FnOnce(&Desk) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let proper = |c: char| c.is_ascii_alphanumeric() || "-_=.+".contains(c);
        assert!(name.chars().all(proper) && !name.is_empty(), "unit: `{name}` is no name for a file");
        assert!(self.timings.iter().all(|t| t.name != name), "unit: there are two named `{name}`");
        let number = self.timings.len() + 1;
        self.observer.unit(name, number, self.planned.max(number));
        let before = self.ledger.find(name)?;
        let resumed = before.is_some();
        let finished = match before {
            Some(finished) => finished,
            None => self.work(name, work)?,
        };
        self.observer.unit_done(name, finished.seconds, resumed);
        self.timings.push(Timing { name: name.to_string(), seconds: finished.seconds });
        Ok(finished.result)
    }

    fn work<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        work: impl FnOnce(&Desk) -> Result<T, Error>,
    ) -> Result<Finished<T>, Error> {
        if self.stop.asked() {
            return Err(Error::Interrupted);
        }
        let place = self.ledger.workplace(name);
        file::create_folder(&place)?;
        let purpose = format!("{} {name}", self.ledger.purpose());
        let mut desk = Desk::new(self.observer, self.stop.clone(), &place, &purpose);
        (desk.threads, desk.save_every) = (self.threads, self.save_every);
        (desk.device, desk.precision) = (self.device, self.precision);
        let result = work(&desk)?;
        self.ledger.keep(name, &result, desk.seconds())?;
        let kept = self.ledger.find(name)?;
        Ok(kept.unwrap_or_else(|| panic!("unit: `{name}` was written and is gone")))
    }
}
