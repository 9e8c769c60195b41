//! Sums over a block of centres, lane by lane: the loops that the compiler turns into vector instructions.
//!
//! **Statement.** |C⁻¹v|², and Σ_i e^{a_i − r q_i}·|dv/dvol|_i, for the coordinates v of one point about each centre.
//! **Conventions.** A block is column-major `[coordinate, lane]`; lanes beyond the last centre repeat it with weight 0.
//! **Error.** Rounding. **Checked by** tests/densities/kernel_sums.rs.
#![allow(clippy::needless_range_loop)] // iterators with closures are not inlined everywhere, and then not vectorised

use crate::density::cloud::exp_below_zero;
use minvel_engine::Loop;

/// Centres that are worked on together.
pub(super) const BLOCK: usize = 32;

/// A number for each centre of a block.
pub(super) type Lanes = [f64; BLOCK];

/// The columns of a block.
#[inline(always)]
pub(super) fn columns(list: &[f64]) -> &[Lanes] {
    list.as_chunks::<BLOCK>().0
}

/// What one thread works with.
pub(super) struct Work {
    /// v, coordinate by coordinate.
    pub v: Vec<Lanes>,
    /// C⁻¹v.
    pub whitened: Vec<Lanes>,
    /// |v|².
    pub square: Lanes,
    /// |dv/dvol|, 0 where kernels have ended.
    pub factor: Lanes,
    /// |C⁻¹v|².
    pub quadratic: Lanes,
}

impl Work {
    pub fn new(n: usize) -> Self {
        let none = [0.0; BLOCK];
        Work { v: vec![none; n], whitened: vec![none; n], square: none, factor: none, quadratic: none }
    }
}

/// |C⁻¹v|² about each centre of a block.
pub(super) struct Whiten<'a> {
    /// Entries of C as [`Shape`](super::shape::Shape) has them, `[n(n+1)/2, BLOCK]`.
    pub factors: &'a [f64],
    pub work: &'a mut Work,
}

impl Loop for Whiten<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Work { v, whitened, quadratic, .. } = self.work;
        let factors = columns(self.factors);
        *quadratic = [0.0; BLOCK];
        for a in 0..v.len() {
            let (done, rest) = whitened.split_at_mut(a);
            let y = &mut rest[0];
            *y = v[a];
            for (b, done) in done.iter().enumerate() {
                let c = &factors[a * (a + 1) / 2 + b];
                for i in 0..BLOCK {
                    y[i] -= c[i] * done[i];
                }
            }
            let c = &factors[a * (a + 1) / 2 + a];
            for i in 0..BLOCK {
                y[i] *= c[i];
                quadratic[i] += y[i] * y[i];
            }
        }
    }
}

/// Σ_i e^{base + a_i + rate·q_i}·factor_i, as largest exponent and sum over it, added to another such sum.
pub(super) struct AddUp<'a> {
    pub base: f64,
    pub logs: &'a [f64],
    pub rate: f64,
    pub squares: &'a Lanes,
    pub factor: &'a Lanes,
    /// The largest exponent so far: sums are divided by its exponential.
    pub top: f64,
    /// Terms below e^this are left out, where eight of them stand together.
    pub least: f64,
}

/// |dv/dvol| up to here is allowed for in what is left out.
const STRETCHED: f64 = 2.0;
/// Exponents so far below the largest count for nothing.
const NOTHING: f64 = -300.0;

impl Loop for AddUp<'_> {
    /// The new largest exponent, and what is to be added in its units.
    type Output = (f64, f64);

    #[inline(always)]
    fn run(self) -> (f64, f64) {
        let AddUp { base, logs, rate, squares, factor, top, least } = self;
        let least = least - STRETCHED.ln();
        let logs = &columns(logs)[0];
        let mut terms = [0.0; BLOCK];
        for i in 0..BLOCK {
            // A kernel that has ended has no say in what is largest.
            let ended = if factor[i] > 0.0 { 0.0 } else { f64::NEG_INFINITY };
            terms[i] = base + logs[i] + rate * squares[i] + ended;
        }
        let highest = by_eight(&terms, f64::NEG_INFINITY, |a, b| if b > a { b } else { a });
        if highest == f64::NEG_INFINITY || highest < top + NOTHING {
            return (top, 0.0);
        }
        let top = if highest > top { highest } else { top };
        let mut sums = [0.0; 8];
        for (k, terms) in terms.as_chunks::<8>().0.iter().enumerate() {
            let factor = &factor.as_chunks::<8>().0[k];
            let mut counts = [0.0; 8];
            for l in 0..8 {
                counts[l] = if terms[l] > least || factor[l] > STRETCHED { 1.0 } else { 0.0 };
            }
            if counts == [0.0; 8] {
                continue;
            }
            for l in 0..8 {
                sums[l] += exp_below_zero(terms[l] - top) * factor[l];
            }
        }
        (top, sums.iter().sum())
    }
}

/// All lanes in one, eight at a time.
#[inline(always)]
pub(super) fn by_eight(lanes: &Lanes, start: f64, f: impl Fn(f64, f64) -> f64) -> f64 {
    let mut eight = [start; 8];
    for own in lanes.as_chunks::<8>().0 {
        for l in 0..8 {
            eight[l] = f(eight[l], own[l]);
        }
    }
    eight.into_iter().fold(start, f)
}
