//! Axes: directions without a front, of which x and −x are the same.

use super::names::are_lines;
use super::units::{ENOUGH, SLACK};
use crate::table::columns::Table;
use crate::table::dataset::Request;
use crate::table::layout::{Units, spaces_of};
use minvel::manifold::Space;
use minvel::{Choice, Error};

/// Directions read as axes, if the request says so: Sⁿ becomes RPⁿ, each angle of Tⁿ one of RP¹; with a layout for each.
pub fn axial(
    request: &Request,
    manifold: &str,
    spaces: &[Space],
) -> Result<Option<(String, Vec<Space>, Request)>, Error> {
    if request.axial != Some(true) {
        return Ok(None);
    }
    let (mut names, mut layouts) = (vec![], vec![]);
    for (k, space) in spaces.iter().enumerate() {
        let (name, count) = match *space {
            Space::Sphere(n) | Space::Projective(n) => (format!("projective:{n}"), 1),
            Space::Torus(n) => ("projective:1".to_string(), n),
            Space::Euclidean(n) => (format!("euclidean:{n}"), 1),
            Space::Hyperbolic(n) => (format!("hyperbolic:{n}"), 1),
            Space::So3 => ("so3".to_string(), 1),
        };
        names.extend(vec![name; count]);
        layouts.extend(request.layout.as_ref().and_then(|l| l.get(k)).into_iter().flat_map(|l| vec![*l; count]));
    }
    if !spaces.iter().any(|space| matches!(space, Space::Sphere(_) | Space::Projective(_) | Space::Torus(_))) {
        return Err(Error::config(format!("{manifold} has no directions that could be axes: omit --axial")));
    }
    let name = if let [name] = &names[..] { name.clone() } else { format!("product({})", names.join(",")) };
    let spaces = spaces_of(&name).map_err(Error::config)?;
    let layout = request.layout.as_ref().map(|_| layouts);
    Ok(Some((name, spaces, Request { layout, ..request.clone() })))
}

/// Asks whether directions are those of axes: lines of trend and plunge, and angles that fill just half a turn.
pub fn ask(table: &Table, spaces: &[Space], chosen: &[usize], units: Option<Units>) -> Result<(), Error> {
    let question = |what: String, axes: &str, directions: &str| {
        let choices = vec![Choice::new("axial", "", axes), Choice::new("axial=false", "", directions)];
        Err(Error::ambiguous(&table.path, format!("are these axes or directions? {what}"), choices))
    };
    match (spaces, chosen, units) {
        ([Space::Sphere(2)], _, _) if are_lines(table, chosen) => {
            let what = "trend and plunge may describe lines or vectors".to_string();
            question(what, "lines, whose two ends are the same", "vectors, which point downwards or upwards")
        }
        (&[Space::Sphere(1) | Space::Torus(1)], &[column], Some(units @ (Units::Degrees | Units::Radians))) => {
            let (low, high) = table.columns[column].range();
            let half = 0.5 * units.turn();
            // within 5 % of both ends; a few rows do not say
            let fills = |from: f64| {
                let inside = low >= from && high <= from + half * SLACK;
                inside && low < from + 0.05 * half && high > from + 0.95 * half && table.rows() >= ENOUGH
            };
            if !(fills(0.0) || fills(-0.5 * half)) {
                return Ok(());
            }
            let what = format!("{} covers only half a turn, from {low} to {high} {units}", table.label(column));
            question(what, "axes: half a turn further is the same axis", "directions, which happen to lie in one half")
        }
        _ => Ok(()),
    }
}
