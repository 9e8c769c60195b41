//! Where rows are too many or too few for a model: the witness of a two-sample test, as a map.
//!
//! **Statement.** Colours are w(z) = mean_i k(x_i, z) − mean_j k(y_j, z) of rows x and draws y; the contour is w = 0. **Conventions.** S² in
//! Mollweide's projection, T² over a square, R² where the rows are; other manifolds have no such map.
//! **Checked by** tests/lab/plot_density.rs.

use super::coordinates::Coordinates;
use super::{FigureStyle, MAP, PLANE, SMALL_MAP, axes, cloud, ranges::significant, ranges::spread};
use crate::plot::{Field, Figure, Heat, Map, Maps, Mark, Plot, Shades};
use minvel::Error;
use minvel::manifold::{Manifold, Space};

/// The map of a witness, given at points of the manifold, with rows as dots; none where the manifold has no map.
pub fn witness_figure(
    manifold: &dyn Manifold,
    rows: &[f64],
    witness: impl FnOnce(&[f64]) -> Result<Vec<f64>, Error>,
    look: &FigureStyle,
) -> Result<Option<Figure>, Error> {
    let ground = Ground { rows, dots: rows, map: MAP, plane: PLANE };
    let Some((plot, shown)) = map(manifold, &ground, |points| Ok(shaded(witness(points)?)), look)? else {
        return Ok(None);
    };
    let caption = format!(
        "Where the rows do not follow the model: bright where there are more of them than it says, dark where there are fewer; the white line \
         is where they are as many. It is the witness of the test of rows against draws, on the scale that rejects most. Dots: the {shown} rows \
         that were tested."
    );
    Ok(Some(Figure::new("witness", &caption, plot)))
}

/// A map of the standard error of log p, given at points of the manifold; infinite ones have no data. None where the manifold has no map.
pub fn error_figure(
    manifold: &dyn Manifold,
    rows: &[f64],
    errors: impl FnOnce(&[f64]) -> Result<Vec<f64>, Error>,
    look: &FigureStyle,
) -> Result<Option<Figure>, Error> {
    let dots = if rows.len() / manifold.ambient() <= DOTS { rows } else { &[] };
    // Every place is looked at many times: the map is coarse.
    let ground = Ground { rows, dots, map: SMALL_MAP, plane: SMALL_PLANE };
    let Some((plot, _)) = map(manifold, &ground, |points| Ok(uncertain(errors(points)?)), look)? else {
        return Ok(None);
    };
    let caption = "How well the density is known: the standard error of log p by a bootstrap over rows or groups. 0.1 means that the density is \
                   known to about 10 %. Brightest, from 2 on: there are no data, and the density is a guess.";
    Ok(Some(Figure::new("uncertainty", caption, plot)))
}

/// Rows that a map of errors shows, at most.
const DOTS: usize = 2000;
/// Places of a coarse map of a plane, in each direction.
const SMALL_PLANE: usize = 61;
/// Errors beyond this are not told apart.
const MOST: f64 = 2.0;

/// Numbers with colours from none to no data.
fn uncertain(values: Vec<f64>) -> (Vec<f32>, Shades) {
    let stored = values.iter().map(|e| significant(e.min(MOST)) as f32).collect();
    let marks = vec![Mark { at: MOST, label: "no data".to_string(), line: false }];
    (stored, Shades { label: "standard error of log p (nats)".to_string(), range: Some([0.0, MOST]), marks })
}

/// What a map is drawn on.
struct Ground<'a> {
    /// Where it has to reach.
    rows: &'a [f64],
    /// Rows that are shown.
    dots: &'a [f64],
    /// Places of a map of the sphere, and of a plane.
    map: (usize, usize),
    plane: usize,
}

/// A map of numbers with rows as dots, and how many these are.
fn map(
    manifold: &dyn Manifold,
    ground: &Ground,
    values: impl FnOnce(&[f64]) -> Result<(Vec<f32>, Shades), Error>,
    look: &FigureStyle,
) -> Result<Option<(Plot, usize)>, Error> {
    let &Ground { rows, dots, map: (high, wide), plane } = ground;
    let coordinates = Coordinates::of(manifold);
    let at = |rows: &[f64]| rows.chunks_exact(manifold.ambient()).map(|point| coordinates.at(point)).collect();
    let (all, dots): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (at(rows), at(dots));
    let plot = match coordinates.single() {
        Some(Space::Sphere(2)) => {
            let point = |(a, b): (f64, f64)| [a.cos() * b.cos(), a.cos() * b.sin(), a.sin()];
            let points: Vec<f64> = Map::points(high, wide).flat_map(point).collect();
            let (values, shades) = values(&points)?;
            let map = Map { points: cloud(&dots), ..Map::new(&look.title, high, wide, values) };
            Plot::Maps(Maps { maps: vec![map], shades, earth: look.earth, centre: look.centre })
        }
        Some(Space::Torus(2) | Space::Euclidean(2)) => {
            let turns = matches!(coordinates.single(), Some(Space::Torus(2)));
            let around = |j: usize| spread(all.iter().map(|row| row[j]).collect(), 0.12);
            let [across, up] = if turns { [[-180.0, 180.0]; 2] } else { [0, 1].map(around) };
            let unit = if turns { 1f64.to_radians() } else { 1.0 };
            let places = Field::places(plane, plane, across, up);
            let points: Vec<f64> = places.iter().flat_map(|(x, y)| [unit * x, unit * y]).collect();
            let (values, shades) = values(&points)?;
            let mut axes = axes(&coordinates, look).into_iter().zip([across, up]);
            let mut axis = || axes.next().map(|(axis, [from, to])| axis.over(from, to)).expect("two coordinates");
            let (x, y) = (axis(), axis());
            let field = Field { columns: plane, rows: plane, values };
            Plot::Heat(Heat { title: look.title.clone(), x, y, field, shades, points: cloud(&dots), square: turns })
        }
        _ => return Ok(None),
    };
    Ok(Some((plot, dots.len())))
}

/// Numbers with colours as far above zero as below.
fn shaded(values: Vec<f64>) -> (Vec<f32>, Shades) {
    let most = values.iter().fold(0.0, |most: f64, w| most.max(w.abs()));
    let most = if most > 0.0 { most } else { 1.0 };
    let label = "rows less draws (mean of the kernel)".to_string();
    let marks = vec![Mark { at: 0.0, label: "as the model says".to_string(), line: true }];
    let stored = values.iter().map(|w| significant(*w) as f32).collect();
    (stored, Shades { label, range: Some([-most, most]), marks })
}
