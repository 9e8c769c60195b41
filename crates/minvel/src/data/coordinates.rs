//! Coordinates: which columns of a table are a point of which manifold, and in which form.

use super::guess::{is_bearing, is_geographic};
use super::layout::{BAD_LATITUDE, BAD_LONGITUDE, Layout, Units, spaces_of, wrap};
use super::table::{Column, Table};
use super::text::shorten;
use crate::Error;
use crate::manifold::{self, Manifold, Space};
use serde::{Deserialize, Serialize};
use std::f64::consts::{PI, TAU};
use std::fmt;
use std::sync::Arc;

/// Rows from which the range of angles says something about their unit.
const TELLING: usize = 30;

/// How rows of a table are points of a manifold: all that `score` needs to read other files, and `sample` to write some.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coordinates {
    /// The manifold's name.
    pub manifold: String,
    /// One layout for each factor of the manifold, in order.
    pub layouts: Vec<Layout>,
    /// The unit of angles; `None` if there are none.
    pub units: Option<Units>,
    /// Names of the columns, or their numbers from 1 where they have no name, in the order of the layouts.
    pub columns: Vec<String>,
    /// For each column whether its angles run from 0 to a full turn rather than from minus to plus half a turn.
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
        geographic && self.columns.iter().all(|name| is_numbered(name) || is_geographic(name))
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

    /// Checks that names, layouts and columns fit together.
    fn parts(&self) -> Result<Vec<Part>, Error> {
        let spaces = spaces_of(&self.manifold).map_err(Error::config)?;
        let (mut parts, mut cell, mut number) = (vec![], 0, 0);
        if spaces.len() != self.layouts.len() {
            let what = format!(
                "{} has {} factors, but {} layouts are given: give one for each, as in latlon,angles",
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
            let what = format!("{} takes {cell} columns a point, not {}", self.manifold, self.columns.len());
            return Err(Error::config(what));
        }
        if self.units.is_none() && parts.iter().any(|p| p.layout.is_angular()) {
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
        let chosen: Vec<usize> = self.columns.iter().map(|name| table.find(name)).collect::<Result<_, _>>()?;
        Ok(self.points_of(table, &chosen)?.points)
    }

    /// The points of chosen columns.
    pub(super) fn points_of(&self, table: &Table, chosen: &[usize]) -> Result<Points, Error> {
        let (parts, manifold) = (self.parts()?, self.manifold()?);
        check_cells(table, chosen)?;
        let columns: Vec<&Column> = chosen.iter().map(|&c| &table.columns[c]).collect();
        let mut points = Vec::with_capacity(table.rows() * manifold.ambient());
        let (mut cells, mut off) = (vec![0.0; chosen.len()], 0f64);
        for row in 0..table.rows() {
            cells.iter_mut().zip(&columns).for_each(|(cell, column)| *cell = column.values[row]);
            let start = points.len();
            for part in &parts {
                let angles: Vec<f64>;
                let given = &cells[part.cells.clone()];
                let numbers = match self.units {
                    Some(units) if part.layout.is_angular() => {
                        angles = given.iter().map(|a| units.to_radians(*a)).collect();
                        angles.as_slice()
                    }
                    _ => given,
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

    /// Why the angles of a file may be in the other unit than this one; a few rows tell nothing.
    pub(super) fn doubt(&self, table: &Table, chosen: &[usize]) -> Result<Option<String>, Error> {
        let angular = self.parts()?.into_iter().filter(|p| p.layout.is_angular()).flat_map(|p| p.cells);
        let size = |k: usize| {
            let (low, high) = table.columns[chosen[k]].range();
            (low.abs().max(high.abs()), k)
        };
        let Some((largest, k)) = angular.map(size).max_by(|a, b| a.0.total_cmp(&b.0)) else { return Ok(None) };
        let (label, rows) = (table.label(chosen[k]), table.rows());
        Ok(match self.units {
            Some(Units::Degrees) if largest <= PI && rows >= TELLING => Some(format!(
                "the model takes degrees, but all angles lie within ±π (the largest, of {label}, is {largest}): if they are \
                 radians, convert them"
            )),
            Some(Units::Radians) if largest > TAU * (1.0 + 1e-6) => Some(format!(
                "the model takes radians, but {label} reaches {largest}, beyond 2π: if these are degrees, convert them"
            )),
            _ => None,
        })
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
                    "{place}, {label}: the latitude {value} is beyond ±{limit}: if latitude and longitude stand the other way \
                     round, give the layout {other}, else choose the columns or correct the row"
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
        let Some(units) = self.units.filter(|_| part.layout.is_angular()) else { return cell };
        let latitude = match part.layout {
            Layout::LatLon => column == part.cells.start,
            Layout::LonLat => column == part.cells.start + 1,
            _ => false,
        };
        if latitude {
            return units.from_radians(cell);
        }
        let angle = units.from_radians(wrap(cell));
        // an angle just below 0 may round to the full turn, which is 0
        match self.full_turn[column] && angle < 0.0 {
            true => Some(angle + units.turn()).filter(|a| *a < units.turn()).unwrap_or(0.0),
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
        self.units.map_or(Ok(()), |units| write!(f, " in {units}"))
    }
}

/// Refuses cells of chosen columns that hold no number: the first in the file.
pub(super) fn check_cells(table: &Table, chosen: &[usize]) -> Result<(), Error> {
    let odd = chosen.iter().filter_map(|&c| Some((table.columns[c].odd.first()?, c)));
    let Some(((row, text), column)) = odd.min_by_key(|((row, _), _)| *row) else { return Ok(()) };
    let mut rows: Vec<usize> = chosen.iter().flat_map(|&c| table.columns[c].odd.iter().map(|(row, _)| *row)).collect();
    rows.sort_unstable();
    rows.dedup();
    let others = match rows.len() - 1 {
        0 => String::new(),
        1 => "; there is another such row".to_string(),
        n => format!("; there are {n} other such rows"),
    };
    let why = match text.trim() {
        "" => "the cell is empty: fill it or remove the row".to_string(),
        text if text.parse::<f64>().is_ok() => format!("`{text}` is not a finite number: correct or remove the row"),
        text => {
            let comma = text.replacen(',', ".", 1).parse::<f64>().is_ok();
            let hint = if comma {
                "write decimals with a point"
            } else {
                "correct or remove the row, or choose other columns"
            };
            format!("`{}` is not a number: {hint}", shorten(text))
        }
    };
    Err(Error::content(&table.path, format!("{}, {}: {why}{others}", table.place(*row), table.label(column))))
}
