//! Registers: the handful of operations that products need by name, for each instruction set.
//!
//! **Convention:** a fused multiply-add everywhere, so that all sets give the same bits.
#![allow(unsafe_code)] // intrinsics

use crate::math::Real;

/// One register of values of type `T`, one value per lane.
///
/// # Safety
/// Every method needs the instruction set of its register; loads and stores need a pointer valid
/// for the lanes they touch (all of them, or those of the mask), with no alignment.
pub(crate) trait Vector: Copy {
    type T: Real;
    /// Which lanes exist, in the last register of a row.
    type Mask: Copy;
    const LANES: usize;
    /// Accumulators that fit in the register file next to their operands.
    const TILE: usize;
    /// Registers of lanes that a tile may span.
    const SPAN: usize;
    /// A register of half the lanes for short ends of rows, or `Self` where none is cheaper.
    type Half: Vector<T = Self::T>;
    /// Side of the block that `transpose` turns.
    const BLOCK: usize;
    unsafe fn mask(lanes: usize) -> Self::Mask;
    unsafe fn splat(x: Self::T) -> Self;
    unsafe fn load(p: *const Self::T) -> Self;
    unsafe fn load_part(p: *const Self::T, m: Self::Mask) -> Self;
    unsafe fn store(self, p: *mut Self::T);
    unsafe fn store_part(self, p: *mut Self::T, m: Self::Mask);
    /// a · b + self, rounded once.
    unsafe fn fma(self, a: Self, b: Self) -> Self;
    /// dst[l·dst_stride + j] = src[j·src_stride + l] for j, l < BLOCK.
    unsafe fn transpose(src: *const Self::T, src_stride: usize, dst: *mut Self::T, dst_stride: usize);
}

/// Eight values in memory: what machines without a register of their own here use.
#[derive(Clone, Copy)]
pub(crate) struct Portable<T>([T; 8]);

impl<T: Real> Vector for Portable<T> {
    type T = T;
    type Mask = usize;
    const LANES: usize = 8;
    const TILE: usize = 6; // aarch64: 2 of its 32 registers each
    const SPAN: usize = 1;
    type Half = Self;
    const BLOCK: usize = 1;
    #[inline(always)]
    unsafe fn mask(lanes: usize) -> usize {
        lanes
    }
    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        Portable([x; 8])
    }
    #[inline(always)]
    unsafe fn load(p: *const T) -> Self {
        // SAFETY: the caller's eight lanes; read_unaligned asks for no alignment.
        unsafe { Portable(p.cast::<[T; 8]>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load_part(p: *const T, m: usize) -> Self {
        // SAFETY: reads only the lanes below `m`, which the caller owns.
        Portable(std::array::from_fn(|l| if l < m { unsafe { *p.add(l) } } else { T::ZERO }))
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut T) {
        // SAFETY: the caller's eight lanes.
        unsafe { p.cast::<[T; 8]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut T, m: usize) {
        for (l, &x) in self.0.iter().enumerate().take(m) {
            // SAFETY: writes only the lanes below `m`, which the caller owns.
            unsafe { *p.add(l) = x }
        }
    }
    #[inline(always)]
    unsafe fn fma(self, a: Self, b: Self) -> Self {
        Portable(std::array::from_fn(|l| a.0[l].mul_add(b.0[l], self.0[l])))
    }
    #[inline(always)]
    unsafe fn transpose(src: *const T, _: usize, dst: *mut T, _: usize) {
        // SAFETY: the caller's block of one element.
        unsafe { *dst = *src }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    // One register type: element, lanes, shape of its tiles, mask, and the names of its intrinsics.
    macro_rules! register {
        ($v:ident: [$t:ty; $lanes:literal], tile $tile:literal, span $span:literal, half $half:ty,
         $block:literal, $transpose:ident, mask $m:ident = |$n:ident| $mask:expr,
         $splat:ident $load:ident $load_part:ident $store:ident $store_part:ident $fma:ident) => {
            // SAFETY of every block: the trait's contract (the register exists, the lanes are valid).
            impl Vector for $v {
                type T = $t;
                type Mask = $m;
                const LANES: usize = $lanes;
                const TILE: usize = $tile;
                const SPAN: usize = $span;
                type Half = $half;
                const BLOCK: usize = $block;
                #[inline(always)]
                unsafe fn mask($n: usize) -> $m {
                    #[allow(unused_unsafe)]
                    unsafe {
                        $mask
                    }
                }
                #[inline(always)]
                unsafe fn splat(x: $t) -> Self {
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn load(p: *const $t) -> Self {
                    unsafe { $load(p) }
                }
                #[inline(always)]
                unsafe fn load_part(p: *const $t, m: $m) -> Self {
                    unsafe { $load_part(m, p) }
                }
                #[inline(always)]
                unsafe fn store(self, p: *mut $t) {
                    unsafe { $store(p, self) }
                }
                #[inline(always)]
                unsafe fn store_part(self, p: *mut $t, m: $m) {
                    unsafe { $store_part(p, m, self) }
                }
                #[inline(always)]
                unsafe fn fma(self, a: Self, b: Self) -> Self {
                    unsafe { $fma(a, b, self) }
                }
                #[inline(always)]
                unsafe fn transpose(src: *const $t, src_stride: usize, dst: *mut $t, dst_stride: usize) {
                    unsafe { $transpose(src, src_stride, dst, dst_stride) }
                }
            }
        };
    }

    register!(__m512: [f32; 16], tile 24, span 4, half __m256, 8, transpose8,
        mask __mmask16 = |n| ((1u32 << n) - 1) as __mmask16,
        _mm512_set1_ps _mm512_loadu_ps _mm512_maskz_loadu_ps _mm512_storeu_ps _mm512_mask_storeu_ps
        _mm512_fmadd_ps);
    register!(__m512d: [f64; 8], tile 24, span 4, half __m256d, 4, transpose4,
        mask __mmask8 = |n| ((1u32 << n) - 1) as __mmask8,
        _mm512_set1_pd _mm512_loadu_pd _mm512_maskz_loadu_pd _mm512_storeu_pd _mm512_mask_storeu_pd
        _mm512_fmadd_pd);
    register!(__m256: [f32; 8], tile 12, span 2, half __m256, 8, transpose8,
        mask __m256i = |n| _mm256_cmpgt_epi32(
            _mm256_set1_epi32(n as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
        _mm256_set1_ps _mm256_loadu_ps mask_load_ps _mm256_storeu_ps _mm256_maskstore_ps
        _mm256_fmadd_ps);
    register!(__m256d: [f64; 4], tile 12, span 2, half __m256d, 4, transpose4,
        mask __m256i = |n| _mm256_cmpgt_epi64(
            _mm256_set1_epi64x(n as i64), _mm256_setr_epi64x(0, 1, 2, 3)),
        _mm256_set1_pd _mm256_loadu_pd mask_load_pd _mm256_storeu_pd _mm256_maskstore_pd
        _mm256_fmadd_pd);

    // The avx2 loads take their mask last; these put it first, as the avx512 ones do.
    #[inline(always)]
    unsafe fn mask_load_ps(m: __m256i, p: *const f32) -> __m256 {
        // SAFETY: the contract of `load_part`.
        unsafe { _mm256_maskload_ps(p, m) }
    }
    #[inline(always)]
    unsafe fn mask_load_pd(m: __m256i, p: *const f64) -> __m256d {
        // SAFETY: the contract of `load_part`.
        unsafe { _mm256_maskload_pd(p, m) }
    }

    /// Turns 8 × 8: rows q and q + 4 share a register, whose two halves are then 4 × 4 turns.
    #[inline(always)]
    unsafe fn transpose8(src: *const f32, src_stride: usize, dst: *mut f32, dst_stride: usize) {
        // SAFETY: the contract of `transpose`: both blocks are 8 × 8.
        unsafe {
            for side in [0, 4] {
                macro_rules! pair {
                    ($q:literal) => {
                        _mm256_insertf128_ps::<1>(
                            _mm256_castps128_ps256(_mm_loadu_ps(src.add($q * src_stride + side))),
                            _mm_loadu_ps(src.add(($q + 4) * src_stride + side)),
                        )
                    };
                }
                let (r0, r1, r2, r3) = (pair!(0), pair!(1), pair!(2), pair!(3));
                let (lo01, hi01) = (_mm256_unpacklo_ps(r0, r1), _mm256_unpackhi_ps(r0, r1));
                let (lo23, hi23) = (_mm256_unpacklo_ps(r2, r3), _mm256_unpackhi_ps(r2, r3));
                let row = |l: usize| dst.add((side + l) * dst_stride);
                _mm256_storeu_ps(row(0), _mm256_shuffle_ps::<0x44>(lo01, lo23));
                _mm256_storeu_ps(row(1), _mm256_shuffle_ps::<0xee>(lo01, lo23));
                _mm256_storeu_ps(row(2), _mm256_shuffle_ps::<0x44>(hi01, hi23));
                _mm256_storeu_ps(row(3), _mm256_shuffle_ps::<0xee>(hi01, hi23));
            }
        }
    }

    /// Turns 4 × 4, in the same way.
    #[inline(always)]
    unsafe fn transpose4(src: *const f64, src_stride: usize, dst: *mut f64, dst_stride: usize) {
        // SAFETY: the contract of `transpose`: both blocks are 4 × 4.
        unsafe {
            for side in [0, 2] {
                macro_rules! pair {
                    ($q:literal) => {
                        _mm256_insertf128_pd::<1>(
                            _mm256_castpd128_pd256(_mm_loadu_pd(src.add($q * src_stride + side))),
                            _mm_loadu_pd(src.add(($q + 2) * src_stride + side)),
                        )
                    };
                }
                let (r0, r1) = (pair!(0), pair!(1));
                _mm256_storeu_pd(dst.add(side * dst_stride), _mm256_unpacklo_pd(r0, r1));
                _mm256_storeu_pd(dst.add((side + 1) * dst_stride), _mm256_unpackhi_pd(r0, r1));
            }
        }
    }
}
