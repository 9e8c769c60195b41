//! Guessing what a file does not say: manifold, columns, layout and units, wherever a single reading fits.
//!
//! **Conventions.** Names decide first, then how many number columns there are, then ranges. Angles beyond ±2π that are no
//! hours of a day are degrees; angles within ±2π that spread over more than 5 rad and are not all whole numbers are radians;
//! anything else is a question ([`Error::Ambiguous`]).
//! **Checked by** tests/lab/data_points.rs, tests/lab/data_units.rs.

mod axes;
mod layouts;
mod names;
mod units;

use super::columns::Table;
use super::coordinates::{Coordinates, check_cells};
use super::dataset::Request;
use super::layout::{LENGTH_TOLERANCE, Layout, layouts_of, spaces_of};
use super::points::Missing;
use super::text::shorten;
use layouts::layout;
use minvel::manifold::Space;
use minvel::{Choice, Error};
use names::{angle_columns, are_lines, by_names, list};
pub(super) use names::{is_bearing, is_geographic};
use std::ops::Range;
use units::Angles;
pub(super) use units::{ENOUGH, SLACK};

/// A finished guess.
pub(super) struct Guess {
    pub coordinates: Coordinates,
    pub chosen: Vec<usize>,
    pub sentences: Vec<String>,
}

/// The columns that [`guess`] may look into, by the names of a table and which of its columns are numeric.
pub(super) fn candidates(table: &Table, numeric: &[usize], request: &Request) -> Result<Vec<usize>, Error> {
    if let Some(names) = &request.columns {
        return names.iter().map(|name| table.find(name)).collect();
    }
    let chosen = |spaces: &[Space]| choose(table, request, numeric, spaces, &mut vec![]);
    if let Some(name) = &request.manifold {
        let name = minvel::manifold::parse(name).map_err(Error::config)?.to_string();
        return Ok(chosen(&spaces_of(&name).map_err(Error::config)?));
    }
    let latlon = by_names(table, numeric, Space::Sphere(2)).filter(|(_, layout)| layout.is_angular());
    if latlon.is_some() {
        return Ok(chosen(&[Space::Sphere(2)]));
    }
    // vectors, quaternions and angles, whichever it turns out to be
    let angles = angle_columns(table, numeric);
    let named = [Space::Sphere(2), Space::So3].into_iter().filter_map(|space| {
        let (columns, _) = by_names(table, numeric, space)?;
        Some([columns, chosen(&[space])].concat())
    });
    let mut all: Vec<usize> = named.flatten().collect();
    if !angles.is_empty() {
        all.extend(chosen(&[Space::Torus(angles.len())]));
    }
    if numeric.len() == 3 {
        all.extend(numeric);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Everything about a table that a request leaves open, given which of its columns are numeric.
pub(super) fn guess(table: &Table, numeric: &[usize], request: &Request) -> Result<Guess, Error> {
    let mut sentences = vec![];
    if table.decimal == ',' {
        sentences.push("decimal comma: no number has a decimal point".to_string());
    }
    let asked: Option<Vec<usize>> = match &request.columns {
        Some(names) => Some(names.iter().map(|name| table.find(name)).collect::<Result<_, _>>()?),
        None => None,
    };
    let among = asked.as_deref().unwrap_or(numeric);
    if among.is_empty() {
        return Err(no_numbers(table));
    }
    let manifold = match &request.manifold {
        Some(name) => minvel::manifold::parse(name).map_err(Error::config)?.to_string(),
        None => {
            let (manifold, why) = guess_manifold(table, among)?;
            sentences.push(format!("manifold {manifold}: {why}"));
            manifold
        }
    };
    let spaces = spaces_of(&manifold).map_err(Error::config)?;
    let chosen = match &asked {
        Some(asked) => asked.clone(),
        None => choose(table, request, numeric, &spaces, &mut sentences),
    };
    let axes = axes::axial(request, &manifold, &spaces)?;
    let (manifold, spaces, request) = match &axes {
        Some((manifold, spaces, request)) => (manifold.clone(), spaces.clone(), request),
        None => (manifold, spaces, request),
    };
    if let Some((_, twice)) = chosen.iter().enumerate().find(|(i, c)| chosen[..*i].contains(c)) {
        let what = format!("{} is chosen twice: choose each column once", table.label(*twice));
        return Err(Error::content(&table.path, what));
    }
    let parts = parts(table, &manifold, &spaces, request, &chosen)?;
    // Rows that lack a number are looked over where they will be dropped.
    let whole = if request.missing == Missing::Skipped { table.complete(&chosen) } else { None };
    check_cells(table, &chosen, whole.as_deref())?;
    let mut angles = angles(table, &parts, &chosen);
    let periods = match angles.periods(request)? {
        None => vec![],
        Some(given) => {
            // the others alone have a unit
            let circular = std::mem::take(&mut angles.circular);
            let period = |c: &usize| circular.iter().position(|own| own == c).map(|k| given[k]);
            chosen.iter().map(period).collect()
        }
    };
    let units = match angles.places.is_empty() && angles.circular.is_empty() {
        true => None,
        false => Some(angles.units(request, &mut sentences)?),
    };
    let mut layouts = vec![];
    for (k, part) in parts.iter().enumerate() {
        let given = request.layout.as_ref().map(|l| l[k]);
        layouts.push(match given {
            Some(layout) => layout,
            None => layout(table, part, &chosen[part.cells.clone()], units, &mut sentences)?,
        });
    }
    if request.axial.is_none() && !request.trust {
        axes::ask(table, &spaces, &chosen, units)?;
    }
    // by number where a name would not find the column again
    let name = |&c: &usize| match table.columns[c].name.as_str() {
        name if !name.is_empty() && table.find(name).is_ok_and(|found| found == c) => name.to_string(),
        _ => (c + 1).to_string(),
    };
    let columns = chosen.iter().map(name).collect();
    let full_turn = vec![false; chosen.len()];
    let mut coordinates = Coordinates { manifold, layouts, units, periods, columns, full_turn };
    coordinates.see_ranges(table, &chosen)?;
    Ok(Guess { coordinates, chosen, sentences })
}

/// A table without numbers: what stands there instead, in its second row, as the first may be names.
fn no_numbers(table: &Table) -> Error {
    let row = 1.min(table.rows() - 1);
    let cell = shorten(&table.columns[0].text(row));
    let what = format!(
        "no column holds numbers: {}, {} is `{cell}`: write plain numbers, such as -12.5 for 12°30′ S",
        table.place(row),
        table.label(0)
    );
    Error::content(&table.path, what)
}

/// Columns by their names, else all of numbers.
fn choose(
    table: &Table,
    request: &Request,
    numeric: &[usize],
    spaces: &[Space],
    sentences: &mut Vec<String>,
) -> Vec<usize> {
    let wanted = |layout: Layout| request.layout.as_ref().is_none_or(|given| given.as_slice() == [layout]);
    let named = match spaces {
        [space] => by_names(table, numeric, *space).filter(|(_, layout)| wanted(*layout)),
        _ => None,
    };
    let (chosen, why) = match named {
        Some((columns, _)) => (columns, "by their names"),
        None => (numeric.to_vec(), "the only numeric columns"),
    };
    if chosen.len() < table.columns.len() {
        sentences.push(format!("columns {}: {why}", list(table, &chosen)));
    }
    chosen
}

/// A manifold that names or lengths tell.
fn guess_manifold(table: &Table, among: &[usize]) -> Result<(String, String), Error> {
    let latlon = by_names(table, among, Space::Sphere(2)).filter(|(_, layout)| layout.is_angular());
    if let Some((columns, _)) = latlon {
        let what = if are_lines(table, &columns) { "trend and plunge" } else { "latitude and longitude" };
        return Ok(("sphere:2".into(), format!("columns {} are {what}", list(table, &columns))));
    }
    let unit = |columns: &[usize]| {
        let length = |row: usize| columns.iter().map(|&c| table.columns[c].values[row].powi(2)).sum::<f64>().sqrt();
        // rows without a number are refused later, by their place
        let mut lengths = (0..table.rows()).map(length).filter(|length| !length.is_nan()).peekable();
        lengths.peek().is_some() && lengths.all(|length| (length - 1.0).abs() <= LENGTH_TOLERANCE)
    };
    if let Some((columns, _)) = by_names(table, among, Space::So3).filter(|(c, _)| unit(c)) {
        return Ok(("so3".into(), format!("columns {} are unit quaternions", list(table, &columns))));
    }
    let vectors =
        by_names(table, among, Space::Sphere(2)).map(|(c, _)| c).or((among.len() == 3).then(|| among.to_vec()));
    if let Some(columns) = vectors.filter(|c| unit(c)) {
        return Ok(("sphere:2".into(), format!("columns {} are vectors of length 1", list(table, &columns))));
    }
    let angles = angle_columns(table, among);
    if !angles.is_empty() {
        return Ok((format!("torus:{}", angles.len()), format!("columns {} are angles", list(table, &angles))));
    }
    let n = among.len();
    let special = match n {
        1 => None,
        2 => Some(("sphere:2", "places on Earth, directions")),
        3 => Some(("sphere:2", "unit vectors")),
        4 | 9 => Some(("so3", "rotations")),
        _ => Some(("product(euclidean:3,so3)", "or another product")),
    };
    let what = format!(
        "does not determine the manifold of its points: give the manifold, and the columns (--columns) unless all are \
         used; it has {}",
        table.describe_columns()
    );
    let special = special.map(|(name, meaning)| Choice::new("manifold", name, meaning));
    let plain = [(format!("torus:{n}"), "angles"), (format!("euclidean:{n}"), "plain numbers")];
    let plain = plain.map(|(name, meaning)| Choice::new("manifold", name, meaning));
    Err(Error::ambiguous(&table.path, what, special.into_iter().chain(plain).collect()))
}

/// The columns of angles.
fn angles<'a>(table: &'a Table, parts: &[Part], chosen: &[usize]) -> Angles<'a> {
    let (mut circular, mut places) = (vec![], vec![]);
    for part in parts.iter().filter(|p| p.angular()) {
        match (part.space, &chosen[part.cells.clone()]) {
            (Space::Sphere(2) | Space::Projective(2), &[a, b]) => places.push([a, b]),
            (_, columns) => circular.extend(columns),
        }
    }
    Angles { table, circular, places }
}

/// A factor and its columns.
struct Part {
    space: Space,
    cells: Range<usize>,
}

impl Part {
    fn layouts(&self) -> Vec<Layout> {
        layouts_of(self.space).into_iter().filter(|(_, width)| *width == self.cells.len()).map(|(l, _)| l).collect()
    }

    /// All layouts of one width agree in this.
    fn angular(&self) -> bool {
        self.layouts().first().is_some_and(|l| l.is_angular())
    }
}

/// Divides the columns among the spaces.
fn parts(
    table: &Table,
    manifold: &str,
    spaces: &[Space],
    request: &Request,
    chosen: &[usize],
) -> Result<Vec<Part>, Error> {
    let refuse = |what: String| Err(Error::content(&table.path, what));
    if let Some(layouts) = request.layout.as_ref().filter(|l| l.len() != spaces.len()) {
        let what = format!("{manifold} takes {} layouts, not {}: one for each factor", spaces.len(), layouts.len());
        return Err(Error::config(what));
    }
    let mut options: Vec<Vec<(Layout, usize)>> = spaces.iter().map(|s| layouts_of(*s)).collect();
    for (k, layout) in request.layout.iter().flatten().enumerate() {
        let known: Vec<String> = options[k].iter().map(|(l, _)| l.to_string()).collect();
        options[k].retain(|(l, _)| l == layout);
        if options[k].is_empty() {
            return Err(Error::config(format!(
                "{layout} is not a layout of {manifold}: choose {}",
                known.join(" or ")
            )));
        }
    }
    // all ways to give each factor one of its widths, as long as they are few
    let mut ways: Vec<Vec<usize>> = vec![vec![]];
    for option in &options {
        let mut widths: Vec<usize> = option.iter().map(|(_, w)| *w).collect();
        widths.dedup();
        ways = ways.iter().flat_map(|way| widths.iter().map(|w| [way.as_slice(), &[*w]].concat())).collect();
        ways.retain(|way| way.iter().sum::<usize>() <= chosen.len());
        if ways.len() > 10_000 {
            return Err(Error::config(format!("{manifold} has too many possible layouts: give them")));
        }
    }
    ways.retain(|way| way.iter().sum::<usize>() == chosen.len());
    match ways.as_slice() {
        [way] => {
            let mut end = 0;
            let cells = way.iter().map(|width| {
                end += width;
                end - width..end
            });
            Ok(spaces
                .iter()
                .zip(cells.collect::<Vec<_>>())
                .map(|(space, cells)| Part { space: *space, cells })
                .collect())
        }
        [] => {
            let takes: Vec<String> = options
                .iter()
                .map(|o| o.iter().map(|(l, w)| format!("{w} ({l})")).collect::<Vec<_>>().join(" or "))
                .collect();
            let (has, how) = match request.columns {
                Some(_) => {
                    (format!("{} columns were chosen ({})", chosen.len(), list(table, chosen)), "choose that many")
                }
                None => (
                    format!("the file has {} numeric columns ({})", chosen.len(), list(table, chosen)),
                    "choose the columns",
                ),
            };
            refuse(format!(
                "a point of {manifold} takes {} columns, but {has}: {how} by name or number",
                takes.join(" and ")
            ))
        }
        _ => refuse(format!("{} columns fit {manifold} in several ways: give the layout of each factor", chosen.len())),
    }
}
