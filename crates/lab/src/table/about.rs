//! What columns say about rows besides their points: weights, groups, and which part of a split a row is in.
//!
//! **Statement.** One further pass over the file, of these columns alone. A weight is a finite number from 0 on; any text is the label of a group;
//! a part is train, validation or test. A split may also be a file of its own, a row for each row of the data.
//! **Conventions.** Rows that were dropped because a number of their points is missing are passed over; a row whose weight, group or part is
//! missing is an error, or dropped too if that was asked for. **Checked by** crates/cli/tests/program/rows.rs.

use super::blocks::Blocks;
use super::columns::{Table, TableOptions, is_missing};
use super::coordinates::Coordinates;
use super::dataset::{Dataset, Request};
use super::input::Input;
use super::layout::Layout;
use super::passes::rename;
use super::points::Missing;
use minvel::Error;
use minvel::fit::Part;
use minvel::manifold::Space;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;

/// Columns that say something about rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowColumns {
    /// What a row counts.
    pub weights: Option<String>,
    /// Rows with the same label belong together.
    pub group: Option<String>,
    /// What a row is for: a column, or a file with a row for each row.
    pub split: Option<String>,
}

/// What is said about rows, each list in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowFacts {
    /// What each counts.
    pub weights: Option<Vec<f64>>,
    /// The number of its label.
    pub groups: Option<Vec<u32>>,
    /// What it is for.
    pub parts: Option<Vec<Part>>,
}

impl RowColumns {
    /// Those that are columns of the data.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        let split = self.split.as_ref().filter(|split| !Path::new(split).is_file());
        self.weights.iter().chain(&self.group).chain(split)
    }
}

/// The part of a word.
pub(crate) fn part(text: &str) -> Option<Part> {
    match text.trim().to_ascii_lowercase().as_str() {
        "train" | "training" => Some(Part::Train),
        "validation" | "valid" | "val" | "dev" => Some(Part::Validation),
        "test" | "testing" => Some(Part::Test),
        _ => None,
    }
}

/// What a row says, before it is known whether it is kept.
struct Fact {
    weight: f64,
    group: u32,
    part: Part,
    whole: bool,
}

/// Columns of a table by what they say.
struct Places {
    weights: Option<usize>,
    group: Option<usize>,
    split: Option<usize>,
}

impl Places {
    /// Of one row; an error names its place.
    fn fact(&self, table: &Table, row: usize, labels: &mut HashMap<String, u32>) -> Result<Fact, Error> {
        let text = |column: Option<usize>| column.map(|c| table.columns[c].text(row));
        let refuse = |column: Option<usize>, what: String| {
            let column = column.map_or(String::new(), |c| table.label(c));
            Error::content(&table.path, format!("{}, {column}: {what}", table.place(row)))
        };
        let [weight, group, split] = [self.weights, self.group, self.split].map(text);
        let whole = [&weight, &group, &split].iter().all(|text| text.as_ref().is_none_or(|text| !is_missing(text)));
        let mut fact = Fact { weight: 1.0, group: 0, part: Part::Train, whole };
        if !whole {
            return Ok(fact);
        }
        if let Some(text) = weight {
            let value = table.columns[self.weights.expect("it has a text")].values[row];
            if !(value.is_finite() && value >= 0.0) {
                let what = format!("`{text}` is no weight: expected a finite number from 0 on");
                return Err(refuse(self.weights, what));
            }
            fact.weight = value;
        }
        if let Some(text) = group {
            let next = labels.len() as u32;
            fact.group = *labels.entry(text.trim().to_string()).or_insert(next);
        }
        if let Some(text) = split {
            let known = part(&text);
            let what = || format!("`{}` is no part of a split: expected train, validation or test", text.trim());
            fact.part = known.ok_or_else(|| refuse(self.split, what()))?;
        }
        Ok(fact)
    }
}

impl Dataset {
    /// The same with what columns say about its rows.
    pub(super) fn with_facts(mut self, input: &Input, request: &Request) -> Result<Dataset, Error> {
        let columns = &request.rows;
        if *columns == RowColumns::default() {
            return Ok(self);
        }
        let mut blocks = Blocks::open_again(input, &request.options)?;
        let mut head = blocks.head().clone();
        rename(&mut head, request)?;
        let file = columns.split.as_ref().map(Path::new).filter(|path| path.is_file());
        let find = |name: &Option<String>| name.as_ref().map(|name| head.find(name)).transpose();
        let split = if file.is_some() { None } else { find(&columns.split)? };
        let places = Places { weights: find(&columns.weights)?, group: find(&columns.group)?, split };
        let used: Vec<usize> = [places.weights, places.group, places.split].into_iter().flatten().collect();
        blocks.keep(&used);
        let (mut facts, mut labels, mut missing) = (vec![], HashMap::new(), HashMap::new());
        let mut row = 0;
        while let Some(mut block) = blocks.next_block()? {
            for (column, named) in block.columns.iter_mut().zip(&head.columns) {
                column.name.clone_from(&named.name);
            }
            for i in 0..block.rows() {
                if self.holds(row + i) {
                    let fact = places.fact(&block, i, &mut labels)?;
                    if !fact.whole && request.missing == Missing::Refused {
                        let bad =
                            used.iter().find(|&&c| is_missing(&block.columns[c].text(i))).expect("one is missing");
                        return Err(Error::content(
                            &block.path,
                            format!(
                                "{}, {}: the cell is empty: fill it, or drop such rows with --missing drop",
                                block.place(i),
                                block.label(*bad)
                            ),
                        ));
                    }
                    let bad = used.iter().filter(|&&c| is_missing(&block.columns[c].text(i)));
                    bad.for_each(|&c| *missing.entry(block.short_name(c)).or_insert(0) += 1);
                    facts.push(fact);
                }
            }
            row += block.rows();
        }
        if used.is_empty() {
            facts = (0..self.rows()).map(|_| Fact { weight: 1.0, group: 0, part: Part::Train, whole: true }).collect();
        }
        if let Some(path) = file {
            let parts = parts_of(path, self.file_rows())?;
            (0..parts.len())
                .filter(|&row| self.holds(row))
                .zip(&mut facts)
                .for_each(|(row, fact)| fact.part = parts[row]);
        }
        let kept: Vec<usize> = (0..facts.len()).filter(|&i| facts[i].whole).collect();
        if kept.len() < facts.len() {
            self = self.with_rows(&kept);
            self.missing.extend(missing);
        }
        let kept = || kept.iter().map(|&i| &facts[i]);
        self.facts = RowFacts {
            weights: columns.weights.as_ref().map(|_| kept().map(|fact| fact.weight).collect()),
            groups: columns.group.as_ref().map(|_| kept().map(|fact| fact.group).collect()),
            parts: columns.split.as_ref().map(|_| kept().map(|fact| fact.part).collect()),
        };
        let names: Vec<String> = used.iter().map(|&c| head.short_name(c)).collect();
        self.unused.retain(|name| !names.contains(name));
        Ok(self)
    }
}

/// The parts in a file: its only column, or the one that is called split or part.
fn parts_of(path: &Path, rows: usize) -> Result<Vec<Part>, Error> {
    let mut table = Table::read(path, &Default::default())?;
    // Words above words are not known to be names: those that are no parts are.
    let named = |table: &Table| table.columns.iter().any(|column| part(&column.name).is_some());
    let unnamed = |table: &Table| {
        table.rows() > 1 && [0, 1].map(|row| part(&table.columns[0].text(row)).is_some()) == [false, true]
    };
    if let Some(header) = if named(&table) { Some(false) } else { unnamed(&table).then_some(true) } {
        table = Table::read(path, &TableOptions { header: Some(header), ..TableOptions::default() })?;
    }
    let column = match table.columns.len() {
        1 => 0,
        _ => table.find("split").or_else(|_| table.find("part"))?,
    };
    parts_in(&table, column, rows)
}

fn parts_in(table: &Table, column: usize, rows: usize) -> Result<Vec<Part>, Error> {
    let path = &table.path;
    if table.rows() != rows {
        let what =
            format!("has {} rows for {rows} rows of data: give train, validation or test for each", table.rows());
        return Err(Error::content(path, what));
    }
    let one = |row: usize| {
        let text = table.columns[column].text(row);
        part(&text).ok_or_else(|| {
            let what = format!("`{}` is no part of a split: expected train, validation or test", text.trim());
            Error::content(path, format!("{}, {}: {what}", table.place(row), table.label(column)))
        })
    };
    (0..rows).map(one).collect()
}

/// The mean radius of the Earth in km, that of the sphere of the same surface.
pub const EARTH: f64 = 6371.0088;

impl Coordinates {
    /// A distance in the units of the manifold: `5km` on Earth, `0.5deg`, `0.01rad`, or a number in the units of the data.
    pub fn distance(&self, text: &str) -> Result<f64, Error> {
        let refuse = |what: &str| {
            Error::config(format!(
                "--block `{text}`: {what}; expected a distance as 5km, 0.5deg, 0.01rad or 0.3, in units of the data"
            ))
        };
        let spaces = self.manifold()?.spaces().unwrap_or_default();
        let angular = spaces.iter().all(|space| !matches!(space, Space::Euclidean(_) | Space::Hyperbolic(_)));
        let at = text.find(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E')).unwrap_or(text.len());
        let (number, unit) = (text[..at].trim(), text[at..].trim());
        let number: f64 = number.parse().map_err(|_| refuse("this is no number"))?;
        if !(number.is_finite() && number > 0.0) {
            return Err(refuse("a distance is positive"));
        }
        let place =
            spaces == [Space::Sphere(2)] && self.layouts.iter().all(|l| matches!(l, Layout::LatLon | Layout::LonLat));
        match unit {
            "km" if place => Ok(number / EARTH),
            "km" => Err(refuse("km need latitudes and longitudes")),
            "deg" | "degrees" if angular => Ok(number.to_radians()),
            "rad" | "radians" if angular => Ok(number),
            "deg" | "degrees" | "rad" | "radians" => Err(refuse("this manifold has distances that are no angles")),
            "" => Ok(number * self.radians_of_unit(angular)?),
            _ => Err(refuse("unknown unit")),
        }
    }

    /// A distance of the manifold as an option of the program, rounded up to two digits: `3.1km`, `0.51deg` or a number.
    pub fn written(&self, distance: f64) -> String {
        let spaces = self.manifold().ok().and_then(|manifold| manifold.spaces()).unwrap_or_default();
        let angular = spaces.iter().all(|space| !matches!(space, Space::Euclidean(_) | Space::Hyperbolic(_)));
        let place =
            spaces == [Space::Sphere(2)] && self.layouts.iter().all(|l| matches!(l, Layout::LatLon | Layout::LonLat));
        let (number, unit) = match (place, angular) {
            (true, _) => (distance * EARTH, "km"),
            (_, true) => (distance.to_degrees(), "deg"),
            _ => (distance, ""),
        };
        let digits = 1 - number.max(f64::MIN_POSITIVE).log10().floor() as i32;
        let scale = 10f64.powi(digits);
        let rounded = (number * scale).ceil() / scale;
        format!("{rounded:.*}{unit}", digits.max(0) as usize)
    }

    /// What one unit of the data is as a distance.
    fn radians_of_unit(&self, angular: bool) -> Result<f64, Error> {
        let periods: Vec<f64> = self.periods.iter().flatten().copied().collect();
        if let [first, rest @ ..] = periods.as_slice() {
            if rest.iter().any(|period| period != first) {
                return Err(Error::config("--block: angles of several periods have no common unit; use deg or rad"));
            }
            return Ok(std::f64::consts::TAU / first);
        }
        Ok(self.units.filter(|_| angular).map_or(1.0, |units| std::f64::consts::TAU / units.turn()))
    }
}
