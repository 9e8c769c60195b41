//! Programs: expressions compiled once and run many times, and the state they work on.

use crate::cpu::{self, Clock, Executor, External, Isa, Named};
use crate::expr::Expr;
use crate::graph::Graph;
use crate::math::Real;
use crate::op::Op;
use std::num::NonZero;
use std::ops::Range;

/// How a program is compiled.
#[derive(Clone, Debug)]
pub struct Options {
    /// Independent replicas (seeds) that run side by side.
    pub replicas: usize,
    /// Threads; 0 means `RAYON_NUM_THREADS`, or else all cores. Results do not depend on it.
    pub threads: usize,
    /// Instruction set; `None` means the best this machine has. Results do not depend on it.
    pub isa: Option<Isa>,
    /// Largest number of rows in a tile, a multiple of 16; 0 means chosen by the size of the program.
    pub tile: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { replicas: 1, threads: 0, isa: None, tile: 0 }
    }
}

impl Options {
    fn threads(&self) -> usize {
        let from_environment = || std::env::var("RAYON_NUM_THREADS").ok()?.parse().ok().filter(|&n: &usize| n > 0);
        let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
        if self.threads > 0 { self.threads } else { from_environment().unwrap_or_else(cores) }
    }
}

/// The variables that programs read and update, by name; `replicas` values of each.
#[derive(Clone, Debug, PartialEq)]
pub struct State<T> {
    numbers: Range<u32>,
    values: Vec<(String, Vec<T>)>,
}

impl<T: Real> State<T> {
    /// No variables yet, for replicas 0, 1, …, `replicas` − 1.
    pub fn new(replicas: usize) -> Self {
        Self::of_replicas(0..replicas as u32)
    }

    /// No variables yet, for replicas with these numbers: replica r gives the same bits whoever runs beside it.
    pub fn of_replicas(numbers: Range<u32>) -> Self {
        State { numbers, values: vec![] }
    }

    /// Number of replicas.
    pub fn replicas(&self) -> usize {
        self.numbers.len()
    }

    /// The numbers of the replicas: what random numbers are keyed by, beside the seed.
    pub fn numbers(&self) -> Range<u32> {
        self.numbers.clone()
    }

    /// Sets a variable: values of all replicas one after another, or of one, repeated for all.
    pub fn set(&mut self, name: &str, values: &[T], len: usize) {
        let full = match values.len() {
            n if n == len * self.replicas() => values.to_vec(),
            n if n == len => values.repeat(self.replicas()),
            n => panic!("state: `{name}` needs {len} values, or {} for all replicas, not {n}", len * self.replicas()),
        };
        match self.values.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => *old = full,
            None => self.values.push((name.to_string(), full)),
        }
    }

    /// The values of a variable, replica after replica.
    pub fn get(&self, name: &str) -> Option<&[T]> {
        self.values.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_slice())
    }

    /// Names and values of all variables, in the order they were set.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[T])> {
        self.values.iter().map(|(n, v)| (n.as_str(), v.as_slice()))
    }
}

/// A compiled program. Running it allocates nothing.
pub struct Program<T: Real> {
    executor: Executor<T>,
    replicas: usize,
    inputs: Vec<External<T>>,
    variables: Vec<External<T>>,
    next: Vec<External<T>>,
    /// New values of updated variables, exchanged with the state after each step.
    fresh: Vec<Vec<T>>,
}

/// Bytes of a worker's arena that stay in the second-level cache beside the weights.
const ARENA: usize = 512 << 10;

impl Graph {
    /// Compiles a program that computes `outputs` and gives each variable of `updates` a new value.
    pub fn compile<T: Real>(&self, outputs: &[Expr], updates: &[(Expr, Expr)], options: &Options) -> Program<T> {
        assert!(options.replicas > 0, "compile: at least one replica");
        assert!(options.tile.is_multiple_of(16), "compile: a tile of {} rows is not a multiple of 16", options.tile);
        for (variable, value) in updates {
            let node = variable.node();
            assert!(
                matches!(node.op, Op::Variable(_)),
                "compile: {variable:?} is not a variable and cannot be updated"
            );
            assert!(node.shape == value.shape(), "compile: {variable:?} cannot become {value:?}");
        }
        let plan = |pitch| cpu::plan(self, outputs, updates, options.replicas, pitch);
        let mut pitch = if options.tile > 0 { options.tile } else { 64 };
        let mut best = plan(pitch);
        while options.tile == 0 && pitch > 16 && best.arena * size_of::<T>() > ARENA {
            pitch /= 2;
            best = plan(pitch);
        }
        Program::new(best, options)
    }
}

impl<T: Real> Program<T> {
    fn new(plan: cpu::Plan, options: &Options) -> Self {
        let nowhere = |named: &[Named]| {
            named.iter().map(|n| External { ptr: std::ptr::null_mut(), per_replica: n.shape.len() }).collect::<Vec<_>>()
        };
        let (inputs, variables) = (nowhere(&plan.inputs), nowhere(&plan.variables));
        let next = variables.clone();
        let fresh = plan
            .variables
            .iter()
            .enumerate()
            .map(|(i, v)| {
                let len = if plan.updated.contains(&i) { v.shape.len() * options.replicas } else { 0 };
                vec![T::ZERO; len]
            })
            .collect();
        let isa = options.isa.unwrap_or_else(Isa::detect);
        assert!(Isa::available().contains(&isa), "compile: this machine does not have {isa}");
        let executor = Executor::new(plan, options.replicas, options.threads(), isa);
        Program { executor, replicas: options.replicas, inputs, variables, next, fresh }
    }

    /// Runs one step. Inputs are given by name: values of all replicas one after another, or of one, shared by all.
    pub fn run(&mut self, state: &mut State<T>, inputs: &[(&str, &[T])], clock: Clock) {
        self.bind_inputs(inputs);
        self.step(state, clock);
    }

    /// Runs a range of steps with the same inputs; outputs are those of the last.
    pub fn run_steps(&mut self, state: &mut State<T>, inputs: &[(&str, &[T])], seed: u64, steps: Range<u32>) {
        self.bind_inputs(inputs);
        for step in steps {
            self.step(state, Clock { seed, step });
        }
    }

    fn step(&mut self, state: &mut State<T>, clock: Clock) {
        self.bind_variables(state);
        T::run_stages(&mut self.executor, clock, state.numbers.start, &self.inputs, &self.variables, &self.next);
        for &slot in &self.executor.plan.updated {
            let name = &self.executor.plan.variables[slot].name;
            let value = state.values.iter_mut().find(|(n, _)| n == name).map(|(_, v)| v);
            std::mem::swap(value.expect("bound above"), &mut self.fresh[slot]);
        }
    }

    fn bind_inputs(&mut self, inputs: &[(&str, &[T])]) {
        for (slot, named) in self.executor.plan.inputs.iter().enumerate() {
            let Named { name, shape } = named;
            let given = inputs.iter().find(|(n, _)| n == name);
            let (_, values) = given.unwrap_or_else(|| panic!("run: no value given for input `{name}`"));
            let per_replica = match values.len() {
                n if n == shape.len() => 0,
                n if n == shape.len() * self.replicas => shape.len(),
                n => panic!("run: input `{name}` of shape {shape} needs {} values, not {n}", shape.len()),
            };
            // Inputs are only read; the pointer is mutable because all buffers are addressed alike.
            self.inputs[slot] = External { ptr: values.as_ptr().cast_mut(), per_replica };
        }
    }

    fn bind_variables(&mut self, state: &mut State<T>) {
        assert!(state.replicas() == self.replicas, "run: {} replicas, not {}", state.replicas(), self.replicas);
        for (slot, Named { name, shape }) in self.executor.plan.variables.iter().enumerate() {
            let value = state.values.iter_mut().find(|(n, _)| n == name);
            let (_, value) = value.unwrap_or_else(|| panic!("run: the state has no variable `{name}`"));
            let len = shape.len() * self.replicas;
            assert!(
                value.len() == len,
                "run: variable `{name}` of shape {shape} has {} values, not {len}",
                value.len()
            );
            self.variables[slot].ptr = value.as_mut_ptr();
            self.next[slot].ptr = self.fresh[slot].as_mut_ptr();
        }
    }

    /// The values of output `k` after the last run, row-major, replica after replica.
    pub fn output(&self, k: usize) -> &[T] {
        let (buffer, shape) = &self.executor.plan.outputs[k];
        let base = self.executor.plan.buffers[*buffer].base;
        &self.executor.memory[base..base + shape.len() * self.replicas]
    }

    /// The plan in words: stages, instructions, memory.
    pub fn describe(&self) -> String {
        self.executor.plan.to_string()
    }

    /// Number of stages: where rows meet, a new one begins.
    pub fn stages(&self) -> usize {
        self.executor.plan.stages.len()
    }
}
