//! Runs that several processes share in one folder: passes over the units, until none is left.

use super::{How, Job, Pass};
use crate::progress::{Bars, Screen};
use crate::shard::{Shard, Wait};
use crate::{Failure, place};
use minvel::train::Stop;
use minvel::{Device, Error};
use minvel_lab::report::Report;
use std::path::Path;

/// Works on every device at once, each as a process of its own would: which device does a unit does not change what it finds.
pub(super) fn spread(
    jobs: &[Job],
    arguments: &How,
    devices: &[Device],
    shard: Shard,
    folder: &Path,
    command: &str,
    stop: &Stop,
) -> Result<Vec<Report>, Failure> {
    let screen = Screen::new();
    let on = |k: usize| {
        let found = work(jobs, arguments, devices[k], shard.part(k, devices.len()), folder, command, stop, &screen);
        if found.is_err() {
            stop.ask(); // the others too, at a safe place
        }
        found
    };
    let mut outcomes: Vec<Result<Vec<Report>, Failure>> = std::thread::scope(|scope| {
        let on = &on;
        let workers: Vec<_> = (0..devices.len()).map(|k| scope.spawn(move || on(k))).collect();
        workers.into_iter().map(|worker| worker.join().expect("no worker panics")).collect()
    });
    // What went wrong tells more than that others were stopped for it.
    let wrong =
        |outcome: &Result<Vec<Report>, Failure>| matches!(outcome, Err(why) if !matches!(why, Failure::Interrupted));
    let at = outcomes.iter().position(wrong).or(outcomes.iter().position(Result::is_err)).unwrap_or(0);
    outcomes.swap_remove(at)
}

/// Does what no other process does, waits for what others do, and takes over what they leave, until all is done.
fn work(
    jobs: &[Job],
    arguments: &How,
    device: Device,
    shard: Shard,
    folder: &Path,
    command: &str,
    stop: &Stop,
    screen: &Screen,
) -> Result<Vec<Report>, Failure> {
    let failure = |error| place::ended(error, command, folder);
    let mut sharing = shard.sharing();
    let mut done: Vec<Option<Report>> = jobs.iter().map(|_| None).collect();
    let bars: Vec<Bars> = jobs.iter().map(|job| screen.bars(job.name())).collect();
    let mut told = false;
    loop {
        let mut elsewhere = vec![];
        for ((job, bars), report) in jobs.iter().zip(&bars).zip(&mut done).filter(|(_, report)| report.is_none()) {
            match job.attempt(arguments, device, stop, bars, Some(sharing.clone())).map_err(failure)? {
                Pass::Done(found) => *report = Some(*found),
                Pass::Elsewhere(units) => elsewhere.extend(units),
            }
        }
        if elsewhere.is_empty() {
            bars.iter().for_each(Bars::finish);
            jobs.iter().try_for_each(|job| job.journal()?.tidy(&sharing)).map_err(failure)?;
            return Ok(done.into_iter().map(|report| report.expect("nothing is left")).collect());
        }
        let first = sharing.index > 0;
        sharing.index = 0; // the second time, all units are its own
        let wait = Wait { sharing: &sharing, units: elsewhere };
        if !first && !told {
            told = true;
            note!("waiting for other processes: {}", wait.owners());
        }
        wait.for_change(|| stop.asked()).map_err(failure)?;
        if stop.asked() {
            return Err(failure(Error::Interrupted));
        }
    }
}
