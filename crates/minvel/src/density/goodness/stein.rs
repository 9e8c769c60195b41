//! A kernel Stein test on any manifold of ours, on several scales.
//!
//! **Statement.** For vector fields V_a that span the tangent spaces, T_a f = V_a f + b_a f, b_a = div V_a + ⟨V_a, grad log p⟩,
//! has E_p T_a f = 0. With k(x, y) = φ(s/λ²), h(x, y) = Σ_a T_a^x T_a^y k, KSD² = E h(x, x') ≥ 0, zero under p only. With
//! δ = e(x) − e(y), D_a = de(V_a), primes at y and derivatives of k by s: h = Σ_a −2k̇⟨D_a, D_a'⟩ − 4k̈⟨D_a, δ⟩⟨D_a', δ⟩ +
//! 2k̇(b_a'⟨D_a, δ⟩ − b_a⟨D_a', δ⟩) + b_a b_a' k.
//! **Source.** liu2016ksd, gorham2017ksd (flat space, inverse multiquadric); barp2022riemann (manifolds);
//! chwialkowski2016gof (wild bootstrap). **Conventions.** φ = (1 + s)^{−½}; e, V_a in [`super::fields`], e_f in units of ℓ_f.
//! Scores are Riemannian gradients in the coordinates of the manifold. Resamples flip signs: Σ ε_i ε_j h(x_i, x_j).
//! **Error.** The level is exact in the limit of many points; p-values are multiples of 1/(B + 1). On Hⁿ the ball sees
//! little of what is far out. **Checked by** tests/densities/goodness.rs.

use super::aggregate::Weights;
use super::fields::parts;
use super::scales::{Embedding, scales};
use super::{Goodness, SIGNS, TestPlan};
use crate::density::by_rows;
use crate::manifold::Space;
use crate::special::dot;
use crate::train::Context;
use crate::{Error, Manifold};
use minvel_engine::random::{Draw, Key, Stream};

/// What h needs of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct SteinPoint {
    /// e(x).
    embedded: Vec<f64>,
    /// D_a, row-major `[fields, width of e]`.
    fields: Vec<f64>,
    /// b_a.
    scores: Vec<f64>,
}

/// h(x, y) of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct SteinKernel {
    spaces: Vec<Space>,
    /// ℓ_f.
    lengths: Vec<f64>,
}

/// The sums that h is made of, whatever the scale.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// s,
    square: f64,
    /// Σ⟨D_a, D_a'⟩,
    fields: f64,
    /// Σ⟨D_a, δ⟩⟨D_a', δ⟩,
    along: f64,
    /// Σ b_a'⟨D_a, δ⟩ − b_a⟨D_a', δ⟩
    mixed: f64,
    /// and Σ b_a b_a'.
    scores: f64,
}

impl Sums {
    fn of(x: &SteinPoint, y: &SteinPoint) -> Self {
        let delta: Vec<f64> = x.embedded.iter().zip(&y.embedded).map(|(a, b)| a - b).collect();
        let (mut sums, width) = (Sums { square: dot(&delta, &delta), ..Sums::default() }, delta.len());
        for ((d, e), (b, c)) in x.fields.chunks(width).zip(y.fields.chunks(width)).zip(x.scores.iter().zip(&y.scores)) {
            let (along, other) = (dot(d, &delta), dot(e, &delta));
            sums.fields += dot(d, e);
            sums.along += along * other;
            sums.mixed += c * along - b * other;
            sums.scores += b * c;
        }
        sums
    }

    /// h with k = φ(s/λ²).
    fn at(&self, scale: f64) -> f64 {
        let unit = (scale * scale).recip();
        let base = 1.0 + unit * self.square;
        let value = base.sqrt().recip();
        let slope = -0.5 * unit * value / base;
        let bend = -1.5 * unit * slope / base;
        -2.0 * slope * self.fields - 4.0 * bend * self.along + 2.0 * slope * self.mixed + self.scores * value
    }
}

impl SteinPoint {
    /// From a point and its score, in the coordinates of the product of spaces.
    fn new(spaces: &[Space], lengths: &[f64], x: &[f64], score: &[f64]) -> Self {
        let mut start = 0;
        let mut all = vec![];
        for (space, length) in spaces.iter().zip(lengths) {
            let own = start..start + space.ambient();
            start = own.end;
            let (mut embedded, mut fields, scores) = parts(*space, &x[own.clone()], &score[own]);
            embedded.iter_mut().chain(fields.iter_mut().flatten()).for_each(|e| *e /= length);
            all.push((embedded, fields, scores));
        }
        let width: usize = all.iter().map(|p| p.0.len()).sum();
        let (mut fields, mut left) = (vec![], 0);
        for (embedded, own, _) in &all {
            for field in own {
                fields.extend(vec![0.0; left]);
                fields.extend(field);
                fields.extend(vec![0.0; width - left - embedded.len()]);
            }
            left += embedded.len();
        }
        let embedded = all.iter().flat_map(|p| p.0.clone()).collect();
        SteinPoint { embedded, fields, scores: all.into_iter().flat_map(|p| p.2).collect() }
    }
}

impl SteinKernel {
    /// With the same length ℓ for each factor; an error where the manifold is no product of model spaces.
    pub fn new(manifold: &dyn Manifold, length: f64) -> Result<Self, Error> {
        let spaces = manifold.spaces();
        let spaces = spaces.ok_or_else(|| Error::config(format!("there is no Stein kernel on {manifold}")))?;
        Ok(SteinKernel { lengths: vec![length; spaces.len()], spaces })
    }

    /// A point with the score grad log p there, in the coordinates of the manifold.
    pub fn point(&self, x: &[f64], score: &[f64]) -> SteinPoint {
        SteinPoint::new(&self.spaces, &self.lengths, x, score)
    }

    /// h(x, y), with λ = 1.
    pub fn value(&self, x: &SteinPoint, y: &SteinPoint) -> f64 {
        Sums::of(x, y).at(1.0)
    }
}

/// Tests whether the points are a sample of the density with the given scores.
///
/// `points` and `scores` are row-major, in the coordinates of the manifold; scores are Riemannian gradients of log p.
/// The statistics are the means of h over pairs, which may be negative. An error where a score is not finite, fewer than two
/// points are given, or the context is asked to stop.
pub fn stein_test(
    manifold: &dyn Manifold,
    points: &[f64],
    scores: &[f64],
    plan: &TestPlan,
    context: &Context,
) -> Result<Goodness, Error> {
    let m = manifold.ambient();
    assert!(points.len() == scores.len() && points.len().is_multiple_of(m), "each point of {m} numbers has a score");
    let chosen = plan.choose(points.len() / m);
    if chosen.len() < 2 {
        return Err(Error::config("a goodness-of-fit test needs at least two points"));
    }
    let row = |values: &[f64], i: usize| values[i * m..(i + 1) * m].to_vec();
    if let Some(i) = chosen.iter().find(|i| !row(scores, **i).iter().chain(&row(points, **i)).all(|s| s.is_finite())) {
        return Err(Error::config(format!("point {i} or its score is not finite")));
    }
    let mut kernel = SteinKernel::new(manifold, 1.0)?;
    let used: Vec<f64> = chosen.iter().flat_map(|i| row(points, *i)).collect();
    let embedding = Embedding::by_medians(manifold, &used);
    kernel.lengths.clone_from(&embedding.lengths);
    let all: Vec<SteinPoint> = chosen.iter().map(|i| kernel.point(&row(points, *i), &row(scores, *i))).collect();
    let n = all.len();
    let sums = by_rows(n, n, &context.quiet(), |first, rows| {
        for (i, row) in (first..).zip(rows.chunks_mut(n)) {
            row.iter_mut().zip(&all[..i]).for_each(|(sums, other)| *sums = Sums::of(&all[i], other));
        }
    })?;
    let signs =
        |b: usize| Stream::new(Key::new(plan.seed, b as u32), SIGNS).samples(Draw::Rademacher).take(n).collect();
    let weights = Weights::new(&vec![1.0; n], plan.resamples, signs, context)?;
    Goodness::of_scales(n, scales(&embedding.all(&used), plan.scales), &weights, context, |scale, gram| {
        *gram = by_rows(n, n, &context.quiet(), |first, rows| {
            for (i, row) in (first..).zip(rows.chunks_mut(n)) {
                row.iter_mut().zip(&sums[i * n..][..i]).for_each(|(h, sums)| *h = sums.at(scale));
            }
        })?;
        Ok(2.0 * gram.iter().sum::<f64>() / (n * (n - 1)) as f64)
    })
}
