//! Good files, spoilt: bytes flipped, cut, repeated, exchanged, set to telling values, numbers and words of the format.

use minvel_engine::random::{Draw, Key, Stream};

/// Longer inputs are cut: what matters shows in small ones.
const LONGEST: usize = 1 << 16;

/// Bytes that mean something in one of the formats.
const TELLING: &[u8] = b"\"\0\n\r,;\t #%/\xff\x7f\x80-.e9'()[]{}:";

/// Numbers that mean something as a length, a count or an offset.
const NUMBERS: [u64; 14] = [
    0,
    1,
    0x7f,
    0xff,
    0xffff,
    1 << 16,
    1 << 24,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 40,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// Where inputs come from.
pub struct Source {
    random: Stream,
    /// Good files, and what was found to reach new code.
    pub corpus: Vec<Vec<u8>>,
    words: &'static [&'static str],
}

impl Source {
    /// Begins with good files and words of their format.
    pub fn new(seed: u64, corpus: Vec<Vec<u8>>, words: &'static [&'static str]) -> Self {
        Source { random: Stream::new(Key::new(seed, 0), 7), corpus, words }
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.random.draw(Draw::Integer(n.max(1) as u32)) as usize
    }

    /// The next input.
    pub fn next(&mut self) -> Vec<u8> {
        let chosen = self.below(self.corpus.len());
        let mut bytes = self.corpus[chosen].clone();
        // half of the inputs are changed once, so that they stay nearly good
        let changes = if self.below(2) == 0 { 1 } else { 1 + self.below(6) };
        for _ in 0..changes {
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
        match self.below(12) {
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
            6 => self.set_number(bytes, at),
            7 => {
                let other = self.below(self.corpus.len());
                let from = self.below(self.corpus[other].len());
                let until = (from + 1 + self.below(200)).min(self.corpus[other].len());
                let piece = self.corpus[other].get(from..until).unwrap_or(&[]).to_vec();
                bytes.splice(at..at + span, piece);
            }
            8 => {
                // near the end, where Parquet and zip keep their tables
                let back = 1 + self.below(bytes.len().min(64));
                let end = bytes.len() - back;
                bytes[end] = self.below(256) as u8;
            }
            9 => self.write_number(bytes, at),
            10 if !self.words.is_empty() => {
                let word = self.words[self.below(self.words.len())].as_bytes().to_vec();
                let replaced = if self.below(2) == 0 { 0 } else { word.len().min(bytes.len() - at) };
                bytes.splice(at..at + replaced, word);
            }
            _ => {
                // a part of the file once more, elsewhere
                let from = self.below(bytes.len());
                let piece = bytes[from..(from + 4 * span).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
        }
        bytes.truncate(LONGEST);
    }

    /// A number of two, four or eight bytes with a telling value, in either order.
    fn set_number(&mut self, bytes: &mut [u8], at: usize) {
        let value = NUMBERS[self.below(NUMBERS.len())];
        let width = [2, 4, 8][self.below(3)];
        let mut raw = value.to_le_bytes()[..width].to_vec();
        if self.below(2) == 0 {
            raw.reverse();
        }
        bytes[at..].iter_mut().zip(raw).for_each(|(byte, new)| *byte = new);
    }

    /// A telling number in digits, in place of the next that stands there.
    fn write_number(&mut self, bytes: &mut Vec<u8>, at: usize) {
        let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|k| at + k) else { return };
        let length = bytes[start..].iter().take_while(|b| b.is_ascii_digit()).count();
        let value = NUMBERS[self.below(NUMBERS.len())];
        let text = match self.below(4) {
            0 => format!("-{value}"),
            1 => format!("1e{}", value.min(400)),
            _ => value.to_string(),
        };
        bytes.splice(start..start + length, text.into_bytes());
    }
}
