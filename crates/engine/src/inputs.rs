//! What a run is given: numbers and bytes by name, and what random numbers are keyed by.

use crate::shape::Shape;

/// What random numbers are keyed and counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Seed of the run.
    pub seed: u64,
    /// Number of the step.
    pub step: u32,
}

/// A named value that a program reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub name: String,
    pub shape: Shape,
}

/// What a run is given.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a, T> {
    pub reals: &'a [(&'a str, &'a [T])],
    pub bytes: &'a [(&'a str, &'a [u8])],
}

impl<'a, T> Inputs<'a, T> {
    /// Numbers alone.
    pub fn reals(reals: &'a [(&'a str, &'a [T])]) -> Self {
        Inputs { reals, bytes: &[] }
    }
}

impl Named {
    /// Its values among those given, and whether all replicas share them.
    pub fn among<'a, V>(&self, given: &[(&str, &'a [V])], replicas: usize) -> (&'a [V], bool) {
        let Named { name, shape } = self;
        let found = given.iter().find(|(n, _)| n == name);
        let (_, values) = found.unwrap_or_else(|| panic!("run: no value given for input `{name}`"));
        match values.len() {
            n if n == shape.len() => (values, true),
            n if n == shape.len() * replicas => (values, false),
            n => panic!("run: input `{name}` of shape {shape} needs {} values, not {n}", shape.len()),
        }
    }
}
