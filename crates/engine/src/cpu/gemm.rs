//! Matrix products inside a row tile, where the data rows are the lanes and weights are scalars.
//!
//! **Statement** `lanes`: C[j][l] = start[j] + Σᵢ w[i,j] · a[i][l];
//! `rows`: C[i][j] += scale · Σₗ a[i][l] · b[j][l].
//! **Conventions** Every output is one chain of fused multiply-adds in the order of the sum, so its
//! bits depend neither on the instruction set nor on how lanes or columns are split.
//! `lanes` starts the chain at `start`; `rows` starts it at zero and adds it to C once.
//! **Checked by** the tests below, against a double-precision triple loop.
#![allow(unsafe_code)] // raw pointers: tiles of one buffer are read and written side by side

use super::vector::{Portable, Vector};
use crate::isa::Isa;
use crate::math::Real;

/// Where the sums of [`lanes`] start.
#[derive(Clone, Copy, Debug)]
pub enum Start<T> {
    /// From zero.
    Zero,
    /// From what C holds.
    Accumulate,
    /// From the scalar `bias[j * stride]`, the same for all lanes.
    Bias(*const T, usize),
}

/// A product as the kernels see it: C[j][l] ← Σᵢ w[i·w_sk + j·w_sn] · a[i·a_stride + l].
#[derive(Clone, Copy)]
struct Job<T> {
    n: usize,
    k: usize,
    t: usize,
    w: *const T,
    w_sk: usize,
    w_sn: usize,
    /// Fill `a` first, with the transpose of the rows found here at this stride.
    turn: Option<(*const T, usize)>,
    a: *mut T,
    a_stride: usize,
    c: *mut T,
    c_stride: usize,
    start: Start<T>,
    /// Add the finished sum, times this, to C instead of replacing it.
    add: Option<T>,
}

/// Terms of the sum per pass, so that the slice of `a` in use stays in the first-level cache.
const DEPTH: usize = 128;

/// Lanes per transposed panel of [`rows`]: four registers of the widest set.
const PANEL: usize = 64;

/// Most columns for which [`rows`] may exchange the roles of its operands.
const THIN: usize = 16;

/// C[j][l] = start + Σ_{i<k} w[i·w_sk + j·w_sn] · a[i·a_stride + l] for j < n, l < t.
///
/// Fastest when `t` is a multiple of 16 and the rows of `a` and `c` start on 64-byte boundaries.
///
/// # Safety
/// `isa` is available; the pointers are valid for the elements named by the formula (none beyond
/// lane `t` is touched); `c` overlaps no input.
pub unsafe fn lanes<T: Real>(
    isa: Isa,
    n: usize,
    k: usize,
    t: usize,
    w: *const T,
    w_sk: usize,
    w_sn: usize,
    a: *const T,
    a_stride: usize,
    c: *mut T,
    c_stride: usize,
    start: Start<T>,
) {
    let (turn, a) = (None, a.cast_mut()); // without a turn, `a` is only read
    let job = Job { n, k, t, w, w_sk, w_sn, turn, a, a_stride, c, c_stride, start, add: None };
    // SAFETY: the caller's contract.
    unsafe { run(isa, &job) }
}

/// Elements of scratch that [`rows`] needs.
pub fn rows_scratch(n: usize, len: usize) -> usize {
    let thin = if n <= THIN { n * PANEL } else { 0 };
    len * PANEL + thin + 64 // 64: room to align the panel
}

/// C[i][j] += scale · Σ_{l<len} a[i·a_stride + l] · b[j·b_stride + l] for i < m, j < n.
///
/// # Safety
/// `isa` is available; the pointers are valid for the elements named by the formula; `c` overlaps
/// no input; `scratch` has [`rows_scratch`]`(n, len)` elements.
pub unsafe fn rows<T: Real>(
    isa: Isa,
    m: usize,
    n: usize,
    len: usize,
    a: *const T,
    a_stride: usize,
    b: *const T,
    b_stride: usize,
    c: *mut T,
    c_stride: usize,
    scale: T,
    scratch: &mut [T],
) {
    assert!(scratch.len() >= rows_scratch(n, len));
    let from = scratch.as_ptr().align_offset(64).min(64);
    let (panel, thin) = scratch[from..].split_at_mut(len * PANEL);
    let panel = panel.as_mut_ptr();
    // In multiply-adds of 16 lanes, a transposed value costs about a third of one.
    let cost = |lanes: usize, scalars: usize| lanes.div_ceil(16) * scalars * 3 + lanes;
    let job = |n, t, w, w_sn, turn, c, c_stride, add| {
        let (a, a_stride, start) = (panel, PANEL, Start::Zero);
        Job { n, k: len, t, w, w_sk: 1, w_sn, turn, a, a_stride, c, c_stride, start, add }
    };
    if n <= THIN && cost(m, n) < cost(n, m) {
        let sums = thin.as_mut_ptr();
        for i in (0..m).step_by(PANEL) {
            let t = PANEL.min(m - i);
            // SAFETY: i + t ≤ m rows of `a` exist; `panel` and `sums` hold PANEL lanes per row.
            unsafe {
                let turn = Some((a.add(i * a_stride), a_stride));
                run(isa, &job(n, t, b, b_stride, turn, sums, PANEL, None));
                for l in 0..t {
                    for j in 0..n {
                        let at = c.add((i + l) * c_stride + j);
                        *at += *sums.add(j * PANEL + l) * scale; // no fma: this code is compiled without features
                    }
                }
            }
        }
    } else {
        for j in (0..n).step_by(PANEL) {
            let t = PANEL.min(n - j);
            // SAFETY: j + t ≤ n rows of `b` and columns of `c` exist; `panel` holds PANEL lanes.
            unsafe {
                let turn = Some((b.add(j * b_stride), b_stride));
                run(isa, &job(m, t, a, a_stride, turn, c.add(j), c_stride, Some(scale)));
            }
        }
    }
}

/// Runs a job with the registers that stand for `T` under `isa`.
unsafe fn run<T: Real>(isa: Isa, job: &Job<T>) {
    #[cfg(target_arch = "x86_64")]
    macro_rules! compile {
        ($($isa:ident $features:literal $t:ident $v:ident)*) => {$(
            if isa == Isa::$isa && std::any::TypeId::of::<T>() == std::any::TypeId::of::<$t>() {
                #[target_feature(enable = $features)]
                unsafe fn compiled(job: &Job<$t>) {
                    // SAFETY: the features are those of the register; the caller owns the job.
                    unsafe { product::<std::arch::x86_64::$v>(job) }
                }
                // SAFETY: T is the type of the cast; the caller promises `isa` and the job.
                return unsafe { compiled(&*std::ptr::from_ref(job).cast()) };
            }
        )*};
    }
    #[cfg(target_arch = "x86_64")]
    compile! {
        Avx512 "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma" f32 __m512
        Avx512 "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma" f64 __m512d
        Avx2 "avx2,fma" f32 __m256
        Avx2 "avx2,fma" f64 __m256d
    }
    let _ = isa; // the only set left
    // SAFETY: the caller's contract.
    unsafe { product::<Portable<T>>(job) }
}

/// The loop nest: slices of the sum, then panels of lanes, then tiles of columns.
#[inline(always)]
unsafe fn product<V: Vector>(job: &Job<V::T>) {
    if let Some((src, stride)) = job.turn {
        // SAFETY: the caller promises t rows of k values there, and k rows of t lanes in `a`.
        unsafe { turn::<V>(job.t, job.k, src, stride, job.a) }
    }
    let mut slice = *job;
    // A sum that is added at the end cannot pause in C.
    let depth = if job.add.is_some() { job.k } else { DEPTH };
    let mut i = 0;
    loop {
        slice.k = depth.min(job.k - i);
        // SAFETY: i < k (or k = 0 and i = 0), so both pointers stay in their matrices.
        unsafe {
            (slice.w, slice.a) = (job.w.add(i * job.w_sk), job.a.add(i * job.a_stride));
            panels::<V>(&slice);
        }
        i += slice.k;
        if i == job.k {
            return;
        }
        slice.start = Start::Accumulate;
    }
}

/// dst[l·PANEL + j] = src[j·src_stride + l] for j < n, l < len.
#[inline(always)]
unsafe fn turn<V: Vector>(n: usize, len: usize, src: *const V::T, src_stride: usize, dst: *mut V::T) {
    let (from, to) = (
        |j: usize, l: usize| src.wrapping_add(j * src_stride + l),
        |j: usize, l: usize| dst.wrapping_add(l * PANEL + j),
    );
    // SAFETY: every block lies inside n × len, which the caller owns.
    unsafe {
        if n < V::BLOCK || len < V::BLOCK {
            for (j, l) in (0..n).flat_map(|j| (0..len).map(move |l| (j, l))) {
                *to(j, l) = *from(j, l);
            }
            return;
        }
        for l in (0..len).step_by(V::BLOCK) {
            for j in (0..n).step_by(V::BLOCK) {
                // The last block of a line overlaps the one before, and writes the same values.
                let (j, l) = (j.min(n - V::BLOCK), l.min(len - V::BLOCK));
                V::transpose(from(j, l), src_stride, to(j, l), PANEL);
            }
        }
    }
}

/// Cuts the lanes into panels of a few registers, and one partial register at the end.
#[inline(always)]
unsafe fn panels<V: Vector>(job: &Job<V::T>) {
    let (mut l, mut left) = (0, job.t / V::LANES);
    // SAFETY: `left` full registers and `t % LANES` lanes remain from lane `l`.
    unsafe {
        while left > 0 {
            // Never leave a single register behind: it would reuse no broadcast.
            let span = if left == V::SPAN + 1 { left.div_ceil(2) } else { left.min(V::SPAN) };
            match span {
                4 if const { V::SPAN >= 4 } => columns::<V, 4, false>(job, l),
                3 if const { V::SPAN >= 3 } => columns::<V, 3, false>(job, l),
                2 if const { V::SPAN >= 2 } => columns::<V, 2, false>(job, l),
                _ => columns::<V, 1, false>(job, l),
            }
            (l, left) = (l + span * V::LANES, left - span);
        }
        if const { V::Half::LANES < V::LANES } && job.t - l <= V::Half::LANES && l < job.t {
            columns::<V::Half, 1, true>(job, l)
        } else if l < job.t {
            columns::<V, 1, true>(job, l)
        }
    }
}

/// Covers the columns of one panel with the largest tiles that fit in registers.
#[inline(always)]
unsafe fn columns<V: Vector, const RV: usize, const PART: bool>(job: &Job<V::T>, l: usize) {
    let mut j = 0;
    macro_rules! tiles {
        ($($nb:literal)*) => {$(
            if const { $nb * RV <= V::TILE } {
                while job.n - j >= $nb {
                    // SAFETY: columns j..j + NB exist, and lanes l.. as the caller promises.
                    unsafe { tile::<V, RV, $nb, PART>(job, j, l) };
                    j += $nb;
                }
            }
        )*};
    }
    tiles!(12 8 6 4 2 1);
}

/// The micro-kernel: RV registers of lanes × NB columns, all sums in registers.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // q and r index matrices
unsafe fn tile<V: Vector, const RV: usize, const NB: usize, const PART: bool>(job: &Job<V::T>, j: usize, l: usize) {
    // SAFETY: the caller promises columns j..j + NB and RV registers (or one partial) from lane l.
    unsafe {
        let mask = V::mask(if PART { job.t - l } else { 0 });
        let load = |p| match PART {
            true => V::load_part(p, mask),
            false => V::load(p),
        };
        let c = job.c.add(j * job.c_stride + l);
        let at = |q: usize, r: usize| c.add(q * job.c_stride + r * V::LANES);
        let mut sum = [[V::splat(V::T::ZERO); RV]; NB];
        match job.start {
            Start::Zero => {}
            Start::Accumulate => {
                for q in 0..NB {
                    for r in 0..RV {
                        sum[q][r] = load(at(q, r));
                    }
                }
            }
            Start::Bias(bias, stride) => {
                for q in 0..NB {
                    sum[q] = [V::splat(*bias.add((j + q) * stride)); RV];
                }
            }
        }
        let stride = job.w_sn;
        // One pointer per three columns: [p], [p + s], [p + 2s] are addressing modes.
        let mut w: [*const V::T; 4] = std::array::from_fn(|g| job.w.wrapping_add((j + 3 * g) * stride));
        let mut a = job.a.add(l);
        for _ in 0..job.k {
            let mut x = [V::splat(V::T::ZERO); RV];
            for r in 0..RV {
                x[r] = load(a.add(r * V::LANES));
            }
            for q in 0..NB {
                let s = V::splat(*w[q / 3].add(q % 3 * stride));
                for r in 0..RV {
                    sum[q][r] = sum[q][r].fma(s, x[r]);
                }
            }
            a = a.wrapping_add(job.a_stride);
            w = w.map(|p| p.wrapping_add(job.w_sk));
        }
        for q in 0..NB {
            for r in 0..RV {
                let mut y = sum[q][r];
                if let Some(scale) = job.add {
                    y = load(at(q, r)).fma(y, V::splat(scale));
                }
                if PART { y.store_part(at(q, r), mask) } else { y.store(at(q, r)) }
            }
        }
    }
}

#[cfg(test)]
mod tests;
