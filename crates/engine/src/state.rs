//! The state that programs work on: variables by name, wherever their values are.

use crate::device::DeviceError;
use crate::math::Real;
use crate::shape::Shape;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A value that another device holds.
pub(crate) trait Remote<T>: Send + Sync {
    /// Copies it here.
    fn fetch(&self) -> Result<Vec<T>, DeviceError>;
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

    pub fn get(&self) -> Result<&[T], DeviceError> {
        if let Some(values) = self.here.get() {
            return Ok(values);
        }
        // Whoever comes first is right: after it the value may change there.
        let values = self.there.fetch()?;
        Ok(self.here.get_or_init(|| values))
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
    /// The run that was to change it failed in the middle; how many values there were.
    Lost(DeviceError, usize),
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
            Content::Shared { one, .. } => one.len() * self.replicas, // counted when it was set
            Content::Remote(lazy) => lazy.len,
            Content::Lost(_, len) => *len,
        }
    }

    /// The values of one replica, if they are known to be those of all.
    pub fn shared(&self) -> Option<&[T]> {
        if let Content::Shared { one, .. } = &self.content { Some(one) } else { None }
    }

    /// The values of all replicas, copied here if they are elsewhere.
    pub fn all(&self) -> Result<&[T], DeviceError> {
        match &self.content {
            Content::Own(values) => Ok(values),
            Content::Shared { one, all } => Ok(all.get_or_init(|| one.repeat(self.replicas))),
            Content::Remote(lazy) => lazy.get(),
            Content::Lost(why, _) => Err(why.clone()),
        }
    }

    /// Lets go of a value that lives elsewhere and is about to change there; if it does not, `why` is known already.
    pub fn forget(&mut self, stamp: u64, why: &DeviceError) {
        if self.stamp == stamp && matches!(self.content, Content::Remote(_)) {
            self.content = Content::Lost(why.clone(), self.len());
        }
    }

    /// Notes what became of a value that was let go of.
    pub fn lost(&mut self, why: &DeviceError) {
        if let Content::Lost(known, _) = &mut self.content {
            known.clone_from(why);
        }
    }

    /// New values in exchange for those that are here.
    pub fn exchange(&mut self, values: &mut Vec<T>) {
        self.stamp = new_stamp();
        if let Content::Own(old) = &mut self.content {
            return std::mem::swap(old, values);
        }
        let empty = vec![T::ZERO; values.len()];
        self.content = Content::Own(std::mem::replace(values, empty));
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
        let wanted = len.checked_mul(self.replicas()).filter(|&all| all <= Shape::LIMIT);
        let wanted = wanted.unwrap_or_else(|| panic!("state: {} replicas of {len} values do not fit", self.replicas()));
        let content = match values.len() {
            n if n == wanted => Content::Own(values.to_vec()),
            n if n == len => Content::Shared { one: values.to_vec(), all: OnceLock::new() },
            n => panic!("state: `{name}` needs {len} values, or {wanted} for all replicas, not {n}"),
        };
        let value = Value { stamp: new_stamp(), replicas: self.replicas(), content };
        match self.value_mut(name) {
            Some(old) => *old = value,
            None => self.values.push((name.to_string(), value)),
        }
    }

    /// The values of a variable, replica after replica.
    ///
    /// Panics if they are on a GPU that fails; [`State::try_get`] says why instead, and after [`State::fetch`] they are here.
    pub fn get(&self, name: &str) -> Option<&[T]> {
        self.try_get(name).unwrap_or_else(|why| panic!("state: `{name}`: {why}"))
    }

    /// [`State::get`], with an error if the values are on a GPU that fails, or were lost with it.
    pub fn try_get(&self, name: &str) -> Result<Option<&[T]>, DeviceError> {
        self.value(name).map(Value::all).transpose()
    }

    /// Copies all values here that are on a GPU. Afterwards [`State::get`] and [`State::iter`] find them, whatever becomes of it.
    pub fn fetch(&self) -> Result<(), DeviceError> {
        self.values.iter().try_for_each(|(_, value)| value.all().map(drop))
    }

    /// Names and values of all variables, in the order they were set. Panics as [`State::get`] does.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[T])> {
        self.values.iter().map(|(n, v)| (n.as_str(), v.all().unwrap_or_else(|why| panic!("state: `{n}`: {why}"))))
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
        // Values that are lost are equal to none.
        let mut pairs = self.values.iter().zip(&other.values);
        self.numbers == other.numbers
            && self.values.len() == other.values.len()
            && pairs.all(|((n, a), (m, b))| n == m && matches!((a.all(), b.all()), (Ok(a), Ok(b)) if a == b))
    }
}

impl<T: Real> fmt::Debug for State<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("State")
            .field("numbers", &self.numbers)
            .field("values", &self.values.iter().map(|(n, v)| (n, v.all())).collect::<Vec<_>>())
            .finish()
    }
}
