//! Elementary functions of a real number, written so that a loop over them vectorises.
//!
//! **Statement** one scalar, branch-free body per function: argument reduction, a minimax polynomial in fused
//! multiply-adds, selects for the special values. Inlined into a loop under `#[target_feature]` it becomes AVX2 or
//! AVX-512; without it, the portable fallback. Every step is exactly rounded, so all of them give the same bits.
//! **Conventions** a leading `v` marks a function that differs from std's of the same name (in its last bits, or in
//! how it treats NaN): generic and concrete code then never call different functions under one name. Names without
//! `v` either agree with std exactly or do not exist there.
//! **Error** beside each f32 function: the largest found, rounded up, in units in the last place of the exact value;
//! over every f32 for exp, exp_m1, tanh and σ, every 11th for the others, 10⁸ random pairs for atan2. f64 is std's.
//! **Checked by** `tests/engine/ulp.rs`.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// No other type is a [`Real`]: programs are compiled for these two.
mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A floating-point number the engine computes with: f32 (vectorised here) or f64 (std, the reference).
pub trait Real:
    sealed::Sealed
    + Copy
    + Send
    + Sync
    + 'static
    + PartialOrd
    + Debug
    + Default
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
{
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;

    /// The nearest representable number.
    fn from_f64(x: f64) -> Self;
    /// The same number, in double precision.
    fn to_f64(self) -> f64;

    /// x·a + b, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// √x, correctly rounded.
    fn sqrt(self) -> Self;
    /// |x|
    fn abs(self) -> Self;
    /// ⌊x⌋
    fn floor(self) -> Self;
    /// Whether x is not a number.
    fn is_nan(self) -> bool;

    /// eˣ; 0.9 ulp.
    fn vexp(self) -> Self;
    /// eˣ − 1, relative to itself near 0; 1.5 ulp.
    fn vexp_m1(self) -> Self;
    /// ln x; 1.0 ulp. ln 0 = −∞, ln(x < 0) = NaN.
    fn vln(self) -> Self;
    /// ln(1 + x), relative to itself near 0; 1.5 ulp.
    fn vln_1p(self) -> Self;
    /// tanh x; 3.5 ulp, exactly ±1 from |x| = 8.37 on, never beyond ±1.
    fn vtanh(self) -> Self;
    /// σ(x) = 1/(1 + e⁻ˣ); 2.5 ulp.
    fn sigmoid(self) -> Self;
    /// ln(1 + eˣ), the primitive of σ; 1.9 ulp.
    fn softplus(self) -> Self;
    /// sin x for every finite x; 2.4 ulp.
    fn vsin(self) -> Self;
    /// cos x for every finite x; 2.4 ulp.
    fn vcos(self) -> Self;
    /// (sin 2πu, cos 2πu) for u ∈ [0, 1] (Box–Muller); 1.7 ulp.
    fn sin_cos_turn(self) -> (Self, Self);
    /// The angle of the point (x, y) where y = `self`, in [−π, π]; 2.0 ulp.
    fn vatan2(self, x: Self) -> Self;

    /// 1/x, correctly rounded.
    #[inline(always)]
    fn recip(self) -> Self {
        Self::ONE / self
    }
    /// 1/√x; 1.5 ulp.
    #[inline(always)]
    fn rsqrt(self) -> Self {
        Self::ONE / self.sqrt()
    }
    /// −1, 0 or 1; NaN for NaN.
    #[inline(always)]
    fn sign(self) -> Self {
        let one = if self < Self::ZERO { -Self::ONE } else { Self::ONE };
        if self == Self::ZERO || self.is_nan() { self } else { one }
    }
    /// The lesser; NaN if either is (std's `min` drops it).
    #[inline(always)]
    fn vmin(self, b: Self) -> Self {
        if self < b || self.is_nan() { self } else { b }
    }
    /// The greater; NaN if either is (std's `max` drops it).
    #[inline(always)]
    fn vmax(self, b: Self) -> Self {
        if self > b || self.is_nan() { self } else { b }
    }
}

/// Trait methods that are std's own, under our name: `exact!(f64: vexp = exp)`.
macro_rules! exact {
    ($t:ty: $($trait_name:ident = $std_name:ident),*) => {
        $(#[inline(always)]
        fn $trait_name(self) -> Self {
            <$t>::$std_name(self)
        })*
    };
}

/// What f32 and f64 share word for word.
macro_rules! common {
    ($t:ty) => {
        const ZERO: Self = 0.0;
        const ONE: Self = 1.0;
        exact!($t: sqrt = sqrt, abs = abs, floor = floor);
        #[inline(always)]
        fn from_f64(x: f64) -> Self {
            x as $t
        }
        #[inline(always)]
        fn to_f64(self) -> f64 {
            self as f64
        }
        #[inline(always)]
        fn mul_add(self, a: Self, b: Self) -> Self {
            <$t>::mul_add(self, a, b)
        }
        #[inline(always)]
        fn is_nan(self) -> bool {
            <$t>::is_nan(self)
        }
    };
}

mod single; // after the macros, which it uses

impl Real for f64 {
    common!(f64);
    exact!(f64: vexp = exp, vexp_m1 = exp_m1, vln = ln, vln_1p = ln_1p, vtanh = tanh, vsin = sin, vcos = cos);

    #[inline(always)]
    fn sigmoid(self) -> f64 {
        let e = (-self.abs()).exp();
        (if self < 0.0 { e } else { 1.0 }) / (1.0 + e)
    }
    #[inline(always)]
    fn softplus(self) -> f64 {
        // `max` drops a NaN, but the second term keeps it
        self.max(0.0) + (-self.abs()).exp().ln_1p()
    }
    #[inline(always)]
    fn sin_cos_turn(self) -> (f64, f64) {
        // whole quarters are taken off exactly, so sin ½turn is 0 and not sin(fl(π))
        let n = (4.0 * self).round();
        let (s, c) = ((4.0 * self - n) * std::f64::consts::FRAC_PI_2).sin_cos();
        match n as i64 & 3 {
            0 => (s, c),
            1 => (c, -s),
            2 => (-s, -c),
            _ => (-c, s),
        }
    }
    #[inline(always)]
    fn vatan2(self, x: f64) -> f64 {
        self.atan2(x)
    }
}
