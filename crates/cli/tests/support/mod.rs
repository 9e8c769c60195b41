//! The program and files to run it on.
#![allow(dead_code)] // each binary uses its own part

pub mod server;

use minvel_testing::Scratch;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of a test's own, gone when it ends.
pub struct Folder(Scratch);

impl Folder {
    /// An empty one; the name is the test's.
    pub fn new(name: &str) -> Self {
        Folder(Scratch::new(name))
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    /// A path in it, as text.
    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_string()
    }

    /// A file in it; its path as text.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), contents).unwrap();
        self.text(name)
    }

    /// All files below one of its folders, by name; none where there is no such folder.
    pub fn files(&self, below: &str) -> Vec<String> {
        fn walk(folder: &Path, out: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
                match entry.path().is_dir() {
                    true => walk(&entry.path(), out),
                    false => out.push(entry.file_name().into_string().unwrap()),
                }
            }
        }
        let mut out = vec![];
        walk(&self.path(below), &mut out);
        out.sort();
        out
    }

    /// What lies in it or in a folder below, by name.
    pub fn list(&self, below: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(below)).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs the program inside it.
    pub fn minvel(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The program, to be run inside it.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_minvel"));
        for name in ["MINVEL_DATA", "MINVEL_CATALOGUE", "SSL_CERT_FILE", "no_proxy", "NO_PROXY"] {
            command.env_remove(name);
        }
        for name in ["http_proxy", "https_proxy", "all_proxy"] {
            command.env_remove(name).env_remove(name.to_uppercase());
        }
        command.env("XDG_CACHE_HOME", self.path("cache"));
        command.current_dir(self.0.folder()).args(arguments);
        command
    }

    /// Runs the program, which must succeed; what it prints.
    pub fn good(&self, arguments: &[&str]) -> String {
        let output = self.minvel(arguments);
        assert!(output.status.success(), "{arguments:?} failed:\n{}", error(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the program with --json, which must print one object and nothing else.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.good(&[arguments, &["--json"]].concat());
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{arguments:?}: {e}\n{text}"));
        assert!(value.is_object(), "{arguments:?} prints no object");
        value
    }
}

/// What the program complains about.
pub fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Numbers that look random, always the same ones.
pub struct Numbers(u64);

impl Numbers {
    /// By seed.
    pub fn new(seed: u64) -> Self {
        Numbers(seed)
    }

    /// In [0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f64 / (1u64 << 24) as f64
    }

    /// About standard normal: a sum of twelve.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Places on Earth about two faults, with a name and a depth each; one name holds a comma and quotes.
pub fn quakes(rows: usize, seed: u64) -> String {
    let mut numbers = Numbers::new(seed);
    let mut text = String::from("# made by a test\nplace,latitude,longitude,depth\n");
    for i in 0..rows {
        let along = numbers.uniform();
        let (lat, lon) =
            if numbers.uniform() < 0.6 { (-50.0 + 90.0 * along, -70.0 - 40.0 * along) } else { (38.0, 142.0) };
        let (lat, lon) = (lat + 3.0 * numbers.normal(), lon + 3.0 * numbers.normal());
        let place = if i == 7 { "\"off \"\"Hokkaido\"\", Japan\"".to_string() } else { format!("place {i}") };
        text += &format!("{place},{lat:.4},{lon:.4},{:.1}\n", 700.0 * numbers.uniform());
    }
    text
}

/// Settings that make a fit a matter of a second.
pub const TINY: [&str; 9] = [
    "--quick",
    "--set",
    "learning.steps=20",
    "--set",
    "learning.looks=2",
    "--set",
    "network.hidden=[16]",
    "--set",
    "partition.draws=2000",
];

/// Splits few rows as if they were many, so that there is a correction.
pub const SPLIT: [&str; 2] = ["--set", "few.rows=0"];

/// Numbers of a column of a CSV file by its name.
pub fn column(path: &Path, name: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let at = lines.next().unwrap().split(',').position(|n| n == name).unwrap_or_else(|| panic!("no column {name}"));
    // places may hold commas: count from the end
    let width = text.lines().find(|line| !line.starts_with('#')).unwrap().split(',').count();
    lines.map(|line| line.rsplit(',').nth(width - 1 - at).unwrap().parse().unwrap()).collect()
}

/// A grey PNG of 28 × 28.
pub fn picture(shade: impl Fn(usize, usize) -> u8) -> Vec<u8> {
    let pixels: Vec<u8> = (0..784).map(|k| shade(k / 28, k % 28)).collect();
    png([28, 28], (8, 0), &[], &pixels)
}

/// A PNG of `[height, width]` pixels with stored blocks only, so that no encoder is needed: depth and colour type, chunks between
/// header and pixels, and the pixels row after row.
pub fn png([height, width]: [usize; 2], (depth, colour): (u8, u8), more: &[(&[u8], &[u8])], pixels: &[u8]) -> Vec<u8> {
    let rows: Vec<u8> = pixels.chunks(pixels.len() / height).flat_map(|row| [&[0], row].concat()).collect();
    let length = rows.len() as u16;
    let mut data = vec![0x78, 0x01, 1];
    data.extend(length.to_le_bytes());
    data.extend((!length).to_le_bytes());
    data.extend(&rows);
    let (mut a, mut b) = (1u32, 0u32);
    rows.iter().for_each(|r| (a, b) = ((a + *r as u32) % 65521, (b + a + *r as u32) % 65521));
    data.extend((b << 16 | a).to_be_bytes());
    let chunk = |kind: &[u8], data: &[u8]| {
        let body = [kind, data].concat();
        let crc = !body.iter().fold(!0u32, |crc, byte| {
            (0..8).fold(crc ^ *byte as u32, |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 })
        });
        [&(data.len() as u32).to_be_bytes()[..], &body, &crc.to_be_bytes()].concat()
    };
    let size = [width, height].map(|n| (n as u32).to_be_bytes()).concat();
    let header = [&size[..], &[depth, colour, 0, 0, 0]].concat();
    let mut file = [b"\x89PNG\r\n\x1a\n".to_vec(), chunk(b"IHDR", &header)].concat();
    more.iter().for_each(|(kind, data)| file.extend(chunk(kind, data)));
    [file, chunk(b"IDAT", &data), chunk(b"IEND", &[])].concat()
}

/// An idx file of bytes.
pub fn idx(dims: &[u32], entries: impl Iterator<Item = u8>) -> Vec<u8> {
    let lengths = dims.iter().flat_map(|n| n.to_be_bytes());
    [0, 0, 8, dims.len() as u8].into_iter().chain(lengths).chain(entries).collect()
}

/// Images whose upper rows are as bright as their label is large: `count` to learn from and as few to test with.
pub fn digits(folder: &Folder, count: u32) {
    for (part, count) in [("train", count), ("t10k", 250)] {
        let pixels = (0..count * 784).map(|i| if i % 784 < 28 * (i / 784 % 10) { 255 } else { 0 });
        folder.file(&format!("{part}-images-idx3-ubyte"), idx(&[count, 28, 28], pixels));
        folder.file(&format!("{part}-labels-idx1-ubyte"), idx(&[count], (0..count).map(|i| (i % 10) as u8)));
    }
}
