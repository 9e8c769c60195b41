//! The layout of a factor, where its number of columns leaves several.

use super::Part;
use super::names::{by_names, list};
use crate::table::columns::Table;
use crate::table::layout::{Layout, Units};
use minvel::manifold::Space;
use minvel::{Choice, Error};
use std::f64::consts::FRAC_PI_2;

/// The layout of a factor, of those with as many columns.
pub fn layout(
    table: &Table,
    part: &Part,
    columns: &[usize],
    units: Option<Units>,
    sentences: &mut Vec<String>,
) -> Result<Layout, Error> {
    let layouts = part.layouts();
    if let [only] = layouts.as_slice() {
        return Ok(*only);
    }
    if let Some((_, layout)) = by_names(table, columns, part.space).filter(|(c, _)| c == columns) {
        sentences.push(format!("layout {layout}: by the names {}", list(table, columns)));
        return Ok(layout);
    }
    let refuse = |what: String| Err(Error::content(&table.path, what));
    if part.space == Space::So3 {
        let what = "four columns may be quaternions with the real part first or last: give the layout";
        let choice = |name: &str, which: &str| Choice::new("layout", name, format!("the real part is {which}"));
        let choices = vec![choice("quaternion-wxyz", "first"), choice("quaternion-xyzw", "last")];
        return Err(Error::ambiguous(&table.path, what, choices));
    }
    let units = units.unwrap_or(Units::Degrees);
    let (quarter, turn) = (units.from_radians(FRAC_PI_2), units.turn());
    let fits = |lat: usize, lon: usize| {
        let ((low, high), (west, east)) = (table.columns[lat].range(), table.columns[lon].range());
        low >= -quarter && high <= quarter && west >= -turn && east <= turn
    };
    let (first, second) = (columns[0], columns[1]);
    match (fits(first, second), fits(second, first)) {
        (true, false) => {
            sentences.push(format!(
                "layout latlon: {} goes beyond ±{quarter}, so the other one is the latitude",
                table.label(second)
            ));
            Ok(Layout::LatLon)
        }
        (false, true) => {
            sentences.push(format!(
                "layout lonlat: {} goes beyond ±{quarter}, so the other one is the latitude",
                table.label(first)
            ));
            Ok(Layout::LonLat)
        }
        (true, true) => {
            let (a, b) = (table.label(first), table.label(second));
            let what = format!(
                "either {a} or {b} may be the latitude, since all values are within ±{quarter}: give the layout \
                 latlon or lonlat"
            );
            let choices = vec![
                Choice::new("layout", "latlon", format!("{a} is the latitude")),
                Choice::new("layout", "lonlat", format!("{b} is the latitude")),
            ];
            Err(Error::ambiguous(&table.path, what, choices))
        }
        (false, false) => {
            let over = |c: usize| (0..table.rows()).find(|&r| table.columns[c].values[r].abs() > quarter).unwrap_or(0);
            let (a, b) = (over(first), over(second));
            refuse(format!(
                "neither column can be the latitude, which is within ±{quarter} {units}: {}, {} is {}; {}, {} is {}: \
                 choose the columns, or correct the rows",
                table.place(a),
                table.label(first),
                table.columns[first].text(a),
                table.place(b),
                table.label(second),
                table.columns[second].text(b)
            ))
        }
    }
}
