//! Bytes as text (RFC 4648).

use serde::{Deserialize, Deserializer, Serializer, de};

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as text.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = (0..3).fold(0u32, |word, i| word << 8 | *three.get(i).unwrap_or(&0) as u32);
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i) & 63) as usize] as char;
            out.push(if i <= three.len() { digit } else { '=' });
        }
    }
    out
}

/// Text as bytes, if it is of this kind.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let mut out = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for four in digits.chunks(4) {
        let value = |digit: &u8| DIGITS.iter().position(|d| d == digit);
        let word = four.iter().try_fold(0u32, |word, digit| Some(word << 6 | value(digit)? as u32))?;
        let word = word << (6 * (4 - four.len()));
        let bytes = four.len() * 6 / 8;
        out.extend_from_slice(&word.to_be_bytes()[1..=bytes]);
    }
    (text.len().is_multiple_of(4) && digits.len() % 4 != 1).then_some(out)
}

/// For `serde(with)`.
pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&encode(bytes))
}

/// For `serde(with)`.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    decode(&String::deserialize(from)?).ok_or_else(|| de::Error::custom("bytes are not in base 64"))
}
