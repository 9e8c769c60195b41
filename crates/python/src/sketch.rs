//! Fits where the data are: rows chosen by a hash, summaries of parts, and scores of all test rows, each as bytes or text that engines send.

use crate::error::{raised, refused};
use crate::fitted::{Asked, Fitted, configured};
use crate::table::Columns;
use crate::work::{Place, perform};
use minvel::fit::{ChosenRows, Sketch as Summary, Tally};
use minvel::train::Context;
use minvel_lab::fitting::SketchForm;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Some rows of a table, chosen by a hash of their numbers.
#[pyclass(module = "minvel._native")]
pub struct Chosen(ChosenRows);

#[pymethods]
impl Chosen {
    /// At most so many rows of so many numbers.
    #[new]
    fn new(most: usize, width: usize, seed: u64) -> Self {
        Chosen(ChosenRows::new(most, width, seed))
    }

    #[staticmethod]
    fn of_bytes(bytes: &[u8]) -> PyResult<Self> {
        ChosenRows::from_bytes(bytes).map(Chosen).ok_or_else(|| refused("damaged rows: choose them again"))
    }

    /// Looks at the rows of a table; those with a missing number are left out.
    fn add(&mut self, columns: Columns) {
        let columns = columns.views().table().columns;
        let rows = columns.first().map_or(0, |column| column.values.len());
        let row = |k: usize| columns.iter().map(move |column| column.values[k]);
        let complete = (0..rows).filter(|k| row(*k).all(f64::is_finite));
        self.0.add(&complete.flat_map(row).collect::<Vec<f64>>());
    }

    fn merge(&mut self, other: &Chosen) {
        self.0.merge(&other.0);
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// The rows in the order of their hashes, column by column.
    fn columns<'py>(&self, py: Python<'py>, width: usize) -> Vec<Bound<'py, PyArray1<f64>>> {
        let points = self.0.points().0;
        (0..width)
            .map(|j| points.iter().skip(j).step_by(width).copied().collect::<Vec<f64>>().into_pyarray(py))
            .collect()
    }
}

/// How rows of tables are points, and how they are summarised, as JSON: as an example of the rows tells.
#[pyfunction]
#[pyo3(signature = (columns, *, manifold, plain, layout, units, periods, axial, trust, seed, cells))]
pub fn sketch_form(
    columns: Columns,
    manifold: Option<String>,
    plain: Option<String>,
    layout: Option<&str>,
    units: Option<&str>,
    periods: Option<Vec<f64>>,
    axial: Option<bool>,
    trust: bool,
    seed: u64,
    cells: usize,
) -> PyResult<String> {
    let asked = Asked { manifold, plain, layout, units, periods, axial, trust };
    let dataset = asked.rows(columns.views(), false)?.dataset().map_err(raised)?;
    let form = SketchForm::of(&dataset, seed, cells).map_err(raised)?;
    Ok(serde_json::to_string(&form).expect("a form is plain data"))
}

fn parsed(form: &str) -> PyResult<SketchForm> {
    serde_json::from_str(form).map_err(|why| refused(format!("this is no form of summaries: {why}")))
}

/// A summary of rows, for tables of one form.
#[pyclass(module = "minvel._native")]
pub struct Sketch {
    form: SketchForm,
    summary: Summary,
}

#[pymethods]
impl Sketch {
    #[new]
    fn new(form: &str) -> PyResult<Self> {
        let form = parsed(form)?;
        let summary = Summary::new(&form.plan).map_err(raised)?;
        Ok(Sketch { form, summary })
    }

    /// What was sent as bytes.
    #[staticmethod]
    fn of_bytes(form: &str, bytes: &[u8]) -> PyResult<Self> {
        let (form, summary) = (parsed(form)?, Summary::from_bytes(bytes).map_err(raised)?);
        Ok(Sketch { form, summary })
    }

    /// Adds the rows of a table.
    fn add(&mut self, py: Python, columns: Columns) -> PyResult<()> {
        let table = columns.views().table();
        let Sketch { form, summary } = self;
        py.detach(|| summary.add(&form.points(&table)?)).map_err(raised)
    }

    /// Adds the rows of another.
    fn merge(&mut self, py: Python, bytes: &[u8]) -> PyResult<()> {
        let summary = &mut self.summary;
        py.detach(|| summary.merge(&Summary::from_bytes(bytes)?)).map_err(raised)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.summary.to_bytes())
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.summary.rows()
    }

    #[getter]
    fn cells(&self) -> usize {
        self.summary.cells()
    }

    /// Whether it has all rows.
    #[getter]
    fn has_all(&self) -> bool {
        self.summary.all_rows().is_some()
    }

    /// The density of all rows.
    #[pyo3(signature = (*, effort, settings, threads, device, watch))]
    fn fit(
        &self,
        py: Python,
        effort: &str,
        settings: Vec<String>,
        threads: usize,
        device: &str,
        watch: Option<&Bound<PyAny>>,
    ) -> PyResult<Fitted> {
        let place = Place::new(threads, device)?;
        let config = configured(effort, &settings, self.form.plan.seed()).map_err(raised)?;
        perform(py, place, watch, |context| {
            let (model, summary) = self.form.fit(&self.summary, &config, context)?;
            Ok(Fitted::of(model, self.form.coordinates.clone(), summary, config))
        })
    }
}

/// What the test rows among the rows of a table say, as JSON, added to what others said.
#[pyfunction]
#[pyo3(signature = (fitted, form, columns, so_far, *, threads, device))]
pub fn tally(
    py: Python,
    fitted: &Fitted,
    form: &str,
    columns: Columns,
    so_far: &str,
    threads: usize,
    device: &str,
) -> PyResult<String> {
    let (place, form, table) = (Place::new(threads, device)?, parsed(form)?, columns.views().table());
    let mut all: Tally = sums(so_far)?;
    perform(py, place, None, |context: &Context| {
        all.add(fitted.model(), &form.plan, &form.points(&table)?, &context.quiet())?;
        Ok(serde_json::to_string(&all).expect("sums are plain data"))
    })
}

/// The score of all test rows, as JSON.
#[pyfunction]
pub fn tallied(fitted: &Fitted, tally: &str) -> PyResult<String> {
    let all = sums(tally)?;
    let [nll, kernels] = all.nll(fitted.model());
    let uniform = fitted.model().manifold().volume().map(f64::ln);
    let out = serde_json::json!({
        "rows": all.given, "test_rows": all.rows, "test_nll": nll, "kernels_nll": kernels, "uniform_nll": uniform
    });
    Ok(out.to_string())
}

/// No rows.
#[pyfunction]
pub fn no_tally() -> String {
    serde_json::to_string(&Tally::default()).expect("sums are plain data")
}

/// Sums of several, as JSON.
#[pyfunction]
pub fn merged_tally(tallies: Vec<String>) -> PyResult<String> {
    let mut all = Tally::default();
    for tally in &tallies {
        all.merge(&sums(tally)?);
    }
    Ok(serde_json::to_string(&all).expect("sums are plain data"))
}

fn sums(text: &str) -> PyResult<Tally> {
    serde_json::from_str(text).map_err(|why| refused(format!("these are no sums of test rows: {why}")))
}
