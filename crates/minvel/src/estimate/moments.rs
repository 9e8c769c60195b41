//! Mean, variance and their errors from one pass over samples, in parts that can be merged.
//!
//! **Statement.** With central sums M_k = Σ(x − x̄)ᵏ: s² = M₂/(n−1), Var(x̄) = s²/n,
//! Var(s²) ≈ (m₄ − s⁴(n−3)/(n−1))/n with m₄ = M₄/n.
//! **Source.** Updates of M_k for two parts: Chan, Golub, LeVeque 1983; Pébay 2008.
//! **Error.** Stable: no difference of large sums is taken. **Checked by** tests/theory/eval.rs.

use super::Estimate;
use serde::{Deserialize, Serialize};

/// Count, mean and central sums of samples seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    count: u64,
    #[serde(with = "crate::estimate::number")]
    mean: f64,
    #[serde(with = "crate::estimate::number")]
    second: f64,
    #[serde(with = "crate::estimate::number")]
    third: f64,
    #[serde(with = "crate::estimate::number")]
    fourth: f64,
}

impl Moments {
    /// Samples seen.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// One more sample.
    pub fn push(&mut self, x: f64) {
        self.merge(&Moments { count: 1, mean: x, ..Moments::default() });
    }

    /// A few samples, in two passes.
    fn of_block(samples: &[f64]) -> Self {
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let sum = |power: fn(f64) -> f64| samples.iter().map(|x| power(x - mean)).sum();
        Moments {
            count: samples.len() as u64,
            mean,
            second: sum(|d| d * d),
            third: sum(|d| d * d * d),
            fourth: sum(|d| (d * d) * (d * d)),
        }
    }

    /// Samples seen elsewhere.
    pub fn merge(&mut self, other: &Moments) {
        if other.count == 0 {
            return;
        }
        let (a, b) = (self.count as f64, other.count as f64);
        let n = a + b;
        let d = other.mean - self.mean;
        let (s, t) = (*self, other);
        self.fourth = s.fourth
            + t.fourth
            + d.powi(4) * (a * b / n) * (a * a - a * b + b * b) / (n * n)
            + 6.0 * d * d * (a * a * t.second + b * b * s.second) / (n * n)
            + 4.0 * d * (a * t.third - b * s.third) / n;
        self.third =
            s.third + t.third + d.powi(3) * (a * b / n) * (a - b) / n + 3.0 * d * (a * t.second - b * s.second) / n;
        self.second = s.second + t.second + d * d * (a * b / n);
        self.mean = s.mean + d * (b / n);
        self.count += other.count;
    }

    /// The mean and its standard error.
    pub fn mean(&self) -> Estimate {
        let n = self.count as f64;
        let mean = if self.count == 0 { f64::NAN } else { self.mean };
        let std_error = if self.count < 2 { f64::NAN } else { (self.second / (n - 1.0) / n).sqrt() };
        Estimate { mean, std_error, count: self.count }
    }

    /// The variance of a sample and its standard error.
    pub fn variance(&self) -> Estimate {
        let n = self.count as f64;
        if self.count < 4 {
            return Estimate { mean: self.second / (n - 1.0), std_error: f64::NAN, count: self.count };
        }
        let mean = self.second / (n - 1.0);
        let square = (self.fourth / n - mean * mean * (n - 3.0) / (n - 1.0)) / n;
        Estimate { mean, std_error: square.max(0.0).sqrt(), count: self.count }
    }
}

/// Samples that are summed in one go: within them no division is needed.
const BLOCK: usize = 256;

impl Extend<f64> for Moments {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, samples: I) {
        let mut samples = samples.into_iter();
        let mut block = Vec::with_capacity(BLOCK);
        loop {
            block.clear();
            block.extend(samples.by_ref().take(BLOCK));
            if block.is_empty() {
                return;
            }
            self.merge(&Moments::of_block(&block));
        }
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(samples: I) -> Self {
        let mut moments = Moments::default();
        moments.extend(samples);
        moments
    }
}
