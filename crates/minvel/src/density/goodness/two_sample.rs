//! Rows against draws of a model: the maximum mean discrepancy on several scales, and where rows are too many or too few.
//!
//! **Statement.** k(x, y) = e^{−s/2λ²}. MMD² = E k(x, x') + E k(y, y') − 2E k(x, y) ≥ 0, zero for equal laws only, estimated without
//! bias by means over pairs of different points. Witness: w(z) = mean_i k(x_i, z) − mean_j k(y_j, z), positive where there are more
//! rows x than draws y. **Source.** gretton2012mmd, §2 (witness), lemma 6, and its two-sample test by permutation.
//! **Conventions.** s as in [`super::scales`], of rows and draws together; on a manifold that is no product of model spaces, of its
//! own coordinates. Permutations are ranked by wᵀKw without diagonal, w = 1/n on rows and −1/m on draws: MMD² with the diagonal
//! up to a number that permutations do not change. **Error.** Rows and draws of one law are exchangeable: the level is exact
//! for any number of points. The ± of MMD² is a jackknife over rows and over draws; it is too large where both laws
//! are equal, and takes the lengths as given.
//! **Checked by** tests/densities/goodness.rs.

use super::aggregate::Weights;
use super::scales::{Embedding, scales, square};
use super::{Goodness, PERMUTATIONS, TestPlan};
use crate::density::by_rows;
use crate::density::cloud::exp_below_zero;
use crate::estimate::Estimate;
use crate::train::Context;
use crate::{Error, Manifold};
use minvel_engine::random::{Key, Stream};
use minvel_engine::{Loop, widest};

/// The outcome of a two-sample test.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoSample {
    /// The test; its statistics are MMD² of each scale, which may be negative.
    pub goodness: Goodness,
    /// MMD² where λ is the root-mean-square distance, which scatters less from sample to sample than the median.
    pub mmd: Estimate,
}

/// Rows and draws, embedded.
struct Both {
    rows: usize,
    draws: usize,
    points: Vec<Vec<f64>>,
    /// s between them, below the diagonal.
    squares: Vec<f64>,
}

/// e^{rate·s}, number by number.
struct Kernels<'a> {
    squares: &'a [f64],
    rate: f64,
    out: &'a mut [f64],
}

impl Loop for Kernels<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.out.iter_mut().zip(self.squares).for_each(|(k, s)| *k = exp_below_zero(self.rate * s));
    }
}

impl Both {
    fn new(manifold: &dyn Manifold, rows: &[f64], draws: &[f64], context: &Context) -> Result<Self, Error> {
        let (m, all) = (manifold.ambient(), [rows, draws].concat());
        let points = Embedding::by_medians(manifold, &all).all(&all);
        let n = points.len();
        let squares = by_rows(n, n, &context.quiet(), |first, out| {
            for (i, out) in (first..).zip(out.chunks_mut(n)) {
                out.iter_mut().zip(&points[..i]).for_each(|(s, other)| *s = square(&points[i], other));
            }
        })?;
        Ok(Both { rows: rows.len() / m, draws: draws.len() / m, points, squares })
    }

    /// K below the diagonal.
    fn gram(&self, scale: f64, context: &Context) -> Result<Vec<f64>, Error> {
        let (n, rate) = (self.points.len(), -0.5 / (scale * scale));
        by_rows(n, n, &context.quiet(), |first, rows| {
            for (i, row) in (first..).zip(rows.chunks_mut(n)) {
                widest(Kernels { squares: &self.squares[i * n..][..i], rate, out: &mut row[..i] });
            }
        })
    }

    /// MMD², with its jackknife.
    fn mmd(&self, gram: &[f64]) -> Estimate {
        let (n, total) = (self.points.len(), self.points.len() as f64);
        // Sums over rows, and over draws, of k with each point.
        let mut sums = vec![[0.0; 2]; n];
        for i in 0..n {
            for (j, k) in gram[i * n..][..i].iter().enumerate() {
                sums[i][usize::from(j >= self.rows)] += k;
                sums[j][usize::from(i >= self.rows)] += k;
            }
        }
        let (x, y) = sums.split_at(self.rows);
        let all = |side: &[[f64; 2]], of: usize| side.iter().map(|s| s[of]).sum::<f64>();
        let (within, beside, cross) = (all(x, 0), all(y, 1), all(x, 1));
        let (r, d) = (self.rows as f64, self.draws as f64);
        let mean = |within: f64, beside: f64, cross: f64, r: f64, d: f64| {
            within / (r * (r - 1.0)) + beside / (d * (d - 1.0)) - 2.0 * cross / (r * d)
        };
        let without_row = x.iter().map(|s| mean(within - 2.0 * s[0], beside, cross - s[1], r - 1.0, d));
        let without_draw = y.iter().map(|s| mean(within, beside - 2.0 * s[1], cross - s[0], r, d - 1.0));
        // (n − 1)/n Σ(T₋ᵢ − T̄)² is (n − 1)² times the square of the error of the mean of T₋ᵢ.
        let row_error = (r - 1.0) * Estimate::of(without_row).std_error;
        let draw_error = (d - 1.0) * Estimate::of(without_draw).std_error;
        let std_error = row_error.hypot(draw_error);
        Estimate { mean: mean(within, beside, cross, r, d), std_error, count: total as u64 }
    }
}

/// Tests whether rows and draws, row-major in the coordinates of the manifold, are of one law.
///
/// All of them are used: choose before. An error where there are fewer than three of either or one is not finite, or where the context
/// is asked to stop.
pub fn two_sample_test(
    manifold: &dyn Manifold,
    rows: &[f64],
    draws: &[f64],
    plan: &TestPlan,
    context: &Context,
) -> Result<TwoSample, Error> {
    let m = manifold.ambient();
    assert!(rows.len().is_multiple_of(m) && draws.len().is_multiple_of(m), "points have {m} numbers");
    if rows.len().min(draws.len()) < 3 * m {
        return Err(Error::config("a two-sample test needs at least three rows and three draws"));
    }
    if let Some(i) = [rows, draws].concat().iter().position(|x| !x.is_finite()) {
        return Err(Error::config(format!("point {} is not finite", i / m)));
    }
    let both = Both::new(manifold, rows, draws, context)?;
    let observed = weights(both.rows, both.draws);
    let permuted = |b: usize| {
        let mut weights = observed.clone();
        let mut stream = Stream::new(Key::new(plan.seed, b as u32), PERMUTATIONS);
        for i in (1..weights.len()).rev() {
            weights.swap(i, (stream.uniform() * (i + 1) as f64) as usize);
        }
        weights
    };
    let weights = Weights::new(&observed, plan.resamples, permuted, context)?;
    let tried = scales(&both.points, plan.scales);
    let goodness = Goodness::of_scales(both.rows, tried, &weights, context, |scale, gram| {
        *gram = both.gram(scale, context)?;
        Ok(both.mmd(gram).mean)
    })?;
    let n = both.points.len() as f64;
    let spread = (2.0 * both.squares.iter().sum::<f64>() / (n * (n - 1.0))).sqrt();
    let scale = if spread > 0.0 { spread } else { 1.0 };
    Ok(TwoSample { goodness, mmd: both.mmd(&both.gram(scale, context)?) })
}

/// 1/n on rows, −1/m on draws.
fn weights(rows: usize, draws: usize) -> Vec<f64> {
    [vec![1.0 / rows as f64; rows], vec![-1.0 / draws as f64; draws]].concat()
}

/// The witness of rows against draws on one scale.
#[derive(Clone, Debug)]
pub struct Witness {
    embedding: Embedding,
    points: Vec<Vec<f64>>,
    weights: Vec<f64>,
    /// λ, in median distances.
    pub scale: f64,
}

impl Witness {
    /// Of rows and draws, row-major.
    pub fn new(manifold: &dyn Manifold, rows: &[f64], draws: &[f64], scale: f64) -> Self {
        let (m, all) = (manifold.ambient(), [rows, draws].concat());
        let embedding = Embedding::by_medians(manifold, &all);
        Witness { points: embedding.all(&all), weights: weights(rows.len() / m, draws.len() / m), embedding, scale }
    }

    /// w at points, row-major.
    pub fn at(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let (places, rate) = (self.embedding.all(points), -0.5 / (self.scale * self.scale));
        by_rows(places.len(), 1, context, |first, out| {
            for (place, out) in places[first..].iter().zip(out) {
                let terms = self.points.iter().zip(&self.weights);
                *out = terms.map(|(point, w)| w * (rate * square(place, point)).exp()).sum();
            }
        })
    }
}
