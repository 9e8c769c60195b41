//! Tiles of random numbers, filled by any instructions.

use Draw::*;
use minvel_engine::math::Real;
use minvel_engine::random::*;

/// Every kind of draw.
pub const DRAWS: [Draw; 7] = [Bits, Uniform, Normal, Rademacher, Integer(1000), Permutation(37), Epoch(41)];

/// A tile filled by any means is, bit for bit, its elements, and nothing beside it is touched.
pub fn tiles_are_their_elements<T: Real>(fill: impl Fn(Draw, &Site, [u32; 4], &mut [T], usize)) {
    let (stride, untouched) = (90, T::from_f64(-7.0));
    let site = Site { key: Key::new(2026, 3), stream: 11, step: 12, rows: 90 };
    for draw in DRAWS {
        for [row, lanes, feature, features] in
            [[0, 64, 0, 8], [0, 16, 0, 4], [16, 48, 0, 4], [5, 37, 3, 6], [0, 1, 0, 1], [89, 1, 5, 1], [3, 0, 0, 4]]
        {
            let mut out = vec![untouched; stride * 8];
            fill(draw, &site, [row, row + lanes, feature, feature + features], &mut out, stride);
            for (i, &x) in out.iter().enumerate() {
                let (f, l) = ((i / stride) as u32, (i % stride) as u32);
                let inside = f < features && l < lanes;
                let right = if inside { element_as(draw, &site, row + l, feature + f) } else { untouched };
                assert_eq!(x.to_f64().to_bits(), right.to_f64().to_bits(), "{draw:?}, lane {l}, feature {f}");
            }
        }
    }
}
