//! Products against a double-precision triple loop, for awkward sizes, all instruction sets, all splits.

use super::*;

const GUARD: f64 = 12345.0;

/// A fixed-seed generator of sizes and of values in [−1, 1].
struct Noise(u64);
impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
    fn size(&mut self, most: usize) -> usize {
        1 + self.next() as usize % most
    }
    fn values<T: Real>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| T::from_f64(self.next() as f64 / (1u64 << 30) as f64 - 1.0)).collect()
    }
}

fn bits<T: Real>(x: &[T]) -> Vec<u64> {
    x.iter().map(|x| x.to_f64().to_bits()).collect()
}

/// Half a unit in the last place per operation, on sums of terms below one in size.
fn assert_close<T: Real>(got: T, want: f64, terms: usize, unit: f64) {
    let bound = unit * (terms + 2) as f64 * (terms + 2) as f64;
    assert!((got.to_f64() - want).abs() <= bound, "{} is not {want}", got.to_f64());
}

/// Lanes of C outside j < n, l < t hold the guard value before and must hold it after.
fn guarded<T: Real>(c: &mut [T], t: usize, stride: usize) {
    let outside = c.iter_mut().enumerate().filter(|(i, _)| i % stride >= t);
    outside.for_each(|(_, x)| *x = T::from_f64(GUARD));
}

fn check_lanes<T: Real>(unit: f64) {
    let noise = &mut Noise(1);
    for case in 0..240 {
        let most = if case % 24 == 0 { 300 } else { 70 }; // beyond DEPTH now and then
        let (n, k, t) = (noise.size(70), noise.size(most) - case % 2, noise.size(70));
        let (a_stride, c_stride) = (t + noise.size(5), t + noise.size(5));
        let (w_sk, w_sn) = [(n + 1, 1), (1, k + 2), (2 * n, 2)][case % 3];
        let w: Vec<T> = noise.values(k * w_sk + n * w_sn);
        let (a, bias): (Vec<T>, Vec<T>) = (noise.values(k * a_stride), noise.values(2 * n));
        let mut before: Vec<T> = noise.values((n + 1) * c_stride);
        guarded(&mut before, t, c_stride);
        let start = [Start::Zero, Start::Accumulate, Start::Bias(bias.as_ptr(), 2)][case / 3 % 3];
        let product = |isa, (j0, j1), (l0, l1), c: &mut Vec<T>| {
            let start = match start {
                Start::Bias(_, s) => Start::Bias(bias[j0 * s..].as_ptr(), s),
                Start::Zero | Start::Accumulate => start,
            };
            let (w, a, c) =
                (w[j0 * w_sn..].as_ptr(), a.as_ptr().wrapping_add(l0), c[j0 * c_stride + l0..].as_mut_ptr());
            // SAFETY: the vectors above have these sizes and strides.
            unsafe { lanes(isa, j1 - j0, k, l1 - l0, w, w_sk, w_sn, a, a_stride, c, c_stride, start) }
        };
        let mut first = before.clone();
        product(Isa::Portable, (0, n), (0, t), &mut first);
        for (at, (&got, &old)) in first.iter().zip(&before).enumerate() {
            let (j, l) = (at / c_stride, at % c_stride);
            if j >= n || l >= t {
                assert_eq!(got.to_f64(), old.to_f64(), "wrote outside the output");
                continue;
            }
            let start = match start {
                Start::Zero => 0.0,
                Start::Accumulate => old.to_f64(),
                Start::Bias(..) => bias[2 * j].to_f64(),
            };
            let term = |i: usize| w[i * w_sk + j * w_sn].to_f64() * a[i * a_stride + l].to_f64();
            assert_close(got, start + (0..k).map(term).sum::<f64>(), k, unit);
        }
        for isa in Isa::available() {
            let (mut whole, mut split) = (before.clone(), before.clone());
            product(isa, (0, n), (0, t), &mut whole);
            let (jm, lm) = (noise.size(n) - 1, noise.size(t) - 1);
            for columns in [(0, jm), (jm, n)] {
                product(isa, columns, (0, lm), &mut split);
                product(isa, columns, (lm, t), &mut split);
            }
            assert_eq!(bits(&whole), bits(&first), "{isa} differs, n {n} k {k} t {t}");
            assert_eq!(bits(&split), bits(&first), "{isa} depends on the split, n {n} k {k} t {t}");
        }
    }
}

fn check_rows<T: Real>(unit: f64) {
    let noise = &mut Noise(2);
    for case in 0..200 {
        let (m, n, len) = match case % 4 {
            0 => (noise.size(3), noise.size(150), noise.size(140)),
            1 => (noise.size(150), noise.size(3), noise.size(140)),
            _ => (noise.size(70), noise.size(70), noise.size(140)),
        };
        let (a_stride, b_stride, c_stride) = (len + noise.size(5), len + noise.size(5), n + noise.size(5));
        let (a, b): (Vec<T>, Vec<T>) = (noise.values(m * a_stride), noise.values(n * b_stride));
        let mut before: Vec<T> = noise.values((m + 1) * c_stride);
        guarded(&mut before, n, c_stride);
        let product = |isa, (i0, i1), (j0, j1), c: &mut Vec<T>| {
            let (a, b, c) =
                (a[i0 * a_stride..].as_ptr(), b[j0 * b_stride..].as_ptr(), c[i0 * c_stride + j0..].as_mut_ptr());
            let mut scratch = vec![T::from_f64(f64::NAN); rows_scratch(j1 - j0, len)];
            // SAFETY: the vectors above have these sizes and strides.
            unsafe { rows(isa, i1 - i0, j1 - j0, len, a, a_stride, b, b_stride, c, c_stride, T::ONE, &mut scratch) }
        };
        let mut first = before.clone();
        product(Isa::Portable, (0, m), (0, n), &mut first);
        for (at, (&got, &old)) in first.iter().zip(&before).enumerate() {
            let (i, j) = (at / c_stride, at % c_stride);
            if i >= m || j >= n {
                assert_eq!(got.to_f64(), old.to_f64(), "wrote outside the output");
                continue;
            }
            let term = |l: usize| a[i * a_stride + l].to_f64() * b[j * b_stride + l].to_f64();
            assert_close(got, old.to_f64() + (0..len).map(term).sum::<f64>(), len, unit);
        }
        for isa in Isa::available() {
            let (mut whole, mut split) = (before.clone(), before.clone());
            product(isa, (0, m), (0, n), &mut whole);
            let (im, jm) = (noise.size(m) - 1, noise.size(n) - 1);
            for some in [(0, im), (im, m)] {
                product(isa, some, (0, jm), &mut split);
                product(isa, some, (jm, n), &mut split);
            }
            assert_eq!(bits(&whole), bits(&first), "{isa} differs, m {m} n {n} len {len}");
            assert_eq!(bits(&split), bits(&first), "{isa} depends on the split, m {m} n {n} len {len}");
        }
    }
}

#[test]
fn lanes_is_the_triple_loop_with_the_same_bits_on_every_isa_and_split() {
    check_lanes::<f32>(f32::EPSILON as f64);
    check_lanes::<f64>(f64::EPSILON);
}

#[test]
fn rows_is_the_triple_loop_with_the_same_bits_on_every_isa_and_split() {
    check_rows::<f32>(f32::EPSILON as f64);
    check_rows::<f64>(f64::EPSILON);
}
