//! Fits of tables that are nowhere in one piece: an example tells how rows are points, summaries of parts are merged, and the whole is fitted.

use super::FitSummary;
use super::folder::{Known, warnings};
use super::settings::settings;
use crate::experiment::Config;
use crate::table::{Coordinates, Dataset, Provenance, Table};
use minvel::Error;
use minvel::fit::{Fit, Model, Sketch, SketchPlan};
use minvel::train::Context;
use serde::{Deserialize, Serialize};

/// How rows of tables are points, and how they are summarised: what all parts must have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SketchForm {
    /// Which columns are points.
    pub coordinates: Coordinates,
    /// How they are summarised.
    pub plan: SketchPlan,
    /// What was inferred of the example, in sentences.
    pub guesses: Vec<String>,
    /// Columns that are not used.
    pub unused: Vec<String>,
}

impl SketchForm {
    /// As an example of the rows tells, in at most so many cells.
    pub fn of(example: &Dataset, seed: u64, cells: usize) -> Result<Self, Error> {
        let plan = SketchPlan::new(&example.manifold, seed, cells, &example.points)?;
        let (guesses, unused) = (example.guesses.clone(), example.unused.clone());
        Ok(SketchForm { coordinates: example.coordinates.clone(), plan, guesses, unused })
    }

    /// The points of a table's rows, none of which may be bad.
    pub fn points(&self, table: &Table) -> Result<Vec<f64>, Error> {
        self.coordinates.points(table)
    }

    /// The model of all rows, and what is said about it.
    pub fn fit(&self, sketch: &Sketch, config: &Config, context: &Context) -> Result<(Model, FitSummary), Error> {
        let settings = settings(config)?;
        let fit = Fit::on(sketch.manifold()).settings(settings.clone()).context(context);
        let (model, record) = fit.sketch(sketch)?.into_parts();
        let record = record.expect("it was just fitted");
        let data = Provenance {
            file: "rows in parts".into(),
            sha256: String::new(),
            rows: sketch.rows() as usize,
            distinct_rows: sketch.different() as usize,
            coordinates: self.coordinates.clone(),
            guesses: self.guesses.clone(),
            unused: self.unused.clone(),
            missing: Default::default(),
        };
        let known = Known { leaked: record.leaked_share, leak: record.leak.as_ref(), blocked: None, setting: "cells" };
        let said = warnings(&known, &record.evaluation, &model, &self.coordinates);
        let summary = FitSummary::of(&model, &settings, record, data, said, context);
        Ok((model, summary))
    }
}
