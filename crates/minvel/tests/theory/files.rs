//! Files that are there wholly or not at all, whoever else writes beside us.

use minvel::file;
use minvel::file::Partial;
use minvel_testing::Scratch;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The bytes went to `NAME.partial`, through whatever link lay there.
#[cfg(unix)]
#[test]
fn a_link_that_lies_in_wait_is_not_followed() {
    let scratch = Scratch::new("files-link");
    let victim = scratch.file("victim", "precious");
    for name in ["out.csv.partial", ".out.csv.partial"] {
        std::os::unix::fs::symlink(&victim, scratch.path(name)).unwrap();
    }
    file::write(&scratch.path("out.csv"), b"new").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(fs::read(scratch.path("out.csv")).unwrap(), b"new");
    assert!(!fs::symlink_metadata(scratch.path("out.csv")).unwrap().is_symlink());
}

#[test]
fn names_on_the_way_are_hidden_random_and_gone_in_the_end() {
    let scratch = Scratch::new("files-names");
    let target = scratch.path("out.csv");
    let two = [Partial::create(&target).unwrap(), Partial::create(&target).unwrap()];
    let names = scratch.list();
    assert_eq!(names.len(), 2);
    for name in &names {
        let random = name.strip_prefix(".out.csv.").and_then(|n| n.strip_suffix(".partial")).unwrap();
        assert!(random.len() == 16 && u64::from_str_radix(random, 16).is_ok(), "{name}");
    }
    drop(two);
    assert_eq!(scratch.list(), [""; 0]);
    // also of names as long as a file system takes them
    let long = scratch.path(&"n".repeat(255));
    file::write(&long, b"new").unwrap();
    assert_eq!(fs::read(&long).unwrap(), b"new");
}

/// Writers of one file shared `NAME.partial`: one renamed what another was still writing, and the other found nothing.
#[test]
fn writers_of_one_file_do_not_disturb_each_other() {
    let scratch = Scratch::new("files-concurrent");
    let target = scratch.path("out.bin");
    let of = |writer: u8| vec![writer; 10_000 + 1000 * writer as usize];
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (target, bytes) = (&target, of(writer));
            scope.spawn(move || (0..20).for_each(|_| file::write(target, &bytes).unwrap()));
        }
    });
    let found = fs::read(&target).unwrap();
    assert_eq!(found, of(found[0]), "one of the contents, whole");
    assert_eq!(scratch.list(), ["out.bin"]);
}

/// A partial file as a killed program leaves it, of some age.
fn leftover(scratch: &Scratch, name: &str, age: u64) -> PathBuf {
    let path = scratch.file(name, "half");
    let file = File::options().append(true).open(&path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    path
}

#[test]
fn what_a_killed_program_left_is_removed_and_nothing_else() {
    let scratch = Scratch::new("files-leftovers");
    let old = leftover(&scratch, ".out.csv.0123456789abcdef.partial", 3600);
    let young = leftover(&scratch, ".out.csv.1123456789abcdef.partial", 1);
    let other = leftover(&scratch, ".out.tsv.2123456789abcdef.partial", 3600);
    let named = leftover(&scratch, ".out.csv.notes.partial", 3600);
    let locked = leftover(&scratch, ".out.csv.3123456789abcdef.partial", 3600);
    let writer = File::options().append(true).open(&locked).unwrap();
    writer.lock().unwrap();
    file::write(&scratch.path("out.csv"), b"new").unwrap();
    assert!(!old.exists());
    for kept in [young, other, named, locked] {
        assert!(kept.exists(), "{}", kept.display());
    }
}

#[test]
fn a_download_goes_on_where_it_stopped() {
    let scratch = Scratch::new("files-resume");
    let target = scratch.path("data.bin");
    let mut first = Partial::resume(&target).unwrap();
    assert!(first.is_empty().unwrap());
    first.write_all(b"one ").unwrap();
    first.keep().unwrap();
    let mut second = Partial::resume(&target).unwrap();
    assert_eq!(second.len().unwrap(), 4);
    // while it is being written, another begins anew
    let other = Partial::resume(&target).unwrap();
    assert!(other.is_empty().unwrap());
    drop(other);
    second.write_all(b"two").unwrap();
    let mut whole = String::new();
    second.rewind().unwrap().read_to_string(&mut whole).unwrap();
    assert_eq!(whole, "one two");
    second.finish().unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"one two");
    assert_eq!(scratch.list(), ["data.bin"]);
    let mut third = Partial::resume(&target).unwrap();
    third.write_all(b"wrong").unwrap();
    third.clear().unwrap();
    third.write_all(b"right").unwrap();
    third.finish().unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"right");
}

/// A link under the name of a leftover is not opened, even if the name were guessed.
#[cfg(unix)]
#[test]
fn a_link_is_not_resumed() {
    let scratch = Scratch::new("files-resume-link");
    let victim = scratch.file("victim", "precious");
    std::os::unix::fs::symlink(&victim, scratch.path(".data.bin.0123456789abcdef.partial")).unwrap();
    let mut partial = Partial::resume(&scratch.path("data.bin")).unwrap();
    assert!(partial.is_empty().unwrap());
    partial.write_all(b"new").unwrap();
    partial.finish().unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}
