//! A plan with its executor, bound to the inputs of a run and the variables of a state.

#![allow(unsafe_code)] // a run is given addresses

use super::plan::Plan;
use super::run::{Executor, External, Externals, RunStages, run_stages};
use crate::device::DeviceError;
use crate::inputs::{Clock, Inputs, Named};
use crate::isa::Isa;
use crate::limits::filled;
use crate::math::Real;
use crate::state::State;

/// A program on the CPU.
pub(crate) struct Bound<T: Real> {
    executor: Executor<T>,
    run_stages: RunStages<T>,
    replicas: usize,
    inputs: Vec<External<T>>,
    bytes: Vec<External<u8>>,
    variables: Vec<External<T>>,
    next: Vec<External<T>>,
    /// New values of updated variables, exchanged with the state after each step.
    fresh: Vec<Vec<T>>,
}

impl<T: Real> Bound<T> {
    pub fn new(plan: Plan, replicas: usize, threads: usize, isa: Isa) -> Result<Self, DeviceError> {
        let nowhere = |named: &Named| External { ptr: std::ptr::null_mut(), per_replica: named.shape.len() };
        let variables: Vec<External<T>> = plan.variables.iter().map(nowhere).collect();
        let next = variables.clone();
        let updated = |(i, v): (usize, &Named)| if plan.updated.contains(&i) { v.shape.len() * replicas } else { 0 };
        let lengths = plan.variables.iter().enumerate().map(updated);
        let fresh = lengths.map(|len| filled(T::ZERO, len)).collect::<Result<_, _>>()?;
        let executor = Executor::new(plan, replicas, threads, isa)?;
        let (run_stages, inputs, bytes) = (run_stages(), vec![], vec![]);
        Ok(Bound { executor, run_stages, replicas, inputs, bytes, variables, next, fresh })
    }

    pub fn run_steps(
        &mut self,
        state: &mut State<T>,
        inputs: Inputs<T>,
        seed: u64,
        steps: impl Iterator<Item = u32>,
    ) -> Result<(), DeviceError> {
        self.executor.check()?;
        bind(&mut self.inputs, &self.executor.plan.inputs, inputs.reals, self.replicas);
        bind(&mut self.bytes, &self.executor.plan.bytes, inputs.bytes, self.replicas);
        for step in steps {
            self.bind_variables(state)?;
            // SAFETY: inputs were bound above, from slices that are borrowed until this returns, and variables just now, from
            // vectors of the state and of this that nobody changes before the stages are done; all lengths were checked.
            unsafe { self.stages_of(state, Clock { seed, step }) };
            self.executor.check()?; // the state is that before the step
            self.keep(state);
        }
        Ok(())
    }

    /// # Safety
    /// Inputs and variables are bound, and what they are bound to is still there.
    unsafe fn stages_of(&mut self, state: &State<T>, clock: Clock) {
        let Bound { executor, run_stages, inputs, bytes, variables, next, .. } = self;
        let externals = Externals { inputs, bytes, variables, next };
        // SAFETY: the caller's promise, and binding checks lengths.
        unsafe { run_stages(executor, clock, state.numbers().start, externals) };
    }

    /// Gives the state its new values.
    fn keep(&mut self, state: &mut State<T>) {
        for &slot in &self.executor.plan.updated {
            let name = &self.executor.plan.variables[slot].name;
            state.value_mut(name).expect("bound above").exchange(&mut self.fresh[slot]);
        }
    }

    fn bind_variables(&mut self, state: &State<T>) -> Result<(), DeviceError> {
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
                None => (value.all()?, shape.len()),
            };
            self.variables[slot] = External { ptr: values.as_ptr().cast_mut(), per_replica };
            self.next[slot].ptr = self.fresh[slot].as_mut_ptr();
        }
        Ok(())
    }

    pub fn output(&self, k: usize) -> Result<&[T], DeviceError> {
        self.executor.check()?;
        let (buffer, shape) = &self.executor.plan.outputs[k];
        let base = self.executor.plan.buffers[*buffer].base;
        Ok(&self.executor.memory[base..base + shape.len() * self.replicas])
    }

    pub fn describe(&self) -> String {
        self.executor.plan.to_string()
    }

    pub fn stages(&self) -> usize {
        self.executor.plan.stages.len()
    }
}

/// Points external buffers at what is given.
fn bind<V>(buffers: &mut Vec<External<V>>, wanted: &[Named], given: &[(&str, &[V])], replicas: usize) {
    buffers.clear();
    buffers.extend(wanted.iter().map(|named| {
        let (values, shared) = named.among(given, replicas);
        // Inputs are only read; the pointer is mutable because all buffers are addressed alike.
        External { ptr: values.as_ptr().cast_mut(), per_replica: if shared { 0 } else { named.shape.len() } }
    }));
}
