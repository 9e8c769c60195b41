//! Energies: given by a network that learns by an objective, or laws by name; and chains that sample them.

use crate::error::{raised, refused};
use crate::recipe::{Recipe, sampler};
use crate::work::{Place, perform};
use minvel::energy::{self, Energy, Mlp, Toy, ToyLaw};
use minvel::network::{Activation, Features};
use minvel::sampler::{Adaptation, Chains};
use minvel::train::{Context, Learner};
use minvel::{Error, Manifold, manifold};
use minvel_engine::math::Real;
use minvel_engine::optim::Optimiser;
use minvel_engine::{Clock, Graph, State, grad};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray4, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard};

/// Most rows of a program that evaluates an energy.
const ROWS: usize = 4096;
/// Acceptance that the step of a sampler is adapted to.
const ACCEPTANCE: f64 = 0.7;

/// Name, shape and numbers of a variable.
type Parameters<'py> = (String, Vec<usize>, Bound<'py, PyArray1<f32>>);
/// A number for each point, and a vector for each.
type NumbersAndRows<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f64>>);
/// Draws `[draws, 1, chains, m]`, acceptance (none where nothing is tested) and the step.
type Drawn<'py> = (Bound<'py, PyArray4<f64>>, Option<f64>, f64);

/// Which chains are to draw, and how.
#[derive(FromPyObject)]
struct Plan<'py> {
    method: String,
    chains: usize,
    draws: u32,
    warm_up: u32,
    thin: u32,
    step: f64,
    bandwidth: f64,
    seed: u64,
    start: Option<PyReadonlyArray2<'py, f64>>,
}

/// The activation of a name.
fn activation(name: &str) -> PyResult<Activation> {
    serde_json::from_value(serde_json::Value::from(name)).map_err(refused)
}

/// An energy given by a network, while it learns and afterwards.
#[pyclass(frozen, module = "minvel._native")]
pub struct NetworkEnergy {
    manifold: Arc<dyn Manifold>,
    model: Mlp,
    learner: Mutex<Learner<'static>>,
    place: Place,
}

#[pymethods]
impl NetworkEnergy {
    /// Compiles a step of learning; nothing is learnt yet.
    #[new]
    #[pyo3(signature = (points, *, on, objective, hidden, activation_name, rate, batch, seed, threads, device))]
    fn new(
        py: Python,
        points: PyReadonlyArray2<f64>,
        on: &str,
        objective: Recipe,
        hidden: Vec<usize>,
        activation_name: &str,
        rate: f64,
        batch: usize,
        seed: u64,
        threads: usize,
        device: &str,
    ) -> PyResult<Self> {
        let place = Place::new(threads, device)?;
        let manifold = manifold::parse(on).map_err(refused)?;
        let objective = objective.objective(&manifold)?;
        let model = Mlp::new("energy", Features::of(manifold.clone()), &hidden, activation(activation_name)?);
        let points: Vec<f64> = points.as_array().iter().copied().collect();
        let m = manifold.ambient();
        for (row, point) in points.chunks(m).enumerate() {
            manifold.check(point).map_err(|why| refused(format!("row {row} (counted from 0): {why}")))?;
        }
        let learner = perform(py, place, None, |context| {
            let learning = Learner::of(&model, &*objective).points(&points, m);
            learning.batch(batch).optimiser(Optimiser::adam(rate)).seed(seed).start(context)
        })?;
        Ok(NetworkEnergy { manifold, model, learner: Mutex::new(learner), place })
    }

    /// Learns until so many steps are made in all; the loss of the last one.
    fn learn(&self, py: Python, until: u32) -> PyResult<f64> {
        let mut guard = self.learner()?;
        let learner: &mut Learner = &mut guard;
        let training = perform(py, self.place, None, move |context| learner.train("energy", until, context))?;
        if let Some(divergence) = training.divergences.first() {
            return Err(raised(divergence.clone().into()));
        }
        Ok(training.looks.last().map_or(f64::NAN, |look| look.loss[0]))
    }

    /// Steps made.
    #[getter]
    fn steps(&self) -> PyResult<u32> {
        Ok(self.learner()?.steps())
    }

    /// Energies of points, and their Riemannian gradients.
    fn values<'py>(&self, py: Python<'py>, x: PyReadonlyArray2<f64>) -> PyResult<NumbersAndRows<'py>> {
        Subject { energy: &self.model, manifold: &self.manifold, place: self.place }.values(py, &x, self.state()?)
    }

    /// Chains of a sampler.
    #[pyo3(signature = (plan, watch))]
    fn sample<'py>(&self, py: Python<'py>, plan: Plan, watch: Option<&Bound<PyAny>>) -> PyResult<Drawn<'py>> {
        let subject = Subject { energy: &self.model, manifold: &self.manifold, place: self.place };
        subject.chains(py, plan, self.state()?, watch)
    }

    /// The parameters by name.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Vec<Parameters<'py>>> {
        let state = self.state()?;
        let own = |p: minvel::network::Parameter| {
            let values = state.get(&p.name).expect("it is learnt").to_vec();
            (p.name, p.dims, values.into_pyarray(py))
        };
        Ok(self.model.parameters().into_iter().map(own).collect())
    }
}

impl NetworkEnergy {
    /// The learner, unless another thread is at work with it: waiting here, with Python's lock, would be for ever.
    fn learner(&self) -> PyResult<MutexGuard<'_, Learner<'static>>> {
        self.learner.try_lock().map_err(|_| PyRuntimeError::new_err("the energy is in use by another thread"))
    }

    /// The parameters alone.
    fn state(&self) -> PyResult<State<f32>> {
        let learner = self.learner()?;
        let mut own = State::new(1);
        for p in [self.model.parameters(), self.model.followers()].concat() {
            let values = learner.state().get(&p.name).expect("it is learnt");
            own.set(&p.name, values, values.len());
        }
        Ok(own)
    }
}

/// A law by name, of which everything is known.
#[pyclass(frozen, module = "minvel._native")]
pub struct NamedLaw {
    law: Toy,
    place: Place,
}

#[pymethods]
impl NamedLaw {
    /// In its usual dimension, or in a larger one.
    #[new]
    fn new(name: &str, dimension: Option<usize>) -> PyResult<Self> {
        let law = Toy::new(name.parse::<ToyLaw>().map_err(refused)?);
        let law = dimension.map_or(Ok(law.clone()), |d| law.in_dimension(d)).map_err(refused)?;
        Ok(NamedLaw { law, place: Place { threads: 0, device: minvel::Device::Cpu } })
    }

    #[getter]
    fn manifold(&self) -> String {
        self.law.manifold.to_string()
    }

    /// log Z.
    #[getter]
    fn log_partition(&self) -> Option<f64> {
        self.law.log_partition()
    }

    /// E‖grad E‖² under the law, where it is known and finite.
    #[getter]
    fn information(&self) -> Option<f64> {
        self.law.information
    }

    /// Exact and independent points.
    fn draw<'py>(&self, py: Python<'py>, number: usize, seed: u64) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let points = perform(py, self.place, None, |_| {
            let drawn = energy::points(&self.law, number, seed);
            drawn.ok_or_else(|| Error::config(format!("the law {} cannot be drawn from", self.law.kind)))
        })?;
        points.into_pyarray(py).reshape([number, self.law.manifold.ambient()])
    }

    /// Energies of points, and their Riemannian gradients.
    fn values<'py>(&self, py: Python<'py>, x: PyReadonlyArray2<f64>) -> PyResult<NumbersAndRows<'py>> {
        self.subject().values(py, &x, State::<f64>::new(1))
    }

    /// Chains of a sampler.
    #[pyo3(signature = (plan, watch))]
    fn sample<'py>(&self, py: Python<'py>, plan: Plan, watch: Option<&Bound<PyAny>>) -> PyResult<Drawn<'py>> {
        self.subject().chains(py, plan, State::<f64>::new(1), watch)
    }
}

impl NamedLaw {
    fn subject(&self) -> Subject<'_> {
        Subject { energy: &self.law, manifold: &self.law.manifold, place: self.place }
    }
}

/// An energy on a manifold; its parameters are given when it is used.
struct Subject<'a> {
    energy: &'a dyn Energy,
    manifold: &'a Arc<dyn Manifold>,
    place: Place,
}

impl Subject<'_> {
    fn values<'py, T: Real>(
        &self,
        py: Python<'py>,
        x: &PyReadonlyArray2<f64>,
        state: State<T>,
    ) -> PyResult<NumbersAndRows<'py>> {
        let (count, m) = (x.as_array().nrows(), self.manifold.ambient());
        let x: Vec<T> = x.as_array().iter().map(|x| T::from_f64(*x)).collect();
        let (values, slopes) = perform(py, self.place, None, |context| self.evaluate(&x, count, state, context))?;
        Ok((values.into_pyarray(py), slopes.into_pyarray(py).reshape([count, m])?))
    }

    fn evaluate<T: Real>(
        &self,
        x: &[T],
        count: usize,
        mut state: State<T>,
        context: &Context,
    ) -> Result<(Vec<f64>, Vec<f64>), Error> {
        let (m, rows, graph) = (self.manifold.ambient(), ROWS.min(count.max(1)), Graph::new());
        let at = graph.input_rows("x", rows, [m]);
        let energy = self.energy.energy(at);
        let slope = self.manifold.gradient(at, grad(energy, &[at])[0]);
        let mut program = graph.try_compile::<T>(&[energy, slope], &[], &context.options(1))?;
        let (mut values, mut slopes) = (Vec::with_capacity(count), Vec::with_capacity(count * m));
        for first in (0..count).step_by(rows) {
            context.go_on()?;
            // the last rows again where there are too few for a block
            let from = first.min(count - rows.min(count));
            program.try_run(&mut state, &[("x", &x[from * m..][..rows * m])], Clock { seed: 0, step: 0 })?;
            values.extend(program.try_output(0)?[first - from..].iter().map(|v| v.to_f64()));
            slopes.extend(program.try_output(1)?[(first - from) * m..].iter().map(|v| v.to_f64()));
        }
        Ok((values, slopes))
    }

    fn chains<'py, T: Real>(
        &self,
        py: Python<'py>,
        plan: Plan,
        mut state: State<T>,
        watch: Option<&Bound<PyAny>>,
    ) -> PyResult<Drawn<'py>> {
        let sampler = sampler(&plan.method, self.manifold, plan.bandwidth)?;
        let start: Option<Vec<T>> = plan.start.map(|x| x.as_array().iter().map(|x| T::from_f64(*x)).collect());
        let setup = Chains {
            count: plan.chains,
            step: plan.step,
            adaptation: Adaptation::RobbinsMonro { target: ACCEPTANCE },
            warm_up: plan.warm_up,
            draws: plan.draws,
            thin: plan.thin,
            replicas: 1,
            threads: self.place.threads,
            seed: plan.seed,
        };
        let drawn = perform(py, self.place, watch, |context| {
            let graph = Graph::new();
            let mut walk = setup.compile::<T>(&graph, &*sampler, &|x| self.energy.energy(x))?;
            walk.watched(&mut state, &[], start.as_deref(), context)
        })?;
        let points = drawn.points.into_pyarray(py).reshape(drawn.shape)?;
        Ok((points, drawn.acceptance.first().copied(), drawn.steps[0]))
    }
}
