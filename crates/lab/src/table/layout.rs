//! Layouts: how the numbers of a row are a point, there and back.
//!
//! **Statement.** latlon: x = (cos φ cos λ, cos φ sin λ, sin φ) for latitude φ and longitude λ; a hyperboloid's X gives
//! x = X⃗/(1 + X₀); a rotation matrix gives its quaternion.
//! **Conventions.** Points as in [`minvel::manifold`]: unit vectors, angles in [−π, π), the Poincaré ball, quaternions
//! (i, j, k, real) with real part ≥ 0; of an axis ±x the end whose last number (then the one before, …) is positive.
//! **Error.** Lengths may differ from 1 by [`LENGTH_TOLERANCE`] (numbers rounded to three digits) and are then set to 1.
//! **Checked by** tests/lab/data_points.rs.

mod forms;

pub(super) use forms::{BAD_LATITUDE, BAD_LONGITUDE, wrap};
use forms::{from_latlon, from_matrix, from_sheet, latlon, matrix, normalised, one_end, rotation};
use minvel::manifold;
use minvel::manifold::Space;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;
use std::fmt;
use std::str::FromStr;

/// How far from 1 a length in a file may be.
pub const LENGTH_TOLERANCE: f64 = 1e-3;

/// In which unit angles are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Units {
    /// A turn is 360.
    Degrees,
    /// A turn is 2π.
    Radians,
    /// A turn is a day of 24.
    Hours,
}

impl Units {
    /// A full turn.
    pub fn turn(self) -> f64 {
        match self {
            Units::Degrees => 360.0,
            Units::Radians => TAU,
            Units::Hours => 24.0,
        }
    }

    /// An angle in radians.
    pub fn to_radians(self, angle: f64) -> f64 {
        match self {
            Units::Degrees => angle.to_radians(),
            Units::Radians => angle,
            Units::Hours => angle / 24.0 * TAU,
        }
    }

    /// An angle given in radians.
    #[allow(clippy::wrong_self_convention)] // the unit is not what is converted
    pub fn from_radians(self, angle: f64) -> f64 {
        match self {
            Units::Degrees => angle.to_degrees(),
            Units::Radians => angle,
            Units::Hours => angle / TAU * 24.0,
        }
    }
}

impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Units::Degrees => "degrees",
            Units::Radians => "radians",
            Units::Hours => "hours",
        })
    }
}

impl FromStr for Units {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name.trim() {
            "degrees" | "degree" | "deg" => Ok(Units::Degrees),
            "radians" | "radian" | "rad" => Ok(Units::Radians),
            "hours" | "hour" => Ok(Units::Hours),
            other => Err(format!("unknown unit of angles `{other}`; expected degrees, radians or hours")),
        }
    }
}

/// How the numbers of a row are a point of a manifold (of a factor of a product).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Latitude, longitude: `sphere:2`, `projective:2`.
    #[serde(rename = "latlon")]
    LatLon,
    /// Longitude, latitude (also trend, plunge): `sphere:2`, `projective:2`.
    #[serde(rename = "lonlat")]
    LonLat,
    /// Unit vectors: `sphere:n`, `projective:n`.
    Xyz,
    /// Angles: `torus:n`, and `sphere:1` and `projective:1` as one angle.
    Angles,
    /// Numbers as they are: `euclidean:n`.
    Vector,
    /// The Poincaré ball: `hyperbolic:n`.
    Ball,
    /// The hyperboloid (X₀, X⃗), X₀² = 1 + |X⃗|²: `hyperbolic:n`.
    Hyperboloid,
    /// Real part first: `so3`.
    QuaternionWxyz,
    /// Real part last: `so3`.
    QuaternionXyzw,
    /// Nine numbers, row by row: `so3`.
    RotationMatrix,
}

/// The list of layouts with their names.
const LIST: [(Layout, &str); 10] = [
    (Layout::LatLon, "latlon"),
    (Layout::LonLat, "lonlat"),
    (Layout::Xyz, "xyz"),
    (Layout::Angles, "angles"),
    (Layout::Vector, "vector"),
    (Layout::Ball, "ball"),
    (Layout::Hyperboloid, "hyperboloid"),
    (Layout::QuaternionWxyz, "quaternion-wxyz"),
    (Layout::QuaternionXyzw, "quaternion-xyzw"),
    (Layout::RotationMatrix, "rotation-matrix"),
];

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (_, name) = LIST.iter().find(|(layout, _)| layout == self).expect("every layout is in the list");
        f.write_str(name)
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        LIST.iter()
            .find(|(_, known)| *known == name.trim())
            .map(|(layout, _)| *layout)
            .ok_or_else(|| format!("unknown layout `{name}`; expected {}", LIST.map(|(_, known)| known).join(", ")))
    }
}

impl Layout {
    /// The layouts of the factors of a product, as in `latlon,angles`.
    pub fn parse_list(names: &str) -> Result<Vec<Layout>, String> {
        let names = names.trim();
        let inside = names.strip_prefix("product(").and_then(|n| n.strip_suffix(')')).unwrap_or(names);
        inside.split(',').map(str::parse).collect()
    }

    /// Whether its numbers are angles.
    pub fn is_angular(self) -> bool {
        matches!(self, Layout::LatLon | Layout::LonLat | Layout::Angles)
    }

    /// How many numbers a point of a space takes, if the layout is one of it.
    pub(super) fn width(self, space: Space) -> Option<usize> {
        match (self, space) {
            (Layout::LatLon | Layout::LonLat, Space::Sphere(2) | Space::Projective(2)) => Some(2),
            (Layout::Xyz, Space::Sphere(n) | Space::Projective(n)) => Some(n + 1),
            (Layout::Angles, Space::Sphere(1) | Space::Projective(1)) => Some(1),
            (Layout::Angles, Space::Torus(n)) | (Layout::Vector, Space::Euclidean(n)) => Some(n),
            (Layout::Ball, Space::Hyperbolic(n)) => Some(n),
            (Layout::Hyperboloid, Space::Hyperbolic(n)) => Some(n + 1),
            (Layout::QuaternionWxyz | Layout::QuaternionXyzw, Space::So3) => Some(4),
            (Layout::RotationMatrix, Space::So3) => Some(9),
            _ => None,
        }
    }

    /// Names for columns that have none.
    pub(super) fn names(self, width: usize) -> Vec<String> {
        let fixed: &[&str] = match (self, width) {
            (Layout::LatLon, _) => &["lat", "lon"],
            (Layout::LonLat, _) => &["lon", "lat"],
            (Layout::Xyz, 2) => &["x", "y"],
            (Layout::Xyz, 3) => &["x", "y", "z"],
            (Layout::Angles, 1) => &["angle"],
            (Layout::QuaternionWxyz, _) => &["qw", "qx", "qy", "qz"],
            (Layout::QuaternionXyzw, _) => &["qx", "qy", "qz", "qw"],
            (Layout::RotationMatrix, _) => &["r11", "r12", "r13", "r21", "r22", "r23", "r31", "r32", "r33"],
            _ => &[],
        };
        let letter = if self == Layout::Angles { "angle" } else { "x" };
        match fixed {
            [] => (1..=width).map(|k| format!("{letter}{k}")).collect(),
            fixed => fixed.iter().map(|name| name.to_string()).collect(),
        }
    }

    /// Appends the point with these numbers (angles in radians); says how far it was from the manifold, or that it is
    /// too far.
    pub(super) fn to_point(self, space: Space, cells: &[f64], out: &mut Vec<f64>) -> Result<f64, String> {
        let start = out.len();
        let off = match self {
            Layout::LatLon => from_latlon(cells[0], cells[1], out),
            Layout::LonLat => from_latlon(cells[1], cells[0], out),
            Layout::Xyz => normalised(cells, "the vector", out),
            Layout::Angles if matches!(space, Space::Sphere(1) | Space::Projective(1)) => {
                let (sin, cos) = wrap(cells[0]).sin_cos();
                out.extend([cos, sin]);
                Ok(0.0)
            }
            Layout::Angles => {
                out.extend(cells.iter().map(|a| wrap(*a)));
                Ok(0.0)
            }
            Layout::Vector | Layout::Ball => {
                out.extend(cells);
                Ok(0.0)
            }
            Layout::Hyperboloid => from_sheet(cells, out),
            Layout::QuaternionWxyz => rotation([cells[1], cells[2], cells[3], cells[0]], out),
            Layout::QuaternionXyzw => rotation([cells[0], cells[1], cells[2], cells[3]], out),
            Layout::RotationMatrix => from_matrix(cells, out),
        };
        if let Space::Projective(_) = space {
            one_end(&mut out[start..]);
        }
        off
    }

    /// The numbers of a point, angles in radians: the inverse of `to_point`.
    pub(super) fn to_cells(self, space: Space, x: &[f64]) -> Vec<f64> {
        let mut end = x.to_vec();
        if let Space::Projective(_) = space {
            one_end(&mut end);
        }
        let x = &end[..];
        match self {
            Layout::Angles if matches!(space, Space::Sphere(1) | Space::Projective(1)) => vec![x[1].atan2(x[0])],
            Layout::LatLon => latlon(x).to_vec(),
            Layout::LonLat => latlon(x).into_iter().rev().collect(),
            Layout::Xyz | Layout::Angles | Layout::Vector | Layout::Ball | Layout::QuaternionXyzw => x.to_vec(),
            Layout::Hyperboloid => {
                let r2: f64 = x.iter().map(|v| v * v).sum();
                [1.0 + r2].into_iter().chain(x.iter().map(|v| 2.0 * v)).map(|v| v / (1.0 - r2)).collect()
            }
            Layout::QuaternionWxyz => vec![x[3], x[0], x[1], x[2]],
            Layout::RotationMatrix => matrix(x).to_vec(),
        }
    }
}

/// The spaces that a manifold is a product of, products of products taken apart.
pub(super) fn spaces_of(manifold: &str) -> Result<Vec<Space>, String> {
    let manifold = manifold::parse(manifold)?;
    manifold.spaces().ok_or_else(|| format!("there is no layout for {manifold}: it cannot be read from files"))
}

/// The layouts of a space, each with the numbers it takes.
pub(super) fn layouts_of(space: Space) -> Vec<(Layout, usize)> {
    LIST.iter().filter_map(|(layout, _)| Some((*layout, layout.width(space)?))).collect()
}
