//! Temperatures between the base law and the target.
//!
//! **Statement.** 0 = β_0 < β_1 < … < β_K = 1. Sigmoid: t_k = linspace(−4, 4), s = sigmoid t, β = (s − s_0)/(s_K − s_0).
//! **Source.** docs/math §4.6. **Conventions.** `count` is the number of temperatures, K + 1, so that there are K moves.
//! **Checked by** tests/theory/sampler_facts.rs (F47), tests/theory/annealed.rs.

/// A rule for the β_k.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnnealingSchedule {
    /// Slow at both ends, where the energy of the base law and of the target change most: as in the official code.
    Sigmoid {
        /// K + 1.
        count: usize,
    },
    /// k/K.
    Linear {
        /// K + 1.
        count: usize,
    },
    /// 0 and then `first`^{(K−k)/(K−1)}, for targets much narrower than the base law.
    Geometric {
        /// K + 1.
        count: usize,
        /// β_1.
        first: f64,
    },
}

impl AnnealingSchedule {
    /// β_0 … β_K.
    pub fn betas(&self) -> Vec<f64> {
        let (AnnealingSchedule::Sigmoid { count }
        | AnnealingSchedule::Linear { count }
        | AnnealingSchedule::Geometric { count, .. }) = *self;
        assert!(count >= 2, "schedule: {count} temperatures do not join two laws");
        let last = count - 1;
        let share = |k: usize| k as f64 / last as f64;
        let value = |k: usize| match *self {
            AnnealingSchedule::Linear { .. } => share(k),
            AnnealingSchedule::Sigmoid { .. } => {
                let sigmoid = |t: f64| 1.0 / (1.0 + (-t).exp());
                let (low, high) = (sigmoid(-4.0), sigmoid(4.0));
                (sigmoid(8.0 * share(k) - 4.0) - low) / (high - low)
            }
            AnnealingSchedule::Geometric { first, .. } => {
                assert!(first > 0.0 && first < 1.0, "schedule: {first} is not between 0 and 1");
                first.powf((last - k) as f64 / (last - 1).max(1) as f64)
            }
        };
        // The ends are exact, whatever rounding says.
        (0..count)
            .map(|k| {
                if k == 0 {
                    0.0
                } else if k == last {
                    1.0
                } else {
                    value(k)
                }
            })
            .collect()
    }
}
