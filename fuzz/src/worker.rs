//! The process that runs inputs: it tells what it found by a few files in its folder.

use crate::coverage::Map;
use crate::memory;
use crate::mutation::Source;
use crate::targets::{Place, Target};
use minvel::Limits;
use std::collections::HashSet;
use std::fmt::Write;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// The limit that readers have here.
pub const LIMIT: u64 = 16 << 20;

/// More than any input may take, with lists that grow and what decoders need themselves.
pub const MOST_MEMORY: usize = 96 << 20;

/// Longer than any input may take, on a busy machine.
pub const LONGEST: Duration = Duration::from_secs(10);

/// Exit status of a worker that hangs.
pub const HUNG: i32 = 71;

/// The last panic: where, and what it said.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Panics are remembered instead of printed, also those that the library catches itself.
fn listen() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or(String::new(), |at| format!("{}:{}", at.file(), at.line()));
        let text = panic.payload().downcast_ref::<String>().map(String::as_str);
        let what = text.or(panic.payload().downcast_ref::<&str>().copied()).unwrap_or("");
        if let Ok(mut last) = PANIC.lock() {
            *last = format!("{place}: {what}");
        }
    }));
}

/// Ends the process if an input takes too long; `started` is in milliseconds since `begun`, 0 while none runs.
fn watch(begun: Instant, started: &'static AtomicU64) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let since = started.load(Ordering::Relaxed);
            if since > 0 && begun.elapsed() > Duration::from_millis(since) + LONGEST {
                std::process::exit(HUNG);
            }
        }
    });
}

/// What a worker tells at the end, and every second before.
#[derive(Default)]
struct Tally {
    executions: u64,
    /// Inputs of which something came out.
    accepted: u64,
    peak: usize,
    slowest: Duration,
    corpus: usize,
    edges: usize,
}

impl Tally {
    fn write(&self, folder: &Path) {
        let Tally { executions, accepted, peak, slowest, corpus, edges } = self;
        let text = format!("{executions} {accepted} {peak} {} {corpus} {edges}", slowest.as_millis());
        let _ = fs::write(folder.join("tally.new"), text).and_then(|()| {
            fs::rename(folder.join("tally.new"), folder.join("tally")) // whoever reads sees all or nothing
        });
    }
}

/// Runs inputs for some seconds.
pub fn run(target: &Target, folder: &Path, seconds: f64, seed: u64) -> ExitCode {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    listen();
    Limits { bytes: LIMIT }.set();
    let place = Place::new(folder);
    let mut source = Source::new(seed, (target.seeds)(&place), target.words);
    let begun = Instant::now();
    watch(begun, &STARTED);
    let (mut map, mut tally, mut known) = (Map::new(), Tally::default(), HashSet::new());
    let mut told = begun;
    let mut next_seed = source.corpus.clone().into_iter();
    while begun.elapsed().as_secs_f64() < seconds {
        let input = next_seed.next().unwrap_or_else(|| (target.repair)(source.next()));
        let _ = fs::write(folder.join("current"), &input);
        STARTED.store(begun.elapsed().as_millis() as u64 + 1, Ordering::Relaxed);
        map.clear();
        let start = Instant::now();
        let (outcome, peak) = memory::peak(|| catch_unwind(AssertUnwindSafe(|| (target.run)(&input, &place))));
        let took = start.elapsed();
        STARTED.store(0, Ordering::Relaxed);
        tally.executions += 1;
        tally.accepted += u64::from(matches!(outcome, Ok(true)));
        tally.slowest = tally.slowest.max(took);
        tally.peak = tally.peak.max(peak);
        let finding = match outcome {
            Err(_) => Some(PANIC.lock().map_or(String::new(), |last| last.clone())),
            Ok(_) if peak > MOST_MEMORY => Some(format!("memory: {} MB", peak >> 20)),
            Ok(_) => None,
        };
        // a panic at another place is another finding; of too much memory one is enough
        if let Some(what) = finding
            && known.insert(what.split(": ").next().map(str::to_string))
        {
            keep(folder, known.len(), &what, &input);
        }
        if map.is_there() && map.is_news() && source.corpus.len() < 5000 {
            source.corpus.push(input);
        }
        if told.elapsed() > Duration::from_secs(1) {
            told = Instant::now();
            (tally.corpus, tally.edges) = (source.corpus.len(), map.edges());
            tally.write(folder);
        }
    }
    (tally.corpus, tally.edges) = (source.corpus.len(), map.edges());
    tally.write(folder);
    ExitCode::SUCCESS
}

/// Leaves an input and what it did in the folder.
fn keep(folder: &Path, number: usize, what: &str, input: &[u8]) {
    let _ = fs::write(folder.join(format!("finding-{number}.bin")), input);
    let _ = fs::write(folder.join(format!("finding-{number}.txt")), what);
}

/// Runs one input and says what happens.
pub fn replay(target: &Target, input: &Path) -> ExitCode {
    static FOLDER: OnceLock<std::path::PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| std::env::temp_dir().join(format!("minvel-replay-{}", std::process::id())));
    let (Ok(bytes), Ok(())) = (fs::read(input), fs::create_dir_all(folder)) else {
        eprintln!("error: cannot read {}", input.display());
        return ExitCode::from(2);
    };
    Limits { bytes: LIMIT }.set();
    let place = Place::new(folder);
    drop((target.seeds)(&place));
    let start = Instant::now();
    let (outcome, peak) = memory::peak(|| catch_unwind(AssertUnwindSafe(|| (target.run)(&bytes, &place))));
    let _ = fs::remove_dir_all(folder);
    let mut out = String::new();
    let _ = write!(out, "{} bytes: {} kB at most, {:?}", bytes.len(), peak >> 10, start.elapsed());
    println!("{out}, {}", if outcome.is_ok() { "no panic" } else { "a panic" });
    ExitCode::from(u8::from(outcome.is_err() || peak > MOST_MEMORY))
}
