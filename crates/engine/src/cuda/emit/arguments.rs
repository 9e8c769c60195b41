//! Arguments of a kernel, and the names it has for them.
//!
//! Parts name the program's buffers: that of node 12, say. In the text of a kernel each gets a number of the kernel's own, in order of
//! appearance, and constants become arguments: programs of equal structure have equal text, whatever their step sizes and
//! wherever their nodes stand, and share what was compiled.

use crate::cuda::plan::{Home, Param};
use crate::cuda::trace::{Owner, Value};
use crate::graph::Id;
use std::collections::HashMap;
use std::fmt::Write;

/// Something that a kernel has a name for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::cuda) enum Name {
    /// The buffer of a node, to be read.
    Buffer(Id),
    /// Where the replica's share of a node's buffer begins: a variable of the kernel.
    Start(Id),
    /// Distance between replicas in a node's buffer.
    Stride(Id),
    /// An output.
    Output(usize),
    /// The new value of a variable.
    Next(usize),
    /// The buffer of a node, to be written.
    Kept(Id),
    /// Pieces of the reduction of a part.
    Pieces(usize),
    /// A number (bits of an f64).
    Constant(Owner, u64),
}

impl Name {
    fn letters(&self) -> &'static str {
        match self {
            Name::Buffer(_) => "b",
            Name::Start(_) => "p",
            Name::Stride(_) => "s",
            Name::Output(_) => "out",
            Name::Next(_) => "next",
            Name::Kept(_) => "h",
            Name::Pieces(_) => "w",
            Name::Constant(..) => "c",
        }
    }
}

/// A number in the program's precision, written out.
fn literal(value: f64, single: bool) -> String {
    let rounded = if single { f64::from(value as f32) } else { value };
    match rounded {
        x if x.is_nan() => "real(__int_as_float(0x7fc00000))".into(),
        x if x == f64::INFINITY => "real(__int_as_float(0x7f800000))".into(),
        x if x == f64::NEG_INFINITY => "real(__int_as_float(0xff800000))".into(),
        _ if single => format!("{:?}f", value as f32),
        x => format!("{x:?}"),
    }
}

/// Bytes that all arguments of a kernel may have together, on every card.
const ROOM: usize = 4096;
/// Bytes of those that every kernel has: the clock, the number of the step in its batch, the keys.
const FIXED: usize = 24;

/// The arguments of one kernel as they turn up in its text.
pub(in crate::cuda) struct Arguments {
    /// What names of buffers stand for.
    known: HashMap<Name, Param>,
    single: bool,
    /// What each thing is called that turned up.
    called: HashMap<Name, String>,
    /// How many names of each kind there are.
    counts: HashMap<&'static str, usize>,
    list: String,
    pub params: Vec<Param>,
    room: usize,
}

impl Arguments {
    /// `known` holds all buffers and distances that the text may name.
    pub fn new(known: HashMap<Name, Param>, single: bool) -> Self {
        // A constant that finds no room is written out; buffers need theirs.
        let room = (ROOM - FIXED).saturating_sub(8 * known.len());
        let (called, counts) = (HashMap::new(), HashMap::new());
        Arguments { known, single, called, counts, list: String::new(), params: vec![], room }
    }

    /// What something is called in the text, which is written from its beginning to its end.
    pub fn name(&mut self, what: Name) -> &str {
        if !self.called.contains_key(&what) {
            let name = self.introduce(what);
            self.called.insert(what, name);
        }
        &self.called[&what]
    }

    /// A number that has no variable.
    pub fn number(&mut self, owner: Owner, value: f64) -> String {
        match Value::number(owner, value) {
            Value::Constant(owner, bits) => self.name(Name::Constant(owner, bits)).to_string(),
            Value::Literal(bits) => self.literal(bits),
            Value::Bound(_) | Value::OfFour(..) | Value::Own(_) => unreachable!("a number has no variable"),
        }
    }

    /// A number (bits of an f64) written out.
    pub fn literal(&self, bits: u64) -> String {
        literal(f64::from_bits(bits), self.single)
    }

    fn introduce(&mut self, what: Name) -> String {
        if let Name::Constant(_, bits) = what {
            let value = f64::from_bits(bits);
            let size = if self.single { 4 } else { 8 };
            if self.room < size {
                return literal(value, self.single);
            }
            self.room -= size;
            let bits = if self.single { u64::from((value as f32).to_bits()) } else { bits };
            let name = self.fresh(what);
            return self.declare("const real", name, Param::Constant(bits));
        }
        let name = self.fresh(what);
        match (self.known.get(&what).copied(), what) {
            (Some(param @ Param::Stride(_)), _) => self.declare("const i64", name, param),
            (Some(param @ Param::Pointer(Home::Bytes(_))), _) => self.declare("const u8* __restrict__", name, param),
            (Some(param), Name::Buffer(_)) => self.declare("const real* __restrict__", name, param),
            (Some(param), _) => self.declare("real* __restrict__", name, param),
            (None, _) => name, // a variable of the kernel
        }
    }

    fn fresh(&mut self, what: Name) -> String {
        let count = self.counts.entry(what.letters()).or_default();
        *count += 1;
        format!("{}{}", what.letters(), *count - 1)
    }

    fn declare(&mut self, kind: &str, name: String, param: Param) -> String {
        let _ = write!(self.list, ", {kind} {name}");
        self.params.push(param);
        name
    }

    /// The declarations, each after a comma.
    pub fn list(&self) -> &str {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::{Arguments, Home, Name, Owner, Param};
    use std::collections::HashMap;

    fn arguments(single: bool) -> Arguments {
        let known = [(Name::Buffer(12), Home::Memory(5)), (Name::Kept(7), Home::Next(1))];
        let known: HashMap<Name, Param> = known.into_iter().map(|(name, home)| (name, Param::Pointer(home))).collect();
        Arguments::new(known, single)
    }

    #[test]
    fn names_are_numbered_in_order_of_appearance() {
        let mut arguments = arguments(true);
        let mut text = vec![];
        for what in [Name::Kept(7), Name::Start(12), Name::Buffer(12), Name::Start(12)] {
            text.push(arguments.name(what).to_string());
            text.push(arguments.number(Owner::Node(3), 0.1));
        }
        assert_eq!(text, ["h0", "c0", "p0", "c0", "b0", "c0", "p0", "c0"]);
        assert_eq!(arguments.list(), ", real* __restrict__ h0, const real c0, const real* __restrict__ b0");
        let bits = Param::Constant(u64::from(0.1f32.to_bits()));
        assert_eq!(arguments.params, [Param::Pointer(Home::Next(1)), bits, Param::Pointer(Home::Memory(5))]);
    }

    #[test]
    fn constants_without_room_are_text() {
        let mut arguments = arguments(false);
        let all: Vec<String> = (0..1000).map(|i| arguments.number(Owner::Node(i), f64::from(i) + 0.3)).collect();
        let bytes = 24 + 8 * (arguments.params.len() + 2);
        assert!(bytes <= 4096 && bytes > 4096 - 8, "{bytes} bytes of arguments");
        assert!(all[..2] == ["c0", "c1"] && all[999] == "999.3", "{all:?}");
    }

    #[test]
    fn numbers_that_a_compiler_can_use_are_text() {
        let mut arguments = arguments(true);
        let texts = [0.0, -0.5, 2.0, f64::INFINITY].map(|x| arguments.number(Owner::Node(0), x));
        assert_eq!(texts, ["0.0f", "-0.5f", "2.0f", "real(__int_as_float(0x7f800000))"]);
        assert_eq!(arguments.number(Owner::Node(0), 3.0), "c0");
    }
}
