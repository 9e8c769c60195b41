//! The coastlines of the Earth, for maps of what happens on it.
//!
//! **Source.** Natural Earth, 1:110m land (naturalearth2018), public domain; rounded to a tenth of a degree.
//! **Statement.** A place is land if its meridian crosses coasts an odd number of times on the way to the north pole,
//! which is sea. **Error.** 0.05° of rounding, and islands under some 100 km are left out.
//! **Checked by** tests/lab/plot_maps.rs.

use std::sync::LazyLock;

/// Closed lines of (longitude, latitude) in degrees, the first point again at the end. Longitudes go on across ±180°, so
/// that neighbours are near each other: the line around the south pole ends 360° from its beginning.
static LINES: LazyLock<Vec<Vec<(f64, f64)>>> = LazyLock::new(|| read(include_str!("coastline.txt")));

fn read(text: &str) -> Vec<Vec<(f64, f64)>> {
    let line = |row: &str| {
        let numbers: Vec<i32> = row.split(' ').map(|n| n.parse().expect("a table of whole numbers")).collect();
        let add = |at: &mut (i32, i32), step: &[i32]| {
            *at = (at.0 + step[0], at.1 + step[1]);
            Some((f64::from(at.0) / 10.0, f64::from(at.1) / 10.0))
        };
        numbers.chunks_exact(2).scan((0, 0), add).collect()
    };
    text.lines().filter(|row| !row.starts_with('#')).map(line).collect()
}

/// The coastlines: closed lines of (longitude, latitude) in degrees, without jumps at ±180°.
pub fn lines() -> &'static [Vec<(f64, f64)>] {
    &LINES
}

/// Whether a place, in degrees, is on land.
pub fn is_land(latitude: f64, longitude: f64) -> bool {
    // Degrees east of the place, in [−180, 180): the same for a corner in both of its sides, to the last bit.
    let east = |x: f64| (x - longitude + 180.0).rem_euclid(360.0) - 180.0;
    let crosses = |w: &[(f64, f64)]| {
        let (from, to) = (east(w[0].0), east(w[1].0));
        let north = || w[0].1 + (w[1].1 - w[0].1) * from / (from - to) > latitude;
        // Not those sides that cross the meridian on the far side of the Earth.
        (from < 0.0) != (to < 0.0) && (to - from).abs() < 180.0 && north()
    };
    let crossings = |line: &Vec<(f64, f64)>| line.windows(2).filter(|w| crosses(w)).count();
    lines().iter().map(crossings).sum::<usize>() % 2 == 1
}
