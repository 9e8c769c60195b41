//! Distances between points in units of their medians, and the scales on which points are compared.
//!
//! **Statement.** s(x, y) = Σ_f |e_f(x) − e_f(y)|²/ℓ_f² over factors, ℓ_f² the number of factors times the median of |e_f(x) − e_f(y)|²
//! over pairs of different points. Scales λ_k are in geometric progression from the median distance √s to the nearest other
//! point, up to the distance that 99 % of the pairs do not exceed; a single scale is the median, λ = 1.
//! **Conventions.** Symmetric in the points, so that a permutation of rows and draws changes no scale. Points that are equal
//! count for no distance. **Error.** None. **Checked by** tests/densities/goodness.rs.

use super::fields::parts;
use crate::Manifold;
use crate::manifold::Space;

/// Pairs within this share of the distances are the whole spread.
const WHOLE: f64 = 0.99;

/// e of points, each factor in units of its length.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Embedding {
    /// None where the manifold is no product of model spaces: its own coordinates then.
    spaces: Option<Vec<Space>>,
    ambient: usize,
    /// ℓ_f.
    pub lengths: Vec<f64>,
}

impl Embedding {
    /// With lengths by medians over all pairs of the points; 1 where all are equal.
    pub fn by_medians(manifold: &dyn Manifold, points: &[f64]) -> Self {
        let (spaces, ambient) = (manifold.spaces(), manifold.ambient());
        let mut this = Embedding { lengths: vec![1.0; spaces.as_ref().map_or(1, Vec::len)], spaces, ambient };
        let factors = this.lengths.len() as f64;
        let all: Vec<Vec<Vec<f64>>> = points.chunks(ambient).map(|x| this.factors(x)).collect();
        let lengths = (0..this.lengths.len()).map(|f| {
            let own: Vec<&[f64]> = all.iter().map(|x| x[f].as_slice()).collect();
            let pairs = own.iter().enumerate().flat_map(|(i, a)| own[..i].iter().map(move |b| square(a, b)));
            (factors * quantile(pairs.filter(|s| *s > 0.0).collect(), 0.5).unwrap_or(1.0)).sqrt()
        });
        this.lengths = lengths.collect();
        this
    }

    fn factors(&self, x: &[f64]) -> Vec<Vec<f64>> {
        let Some(spaces) = &self.spaces else { return vec![x.to_vec()] };
        let mut start = 0;
        let part = |space: &Space| {
            let own = &x[start..start + space.ambient()];
            start += space.ambient();
            parts(*space, own, &vec![0.0; own.len()]).0
        };
        spaces.iter().map(part).collect()
    }

    /// e(x)/ℓ.
    pub fn of(&self, x: &[f64]) -> Vec<f64> {
        let parts = self.factors(x).into_iter().zip(&self.lengths);
        parts.flat_map(|(part, length)| part.into_iter().map(move |e| e / length)).collect()
    }

    /// e/ℓ of points, row-major.
    pub fn all(&self, points: &[f64]) -> Vec<Vec<f64>> {
        points.chunks(self.ambient).map(|x| self.of(x)).collect()
    }
}

/// |a − b|².
pub(super) fn square(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// So many scales, the smallest first, from s(x, y) of embedded points.
pub(super) fn scales(points: &[Vec<f64>], count: usize) -> Vec<f64> {
    if count == 1 {
        return vec![1.0];
    }
    let mut nearest = vec![f64::INFINITY; points.len()];
    let mut pairs = Vec::with_capacity(points.len() * points.len() / 2);
    for (i, a) in points.iter().enumerate() {
        for (j, b) in points[..i].iter().enumerate() {
            let s = square(a, b);
            if s > 0.0 {
                pairs.push(s);
                nearest[i] = nearest[i].min(s);
                nearest[j] = nearest[j].min(s);
            }
        }
    }
    nearest.retain(|s| s.is_finite());
    let (Some(local), Some(whole)) = (quantile(nearest, 0.5), quantile(pairs, WHOLE)) else { return vec![1.0] };
    let step = (0.5 * (whole / local).ln()).max(0.0) / (count - 1) as f64;
    (0..count).map(|k| local.sqrt() * (step * k as f64).exp()).collect()
}

/// The number that this share of the others do not exceed.
fn quantile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let at = (share * last as f64).round() as usize;
    Some(*values.select_nth_unstable_by(at, f64::total_cmp).1)
}
