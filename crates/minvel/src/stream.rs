//! Streams of random numbers: where each draw of a program takes its numbers from.
//!
//! **Conventions.** A program draws numbers keyed by (seed, step, stream); two draws of one stream are the same numbers.

/// A stream that belongs to draw k ≥ 1 of the sampler that was given `stream`; nests to any depth.
///
/// Substreams lie in 2³⁰..2³¹, apart from the small numbers a caller uses; two of N coincide with probability N²·2⁻³¹.
pub fn substream(stream: u32, k: u32) -> u32 {
    let mut x = stream.wrapping_mul(0x9E37_79B1) ^ k.wrapping_mul(0x85EB_CA77).rotate_left(13);
    for (shift, factor) in [(16, 0x7FEB_352D), (15, 0x846C_A68B)] {
        x = (x ^ x >> shift).wrapping_mul(factor);
    }
    1 << 30 | (x ^ x >> 16) >> 2
}

/// The seed of part k of a draw that was given `seed`: that seed itself for the first part, 0 (SplitMix64).
pub fn subseed(seed: u64, k: u64) -> u64 {
    if k == 0 {
        return seed;
    }
    let mut x = seed.wrapping_add(k.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    for (shift, factor) in [(30, 0xBF58_476D_1CE4_E5B9), (27, 0x94D0_49BB_1331_11EB)] {
        x = (x ^ x >> shift).wrapping_mul(factor);
    }
    x ^ x >> 31
}

/// A stream for a name (FNV-1a, folded to 31 bits).
pub fn named(name: &str) -> u32 {
    let hash = name.bytes().fold(0x811C_9DC5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash ^ hash >> 31) & !(1 << 31)
}

/// Data of a step of learning: fresh draws, or the order of rows.
pub const DATA: u32 = 0;
/// Noise of the flow.
pub const NOISE: u32 = 1;
/// Other draws of a step, as those of a density that is learnt against.
pub const DRAWS: u32 = 2;
