//! Runs a plan on a card: kernels compiled at once, steps recorded as graphs, values left where they are.

use super::Trouble;
use super::driver::{Code, Gpu, Graph, Memory, Stream};
use super::plan::{Home, Param, Plan};
use crate::device::BadIndex;
use crate::inputs::{Clock, Inputs, Named};
use crate::math::Real;
use crate::random::Key;
use crate::state::{Lazy, Remote, State, Value};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Steps recorded in one graph, when many are run (even: variables are where they were before).
const BATCH: u32 = 16;

/// Where kernels note an index outside its table (see the prelude), in numbers of eight bytes: after the clock and what fills it up.
const NOTE: usize = 1;

/// What kernels of a program noted.
struct Notes {
    /// The clock, and beside it the notes.
    clock: Memory,
    /// Whether any kernel ever notes something.
    kept: bool,
}

impl Notes {
    /// An error if any run so far met an index outside its table.
    fn check(&self, stream: &Stream) -> Result<(), Trouble> {
        if !self.kept {
            return Ok(());
        }
        self.clock.download::<u64>(stream, NOTE, 1)?.into_iter().try_for_each(|note| BadIndex(note).check())
    }
}

/// A value on the card that a state refers to.
struct Resident {
    memory: Arc<Memory>,
    stream: Arc<Stream>,
    notes: Arc<Notes>,
    len: usize,
}

impl<T: Real> Remote<T> for Resident {
    fn fetch(&self) -> Result<Vec<T>, Trouble> {
        let values = self.memory.download(&self.stream, 0, self.len)?;
        self.notes.check(&self.stream)?;
        Ok(values)
    }
}

/// A variable: where it is before and after a step (the same place, if it is never updated).
struct Variable<T> {
    memory: [Option<Arc<Memory>>; 2],
    /// What is there: the stamp of the state's value.
    holds: Option<u64>,
    /// True if all replicas share one copy.
    shared: bool,
    /// What states were told of it after the last run.
    published: Option<Arc<Lazy<T>>>,
}

impl<T: Real> Variable<T> {
    /// Before the card's copy is overwritten, those who still refer to it get theirs.
    fn evict(&mut self) -> Result<(), Trouble> {
        if let Some(lazy) = self.published.as_ref().filter(|lazy| Arc::strong_count(lazy) > 1) {
            lazy.get()?;
        }
        self.published = None;
        Ok(())
    }
}

/// An input of a run.
#[derive(Default)]
struct Input {
    memory: Option<Memory>,
    shared: bool,
}

impl Input {
    /// Copies what is given to the card; true if its place changed.
    fn bind<V: Copy>(
        &mut self,
        (values, shared): (&[V], bool),
        gpu: &Arc<Gpu>,
        stream: &Stream,
    ) -> Result<bool, Trouble> {
        let moved = self.memory.is_none() || self.shared != shared;
        if moved {
            *self = Input { memory: Some(Memory::new(gpu, size_of_val(values))?), shared };
        }
        if let Some(memory) = &self.memory {
            memory.upload(stream, 0, values)?;
        }
        Ok(moved)
    }

    fn address(&self) -> u64 {
        self.memory.as_ref().map_or(0, |m| m.address)
    }
}

/// The state of a program on a card.
///
/// Graphs come first: they are dropped before what they use.
pub(crate) struct Executor<T> {
    graphs: HashMap<(usize, u32), Graph>,
    kernels: Vec<Arc<Code>>,
    plan: Plan,
    memory: Memory,
    inputs: Vec<Input>,
    bytes: Vec<Input>,
    variables: Vec<Variable<T>>,
    /// Which of its two places holds each updated variable.
    turn: usize,
    notes: Arc<Notes>,
    keys: Memory,
    keyed: Option<(u64, u32)>,
    replicas: usize,
    results: Vec<OnceCell<Vec<T>>>,
    stream: Arc<Stream>,
    gpu: Arc<Gpu>,
}

impl<T> Drop for Executor<T> {
    /// Whatever is freed now is used no more: the last run may still be going on.
    fn drop(&mut self) {
        let _ = self.stream.wait(); // a lost card does nothing any more
    }
}

impl<T: Real> Executor<T> {
    /// A plan with its kernels, and the memory that it asks for.
    pub(super) fn new(
        plan: Plan,
        kernels: Vec<Arc<Code>>,
        memory: Memory,
        index: usize,
        replicas: usize,
    ) -> Result<Self, Trouble> {
        let gpu = Gpu::open(index)?;
        let stream = Arc::new(Stream::new(&gpu)?);
        for (at, values) in &plan.constants {
            let values: Vec<T> = values.iter().map(|&v| T::from_f64(v)).collect();
            memory.upload(&stream, *at, &values)?;
        }
        let variables = plan.variables.iter().map(|_| Variable {
            memory: [None, None],
            holds: None,
            shared: false,
            published: None,
        });
        let nowhere = |named: &[Named]| named.iter().map(|_| Input::default()).collect();
        Ok(Executor {
            graphs: HashMap::new(),
            kernels,
            memory,
            inputs: nowhere(&plan.inputs),
            bytes: nowhere(&plan.bytes),
            variables: variables.collect(),
            turn: 0,
            notes: Arc::new(Notes { clock: Memory::new(&gpu, 16)?, kept: plan.checks }),
            keys: Memory::new(&gpu, 8 * replicas)?,
            keyed: None,
            replicas,
            results: plan.outputs.iter().map(|_| OnceCell::new()).collect(),
            plan,
            stream,
            gpu,
        })
    }

    /// Runs steps with the same inputs; without any, with those of the run before.
    pub fn run(
        &mut self,
        state: &mut State<T>,
        inputs: Option<Inputs<T>>,
        clock: Clock,
        steps: u32,
    ) -> Result<(), Trouble> {
        self.gpu.enter()?;
        if let Some(inputs) = inputs {
            self.bind_inputs(inputs)?;
        }
        if steps == 0 {
            return Ok(());
        }
        self.bind_variables(state)?;
        self.bind_keys(clock.seed, state.numbers().start)?;
        self.prepare(steps)?;
        self.results.iter_mut().for_each(|r| drop(r.take()));
        let launched = self.claim(state).and_then(|()| self.launch(clock.step, steps));
        match &launched {
            Ok(()) => self.publish(state),
            Err(why) => self.lose(state, why),
        }
        launched
    }

    /// Records what the steps will launch, so that the card has room for it before anything changes.
    fn prepare(&mut self, steps: u32) -> Result<(), Trouble> {
        let whole = [(self.turn, BATCH)].into_iter().filter(|_| steps >= BATCH); // an even number: the turn stays
        let single = (0..steps % BATCH).take(2).map(|k| ((self.turn + k as usize) % 2, 1));
        for (turn, count) in whole.chain(single) {
            if !self.graphs.contains_key(&(turn, count)) {
                let graph = self.record(turn, count)?;
                self.graphs.insert((turn, count), graph);
            }
        }
        Ok(())
    }

    fn launch(&mut self, first: u32, steps: u32) -> Result<(), Trouble> {
        let mut done = 0;
        while done < steps {
            let count = if steps - done >= BATCH { BATCH } else { 1 };
            self.stream.set(&self.notes.clock, first.wrapping_add(done))?;
            self.stream.launch(&self.graphs[&(self.turn, count)])?;
            self.turn = (self.turn + count as usize) % 2;
            done += count;
        }
        Ok(())
    }

    /// The values of an output after the last run.
    pub fn output(&self, k: usize) -> Result<&[T], Trouble> {
        let (at, shape) = &self.plan.outputs[k];
        if let Some(values) = self.results[k].get() {
            return Ok(values);
        }
        let values = self.memory.download(&self.stream, *at, shape.len() * self.replicas)?;
        self.notes.check(&self.stream)?;
        Ok(self.results[k].get_or_init(|| values))
    }

    pub fn describe(&self) -> String {
        let Plan { summary, kernels, memory, .. } = &self.plan;
        format!("{} kernels, {} MB\n{summary}", kernels.len(), (memory * size_of::<T>()) >> 20)
    }

    pub fn stages(&self) -> usize {
        self.plan.kernels.len()
    }

    /// Microseconds that each kernel takes, launched over and over by itself. Results of the last run are lost.
    pub fn profile(&mut self) -> Result<Vec<f64>, Trouble> {
        const TIMES: u32 = 50;
        let mut all = vec![];
        for (kernel, code) in self.plan.kernels.iter().zip(&self.kernels) {
            let mut arguments = vec![self.notes.clock.address, 0, self.keys.address];
            arguments.extend(kernel.params.iter().map(|&p| self.argument(p, self.turn)));
            let graph = self.stream.record(|recorder| {
                (0..TIMES).try_for_each(|_| recorder.launch(code, kernel.blocks, kernel.shared, &mut arguments))
            })?;
            let mut rounds = vec![];
            for _ in 0..5 {
                self.stream.wait()?;
                let start = std::time::Instant::now();
                self.stream.launch(&graph)?;
                self.stream.wait()?;
                rounds.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES));
            }
            all.push(rounds.into_iter().fold(f64::INFINITY, f64::min));
        }
        Ok(all)
    }

    fn bind_inputs(&mut self, inputs: Inputs<T>) -> Result<(), Trouble> {
        let mut moved = false;
        for (named, input) in self.plan.inputs.iter().zip(&mut self.inputs) {
            moved |= input.bind(named.among(inputs.reals, self.replicas), &self.gpu, &self.stream)?;
        }
        for (named, input) in self.plan.bytes.iter().zip(&mut self.bytes) {
            moved |= input.bind(named.among(inputs.bytes, self.replicas), &self.gpu, &self.stream)?;
        }
        if moved {
            self.graphs.clear(); // they hold the old address
        }
        Ok(())
    }

    fn bind_variables(&mut self, state: &mut State<T>) -> Result<(), Trouble> {
        assert!(state.replicas() == self.replicas, "run: {} replicas, not {}", state.replicas(), self.replicas);
        for (slot, Named { name, shape }) in self.plan.variables.iter().enumerate() {
            let (updated, variable) = (self.plan.updated.contains(&slot), &mut self.variables[slot]);
            let value = state.value(name).unwrap_or_else(|| panic!("run: the state has no variable `{name}`"));
            let wanted = shape.len() * self.replicas;
            assert!(
                value.len() == wanted,
                "run: variable `{name}` of shape {shape} has {} values, not {wanted}",
                value.len()
            );
            if variable.holds == Some(value.stamp()) && variable.memory[0].is_some() {
                continue;
            }
            // A variable that no step changes need not be there once for each replica.
            let one = value.shared();
            let values = one.map_or_else(|| value.all(), Ok)?;
            let shared = one.is_some() && !updated && self.replicas > 1;
            if variable.memory[0].is_none() || variable.shared != shared {
                self.graphs.clear();
                let bytes = if shared { shape.len() } else { wanted } * size_of::<T>();
                let first = Arc::new(Memory::new(&self.gpu, bytes)?);
                let second = if updated { Arc::new(Memory::new(&self.gpu, bytes)?) } else { first.clone() };
                *variable = Variable { memory: [Some(first), Some(second)], holds: None, shared, published: None };
            } else {
                variable.evict()?;
                variable.holds = None; // until the new value is there
            }
            if let Some(memory) = &variable.memory[self.turn] {
                memory.upload(&self.stream, 0, values)?;
                if values.len() < wanted && !shared {
                    memory.repeat::<T>(&self.stream, values.len(), self.replicas)?;
                }
            }
            variable.holds = Some(value.stamp());
        }
        Ok(())
    }

    /// Takes this state's own references to what is about to change, and serves all others.
    fn claim(&mut self, state: &mut State<T>) -> Result<(), Trouble> {
        let unknown = Trouble::failed("the variables that a run on a GPU changes were lost with it");
        for &slot in &self.plan.updated {
            let name = &self.plan.variables[slot].name;
            if let (Some(value), Some(holds)) = (state.value_mut(name), self.variables[slot].holds) {
                value.forget(holds, &unknown);
            }
            self.variables[slot].evict()?;
        }
        Ok(())
    }

    /// Tells the state what became of the variables that it let go of, and forgets them here.
    fn lose(&mut self, state: &mut State<T>, why: &Trouble) {
        for &slot in &self.plan.updated {
            self.variables[slot].holds = None;
            if let Some(value) = state.value_mut(&self.plan.variables[slot].name) {
                value.lost(why);
            }
        }
    }

    /// Tells the state where its new values are.
    fn publish(&mut self, state: &mut State<T>) {
        for &slot in &self.plan.updated {
            let Named { name, shape } = &self.plan.variables[slot];
            let len = shape.len() * self.replicas;
            let variable = &mut self.variables[slot];
            let Some(memory) = variable.memory[self.turn].clone() else { continue };
            let resident = Resident { memory, stream: self.stream.clone(), notes: self.notes.clone(), len };
            let lazy = Arc::new(Lazy::new(Box::new(resident), len));
            let value = Value::remote(lazy.clone());
            variable.holds = Some(value.stamp());
            variable.published = Some(lazy);
            if let Some(old) = state.value_mut(name) {
                *old = value;
            }
        }
    }

    fn bind_keys(&mut self, seed: u64, first: u32) -> Result<(), Trouble> {
        if self.keyed != Some((seed, first)) {
            let keys: Vec<u32> = (first..).take(self.replicas).flat_map(|r| Key::new(seed, r).words()).collect();
            self.keys.upload(&self.stream, 0, &keys)?;
            self.keyed = Some((seed, first));
        }
        Ok(())
    }

    /// A graph of `count` steps, the first of which finds the variables in the places of `turn`.
    fn record(&self, turn: usize, count: u32) -> Result<Graph, Trouble> {
        self.stream.record(|recorder| {
            for step in 0..count {
                let turn = (turn + step as usize) % 2;
                for (kernel, code) in self.plan.kernels.iter().zip(&self.kernels) {
                    let mut arguments = vec![self.notes.clock.address, u64::from(step), self.keys.address];
                    arguments.extend(kernel.params.iter().map(|&p| self.argument(p, turn)));
                    recorder.launch(code, kernel.blocks, kernel.shared, &mut arguments)?;
                }
            }
            Ok(())
        })
    }

    fn argument(&self, param: Param, turn: usize) -> u64 {
        let variable = |slot: usize, turn: usize| self.variables[slot].memory[turn].as_ref().map_or(0, |m| m.address);
        match param {
            Param::Pointer(Home::Memory(at)) => self.memory.address + (at * size_of::<T>()) as u64,
            Param::Pointer(Home::Input(slot)) => self.inputs[slot].address(),
            Param::Pointer(Home::Bytes(slot)) => self.bytes[slot].address(),
            Param::Pointer(Home::Variable(slot)) => variable(slot, turn),
            Param::Pointer(Home::Next(slot)) => variable(slot, 1 - turn),
            Param::Stride(Home::Input(slot)) if !self.inputs[slot].shared => self.plan.inputs[slot].shape.len() as u64,
            Param::Stride(Home::Bytes(slot)) if !self.bytes[slot].shared => self.plan.bytes[slot].shape.len() as u64,
            Param::Stride(Home::Variable(slot)) if !self.variables[slot].shared => {
                self.plan.variables[slot].shape.len() as u64
            }
            Param::Stride(_) => 0,
            Param::Constant(bits) => bits,
        }
    }
}
