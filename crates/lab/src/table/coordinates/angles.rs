//! Angles of a table: their turns, their ranges, and doubts about their unit.

use super::{Coordinates, Part};
use crate::table::columns::Table;
use crate::table::guess::{ENOUGH, SLACK};
use crate::table::layout::Units;
use minvel::Error;
use minvel::manifold::Space;
use std::f64::consts::TAU;

impl Coordinates {
    /// The period of a column that has its own.
    fn period(&self, column: usize) -> Option<f64> {
        self.periods.get(column).copied().flatten()
    }

    /// The number that a full turn is in a column of angles.
    pub(super) fn turn(&self, column: usize) -> Option<f64> {
        self.period(column).or(self.units.map(Units::turn))
    }

    /// An angle of a column in radians.
    pub(super) fn to_radians(&self, column: usize, angle: f64) -> f64 {
        match (self.period(column), self.units) {
            (Some(period), _) => angle / period * TAU,
            (None, Some(units)) => units.to_radians(angle),
            (None, None) => angle,
        }
    }

    /// An angle in radians as a column has it.
    #[allow(clippy::wrong_self_convention)] // the coordinates are not what is converted
    pub(super) fn from_radians(&self, column: usize, angle: f64) -> f64 {
        match (self.period(column), self.units) {
            (Some(period), _) => angle / TAU * period,
            (None, Some(units)) => units.from_radians(angle),
            (None, None) => angle,
        }
    }

    /// The range of the numbers of each column by nature: `None` where there is no end to them, or they are not angles.
    pub fn ranges(&self) -> Result<Vec<Option<[f64; 2]>>, Error> {
        let mut ranges = vec![None; self.columns.len()];
        for part in self.parts()?.iter().filter(|p| p.layout.is_angular()) {
            for k in part.cells.clone() {
                let turn = self.turn(k).unwrap_or(TAU) * if part.space == Space::Projective(1) { 0.5 } else { 1.0 };
                ranges[k] = match (part.is_latitude(k), self.full_turn[k]) {
                    (true, _) if part.space == Space::Projective(2) => Some([0.0, 0.25 * turn]),
                    (true, _) => Some([-0.25 * turn, 0.25 * turn]),
                    (false, true) => Some([0.0, turn]),
                    (false, false) => Some([-0.5 * turn, 0.5 * turn]),
                };
            }
        }
        Ok(ranges)
    }

    /// For each factor, for each of its angles around a circle (the longitude of a sphere), whether it runs from 0.
    pub(crate) fn starts(&self) -> Result<Vec<Vec<bool>>, Error> {
        let turning = |p: &Part| {
            let angles = p.cells.clone().filter(|k| p.layout.is_angular() && !p.is_latitude(*k));
            angles.map(|k| self.full_turn[k]).collect()
        };
        Ok(self.parts()?.iter().map(turning).collect())
    }

    /// Sees by the numbers of a table whether angles run from 0 to a full turn.
    pub(in crate::table) fn see_ranges(&mut self, table: &Table, chosen: &[usize]) -> Result<(), Error> {
        for (k, range) in self.ranges()?.into_iter().enumerate() {
            let (low, high) = table.columns[chosen[k]].range();
            self.full_turn[k] = range.is_some_and(|r| low >= 0.0 && high > r[1] * (1.0 + 4.0 * f64::EPSILON));
        }
        Ok(())
    }

    /// Why the angles of a file may be in the other unit than this one, by the largest size of its numbers in each column;
    /// a few rows tell nothing.
    pub(in crate::table) fn doubt(
        &self,
        table: &Table,
        chosen: &[usize],
        largest: &[f64],
        rows: usize,
    ) -> Result<Option<String>, Error> {
        let parts = self.parts()?;
        let size = |k: usize| (largest[k], k);
        let angular = || parts.iter().filter(|p| p.layout.is_angular()).flat_map(|p| p.cells.clone()).map(size);
        for (largest, k) in angular() {
            let (turn, label) = (self.turn(k).unwrap_or(f64::INFINITY), table.label(chosen[k]));
            match (self.period(k), self.units) {
                (None, None | Some(Units::Degrees)) => {}
                _ if largest <= turn * SLACK => {}
                (Some(_), _) => {
                    return Ok(Some(format!(
                        "the model expects angles with the period {turn}, but {label} reaches {largest}: are they in \
                         other units?"
                    )));
                }
                (None, Some(units)) => {
                    let turn = if units == Units::Radians { "2π".to_string() } else { turn.to_string() };
                    return Ok(Some(format!(
                        "the model expects {units}, but {label} reaches {largest}, beyond {turn}: if these are \
                         degrees, convert them"
                    )));
                }
            }
        }
        let degrees = angular().filter(|(_, k)| self.period(*k).is_none() && self.units == Some(Units::Degrees));
        let Some((largest, k)) = degrees.max_by(|a, b| a.0.total_cmp(&b.0)) else { return Ok(None) };
        // a latitude beyond π/2 is none in radians
        let latitude = |p: &Part| p.cells.clone().filter(|k| p.is_latitude(*k)).any(|k| size(k).0 > TAU / 4.0 * SLACK);
        let radians = largest <= TAU * SLACK && !parts.iter().any(latitude);
        Ok((radians && rows >= ENOUGH).then(|| {
            format!(
                "the model expects degrees, but all angles are within ±2π (the largest, in {}, is {largest}): if they \
                 are radians, convert them",
                table.label(chosen[k])
            )
        }))
    }
}
