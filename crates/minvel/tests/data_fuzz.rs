//! Readers are fuzzed: whatever bytes they get, they return, without panic and without absurd memory.
//!
//! A deterministic mutation fuzzer: good files of every format, with bytes flipped, cut, repeated, spliced and set to telling
//! values. Two seconds by default; `MINVEL_FUZZ_SECONDS=600 cargo test -p minvel --test data_fuzz -- --nocapture` for long.

#[path = "support/scratch.rs"]
mod scratch;

use minvel::data::{Column, Dataset, Layout, Options, Request, Table, write_table};
use minvel_engine::random::{Draw, Key, Stream};
use scratch::Scratch;
use std::alloc::{GlobalAlloc, Layout as Memory, System};
use std::io::Write;
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Counts the bytes in use and the most there were.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does all work
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Memory) -> *mut u8 {
        let now = NOW.fetch_add(memory.size(), Ordering::Relaxed) + memory.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promise
        unsafe { System.alloc(memory) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, memory: Memory) {
        NOW.fetch_sub(memory.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise
        unsafe { System.dealloc(pointer, memory) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// More than any file of a few kilobytes may take.
const MOST_MEMORY: usize = 256 << 20;

/// Longer than any file of a few kilobytes may take, on a busy machine.
const LONGEST: Duration = Duration::from_secs(10);

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Good files to begin with.
fn seeds(scratch: &Scratch) -> Vec<Vec<u8>> {
    let text = |delimiter: &str| {
        let rows: String =
            (0..35).map(|i| format!("\"n{i}\"{delimiter}{}.5{delimiter}{}\n", i - 17, 10 * i - 170)).collect();
        format!("# note\nname{delimiter}lat{delimiter}lon\n{rows}").into_bytes()
    };
    let mut seeds = vec![text(","), text(";"), text("\t"), text("  "), gzip(&text(",")), b"1 2\n3 4\n".to_vec()];
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data_fixtures");
    let mut files: Vec<_> = std::fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    seeds.extend(files.iter().map(|path| std::fs::read(path).unwrap()));
    if cfg!(feature = "parquet") {
        let mut words = Column::named("word");
        (0..35).for_each(|i| words.push_odd(format!("w{}", i % 5)));
        let path = scratch.path("seed.parquet");
        write_table(&path, &[words, Column::numbers("x", (0..35).map(f64::from).collect())]).unwrap();
        seeds.push(std::fs::read(path).unwrap());
    }
    seeds
}

/// Bytes that mean something in one of the formats.
const TELLING: &[u8] = b"\"\0\n\r,;\t #%/\xff\x7f\x80-.e9'()";

struct Fuzzer {
    random: Stream,
    seeds: Vec<Vec<u8>>,
}

impl Fuzzer {
    fn below(&mut self, n: usize) -> usize {
        self.random.draw(Draw::Integer(n.max(1) as u32)) as usize
    }

    /// A good file, spoilt a few times.
    fn next(&mut self) -> Vec<u8> {
        let seed = self.below(self.seeds.len());
        let mut bytes = self.seeds[seed].clone();
        for _ in 0..1 + self.below(6) {
            self.spoil(&mut bytes);
        }
        bytes
    }

    fn spoil(&mut self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            bytes.push(self.below(256) as u8);
        }
        let at = self.below(bytes.len());
        let span = (1 + self.below(16)).min(bytes.len() - at);
        match self.below(9) {
            0 => bytes[at] ^= 1 << self.below(8),
            1 => bytes[at] = self.below(256) as u8,
            2 => bytes[at] = TELLING[self.below(TELLING.len())],
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..at + span)),
            5 => {
                let piece = bytes[at..at + span].to_vec();
                let times = 1 + self.below(40);
                bytes.splice(at..at, piece.repeat(times));
            }
            6 => {
                // a length or offset with a telling value
                let value = [0u32, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xffff, 1 << 24][self.below(7)];
                for (byte, new) in bytes[at..].iter_mut().zip(value.to_le_bytes()) {
                    *byte = new;
                }
            }
            7 => {
                let other = self.below(self.seeds.len());
                let from = self.below(self.seeds[other].len());
                let until = (from + 1 + self.below(200)).min(self.seeds[other].len());
                let piece = self.seeds[other][from..until].to_vec();
                bytes.splice(at..at + span, piece);
            }
            _ => {
                // near the end, where Parquet and zip keep their tables
                let back = 1 + self.below(bytes.len().min(64));
                let end = bytes.len() - back;
                bytes[end] = self.below(256) as u8;
            }
        }
        bytes.truncate(1 << 16);
    }
}

/// Reads a file in every way; it does not matter what comes out.
fn exercise(path: &Path) {
    let mut requests = vec![Request::default()];
    for (manifold, layout) in [("sphere:2", None), ("torus:2", None), ("so3", Some(Layout::RotationMatrix))] {
        let layout = layout.map(|l| vec![l]);
        requests.push(Request { manifold: Some(manifold.into()), layout, ..Request::default() });
    }
    if let Ok(table) = Table::read(path, &Options::default()) {
        for request in &requests {
            if let Ok(data) = Dataset::of(table.clone(), request) {
                assert!(data.points.iter().all(|x| x.is_finite()), "points are finite");
                let columns = data.coordinates.table(&data.points).expect("points go back to a table");
                assert_eq!(columns[0].values.len(), data.rows());
            }
        }
    }
}

#[test]
fn fuzz_readers_never_panic_nor_take_absurd_memory() {
    let seconds = std::env::var("MINVEL_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(2.0);
    let seed = std::env::var("MINVEL_FUZZ_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let scratch = Scratch::new("fuzz");
    let mut fuzzer = Fuzzer { random: Stream::new(Key::new(seed, 0), 7), seeds: seeds(&scratch) };
    for good in &fuzzer.seeds {
        // the fuzzer begins where readers succeed, except on two files that are refused on purpose
        let _ = Table::read(&scratch.file("fuzz.bin", good), &Options::default());
    }
    let (begun, mut count, mut slowest, mut failures) = (Instant::now(), 0u64, Duration::ZERO, vec![]);
    let most = MOST.load(Ordering::Relaxed);
    while begun.elapsed().as_secs_f64() < seconds && failures.len() < 20 {
        let bytes = fuzzer.next();
        let path = scratch.file("fuzz.bin", &bytes);
        MOST.store(NOW.load(Ordering::Relaxed), Ordering::Relaxed);
        let start = (Instant::now(), NOW.load(Ordering::Relaxed));
        let outcome = catch_unwind(|| exercise(&path));
        let (took, memory) = (start.0.elapsed(), MOST.load(Ordering::Relaxed).saturating_sub(start.1));
        slowest = slowest.max(took);
        count += 1;
        if outcome.is_err() || memory > MOST_MEMORY || took > LONGEST {
            let kept = std::env::temp_dir().join(format!("minvel-fuzz-{seed}-{count}.bin"));
            std::fs::write(&kept, &bytes).unwrap();
            failures.push(format!("{}: panic {}, {} MB, {took:?}", kept.display(), outcome.is_err(), memory >> 20));
        }
    }
    println!(
        "{count} files in {:.0} s, the slowest took {slowest:?}; seeds took {} kB",
        begun.elapsed().as_secs_f64(),
        most >> 10
    );
    assert!(failures.is_empty(), "{failures:#?}");
}
