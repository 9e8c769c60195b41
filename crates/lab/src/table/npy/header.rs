//! The header of an array.

use super::Trouble;
use crate::table::columns::MOST_COLUMNS;
use half::f16;
use std::io::Read;

/// The longest header that is read.
const LONGEST_HEADER: usize = 1 << 16;

/// The most axes of an array, as in NumPy.
const MOST_AXES: usize = 64;

/// What the header says.
pub struct Header {
    kind: char,
    pub bytes: usize,
    big_endian: bool,
    pub fortran: bool,
    pub shape: Vec<usize>,
}

/// The text after `'key':` in the header's dictionary.
fn entry<'a>(header: &'a str, key: &str) -> Result<&'a str, String> {
    let quoted = [format!("'{key}'"), format!("\"{key}\"")];
    let at = quoted.iter().find_map(|k| header.find(k.as_str()).map(|i| i + k.len()));
    let rest = at.and_then(|i| header[i..].trim_start().strip_prefix(':'));
    rest.map(str::trim_start).ok_or_else(|| format!("the header of the array has no `{key}`: the file is damaged"))
}

impl Header {
    fn parse(text: &str) -> Result<Self, String> {
        let descr = entry(text, "descr")?;
        let name: String = match descr.chars().next() {
            Some(quote @ ('\'' | '"')) => descr[1..].chars().take_while(|c| *c != quote).collect(),
            _ => return Err("the array has named fields: save its columns as a plain array of numbers".into()),
        };
        let unknown = || format!("the numbers are of type `{name}`; expected floats or integers of at most 8 bytes");
        let (order, rest) = match name.chars().next() {
            Some(c @ ('<' | '>' | '|' | '=')) => (c, &name[1..]),
            _ => ('<', name.as_str()),
        };
        let kind = rest.chars().next().filter(|k| "fiub".contains(*k)).ok_or_else(unknown)?;
        let bytes: usize = rest[1..].parse().map_err(|_| unknown())?;
        if !matches!((kind, bytes), ('f', 2 | 4 | 8) | ('i' | 'u', 1 | 2 | 4 | 8) | ('b', 1)) {
            return Err(unknown());
        }
        let fortran = entry(text, "fortran_order")?.starts_with("True");
        let shape = entry(text, "shape")?;
        let shape = shape.strip_prefix('(').and_then(|s| s.split(')').next());
        let shape = shape.ok_or("the array's shape cannot be read: the file is damaged")?;
        let axes = shape.split(',').map(str::trim).filter(|s| !s.is_empty());
        let shape: Vec<usize> = axes
            .map(|n| n.parse().map_err(|_| format!("the array's shape contains `{n}`")))
            .collect::<Result<_, _>>()?;
        if shape.is_empty() {
            return Err("the array is a single number, not a table".into());
        }
        if shape.len() > MOST_AXES {
            return Err(format!("the array has {} axes: at most {MOST_AXES} are supported", shape.len()));
        }
        Ok(Header { kind, bytes, big_endian: order == '>', fortran, shape })
    }

    /// Rows and columns.
    pub fn sizes(&self) -> Result<(usize, usize), String> {
        let columns = self.shape[1..].iter().try_fold(1usize, |p, n| p.checked_mul(*n));
        match columns {
            Some(columns @ 1..=MOST_COLUMNS) => Ok((self.shape[0], columns)),
            _ => {
                Err(format!("the array has shape {:?}: 1 to {MOST_COLUMNS} numbers per row are supported", self.shape))
            }
        }
    }

    /// The number in some bytes, and its text where f64 does not hold it.
    pub fn number(&self, raw: &[u8]) -> f64 {
        let mut little = [0; 8];
        little[..self.bytes].copy_from_slice(raw);
        if self.big_endian {
            little[..self.bytes].reverse();
        }
        let bits = u64::from_le_bytes(little);
        let unused = 64 - 8 * self.bytes as u32;
        match (self.kind, self.bytes) {
            ('f', 8) => f64::from_bits(bits),
            ('f', 4) => f32::from_bits(bits as u32) as f64,
            ('f', _) => f16::from_bits(bits as u16).to_f64(),
            ('i', _) => ((bits << unused) as i64 >> unused) as f64,
            _ => bits as f64,
        }
    }
}

pub fn header(bytes: &mut dyn Read) -> Result<Header, Trouble> {
    let mut start = [0; 8];
    bytes.read_exact(&mut start)?;
    if start[..6] != *b"\x93NUMPY" {
        return Err("is not a NumPy array".to_string().into());
    }
    let length = match start[6] {
        1 => {
            let mut length = [0; 2];
            bytes.read_exact(&mut length)?;
            u16::from_le_bytes(length) as usize
        }
        2 | 3 => {
            let mut length = [0; 4];
            bytes.read_exact(&mut length)?;
            u32::from_le_bytes(length) as usize
        }
        version => return Err(format!("is a NumPy array of format {version}; expected 1 to 3").into()),
    };
    if length > LONGEST_HEADER {
        return Err(format!("the array's header has {length} bytes: the file is damaged").into());
    }
    let mut text = vec![0; length];
    bytes.read_exact(&mut text)?;
    Ok(Header::parse(&String::from_utf8_lossy(&text))?)
}
