//! Permutations computed element by element: keyed Feistel networks with cycle walking (black2002ciphers).

use super::{Draw, Key, Site, philox};

/// A pseudo-random permutation of 0..n that stores nothing but its round keys.
///
/// A Feistel network permutes 2^(2·half) ≥ max(n, 2⁸) numbers; walking along its cycle until it falls below n again
/// restricts it to 0..n (2^(2·half)/n < 4 networks on average if n > 2⁶).
pub(super) struct Shuffle {
    n: u32,
    half: u32,
    pub counter: [u32; 4],
    keys: [u32; 8],
}

impl Shuffle {
    /// The round keys are two Philox blocks from `counter` on.
    pub fn new(n: u32, counter: [u32; 4], key: Key) -> Self {
        let [row, block, stream, step] = counter;
        let ([a, b, c, d], [e, f, g, h]) = (philox(counter, key.0), philox([row, block + 1, stream, step], key.0));
        let bits = (32 - (n - 1).leading_zeros()).max(8);
        Shuffle { n, half: bits.div_ceil(2), counter, keys: [a, b, c, d, e, f, g, h] }
    }

    /// π(i) for i < n.
    pub fn at(&self, i: u32) -> u32 {
        let mask = (1 << self.half) - 1;
        let mut x = i;
        loop {
            let (mut left, mut right) = (x >> self.half, x & mask);
            for key in self.keys {
                (left, right) = (right, left ^ (mix(right ^ key) & mask));
            }
            x = left << self.half | right;
            if x < self.n {
                return x;
            }
        }
    }
}

/// A bijection of 32 bits: each input bit flips each output bit about half the time (`lowbias32`, Wellons 2018).
fn mix(mut x: u32) -> u32 {
    x = (x ^ x >> 16).wrapping_mul(0x7FEB_352D);
    x = (x ^ x >> 15).wrapping_mul(0x846C_A68B);
    x ^ x >> 16
}

/// Of an element of a permutation: the counter of the permutation's keys, and where in it the element stands.
///
/// An epoch belongs to its feature and to no step: the high half of its number takes the step's place in the counter.
pub(super) fn place(draw: Draw, site: &Site, n: u32, row: u32, feature: u32) -> ([u32; 4], u32) {
    let epochs = matches!(draw, Draw::Epoch(_));
    let turn = if epochs { site.step } else { feature };
    let position = turn as u64 * site.rows as u64 + row as u64;
    let (number, i) = (position / n as u64, (position % n as u64) as u32);
    let (block, step) = if epochs { (2 * feature, (number >> 32) as u32) } else { (0, site.step) };
    ([number as u32, block, site.stream, step], i)
}
