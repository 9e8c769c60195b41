//! A fitted density: the model, how rows of a table are its points, and what the fit said about itself.

use crate::error::{raised, refused};
use crate::table::{Columns, Views};
use crate::work::{Place, perform};
use minvel::fit::{LEAST_POINTS, Model, NO_REFERENCE, RunningEvaluation, RunningSums, Uncertainty};
use minvel::stream::subseed;
use minvel::train::{Context, Silent, Stop};
use minvel::{Device, Error};
use minvel_lab::catalogue::locate;
use minvel_lab::experiment::Config;
use minvel_lab::fitting::{self, DensityGrid, FitRun, FitSummary, RunFolder, density_figures, fit_report, look};
use minvel_lab::plot::density::Points;
use minvel_lab::plot::{Bearings, Theme};
use minvel_lab::report::{Report, Versions};
use minvel_lab::table::{Column, Coordinates, Dataset, Layout, ROWS, Request, RowFacts, Table, TableOptions};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

type Array<'py> = Bound<'py, PyArray1<f64>>;
/// Names of columns, and their numbers.
type Frame<'py> = (Vec<String>, Vec<Array<'py>>);
/// Name, caption, SVG and PNG of a figure.
type Drawn<'py> = (String, String, String, Bound<'py, PyBytes>);

/// A fitted density.
#[pyclass(frozen, module = "minvel._native")]
pub struct Fitted {
    model: Model,
    coordinates: Coordinates,
    /// What the fit said about itself; none of a model that came without it.
    summary: Option<FitSummary>,
    config: Option<Config>,
}

/// Fits a density to a table.
#[pyfunction]
#[pyo3(signature = (columns, *, manifold, plain,  layout, units, periods, axial, trust, distinct, weights, groups, block, effort, settings, seed, threads, device, watch))]
pub fn fit(
    py: Python,
    columns: Columns,
    manifold: Option<String>,
    plain: Option<String>,
    layout: Option<&str>,
    units: Option<&str>,
    periods: Option<Vec<f64>>,
    axial: Option<bool>,
    trust: bool,
    distinct: bool,
    weights: Option<PyReadonlyArray1<f64>>,
    groups: Option<PyReadonlyArray1<u32>>,
    block: Option<String>,
    effort: &str,
    settings: Vec<String>,
    seed: u64,
    threads: usize,
    device: &str,
    watch: Option<&Bound<PyAny>>,
) -> PyResult<Fitted> {
    let place = Place::new(threads, device)?;
    let config = configured(effort, &settings, seed).map_err(raised)?;
    let asked = Asked { manifold, plain, layout, units, periods, axial, trust };
    let (weights, groups) = (weights.map(|all| all.as_array().to_vec()), groups.map(|all| all.as_array().to_vec()));
    let facts = RowFacts { weights, groups, parts: None };
    let rows = Rows { facts, block, ..asked.rows(columns.views(), distinct)? };
    perform(py, place, watch, |context| learn(rows, config, context))
}

/// What is said about the columns of a table.
pub(crate) struct Asked<'a> {
    pub manifold: Option<String>,
    pub plain: Option<String>,
    pub layout: Option<&'a str>,
    pub units: Option<&'a str>,
    pub periods: Option<Vec<f64>>,
    pub axial: Option<bool>,
    pub trust: bool,
}

impl Asked<'_> {
    /// The rows of a table, of which nothing else is known.
    pub fn rows<'v>(self, views: Views<'v>, distinct: bool) -> PyResult<Rows<'v>> {
        let Asked { manifold, plain, layout, units, periods, axial, trust } = self;
        let layout = layout.map(Layout::parse_list).transpose().map_err(refused)?;
        let units = units.map(str::parse).transpose().map_err(|why: String| refused(why))?;
        let request = Request { manifold, layout, units, periods, axial, trust, ..Request::default() };
        Ok(Rows { views, request, plain, distinct, facts: RowFacts::default(), block: None })
    }
}

/// The settings of an effort, as the program makes them, with changes.
pub(crate) fn configured(effort: &str, settings: &[String], seed: u64) -> Result<Config, Error> {
    let mut config = fitting::defaults();
    match effort {
        "normal" => {}
        "quick" => {
            config = config.quick()?;
            config.set("objective=\"none\"")?;
        }
        "thorough" => config.set("energies.effort=\"thorough\"")?,
        other => {
            let what = format!("effort is {other:?}: expected \"quick\", \"normal\" or \"thorough\"");
            return Err(Error::config(what));
        }
    }
    config.set(&format!("seed={seed}"))?;
    settings.iter().try_for_each(|assignment| config.set(assignment))?;
    fitting::settings(&config)?;
    Ok(config)
}

/// What a density is fitted to.
pub(crate) struct Rows<'a> {
    views: Views<'a>,
    request: Request,
    /// The manifold where neither the request nor the table tells it.
    plain: Option<String>,
    distinct: bool,
    facts: RowFacts,
    block: Option<String>,
}

impl Rows<'_> {
    pub fn dataset(self) -> Result<Dataset, Error> {
        let Rows { views, mut request, plain, distinct, facts, .. } = self;
        let mut dataset = match (Dataset::of(views.table(), &request), plain) {
            (Err(Error::Ambiguous { choices, .. }), Some(plain)) if choices.iter().any(|c| c.option == "manifold") => {
                request.manifold = Some(plain);
                Dataset::of(views.table(), &request)?
            }
            (dataset, _) => dataset?,
        };
        dataset.facts = facts;
        Ok(if distinct { dataset.without_repeats() } else { dataset })
    }
}

fn learn(rows: Rows, config: Config, context: &Context) -> Result<Fitted, Error> {
    let block = rows.block.clone();
    let dataset = rows.dataset()?;
    let block = block.map(|text| dataset.coordinates.distance(&text)).transpose()?;
    fitting::settings(&config)?.check(&*dataset.manifold, dataset.rows())?;
    match dataset.distinct_rows() {
        LEAST_POINTS.. => {}
        rows => {
            let what = format!("has {rows} distinct rows; expected at least {LEAST_POINTS}");
            return Err(Error::content(&dataset.source, what));
        }
    }
    let run = FitRun {
        dataset: &dataset,
        block,
        config: &config,
        observer: &Silent, // those of the context are used
        stop: Stop::default(),
        threads: context.threads,
        device: context.device,
        save_every: Duration::MAX,
        versions: Versions::default(),
        revision: "",
    };
    let (model, summary) = run.learn(context)?;
    Ok(Fitted { model, coordinates: dataset.coordinates, summary: Some(summary), config: Some(config) })
}

#[pymethods]
impl Fitted {
    /// Reads a model: the folder of a fit, or its file. The settings of a folder's fit come with its summary.
    #[staticmethod]
    fn load(py: Python, path: PathBuf) -> PyResult<Fitted> {
        let place = Place { threads: 0, device: Device::Cpu };
        perform(py, place, None, |_| {
            if !path.exists() {
                return Err(Error::file(&path, "read", ErrorKind::NotFound.into()));
            }
            if path.is_file() {
                let (model, coordinates) = fitting::read_model(&path)?;
                return Ok(Fitted { model, coordinates, summary: None, config: None });
            }
            let folder = RunFolder(path.clone());
            let (model, coordinates) = folder.read_model()?;
            let summary = if folder.summary().exists() { Some(folder.read_summary()?) } else { None };
            let file = path.join("config.toml");
            let config = minvel::file::read_text_if_there(&file)?;
            let config = config.map(|text| Config::parse(&file.display().to_string(), &text)).transpose()?;
            Ok(Fitted { model, coordinates, summary, config })
        })
    }

    /// The model from its file, with what else is known of it.
    #[staticmethod]
    fn restore(path: PathBuf, summary: Option<&str>, config: Option<&str>) -> PyResult<Fitted> {
        let (model, coordinates) = fitting::read_model(&path).map_err(raised)?;
        let summary = summary.map(serde_json::from_str).transpose().map_err(refused)?;
        let config = config.map(|text| Config::parse("config.toml", text)).transpose().map_err(raised)?;
        Ok(Fitted { model, coordinates, summary, config })
    }

    /// Writes the model to a file.
    fn save_model(&self, path: PathBuf) -> PyResult<()> {
        self.model.write(&path, &self.coordinates).map_err(raised)
    }

    /// Writes a folder as `minvel fit` does.
    fn save_folder(&self, py: Python, path: PathBuf) -> PyResult<()> {
        let place = Place { threads: 0, device: Device::Cpu };
        perform(py, place, None, |context| match (&self.summary, &self.config) {
            (Some(summary), Some(config)) => {
                let report = self.make_report(summary, config, context)?;
                RunFolder(path).write(&self.model, summary, config, &report)
            }
            _ => {
                minvel::file::create_folder(&path)?;
                self.model.write(&RunFolder(path).model(), &self.coordinates)
            }
        })
    }

    /// The report, as HTML and as JSON.
    fn report(&self, py: Python) -> PyResult<(String, String)> {
        let (Some(summary), Some(config)) = (&self.summary, &self.config) else {
            return Err(refused("there is no report: the model was loaded from a file without the folder of its fit"));
        };
        let place = Place { threads: 0, device: Device::Cpu };
        let report = perform(py, place, None, |context| self.make_report(summary, config, context))?;
        Ok((report.html(), report.json()))
    }

    /// What the fit said about itself, as JSON.
    #[getter]
    fn summary(&self) -> Option<String> {
        self.summary.as_ref().map(|summary| serde_json::to_string(summary).expect("a summary is plain data"))
    }

    /// Its settings, as TOML.
    #[getter]
    fn config(&self) -> Option<String> {
        self.config.as_ref().map(Config::text)
    }

    /// How rows are points, as JSON.
    #[getter]
    fn coordinates(&self) -> String {
        serde_json::to_string(&self.coordinates).expect("coordinates are plain data")
    }

    /// How rows are points, in words.
    #[getter]
    fn words(&self) -> String {
        self.coordinates.to_string()
    }

    /// Names of the columns that samples have.
    #[getter]
    fn names(&self) -> PyResult<Vec<String>> {
        Ok(self.coordinates.table(&[]).map_err(raised)?.into_iter().map(|column| column.name).collect())
    }

    /// The seed of the fit.
    #[getter]
    fn seed(&self) -> u64 {
        self.model.settings().seed
    }

    /// log Z and its standard error.
    #[getter]
    fn log_z(&self) -> (f64, f64) {
        let log_z = self.model.log_z().value;
        (log_z.mean, log_z.std_error)
    }

    /// Log densities of rows that the model has not seen, in order; none of files of earlier versions.
    #[getter]
    fn reference<'py>(&self, py: Python<'py>) -> Option<Array<'py>> {
        self.model.reference().map(|reference| PyArray1::from_slice(py, reference.log_densities()))
    }

    /// Conformal p-values of rows with these log densities.
    fn p_values<'py>(&self, py: Python<'py>, logs: PyReadonlyArray1<f64>) -> PyResult<Array<'py>> {
        let reference = self.model.reference().ok_or_else(|| refused(NO_REFERENCE))?;
        let p_values: Vec<f64> = logs.as_array().iter().map(|log| reference.p_value(*log)).collect();
        Ok(p_values.into_pyarray(py))
    }

    /// Log density of each row, and what is doubtful about the rows.
    #[pyo3(signature = (columns, *, threads, device, watch))]
    fn log_density<'py>(
        &self,
        py: Python<'py>,
        columns: Columns,
        threads: usize,
        device: &str,
        watch: Option<&Bound<PyAny>>,
    ) -> PyResult<(Array<'py>, Vec<String>)> {
        let (place, rows) = (Place::new(threads, device)?, columns.views());
        let (logs, doubts) = perform(py, place, watch, |context| {
            let mut logs = vec![];
            let doubts = rows.points(&self.coordinates, "scoring", context, |points, quiet| {
                logs.extend(self.model.log_density(points, quiet)?);
                Ok(())
            })?;
            Ok((logs, doubts))
        })?;
        Ok((logs.into_pyarray(py), doubts))
    }

    /// Log density of each row, its standard error by a bootstrap over training rows, and what is doubtful about the rows.
    #[pyo3(signature = (columns, *, threads, device, watch))]
    fn log_density_and_error<'py>(
        &self,
        py: Python<'py>,
        columns: Columns,
        threads: usize,
        device: &str,
        watch: Option<&Bound<PyAny>>,
    ) -> PyResult<(Array<'py>, Array<'py>, Vec<String>)> {
        let (place, rows) = (Place::new(threads, device)?, columns.views());
        let (logs, errors, doubts) = perform(py, place, watch, |context| {
            let (mut logs, mut errors, known) = (vec![], vec![], Uncertainty::of(&self.model, context)?);
            let doubts = rows.points(&self.coordinates, "scoring", context, |points, quiet| {
                logs.extend(self.model.log_density(points, quiet)?);
                errors.extend(known.errors(points, quiet)?);
                Ok(())
            })?;
            Ok((logs, errors, doubts))
        })?;
        Ok((logs.into_pyarray(py), errors.into_pyarray(py), doubts))
    }

    /// grad log p of each row, in the coordinates of the manifold.
    #[pyo3(signature = (columns, *, threads, device))]
    fn score<'py>(
        &self,
        py: Python<'py>,
        columns: Columns,
        threads: usize,
        device: &str,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (place, rows) = (Place::new(threads, device)?, columns.views());
        let m = self.model.manifold().ambient();
        let score = perform(py, place, None, |context| {
            let mut score = vec![];
            rows.points(&self.coordinates, "scoring", context, |points, quiet| {
                score.extend(self.model.score(points, quiet)?);
                Ok(())
            })?;
            Ok(score)
        })?;
        let rows = score.len() / m;
        score.into_pyarray(py).reshape([rows, m])
    }

    /// So many draws, as the program makes them: names and columns.
    #[pyo3(signature = (number, seed, *, threads, device, watch))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        number: usize,
        seed: u64,
        threads: usize,
        device: &str,
        watch: Option<&Bound<PyAny>>,
    ) -> PyResult<Frame<'py>> {
        let place = Place::new(threads, device)?;
        let columns = perform(py, place, watch, |context| {
            let m = self.model.manifold().ambient();
            let mut points = Vec::with_capacity(number * m);
            context.stage("sampling", number, "rows", || {
                let quiet = context.quiet();
                for block in 0..number.div_ceil(ROWS) {
                    context.go_on()?;
                    let rows = ROWS.min(number - block * ROWS);
                    let count = if number > ROWS { ROWS } else { rows };
                    let drawn = self.model.sample(count, subseed(seed, block as u64), &quiet)?;
                    points.extend(&drawn.points[..rows * m]);
                    context.worked(rows);
                }
                Ok(())
            })?;
            self.coordinates.table(&points)
        })?;
        Ok(frame(py, columns))
    }

    /// What other rows say about the model, as JSON, and what is doubtful about them.
    #[pyo3(signature = (columns, *, threads, device, watch))]
    fn evaluate(
        &self,
        py: Python,
        columns: Columns,
        threads: usize,
        device: &str,
        watch: Option<&Bound<PyAny>>,
    ) -> PyResult<(String, Vec<String>)> {
        let (place, rows) = (Place::new(threads, device)?, columns.views());
        perform(py, place, watch, |context| {
            let running = RunningEvaluation::new(&self.model, self.model.settings().seed, context)?;
            let mut sums = RunningSums::default();
            let doubts = rows.points(&self.coordinates, "test rows", context, |points, quiet| {
                running.add(&mut sums, points, quiet)
            })?;
            let evaluation = running.finish(&sums, context)?;
            let mut all = serde_json::to_value(&evaluation).expect("an evaluation is plain data");
            all["rows"] = sums.rows.into();
            all["log_z"] = serde_json::to_value(self.model.log_z().value).expect("an estimate is plain data");
            all["below_uniform"] = serde_json::to_value(evaluation.below_uniform()).expect("an estimate is plain data");
            Ok((all.to_string(), doubts))
        })
    }

    /// Figures of the density: name, caption, SVG and PNG of each.
    #[pyo3(signature = (*, centre, points, earth, compass, title, scale, threads, device, watch))]
    fn figures<'py>(
        &self,
        py: Python<'py>,
        centre: Option<f64>,
        points: &str,
        earth: Option<bool>,
        compass: Option<bool>,
        title: Option<String>,
        scale: f64,
        threads: usize,
        device: &str,
        watch: Option<&Bound<PyAny>>,
    ) -> PyResult<Vec<Drawn<'py>>> {
        let place = Place::new(threads, device)?;
        let mut style = look(title.as_deref().unwrap_or_default(), &self.coordinates);
        style.centre = centre.unwrap_or(style.centre);
        style.earth = earth.unwrap_or(style.earth);
        style.points = match points {
            "few" => Points::Few,
            "all" => Points::All,
            "none" => Points::None,
            other => return Err(refused(format!("points is {other:?}: expected \"few\", \"all\" or \"none\""))),
        };
        style.bearings = match compass {
            Some(true) => Bearings::Compass,
            Some(false) => Bearings::Degrees,
            None => style.bearings,
        };
        let figures = perform(py, place, watch, |context| {
            let figures = density_figures(&self.model, &self.model.centres(), &style, context)?;
            let drawn = figures.into_iter().map(|f| (f.plot.svg(Theme::Paper), f.plot.png(scale), f));
            Ok(drawn.collect::<Vec<_>>())
        })?;
        Ok(figures.into_iter().map(|(svg, png, f)| (f.name, f.caption, svg, PyBytes::new(py, &png))).collect())
    }

    /// The density on a grid: names, columns, and the sum of density × cell.
    #[pyo3(signature = (size, *, threads, device, watch))]
    fn grid<'py>(
        &self,
        py: Python<'py>,
        size: Option<usize>,
        threads: usize,
        device: &str,
        watch: Option<&Bound<PyAny>>,
    ) -> PyResult<(Frame<'py>, f64)> {
        let place = Place::new(threads, device)?;
        let grid = perform(py, place, watch, |context| {
            context.stage("grid", 0, "cells", || DensityGrid::of(&self.model, &self.coordinates, size, context))
        })?;
        Ok((frame(py, grid.columns), grid.total))
    }
}

impl Fitted {
    /// A model that was just fitted.
    pub(crate) fn of(model: Model, coordinates: Coordinates, summary: FitSummary, config: Config) -> Self {
        Fitted { model, coordinates, summary: Some(summary), config: Some(config) }
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    fn make_report(&self, summary: &FitSummary, config: &Config, context: &Context) -> Result<Report, Error> {
        fit_report(summary, &self.model, &self.model.centres(), config, context)
    }
}

/// The columns of numbers of a file, or of a data set by its name.
#[pyfunction]
pub fn table<'py>(py: Python<'py>, name: &str) -> PyResult<Frame<'py>> {
    let input = locate(name).map_err(raised)?;
    let table = Table::read(&input, &TableOptions::default()).map_err(raised)?;
    Ok(frame(py, table.columns.into_iter().filter(Column::is_numeric).collect()))
}

/// Columns as Python's.
fn frame(py: Python<'_>, columns: Vec<Column>) -> Frame<'_> {
    columns.into_iter().map(|column| (column.name, column.values.into_pyarray(py))).unzip()
}
