//! A density with its data as figures, as suits the manifold.
//!
//! **Statement.** Circles become wind roses, S² a map, T² a Ramachandran plot, H² Poincaré's disk, R and R² histograms and
//! colours over the plane; everything else a matrix of pair plots of data and samples, S² with a line or an angle also maps
//! at three values of it.
//! **Conventions.** Log densities are in nats w.r.t. the Riemannian volume. Lines of equal height hold 50, 90 and 99 % of
//! the probability in the smallest regions. **Error.** Colours and lines are those of a grid, O(h²).
//! **Checked by** tests/lab/plot_density.rs.

mod axial;
mod coordinates;
mod ranges;
mod witness;

pub use witness::{error_figure, witness_figure};

use super::{
    Axis, Bearings, Bins, Cloud, Dash, Disk, Field, Group, Heat, Histogram, Map, Maps, Mark, Matrix, Plot, PolarCurve,
    Rose, Series, Shades, levels,
};
use crate::plot::Figure;
use coordinates::Coordinates;
use minvel::Error;
use minvel::density::Density;
use minvel::manifold::Space;
use minvel::train::Context;
use ranges::{Third, bin_count, range, significant, significant_digits, spread, stored, thirds};
use std::f64::consts::{LN_2, PI, TAU};

/// How figures are to look.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureStyle {
    /// Title; may be empty.
    pub title: String,
    /// Names of the coordinates that are shown, empty for those of the theory; angles get their unit (°) here.
    pub names: Vec<String>,
    /// Whether a sphere is the Earth.
    pub earth: bool,
    /// Longitude of the middle of maps, in degrees.
    pub centre: f64,
    /// How directions are named.
    pub bearings: Bearings,
    /// Which data are shown as dots over densities.
    pub points: Points,
}

/// Which data are shown as dots over the colours of a density.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Points {
    /// All of them if they are few; none if they would hide the colours.
    #[default]
    Few,
    /// All, up to the number that a page can show.
    All,
    /// None.
    None,
}

impl Default for FigureStyle {
    fn default() -> Self {
        let (title, names, bearings) = (String::new(), vec![], Bearings::Degrees);
        FigureStyle { title, names, earth: false, centre: 0.0, bearings, points: Points::Few }
    }
}

/// The figures of a density: with the data it was learnt from, and samples of it (which only the matrices of pair plots
/// need). Data and samples are points one after another, in the coordinates of [`minvel::manifold`]. An error only where
/// the density has one.
pub fn figures(
    density: &dyn Density,
    data: &[f64],
    samples: &[f64],
    look: &FigureStyle,
    context: &Context,
) -> Result<Vec<Figure>, Error> {
    let manifold = density.manifold();
    let coordinates = Coordinates::of(&*manifold);
    let ends = if let Some(Space::Projective(1 | 2)) = coordinates.single() { Ends::Both } else { Ends::One };
    let shown = Shown { m: manifold.ambient(), coordinates, density, ends, data, samples, look, context };
    match ends {
        Ends::One => shown.figures(),
        Ends::Both => axial::axial(shown),
    }
}

/// At how many points of a picture a point of the manifold is drawn.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    One,
    /// An axis, at both of its ends, with half of its density at each.
    Both,
}

/// What is shown.
struct Shown<'a> {
    m: usize,
    coordinates: Coordinates,
    density: &'a dyn Density,
    ends: Ends,
    data: &'a [f64],
    samples: &'a [f64],
    look: &'a FigureStyle,
    context: &'a Context<'a>,
}

/// Data that are few enough to be dots over colours.
const FEW: usize = 2_000;
/// Most dots of a figure; of more data every k-th is shown.
const DOTS: usize = 20_000;
/// Most points in the cells of a matrix.
const CELL: usize = 2_000;
/// Most coordinates of a matrix.
const COORDINATES: usize = 8;
/// Grids of a map, and of the plane.
const MAP: (usize, usize) = (180, 360);
const PLANE: usize = 181;
/// Grid of each of several maps.
const SMALL_MAP: (usize, usize) = (60, 120);
/// Angles of a rose, and places of a curve.
const ANGLES: usize = 720;
const PLACES: usize = 401;
/// Probabilities of the regions that lines enclose.
const REGIONS: [(f64, &str); 3] = [(0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %")];

impl Shown<'_> {
    /// The figures that suit the coordinates.
    fn figures(&self) -> Result<Vec<Figure>, Error> {
        let figure = match self.coordinates.single() {
            Some(Space::Sphere(1) | Space::Torus(1)) => self.rose(),
            Some(Space::Sphere(2)) => self.map(),
            Some(Space::Torus(2)) => self.torus(),
            Some(Space::Hyperbolic(2)) => self.disk(),
            Some(Space::Euclidean(1)) => self.histogram(),
            Some(Space::Euclidean(2)) => self.plane(),
            _ => return Ok(self.slices()?.into_iter().chain([self.matrix()]).collect()),
        };
        Ok(vec![figure?])
    }

    /// The coordinates of points, at most so many of them.
    fn rows(&self, points: &[f64], most: usize) -> Vec<Vec<f64>> {
        let every = (points.len() / self.m).div_ceil(most).max(1);
        points.chunks_exact(self.m).step_by(every).map(|point| self.coordinates.at(point)).collect()
    }

    fn axes(&self) -> Vec<Axis> {
        axes(&self.coordinates, self.look)
    }

    /// Most data that are shown as dots.
    fn most_dots(&self) -> usize {
        match self.look.points {
            Points::Few if self.data.len() / self.m > FEW => 0,
            Points::Few | Points::All => DOTS,
            Points::None => 0,
        }
    }

    fn cloud(&self) -> Cloud {
        match self.most_dots() {
            0 => Cloud::default(),
            most => cloud(&self.rows(self.data, most)),
        }
    }

    /// Marks of the smallest regions that hold given probabilities, on cells of these areas.
    fn regions(&self, values: &[f32], area: impl Fn(usize) -> f64) -> Vec<Mark> {
        let heights = levels(values, area, &REGIONS.map(|r| r.0));
        let mark = |(at, (_, label)): (f64, (f64, &str))| Mark { at, label: label.to_string(), line: true };
        heights.into_iter().zip(REGIONS).map(mark).collect()
    }

    /// Log densities at places of the picture.
    fn densities(&self, points: Vec<f64>) -> Result<Vec<f64>, Error> {
        let rows = points.len() / self.m;
        let logs = || self.density.log_density(&points, self.context);
        let mut values = self.context.stage("figures", rows, "rows", logs)?;
        assert_eq!(values.len(), rows, "a log density for each point");
        if self.ends == Ends::Both {
            values.iter_mut().for_each(|value| *value -= LN_2);
        }
        Ok(values)
    }

    fn title(&self) -> String {
        self.look.title.clone()
    }

    /// What the dots are, or why there are none.
    fn dots_sentence(&self) -> String {
        let all = self.data.len() / self.m;
        let shown = match self.most_dots() {
            0 => 0,
            most => all.div_ceil(all.div_ceil(most).max(1)),
        };
        match (all, shown) {
            (0, _) => String::new(),
            (all, 0) if self.look.points == Points::None => format!(" The {all} data points are not drawn."),
            (all, 0) => format!(" The {all} data points are not drawn: they would hide the colours."),
            (all, shown) if all == shown => format!(" Dots: all {all} data points."),
            (all, shown) => format!(" Dots: {shown} of the {all} data points."),
        }
    }

    /// S² as a map.
    fn map(&self) -> Result<Figure, Error> {
        let places: Vec<(f64, f64)> = Map::points(MAP.0, MAP.1).collect();
        let point = |&(a, b): &(f64, f64)| [a.cos() * b.cos(), a.cos() * b.sin(), a.sin()];
        let values = self.densities(places.iter().flat_map(point).collect())?;
        let area = |k: usize| places[k].0.cos();
        let range = range(&values, area);
        let values = stored(&values, range);
        let mut marks = self.regions(&values, area);
        marks.push(Mark { at: -(4.0 * PI).ln(), label: "uniform".to_string(), line: false });
        let shades = Shades { label: "log density (nats, per steradian)".to_string(), range: Some(range), marks };
        let map = Map { points: self.cloud(), ..Map::new(&self.look.title, MAP.0, MAP.1, values) };
        let maps = Maps { maps: vec![map], shades, earth: self.look.earth, centre: self.look.centre };
        let coast = if self.look.earth { " Coastlines: Natural Earth." } else { "" };
        let caption = format!(
            "Log density on the sphere in Mollweide's projection, which preserves areas; grid lines every 30° of latitude \
             and 60° of longitude. White contours enclose {SMALLEST}.{}{coast}",
            self.dots_sentence()
        );
        Ok(Figure::new("density", &caption, Plot::Maps(maps)))
    }

    /// T² over a square.
    fn torus(&self) -> Result<Figure, Error> {
        let turn = [-180.0, 180.0];
        let places = Field::places(PLANE, PLANE, turn, turn);
        let points = places.iter().flat_map(|(a, b)| [a.to_radians(), b.to_radians()]).collect();
        self.heat(points, [turn, turn], "log density (nats, per rad²)", true)
    }

    /// R² where the data are.
    fn plane(&self) -> Result<Figure, Error> {
        let rows = self.rows(if self.data.is_empty() { self.samples } else { self.data }, usize::MAX);
        let ranges = [0, 1].map(|j| spread(rows.iter().map(|r| r[j]).collect(), 0.12));
        let points = Field::places(PLANE, PLANE, ranges[0], ranges[1]).iter().flat_map(|(x, y)| [*x, *y]).collect();
        self.heat(points, ranges, "log density (nats)", false)
    }

    fn heat(&self, points: Vec<f64>, [across, up]: [[f64; 2]; 2], label: &str, square: bool) -> Result<Figure, Error> {
        let values = self.densities(points)?;
        let range = range(&values, |_| 1.0);
        let field = Field { columns: PLANE, rows: PLANE, values: stored(&values, range) };
        let marks = self.regions(&field.values, |_| 1.0);
        let mut axes = self.axes().into_iter();
        let mut axis = |[from, to]: [f64; 2]| axes.next().expect("two coordinates").over(from, to);
        let (x, y) = (axis(across), axis(up));
        let shades = Shades { label: label.to_string(), range: Some(range), marks };
        let heat = Heat { title: self.title(), x, y, field, shades, points: self.cloud(), square };
        let caption = format!("Log density. White contours enclose {SMALLEST}.{}", self.dots_sentence());
        Ok(Figure::new("density", &caption, Plot::Heat(heat)))
    }

    /// H² in the disk.
    fn disk(&self) -> Result<Figure, Error> {
        let places = Field::places(PLANE, PLANE, [-1.0, 1.0], [-1.0, 1.0]);
        // Corners of the grid outside the disk take the number of the edge nearby, for the colours just inside.
        let inside = |&(x, y): &(f64, f64)| {
            let shrink = (EDGE / x.hypot(y)).min(1.0);
            [shrink * x, shrink * y]
        };
        let values = self.densities(places.iter().flat_map(inside).collect())?;
        let volume = |k: usize| {
            let (x, y) = places[k];
            let depth = 1.0 - x * x - y * y;
            if depth > 1.0 - EDGE * EDGE { (2.0 / depth).powi(2) } else { 0.0 }
        };
        let range = range(&values, volume);
        let field = Field { columns: PLANE, rows: PLANE, values: stored(&values, range) };
        let marks = self.regions(&field.values, volume);
        let label = "log density (nats, w.r.t. hyperbolic area)".to_string();
        let shades = Shades { label, range: Some(range), marks };
        let disk = Disk { title: self.title(), field, shades, points: self.cloud() };
        let caption = format!(
            "Log density w.r.t. the hyperbolic area in the Poincaré disk. Faint lines are geodesics perpendicular to the two \
             axes, labelled with their distance from the centre. White contours enclose {SMALLEST}.{}",
            self.dots_sentence()
        );
        Ok(Figure::new("density", &caption, Plot::Disk(disk)))
    }

    /// S² with a line or an angle: maps at three values of it. None for other manifolds.
    fn slices(&self) -> Result<Option<Figure>, Error> {
        let Some((sphere, line)) = self.coordinates.sphere_and_line() else { return Ok(None) };
        let shown = self.rows(if self.data.is_empty() { self.samples } else { self.data }, usize::MAX);
        let axis = self.axes().swap_remove(line.shown);
        let Some(values) = thirds(shown.iter().map(|row| row[line.shown]).collect()) else { return Ok(None) };
        let places: Vec<(f64, f64)> = Map::points(SMALL_MAP.0, SMALL_MAP.1).collect();
        let point = |value: f64, &(a, b): &(f64, f64)| {
            let mut point = vec![0.0; self.m];
            point[sphere.first..][..3].copy_from_slice(&[a.cos() * b.cos(), a.cos() * b.sin(), a.sin()]);
            line.put(value, &mut point);
            point
        };
        let logs: Vec<Vec<f64>> = values
            .iter()
            .map(|third| self.densities(places.iter().flat_map(|place| point(third.middle, place)).collect()))
            .collect::<Result<_, Error>>()?;
        let range = range(&logs.concat(), |k| places[k % places.len()].0.cos());
        let dots = |third: &Third| -> Cloud {
            let own = |row: &&Vec<f64>| third.holds(row[line.shown]);
            let rows: Vec<Vec<f64>> = shown.iter().filter(own).map(|row| row[sphere.shown..][..2].to_vec()).collect();
            if self.most_dots() == 0 || self.data.is_empty() { Cloud::default() } else { cloud(&rows) }
        };
        let map = |(third, logs): (&Third, &Vec<f64>)| {
            let title = format!("{} = {}", axis.label, significant_digits(third.middle));
            Map { points: dots(third), ..Map::new(&title, SMALL_MAP.0, SMALL_MAP.1, stored(logs, range)) }
        };
        let maps = values.iter().zip(&logs).map(map).collect();
        let shades = Shades { range: Some(range), ..Shades::new("log density (nats)") };
        let maps = Maps { maps, shades, earth: self.look.earth, centre: self.look.centre };
        let dots = match self.most_dots() == 0 || self.data.is_empty() {
            true => "",
            false => " Dots: the data points of that third.",
        };
        let caption = format!(
            "Log density on the sphere at the median {} of the lowest, the middle and the highest third of the data.{dots}",
            axis.label
        );
        Ok(Some(Figure::new("slices", &caption, Plot::Maps(maps))))
    }

    /// A circle as a wind rose.
    fn rose(&self) -> Result<Figure, Error> {
        let angles = (0..ANGLES).map(|i| TAU * i as f64 / ANGLES as f64);
        let points = match self.m {
            1 => angles.collect(),
            _ => angles.flat_map(|a| [a.cos(), a.sin()]).collect(),
        };
        let (turn, unit) = self.look.bearings.by_unit();
        let scaled = |density: f64| significant(density * (TAU / turn));
        let density: Vec<f64> = self.densities(points)?.into_iter().map(|l| scaled(l.exp())).collect();
        let rows = self.rows(self.data, usize::MAX);
        let turned: Vec<f64> = rows.iter().map(|r| r[0].to_radians().rem_euclid(TAU)).collect();
        let count = if turned.len() < 200 {
            16
        } else if turned.len() < 2000 {
            24
        } else {
            36
        };
        let mut bins = Bins::of("data", "data", &turned, count, [0.0, TAU]);
        bins.density.iter_mut().for_each(|d| *d = scaled(*d));
        let curve = PolarCurve { name: "model".to_string(), method: "model".to_string(), dash: Dash::Solid, density };
        let label = format!("rings: {unit}, equal-area");
        let rose = Rose { title: self.title(), label, bearings: self.look.bearings, bins, curves: vec![curve] };
        let caption =
            "Density around the circle: equal areas are equal probabilities. Bars are the data, the line is the model.";
        Ok(Figure::new("density", caption, Plot::Rose(rose)))
    }

    /// R as a histogram.
    fn histogram(&self) -> Result<Figure, Error> {
        let values: Vec<f64> = self.rows(self.data, usize::MAX).iter().map(|r| r[0]).collect();
        let shown = if values.is_empty() { self.samples } else { self.data };
        let [low, high] = spread(shown.to_vec(), 0.06);
        let places: Vec<f64> = (0..PLACES).map(|i| low + (high - low) * i as f64 / (PLACES - 1) as f64).collect();
        let logs = self.densities(places.clone())?;
        let bins = Bins::of("data", "data", &values, bin_count(&values, [low, high]), [low, high]);
        let line = places.iter().zip(&logs).map(|(x, l)| (significant(*x), significant(l.exp())));
        let x = self.axes().remove(0).over(low, high);
        let curves = vec![Series::new("model", "model").values(line)];
        let histogram = Histogram { title: self.title(), x, y: Axis::linear("density"), bins, curves };
        let caption = "Density of the model (line) over the histogram of the data.";
        Ok(Figure::new("density", caption, Plot::Histogram(histogram)))
    }

    /// Anything else as pair plots.
    fn matrix(&self) -> Figure {
        let (data, samples) = (self.rows(self.data, CELL), self.rows(self.samples, CELL));
        let mut axes = self.axes();
        let all = axes.len();
        axes.truncate(COORDINATES);
        for (j, axis) in axes.iter_mut().enumerate() {
            let shown = || spread(data.iter().chain(&samples).map(|r| r[j]).collect(), 0.06);
            let [low, high] = *axis.range.get_or_insert_with(shown);
            // Cells of many coordinates have room for few numbers.
            let crowded = |step: f64| all > 3 && high - low > 4.0 * step;
            axis.every = axis.every.map(|step| if crowded(step) { 2.0 * step } else { step });
        }
        let group = |name: &str, method: &str, rows: &[Vec<f64>]| {
            let column = |j: usize| rows.iter().map(|row| significant(row[j]) as f32).collect();
            Group { name: name.to_string(), method: method.to_string(), columns: (0..axes.len()).map(column).collect() }
        };
        let groups = [("data", "data", &data), ("samples of the model", "model", &samples)];
        let groups = groups.into_iter().filter(|g| !g.2.is_empty()).map(|(n, m, rows)| group(n, m, rows)).collect();
        let bins = if axes.len() > 4 { 30 } else { 40 };
        let left_out =
            if all > COORDINATES { format!(" The first {COORDINATES} of {all} coordinates.") } else { String::new() };
        let what = match self.coordinates.contain(Space::So3) {
            true => " Rotations as axis times angle, and their angle.",
            false => "",
        };
        let caption = format!(
            "Every coordinate against every other: data below the diagonal, samples of the model above; their histograms \
             on it.{what}{left_out}"
        );
        Figure::new("pairs", &caption, Plot::Matrix(Matrix { title: self.title(), axes, groups, bins }))
    }
}

/// Axes of the coordinates, with the names that they have.
fn axes(coordinates: &Coordinates, look: &FigureStyle) -> Vec<Axis> {
    let mut axes = coordinates.axes();
    if look.names.len() == axes.len() {
        for (axis, name) in axes.iter_mut().zip(&look.names).filter(|(_, name)| !name.is_empty()) {
            let unit = if axis.label.ends_with("(°)") && !name.contains('°') { " (°)" } else { "" };
            axis.label = format!("{name}{unit}");
        }
    }
    axes
}

/// What contours enclose.
const SMALLEST: &str = "the smallest regions that hold 50, 90 and 99 % of the probability";

/// Dots at the first two coordinates of rows.
fn cloud(rows: &[Vec<f64>]) -> Cloud {
    Cloud::new("data", rows.iter().map(|row| (significant(row[0]), significant(row[1]))))
}

/// Radius up to which densities in Poincaré's disk are shown: distance 7.6.
const EDGE: f64 = 0.999;
