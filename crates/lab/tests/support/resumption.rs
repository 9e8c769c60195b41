//! Experiments run to the end, and again with interruptions.
#![allow(dead_code)] // each test file uses its own part

use minvel::train::{Observer, Silent, Stop};
use minvel::{Device, Error};
use minvel_lab::experiment::{Config, Journal, Runner};
use minvel_lab::index::find;
use minvel_lab::report::{Report, Versions};
use minvel_testing::Scratch;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Settings of an experiment, some of them changed.
pub fn settings(name: &str, assignments: &[&str]) -> Config {
    let mut config = find(name).unwrap().config().unwrap();
    for assignment in assignments {
        config.set(assignment).unwrap();
    }
    config
}

/// Runs an experiment in a folder, on one thread.
pub fn perform(
    config: &Config,
    name: &str,
    folder: &Path,
    observer: &dyn Observer,
    stop: Stop,
) -> Result<Report, Error> {
    let mut runner = Runner::new(Journal::open(folder, name).unwrap(), observer, stop);
    (runner.threads, runner.save_every, runner.device) = (1, Duration::ZERO, Device::Cpu);
    find(name)?.prepare(config.clone())?.perform(&mut runner, Versions::default(), "unknown")
}

/// Asks to stop at a certain moment, counted in steps and units.
struct Impatient {
    stop: Stop,
    left: AtomicUsize,
}

impl Impatient {
    fn after(moments: usize) -> Self {
        Impatient { stop: Stop::default(), left: AtomicUsize::new(moments) }
    }

    fn moment(&self) {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        if left == 1 {
            self.stop.ask();
        }
    }
}

impl Observer for Impatient {
    fn unit(&self, _: &str, _: usize, _: usize) {
        self.moment();
    }
    fn advance(&self, _: u64, _: &str) {
        self.moment();
    }
}

/// What a reader sees, but for the times.
pub fn seen(report: &Report) -> String {
    serde_json::to_string(&(&report.rows, &report.figures, &report.notes, &report.config)).unwrap()
}

/// Runs to the end, and again with interruptions, each some moments later than the one before; both reports are the same.
pub fn resumed(name: &str, config: &Config, scratch: &Scratch) -> Report {
    let whole = perform(config, name, &scratch.path("whole"), &Silent, Stop::default()).unwrap();
    let mut stops = 0;
    let again = loop {
        let watch = Impatient::after(3 + 2 * stops);
        match perform(config, name, &scratch.path("parts"), &watch, watch.stop.clone()) {
            Ok(report) => break report,
            Err(Error::Interrupted) => stops += 1,
            Err(other) => panic!("{other}"),
        }
        assert!(stops < 100, "it never ends");
    };
    println!("{name}: {stops} interruptions");
    assert!(stops > 5, "there is something to resume");
    assert_eq!(seen(&whole), seen(&again));
    whole
}

/// Names of the figures.
pub fn names(report: &Report) -> Vec<&str> {
    report.figures.iter().map(|f| f.name.as_str()).collect()
}
