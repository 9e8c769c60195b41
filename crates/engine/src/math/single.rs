//! Single precision: the branch-free bodies. Conventions, error and tests are those of [`super`].

use super::Real;

impl Real for f32 {
    common!(f32);

    #[inline(always)]
    fn vexp(self) -> f32 {
        exp_within(at_most(at_least(self, EXP_ZERO), EXP_INF))
    }

    #[inline(always)]
    fn vexp_m1(self) -> f32 {
        // below −17.4 the value is −1 to the last bit
        let (r, n) = reduce_exp(at_most(at_least(self, -17.4), EXP_INF));
        let p = (r * r).mul_add(horner(r, EXPM1), r);
        // 2ⁿ(1 + p) − 1, halved so that 2¹²⁸ does not overflow before the product does
        let half = power_of_two(n.wrapping_sub(1));
        let y = half.mul_add(p, half - 0.5) * 2.0;
        if self.abs() < TINY { self } else { y }
    }

    #[inline(always)]
    fn vln(self) -> f32 {
        let subnormal = self < f32::MIN_POSITIVE;
        let x = if subnormal { self * 8388608.0 } else { self };
        let (m, k) = split(x);
        let shift = if subnormal { 23.0 } else { 0.0 };
        ln_ends(self, ln_sum(m - 1.0, k as f32 - shift))
    }

    #[inline(always)]
    fn vln_1p(self) -> f32 {
        let u = 1.0 + self;
        let (m, k) = split(u);
        // 2⁻ᵏ(1 + x) − 1 from x itself, not from the rounded u; beyond 2²⁴ what u lost is nothing to ln u
        let scale = power_of_two(k.wrapping_neg());
        let f = self.mul_add(scale, scale - 1.0);
        let f = if self < 16777216.0 { f } else { m - 1.0 };
        let y = ln_ends(u, ln_sum(f, k as f32));
        if self.abs() < TINY { self } else { y }
    }

    #[inline(always)]
    fn vtanh(self) -> f32 {
        // tanh x = 2t/(1 + t²) with t = tanh(x/2) = n/2(1 + e), n and e polynomials: one division, low degrees, and
        // the doubling damps their rounding where a single quotient is at its worst; tiny x come back exactly
        let x = at_most(at_least(self, -TANH_ONE), TANH_ONE);
        let s = x * x;
        let n = (x * s).mul_add(horner(s, [0.00011433405, 0.029777437]), x);
        let e = s * horner(s, [1.2307363e-6, 0.0012069318, 0.113110736]);
        n.mul_add(e, n) / (e.mul_add(e + 2.0, n * (n * 0.25)) + 1.0)
    }

    #[inline(always)]
    fn sigmoid(self) -> f32 {
        // e^{−|x|} never overflows, and e/(1 + e) keeps the subnormals of the left tail
        let e = exp_within(at_least(-self.abs(), EXP_ZERO));
        (if self < 0.0 { e } else { 1.0 }) / (1.0 + e)
    }

    #[inline(always)]
    fn softplus(self) -> f32 {
        // max(x, 0) + ln(1 + e) with e = e^{−|x|} ∈ [0, 1]: there one polynomial does, without splitting 1 + e
        let e = exp_within(at_least(-self.abs(), EXP_ZERO));
        at_least(self, 0.0) + (e * e).mul_add(horner(e, LN_1P), e)
    }

    #[inline(always)]
    fn vsin(self) -> f32 {
        let (f, quarters) = reduce_turn(self);
        let y = turn_by(quarters, quarter(f));
        // x − x³/6 is x here: keeps subnormals and the sign of zero
        if self.abs() < power_of_two(-12) { self } else { y }
    }

    #[inline(always)]
    fn vcos(self) -> f32 {
        let (f, quarters) = reduce_turn(self);
        turn_by(quarters.wrapping_add(1), quarter(f))
    }

    #[inline(always)]
    fn sin_cos_turn(self) -> (f32, f32) {
        let (n, quarters) = nearest(self, 4.0);
        let q = quarter(self.mul_add(4.0, -n));
        (turn_by(quarters as u32, q), turn_by((quarters as u32).wrapping_add(1), q))
    }

    #[inline(always)]
    fn vatan2(self, x: f32) -> f32 {
        use std::f32::consts::{FRAC_PI_2, PI};
        let (ax, ay) = (x.abs(), self.abs());
        let steep = ay > ax;
        let (num, den) = if steep { (ax, ay) } else { (ay, ax) };
        // 0/0 and ∞/∞ have directions too
        let diagonal = if den > 0.0 { 1.0 } else { 0.0 };
        let t = if num == den { diagonal } else { num / den };
        let s = t * t;
        let a = (t * s).mul_add(horner(s, ATAN), t);
        let a = if steep { FRAC_PI_2 - a } else { a };
        let a = if x.is_sign_negative() { PI - a } else { a };
        a.copysign(self)
    }
}

// Minimax coefficients, highest power first, each rounded to f32 before the next was fitted.

/// (eʳ − 1 − r)/r²
#[rustfmt::skip]
const EXPM1: [f32; 6] = [1.9764387e-4, 1.393238e-3, 8.333543e-3, 4.1666493e-2, 0.16666666, 0.5];
/// (ln(1 + e) − e)/e² on [0, 1]
#[rustfmt::skip]
const LN_1P: [f32; 9] = [
    -0.00329053, 0.020086423, -0.057457425, 0.10661137, -0.15344882,
    0.19692102, -0.24958019, 0.33330464, -0.4999993,
];
/// (arctan t − t)/t³ in t² on [0, 1]
#[rustfmt::skip]
const ATAN: [f32; 8] = [
    0.0029193612, -0.016363012, 0.04320454, -0.075516514,
    0.10665768, -0.14211002, 0.19993767, -0.33333153,
];
/// eʳ for |r| ≤ ½ ln 2
#[rustfmt::skip]
const EXP: [f32; 7] = [0.0013818697, 0.008368716, 0.041668292, 0.16666521, 0.49999994, 1.0, 1.0];
/// (ln(1 + f) − f)/f² for 1 + f ∈ [√½, √2)
#[rustfmt::skip]
const LN: [f32; 9] = [
    -0.07638798, 0.12764892, -0.13159996, 0.14201225, -0.16623327,
    0.20001253, -0.25000823, 0.3333333, -0.5,
];

/// Below this |x|, f(x) = x + O(x²) is x to the last bit: keeps subnormals and the sign of zero.
const TINY: f32 = power_of_two(-25);
/// eˣ rounds to 0 here and below.
const EXP_ZERO: f32 = -104.0;
/// eˣ overflows here and above.
const EXP_INF: f32 = 89.0;
/// The first x at which the quotient of `vtanh` is 1 (exactly, so clamping there saturates it).
const TANH_ONE: f32 = 8.369952;

/// max(x, low), but NaN stays NaN.
#[inline(always)]
fn at_least(x: f32, low: f32) -> f32 {
    if x < low { low } else { x }
}

/// min(x, high), but NaN stays NaN.
#[inline(always)]
fn at_most(x: f32, high: f32) -> f32 {
    if x > high { high } else { x }
}

/// c₀xⁿ + … + cₙ, highest power first.
#[inline(always)]
fn horner<const N: usize>(x: f32, c: [f32; N]) -> f32 {
    let mut p = c[0];
    for &k in &c[1..] {
        p = p.mul_add(x, k);
    }
    p
}

/// The integer nearest to x·scale, as float and as integer (|x·scale| < 2²²).
#[inline(always)]
fn nearest(x: f32, scale: f32) -> (f32, i32) {
    // at 1.5·2²³ the spacing of floats is 1, so the sum rounds and its low bits are the integer: no slow `as i32`
    const MAGIC: f32 = 12582912.0;
    let shifted = x.mul_add(scale, MAGIC);
    (shifted - MAGIC, shifted.to_bits().wrapping_sub(MAGIC.to_bits()) as i32)
}

/// 2ⁿ for −126 ≤ n ≤ 127.
#[inline(always)]
const fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) << 23) as u32)
}

/// x = n ln 2 + r with |r| ≤ ½ ln 2.
#[inline(always)]
fn reduce_exp(x: f32) -> (f32, i32) {
    let (n, k) = nearest(x, std::f32::consts::LOG2_E);
    // ln 2 in two floats: n·(error of one) would show in the last bits
    (n.mul_add(1.9046542e-9, n.mul_add(-std::f32::consts::LN_2, x)), k)
}

/// eˣ for x ∈ [`EXP_ZERO`, `EXP_INF`].
#[inline(always)]
fn exp_within(x: f32) -> f32 {
    let (r, n) = reduce_exp(x);
    let p = horner(r, EXP);
    // 2ⁿ in two factors: n reaches −150 and 128, and only the last product rounds
    let half = n >> 1;
    p * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// x = 2ᵏm with m ∈ [√½, √2).
#[inline(always)]
fn split(x: f32) -> (f32, i32) {
    const SQRT_HALF: i32 = 0x3f3504f3;
    let bits = x.to_bits() as i32;
    let k = bits.wrapping_sub(SQRT_HALF) >> 23;
    (f32::from_bits(bits.wrapping_sub(k << 23) as u32), k)
}

/// k ln 2 + ln(1 + f) for 1 + f ∈ [√½, √2).
#[inline(always)]
fn ln_sum(f: f32, k: f32) -> f32 {
    k.mul_add(std::f32::consts::LN_2, (f * f).mul_add(horner(f, LN), f))
}

/// y = ln x, mended where x is 0, negative, infinite or NaN.
#[inline(always)]
fn ln_ends(x: f32, y: f32) -> f32 {
    let y = if x < f32::INFINITY { y } else { x };
    let y = if x < 0.0 { f32::NAN } else { y };
    if x == 0.0 { f32::NEG_INFINITY } else { y }
}

/// (sin, cos) of f quarter turns, |f| ≤ ½.
#[inline(always)]
fn quarter(f: f32) -> (f32, f32) {
    let s = f * f;
    let sin = f * horner(s, [-0.004685639, 0.079712465, -0.64596665, 1.5707964]);
    let cos = horner(s, [0.0008944743, -0.020855594, 0.25366855, -1.2337005, 1.0]);
    (sin, cos)
}

/// The sine after `n` more quarter turns: sin, cos, −sin, −cos.
#[inline(always)]
fn turn_by(n: u32, (sin, cos): (f32, f32)) -> f32 {
    let y = if n & 1 == 0 { sin } else { cos };
    f32::from_bits(y.to_bits() ^ ((n & 2) << 30))
}

/// x·2/π = f + n modulo 4 with |f| ≤ ½, for every finite x.
///
/// From 2⁵⁰ on, x = 2²⁷ʲM with M an integer below 2⁵⁰, so 2²⁷ʲ·2/π may be taken modulo 4 beforehand (in two doubles)
/// and the product M·(2/π)ⱼ loses nothing that matters: Payne–Hanek with four bands instead of a table.
#[inline(always)]
fn reduce_turn(x: f32) -> (f32, u32) {
    const BANDS: [(f32, f32, f64, f64); 3] = [
        (power_of_two(50), power_of_two(-27), -0.5529460512772132, 3.808591801500832e-17),
        (power_of_two(77), power_of_two(-54), 1.2910009524680295, -3.862804515881076e-17),
        (power_of_two(104), power_of_two(-81), -1.3139050952781812, 9.395526559852902e-17),
    ];
    const WHOLE: f64 = 6755399441055744.0; // 1.5·2⁵²: adding it rounds to an integer,
    const FOURS: f64 = 4.0 * WHOLE; // and this to a multiple of 4
    let (mut scale, mut hi, mut lo) = (1.0, std::f64::consts::FRAC_2_PI, -3.935735335036497e-17);
    for (from, down, high, low) in BANDS {
        (scale, hi, lo) = if x.abs() >= from { (down, high, low) } else { (scale, hi, lo) };
    }
    let m = f64::from(x * scale);
    let p = m * hi;
    let rest = m.mul_add(lo, m.mul_add(hi, -p));
    // whole turns go first (exactly), then the small terms come in, then the quarters are counted
    let p = (p - ((p + FOURS) - FOURS)) + rest;
    let n = p + WHOLE;
    ((p - (n - WHOLE)) as f32, n.to_bits() as u32)
}
