//! A plan with its executor, bound to the inputs of a run and the variables of a state.

use super::isa::Isa;
use super::plan::{Named, Plan};
use super::run::{Clock, Executor, External};
use crate::math::Real;
use crate::state::State;
use std::ops::Range;

/// A program on the CPU.
pub(crate) struct Bound<T: Real> {
    executor: Executor<T>,
    replicas: usize,
    inputs: Vec<External<T>>,
    variables: Vec<External<T>>,
    next: Vec<External<T>>,
    /// New values of updated variables, exchanged with the state after each step.
    fresh: Vec<Vec<T>>,
}

impl<T: Real> Bound<T> {
    pub fn new(plan: Plan, replicas: usize, threads: usize, isa: Isa) -> Self {
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
                let len = if plan.updated.contains(&i) { v.shape.len() * replicas } else { 0 };
                vec![T::ZERO; len]
            })
            .collect();
        Bound { executor: Executor::new(plan, replicas, threads, isa), replicas, inputs, variables, next, fresh }
    }

    pub fn run(&mut self, state: &mut State<T>, inputs: &[(&str, &[T])], clock: Clock) {
        self.bind_inputs(inputs);
        self.step(state, clock);
    }

    pub fn run_steps(&mut self, state: &mut State<T>, inputs: &[(&str, &[T])], seed: u64, steps: Range<u32>) {
        self.bind_inputs(inputs);
        for step in steps {
            self.step(state, Clock { seed, step });
        }
    }

    fn step(&mut self, state: &mut State<T>, clock: Clock) {
        self.bind_variables(state);
        T::run_stages(&mut self.executor, clock, state.numbers().start, &self.inputs, &self.variables, &self.next);
        for &slot in &self.executor.plan.updated {
            let name = &self.executor.plan.variables[slot].name;
            let value = state.value_mut(name).expect("bound above");
            std::mem::swap(value.own(), &mut self.fresh[slot]);
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

    fn bind_variables(&mut self, state: &State<T>) {
        assert!(state.replicas() == self.replicas, "run: {} replicas, not {}", state.replicas(), self.replicas);
        for (slot, Named { name, shape }) in self.executor.plan.variables.iter().enumerate() {
            let value = state.value(name).unwrap_or_else(|| panic!("run: the state has no variable `{name}`"));
            let len = shape.len() * self.replicas;
            assert!(
                value.len() == len,
                "run: variable `{name}` of shape {shape} has {} values, not {len}",
                value.len()
            );
            // Variables are only read; what replicas share need not be there once for each.
            let (values, per_replica) = match value.shared() {
                Some(one) => (one, 0),
                None => (value.all(), shape.len()),
            };
            self.variables[slot] = External { ptr: values.as_ptr().cast_mut(), per_replica };
            self.next[slot].ptr = self.fresh[slot].as_mut_ptr();
        }
    }

    pub fn output(&self, k: usize) -> &[T] {
        let (buffer, shape) = &self.executor.plan.outputs[k];
        let base = self.executor.plan.buffers[*buffer].base;
        &self.executor.memory[base..base + shape.len() * self.replicas]
    }

    pub fn describe(&self) -> String {
        self.executor.plan.to_string()
    }

    pub fn stages(&self) -> usize {
        self.executor.plan.stages.len()
    }
}
