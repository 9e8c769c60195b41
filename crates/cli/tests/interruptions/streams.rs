//! Streams of rows: killed at any moment they go on and end with the same bytes, and their memory does not grow with the rows.
#![cfg(target_os = "linux")]

use crate::support::{Folder, Numbers, error, quakes};
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A folder with a fit to a few rows, whose density is quick to compute.
fn fitted(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.file("few.csv", quakes(8, 1));
    let settings = ["--quick", "--set", "objective=none", "--columns", "latitude,longitude", "--manifold", "sphere:2"];
    folder.good(
        &[&["fit", "few.csv", "--out", "run", "--units", "degrees", "--layout", "latlon"], &settings[..]].concat(),
    );
    folder
}

fn rows(folder: &Folder, number: usize, out: &str) {
    folder.good(&["sample", "run", "-n", &number.to_string(), "--out", out]);
}

fn begin(folder: &Folder, arguments: &[&str]) -> Child {
    folder.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills a command at random moments, at least so often, and resumes it until it ends; how often it was killed, and how often
/// it had left something to go on with.
fn killed(
    folder: &Folder,
    arguments: &[&str],
    [whole, out]: [&str; 2],
    duration: Duration,
    numbers: &mut Numbers,
) -> (usize, usize) {
    let (mut kills, mut inside) = (0, 0);
    let bytes = |name: &str| std::fs::read(folder.path(name)).unwrap();
    let arguments = [arguments, &["--resume", "--save-every", "0", "--out", out]].concat();
    loop {
        let mut child = begin(folder, &arguments);
        std::thread::sleep(duration.mul_f64(0.6 * numbers.uniform()));
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return (kills, inside);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        if folder.path(out).exists() {
            // it had just taken its name: then it is whole
            assert!(bytes(out) == bytes(whole), "{out} is there in part");
            std::fs::remove_file(folder.path(out)).unwrap();
            continue;
        }
        inside += usize::from(folder.list("").iter().any(|name| name.starts_with(&format!(".{out}.journal."))));
    }
}

#[test]
fn ten_kills_at_random_moments_change_no_byte() {
    let folder = fitted("stream-kills");
    rows(&folder, 400_000, "in.parquet");
    rows(&folder, 400_000, "in.csv");
    let mut numbers = Numbers::new(7);
    for (from, to) in [("in.parquet", "parquet"), ("in.csv", "csv"), ("in.parquet", "npy"), ("in.csv", "csv.gz")] {
        let (whole, parts) = (format!("whole.{to}"), format!("parts.{to}"));
        let begun = Instant::now();
        folder.good(&["score", "run", from, "--out", &whole]);
        let duration = begun.elapsed();
        let (mut kills, mut inside) = (0, 0);
        while kills < 10 {
            let (more, caught) = killed(&folder, &["score", "run", from], [&whole, &parts], duration, &mut numbers);
            (kills, inside) = (kills + more, inside + caught);
            assert!(std::fs::read(folder.path(&whole)).unwrap() == std::fs::read(folder.path(&parts)).unwrap(), "{to}");
            std::fs::remove_file(folder.path(&parts)).unwrap();
        }
        println!("{from} to {to}: {kills} kills, {inside} of them while it wrote");
        assert!(inside > 0, "no kill hit the writing: make it longer");
    }
    let left: Vec<String> = folder.list("").into_iter().filter(|name| name.ends_with(".partial")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_draw_that_is_killed_ends_with_the_same_bytes() {
    let folder = fitted("stream-draws");
    let draw = ["sample", "run", "-n", "1500000"];
    let begun = Instant::now();
    folder.good(&[&draw[..], &["--out", "whole.parquet"]].concat());
    let duration = begun.elapsed();
    let mut kills = 0;
    while kills < 5 {
        let names = ["whole.parquet", "parts.parquet"];
        kills += killed(&folder, &draw, names, duration, &mut Numbers::new(kills as u64)).0;
        let same = std::fs::read(folder.path("whole.parquet")).unwrap()
            == std::fs::read(folder.path("parts.parquet")).unwrap();
        assert!(same);
        std::fs::remove_file(folder.path("parts.parquet")).unwrap();
    }
}

/// The most memory that a command had, in bytes.
fn peak(folder: &Folder, arguments: &[&str]) -> usize {
    let mut child = begin(folder, arguments);
    let (status, mut most) = (format!("/proc/{}/status", child.id()), 0);
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: usize = line.and_then(|l| l.trim().strip_suffix(" kB")).map_or(0, |n| n.parse().unwrap());
        most = most.max(kib << 10);
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return most;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn memory_does_not_grow_with_the_rows() {
    let folder = fitted("stream-memory");
    let (few, many) = (300_000, 2_100_000);
    // held as a whole, each further row would take four numbers: what is read and what is added
    let held = (many - few) * 4 * 8;
    for format in ["parquet", "csv", "npy"] {
        let most = |number: usize| {
            rows(&folder, number, &format!("in.{format}"));
            let (input, out) = (format!("in.{format}"), format!("out.{format}"));
            // arrays have no names
            let columns: &[&str] = if format == "npy" { &["--columns", "1,2"] } else { &[] };
            peak(&folder, &[&["score", "run", &input, "--out", &out], columns].concat())
        };
        let (small, large) = (most(few), most(many));
        println!("{format}: {} MB for {few} rows, {} MB for {many}", small >> 20, large >> 20);
        assert!(large < 150 << 20, "{format}: {} MB", large >> 20);
        assert!(large < small + held / 3, "{format}: {} MB grow to {} MB", small >> 20, large >> 20);
    }
    let judged = |input: &str| peak(&folder, &["evaluate", "run", input]);
    rows(&folder, few, "few.parquet");
    rows(&folder, many, "many.parquet");
    let (small, large) = (judged("few.parquet"), judged("many.parquet"));
    println!("evaluate: {} MB for {few} rows, {} MB for {many}", small >> 20, large >> 20);
    // up to 2²⁰ different points are counted exactly, in about 40 bytes each
    assert!(large < small + (60 << 20), "{} MB grow to {} MB", small >> 20, large >> 20);
}

#[test]
fn ctrl_c_says_how_to_resume_and_keeps_what_was_done() {
    let folder = fitted("stream-ctrl-c");
    rows(&folder, 1_000_000, "in.parquet");
    let command = ["score", "run", "in.parquet", "--out", "out.parquet", "--save-every", "0"];
    let mut child = folder.command(&command).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while !folder.list("").iter().any(|name| name.starts_with(".out.parquet.journal.")) {
        assert!(begun.elapsed() < Duration::from_secs(60) && child.try_wait().unwrap().is_none(), "it never began");
        std::thread::sleep(Duration::from_millis(2));
    }
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(error(&output).contains("--resume"), "{}", error(&output));
    assert!(!folder.path("out.parquet").exists());
    // another command does not go on with it
    let other = folder.minvel(&["score", "run", "in.parquet", "--level", "--out", "out.parquet", "--resume"]);
    assert_eq!(other.status.code(), Some(2), "{}", error(&other));
    assert!(error(&other).contains("other level"), "{}", error(&other));
    folder.good(&[&command[..], &["--resume"]].concat());
    folder.good(&["score", "run", "in.parquet", "--out", "whole.parquet"]);
    assert!(std::fs::read(folder.path("out.parquet")).unwrap() == std::fs::read(folder.path("whole.parquet")).unwrap());
}

/// Rows that come in a pipe are scored as they come, to a file of any format too.
#[test]
fn pipes_are_streams_too() {
    let folder = fitted("stream-pipes");
    rows(&folder, 70_000, "in.csv");
    folder.good(&["score", "run", "in.csv", "--out", "whole.csv"]);
    let text = std::fs::read(folder.path("in.csv")).unwrap();
    for out in ["-", "piped.parquet"] {
        let command = ["score", "run", "-", "--out", out];
        let mut child = folder.command(&command).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stdin, text) = (child.stdin.take().unwrap(), text.clone());
        let writer = std::thread::spawn(move || text.chunks(1000).try_for_each(|part| stdin.write_all(part)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success());
        if out == "-" {
            assert!(output.stdout == std::fs::read(folder.path("whole.csv")).unwrap());
        }
    }
    folder.good(&["score", "run", "in.csv", "--out", "whole.parquet"]);
    assert!(
        std::fs::read(folder.path("piped.parquet")).unwrap() == std::fs::read(folder.path("whole.parquet")).unwrap()
    );
    // a row that is no point ends it, and leaves nothing behind
    let mut bad = text;
    bad.extend(b"100,20\n");
    folder.file("bad.csv", bad);
    let output = folder.minvel(&["score", "run", "bad.csv", "--out", "bad-scored.csv"]);
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
    assert!(error(&output).contains("line 70002"), "{}", error(&output));
    assert!(folder.list("").iter().all(|name| !name.contains("bad-scored")));
}
