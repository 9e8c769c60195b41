//! Runs chains: fused elementwise operations over blocks that stay in the first-level cache.
//!
//! A chain is a short list of operations. For each block of a few hundred entries every operation is one vectorised
//! loop, reading and writing operands in place or in block registers, so the cost of choosing the operation is spread
//! over the block and intermediate values never leave the cache.
#![allow(unsafe_code)] // raw pointers: operands of one arena are read and written side by side

use super::plan::{Chain, ChainOp, Code, Lanes, Slot};
use super::run::{Place, Worker};
use super::tiling::LANES;
use crate::isa::{Isa, dispatch};
use crate::math::Real;
use crate::op::{Binary, Unary};
use std::ops::Range;

/// Entries per block and register: small enough that a dozen registers fit in the first-level cache.
pub(crate) const BLOCK: usize = 1024;

/// An operand of the block at hand.
#[derive(Clone, Copy)]
pub(crate) struct Arg<T> {
    ptr: *mut T,
    feature: usize,
    lane: usize,
}

impl<T> Arg<T> {
    /// A free slot.
    pub fn empty() -> Self {
        Arg { ptr: std::ptr::null_mut(), feature: 0, lane: 0 }
    }
}

/// Extent of the block at hand: features × lanes, and how many lanes are rows of the data.
#[derive(Clone, Copy)]
struct Extent {
    features: usize,
    lanes: usize,
    valid: usize,
}

impl Chain {
    /// Number of independent pieces a whole-value chain can be cut into.
    pub fn pieces(&self) -> usize {
        const PIECE: usize = 8 * BLOCK;
        if !self.splits {
            return 1;
        }
        let inner = self.features * self.fixed_lanes();
        match self.outer.first() {
            Some(&n) => n.min((self.outer.iter().product::<usize>() * inner).div_ceil(PIECE)),
            None if self.features > 1 => self.features.min(inner.div_ceil(PIECE)),
            None => inner.div_ceil(PIECE),
        }
    }

    fn fixed_lanes(&self) -> usize {
        match self.lanes {
            Lanes::Fixed(n) => n,
            Lanes::Tile => LANES,
        }
    }

    /// Runs piece `piece` of `pieces` (the first loop of the chain is what is cut).
    ///
    /// # Safety
    /// All operands are valid at `place` for the extents of the chain, and no other thread writes what it touches.
    pub unsafe fn run<T: Real>(&self, worker: &mut Worker<T>, place: &Place<T>, piece: usize, pieces: usize) {
        let lanes = match self.lanes {
            Lanes::Fixed(n) => n,
            Lanes::Tile => place.lanes(),
        };
        let cut = |n: usize| piece * n / pieces..(piece + 1) * n / pieces;
        let (mut outer, mut features, mut span) = (0..self.outer.iter().product(), 0..self.features, 0..lanes);
        if let Some(&first) = self.outer.first() {
            let rest = outer.end / first.max(1);
            outer = cut(first).start * rest..cut(first).end * rest;
        } else if self.features > 1 {
            features = cut(self.features);
        } else if self.splits {
            span = cut(lanes);
        }
        let register_pitch = if self.lanes == Lanes::Tile { place.pitch } else { lanes.min(BLOCK) };
        let mut bases = std::mem::take(&mut worker.bases);
        let mut args = std::mem::take(&mut worker.args);
        let mut block = std::mem::take(&mut worker.block);
        for (operand, base) in self.operands.iter().zip(&mut bases) {
            *base = match operand.slot {
                // SAFETY: the plan sized every buffer for the extents it is used with.
                Slot::At(at) => unsafe { place.resolve(worker, at) },
                Slot::Register(r) => unsafe { worker.registers.as_mut_ptr().add(r * BLOCK.max(place.pitch)) },
            };
        }
        for o in outer {
            self.aim(o, &bases, &mut args, register_pitch);
            // SAFETY: as promised by the caller.
            unsafe {
                self.blocks(worker.isa, place, &args, &mut block, features.clone(), span.clone(), register_pitch)
            };
        }
        worker.bases = bases;
        worker.args = args;
        worker.block = block;
    }

    /// Points the arguments at turn `o` of the outer loops.
    fn aim<T>(&self, o: usize, bases: &[*mut T], args: &mut [Arg<T>], register_pitch: usize) {
        for ((operand, &base), arg) in self.operands.iter().zip(bases).zip(args) {
            let mut rest = o;
            let mut offset = 0;
            for (&n, &stride) in self.outer.iter().zip(&operand.outer).rev() {
                offset += rest % n * stride;
                rest /= n;
            }
            let feature = if matches!(operand.slot, Slot::Register(_)) { register_pitch } else { operand.feature };
            // `wrapping_add` because a register's base is not moved and a buffer's offset was planned to be in bounds.
            *arg = Arg { ptr: base.wrapping_add(offset), feature, lane: operand.lane };
        }
    }

    /// # Safety
    /// As [`Chain::run`]; `args` point at the start of the inner loops.
    unsafe fn blocks<T: Real>(
        &self,
        isa: Isa,
        place: &Place<T>,
        args: &[Arg<T>],
        block: &mut [Arg<T>],
        features: Range<usize>,
        span: Range<usize>,
        register_pitch: usize,
    ) {
        let count = self.operands.len();
        let step = (BLOCK / register_pitch.max(1)).max(1);
        let mut at = features.start;
        while at < features.end {
            let height = step.min(features.end - at);
            let mut lane = span.start;
            while lane < span.end {
                let width = if self.lanes == Lanes::Tile { span.end } else { BLOCK.min(span.end - lane) };
                for ((operand, arg), to) in self.operands.iter().zip(args).zip(block.iter_mut()) {
                    let moved = matches!(operand.slot, Slot::At(_));
                    let offset = if moved { at * arg.feature + lane * arg.lane } else { 0 };
                    *to = Arg { ptr: arg.ptr.wrapping_add(offset), ..*arg };
                }
                let extent = Extent { features: height, lanes: width, valid: place.valid() };
                // SAFETY: the block lies within the extents of the chain.
                unsafe { run_block(isa, &self.ops, &block[..count], extent) };
                lane += width;
            }
            at += height;
        }
    }
}

/// dst[l] = $e for all lanes of all features; `$x` are vector operands (slices), `$s` scalars of the feature.
macro_rules! each {
    ($extent:ident, $dst:ident, [$($x:ident = $xa:expr),*], [$($s:ident = $sa:expr),*], $e:expr) => {{
        let flat = $dst.feature == $extent.lanes $(&& $xa.feature == $extent.lanes)* $(&& $sa.feature == 0)*;
        let (features, lanes) = if flat { (1, $extent.features * $extent.lanes) } else { ($extent.features, $extent.lanes) };
        for f in 0..features {
            // SAFETY: the block lies within its operands; the planner never gives an operation its own argument as result.
            unsafe {
                let d = $dst.ptr.add(f * $dst.feature);
                $(let $x = $xa.ptr.add(f * $xa.feature) as *const T;)*
                $(let $s = *$sa.ptr.add(f * $sa.feature);)*
                for l in 0..lanes {
                    $(let $x = *$x.add(l);)*
                    *d.add(l) = $e;
                }
            }
        }
    }};
}

macro_rules! unary {
    ($op:expr, $extent:ident, $d:ident, $a:ident; $($name:ident),*) => {
        match $op { $(
            Unary::$name => if $a.lane == 1 {
                each!($extent, $d, [x = $a], [], Unary::$name.eval(x))
            } else {
                each!($extent, $d, [], [x = $a], Unary::$name.eval(x))
            }
        )* }
    };
}

macro_rules! binary {
    ($op:expr, $extent:ident, $d:ident, $a:ident, $b:ident; $($name:ident),*) => {
        match $op { $(
            Binary::$name => match ($a.lane, $b.lane) {
                (1, 1) => each!($extent, $d, [x = $a, y = $b], [], Binary::$name.eval(x, y)),
                (1, _) => each!($extent, $d, [x = $a], [y = $b], Binary::$name.eval(x, y)),
                (_, 1) => each!($extent, $d, [y = $b], [x = $a], Binary::$name.eval(x, y)),
                _ => each!($extent, $d, [], [x = $a, y = $b], Binary::$name.eval(x, y)),
            }
        )* }
    };
}

macro_rules! ternary {
    ($extent:ident, $d:ident, $a:ident, $b:ident, $c:ident; |$x:ident, $y:ident, $z:ident| $e:expr) => {
        match ($a.lane, $b.lane, $c.lane) {
            (1, 1, 1) => each!($extent, $d, [$x = $a, $y = $b, $z = $c], [], $e),
            (1, 1, _) => each!($extent, $d, [$x = $a, $y = $b], [$z = $c], $e),
            (1, _, 1) => each!($extent, $d, [$x = $a, $z = $c], [$y = $b], $e),
            (_, 1, 1) => each!($extent, $d, [$y = $b, $z = $c], [$x = $a], $e),
            (1, _, _) => each!($extent, $d, [$x = $a], [$y = $b, $z = $c], $e),
            (_, 1, _) => each!($extent, $d, [$y = $b], [$x = $a, $z = $c], $e),
            (_, _, 1) => each!($extent, $d, [$z = $c], [$x = $a, $y = $b], $e),
            _ => each!($extent, $d, [], [$x = $a, $y = $b, $z = $c], $e),
        }
    };
}

dispatch! {
    /// Runs all operations on one block.
    ///
    /// # Safety
    /// `isa` is available and the block lies within its operands.
    unsafe fn run_block<T: Real>(isa: Isa, ops: &[ChainOp], args: &[Arg<T>], extent: Extent) {
        for op in ops {
            let d = args[op.dst];
            let [a, b, c] = op.src.map(|i| args[i]);
            match op.code {
                Code::Unary(u) => unary!(u, extent, d, a; Neg, Abs, Sign, Floor, Recip, Sqrt, Rsqrt, Exp, Expm1, Log,
                    Log1p, Tanh, Sigmoid, Softplus, Sin, Cos),
                Code::Binary(o) => binary!(o, extent, d, a, b; Add, Sub, Mul, Div, Min, Max, Atan2, Less, LessEqual, Equal),
                Code::Select => ternary!(extent, d, a, b, c; |x, y, z| if x != T::ZERO { y } else { z }),
                Code::MulAdd => ternary!(extent, d, a, b, c; |x, y, z| x.mul_add(y, z)),
                Code::MulSub => ternary!(extent, d, a, b, c; |x, y, z| x.mul_add(y, -z)),
                Code::NegMulAdd => ternary!(extent, d, a, b, c; |x, y, z| (-x).mul_add(y, z)),
                // SAFETY: the contract of this function.
                Code::AddInto if d.lane == 0 => unsafe { fold_lanes::<T, false>(d, a, extent.features, extent.lanes) },
                // SAFETY: the contract of this function.
                Code::MaxInto if d.lane == 0 => unsafe { fold_lanes::<T, true>(d, a, extent.features, extent.lanes) },
                // SAFETY: the contract of this function.
                Code::AddInto => unsafe { fold_features::<T, false>(d, a, extent) },
                // SAFETY: the contract of this function.
                Code::MaxInto => unsafe { fold_features::<T, true>(d, a, extent) },
                // SAFETY: the contract of this function.
                Code::AddRows => unsafe { fold_lanes::<T, false>(d, a, extent.features, extent.valid) },
                // SAFETY: the contract of this function.
                Code::MaxRows => unsafe { fold_lanes::<T, true>(d, a, extent.features, extent.valid) },
                // SAFETY: the contract of this function.
                Code::SumChunks { chunks, stride } => unsafe { fold_chunks::<T, false>(d, a, chunks, stride, extent) },
                // SAFETY: the contract of this function.
                Code::MaxChunks { chunks, stride } => unsafe { fold_chunks::<T, true>(d, a, chunks, stride, extent) },
            }
        }
    }
}

#[inline(always)]
fn join<T: Real, const MAX: bool>(x: T, y: T) -> T {
    if MAX { x.vmax(y) } else { x + y }
}

/// dst[f] = dst[f] ∘ (src[f][0] ∘ src[f][1] ∘ …), in sixteen interleaved runs whatever the instruction set.
///
/// # Safety
/// `src` has `lanes` lanes for each feature (or one scalar, if it has no lane axis), `dst` one value.
#[inline(always)]
unsafe fn fold_lanes<T: Real, const MAX: bool>(dst: Arg<T>, src: Arg<T>, features: usize, lanes: usize) {
    let start = if MAX { T::from_f64(f64::NEG_INFINITY) } else { T::ZERO };
    for f in 0..features {
        // SAFETY: the contract of this function.
        unsafe {
            let (d, s) = (dst.ptr.add(f * dst.feature), src.ptr.add(f * src.feature));
            let mut runs = [start; LANES];
            if src.lane == 1 {
                let whole = lanes / LANES * LANES;
                for l in (0..whole).step_by(LANES) {
                    for (i, run) in runs.iter_mut().enumerate() {
                        *run = join::<T, MAX>(*run, *s.add(l + i));
                    }
                }
                for (i, run) in runs.iter_mut().enumerate().take(lanes - whole) {
                    *run = join::<T, MAX>(*run, *s.add(whole + i));
                }
            } else if MAX {
                runs[0] = *s;
            } else {
                runs[0] = *s * T::from_f64(lanes as f64);
            }
            let mut width = LANES / 2;
            while width > 0 {
                for i in 0..width {
                    runs[i] = join::<T, MAX>(runs[i], runs[i + width]);
                }
                width /= 2;
            }
            *d = join::<T, MAX>(*d, runs[0]);
        }
    }
}

/// dst[f][l] = dst[f][l] ∘ src[f][l], feature after feature (dst may repeat over features).
///
/// # Safety
/// The block lies within both operands.
#[inline(always)]
unsafe fn fold_features<T: Real, const MAX: bool>(dst: Arg<T>, src: Arg<T>, extent: Extent) {
    for f in 0..extent.features {
        // SAFETY: the contract of this function.
        unsafe {
            let (d, s) = (dst.ptr.add(f * dst.feature), src.ptr.add(f * src.feature));
            if src.lane == 1 {
                for l in 0..extent.lanes {
                    *d.add(l) = join::<T, MAX>(*d.add(l), *s.add(l));
                }
            } else {
                let x = *s;
                for l in 0..extent.lanes {
                    *d.add(l) = join::<T, MAX>(*d.add(l), x);
                }
            }
        }
    }
}

/// dst = src of chunk 0 ∘ src of chunk 1 ∘ …, in this order.
///
/// # Safety
/// The block lies within `dst` and within every chunk of `src`.
#[inline(always)]
unsafe fn fold_chunks<T: Real, const MAX: bool>(
    dst: Arg<T>,
    src: Arg<T>,
    chunks: usize,
    stride: usize,
    extent: Extent,
) {
    for f in 0..extent.features {
        // SAFETY: the contract of this function.
        unsafe {
            let (d, s) = (dst.ptr.add(f * dst.feature), src.ptr.add(f * src.feature) as *const T);
            for l in 0..extent.lanes {
                *d.add(l) = *s.add(l);
            }
            for c in 1..chunks {
                let s = s.add(c * stride);
                for l in 0..extent.lanes {
                    *d.add(l) = join::<T, MAX>(*d.add(l), *s.add(l));
                }
            }
        }
    }
}
