//! Random numbers as a pure function of where they are used: no state, no order, no threads.
//!
//! **Statement.** element(row, feature) = word `feature mod 4` of Philox(c, k), with the counter
//! c = (row, ⌊feature/4⌋, stream, step) and the key k of (seed, replica), mapped to a distribution.
//!
//! **Source.** Philox4x32-10: Salmon, Moraes, Dror & Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC 2011.
//! Normals: Box & Muller 1958. Permutations: Feistel network with cycle walking, Black & Rogaway 2002.
//!
//! **Conventions.** One stream belongs to one draw of a program; rows, streams and steps count from 0 below 2³²; a value
//! without row axis is row 0. An f32 program sees the f64 program's numbers, rounded.
//!
//! **Error.** Uniforms lie on the lattice (k+½)·2⁻²³. Normals reach √(64 ln 2) ≈ 6.66 σ, beyond which 3·10⁻¹¹ of the mass
//! is missing; the radius carries 24 bits, the angle 23. `Integer(n)` favours no value by more than n·2⁻³² relatively. A
//! permutation of exactly 2⁸, 2¹⁰, 2¹²… items is always even, as Feistel networks are.
//!
//! **Checked by** `tests/engine/random.rs`.

#![allow(unsafe_code)] // tiles are written through pointers, since threads share one buffer

mod shuffle;

use crate::math::Real;
use shuffle::{Shuffle, place};
use std::ops::Range;

/// A Philox key: one independent family of streams for each (seed, replica).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key([u32; 2]);

impl Key {
    /// Words 0 and 1 of Philox(c = (seed low, seed high, replica, 0), k = "minvel").
    ///
    /// Replica r of a run of many replicas is therefore the single run keyed (seed, r). Philox is a bijection of c, so
    /// keys are as good as 64 random bits: two of R replicas share a key with probability R²·2⁻⁶⁵.
    pub const fn new(seed: u64, replica: u32) -> Self {
        let name = [u32::from_le_bytes(*b"minv"), u32::from_le_bytes(*b"el\0\0")];
        let word = philox([seed as u32, (seed >> 32) as u32, replica, 0], name);
        Key([word[0], word[1]])
    }

    /// The two words that [`philox`] takes.
    pub const fn words(self) -> [u32; 2] {
        self.0
    }
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Draw {
    /// The word itself, a number in 0..2³² (rounded to 24 bits in f32).
    Bits,
    /// Uniform on the open interval (0, 1): (⌊x/2⁹⌋ + ½)·2⁻²³, exact in f32 as in f64.
    Uniform,
    /// Standard normal.
    Normal,
    /// +1 or −1, each with probability ½.
    Rademacher,
    /// Uniform on 0..n: ⌊x·n/2³²⌋ (exact in f32 for n ≤ 2²⁴).
    Integer(u32),
    /// Element number i = feature·rows + row takes π_q(i mod n), q = ⌊i/n⌋: independent permutations of 0..n laid end
    /// to end. With n = rows each feature is a permutation of the rows; without row axis (rows = 1), i is the feature.
    /// n ≥ 1; exact in f32 for n ≤ 2²⁴.
    Permutation(u32),
    /// Minibatches without replacement, one item a row: position p = step·rows + row takes π_e(p mod n) in epoch
    /// e = ⌊p/n⌋, so that each epoch visits each of the n items once, also across steps. Features are independent
    /// sequences: a minibatch needs a row axis. n ≥ 1; exact in f32 for n ≤ 2²⁴.
    Epoch(u32),
}

impl Draw {
    /// How many items a permutation permutes.
    #[inline(always)]
    pub(crate) const fn items(self) -> Option<u32> {
        match self {
            Draw::Permutation(n) | Draw::Epoch(n) => Some(n),
            Draw::Bits | Draw::Uniform | Draw::Normal | Draw::Rademacher | Draw::Integer(_) => None,
        }
    }
}

/// Which value of a run is drawn: the stream of its draw, the step, and how many rows it has in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// Of the seed and the replica.
    pub key: Key,
    /// Of the draw in the program.
    pub stream: u32,
    /// Of the run.
    pub step: u32,
    /// Rows of the whole value, whatever part of it is filled (only the permutations ask).
    pub rows: u32,
}

// ---------------------------------------------------------------------------------------------------------- Philox

/// Multipliers of words 0 and 2, and the Weyl increments of the key (Salmon et al. 2011).
const MULTIPLY: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: u32 = 10;

/// Philox4x32-10: for each key a bijection of the 128-bit counter.
///
/// Each round: (c₀, c₁, c₂, c₃) ← (hi(M₁c₂) ⊕ c₁ ⊕ k₀, lo(M₁c₂), hi(M₀c₀) ⊕ c₃ ⊕ k₁, lo(M₀c₀)), k ← k + W.
pub const fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let ([mut c0, mut c1, mut c2, mut c3], [mut k0, mut k1]) = (counter, key);
    let mut round = 0;
    while round < ROUNDS {
        let (p0, p1) = (MULTIPLY[0] * c0 as u64, MULTIPLY[1] * c2 as u64);
        c0 = (p1 >> 32) as u32 ^ c1 ^ k0;
        c2 = (p0 >> 32) as u32 ^ c3 ^ k1;
        (c1, c3) = (p1 as u32, p0 as u32);
        (k0, k1) = (k0.wrapping_add(WEYL[0]), k1.wrapping_add(WEYL[1]));
        round += 1;
    }
    [c0, c1, c2, c3]
}

/// Counters worked on at once: a full AVX-512 register of f32.
const LANES: usize = 16;

/// [`philox`] of `LANES` counters that differ in (c₀, c₁).
///
/// Words sit in 64-bit lanes whose upper halves are rubbish: vpmuludq reads lower halves only, so no shuffle is needed.
#[inline(always)]
fn philox_lanes(c0: [u32; LANES], c1: [u32; LANES], site: &Site) -> [[u32; LANES]; 4] {
    const LOW: u64 = 0xFFFF_FFFF;
    let [mut a, mut b, mut c, mut d] = [[0; LANES]; 4];
    for l in 0..LANES {
        (a[l], b[l], c[l], d[l]) = (c0[l] as u64, c1[l] as u64, site.stream as u64, site.step as u64);
    }
    let [mut k0, mut k1] = site.key.0;
    for _ in 0..ROUNDS {
        for l in 0..LANES {
            let (p0, p1) = (MULTIPLY[0] * (a[l] & LOW), MULTIPLY[1] * (c[l] & LOW));
            a[l] = (p1 >> 32) ^ b[l] ^ k0 as u64;
            c[l] = (p0 >> 32) ^ d[l] ^ k1 as u64;
            (b[l], d[l]) = (p1, p0);
        }
        (k0, k1) = (k0.wrapping_add(WEYL[0]), k1.wrapping_add(WEYL[1]));
    }
    let mut words = [[0; LANES]; 4];
    for l in 0..LANES {
        (words[0][l], words[1][l], words[2][l], words[3][l]) = (a[l] as u32, b[l] as u32, c[l] as u32, d[l] as u32);
    }
    words
}

/// first, first + 1, …
#[inline(always)]
fn successive(first: u32) -> [u32; LANES] {
    let mut out = [0; LANES];
    for (l, out) in out.iter_mut().enumerate() {
        *out = first.wrapping_add(l as u32);
    }
    out
}

// --------------------------------------------------------------------------------------------------- distributions

/// (⌊x/2⁹⌋ + ½)·2⁻²³: 24 bits, so no rounding in f32.
#[inline(always)]
fn uniform(x: u32) -> f32 {
    const CELL: f32 = 1.0 / (1 << 23) as f32;
    ((x >> 9) as i32 as f32 + 0.5) * CELL
}

/// Box–Muller: (r cos 2πu₂, r sin 2πu₂) with r = √(−2 ln u₁).
///
/// u₁ = (⌊x₁/2⌋ + ½)·2⁻³¹ rounded to f32 whatever T is, since rounding near u₁ = 1 moves r by far more than an ulp and
/// f32 and f64 must see one noise.
#[inline(always)]
fn normals<T: Real>(x1: u32, x2: u32) -> (T, T) {
    const CELL: f32 = 1.0 / (1u32 << 31) as f32;
    // the largest 31-bit integer that does not round up to 2³¹: u₁ < 1 and r > 0
    let k = (x1 >> 1).min((1 << 31) - (1 << 7)) as i32;
    let u1 = (k as f32 + 0.5) * CELL;
    let r = (T::from_f64(-2.0) * T::from_f64(u1 as f64).vln()).sqrt();
    let (sin, cos) = T::from_f64(uniform(x2) as f64).sin_cos_turn();
    (r * cos, r * sin)
}

/// The sign is the word's highest bit.
#[inline(always)]
fn rademacher<T: Real>(x: u32) -> T {
    T::from_f64(f32::from_bits(1f32.to_bits() | (x & 0x8000_0000)) as f64)
}

/// ⌊x·n/2³²⌋.
#[inline(always)]
fn integer<T: Real>(x: u32, n: u32) -> T {
    T::from_f64(((x as u64 * n as u64) >> 32) as u32 as f64)
}

/// The four words of each lane, as values.
#[inline(always)]
fn values<T: Real>(draw: Draw, x: &[[u32; LANES]; 4]) -> [[T; LANES]; 4] {
    let mut out = [[T::ZERO; LANES]; 4];
    // a macro, since a closure need not inherit the caller's target features; flat, since of two nested loops the compiler
    // vectorises the wrong one
    macro_rules! each {
        ($x:ident => $value:expr) => {
            for (out, &$x) in out.as_flattened_mut().iter_mut().zip(x.as_flattened()) {
                *out = $value;
            }
        };
    }
    match draw {
        Draw::Bits => each!(x => T::from_f64(x as f64)),
        Draw::Uniform => each!(x => T::from_f64(uniform(x) as f64)),
        Draw::Rademacher => each!(x => rademacher(x)),
        Draw::Integer(n) => each!(x => integer(x, n)),
        Draw::Normal => {
            let [cos0, sin0, cos1, sin1] = &mut out;
            for l in 0..LANES {
                (cos0[l], sin0[l]) = normals(x[0][l], x[1][l]);
            }
            for l in 0..LANES {
                (cos1[l], sin1[l]) = normals(x[2][l], x[3][l]);
            }
        }
        Draw::Permutation(_) | Draw::Epoch(_) => unreachable!("permutations take no words"),
    }
    out
}

// --------------------------------------------------------------------------------------------- elements and tiles

/// The definition: one element, computed alone.
pub fn element_as<T: Real>(draw: Draw, site: &Site, row: u32, feature: u32) -> T {
    if let Some(n) = draw.items() {
        let (counter, i) = place(draw, site, n, row, feature);
        return T::from_f64(Shuffle::new(n, counter, site.key).at(i) as f64);
    }
    let x = philox([row, feature / 4, site.stream, site.step], site.key.0);
    let w = feature as usize % 4;
    match draw {
        Draw::Uniform => T::from_f64(uniform(x[w]) as f64),
        Draw::Rademacher => rademacher(x[w]),
        Draw::Integer(n) => integer(x[w], n),
        Draw::Normal if w.is_multiple_of(2) => normals(x[w], x[w + 1]).0,
        Draw::Normal => normals(x[w - 1], x[w]).1,
        Draw::Bits | Draw::Permutation(_) | Draw::Epoch(_) => T::from_f64(x[w] as f64),
    }
}

/// [`element_as`] in f64, at a site spelt out.
pub fn element(draw: Draw, key: Key, stream: u32, step: u32, rows: u32, row: u32, feature: u32) -> f64 {
    element_as(draw, &Site { key, stream, step, rows }, row, feature)
}

/// Fills a feature-major tile: `out[(f − features.start)·stride + (r − rows.start)]` = element(r, f).
///
/// Inlined into a caller with target features it becomes vector code for them.
///
/// # Safety
/// `out` must be valid for writes at all those places; no other is written.
#[inline(always)]
pub unsafe fn fill_tile<T: Real>(
    draw: Draw,
    site: &Site,
    rows: Range<u32>,
    features: Range<u32>,
    out: *mut T,
    stride: usize,
) {
    if let Some(n) = draw.items() {
        // SAFETY: the caller's promise, for the same places
        return unsafe { permute_tile(draw, site, n, rows, features, out, stride) };
    }
    for first in rows.clone().step_by(LANES) {
        let lanes = LANES.min((rows.end - first) as usize);
        let c0 = successive(first);
        for block in features.start / 4..features.end.div_ceil(4) {
            let tile = values::<T>(draw, &philox_lanes(c0, [block; LANES], site));
            for (w, column) in tile.iter().enumerate() {
                let f = 4 * block + w as u32;
                if features.contains(&f) {
                    let at = (f - features.start) as usize * stride + (first - rows.start) as usize;
                    // SAFETY: f and first..first+lanes lie in the tile; `column` is our own array of LANES ≥ lanes
                    unsafe { copy(column, out.add(at), lanes) };
                }
            }
        }
    }
}

/// Copies the first `lanes` values; a whole column by one vector store rather than by a call of memcpy.
///
/// # Safety
/// `out` must be valid for `lanes` ≤ LANES writes.
#[inline(always)]
unsafe fn copy<T: Copy>(column: &[T; LANES], out: *mut T, lanes: usize) {
    // SAFETY: the caller's promise; unaligned since T's alignment is all we know and `[T; LANES]` has the same
    unsafe {
        if lanes == LANES {
            out.cast::<[T; LANES]>().write_unaligned(*column);
        } else {
            for (l, value) in column.iter().enumerate().take(lanes) {
                out.add(l).write(*value);
            }
        }
    }
}

/// [`fill_tile`] of permutations: element by element, keeping the round keys while the permutation stays the same.
///
/// # Safety
/// As [`fill_tile`].
unsafe fn permute_tile<T: Real>(
    draw: Draw,
    site: &Site,
    n: u32,
    rows: Range<u32>,
    features: Range<u32>,
    out: *mut T,
    stride: usize,
) {
    let mut shuffle = Shuffle::new(n, place(draw, site, n, rows.start, features.start).0, site.key);
    for f in features.clone() {
        for r in rows.clone() {
            let (counter, i) = place(draw, site, n, r, f);
            if counter != shuffle.counter {
                shuffle = Shuffle::new(n, counter, site.key);
            }
            let at = (f - features.start) as usize * stride + (r - rows.start) as usize;
            // SAFETY: (r, f) lies in the tile
            unsafe { out.add(at).write(T::from_f64(shuffle.at(i) as f64)) };
        }
    }
}

/// [`fill_tile`] of a slice; panics if the tile does not fit.
#[inline(always)]
pub fn fill_rows<T: Real>(
    draw: Draw,
    site: &Site,
    rows: Range<u32>,
    features: Range<u32>,
    out: &mut [T],
    stride: usize,
) {
    let (lanes, columns) = (rows.len(), features.len());
    if lanes == 0 || columns == 0 {
        return;
    }
    assert!((columns - 1) * stride + lanes <= out.len(), "the tile is larger than its slice");
    // SAFETY: the largest index is (columns − 1)·stride + lanes − 1, just checked
    unsafe { fill_tile(draw, site, rows, features, out.as_mut_ptr(), stride) }
}

/// Fills a whole value without row axis: `out[i]` = element(row 0 of 1, feature i), whatever `site.rows` says.
#[inline(always)]
pub fn fill_flat<T: Real>(draw: Draw, site: &Site, out: &mut [T]) {
    if draw.items().is_some() {
        return fill_rows(draw, &Site { rows: 1, ..*site }, 0..1, 0..out.len() as u32, out, 1);
    }
    // lanes are blocks of four features here, so words interleave
    for (chunk, out) in out.chunks_mut(4 * LANES).enumerate() {
        let blocks = successive((chunk * LANES) as u32);
        let tile = values::<T>(draw, &philox_lanes([0; LANES], blocks, site));
        if let Ok(out) = <&mut [[T; 4]; LANES]>::try_from(out.as_chunks_mut().0) {
            for l in 0..LANES {
                out[l] = [tile[0][l], tile[1][l], tile[2][l], tile[3][l]];
            }
            continue;
        }
        for (i, out) in out.iter_mut().enumerate() {
            *out = tile[i % 4][i / 4];
        }
    }
}

// ---------------------------------------------------------------------------------------------------- host streams

/// Successive numbers for initialisers and tests: number i is element(row = i mod 2³², feature 0) of step ⌊i/2³²⌋.
///
/// Each number has a block of its own, so that a normal shares no word with the uniform drawn before it.
#[derive(Clone, Debug)]
pub struct Stream {
    site: Site,
    next: u64,
}

impl Stream {
    /// The stream from its beginning.
    pub const fn new(key: Key, stream: u32) -> Self {
        Stream { site: Site { key, stream, step: 0, rows: 1 }, next: 0 }
    }

    /// The next number, whatever its distribution.
    pub fn draw(&mut self, draw: Draw) -> f64 {
        let i = self.next;
        self.next += 1;
        element_as(draw, &Site { step: (i >> 32) as u32, ..self.site }, i as u32, 0)
    }

    /// The next uniform on (0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.draw(Draw::Uniform)
    }

    /// The next standard normal.
    pub fn normal(&mut self) -> f64 {
        self.draw(Draw::Normal)
    }

    /// The rest of the stream, all of one distribution.
    pub fn samples(mut self, draw: Draw) -> impl Iterator<Item = f64> {
        std::iter::repeat_with(move || self.draw(draw))
    }
}
