//! Maps of the sphere in Mollweide's projection, with one scale of colours.
//!
//! **Statement.** x = (2√2/π) λ cos t, y = √2 sin t, 2t + sin 2t = π sin φ: equal areas stay equal.
//! **Source.** Snyder 1987, chapter 31. **Conventions.** λ ∈ [−π, π] to the right, φ ∈ [−π/2, π/2] upwards.
//! **Checked by** tests/plot.rs.

use super::axis::Axis;
use super::colour;
use super::scene::{Anchor, Area, Paint, Picture, SMALL, Scene, Stroke, TEXT};
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
}

/// Maps with one scale of colours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Maps {
    /// The maps, from left to right.
    pub maps: Vec<Map>,
    /// Quantity and unit of the colours.
    pub label: String,
}

impl Map {
    /// A map of a function of (latitude, longitude) in radians.
    pub fn of(title: &str, latitudes: usize, longitudes: usize, f: impl Fn(f64, f64) -> f64) -> Self {
        let points = Self::points(latitudes, longitudes);
        let values = points.map(|(latitude, longitude)| f(latitude, longitude) as f32).collect();
        Map { title: title.to_string(), latitudes, longitudes, values }
    }

    /// Latitudes and longitudes, in radians, of the numbers of a map, in order.
    pub fn points(latitudes: usize, longitudes: usize) -> impl Iterator<Item = (f64, f64)> {
        let latitude = move |i: usize| PI * (i as f64 + 0.5) / latitudes as f64 - FRAC_PI_2;
        let longitude = move |j: usize| 2.0 * PI * (j as f64 + 0.5) / longitudes as f64 - PI;
        (0..latitudes).flat_map(move |i| (0..longitudes).map(move |j| (latitude(i), longitude(j))))
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

/// From latitude and longitude to the plane: |x| ≤ 2, |y| ≤ 1.
pub(super) fn project(latitude: f64, longitude: f64) -> (f64, f64) {
    let mut t = latitude;
    if latitude.abs() < FRAC_PI_2 - 1e-9 {
        for _ in 0..50 {
            let step = (2.0 * t + (2.0 * t).sin() - PI * latitude.sin()) / (2.0 + 2.0 * (2.0 * t).cos());
            t -= step;
            if step.abs() < 1e-12 {
                break;
            }
        }
    }
    (2.0 / PI * longitude * t.cos(), t.sin())
}

/// Back again; the longitude may lie beyond ±π, outside the map.
fn unproject(x: f64, y: f64) -> (f64, f64) {
    let t = y.clamp(-1.0, 1.0).asin();
    let latitude = ((2.0 * t + (2.0 * t).sin()) / PI).clamp(-1.0, 1.0).asin();
    (latitude, PI * x / (2.0 * t.cos().max(1e-12)))
}

const TOP: f64 = 30.0;
const BAR: f64 = 62.0;
const MARGIN: f64 = 12.0;

impl Maps {
    fn map_width(&self, width: f64) -> f64 {
        width / self.maps.len() as f64 - 2.0 * MARGIN
    }

    pub(super) fn height(&self, width: f64) -> f64 {
        TOP + 0.5 * self.map_width(width) + 10.0 + BAR
    }

    pub(super) fn draw(&self, scene: &mut Scene, area: Area) {
        let all = || self.maps.iter().flat_map(|m| m.values.iter().map(|v| *v as f64)).filter(|v| v.is_finite());
        let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
        let share = |v: f64| if high > low { (v - low) / (high - low) } else { 0.5 };
        for (map, part) in self.maps.iter().zip(area.columns(self.maps.len())) {
            let width = self.map_width(area.width);
            let place = Area { x: part.x + MARGIN, y: part.y + TOP, width, height: 0.5 * width };
            scene.title((place.centre().0, part.y + 20.0), &map.title);
            scene.shapes.push(super::scene::Shape::Picture(picture(map, place, &share)));
            graticule(scene, place);
        }
        self.colour_bar(scene, area, low, high);
    }

    fn colour_bar(&self, scene: &mut Scene, area: Area, low: f64, high: f64) {
        let y = area.y + TOP + 0.5 * self.map_width(area.width) + 16.0;
        let bar = Area { x: area.x + 0.2 * area.width, y, width: 0.6 * area.width, height: 12.0 };
        let pixels = (0..256).map(|i| opaque(colour::sequential(i as f64 / 255.0))).collect();
        scene.shapes.push(super::scene::Shape::Picture(Picture { area: bar, columns: 256, rows: 1, pixels }));
        scene.rectangle(bar, None, Some(Stroke::new(Paint::Ink, 0.8)));
        let ruler = Axis::linear(&self.label).over(low, high).ruler(std::iter::empty(), (bar.x, bar.right()));
        for tick in ruler.ticks(7) {
            scene
                .line(vec![(tick.place, bar.bottom()), (tick.place, bar.bottom() + 4.0)], Stroke::new(Paint::Ink, 1.0));
            scene.text((tick.place, bar.bottom() + 17.0), tick.label.as_deref().unwrap_or(""), SMALL, Anchor::Middle);
        }
        scene.text((bar.centre().0, bar.bottom() + 34.0), &self.label, TEXT, Anchor::Middle);
    }
}

fn opaque([r, g, b]: colour::Rgb) -> [u8; 4] {
    [r, g, b, 255]
}

/// The map as pixels, two for each of the page; outside the ellipse they are clear.
fn picture(map: &Map, area: Area, share: &impl Fn(f64) -> f64) -> Picture {
    let (columns, rows) = ((2.0 * area.width) as usize, (2.0 * area.height) as usize);
    let pixel = |k: usize| {
        let x = 4.0 * ((k % columns) as f64 + 0.5) / columns as f64 - 2.0;
        let y = 1.0 - 2.0 * ((k / columns) as f64 + 0.5) / rows as f64;
        if 0.25 * x * x + y * y > 1.0 {
            return [255, 255, 255, 0];
        }
        let (latitude, longitude) = unproject(x, y);
        opaque(colour::sequential(share(map.at(latitude, longitude))))
    };
    Picture { area, columns, rows, pixels: (0..columns * rows).map(pixel).collect() }
}

/// Parallels each 30°, meridians each 60°, and the edge.
fn graticule(scene: &mut Scene, area: Area) {
    let degrees = |d: f64| d.to_radians();
    let place = |latitude: f64, longitude: f64| {
        let (x, y) = project(degrees(latitude), degrees(longitude));
        (area.centre().0 + 0.25 * area.width * x, area.centre().1 - 0.5 * area.height * y)
    };
    let white = || Stroke { paint: Paint::Veil([255; 3]), width: 1.0, dashes: vec![] };
    for latitude in [-60.0, -30.0, 0.0, 30.0, 60.0] {
        scene.line(vec![place(latitude, -180.0), place(latitude, 180.0)], white());
    }
    let meridian = |longitude: f64| (-45..=45).map(move |i| (2.0 * i as f64, longitude));
    for longitude in [-120.0, -60.0, 0.0, 60.0, 120.0] {
        scene.line(meridian(longitude).map(|(a, b)| place(a, b)).collect(), white());
    }
    let edge = meridian(-180.0).chain(meridian(180.0).collect::<Vec<_>>().into_iter().rev());
    scene.region(edge.map(|(a, b)| place(a, b)).collect(), None, Some(Stroke::new(Paint::Ink, 1.2)));
}
