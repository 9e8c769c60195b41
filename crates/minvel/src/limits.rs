//! How much memory a file may take when it is read.
//!
//! A few bytes can announce, or unpack to, more than any machine has. Readers therefore count what they are about to take
//! and stop at a limit, with an error that says the size, the limit and how to raise it.
//!
//! **Conventions.** The limit belongs to the process, like those of an operating system: readers lie below models and
//! experiments, and all have the same. A table or array may take all of it; a picture half, since several are decoded
//! concurrently; text that becomes a tree of values (settings, JSON, headers of safetensors) a 64th, since each of its bytes
//! can become sixteen and more. While a list grows, the old one and the new one are there together: the peak is up to three
//! times the limit. **Checked by** crates/cli/tests/program/limits.rs, and by the fuzzer in `fuzz/`.

use std::fmt;
use std::io::{self, BufRead, Read};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most memory that the contents of a file may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of a table, an array or a model, in bytes.
    pub bytes: u64,
}

static BYTES: AtomicU64 = AtomicU64::new(Limits::DEFAULT.bytes);

/// Memory for a pixel while it is decoded: coefficients of a progressive JPEG (6), what the decoder gives (3 or 4), and ours.
const BYTES_PER_PIXEL: u64 = 12;

impl Limits {
    /// 4 GiB.
    pub const DEFAULT: Limits = Limits { bytes: 4 << 30 };

    /// Those of this process.
    pub fn current() -> Limits {
        Limits { bytes: BYTES.load(Ordering::Relaxed) }
    }

    /// Makes them those of this process, from now on.
    pub fn set(self) {
        BYTES.store(self.bytes, Ordering::Relaxed);
    }

    /// The most pixels of a picture: 178 956 970 by default.
    pub fn pixels(&self) -> u64 {
        self.bytes / 2 / BYTES_PER_PIXEL
    }

    /// The longest text that becomes a tree of values: 64 MiB by default.
    pub fn text(&self) -> u64 {
        self.bytes / 64
    }

    /// Memory that a picture takes while it is decoded from a file of so many bytes.
    pub fn of_picture(pixels: u64, file: u64) -> u64 {
        pixels.saturating_mul(BYTES_PER_PIXEL).saturating_add(file)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits::DEFAULT
    }
}

/// A number of bytes, as `500M`, `16G` or `16GiB`: powers of 1024.
impl FromStr for Limits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid size `{text}`; expected a number of bytes, with K, M, G or T, such as 16G");
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let shift = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            _ => return Err(wrong()),
        };
        let number: u64 = digits.trim().parse().map_err(|_| wrong())?;
        let bytes = number.checked_mul(1 << shift).filter(|n| *n > 0).ok_or_else(wrong)?;
        Ok(Limits { bytes })
    }
}

/// Something takes more memory than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Bytes that were announced or met.
    size: u64,
    /// Whether the size is announced; otherwise reading stopped at it.
    announced: bool,
    /// Which part of the limit it may take: one of so many.
    share: u64,
}

/// More than this is no file of anybody's.
const ABSURD: u64 = 1 << 50;

impl TooLarge {
    /// An error if something announces more than its share of the limit, one of so many.
    pub fn check(size: u64, share: u64) -> Result<(), TooLarge> {
        match size > Limits::current().bytes / share {
            true => Err(TooLarge { size, announced: true, share }),
            false => Ok(()),
        }
    }
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let limit = Limits::current().bytes;
        let verb = if self.announced { "would take" } else { "takes at least" };
        let (size, most) = (Size(self.size), Size(limit / self.share));
        if self.size > ABSURD {
            return write!(
                f,
                "{verb} {size} of memory, and the limit is {most} (--max-size): it is damaged, fetch or write it again"
            );
        }
        // the least power of two that suffices, as far as is known
        let enough = self.size.saturating_mul(self.share).max(limit.saturating_add(1));
        let enough = enough.checked_next_power_of_two().unwrap_or(u64::MAX);
        write!(
            f,
            "{verb} {size} of memory, and the limit is {most}: if you trust the file, raise the limit with --max-size \
             {}",
            Size(enough).flag()
        )
    }
}

impl std::error::Error for TooLarge {}

impl From<TooLarge> for io::Error {
    fn from(why: TooLarge) -> Self {
        io::Error::other(why)
    }
}

/// A number of bytes for people.
struct Size(u64);

const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

impl Size {
    /// In the largest unit of which there is at least one.
    fn unit(&self) -> usize {
        (self.0.checked_ilog2().unwrap_or(0) / 10) as usize
    }

    /// As the flag takes it, rounded up.
    fn flag(&self) -> String {
        let unit = self.unit().min(4);
        let letter = ["", "K", "M", "G", "T"][unit];
        format!("{}{letter}", self.0.div_ceil(1 << (10 * unit)))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (unit, name) = (self.unit(), UNITS[self.unit()]);
        let tenths = (self.0 as u128 * 10) >> (10 * unit);
        match tenths % 10 {
            0 => write!(f, "{} {name}", tenths / 10),
            rest => write!(f, "{}.{rest} {name}", tenths / 10),
        }
    }
}

/// Counts memory as it is taken.
pub struct Meter {
    used: u64,
    limit: u64,
}

impl Default for Meter {
    fn default() -> Self {
        Meter::new()
    }
}

impl Meter {
    /// Of the contents of one file.
    pub fn new() -> Self {
        Meter { used: 0, limit: Limits::current().bytes }
    }

    /// Bytes counted so far.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Counts bytes; an error beyond the limit.
    pub fn take(&mut self, bytes: u64) -> Result<(), TooLarge> {
        self.used = self.used.saturating_add(bytes);
        match self.used > self.limit {
            true => Err(TooLarge { size: self.used, announced: false, share: 1 }),
            false => Ok(()),
        }
    }
}

/// A reader that fails with [`TooLarge`] when more bytes come than may.
pub struct Bounded<R> {
    inner: R,
    meter: Meter,
}

impl<R> Bounded<R> {
    /// Of as many bytes as the limit allows.
    pub fn new(inner: R) -> Self {
        Bounded { inner, meter: Meter::new() }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(out)?;
        self.meter.take(count as u64)?;
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Bounded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.meter.take(0)?;
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        // the next `fill_buf` says if it was too much
        let _ = self.meter.take(count as u64);
        self.inner.consume(count);
    }
}
