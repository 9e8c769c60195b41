//! Whether points may come from a model: tests on several scales, from the nearest neighbours to the whole spread.
//!
//! **Statement.** Two tests: of the model's score at the points ([`stein_test`]), which needs no draws and sees what is local, and
//! of points against draws of the model ([`two_sample_test`]), which sees the masses of modes too. Each looks at every scale and
//! has one p-value; both together reject at level α where one of them does at α/2.
//! **Source.** schrab2023mmdagg (why one length is not enough). **Error.** Each test says its own; together at most α, by Bonferroni.
//! **Checked by** tests/densities/goodness.rs, `minvel reproduce power`.

mod aggregate;
mod fields;
mod scales;
mod stein;
mod two_sample;

pub use stein::{SteinKernel, SteinPoint, stein_test};
pub use two_sample::{TwoSample, Witness, two_sample_test};

use super::{Density, Sample};
use crate::Error;
use crate::estimate::number;
use crate::train::Context;
use minvel_engine::random::{Draw, Key, element};
use serde::{Deserialize, Serialize};

/// How a test is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestPlan {
    /// Points that are used at most, drawn without replacement; the work is quadratic in them.
    pub points: usize,
    /// Resamples B of the statistics.
    pub resamples: usize,
    /// Scales; a single one is the median distance.
    pub scales: usize,
    /// What points, signs and permutations are drawn by.
    pub seed: u64,
}

impl Default for TestPlan {
    fn default() -> Self {
        TestPlan { points: 1000, resamples: 1000, scales: 8, seed: 0 }
    }
}

/// The outcome of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goodness {
    /// Of all scales together: a multiple of 1/(B + 1).
    pub p_value: f64,
    /// Points tested.
    pub points: usize,
    /// What each scale says, the smallest first.
    pub scales: Vec<ScaleTest>,
}

/// What one scale says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScaleTest {
    /// λ, in median distances.
    #[serde(with = "number")]
    pub scale: f64,
    /// KSD² or MMD², unbiased: it may be negative.
    #[serde(with = "number")]
    pub statistic: f64,
    /// Of this scale alone.
    pub p_value: f64,
}

impl Goodness {
    /// The scale that rejects most; of several the middle one.
    pub fn strongest(&self) -> ScaleTest {
        let least = self.scales.iter().map(|s| s.p_value).fold(1.0, f64::min);
        let all: Vec<&ScaleTest> = self.scales.iter().filter(|s| s.p_value <= least).collect();
        *all[all.len() / 2]
    }
}

/// Tests whether the points are a sample of a density, by its score.
///
/// An error where a score is not finite, fewer than two points are given, or the context is asked to stop.
pub fn goodness_of_fit(
    density: &dyn Density,
    points: &[f64],
    plan: &TestPlan,
    context: &Context,
) -> Result<Goodness, Error> {
    let manifold = density.manifold();
    // Scores of the points that the test chooses suffice.
    let chosen = plan.chosen(points, manifold.ambient());
    let scores = density.score(&chosen, context)?;
    stein_test(&*manifold, &chosen, &scores, plan, context)
}

/// Streams of the signs, of the permutations, of the choice of points and of those that weights leave.
const SIGNS: u32 = 0x5349_474E;
const PERMUTATIONS: u32 = 0x5045_524D;
const CHOICE: u32 = 0x5355_4253;
const THINNING: u32 = 0x5448_494E;

impl TestPlan {
    /// The default with a seed.
    pub fn seeded(seed: u64) -> Self {
        TestPlan { seed, ..TestPlan::default() }
    }

    /// Draws of a model that so many rows are compared with: four for each row, so that they add little to the scatter of the
    /// rows, or fewer where rows are many, since the work is quadratic in both together; never fewer than the rows.
    pub fn draws(&self, rows: usize) -> usize {
        (5 * self.points / 2).saturating_sub(rows).min(4 * rows).max(rows)
    }

    /// A number for a row: those with the smallest are chosen, so that they are known without knowing how many rows there are.
    pub fn rank(&self, row: u64) -> f64 {
        element(Draw::Bits, Key::new(self.seed, 0), CHOICE, (row >> 32) as u32, 1, row as u32, 0)
    }

    /// Which of so many points are used, in increasing order.
    pub fn choose(&self, count: usize) -> Vec<usize> {
        if count <= self.points {
            return (0..count).collect();
        }
        let mut order: Vec<(f64, usize)> = (0..count).map(|row| (self.rank(row as u64), row)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut chosen: Vec<usize> = order[..self.points].iter().map(|(_, i)| *i).collect();
        chosen.sort_unstable();
        chosen
    }

    /// Independent points of the law of a sample: each is kept with the probability of its weight over the largest; all of them where
    /// all weights are equal.
    pub fn thinned(&self, sample: &Sample, ambient: usize) -> Vec<f64> {
        let largest = sample.weights().iter().copied().fold(0.0, f64::max);
        let kept = |i: &usize| {
            let coin = element(Draw::Uniform, Key::new(self.seed, 0), THINNING, (i >> 32) as u32, 1, *i as u32, 0);
            sample.weights().is_empty() || coin * largest < sample.weight(*i)
        };
        let all = (0..sample.rows(ambient)).filter(kept);
        all.flat_map(|i| &sample.points()[i * ambient..][..ambient]).copied().collect()
    }

    /// The points that are used.
    pub fn chosen(&self, points: &[f64], ambient: usize) -> Vec<f64> {
        self.choose(points.len() / ambient).iter().flat_map(|&i| &points[i * ambient..][..ambient]).copied().collect()
    }
}
