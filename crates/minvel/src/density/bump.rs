//! The natural kernel of a manifold.
//!
//! **Statement.** K_κ(x; c) = exp(κ·t(x, c) − log N(κ)), t ≤ 0 = t(c, c): Sⁿ: ⟨x, c⟩ − 1 (von Mises–Fisher); Tⁿ: Σ(cos(x_j −
//! c_j) − 1) (von Mises); Rⁿ: −|x − c|²/2 (normal); Hⁿ: 1 − cosh d(x, c) (hyperboloid law); RPⁿ and SO(3): ⟨x, c⟩² − 1
//! (Watson law, of quaternions = (cos φ − 1)/2 of the angle between); products: Σ s_f t_f.
//! **Source.** mardia2000directional, sections 3.5 and 9.3; jensen1981hyperboloid. **Conventions.** For sharp bumps
//! −t ≈ d²/2, on RPⁿ d², on SO(3) d²/4 (whose angles are twice those of quaternions): a width of about 1/√κ. The scales s_f ≥ 0
//! multiply κ, factor by factor of the flattened product.
//! **Error.** Rounding, for κs_f from 10⁻³ to 10⁷. **Checked by** tests/densities/density.rs.

use super::cloud::{Block, Cloud};
use super::natural::concentration;
use super::rows;
use crate::manifold::Space;
use crate::special::dot;
use crate::{Error, Manifold};
use minvel_engine::random::Stream;
use std::f64::consts::SQRT_2;
use std::sync::Arc;

/// The family of natural kernels on a manifold.
#[derive(Clone, Debug, PartialEq)]
pub struct Bump {
    spaces: Vec<Space>,
    scales: Vec<f64>,
    log_volume: Option<f64>,
}

impl Bump {
    /// With all scales 1; an error where the manifold is no product of model spaces.
    pub fn new(manifold: &dyn Manifold) -> Result<Self, Error> {
        let spaces = manifold.spaces();
        let spaces = spaces.ok_or_else(|| Error::config(format!("no natural kernel is known on {manifold}")))?;
        Ok(Bump { scales: vec![1.0; spaces.len()], spaces, log_volume: manifold.volume().map(f64::ln) })
    }

    /// With scales s_f > 0 for the factors of the flattened product.
    pub fn with_scales(self, scales: Vec<f64>) -> Self {
        assert!(scales.len() == self.spaces.len(), "{} scales for {} factors", scales.len(), self.spaces.len());
        assert!(scales.iter().all(|s| *s > 0.0 && s.is_finite()), "scales are positive, not {scales:?}");
        Bump { scales, ..self }
    }

    /// With scales that make the factors of a product equally wide, judged by the mean statistic over pairs of the points:
    /// s_f ∝ dim/(−2 t̄_f), with product 1.
    pub fn scaled_to(self, points: &[f64]) -> Self {
        let plain = self.with_equal_scales();
        let count = rows(points, plain.ambient());
        let spread = |f: usize| {
            let (space, _, start) = plain.factors().nth(f).expect("a factor of the product");
            let part = |i: usize| &points[i * plain.ambient() + start..][..space.ambient()];
            let pairs = (0..count).map(|i| -space.statistic(part(i), part((i + count / 2) % count)));
            (2.0 * pairs.sum::<f64>() / count as f64 / space.dim() as f64).max(1e-12)
        };
        let spreads: Vec<f64> = (0..plain.spaces.len()).map(spread).collect();
        let mean = spreads.iter().map(|s| s.ln()).sum::<f64>() / spreads.len() as f64;
        plain.with_scales(spreads.iter().map(|s| (mean - s.ln()).exp()).collect())
    }

    fn with_equal_scales(self) -> Self {
        Bump { scales: vec![1.0; self.spaces.len()], ..self }
    }

    /// The same kernels, Rⁿ and Tⁿ taken apart into lines and circles with a scale each.
    pub fn by_coordinate(self) -> Self {
        self.taken_apart(|space| match space {
            Space::Euclidean(n) => vec![Space::Euclidean(1); n],
            Space::Torus(n) => vec![Space::Torus(1); n],
            _ => vec![space],
        })
    }

    /// The same kernels, Tⁿ taken apart into circles with a scale each.
    pub(super) fn by_circle(self) -> Self {
        self.taken_apart(|space| if let Space::Torus(n) = space { vec![Space::Torus(1); n] } else { vec![space] })
    }

    fn taken_apart(self, parts: impl Fn(Space) -> Vec<Space>) -> Self {
        let own = |(space, scale, _): (Space, f64, usize)| parts(space).into_iter().map(move |part| (part, scale));
        let (spaces, scales) = self.factors().flat_map(|factor| own(factor).collect::<Vec<_>>()).unzip();
        Bump { spaces, scales, ..self }
    }

    /// The kernel of each factor by itself.
    pub(super) fn each(&self) -> Vec<Self> {
        let alone = |(space, scale, _)| Bump { spaces: vec![space], scales: vec![scale], log_volume: None };
        self.factors().map(alone).collect()
    }

    /// The kernels whose κ = 1 is these kernels with a κ for each factor.
    pub(super) fn with_kappas(mut self, kappas: impl IntoIterator<Item = f64>) -> Self {
        self.scales.iter_mut().zip(kappas).for_each(|(scale, kappa)| *scale *= kappa);
        self
    }

    /// The manifold.
    pub fn manifold(&self) -> Arc<dyn Manifold> {
        Space::product(&self.spaces)
    }

    /// The factors of the flattened product.
    pub fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    /// s_f.
    pub fn scales(&self) -> &[f64] {
        &self.scales
    }

    /// log of the volume, where it is finite.
    pub fn log_volume(&self) -> Option<f64> {
        self.log_volume
    }

    /// Numbers per point.
    pub fn ambient(&self) -> usize {
        self.spaces.iter().map(|s| s.ambient()).sum()
    }

    /// Intrinsic dimension.
    pub fn dim(&self) -> usize {
        self.spaces.iter().map(|s| s.dim()).sum()
    }

    /// Each factor with its scale and its first coordinate.
    fn factors(&self) -> impl Iterator<Item = (Space, f64, usize)> {
        let mut start = 0;
        self.spaces.iter().zip(&self.scales).map(move |(space, scale)| {
            start += space.ambient();
            (*space, *scale, start - space.ambient())
        })
    }

    /// t(x, c).
    pub fn statistic(&self, x: &[f64], c: &[f64]) -> f64 {
        let part = |(space, scale, start): (Space, f64, usize)| {
            let own = start..start + space.ambient();
            scale * space.statistic(&x[own.clone()], &c[own])
        };
        self.factors().map(part).sum()
    }

    /// Adds `factor`·∂t/∂x, in the coordinates of x; its tangent part is what counts.
    pub(super) fn add_slope(&self, x: &[f64], c: &[f64], factor: f64, out: &mut [f64]) {
        for (space, scale, start) in self.factors() {
            let own = start..start + space.ambient();
            space.add_slope(&x[own.clone()], &c[own.clone()], factor * scale, &mut out[own]);
        }
    }

    /// log N(κ).
    pub fn log_normaliser(&self, kappa: f64) -> f64 {
        self.factors().map(|(space, scale, _)| space.log_normaliser(kappa * scale)).sum()
    }

    /// E t under K_κ, which is d log N/dκ.
    pub fn mean_statistic(&self, kappa: f64) -> f64 {
        self.factors().map(|(space, scale, _)| scale * space.mean_statistic(kappa * scale)).sum()
    }

    /// The κ with −E t = spread.
    pub(super) fn concentration(&self, spread: f64) -> f64 {
        concentration(self.dim(), spread, |kappa| self.mean_statistic(kappa))
    }

    /// log K_κ(x; c).
    pub fn log_density(&self, x: &[f64], c: &[f64], kappa: f64) -> f64 {
        kappa * self.statistic(x, c) - self.log_normaliser(kappa)
    }

    /// A point of the law K_κ(·; c), by numbers of the stream.
    pub fn sample(&self, c: &[f64], kappa: f64, stream: &mut Stream) -> Vec<f64> {
        let part = |(space, scale, start): (Space, f64, usize)| {
            space.draw(&c[start..start + space.ambient()], kappa * scale, stream)
        };
        self.factors().flat_map(part).collect()
    }

    /// The order of points by their distance from their mean, in the coordinates in which t is a sum of squares: one
    /// that stays the same when a sphere is turned, and with it whatever is drawn by row.
    pub fn outwards(&self, points: &[f64]) -> Vec<usize> {
        let cloud = self.cloud(points);
        let mean = |column: &Vec<f64>| column.iter().sum::<f64>() / column.len() as f64;
        let means: Vec<f64> = cloud.columns.iter().map(mean).collect();
        let square = |i: usize| cloud.row(i).iter().zip(&means).map(|(x, mean)| (x - mean).powi(2)).sum::<f64>();
        let mut order: Vec<(f64, usize)> = (0..cloud.count).map(|i| (square(i), i)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        order.into_iter().map(|(_, i)| i).collect()
    }

    /// Appends the coordinates of a point in which t is a sum of squares; on Hⁿ also the factor that goes with them.
    pub(super) fn embed(&self, point: &[f64], out: &mut Vec<f64>) {
        for (space, scale, start) in self.factors() {
            space.embed(&point[start..start + space.ambient()], scale.sqrt(), out);
        }
    }

    /// For each of those coordinates the direction of the manifold that it belongs to: an angle, or the first of its factor.
    pub(super) fn directions(&self) -> Vec<usize> {
        let (mut directions, mut first) = (vec![], 0);
        for space in &self.spaces {
            match space {
                Space::Torus(n) => directions.extend((0..2 * n).map(|column| first + column / 2)),
                _ => directions.extend(std::iter::repeat_n(first, space.chord_width())),
            }
            first += space.dim();
        }
        directions
    }

    /// Whether t is −½ times the sum of the squared differences of those coordinates, and of nothing else.
    pub(super) fn is_flat(&self) -> bool {
        !self.spaces.iter().any(|space| matches!(space, Space::Hyperbolic(_)))
    }

    /// The points in the coordinates in which t is a sum of squares.
    pub(super) fn cloud(&self, points: &[f64]) -> Cloud {
        let count = rows(points, self.ambient());
        let (mut blocks, mut width) = (vec![], 0);
        for space in &self.spaces {
            let range = width..width + space.chord_width();
            width = range.end;
            match space {
                Space::Hyperbolic(_) => {
                    blocks.push(Block::Ball(range));
                    width += 1;
                }
                _ => blocks.push(Block::Flat(range)),
            }
        }
        let mut columns = vec![Vec::with_capacity(count); width];
        let mut row = vec![];
        for point in points.chunks(self.ambient()) {
            row.clear();
            self.embed(point, &mut row);
            columns.iter_mut().zip(&row).for_each(|(column, x)| column.push(*x));
        }
        Cloud { count, columns, blocks }
    }
}

impl Space {
    /// t(x, c) of one space with scale 1, by squares of differences.
    fn statistic(self, x: &[f64], c: &[f64]) -> f64 {
        let chord = |x: &[f64], c: &[f64]| x.iter().zip(c).map(|(x, c)| (x - c).powi(2)).sum::<f64>();
        let depth = |x: &[f64]| 1.0 - x.iter().map(|x| x * x).sum::<f64>();
        match self {
            Space::Euclidean(_) | Space::Sphere(_) => -0.5 * chord(x, c),
            Space::Torus(_) => x.iter().zip(c).map(|(x, c)| -2.0 * (0.5 * (x - c)).sin().powi(2)).sum(),
            Space::Hyperbolic(_) => -2.0 * chord(x, c) / (depth(x) * depth(c)),
            // (1 − w)(1 + w) with both factors as squares of chords.
            Space::Projective(_) | Space::So3 => {
                let sum = x.iter().zip(c).map(|(x, c)| (x + c).powi(2)).sum::<f64>();
                -0.25 * chord(x, c) * sum
            }
        }
    }

    /// Adds `factor`·∂t/∂x.
    fn add_slope(self, x: &[f64], c: &[f64], factor: f64, out: &mut [f64]) {
        let both = x.iter().zip(c).zip(out);
        match self {
            Space::Euclidean(_) | Space::Sphere(_) => both.for_each(|((x, c), out)| *out -= factor * (x - c)),
            Space::Torus(_) => both.for_each(|((x, c), out)| *out -= factor * (x - c).sin()),
            Space::Hyperbolic(_) => {
                let chord = x.iter().zip(c).map(|(x, c)| (x - c).powi(2)).sum::<f64>();
                let (depth, other) = (1.0 - dot(x, x), 1.0 - dot(c, c));
                let rate = -4.0 * factor / (depth * other);
                both.for_each(|((x, c), out)| *out += rate * ((x - c) + x * chord / depth));
            }
            Space::Projective(_) | Space::So3 => {
                let rate = 2.0 * factor * dot(x, c);
                both.for_each(|((_, c), out)| *out += rate * c);
            }
        }
    }

    /// Coordinates whose squared differences make t.
    fn chord_width(self) -> usize {
        match self {
            Space::Torus(n) => 2 * n,
            Space::Projective(_) | Space::So3 => self.ambient() * (self.ambient() + 1) / 2,
            _ => self.ambient(),
        }
    }

    /// Appends those coordinates times `root`, and for the ball also a = 2/(1−r²).
    fn embed(self, x: &[f64], root: f64, out: &mut Vec<f64>) {
        match self {
            Space::Torus(_) => out.extend(x.iter().flat_map(|x| [root * x.cos(), root * x.sin()])),
            Space::Projective(_) | Space::So3 => {
                let m = x.len();
                let entry = |i: usize, j: usize| if i == j { 1.0 } else { SQRT_2 } * x[i] * x[j];
                out.extend((0..m).flat_map(|i| (i..m).map(move |j| (i, j))).map(|(i, j)| root * entry(i, j)));
            }
            _ => out.extend(x.iter().map(|x| root * x)),
        }
        if let Space::Hyperbolic(_) = self {
            out.push(2.0 / (1.0 - x.iter().map(|x| x * x).sum::<f64>()));
        }
    }
}
