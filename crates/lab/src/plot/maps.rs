//! Maps of the sphere in Mollweide's projection, which keeps areas, with one scale of colours.
//!
//! **Checked by** tests/lab/plot.rs, tests/lab/plot_maps.rs.

use super::cloud::Cloud;
use super::coastline;
use super::field::{Contour, Field};
use super::mollweide::{Parallel, project};
use super::scene::{Anchor, Area, Paint, SMALL, Scene, Stroke, text_width};
use super::shades::{self, BAR, CONTOUR, Shades, white};
use serde::{Deserialize, Serialize};
use std::f64::consts::{FRAC_PI_2, PI};

/// Numbers on the sphere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Map {
    /// What the map shows.
    pub title: String,
    /// Parallels from south to north: row i is at latitude −90° + 180°·(i + ½)/latitudes.
    pub latitudes: usize,
    /// Meridians from west to east: column j is at longitude −180° + 360°·(j + ½)/longitudes.
    pub longitudes: usize,
    /// Row after row.
    pub values: Vec<f32>,
    /// Dots on it.
    #[serde(default, skip_serializing_if = "Cloud::is_empty")]
    pub points: Cloud,
}

/// Maps with one scale of colours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Maps {
    /// The maps, from left to right.
    pub maps: Vec<Map>,
    /// What the colours measure.
    #[serde(flatten)]
    pub shades: Shades,
    /// Whether the sphere is the Earth: coastlines, and latitudes with N and S.
    #[serde(default)]
    pub earth: bool,
    /// Longitude of the middle, in degrees.
    #[serde(default)]
    pub centre: f64,
}

impl Map {
    /// A map of numbers, without dots.
    pub fn new(title: &str, latitudes: usize, longitudes: usize, values: Vec<f32>) -> Self {
        assert_eq!(values.len(), latitudes * longitudes, "a number for each place of the map");
        Map { title: title.to_string(), latitudes, longitudes, values, points: Cloud::default() }
    }

    /// A map of a function of (latitude, longitude) in radians.
    pub fn of(title: &str, latitudes: usize, longitudes: usize, f: impl Fn(f64, f64) -> f64) -> Self {
        let points = Self::points(latitudes, longitudes);
        Map::new(title, latitudes, longitudes, points.map(|(a, b)| f(a, b) as f32).collect())
    }

    /// Latitudes and longitudes, in radians, of the numbers of a map, in order.
    pub fn points(latitudes: usize, longitudes: usize) -> impl Iterator<Item = (f64, f64)> {
        let latitude = move |i: usize| PI * (i as f64 + 0.5) / latitudes as f64 - FRAC_PI_2;
        let longitude = move |j: usize| 2.0 * PI * (j as f64 + 0.5) / longitudes as f64 - PI;
        (0..latitudes).flat_map(move |i| (0..longitudes).map(move |j| (latitude(i), longitude(j))))
    }

    /// Lines of a height as (longitude, latitude) in degrees, without jumps.
    fn contours(&self, height: f64) -> Vec<Contour> {
        let (rows, columns) = (self.latitudes, self.longitudes);
        if rows < 2 {
            return vec![];
        }
        // The first meridian once more behind the last one: the sphere closes.
        let around = |row: &[f32]| row.iter().chain(row.first()).copied().collect::<Vec<f32>>();
        let values = self.values.chunks(columns).flat_map(around).collect();
        let field = Field { columns: columns + 1, rows, values };
        let half = [180.0 / columns as f64, 90.0 / rows as f64];
        let place = |(u, v): (f64, f64)| (360.0 * u - 180.0 + half[0], (180.0 - 2.0 * half[1]) * v - 90.0 + half[1]);
        field.contours(height).into_iter().map(|line| line.into_iter().map(place).collect()).collect()
    }

    /// Between the four numbers around a place; around the back, and not beyond the poles.
    fn at(&self, latitude: f64, longitude: f64) -> f64 {
        let (rows, columns) = (self.latitudes, self.longitudes);
        let u = ((latitude / PI + 0.5) * rows as f64 - 0.5).clamp(0.0, rows as f64 - 1.0);
        let v = ((longitude / PI + 1.0) * 0.5 * columns as f64 - 0.5).rem_euclid(columns as f64);
        let (i, j) = (u.floor() as usize, (v.floor() as usize).min(columns - 1));
        let (s, t) = (u - i as f64, v - j as f64);
        let value = |i: usize, j: usize| self.values[i.min(rows - 1) * columns + j % columns] as f64;
        (1.0 - s) * ((1.0 - t) * value(i, j) + t * value(i, j + 1))
            + s * ((1.0 - t) * value(i + 1, j) + t * value(i + 1, j + 1))
    }
}

/// A sheet: where places of the sphere lie on the page.
struct Sheet {
    area: Area,
    centre: f64,
}

impl Sheet {
    /// A place from latitude and longitude from the middle, in degrees.
    fn at(&self, latitude: f64, east: f64) -> (f64, f64) {
        let (x, y) = project(latitude.to_radians(), east.to_radians());
        (self.area.centre().0 + 0.25 * self.area.width * x, self.area.centre().1 - 0.5 * self.area.height * y)
    }

    /// Degrees east of the middle, in [−180, 180).
    fn east(&self, longitude: f64) -> f64 {
        (longitude - self.centre + 180.0).rem_euclid(360.0) - 180.0
    }

    /// The part from south to north of a meridian.
    fn meridian(&self, east: f64) -> Vec<(f64, f64)> {
        (-45..=45).map(|i| self.at(2.0 * i as f64, east)).collect()
    }

    /// A line of (longitude, latitude) without jumps, in pieces where it leaves the map on one side to come back on the
    /// other.
    fn pieces(&self, line: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
        let Some(first) = line.first() else { return vec![] };
        let mut from = self.east(first.0);
        let mut pieces = vec![];
        let mut piece = vec![self.at(first.1, from)];
        for w in line.windows(2) {
            let mut to = from + w[1].0 - w[0].0;
            if to.abs() > 180.0 {
                let edge = 180.0 * to.signum();
                let latitude = w[0].1 + (w[1].1 - w[0].1) * (edge - from) / (to - from);
                piece.push(self.at(latitude, edge));
                pieces.push(std::mem::replace(&mut piece, vec![self.at(latitude, -edge)]));
                to -= 2.0 * edge;
            }
            piece.push(self.at(w[1].1, to));
            from = to;
        }
        pieces.push(piece);
        pieces.retain(|p| p.len() > 1);
        pieces
    }
}

const TOP: f64 = 30.0;

impl Maps {
    /// Maps with one scale of colours, on no particular sphere.
    pub fn new(maps: Vec<Map>, shades: Shades) -> Self {
        Maps { maps, shades, earth: false, centre: 0.0 }
    }

    fn margin(&self) -> f64 {
        if self.maps.len() == 1 { 34.0 } else { 12.0 }
    }

    fn top(&self) -> f64 {
        if self.maps.iter().all(|m| m.title.is_empty()) { 10.0 } else { TOP }
    }

    fn map_width(&self, width: f64) -> f64 {
        width / self.maps.len() as f64 - 2.0 * self.margin()
    }

    pub(super) fn height(&self, width: f64) -> f64 {
        self.top() + 0.5 * self.map_width(width) + 16.0 + self.shades.above() + BAR
    }

    pub(super) fn draw(&self, scene: &mut Scene, area: Area) {
        let bounds = self.shades.bounds(self.maps.iter().flat_map(|m| m.values.iter().map(|v| *v as f64)));
        let width = self.map_width(area.width);
        for (map, part) in self.maps.iter().zip(area.columns(self.maps.len())) {
            let place = Area { x: part.x + self.margin(), y: part.y + self.top(), width, height: 0.5 * width };
            scene.title((place.centre().0, part.y + 20.0), part.width - 8.0, &map.title);
            let sheet = Sheet { area: place, centre: self.centre };
            scene.picture(shades::picture(place, bounds, |v| {
                let y = 1.0 - 2.0 * v;
                let parallel = Parallel::at(y);
                move |u| {
                    let x = 4.0 * u - 2.0;
                    let outside = 0.25 * x * x + y * y > 1.0;
                    let longitude = parallel.longitude(x) + self.centre.to_radians();
                    if outside { f64::NAN } else { map.at(parallel.latitude, longitude) }
                }
            }));
            graticule(scene, &sheet);
            if self.earth {
                for piece in coastline::lines().iter().flat_map(|line| sheet.pieces(line)) {
                    scene.line(piece, white(100, 0.9));
                }
            }
            for line in self.shades.lines().flat_map(|height| map.contours(height)) {
                sheet.pieces(&line).into_iter().for_each(|piece| scene.line(piece, CONTOUR));
            }
            let side = 0.7 * width;
            scene.dots(map.points.dots(side, |x, y| Some(sheet.at(y, sheet.east(x)))));
            self.labels(scene, &sheet);
            let edge = sheet.meridian(-180.0).into_iter().chain(sheet.meridian(180.0).into_iter().rev());
            scene.region(edge.collect(), None, Some(Stroke::new(Paint::Ink, 1.2)));
        }
        let below = area.inside(0.0, self.top() + 0.5 * width + 16.0, 0.0, 0.0);
        self.shades.draw(scene, below, bounds);
    }

    /// Latitudes beside the map where they find room; longitudes along the equator.
    fn labels(&self, scene: &mut Scene, sheet: &Sheet) {
        let size = SMALL - 1.0;
        for latitude in [-60.0, -30.0, 0.0, 30.0, 60.0] {
            let text = self.name(latitude, ["N", "S"]);
            let ((left, y), (right, _)) = (sheet.at(latitude, -180.0), sheet.at(latitude, 180.0));
            // Away from the edge, which is slanted there.
            let down = y + 0.36 * size - 0.1 * latitude;
            // North and south alike.
            let widest = text_width(&text, size).max(text_width(&self.name(-latitude, ["N", "S"]), size));
            if left - sheet.area.x + self.margin() > widest + 8.0 {
                scene.text((left - 6.0, down), &text, size, Anchor::End);
                scene.text((right + 6.0, down), &text, size, Anchor::Start);
            }
        }
        if sheet.area.width < 500.0 {
            return;
        }
        for east in [-120.0, -60.0, 0.0, 60.0, 120.0] {
            let longitude = (east + self.centre + 180.0).rem_euclid(360.0) - 180.0;
            let (x, y) = sheet.at(0.0, east);
            scene.inlay((x, y + 0.36 * size), &self.name(longitude, ["E", "W"]), size);
        }
    }

    /// 60°N, 60°S on the Earth; 60°, −60° elsewhere.
    fn name(&self, degrees: f64, [positive, negative]: [&str; 2]) -> String {
        let number = format!("{}°", degrees.abs());
        match degrees {
            0.0 | -180.0 => number,
            d if self.earth => format!("{number}{}", if d > 0.0 { positive } else { negative }),
            d => format!("{}{number}", if d < 0.0 { "−" } else { "" }),
        }
    }
}

/// Parallels each 30°, meridians each 60°.
fn graticule(scene: &mut Scene, sheet: &Sheet) {
    for latitude in [-60.0, -30.0, 0.0, 30.0, 60.0] {
        scene.line(vec![sheet.at(latitude, -180.0), sheet.at(latitude, 180.0)], white(51, 1.0));
    }
    for east in [-120.0, -60.0, 0.0, 60.0, 120.0] {
        scene.line(sheet.meridian(east), white(51, 1.0));
    }
}
