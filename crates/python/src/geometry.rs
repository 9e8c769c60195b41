//! The geometry of a manifold on arrays: each function is compiled for some rows and run over all of them, in f64.

use crate::error::refused;
use crate::work::{Place, perform};
use minvel::train::Context;
use minvel::{Device, Error, Manifold, manifold};
use minvel_engine::{Clock, Expr, Graph, Options, State};
use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;
use std::sync::Arc;

/// Most rows of a program.
const ROWS: usize = 4096;

type Rows<'py> = PyReadonlyArray2<'py, f64>;
type Outcome<'py> = PyResult<Bound<'py, PyArray2<f64>>>;

/// A manifold by its name. Points and tangent vectors are rows in the coordinates of the manifold.
#[pyclass(frozen, module = "minvel._native")]
pub struct Geometry(Arc<dyn Manifold>);

#[pymethods]
impl Geometry {
    #[new]
    fn new(name: &str) -> PyResult<Self> {
        Ok(Geometry(manifold::parse(name).map_err(refused)?))
    }

    #[getter]
    fn name(&self) -> String {
        self.0.to_string()
    }

    #[getter]
    fn dim(&self) -> usize {
        self.0.dim()
    }

    #[getter]
    fn ambient(&self) -> usize {
        self.0.ambient()
    }

    #[getter]
    fn volume(&self) -> Option<f64> {
        self.0.volume()
    }

    #[getter]
    fn injectivity(&self) -> f64 {
        self.0.injectivity()
    }

    #[getter]
    fn origin(&self) -> Vec<f64> {
        self.0.origin()
    }

    /// What is wrong with the first row that is no point, if one is not.
    fn fault(&self, x: Rows) -> Option<String> {
        let x = x.as_array();
        let wrong = |row: numpy::ndarray::ArrayView1<f64>| self.0.check(&row.to_vec()).err();
        x.rows().into_iter().enumerate().find_map(|(i, row)| wrong(row).map(|why| format!("row {i}: {why}")))
    }

    fn exp<'py>(&self, py: Python<'py>, x: Rows<'py>, v: Rows<'py>) -> Outcome<'py> {
        self.map(py, &[x, v], |m, a| m.exp(a[0], a[1]))
    }

    fn log<'py>(&self, py: Python<'py>, x: Rows<'py>, y: Rows<'py>) -> Outcome<'py> {
        self.map(py, &[x, y], |m, a| m.log(a[0], a[1]))
    }

    fn distance<'py>(&self, py: Python<'py>, x: Rows<'py>, y: Rows<'py>) -> Outcome<'py> {
        self.map(py, &[x, y], |m, a| m.distance(a[0], a[1]).expand(-1))
    }

    fn inner<'py>(&self, py: Python<'py>, x: Rows<'py>, u: Rows<'py>, v: Rows<'py>) -> Outcome<'py> {
        self.map(py, &[x, u, v], |m, a| m.inner(a[0], a[1], a[2]).expand(-1))
    }

    fn project<'py>(&self, py: Python<'py>, x: Rows<'py>, v: Rows<'py>) -> Outcome<'py> {
        self.map(py, &[x, v], |m, a| m.project(a[0], a[1]))
    }

    fn settle<'py>(&self, py: Python<'py>, x: Rows<'py>) -> Outcome<'py> {
        self.map(py, &[x], |m, a| m.settle(a[0]))
    }

    fn log_volume<'py>(&self, py: Python<'py>, x: Rows<'py>, v: Rows<'py>) -> Outcome<'py> {
        self.map(py, &[x, v], |m, a| m.exp_log_volume(a[0], a[1]).expand(-1))
    }

    /// Points of the base law: uniform where the manifold is compact, else (wrapped) normal.
    fn sample<'py>(&self, py: Python<'py>, number: usize, seed: u64) -> Outcome<'py> {
        let values = perform(py, Place { threads: 0, device: Device::Cpu }, None, |context| {
            let rows = ROWS.min(number.max(1));
            let graph = Graph::new();
            let mut program = graph.try_compile::<f64>(
                &[self.0.sample_base(&graph, rows, 0)],
                &[],
                &Options { device: Device::Cpu, ..Options::default() },
            )?;
            let (mut state, mut values) = (State::new(1), Vec::with_capacity(number * self.0.ambient()));
            for step in 0..number.div_ceil(rows) {
                context.go_on()?;
                program.run(&mut state, &[], Clock { seed, step: step as u32 });
                values.extend_from_slice(program.output(0));
            }
            values.truncate(number * self.0.ambient());
            Ok(values)
        })?;
        values.into_pyarray(py).reshape([number, self.0.ambient()])
    }
}

impl Geometry {
    /// A function of rows, all of them of the manifold's width.
    fn map<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Rows<'py>],
        function: impl for<'g> Fn(&dyn Manifold, &[Expr<'g>]) -> Expr<'g> + Send,
    ) -> Outcome<'py> {
        let m = self.0.ambient();
        let count = arguments.iter().map(|a| a.as_array().nrows()).max().unwrap_or(0);
        let given: Vec<Vec<f64>> = arguments.iter().map(|a| a.as_array().iter().copied().collect()).collect();
        if let Some(wrong) = arguments.iter().find(|a| a.as_array().ncols() != m || a.as_array().nrows() != count) {
            let (rows, columns) = wrong.as_array().dim();
            return Err(refused(format!("an argument has the shape ({rows}, {columns}): expected ({count}, {m})")));
        }
        let place = Place { threads: 0, device: Device::Cpu };
        let (values, width) = perform(py, place, None, |context| run(&*self.0, &given, count, context, function))?;
        values.into_pyarray(py).reshape([count, width])
    }
}

/// Values of a function of rows, and how many of them a row has.
fn run(
    manifold: &dyn Manifold,
    given: &[Vec<f64>],
    count: usize,
    context: &Context,
    function: impl for<'g> Fn(&dyn Manifold, &[Expr<'g>]) -> Expr<'g>,
) -> Result<(Vec<f64>, usize), Error> {
    let (m, rows, graph) = (manifold.ambient(), ROWS.min(count.max(1)), Graph::new());
    let names: Vec<String> = (0..given.len()).map(|k| format!("argument-{k}")).collect();
    let inputs: Vec<Expr> = names.iter().map(|name| graph.input_rows(name, rows, [m])).collect();
    let value = function(manifold, &inputs);
    let width = value.shape().features();
    let mut program =
        graph.try_compile::<f64>(&[value], &[], &Options { device: Device::Cpu, ..Options::default() })?;
    let (mut state, mut values) = (State::new(1), Vec::with_capacity(count * width));
    for first in (0..count).step_by(rows) {
        context.go_on()?;
        // the last rows again where there are too few for a block
        let start = first.min(count - rows.min(count));
        let block: Vec<(&str, &[f64])> =
            names.iter().zip(given).map(|(name, all)| (name.as_str(), &all[start * m..][..rows * m])).collect();
        program.run(&mut state, &block, Clock { seed: 0, step: 0 });
        values.extend_from_slice(&program.output(0)[(first - start) * width..]);
    }
    Ok((values, width))
}
