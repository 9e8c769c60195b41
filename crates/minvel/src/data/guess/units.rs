//! The unit of angles.

use super::names::unit_in;
use crate::Error;
use crate::data::dataset::Request;
use crate::data::layout::Units;
use crate::data::table::Table;
use std::f64::consts::{PI, TAU};

/// Angles in degrees have no reason to fill just the range of radians: a spread beyond this (of 2π) tells radians.
pub const SPREAD: f64 = 5.0;

/// The unit of angles: as given if the angles agree, else guessed.
pub fn units(table: &Table, request: &Request, angular: &[usize], sentences: &mut Vec<String>) -> Result<Units, Error> {
    let refuse = |what: String| Err(Error::content(&table.path, what));
    let ranges: Vec<(f64, f64)> = angular.iter().map(|&c| table.columns[c].range()).collect();
    let size = |k: usize| ranges[k].0.abs().max(ranges[k].1.abs());
    // the first of the largest: `max_by` takes the last
    let widest = (0..angular.len()).rev().max_by(|a, b| size(*a).total_cmp(&size(*b))).unwrap_or(0);
    let (largest, spread) = (size(widest), ranges.iter().map(|(low, high)| high - low).fold(0.0, f64::max));
    let beyond = largest > TAU * (1.0 + 1e-6);
    let name = table.label(angular[widest]);
    let named = angular.iter().find_map(|&c| unit_in(&table.columns[c].name));
    let said = request.units.or(named);
    match said {
        Some(units) if request.trust => Ok(units),
        Some(Units::Radians) if beyond => {
            let column = &table.columns[angular[widest]];
            let row = (0..table.rows()).find(|&r| column.values[r].abs() > TAU * (1.0 + 1e-6)).unwrap_or(0);
            let (place, value) = (table.place(row), column.text(row));
            refuse(format!(
                "{place}, {name}: the angle {value} is beyond ±2π, so these are not radians: give the units degrees"
            ))
        }
        Some(Units::Degrees) if largest <= PI * (1.0 + 1e-6) => refuse(format!(
            "all angles lie within ±π (the largest, of {name}, is {largest}), so these look like radians, not degrees: give the \
             units radians, or say that the units are to be trusted"
        )),
        Some(units) => {
            if request.units.is_none() {
                sentences.push(format!("units {units}: by the name of the column"));
            }
            Ok(units)
        }
        None if beyond => {
            sentences.push(format!("units degrees: {name} reaches {largest}, beyond 2π"));
            Ok(Units::Degrees)
        }
        None if spread > SPREAD => {
            sentences.push(format!("units radians: angles spread over {spread:.3} and none is beyond 2π"));
            Ok(Units::Radians)
        }
        None => refuse(format!(
            "angles may be degrees or radians: all lie within ±2π (the largest, of {name}, is {largest}) and spread over \
             {spread:.3} only: give the units"
        )),
    }
}
