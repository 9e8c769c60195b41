//! The unit of angles, and periods.

use super::names::unit_in;
use crate::table::columns::Table;
use crate::table::dataset::Request;
use crate::table::layout::Units;
use minvel::{Choice, Error};
use std::f64::consts::{FRAC_PI_2, TAU};

/// Angles in degrees have no reason to fill just the range of radians: a spread beyond this (of 2π) tells radians.
const SPREAD: f64 = 5.0;

/// What rounding may add to a turn.
pub const SLACK: f64 = 1.0 + 1e-6;

/// Fewer rows say nothing about a range.
pub const ENOUGH: usize = 30;

/// The columns of angles of a table.
pub struct Angles<'a> {
    pub table: &'a Table,
    /// Angles around a circle.
    pub circular: Vec<usize>,
    /// Pairs of latitude and longitude, in either order.
    pub places: Vec<[usize; 2]>,
}

impl Angles<'_> {
    fn all(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.circular.iter().chain(self.places.iter().flatten()).copied().collect();
        all.sort_unstable();
        all
    }

    fn size(&self, column: usize) -> f64 {
        let (low, high) = self.table.columns[column].range();
        low.abs().max(high.abs())
    }

    /// The first of the columns with the largest angle, and that angle.
    fn largest(&self, of: &[usize]) -> (usize, f64) {
        let widest = of.iter().rev().max_by(|a, b| self.size(**a).total_cmp(&self.size(**b)));
        widest.map_or((0, 0.0), |&c| (c, self.size(c)))
    }

    /// Whether the angles may be in a unit.
    fn fits(&self, units: Units) -> bool {
        let column = |&c: &usize| self.table.columns[c].range();
        let within = |limit: f64| self.all().iter().all(|&c| self.size(c) <= limit * SLACK);
        match units {
            Units::Degrees => within(360.0),
            Units::Radians => {
                let latitude = |pair: &[usize; 2]| pair.iter().any(|&c| self.size(c) <= FRAC_PI_2 * SLACK);
                within(TAU) && self.places.iter().all(latitude)
            }
            Units::Hours => {
                let day = |(low, high): (f64, f64)| low >= 0.0 && high <= 24.0 || low >= -12.0 && high <= 12.0;
                self.places.is_empty() && self.circular.iter().map(column).all(day)
            }
        }
    }

    /// The first row in which a column goes beyond a limit.
    fn beyond(&self, column: usize, limit: f64) -> Option<String> {
        let values = &self.table.columns[column];
        let row = values.values.iter().position(|v| v.abs() > limit * SLACK)?;
        let (place, label) = (self.table.place(row), self.table.label(column));
        Some(format!("{place}, {label}: the angle {} is beyond", values.text(row)))
    }

    /// The periods of the columns of circles, where the request gives them.
    pub fn periods(&self, request: &Request) -> Result<Option<Vec<f64>>, Error> {
        let Some(given) = &request.periods else { return Ok(None) };
        let refuse = |what: String| Err(Error::config(what));
        if let Some(bad) = given.iter().find(|p| !(p.is_finite() && **p > 0.0)) {
            return refuse(format!("a period must be a positive number, not {bad}"));
        }
        let count = self.circular.len();
        let periods = match given.len() {
            _ if count == 0 => {
                return refuse("a period applies only to angles of circles and tori, and there are none".into());
            }
            1 => vec![given[0]; count],
            n if n == count => given.clone(),
            n => {
                return refuse(format!("{n} periods were given for {count} angles: give one for all, or one for each"));
            }
        };
        if request.units.is_some() && self.places.is_empty() {
            return refuse("give the units or the period, not both".into());
        }
        for (&column, period) in self.circular.iter().zip(&periods).filter(|_| !request.trust) {
            if let Some(what) = self.beyond(column, *period) {
                let what = format!("{what} the period {period}: correct the period or the row, or add --trust");
                return Err(Error::content(&self.table.path, what));
            }
        }
        Ok(Some(periods))
    }

    /// The unit of angles: as given if the angles agree, else guessed where one reading fits.
    pub fn units(&self, request: &Request, sentences: &mut Vec<String>) -> Result<Units, Error> {
        let named = self.all().iter().find_map(|&c| unit_in(&self.table.columns[c].name));
        match request.units.or(named) {
            Some(Units::Hours) if !self.places.is_empty() => {
                let what = "latitudes and longitudes are in degrees or radians, not in hours: give their units, and a period of 24 \
                            for the hours (--units degrees --period 24)";
                Err(Error::config(what))
            }
            Some(units) if request.trust => Ok(units),
            Some(units) => {
                self.check(units)?;
                if request.units.is_none() {
                    sentences.push(format!("units {units}: by the name of the column"));
                }
                Ok(units)
            }
            None => self.guess(sentences),
        }
    }

    /// Refuses angles that are not in the unit they are said to be in, or as well in another.
    fn check(&self, units: Units) -> Result<(), Error> {
        let all = self.all();
        let (widest, largest) = self.largest(&all);
        let name = self.table.label(widest);
        match units {
            Units::Radians | Units::Hours => {
                let (limit, shown) = if units == Units::Radians { (TAU, "2π") } else { (24.0, "24") };
                let Some(what) = self.beyond(widest, limit) else { return Ok(()) };
                let what = format!("{what} ±{shown}, so these are not {units}: give the units degrees");
                Err(Error::content(&self.table.path, what))
            }
            Units::Degrees if self.fits(Units::Radians) => {
                let what = format!(
                    "all angles are within ±2π (the largest, in {name}, is {largest}), so these look like radians, \
                     not degrees"
                );
                let choices = vec![
                    Choice::new("units", "radians", "they are radians"),
                    Choice::new("trust", "", "they are small angles in degrees: trust the units"),
                ];
                Err(Error::ambiguous(&self.table.path, what, choices))
            }
            Units::Degrees => Ok(()),
        }
    }

    fn guess(&self, sentences: &mut Vec<String>) -> Result<Units, Error> {
        let all = self.all();
        let (widest, largest) = self.largest(&all);
        let name = self.table.label(widest);
        let range = |c: &usize| self.table.columns[*c].range();
        let spread = all.iter().map(range).map(|(low, high)| high - low).fold(0.0, f64::max);
        let whole = all.iter().all(|&c| self.table.columns[c].values.iter().all(|v| v.fract() == 0.0));
        let question = |what: String, units: &[Units]| {
            let choice = |u: &Units| match u {
                Units::Degrees => Choice::new("units", "degrees", "a full turn is 360"),
                Units::Radians => Choice::new("units", "radians", "a full turn is 2π"),
                Units::Hours => Choice::new("units", "hours", "a 24-hour clock"),
            };
            let mut choices: Vec<Choice> = units.iter().map(choice).collect();
            if !self.circular.is_empty() {
                choices.push(Choice::new("period", "P", "any other period, such as 7 or 365.25"));
            }
            Err(Error::ambiguous(&self.table.path, what, choices))
        };
        match (self.fits(Units::Degrees), self.fits(Units::Radians), self.fits(Units::Hours)) {
            (false, ..) if !self.circular.is_empty() => {
                question(format!("the period is ambiguous: {name} reaches {largest}, beyond 360"), &[Units::Degrees])
            }
            (_, false, true) => question(
                format!("angles may be hours or degrees: {name} reaches {largest}, within a day of 24"),
                &[Units::Hours, Units::Degrees],
            ),
            (_, false, false) => {
                sentences.push(format!("units degrees: {name} reaches {largest}, beyond 2π"));
                Ok(Units::Degrees)
            }
            (_, true, _) if spread > SPREAD && !whole => {
                sentences.push(format!("units radians: angles cover a range of {spread:.3} and none is beyond 2π"));
                Ok(Units::Radians)
            }
            (_, true, hours) => {
                let units = [Units::Degrees, Units::Radians, Units::Hours];
                question(
                    format!(
                        "angles may be degrees or radians: all are within ±2π (the largest, in {name}, is {largest}) \
                         and cover a range of only {spread:.3}: give the units"
                    ),
                    if hours { &units } else { &units[..2] },
                )
            }
        }
    }
}
