//! Coordinates: which columns of a table are a point of which manifold, and in which form.

mod angles;
mod cells;

use super::columns::{Column, Table};
use super::guess::{is_bearing, is_geographic};
use super::layout::{BAD_LATITUDE, BAD_LONGITUDE, Layout, Units, spaces_of, wrap};
pub(super) use cells::check_cells;
use minvel::manifold::{Manifold, Space};
use minvel::{Error, manifold};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// How rows of a table are points of a manifold: all that `score` needs to read other files, and `sample` to write some.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coordinates {
    /// The manifold's name.
    pub manifold: String,
    /// One layout for each factor of the manifold, in order.
    pub layouts: Vec<Layout>,
    /// The unit of angles; `None` if there are none, or all have periods of their own.
    pub units: Option<Units>,
    /// For each column the number after which its angles repeat, where it is not that of the unit; empty if it always is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub periods: Vec<Option<f64>>,
    /// Names of the columns, or their numbers from 1 where they have no name, in the order of the layouts.
    pub columns: Vec<String>,
    /// For each column whether its angles run from 0 to a full turn (of axes: half a turn) rather than from minus to plus
    /// half of that.
    pub full_turn: Vec<bool>,
}

/// Points read from a table.
pub(super) struct Points {
    /// Row-major.
    pub points: Vec<f64>,
    /// How far rows were from the manifold before they were put on it, at most.
    pub off: f64,
}

/// A part of a row: a space, its layout, its columns and its coordinates.
struct Part {
    space: Space,
    layout: Layout,
    cells: std::ops::Range<usize>,
    point: std::ops::Range<usize>,
}

impl Part {
    /// Whether a column is the latitude.
    fn is_latitude(&self, column: usize) -> bool {
        match self.layout {
            Layout::LatLon => column == self.cells.start,
            Layout::LonLat => column == self.cells.start + 1,
            _ => false,
        }
    }
}

/// A factor of a manifold, and the columns it is read from.
pub(crate) struct Factor<'a> {
    pub space: Space,
    pub layout: Layout,
    /// Their names, or their numbers where they have none.
    pub columns: &'a [String],
}

impl Factor<'_> {
    /// Whether it is a place on Earth: latitude and longitude that are not called otherwise, as azimuth and dip are.
    pub fn is_place(&self) -> bool {
        let geographic = matches!(self.layout, Layout::LatLon | Layout::LonLat);
        geographic
            && self.space == Space::Sphere(2)
            && self.columns.iter().all(|name| is_numbered(name) || is_geographic(name))
    }

    /// Whether it is a direction of the compass: one angle that is called so.
    pub fn is_bearing(&self) -> bool {
        self.layout == Layout::Angles && matches!(self.columns, [name] if is_bearing(name))
    }
}

/// Whether a column is known by its number, as it has no name.
pub(crate) fn is_numbered(name: &str) -> bool {
    name.parse::<f64>().is_ok()
}

impl Coordinates {
    /// The manifold.
    pub fn manifold(&self) -> Result<Arc<dyn Manifold>, Error> {
        manifold::parse(&self.manifold).map_err(Error::config)
    }

    /// Whether x and −x are the same point, in a factor at least.
    pub fn has_axes(&self) -> bool {
        let spaces = spaces_of(&self.manifold).unwrap_or_default();
        spaces.iter().any(|space| matches!(space, Space::Projective(_)))
    }

    /// Checks that names, layouts and columns fit together.
    fn parts(&self) -> Result<Vec<Part>, Error> {
        let spaces = spaces_of(&self.manifold).map_err(Error::config)?;
        let (mut parts, mut cell, mut number) = (vec![], 0, 0);
        if spaces.len() != self.layouts.len() {
            let what = format!(
                "{} has {} factors, but {} layouts were given: give one for each, as in latlon,angles",
                self.manifold,
                spaces.len(),
                self.layouts.len()
            );
            return Err(Error::config(what));
        }
        for (space, layout) in spaces.into_iter().zip(&self.layouts) {
            let width = layout
                .width(space)
                .ok_or_else(|| Error::config(format!("{layout} is not a layout of {}", self.manifold)))?;
            let (cells, point) = (cell..cell + width, number..number + space.ambient());
            (cell, number) = (cells.end, point.end);
            parts.push(Part { space, layout: *layout, cells, point });
        }
        if cell != self.columns.len() || cell != self.full_turn.len() {
            let what = format!("{} takes {cell} columns per point, not {}", self.manifold, self.columns.len());
            return Err(Error::config(what));
        }
        if !self.periods.is_empty() && self.periods.len() != cell {
            return Err(Error::config(format!("{} periods are given for {cell} columns", self.periods.len())));
        }
        let angular = |p: &Part| if p.layout.is_angular() { p.cells.clone() } else { 0..0 };
        if parts.iter().flat_map(angular).any(|column| self.turn(column).is_none()) {
            return Err(Error::config("the unit of angles is not given"));
        }
        Ok(parts)
    }

    /// Factor by factor.
    pub(crate) fn factors(&self) -> Result<Vec<Factor<'_>>, Error> {
        let factor = |p: Part| Factor { space: p.space, layout: p.layout, columns: &self.columns[p.cells] };
        Ok(self.parts()?.into_iter().map(factor).collect())
    }

    /// The points of a table of the same form, by the names (or numbers) of the columns; no row may be bad.
    pub fn points(&self, table: &Table) -> Result<Vec<f64>, Error> {
        Ok(self.points_of(table, &self.find_in(table)?, None)?.points)
    }

    /// Which columns of a table they are: by name or number; a model of a file without names also finds the names that
    /// samples of it have, and takes all columns of a file that has just so many.
    pub(super) fn find_in(&self, table: &Table) -> Result<Vec<usize>, Error> {
        let find = |names: &[String]| names.iter().map(|name| table.find(name)).collect::<Result<Vec<usize>, Error>>();
        if !self.columns.iter().all(|name| is_numbered(name)) {
            return find(&self.columns);
        }
        let written = find(&self.names(&self.parts()?));
        if written.is_err() && table.columns.len() == self.columns.len() {
            return Ok((0..table.columns.len()).collect());
        }
        written.or_else(|_| find(&self.columns))
    }

    /// The points of chosen columns, in some rows if these are given.
    pub(super) fn points_of(&self, table: &Table, chosen: &[usize], rows: Option<&[usize]>) -> Result<Points, Error> {
        let (parts, manifold) = (self.parts()?, self.manifold()?);
        check_cells(table, chosen, rows)?;
        let columns: Vec<&Column> = chosen.iter().map(|&c| &table.columns[c]).collect();
        let count = rows.map_or(table.rows(), <[usize]>::len);
        let mut points = Vec::with_capacity(count * manifold.ambient());
        let (mut cells, mut angles, mut off) = (vec![0.0; chosen.len()], vec![], 0f64);
        for row in (0..count).map(|k| rows.map_or(k, |rows| rows[k])) {
            cells.iter_mut().zip(&columns).for_each(|(cell, column)| *cell = column.values[row]);
            let start = points.len();
            for part in &parts {
                let given = &cells[part.cells.clone()];
                let numbers = if part.layout.is_angular() {
                    angles.clear();
                    angles.extend(part.cells.clone().zip(given).map(|(k, a)| self.to_radians(k, *a)));
                    angles.as_slice()
                } else {
                    given
                };
                let put = part.layout.to_point(part.space, numbers, &mut points);
                off = off.max(put.map_err(|why| self.refuse(table, row, part, chosen, &why))?);
            }
            manifold
                .check(&points[start..])
                .map_err(|why| Error::content(&table.path, format!("{}: {why}", table.place(row))))?;
        }
        Ok(Points { points, off })
    }

    /// A row that is not a point: where it stands, what is wrong, what to do.
    fn refuse(&self, table: &Table, row: usize, part: &Part, chosen: &[usize], why: &str) -> Error {
        let place = table.place(row);
        let latitude = usize::from(part.layout == Layout::LonLat);
        let cell = |k: usize| {
            let column = chosen[part.cells.start + k];
            (table.label(column), table.columns[column].text(row))
        };
        let degrees = self.units == Some(Units::Degrees);
        let other = if part.layout == Layout::LatLon { Layout::LonLat } else { Layout::LatLon };
        let what = match why {
            BAD_LATITUDE => {
                let ((label, value), limit) = (cell(latitude), if degrees { "90 degrees" } else { "π/2 radians" });
                format!(
                    "{place}, {label}: the latitude {value} is beyond ±{limit}: if latitude and longitude are \
                     swapped, give the layout {other}; otherwise choose the columns or correct the row"
                )
            }
            BAD_LONGITUDE => {
                let ((label, value), limit) = (cell(1 - latitude), if degrees { "360 degrees" } else { "2π radians" });
                format!(
                    "{place}, {label}: the longitude {value} is beyond ±{limit}: choose the columns or correct the row"
                )
            }
            why => format!("{place}: {why}"),
        };
        Error::content(&table.path, what)
    }

    /// A table's columns for points: the inverse of [`Coordinates::points`].
    pub fn table(&self, points: &[f64]) -> Result<Vec<Column>, Error> {
        let parts = self.parts()?;
        let ambient = parts.last().map_or(1, |p| p.point.end);
        assert!(points.len().is_multiple_of(ambient), "{} numbers are no rows of {ambient}", points.len());
        let mut columns: Vec<Vec<f64>> = vec![Vec::with_capacity(points.len() / ambient); self.columns.len()];
        for point in points.chunks_exact(ambient) {
            for part in &parts {
                let cells = part.layout.to_cells(part.space, &point[part.point.clone()]);
                for (k, cell) in part.cells.clone().zip(cells) {
                    columns[k].push(self.cell(part, k, cell));
                }
            }
        }
        Ok(self.names(&parts).into_iter().zip(columns).map(|(name, values)| Column::numbers(name, values)).collect())
    }

    /// A number as the file would have it: angles in its unit and range.
    fn cell(&self, part: &Part, column: usize, cell: f64) -> f64 {
        let Some(turn) = self.turn(column).filter(|_| part.layout.is_angular()) else { return cell };
        if part.is_latitude(column) {
            return self.from_radians(column, cell);
        }
        let (turn, cell) = match part.space {
            Space::Projective(1) => (0.5 * turn, 0.5 * wrap(2.0 * cell)),
            _ => (turn, wrap(cell)),
        };
        let angle = self.from_radians(column, cell);
        // an angle just below 0 may round to the full turn, which is 0
        match self.full_turn[column] && angle < 0.0 {
            true => Some(angle + turn).filter(|a| *a < turn).unwrap_or(0.0),
            false => angle,
        }
    }

    /// Names of the columns; of their layout where they have none.
    fn names(&self, parts: &[Part]) -> Vec<String> {
        if !self.columns.iter().all(|name| is_numbered(name)) {
            return self.columns.clone();
        }
        let own = |p: &Part| p.layout.names(p.cells.len());
        match parts {
            [part] => own(part),
            _ => parts
                .iter()
                .enumerate()
                .flat_map(|(k, p)| own(p).into_iter().map(move |n| format!("{n}_{}", k + 1)))
                .collect(),
        }
    }
}

impl fmt::Display for Coordinates {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let layouts: Vec<String> = self.layouts.iter().map(Layout::to_string).collect();
        let numbered = self.columns.iter().all(|name| is_numbered(name));
        let columns = if numbered { "columns " } else { "" };
        write!(f, "{} from {columns}{} as {}", self.manifold, self.columns.join(", "), layouts.join(","))?;
        self.units.map_or(Ok(()), |units| write!(f, " in {units}"))?;
        let periods: Vec<f64> = self.periods.iter().copied().flatten().collect();
        match &periods[..] {
            [] => Ok(()),
            [first, rest @ ..] if rest.iter().all(|p| p == first) => write!(f, " with period {first}"),
            all => {
                let all: Vec<String> = all.iter().map(f64::to_string).collect();
                write!(f, " with periods {}", all.join(", "))
            }
        }
    }
}
