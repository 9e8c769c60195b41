//! Instruction sets: which one runs, and how a loop is compiled for each.
//!
//! [`dispatch!`] compiles one plain loop three times; the compiler vectorises it under each set of features.
//! **Convention:** a fused multiply-add everywhere, so that all sets give the same bits.
#![allow(unsafe_code)] // intrinsics and target features

use std::fmt;

/// The instruction set a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// What the compilation target guarantees, nothing more.
    Portable,
    /// x86: avx2 and fma.
    Avx2,
    /// x86: avx512 f, vl, dq, bw, and all of [`Isa::Avx2`].
    Avx512,
}

impl Isa {
    /// The widest set this machine runs.
    pub fn detect() -> Isa {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            let wide = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw");
            return if wide { Isa::Avx512 } else { Isa::Avx2 };
        }
        Isa::Portable
    }

    /// Every set this machine runs, narrowest first.
    pub fn available() -> Vec<Isa> {
        match Isa::detect() {
            Isa::Portable => vec![Isa::Portable],
            Isa::Avx2 => vec![Isa::Portable, Isa::Avx2],
            Isa::Avx512 => vec![Isa::Portable, Isa::Avx2, Isa::Avx512],
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        })
    }
}

/// Compiles a function body once per instruction set and picks the copy at run time.
///
/// The first argument must be written `isa: Isa`; type parameters take one bound each, constant
/// parameters follow after a semicolon. Whatever the body calls must be `#[inline(always)]` (or a
/// small closure), or it is compiled without the features.
///
/// ```ignore
/// dispatch! {
///     /// y ← max(x, 0).
///     ///
///     /// # Safety
///     /// `isa` is available; `x` and `y` are valid for `n` elements.
///     pub(crate) unsafe fn relu<T: Real>(isa: Isa, n: usize, x: *const T, y: *mut T) {
///         for i in 0..n {
///             // SAFETY: i < n.
///             unsafe { *y.add(i) = if *x.add(i) > T::ZERO { *x.add(i) } else { T::ZERO } }
///         }
///     }
/// }
/// // unsafe { relu(Isa::detect(), n, x, y) }
/// ```
macro_rules! dispatch {
    (
        $(#[$meta:meta])*
        $vis:vis unsafe fn $name:ident
        $(< $($g:ident : $bound:path),+ $(; $(const $c:ident : $cty:ty),+)? >)?
        ($isa:ident : Isa $(, $arg:ident : $ty:ty)* $(,)?) $(-> $ret:ty)? $body:block
    ) => {
        $(#[$meta])*
        $vis unsafe fn $name $(< $($g: $bound),+ $(, $(const $c: $cty),+)? >)?
        ($isa: $crate::isa::Isa $(, $arg: $ty)*) $(-> $ret)? {
            #[inline(always)]
            unsafe fn body $(< $($g: $bound),+ $(, $(const $c: $cty),+)? >)?
            ($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn avx2 $(< $($g: $bound),+ $(, $(const $c: $cty),+)? >)?
            ($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller's contract is the body's.
                unsafe { body $(::< $($g),+ $(, $($c),+)? >)? ($($arg),*) }
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
            unsafe fn avx512 $(< $($g: $bound),+ $(, $(const $c: $cty),+)? >)?
            ($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller's contract is the body's.
                unsafe { body $(::< $($g),+ $(, $($c),+)? >)? ($($arg),*) }
            }

            // SAFETY: the caller promises that `isa` is available, and the body's own contract.
            unsafe {
                match $isa {
                    #[cfg(target_arch = "x86_64")]
                    $crate::isa::Isa::Avx512 => avx512 $(::< $($g),+ $(, $($c),+)? >)? ($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    $crate::isa::Isa::Avx2 => avx2 $(::< $($g),+ $(, $($c),+)? >)? ($($arg),*),
                    _ => body $(::< $($g),+ $(, $($c),+)? >)? ($($arg),*),
                }
            }
        }
    };
}
pub(crate) use dispatch;

/// A loop over plain numbers that is worth compiling once per instruction set.
///
/// ```
/// use minvel_engine::{Loop, widest};
/// struct Halve<'a>(&'a mut [f64]);
/// impl Loop for Halve<'_> {
///     type Output = ();
///     #[inline(always)]
///     fn run(self) {
///         self.0.iter_mut().for_each(|x| *x *= 0.5);
///     }
/// }
/// let mut x = [3.0; 100];
/// widest(Halve(&mut x));
/// assert_eq!(x[99], 1.5);
/// ```
pub trait Loop {
    /// What comes of it.
    type Output;

    /// The loop itself, marked `#[inline(always)]`, as whatever it calls must be, or it is compiled without the features.
    fn run(self) -> Self::Output;
}

/// Runs a loop with the widest instructions of this machine. Sums and products are never fused unless the loop asks for
/// it, so that all machines give the same bits.
pub fn widest<L: Loop>(task: L) -> L::Output {
    // SAFETY: the set was just detected.
    unsafe { compiled(Isa::detect(), task) }
}

dispatch! {
    /// Runs the copy of a loop for one instruction set.
    ///
    /// # Safety
    /// `isa` is available.
    unsafe fn compiled<L: Loop>(isa: Isa, task: L) -> L::Output {
        task.run()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::Real;

    dispatch! {
        /// y ← a · x + y, on blocks of N.
        unsafe fn axpy<T: Real; const N: usize>(isa: Isa, a: T, x: &[[T; N]], y: &mut [[T; N]]) -> usize {
            for (x, y) in x.iter().zip(y.iter_mut()) {
                for (x, y) in x.iter().zip(y.iter_mut()) {
                    *y = a.mul_add(*x, *y);
                }
            }
            x.len()
        }
    }

    #[test]
    fn a_dispatched_loop_gives_the_same_bits_on_every_isa() {
        let x: Vec<[f32; 3]> = (0..50).map(|i| [1.0, 0.3, 0.7].map(|c| c / (1 + i) as f32)).collect();
        for isa in Isa::available() {
            let mut y = x.clone();
            // SAFETY: `isa` is available.
            assert_eq!(unsafe { axpy(isa, 0.1, &x, &mut y) }, x.len());
            let want = |x: &[f32; 3]| x.map(|x| 0.1f32.mul_add(x, x));
            assert!(x.iter().map(want).eq(y), "{isa} differs");
        }
    }
}
