//! Arithmetic lane by lane: the loops that the compiler turns into vector instructions.
//!
//! **Statement.** C⁻¹v for the coordinates v in each lane, and e^x. Lanes are the centres of a block about
//! which one point is looked at, or points that are looked at about one centre.
//! **Conventions.** Lists are column-major `[coordinate, lane]`. Multiplications and additions are fused, as the engine's are, so
//! that every instruction set gives the same bits.
//! **Error.** Rounding. **Checked by** tests/densities/kernel_sums.rs.
#![allow(clippy::needless_range_loop)] // iterators with closures are not inlined everywhere, and then not vectorised
#![allow(clippy::manual_clamp)] // clamp has branches, and is not vectorised

/// Centres of a block.
pub(super) const BLOCK: usize = 32;
/// Points that are looked at together about one centre.
pub(super) const ROWS: usize = 8;

/// A number for each centre of a block.
pub(super) type Lanes = [f64; BLOCK];

/// The columns of a block.
#[inline(always)]
pub(super) fn columns(list: &[f64]) -> &[Lanes] {
    list.as_chunks::<BLOCK>().0
}

/// The same number in every lane, for each of a list.
pub(super) fn spread<const L: usize>(list: &[f64]) -> Vec<[f64; L]> {
    list.iter().map(|x| [*x; L]).collect()
}

/// Normal coordinates, lane by lane.
pub(super) struct Work<const L: usize> {
    /// v, coordinate by coordinate.
    pub v: Vec<[f64; L]>,
    /// |v|².
    pub square: [f64; L],
    /// |dv/dvol|, 0 where kernels have ended.
    pub factor: [f64; L],
}

impl<const L: usize> Work<L> {
    pub fn new(n: usize) -> Self {
        Work { v: vec![[0.0; L]; n], square: [0.0; L], factor: [0.0; L] }
    }
}

/// Σ v_j².
#[inline(always)]
pub(super) fn square<const L: usize>(v: &[[f64; L]]) -> [f64; L] {
    let mut sum = [0.0; L];
    for v in v {
        for l in 0..L {
            sum[l] = v[l].mul_add(v[l], sum[l]);
        }
    }
    sum
}

/// y = C⁻¹v in each lane, C the same in all: entry e, as [`Shape`](super::shape::Shape) numbers them, is `factors[e·step]`.
#[inline(always)]
pub(super) fn whiten<const L: usize>(v: &[[f64; L]], factors: &[f64], step: usize, y: &mut [[f64; L]]) {
    let mut entry = 0;
    for a in 0..v.len() {
        let mut own = v[a];
        for b in 0..a {
            let (c, done) = (factors[entry * step], y[b]);
            for l in 0..L {
                own[l] = (-c).mul_add(done[l], own[l]);
            }
            entry += 1;
        }
        let c = factors[entry * step];
        for l in 0..L {
            own[l] *= c;
        }
        y[a] = own;
        entry += 1;
    }
}

/// e^x, with x taken to lie within ±[`RANGE`].
#[inline(always)]
pub(super) fn exp<const L: usize>(x: [f64; L]) -> [f64; L] {
    // Adding it leaves the nearest whole number in the low bits.
    const ROUND: f64 = 1.5 * (1u64 << 52) as f64;
    const LN_2_HIGH: f64 = 0.693_147_180_369_123_8; // 33 bits: whole multiples up to 2²⁰ are exact
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    // Taylor's polynomial of degree 12: |r| ≤ 0.35, so the rest is below 2·10⁻¹⁶.
    const INVERSE: [f64; 13] = {
        let (mut terms, mut k) = ([1.0; 13], 1);
        while k < 13 {
            terms[k] = terms[k - 1] / k as f64;
            k += 1;
        }
        terms
    };
    let (mut shifted, mut r, mut scale) = ([0.0; L], [0.0; L], [0.0; L]);
    for l in 0..L {
        r[l] = x[l].max(-RANGE).min(RANGE);
        shifted[l] = r[l].mul_add(std::f64::consts::LOG2_E, ROUND);
        scale[l] = f64::from_bits((shifted[l].to_bits() << 52).wrapping_add(1023 << 52));
        shifted[l] -= ROUND;
    }
    for l in 0..L {
        r[l] = (-shifted[l]).mul_add(LN_2_LOW, (-shifted[l]).mul_add(LN_2_HIGH, r[l]));
    }
    let mut sum = [INVERSE[12]; L];
    for k in (0..12).rev() {
        for l in 0..L {
            sum[l] = sum[l].mul_add(r[l], INVERSE[k]);
        }
    }
    for l in 0..L {
        sum[l] *= scale[l];
    }
    sum
}

/// Exponents are taken to lie within ± this.
pub(super) const RANGE: f64 = 600.0;

#[inline(always)]
pub(super) fn polynomial<const N: usize>(terms: &[f64; N], x: f64) -> f64 {
    let mut sum = terms[N - 1];
    for k in (0..N - 1).rev() {
        sum = sum.mul_add(x, terms[k]);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_right_to_rounding() {
        for k in -200_000i64..=200_000 {
            let x = RANGE * (k as f64 / 200_000.0).powi(3);
            let error = (exp([x])[0] / x.exp() - 1.0).abs();
            assert!(error < 1e-15, "e^{x} is off by {error}");
        }
        assert_eq!(exp([f64::NEG_INFINITY])[0], exp([-RANGE])[0]);
    }
}
