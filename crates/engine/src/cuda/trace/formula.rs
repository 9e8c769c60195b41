//! What kernels are made of: numbers, formulas and stores.

use super::Ix;
use crate::cuda::emit::Name;
use crate::graph::Id;
use crate::op::{Binary, Unary};
use crate::random::Draw;
use std::collections::BTreeSet;

/// Who a constant belongs to: tells it from others that happen to be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::cuda) enum Owner {
    /// A node that is the constant.
    Node(Id),
    /// An argument of a node.
    Argument(Id, usize),
    /// The scale of a term, relative to the one before, in the product of a part.
    Term(usize, usize),
    /// The scale of a part's reduction.
    Part(usize),
}

/// A number in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::cuda) enum Value {
    /// A variable of the scope.
    Bound(usize),
    /// One of four numbers that were loaded together.
    OfFour(usize, i64),
    /// The part's own reduction; which entry, where several are at hand.
    Own(Option<usize>),
    /// A number that stays in the text (bits of an f64).
    Literal(u64),
    /// A number that becomes an argument of the kernel (bits of an f64).
    Constant(Owner, u64),
}

impl Value {
    pub const ZERO: Value = Value::Literal(0);

    /// A number of some owner. What a compiler can make use of stays in the text (signs, halves and doubles cost less than
    /// products, zeros vanish).
    pub fn number(owner: Owner, value: f64) -> Value {
        match value {
            x if x.is_nan() => Value::Literal(f64::NAN.to_bits()),
            x if x.is_infinite() || [0.0, 0.5, 1.0, 2.0].contains(&x.abs()) => Value::Literal(x.to_bits()),
            x => Value::Constant(owner, x.to_bits()),
        }
    }
}

/// A place in the buffer of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::cuda) struct Site {
    pub id: Id,
    /// True if the buffer holds bytes.
    pub bytes: bool,
    /// In tables whose places are too many for an `int`: the entry, and how many numbers one has.
    pub entry: Option<(Ix, usize)>,
    pub at: Ix,
}

/// An index that was computed, as an entry of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::cuda) struct Entry {
    pub value: Value,
    /// The length of the table, if the index may lie outside.
    pub checked: Option<usize>,
}

/// A condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::cuda) enum Test {
    Known(bool),
    Bound(usize),
    IsZero(Ix),
}

/// What a variable of a scope stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::cuda) enum Formula {
    // Indices.
    Plus(Ix, Ix),
    Times(Ix, usize),
    Over(Ix, usize),
    Modulo(Ix, usize),
    /// `ix − low` where the test (a variable) holds, else 0.
    Shifted {
        inside: usize,
        ix: Ix,
        low: i64,
    },
    Entry(Entry),
    // Tests.
    /// `low ≤ ix < high`.
    Within {
        ix: Ix,
        low: i64,
        high: i64,
    },
    // Numbers.
    Load(Site),
    /// Four neighbours.
    LoadFour(Site),
    Unary(Unary, Value),
    Binary(Binary, Value, Value),
    /// x·y + z, rounded once.
    MulAdd(Value, Value, Value),
    Select(Value, Value, Value),
    /// The first value where all tests hold, else the second.
    Choice(Vec<Test>, Value, Value),
    Step,
    /// Four words of random bits.
    Words {
        row: Ix,
        block: Ix,
        stream: u32,
    },
    /// A number made of words (a variable), of which some element is wanted.
    Drawn {
        draw: Draw,
        words: usize,
        within: Ix,
    },
    /// An entry of a permutation of so many; one for each step, or one for each pass over them all.
    Shuffled {
        epochs: bool,
        count: u32,
        rows: usize,
        row: Ix,
        feature: Ix,
        stream: u32,
    },
}

/// What a scope does, in order.
#[derive(Clone, Debug)]
pub(in crate::cuda) enum Item {
    /// Binds a variable.
    Let(usize, Formula),
    /// Stores one value, or four neighbours, through a pointer; replicas are `stride` apart.
    Store { to: Name, stride: usize, at: Ix, values: Vec<Value> },
    /// Stores a piece of a sum that is cut into pieces.
    StorePiece { part: usize, splits: usize, stride: usize, at: Ix },
}

/// What something in a kernel depends on.
#[derive(Clone, Debug, Default)]
pub(in crate::cuda) struct Needs {
    /// Nodes whose buffers are read.
    pub reads: BTreeSet<Id>,
    /// True if the number of the step is needed.
    pub step: bool,
    /// True if indices are checked.
    pub checks: bool,
    /// True if a reduction of the part itself is needed at an entry that is not at hand.
    pub missing: bool,
}

impl Needs {
    pub fn add(&mut self, other: &Needs) {
        self.reads.extend(&other.reads);
        self.step |= other.step;
        self.checks |= other.checks;
        self.missing |= other.missing;
    }
}
