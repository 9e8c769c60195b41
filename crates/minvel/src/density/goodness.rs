//! Whether points may come from a model known by its score: a kernel Stein test on any manifold of ours.
//!
//! **Statement.** For vector fields V_a that span the tangent spaces, T_a f = V_a f + b_a f, b_a = div V_a + ⟨V_a, grad log p⟩,
//! has E_p T_a f = 0. With k(x, y) = φ(s), s = Σ_f |e_f(x) − e_f(y)|²/ℓ_f² over factors, h(x, y) = Σ_a T_a^x T_a^y k, KSD² = E h(x, x') ≥ 0, zero under
//! p only. With e_f/ℓ_f for e_f, δ = e(x) − e(y), D_a = de(V_a), primes at y: h = Σ_a −2φ̇⟨D_a, D_a'⟩ − 4φ̈⟨D_a, δ⟩⟨D_a', δ⟩ +
//! 2φ̇(b_a'⟨D_a, δ⟩ − b_a⟨D_a', δ⟩) + b_a b_a' φ.
//! **Source.** liu2016ksd, gorham2017ksd (flat space, inverse multiquadric); barp2022riemann (manifolds);
//! chwialkowski2016gof (wild bootstrap).
//! **Conventions.** Rⁿ and Tⁿ: V_a = ∂_a. Sⁿ: V_a the projected axes of R^{n+1}, div V_a = −n x_a. Hⁿ: V_a = ½(1−r²)∂_a,
//! div V_a = (n−1)x_a. RPⁿ: V_a the rotations in two coordinates, SO(3): V_a = ½q·(i, j, k), both without divergence.
//! e: the point, cosines and sines, the ball, xxᵀ.
//! φ = (1 + s)^{−½}; ℓ_f² is the number of factors times the median of |e_f(x) − e_f(y)|². Scores are Riemannian gradients in the coordinates of the manifold.
//! **Error.** The level is exact in the limit of many points; p-values are multiples of 1/(B + 1). On Hⁿ the ball sees
//! little of what is far out. **Checked by** tests/densities/goodness.rs.

use super::Density;
use crate::manifold::Space;
use crate::special::{dot, dot_in_lanes};
use crate::train::Context;
use crate::{Error, Manifold};
use minvel_engine::random::{Draw, Key, Stream, element};

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

/// How a test is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestPlan {
    /// Points that are used at most, drawn without replacement; the work is quadratic in them.
    pub points: usize,
    /// Resamples B of the statistic.
    pub resamples: usize,
    /// What points and signs are drawn by.
    pub seed: u64,
}

impl Default for TestPlan {
    fn default() -> Self {
        TestPlan { points: 1000, resamples: 1000, seed: 0 }
    }
}

/// The outcome of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Goodness {
    /// KSD² as the mean of h over pairs; it may be negative.
    pub statistic: f64,
    /// (1 + #{resamples ≥ statistic})/(1 + B).
    pub p_value: f64,
    /// Points used.
    pub points: usize,
    /// ℓ_f for each factor of the flattened product.
    pub lengths: Vec<f64>,
}

/// e, D and b of a point of one space with its score.
fn parts(space: Space, x: &[f64], score: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>, Vec<f64>) {
    let axis = |i: usize, n: usize| (0..n).map(|j| f64::from(i == j)).collect::<Vec<f64>>();
    match space {
        Space::Euclidean(n) => (x.to_vec(), (0..n).map(|a| axis(a, n)).collect(), score.to_vec()),
        Space::Torus(n) => {
            let embedded = x.iter().flat_map(|x| [x.cos(), x.sin()]).collect();
            let field = |a: usize| {
                let mut field = vec![0.0; 2 * n];
                (field[2 * a], field[2 * a + 1]) = (-x[a].sin(), x[a].cos());
                field
            };
            (embedded, (0..n).map(field).collect(), score.to_vec())
        }
        Space::Sphere(n) => {
            let field = |a: usize| (0..=n).map(|i| f64::from(i == a) - x[a] * x[i]).collect();
            let b = score.iter().zip(x).map(|(s, x)| s - n as f64 * x).collect();
            (x.to_vec(), (0..=n).map(field).collect(), b)
        }
        Space::Hyperbolic(n) => {
            let frame = 0.5 * (1.0 - dot(x, x));
            let field = |a: usize| axis(a, n).iter().map(|e| frame * e).collect();
            let b = score.iter().zip(x).map(|(s, x)| s / frame + (n as f64 - 1.0) * x).collect();
            (x.to_vec(), (0..n).map(field).collect(), b)
        }
        Space::Projective(n) => {
            // Rotations in the planes of two coordinates: tangent fields without divergence, alike at x and −x.
            let pairs = |from: usize| (0..=n).flat_map(move |i| (i + from..=n).map(move |j| (i, j)));
            let turn = |(i, j): (usize, usize)| {
                let mut field = vec![0.0; n + 1];
                (field[i], field[j]) = (-x[j], x[i]);
                field
            };
            let turns: Vec<Vec<f64>> = pairs(1).map(turn).collect();
            let entry = |i: usize, j: usize, m: f64| if i == j { m } else { std::f64::consts::SQRT_2 * m };
            let embedded = pairs(0).map(|(i, j)| entry(i, j, x[i] * x[j])).collect();
            let push = |v: &Vec<f64>| pairs(0).map(|(i, j)| entry(i, j, v[i] * x[j] + x[i] * v[j])).collect();
            (embedded, turns.iter().map(push).collect(), turns.iter().map(|v| dot(v, score)).collect())
        }
        Space::So3 => {
            let [i, j, k, r] = [x[0], x[1], x[2], x[3]].map(|x| 0.5 * x);
            // ½q·i, ½q·j, ½q·k, unit vectors of the metric 4 u·v.
            let fields = [[r, k, -j, -i], [-k, r, i, -j], [j, -i, r, -k]];
            let pairs = || (0..4).flat_map(|i| (i..4).map(move |j| (i, j)));
            let entry = |i: usize, j: usize, m: f64| if i == j { m } else { std::f64::consts::SQRT_2 * m };
            let embedded = pairs().map(|(i, j)| entry(i, j, x[i] * x[j])).collect();
            let push = |v: &[f64; 4]| pairs().map(|(i, j)| entry(i, j, v[i] * x[j] + x[i] * v[j])).collect();
            (embedded, fields.iter().map(push).collect(), fields.iter().map(|v| 4.0 * dot(v, score)).collect())
        }
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

    /// With lengths by the medians of distances between points (row-major); 1 where all are equal.
    pub fn by_medians(manifold: &dyn Manifold, points: &[f64]) -> Result<Self, Error> {
        let mut kernel = SteinKernel::new(manifold, 1.0)?;
        let (m, factors) = (manifold.ambient(), kernel.spaces.len() as f64);
        let mut start = 0;
        for (space, length) in kernel.spaces.iter().zip(&mut kernel.lengths) {
            let own = |x: &[f64]| parts(*space, &x[start..start + space.ambient()], &vec![0.0; space.ambient()]).0;
            let few: Vec<Vec<f64>> = points.chunks(m).take(MEDIAN_OF).map(own).collect();
            *length = (factors * median_square(&few)).sqrt();
            start += space.ambient();
        }
        Ok(kernel)
    }

    /// A point with the score grad log p there, in the coordinates of the manifold.
    pub fn point(&self, x: &[f64], score: &[f64]) -> SteinPoint {
        SteinPoint::new(&self.spaces, &self.lengths, x, score)
    }

    /// h(x, y).
    pub fn value(&self, x: &SteinPoint, y: &SteinPoint) -> f64 {
        let delta: Vec<f64> = x.embedded.iter().zip(&y.embedded).map(|(a, b)| a - b).collect();
        let base = 1.0 + dot(&delta, &delta);
        let value = base.sqrt().recip();
        let slope = -0.5 * value / base;
        let bend = -1.5 * slope / base;
        let (mut sum, width) = (0.0, delta.len());
        for ((d, e), (b, c)) in x.fields.chunks(width).zip(y.fields.chunks(width)).zip(x.scores.iter().zip(&y.scores)) {
            let (along, other) = (dot(d, &delta), dot(e, &delta));
            sum += -2.0 * slope * dot(d, e) - 4.0 * bend * along * other
                + 2.0 * slope * (c * along - b * other)
                + b * c * value;
        }
        sum
    }
}

/// Tests whether the points are a sample of a density.
///
/// An error where a score is not finite, fewer than two points are given, or the context is asked to stop.
pub fn goodness_of_fit(
    density: &dyn Density,
    points: &[f64],
    plan: &TestPlan,
    context: &Context,
) -> Result<Goodness, Error> {
    let manifold = density.manifold();
    let m = manifold.ambient();
    // Scores of the points that the test chooses suffice.
    let chosen: Vec<f64> = plan.choose(points.len() / m).iter().flat_map(|&i| &points[i * m..][..m]).copied().collect();
    let scores = density.score(&chosen, context)?;
    stein_test(&*manifold, &chosen, &scores, plan, context)
}

/// Tests whether the points are a sample of the density with the given scores.
///
/// `points` and `scores` are row-major, in the coordinates of the manifold; scores are Riemannian gradients of log p.
/// An error where a score is not finite, fewer than two points are given, or the context is asked to stop.
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
    let used: Vec<f64> = chosen.iter().flat_map(|i| row(points, *i)).collect();
    let kernel = SteinKernel::by_medians(manifold, &used)?;
    let all: Vec<SteinPoint> = chosen.iter().map(|i| kernel.point(&row(points, *i), &row(scores, *i))).collect();
    let n = all.len();
    let gram = crate::density::by_rows(n, n, context, |first, rows| {
        for (i, row) in (first..).zip(rows.chunks_mut(n)) {
            row.iter_mut().enumerate().filter(|(j, _)| *j != i).for_each(|(j, h)| *h = kernel.value(&all[i], &all[j]));
        }
    })?;
    let pairs = (n * (n - 1)) as f64;
    let statistic = gram.iter().sum::<f64>() / pairs;
    let resampled = crate::density::by_rows(plan.resamples, 1, context, |first, out| {
        for (b, out) in (first..).zip(out) {
            let stream = Stream::new(Key::new(plan.seed, b as u32), SIGNS);
            let signs: Vec<f64> = stream.samples(Draw::Rademacher).take(n).collect();
            *out = gram.chunks(n).zip(&signs).map(|(row, s)| s * dot_in_lanes(row, &signs)).sum::<f64>() / pairs;
        }
    })?;
    let above = resampled.iter().filter(|r| **r >= statistic).count();
    let p_value = (1 + above) as f64 / (1 + plan.resamples) as f64;
    Ok(Goodness { statistic, p_value, points: n, lengths: kernel.lengths })
}

/// Streams of the signs and of the choice of points.
const SIGNS: u32 = 0x5349_474E;
const CHOICE: u32 = 0x5355_4253;

impl TestPlan {
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
}

/// Points whose distances make the median.
const MEDIAN_OF: usize = 300;

/// The median squared distance over pairs of different points; 1 where all are equal.
fn median_square(points: &[Vec<f64>]) -> f64 {
    let square = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let pairs = points.iter().enumerate().flat_map(|(i, a)| points[..i].iter().map(move |b| square(a, b)));
    let mut all: Vec<f64> = pairs.filter(|s| *s > 0.0).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(1.0)
}
