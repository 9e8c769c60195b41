//! Many centres against one point, column by column.
//!
//! **Statement.** t(x, c) = −½ Σ_b a_b(x)a_b(c)|e_b(x) − e_b(c)|² over blocks b of coordinates, a = 1 but for hyperbolic
//! space, where e is the point of the ball and a = 2/(1−r²): sums of squared differences, which do not cancel for near points.
//! **Source.** The chord form of each t; docs/math §3.6 for the ball. **Conventions.** Coordinates carry the root of their
//! scale. A ball's block has a as its last column.
//! **Error.** Rounding; e^x to 2 units in the last place for −600 ≤ x ≤ 0, and e^{−600} below; sums leave out
//! at most e^{−60} of their largest term for each centre. **Checked by**
//! tests/densities/density.rs (against t and std's exp).

/// Columns that belong together.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Block {
    /// Coordinates of flat space.
    Flat(std::ops::Range<usize>),
    /// Coordinates of the ball, and after them a.
    Ball(std::ops::Range<usize>),
}

/// Embedded points, a column for each coordinate.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cloud {
    pub count: usize,
    pub columns: Vec<Vec<f64>>,
    pub blocks: Vec<Block>,
}

/// Points that are worked on at once: their statistics stay in the innermost cache.
const STRIP: usize = 512;

impl Cloud {
    /// The embedded coordinates of a point.
    pub fn row(&self, i: usize) -> Vec<f64> {
        self.columns.iter().map(|c| c[i]).collect()
    }

    /// t(x, c_j) for all centres.
    #[inline(always)]
    pub fn statistics(&self, x: &[f64], out: &mut [f64]) {
        for (k, out) in out.chunks_mut(STRIP).enumerate() {
            let strip = k * STRIP..k * STRIP + out.len();
            out.fill(0.0);
            for block in &self.blocks {
                match block {
                    Block::Flat(range) => {
                        for i in range.clone() {
                            subtract_half_square(x[i], &self.columns[i][strip.clone()], out);
                        }
                    }
                    Block::Ball(range) => {
                        let mut chord = [0.0; STRIP];
                        let chord = &mut chord[..out.len()];
                        for i in range.clone() {
                            subtract_half_square(x[i], &self.columns[i][strip.clone()], chord);
                        }
                        let (own, others) = (x[range.end], &self.columns[range.end][strip.clone()]);
                        for ((t, chord), other) in out.iter_mut().zip(chord).zip(others) {
                            *t += own * other * *chord;
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn subtract_half_square(x: f64, column: &[f64], out: &mut [f64]) {
    for (t, c) in out.iter_mut().zip(column) {
        let d = x - c;
        *t -= 0.5 * d * d;
    }
}

/// The largest of many numbers, in independent lanes.
#[inline(always)]
pub(super) fn largest(values: &[f64]) -> f64 {
    let mut lanes = [f64::NEG_INFINITY; 8];
    let (chunks, rest) = values.as_chunks::<8>();
    for chunk in chunks {
        for (a, b) in lanes.iter_mut().zip(chunk) {
            *a = if *b > *a { *b } else { *a };
        }
    }
    lanes.iter().chain(rest).fold(f64::NEG_INFINITY, |a, b| a.max(*b))
}

/// Exponents below it count as it: products with weights then stay normal numbers, which are fast.
const LEAST: f64 = -600.0;

/// Terms that are smaller than the largest by more than e^this are left out, where eight of them stand together.
const NEGLIGIBLE: f64 = -60.0;

/// e^x for x ≤ 0, without branches and fused operations, so that loops over it vectorise on any machine.
#[inline(always)]
pub(super) fn exp_below_zero(x: f64) -> f64 {
    // Adding it leaves the nearest whole number in the low bits.
    const ROUND: f64 = 1.5 * (1u64 << 52) as f64;
    const LN_2_HIGH: f64 = 0.693_147_180_369_123_8; // 33 bits: whole multiples up to 2²⁰ are exact
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let x = if x < LEAST { LEAST } else { x };
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let r = (x - whole * LN_2_HIGH) - whole * LN_2_LOW;
    let scale = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52));
    // Taylor's polynomial of degree 13: |r| ≤ 0.35, so the rest is below 5·10⁻¹⁸.
    const INVERSE: [f64; 14] = {
        let (mut terms, mut k) = ([1.0; 14], 1);
        while k < 14 {
            terms[k] = terms[k - 1] / k as f64;
            k += 1;
        }
        terms
    };
    let mut sum = INVERSE[13];
    let mut k = 13;
    while k > 0 {
        k -= 1;
        sum = sum * r + INVERSE[k];
    }
    sum * scale
}

/// Σ w_j e^{κ(t_j − top)}, in independent lanes.
#[inline(always)]
pub(super) fn sum_of_exponentials(statistics: &[f64], weights: &[f64], kappa: f64, top: f64) -> f64 {
    let mut lanes = [0.0; 8];
    let (t, t_rest) = statistics.as_chunks::<8>();
    let (w, w_rest) = weights.as_chunks::<8>();
    for (t, w) in t.iter().zip(w) {
        // Sharp kernels see few centres: most eights are far.
        if t.iter().all(|t| kappa * (t - top) < NEGLIGIBLE) {
            continue;
        }
        for l in 0..8 {
            lanes[l] += w[l] * exp_below_zero(kappa * (t[l] - top));
        }
    }
    let rest = t_rest.iter().zip(w_rest).map(|(t, w)| w * exp_below_zero(kappa * (t - top)));
    lanes.iter().sum::<f64>() + rest.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_agrees_with_that_of_std() {
        for k in 0..200_000 {
            let x = LEAST * (k as f64 / 200_000.0).powi(3);
            let error = (exp_below_zero(x) / x.exp() - 1.0).abs();
            assert!(error <= 2.0 * f64::EPSILON, "e^{x} is off by {error}");
        }
        assert!(exp_below_zero(f64::NEG_INFINITY) < 1e-260);
    }
}
