//! Claims: one owner at a time, whoever dies.

use minvel_lab::experiment::{Finished, Journal, Sharing};
use minvel_testing::Scratch;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn of_many_who_want_a_unit_one_gets_it() {
    let scratch = Scratch::new("claims");
    for round in 0..20 {
        let (unit, got) = (format!("unit-{round}"), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let claim = Sharing::new(0, 1).claim(scratch.folder(), &unit).unwrap();
                    got.fetch_add(usize::from(claim.is_some()), Ordering::SeqCst);
                    std::mem::forget(claim); // as one that is killed, it leaves its file
                });
            }
        });
        assert_eq!(got.load(Ordering::SeqCst), 1, "round {round}");
    }
}

#[test]
fn a_claim_ends_when_it_is_dropped() {
    let (scratch, sharing) = (Scratch::new("claim-dropped"), Sharing::new(0, 1));
    let claim = sharing.claim(scratch.folder(), "a.b=1").unwrap().expect("nobody else wants it");
    assert!(!sharing.is_free(scratch.folder(), "a.b=1").unwrap());
    assert!(sharing.claim(scratch.folder(), "a.b=1").unwrap().is_none());
    assert!(sharing.is_free(scratch.folder(), "a.b").unwrap(), "another unit");
    let owner = sharing.owner(scratch.folder(), "a.b=1").unwrap().unwrap();
    assert_eq!(owner.pid, std::process::id());
    drop(claim);
    assert_eq!(scratch.list(), Vec::<String>::new());
    assert!(sharing.claim(scratch.folder(), "a.b=1").unwrap().is_some());
}

/// A claim of this machine, edited to be of a process that is gone, is taken over at once, by one of many.
#[cfg(target_os = "linux")]
#[test]
fn the_claim_of_a_process_that_is_gone_is_taken_over_by_one() {
    let scratch = Scratch::new("claim-dead");
    let sharing = Sharing::new(0, 1);
    std::mem::forget(sharing.claim(scratch.folder(), "unit").unwrap());
    let path = scratch.path("unit.claim.0");
    let mut owner: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    // the same number, begun at another time: numbers are used again
    owner["began"] = 1.into();
    std::fs::write(&path, owner.to_string()).unwrap();
    let got = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let claim = sharing.claim(scratch.folder(), "unit").unwrap();
                got.fetch_add(usize::from(claim.is_some()), Ordering::SeqCst);
                std::mem::forget(claim);
            });
        }
    });
    assert_eq!((got.load(Ordering::SeqCst), scratch.list().len()), (1, 2), "{:?}", scratch.list());
}

/// Of another machine the time of modification counts: it must not change for a while. The twin that is renewed lives on.
#[test]
fn a_claim_of_another_machine_dies_of_silence() {
    let scratch = Scratch::new("claim-silent");
    let mut sharing = Sharing::new(0, 1);
    sharing.patience = Duration::from_millis(150);
    let other = r#"{"machine": "elsewhere", "world": "another", "pid": 1, "began": 1, "since": 0}"#;
    for (unit, renewed) in [("silent", false), ("renewed", true), ("unreadable", false)] {
        let path = scratch.file(&format!("{unit}.claim.3"), if unit == "unreadable" { "" } else { other });
        for _ in 0..4 {
            assert!(!sharing.is_free(scratch.folder(), unit).unwrap() || !renewed, "{unit}");
            std::thread::sleep(Duration::from_millis(60));
            if renewed {
                std::fs::File::options()
                    .write(true)
                    .open(&path)
                    .unwrap()
                    .set_modified(std::time::SystemTime::now())
                    .unwrap();
            }
        }
        assert_eq!(sharing.is_free(scratch.folder(), unit).unwrap(), !renewed, "{unit}");
        assert_eq!(sharing.claim(scratch.folder(), unit).unwrap().is_some(), !renewed, "{unit}");
    }
    // what the new owners leave behind is nothing of theirs or of the dead
    assert_eq!(scratch.list(), ["renewed.claim.3"]);
}

/// Killed between the last byte of its result and the end of its claim, or while it wrote: others clear up, but for those who live.
#[cfg(target_os = "linux")]
#[test]
fn what_the_dead_left_of_finished_units_is_removed_and_nothing_of_the_living() {
    let (scratch, sharing) = (Scratch::new("claim-tidy"), Sharing::new(0, 1));
    let journal = Journal::open(scratch.folder(), "test").unwrap();
    let finished = |result: u32| Finished { result, seconds: 0.0, device: String::new(), revision: String::new() };
    for unit in ["dead", "alive"] {
        journal.keep(unit, finished(1)).unwrap();
        std::mem::forget(sharing.claim(journal.units(), unit).unwrap());
        std::fs::create_dir(journal.workplace(unit)).unwrap();
    }
    std::mem::forget(sharing.claim(journal.units(), "unfinished").unwrap());
    for unit in ["dead", "unfinished"] {
        let path = journal.units().join(format!("{unit}.claim.0"));
        let mut owner: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        owner["began"] = 1.into();
        std::fs::write(&path, owner.to_string()).unwrap();
    }
    std::fs::write(journal.units().join(".dead.json.0123456789abcdef.partial"), "{").unwrap();
    std::fs::write(journal.units().join(".unfinished.json.0123456789abcdef.partial"), "{").unwrap();
    journal.tidy(&sharing).unwrap();
    let left = std::fs::read_dir(journal.units()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let left: std::collections::BTreeSet<String> = left.collect();
    let expected = [
        ".unfinished.json.0123456789abcdef.partial",
        "alive.claim.0",
        "alive.json",
        "alive.work",
        "dead.json",
        "unfinished.claim.0",
    ];
    assert_eq!(left, expected.map(String::from).into());
}
