//! A density on a regular grid, as a table.
//!
//! **Statement.** Cells that cover the manifold, or where it has no end the place of the data: p at the middle of each, and
//! its volume; Σ p·volume ≈ 1. **Conventions.** Circles and tori: equal angles. S²: equal latitudes and twice as many
//! longitudes, with their true areas; RP²: the upper half of that. Rⁿ and Hⁿ (in the ball): equal steps in a box around
//! draws of the model. Volumes and densities are those of `score`: angles in radians, whatever the unit of the columns.
//! **Error.** O(h²) of the midpoint rule for cells of width h, and what lies outside the box. **Checked by**
//! tests/lab/fit_use.rs.

use crate::table::{Column, Coordinates};
use minvel::Error;
use minvel::fit::Model;
use minvel::manifold::{Grid, Manifold, Space, quadrature};
use minvel::train::Context;
use std::f64::consts::{FRAC_PI_2, PI, TAU};

/// Draws that say where the mass of a model without ends lies.
const DRAWS: usize = 20_000;
/// The box is wider than the draws by this part of their range, on each side.
const MARGIN: f64 = 0.1;
/// Most cells.
const MOST: usize = 10_000_000;
/// Cells that are looked at together.
const BATCH: usize = 1 << 17;

/// A density on a grid.
#[derive(Clone, Debug)]
pub struct DensityGrid {
    /// Coordinates of the middles in the units of the data, then `log_density`, `density` and `cell`, its volume.
    pub columns: Vec<Column>,
    /// Σ density · cell.
    pub total: f64,
    /// Cells for each dimension.
    pub size: usize,
}

impl DensityGrid {
    /// Of a model whose data had these coordinates; so many cells a dimension, or as suit the number of dimensions.
    pub fn of(model: &Model, coordinates: &Coordinates, size: Option<usize>, context: &Context) -> Result<Self, Error> {
        let manifold = &**model.manifold();
        let spaces = manifold.spaces().unwrap_or_default();
        let dim = manifold.dim();
        if dim > 3 || spaces.iter().any(|s| matches!(s, Space::So3 | Space::Sphere(3..) | Space::Projective(3..))) {
            return Err(Error::config(format!(
                "there is no regular grid of {manifold}: grids are of up to three dimensions, of lines, planes, circles, tori, \
                 the sphere S2, axes and hyperbolic space; `minvel sample` gives points instead"
            )));
        }
        let size = size.unwrap_or([360, 180, 40][dim - 1]);
        let longitudes = spaces.iter().filter(|s| matches!(s, Space::Sphere(2) | Space::Projective(2))).count();
        if size.saturating_pow(dim as u32).saturating_mul(1 << longitudes) > MOST {
            return Err(Error::config(format!("--size {size} makes more than {MOST} cells: give a smaller one")));
        }
        let bounds = bounds(model, manifold, &spaces, context)?;
        let starts = coordinates.starts()?;
        let (mut at, mut grid) = (0, None);
        for (space, start) in spaces.iter().zip(starts) {
            let own = cells(*space, size, &bounds[at..at + space.ambient()], start);
            at += space.ambient();
            grid = Some(match grid {
                None => own,
                Some(others) => quadrature::product(&others, &own),
            });
        }
        let grid = grid.expect("a manifold has a factor");
        let m = manifold.ambient();
        let mut log_density = Vec::with_capacity(grid.weights.len());
        for points in grid.points.chunks(BATCH * m) {
            log_density.extend(model.log_density(points, context)?);
        }
        let density: Vec<f64> = log_density.iter().map(|l| l.exp()).collect();
        let total = density.iter().zip(&grid.weights).map(|(p, w)| p * w).sum();
        let mut columns = coordinates.table(&grid.points)?;
        columns.push(Column::numbers("log_density", log_density));
        columns.push(Column::numbers("density", density));
        columns.push(Column::numbers("cell", grid.weights));
        Ok(DensityGrid { columns, total, size })
    }
}

/// Where draws of the model and its centres lie, coordinate by coordinate; only looked at where there is no end.
fn bounds(model: &Model, manifold: &dyn Manifold, spaces: &[Space], context: &Context) -> Result<Vec<[f64; 2]>, Error> {
    let m = manifold.ambient();
    if !spaces.iter().any(|s| matches!(s, Space::Euclidean(_) | Space::Hyperbolic(_))) {
        return Ok(vec![[0.0, 0.0]; m]);
    }
    let mut points = model.sample(DRAWS, model.settings().seed + 5, context)?.points;
    points.extend(model.centres());
    let bound = |j: usize| {
        let column = || points.iter().skip(j).step_by(m).copied();
        let (low, high) = (column().fold(f64::INFINITY, f64::min), column().fold(f64::NEG_INFINITY, f64::max));
        let more = MARGIN * (high - low);
        [low - more, high + more]
    };
    Ok((0..m).map(bound).collect())
}

/// The cells of a space; angles of circles run from `start`.
fn cells(space: Space, size: usize, bounds: &[[f64; 2]], start: Start) -> Grid {
    let line = |(points, weights): quadrature::Rule| Grid { points, weights };
    let all = |grids: Vec<Grid>| grids.into_iter().reduce(|a, b| quadrature::product(&a, &b)).expect("a dimension");
    let round = |from: f64, turn: f64| {
        let Grid { points, weights } = line(quadrature::midpoint(from, from + turn, size));
        Grid { points: points.iter().flat_map(|a| [a.cos(), a.sin()]).collect(), weights }
    };
    let of = |k: usize, turn: f64| if start.get(k).copied().unwrap_or(false) { 0.0 } else { -0.5 * turn };
    match space {
        Space::Euclidean(_) => all(bounds.iter().map(|[a, b]| line(quadrature::midpoint(*a, *b, size))).collect()),
        Space::Torus(n) => {
            all((0..n).map(|k| line(quadrature::midpoint(of(k, TAU), of(k, TAU) + TAU, size))).collect())
        }
        Space::Sphere(1) => round(of(0, TAU), TAU),
        Space::Projective(1) => round(of(0, PI), PI),
        Space::Projective(_) => globe([0.0, FRAC_PI_2], size.div_ceil(2), of(0, TAU), 2 * size),
        Space::Sphere(_) => globe([-FRAC_PI_2, FRAC_PI_2], size, of(0, TAU), 2 * size),
        Space::Hyperbolic(n) => {
            let inside = |[a, b]: &[f64; 2]| line(quadrature::midpoint(a.max(-1.0), b.min(1.0), size));
            let flat = all(bounds.iter().map(inside).collect());
            let mut grid = Grid { points: vec![], weights: vec![] };
            for (x, w) in flat.points.chunks(n).zip(&flat.weights) {
                let depth = 1.0 - x.iter().map(|x| x * x).sum::<f64>();
                if depth > 0.0 {
                    grid.points.extend(x);
                    grid.weights.push(w * (2.0 / depth).powi(n as i32));
                }
            }
            grid
        }
        Space::So3 => unreachable!("rotations have no regular grid"),
    }
}

/// For each angle of a factor whether it runs from 0.
type Start = Vec<bool>;

/// Cells between parallels and meridians: area Δλ(sin φ₂ − sin φ₁).
fn globe([south, north]: [f64; 2], parallels: usize, west: f64, meridians: usize) -> Grid {
    let height = (north - south) / parallels as f64;
    let (longitudes, widths) = quadrature::midpoint(west, west + TAU, meridians);
    let mut grid = Grid { points: vec![], weights: vec![] };
    for k in 0..parallels {
        let (low, middle) = (south + k as f64 * height, south + (k as f64 + 0.5) * height);
        let band = (low + height).sin() - low.sin();
        for (longitude, width) in longitudes.iter().zip(&widths) {
            let (sin, cos) = middle.sin_cos();
            grid.points.extend([cos * longitude.cos(), cos * longitude.sin(), sin]);
            grid.weights.push(width * band);
        }
    }
    grid
}
