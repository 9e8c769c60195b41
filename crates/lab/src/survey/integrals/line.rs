//! A grid of a manifold of one dimension for a density of kernels: fine where centres are, however near they lie.
//!
//! **Statement.** Between two centres the pieces double in length from either side, from a millionth of the gap on; each
//! has six nodes of Gauss and Legendre, and none is longer than a hundredth of the whole.

use minvel::Manifold;
use minvel::manifold::quadrature::interval;
use minvel::manifold::{Grid, Space};
use std::f64::consts::TAU;

/// Halvings from the middle of a gap to a centre.
const HALVINGS: i32 = 20;
/// Nodes of a piece.
const NODES: usize = 6;

/// The grid of a manifold of one dimension with these centres, row-major.
pub(super) fn grid(manifold: &dyn Manifold, centres: &[f64]) -> Grid {
    let space = manifold.spaces().expect("checked")[0];
    let mut places: Vec<f64> = centres.chunks(manifold.ambient()).map(|c| length_of(space, c)).collect();
    places.sort_by(f64::total_cmp);
    let (first, last) = (places[0], places[places.len() - 1]);
    let whole = if manifold.volume().is_some() { TAU } else { 3.0 * (last - first) };
    let mut grid = Grid { points: vec![], weights: vec![] };
    let mut gap = |from: f64, to: f64| {
        let middle = 0.5 * (from + to);
        pieces(space, from, middle, 0.01 * whole, &mut grid);
        pieces(space, to, middle, 0.01 * whole, &mut grid);
    };
    places.windows(2).filter(|w| w[1] > w[0]).for_each(|w| gap(w[0], w[1]));
    if manifold.volume().is_some() {
        gap(last, first + TAU);
    } else {
        pieces(space, first, first - whole, 0.01 * whole, &mut grid);
        pieces(space, last, last + whole, 0.01 * whole, &mut grid);
    }
    grid
}

/// Pieces from a centre to `end`, the shortest at the centre.
fn pieces(space: Space, centre: f64, end: f64, longest: f64, grid: &mut Grid) {
    let at = |k: i32| if k > HALVINGS { centre } else { centre + (end - centre) * 0.5f64.powi(k) };
    for k in 0..=HALVINGS {
        let (from, to) = (at(k + 1), at(k));
        let parts = ((to - from).abs() / longest).ceil().max(1.0);
        for part in 0..parts as usize {
            let place = |j: f64| from + (to - from) * j / parts;
            let (nodes, weights) = interval(place(part as f64), place(part as f64 + 1.0), NODES);
            nodes.iter().for_each(|u| grid.points.extend(point_at(space, *u)));
            grid.weights.extend(weights.iter().map(|w| w.abs()));
        }
    }
}

/// The length along the manifold at which a point is.
fn length_of(space: Space, x: &[f64]) -> f64 {
    match space {
        Space::Sphere(_) => x[1].atan2(x[0]),
        Space::Hyperbolic(_) => 2.0 * x[0].atanh(),
        _ => x[0],
    }
}

fn point_at(space: Space, u: f64) -> Vec<f64> {
    match space {
        Space::Sphere(_) => vec![u.cos(), u.sin()],
        Space::Hyperbolic(_) => vec![(0.5 * u).tanh()],
        _ => vec![u],
    }
}
