//! Where rows are too many or too few for a model: the witness of a two-sample test, as a map.
//!
//! **Statement.** Colours are w(z) = mean_i k(x_i, z) − mean_j k(y_j, z) of rows x and draws y; the contour is w = 0. **Conventions.** S² in
//! Mollweide's projection, T² over a square, R² where the rows are; other manifolds have no such map.
//! **Checked by** tests/lab/plot_density.rs.

use super::coordinates::Coordinates;
use super::{FigureStyle, MAP, PLANE, axes, cloud, ranges::significant, ranges::spread};
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
    let coordinates = Coordinates::of(manifold);
    let shown: Vec<Vec<f64>> = rows.chunks_exact(manifold.ambient()).map(|point| coordinates.at(point)).collect();
    let plot = match coordinates.single() {
        Some(Space::Sphere(2)) => {
            let point = |(a, b): (f64, f64)| [a.cos() * b.cos(), a.cos() * b.sin(), a.sin()];
            let points: Vec<f64> = Map::points(MAP.0, MAP.1).flat_map(point).collect();
            let (values, shades) = shaded(witness(&points)?);
            let map = Map { points: cloud(&shown), ..Map::new(&look.title, MAP.0, MAP.1, values) };
            Plot::Maps(Maps { maps: vec![map], shades, earth: look.earth, centre: look.centre })
        }
        Some(Space::Torus(2) | Space::Euclidean(2)) => {
            let turns = matches!(coordinates.single(), Some(Space::Torus(2)));
            let around = |j: usize| spread(shown.iter().map(|row| row[j]).collect(), 0.12);
            let [across, up] = if turns { [[-180.0, 180.0]; 2] } else { [0, 1].map(around) };
            let unit = if turns { 1f64.to_radians() } else { 1.0 };
            let places = Field::places(PLANE, PLANE, across, up);
            let points: Vec<f64> = places.iter().flat_map(|(x, y)| [unit * x, unit * y]).collect();
            let (values, shades) = shaded(witness(&points)?);
            let mut axes = axes(&coordinates, look).into_iter().zip([across, up]);
            let mut axis = || axes.next().map(|(axis, [from, to])| axis.over(from, to)).expect("two coordinates");
            let (x, y) = (axis(), axis());
            let field = Field { columns: PLANE, rows: PLANE, values };
            Plot::Heat(Heat { title: look.title.clone(), x, y, field, shades, points: cloud(&shown), square: turns })
        }
        _ => return Ok(None),
    };
    let caption = format!(
        "Where the rows do not follow the model: bright where there are more of them than it says, dark where there are fewer; the white line \
         is where they are as many. It is the witness of the test of rows against draws, on the scale that rejects most. Dots: the {} rows \
         that were tested.",
        shown.len()
    );
    Ok(Some(Figure::new("witness", &caption, plot)))
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
