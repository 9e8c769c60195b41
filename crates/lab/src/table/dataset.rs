//! Data sets: points of a manifold, and where they come from.

use super::Input;
use super::about::{RowColumns, RowFacts};
use super::columns::{Table, TableOptions};
use super::coordinates::Coordinates;
use super::guess::guess;
use super::layout::{Layout, Units};
use super::passes::{Survey, points, rename};
use super::points::{Missing, off_the_manifold};
use minvel::Error;
use minvel::fit::{LEAST_POINTS, Split, distinct_indices, distinct_rows};
use minvel::manifold::Manifold;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The fewest rows a model is fitted to.
pub const LEAST_ROWS: usize = LEAST_POINTS;

/// Lengths further than this from 1 are worth a sentence.
pub(super) const WORTH_SAYING: f64 = 1e-6;

/// What the user says about a file; the rest is guessed or refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Name of the manifold, as `sphere:2`.
    pub manifold: Option<String>,
    /// Names of columns, or their numbers from 1.
    pub columns: Option<Vec<String>>,
    /// One layout for each factor of the manifold.
    pub layout: Option<Vec<Layout>>,
    /// The unit of angles.
    pub units: Option<Units>,
    /// Numbers after which the angles of circles and tori repeat: one for all, or one for each.
    pub periods: Option<Vec<f64>>,
    /// Whether directions are those of axes: x and −x are the same.
    pub axial: Option<bool>,
    /// New names of columns: name, and which column it is for.
    pub names: Vec<(String, String)>,
    /// Take the units as given, even if the angles look like the other ones.
    pub trust: bool,
    /// How to read the file.
    pub options: TableOptions,
    /// What to do with rows in which a number is missing.
    pub missing: Missing,
    /// Columns that say something about rows besides their points.
    pub rows: RowColumns,
}

/// Points with their origin.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Where the points live.
    pub manifold: Arc<dyn Manifold>,
    /// Points in the manifold's coordinates, row-major.
    pub points: Vec<f64>,
    /// Which columns they were, and in which form.
    pub coordinates: Coordinates,
    /// What was guessed and why, in sentences.
    pub guesses: Vec<String>,
    /// Names (or numbers) of the columns that are not used.
    pub unused: Vec<String>,
    /// Weights, groups and parts of the rows.
    pub facts: RowFacts,
    /// Which rows of the file the points are, and how many it has; `None` if all are.
    pub(super) kept: Option<(Vec<usize>, usize)>,
    /// Missing values of rows that were dropped, by column.
    pub missing: BTreeMap<String, usize>,
    /// Which file.
    pub source: PathBuf,
    /// SHA-256 of its bytes.
    pub sha256: String,
}

/// What a report says about a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Which file, without its folder.
    pub file: String,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// Rows.
    pub rows: usize,
    /// Different points among them.
    pub distinct_rows: usize,
    /// Columns, layout, units.
    pub coordinates: Coordinates,
    /// What was guessed and why.
    pub guesses: Vec<String>,
    /// Columns that are not used.
    #[serde(default)]
    pub unused: Vec<String>,
    /// Missing values of rows that were dropped, by column.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, usize>,
}

impl Provenance {
    /// The columns that are not used, for a sentence; of many the first.
    pub fn unused_columns(&self) -> String {
        const SHOWN: usize = 12;
        let shown: Vec<&str> = self.unused.iter().take(SHOWN).map(String::as_str).collect();
        match self.unused.len().saturating_sub(SHOWN) {
            0 => shown.join(", "),
            more => format!("{} and {more} others", shown.join(", ")),
        }
    }
}

impl Dataset {
    /// Reads data to fit a model to: guesses what the request leaves open, refuses what cannot be fitted. Of a file of many
    /// rows no more is held at a time than the columns that may be points, or the points.
    pub fn read(input: impl Into<Input>, request: &Request) -> Result<Dataset, Error> {
        let input = input.into();
        Dataset::of_survey(Survey::of_file(&input, request)?, request)?.with_facts(&input, request)
    }

    /// The data in a table, to fit a model to.
    pub fn of(mut table: Table, request: &Request) -> Result<Dataset, Error> {
        rename(&mut table, request)?;
        Dataset::of_survey(Survey::of_table(table), request)
    }

    fn of_survey(survey: Survey, request: &Request) -> Result<Dataset, Error> {
        let (table, rows) = (&survey.table, survey.table.rows());
        if rows < LEAST_ROWS {
            let what = format!("has {rows} row{}: at least {LEAST_ROWS} are needed", if rows == 1 { "" } else { "s" });
            return Err(Error::content(&table.path, what));
        }
        let found = guess(table, &survey.points_among(request), request)?;
        for &c in &found.chosen {
            let (low, high) = table.columns[c].range();
            if low == high {
                let what = format!(
                    "{} is {low} in every row: a density needs points that differ; omit the column and use a manifold \
                     of lower dimension",
                    table.label(c)
                );
                return Err(Error::content(&table.path, what));
            }
        }
        let (coordinates, chosen) = (found.coordinates, found.chosen);
        match survey.file {
            None => Dataset::assemble(survey.table, coordinates, &chosen, found.sentences, request.missing),
            Some(input) => {
                let head = survey.table.without_rows();
                let mut data = Dataset::assemble(head, coordinates, &chosen, found.sentences, request.missing)?;
                let read = points(&input, request, &data.coordinates, &chosen, rows)?;
                (data.points, data.kept, data.missing) = (read.points, read.kept, read.missing);
                data.guesses.extend(off_the_manifold(read.off));
                Ok(data)
            }
        }
    }

    /// Reads further data of a known form, as to score it: any number of rows, none of which may be bad. What is doubtful
    /// about them is said in [`Dataset::guesses`].
    pub fn read_as(
        input: impl Into<Input>,
        coordinates: &Coordinates,
        options: &TableOptions,
    ) -> Result<Dataset, Error> {
        Dataset::of_known(Table::read(input, options)?, coordinates)
    }

    /// Further data of a known form in a table, as [`Dataset::read_as`] of a file.
    pub fn of_known(table: Table, coordinates: &Coordinates) -> Result<Dataset, Error> {
        if table.rows() == 0 {
            return Err(Error::content(&table.path, "has no rows"));
        }
        let chosen = coordinates.find_in(&table)?;
        let size = |&c: &usize| {
            let (low, high) = table.columns[c].range();
            low.abs().max(high.abs())
        };
        let largest: Vec<f64> = chosen.iter().map(size).collect();
        let doubt = coordinates.doubt(&table, &chosen, &largest, table.rows())?;
        Dataset::assemble(table, coordinates.clone(), &chosen, doubt.into_iter().collect(), Missing::Refused)
    }

    fn assemble(
        table: Table,
        coordinates: Coordinates,
        chosen: &[usize],
        mut guesses: Vec<String>,
        missing: Missing,
    ) -> Result<Dataset, Error> {
        let rows = if missing == Missing::Skipped { table.complete(chosen) } else { None };
        let read = coordinates.points_of(&table, chosen, rows.as_deref())?;
        guesses.extend(off_the_manifold(read.off));
        let unused = (0..table.columns.len()).filter(|c| !chosen.contains(c)).map(|c| table.short_name(c)).collect();
        Ok(Dataset {
            manifold: coordinates.manifold()?,
            points: read.points,
            facts: RowFacts::default(),
            missing: if rows.is_some() { table.missing(chosen) } else { BTreeMap::new() },
            kept: rows.map(|rows| (rows, table.rows())),
            coordinates,
            guesses,
            unused,
            source: table.path,
            sha256: table.sha256,
        })
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.points.len() / self.manifold.ambient()
    }

    /// The points of some rows.
    pub fn select(&self, rows: &[usize]) -> Vec<f64> {
        let m = self.manifold.ambient();
        rows.iter().flat_map(|&row| self.points[row * m..(row + 1) * m].iter().copied()).collect()
    }

    /// How many different points there are.
    pub fn distinct_rows(&self) -> usize {
        distinct_rows(&self.points, self.manifold.ambient())
    }

    /// Whether a row of the file is one of the rows.
    pub(super) fn holds(&self, row: usize) -> bool {
        self.kept.as_ref().is_none_or(|(kept, _)| kept.binary_search(&row).is_ok())
    }

    /// How many rows the file has.
    pub fn file_rows(&self) -> usize {
        self.kept.as_ref().map_or(self.rows(), |(_, rows)| *rows)
    }

    /// Some of the rows.
    pub(super) fn with_rows(&self, of: &[usize]) -> Dataset {
        fn some<T: Copy>(all: &Option<Vec<T>>, of: &[usize]) -> Option<Vec<T>> {
            all.as_ref().map(|all| of.iter().map(|&i| all[i]).collect())
        }
        let facts = RowFacts {
            weights: some(&self.facts.weights, of),
            groups: some(&self.facts.groups, of),
            parts: some(&self.facts.parts, of),
        };
        let row = |&i: &usize| self.kept.as_ref().map_or(i, |(kept, _)| kept[i]);
        let kept = Some((of.iter().map(row).collect(), self.file_rows()));
        Dataset { points: self.select(of), facts, kept, ..self.clone() }
    }

    /// The same without rows that repeat an earlier one.
    pub fn without_repeats(&self) -> Dataset {
        self.with_rows(&distinct_indices(&self.points, self.manifold.ambient()))
    }

    /// A split of the rows of the file as one of the rows that are kept.
    pub(crate) fn carried(&self, split: Split) -> Split {
        let Some((kept, _)) = &self.kept else { return split };
        let rows = |of: Vec<usize>| of.into_iter().filter_map(|row| kept.binary_search(&row).ok()).collect();
        Split { train: rows(split.train), validation: rows(split.validation), test: rows(split.test) }
    }

    /// 80 % training, 10 % validation, 10 % test.
    pub fn split(&self, seed: u64) -> Split {
        Split::new(self.rows(), seed)
    }

    /// What a report says about it.
    pub fn provenance(&self) -> Provenance {
        Provenance {
            file: self.source.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned()),
            sha256: self.sha256.clone(),
            rows: self.rows(),
            distinct_rows: self.distinct_rows(),
            coordinates: self.coordinates.clone(),
            guesses: self.guesses.clone(),
            unused: self.unused.clone(),
            missing: self.missing.clone(),
        }
    }
}
