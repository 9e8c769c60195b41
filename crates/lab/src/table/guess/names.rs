//! What the names of columns tell.

use crate::table::columns::Table;
use crate::table::layout::{Layout, Units};
use minvel::manifold::Space;

/// What columns of angles are called.
const ANGLES: [&str; 14] = [
    "angle",
    "angles",
    "theta",
    "phi",
    "psi",
    "omega",
    "chi",
    "direction",
    "bearing",
    "heading",
    "azimuth",
    "torsion",
    "dihedral",
    "phase",
];

/// What latitudes and longitudes are called; German `Breite` and `Länge` alone may as well be width and length.
const LATITUDES: [&str; 6] = ["lat", "latitude", "latitud", "latitudine", "breitengrad", "geographische_breite"];
const LONGITUDES: [&str; 8] =
    ["lon", "long", "lng", "longitude", "longitud", "longitudine", "längengrad", "geographische_länge"];

/// Whether a column is called a latitude or a longitude.
pub fn is_geographic(name: &str) -> bool {
    let stem = stem(name);
    LATITUDES.iter().chain(&LONGITUDES).any(|known| *known == stem)
}

/// Whether a column is called a direction of the compass.
pub fn is_bearing(name: &str) -> bool {
    stem(name).split('_').any(|word| ["azimuth", "bearing", "course", "heading", "wind"].contains(&word))
}

/// Whether columns are called trend and plunge.
pub fn are_lines(table: &Table, columns: &[usize]) -> bool {
    ["trend", "plunge"].iter().all(|name| columns.iter().any(|&c| stem(&table.columns[c].name) == *name))
}

/// A column's name without case and unit: `Latitude (deg)` is `latitude`.
fn stem(name: &str) -> String {
    let bare = name.to_lowercase();
    let bare = bare.split(['(', '[']).next().unwrap_or("");
    let words = bare.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty() && unit_word(w).is_none());
    words.collect::<Vec<_>>().join("_")
}

fn unit_word(word: &str) -> Option<Units> {
    match word {
        "deg" | "degree" | "degrees" | "°" => Some(Units::Degrees),
        "rad" | "radian" | "radians" => Some(Units::Radians),
        "hour" | "hours" => Some(Units::Hours),
        _ => None,
    }
}

pub fn unit_in(name: &str) -> Option<Units> {
    name.to_lowercase().split(|c: char| !c.is_alphanumeric() && c != '°').find_map(unit_word)
}

/// The only column of some names, among some columns.
fn named(table: &Table, among: &[usize], names: &[&str]) -> Option<usize> {
    let mut hits = among.iter().filter(|&&c| names.contains(&stem(&table.columns[c].name).as_str()));
    hits.next().copied().filter(|_| hits.next().is_none())
}

/// Columns of a factor by their names, in the order of the file, and their layout.
pub fn by_names(table: &Table, among: &[usize], space: Space) -> Option<(Vec<usize>, Layout)> {
    let one = |names: &[&str]| named(table, among, names);
    match space {
        Space::Sphere(2) | Space::Projective(2) => {
            let place = one(&LATITUDES).zip(one(&LONGITUDES));
            if let Some((lat, lon)) = place {
                let latitude_first = among.iter().position(|c| *c == lat) < among.iter().position(|c| *c == lon);
                return Some(match latitude_first {
                    true => (vec![lat, lon], Layout::LatLon),
                    false => (vec![lon, lat], Layout::LonLat),
                });
            }
            if let Some((trend, plunge)) = one(&["trend"]).zip(one(&["plunge"])) {
                let trend_first = among.iter().position(|c| *c == trend) < among.iter().position(|c| *c == plunge);
                return Some(if trend_first {
                    (vec![trend, plunge], Layout::LonLat)
                } else {
                    (vec![plunge, trend], Layout::LatLon)
                });
            }
            Some((vec![one(&["x"])?, one(&["y"])?, one(&["z"])?], Layout::Xyz))
        }
        Space::So3 => {
            let [w, x, y, z] = [["qw", "w"], ["qx", "x"], ["qy", "y"], ["qz", "z"]].map(|names| one(&names));
            let (w, vector) = (w?, vec![x?, y?, z?]);
            let real_first = among.iter().position(|c| *c == w) < among.iter().position(|c| *c == vector[0]);
            Some(match real_first {
                true => ([vec![w], vector].concat(), Layout::QuaternionWxyz),
                false => ([vector, vec![w]].concat(), Layout::QuaternionXyzw),
            })
        }
        Space::Torus(n) => {
            let angles = angle_columns(table, among);
            (angles.len() == n).then_some((angles, Layout::Angles))
        }
        Space::Sphere(1) | Space::Projective(1) => {
            let angles = angle_columns(table, among);
            (angles.len() == 1).then_some((angles, Layout::Angles))
        }
        _ => None,
    }
}

pub fn angle_columns(table: &Table, among: &[usize]) -> Vec<usize> {
    let is_angle = |c: &&usize| {
        ANGLES.contains(&stem(&table.columns[**c].name).trim_end_matches(|d: char| d.is_numeric() || d == '_'))
    };
    among.iter().filter(is_angle).copied().collect()
}

/// Names or numbers of columns, for sentences.
pub fn list(table: &Table, columns: &[usize]) -> String {
    let name = |c: &usize| match table.columns[*c].name.as_str() {
        "" => (c + 1).to_string(),
        name => name.to_string(),
    };
    columns.iter().map(name).collect::<Vec<_>>().join(", ")
}
