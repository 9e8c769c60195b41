//! The state that programs work on: variables by name, wherever their values are.

use crate::math::Real;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A value that another device holds.
pub(crate) trait Remote<T>: Send + Sync {
    /// Copies it here.
    fn fetch(&self) -> Vec<T>;
}

/// A value elsewhere, copied here when somebody asks.
pub(crate) struct Lazy<T> {
    here: OnceLock<Vec<T>>,
    there: Box<dyn Remote<T>>,
    len: usize,
}

impl<T> Lazy<T> {
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub fn new(there: Box<dyn Remote<T>>, len: usize) -> Self {
        Lazy { here: OnceLock::new(), there, len }
    }

    pub fn get(&self) -> &[T] {
        self.here.get_or_init(|| self.there.fetch())
    }
}

#[derive(Clone)]
enum Content<T> {
    /// Of all replicas, one after another.
    Own(Vec<T>),
    /// The same for all replicas; spelt out when somebody asks.
    Shared {
        one: Vec<T>,
        all: OnceLock<Vec<T>>,
    },
    Remote(Arc<Lazy<T>>),
}

/// The values of one variable, of all replicas. Equal stamps mean equal values.
#[derive(Clone)]
pub(crate) struct Value<T> {
    stamp: u64,
    replicas: usize,
    content: Content<T>,
}

fn new_stamp() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg_attr(not(feature = "cuda"), allow(dead_code))]
impl<T: Real> Value<T> {
    pub fn remote(lazy: Arc<Lazy<T>>) -> Self {
        Value { stamp: new_stamp(), replicas: 1, content: Content::Remote(lazy) }
    }

    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Number of values, of all replicas.
    pub fn len(&self) -> usize {
        match &self.content {
            Content::Own(values) => values.len(),
            Content::Shared { one, .. } => one.len() * self.replicas,
            Content::Remote(lazy) => lazy.len,
        }
    }

    /// The values of one replica, if they are known to be those of all.
    pub fn shared(&self) -> Option<&[T]> {
        match &self.content {
            Content::Shared { one, .. } => Some(one),
            _ => None,
        }
    }

    /// The values of all replicas.
    pub fn all(&self) -> &[T] {
        match &self.content {
            Content::Own(values) => values,
            Content::Shared { one, all } => all.get_or_init(|| one.repeat(self.replicas)),
            Content::Remote(lazy) => lazy.get(),
        }
    }

    /// Lets go of a value that lives elsewhere and is about to change there.
    pub fn forget(&mut self, stamp: u64) {
        if self.stamp == stamp && matches!(self.content, Content::Remote(_)) {
            self.content = Content::Own(vec![]);
        }
    }

    /// The values, to be changed.
    pub fn own(&mut self) -> &mut Vec<T> {
        self.stamp = new_stamp();
        if !matches!(self.content, Content::Own(_)) {
            self.content = Content::Own(self.all().to_vec());
        }
        match &mut self.content {
            Content::Own(values) => values,
            _ => unreachable!("made so above"),
        }
    }
}

/// The variables that programs read and update, by name; `replicas` values of each.
///
/// After a run on a GPU the values stay there; they are copied back when [`State::get`] or [`State::iter`] asks.
#[derive(Clone)]
pub struct State<T> {
    numbers: Range<u32>,
    values: Vec<(String, Value<T>)>,
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
        let content = match values.len() {
            n if n == len * self.replicas() => Content::Own(values.to_vec()),
            n if n == len => Content::Shared { one: values.to_vec(), all: OnceLock::new() },
            n => panic!("state: `{name}` needs {len} values, or {} for all replicas, not {n}", len * self.replicas()),
        };
        let value = Value { stamp: new_stamp(), replicas: self.replicas(), content };
        match self.value_mut(name) {
            Some(old) => *old = value,
            None => self.values.push((name.to_string(), value)),
        }
    }

    /// The values of a variable, replica after replica.
    pub fn get(&self, name: &str) -> Option<&[T]> {
        self.value(name).map(Value::all)
    }

    /// Names and values of all variables, in the order they were set.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[T])> {
        self.values.iter().map(|(n, v)| (n.as_str(), v.all()))
    }

    pub(crate) fn value(&self, name: &str) -> Option<&Value<T>> {
        self.values.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    pub(crate) fn value_mut(&mut self, name: &str) -> Option<&mut Value<T>> {
        self.values.iter_mut().find(|(n, _)| n == name).map(|(_, v)| v)
    }
}

impl<T: Real> PartialEq for State<T> {
    fn eq(&self, other: &Self) -> bool {
        self.numbers == other.numbers && self.iter().eq(other.iter())
    }
}

impl<T: Real> fmt::Debug for State<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("State")
            .field("numbers", &self.numbers)
            .field("values", &self.iter().collect::<Vec<_>>())
            .finish()
    }
}
