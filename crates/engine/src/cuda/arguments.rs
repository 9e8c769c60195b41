//! Arguments of a kernel, and the names it has for them.
//!
//! Parts are written with names that hold the program's numbers: `b@12` is the buffer of node 12. In the text of a kernel each
//! gets a number of the kernel's own, in order of appearance, and constants become arguments: programs of equal structure
//! have equal text, whatever their step sizes and wherever their nodes stand, and share what was compiled.

use super::plan::{Home, Param};
use std::collections::HashMap;
use std::fmt::{Display, Write};

/// A number as text: `owner` tells it from other numbers that happen to be equal.
///
/// What a compiler can make use of stays a number (signs, halves and doubles cost less than products, zeros vanish).
pub(super) fn constant(owner: impl Display, value: f64, single: bool) -> String {
    let structural = !value.is_finite() || [0.0, 0.5, 1.0, 2.0].contains(&value.abs());
    if structural { literal(value, single) } else { format!("c@{owner}={:016x}", value.to_bits()) }
}

/// A number in the program's precision, written out.
pub(super) fn literal(value: f64, single: bool) -> String {
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
pub(super) struct Arguments {
    /// What names of buffers stand for.
    known: HashMap<String, Param>,
    single: bool,
    /// Names with the program's numbers, and with the kernel's.
    renamed: HashMap<String, String>,
    /// How many names of each kind there are.
    counts: HashMap<String, usize>,
    list: String,
    pub params: Vec<Param>,
    room: usize,
}

impl Arguments {
    /// `known` holds all buffers and distances that the text may name.
    pub fn new(known: HashMap<String, Param>, single: bool) -> Self {
        // A constant that finds no room is written out; buffers need theirs.
        let room = (ROOM - FIXED).saturating_sub(8 * known.len());
        let (renamed, counts) = (HashMap::new(), HashMap::new());
        Arguments { known, single, renamed, counts, list: String::new(), params: vec![], room }
    }

    /// The text with the kernel's own names.
    pub fn rename(&mut self, text: &str) -> String {
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('@') {
            let start = rest[..at].rfind(|c: char| !c.is_ascii_lowercase()).map_or(0, |i| i + 1);
            let part_of_name = |c: char| c.is_ascii_alphanumeric() || c == '=' || c == '_';
            let end = rest[at + 1..].find(|c| !part_of_name(c)).map_or(rest.len(), |i| at + 1 + i);
            result.push_str(&rest[..start]);
            result.push_str(self.name(&rest[start..end], &rest[start..at]));
            rest = &rest[end..];
        }
        result.push_str(rest);
        result
    }

    fn name(&mut self, full: &str, kind: &str) -> &str {
        if !self.renamed.contains_key(full) {
            let name = self.introduce(full, kind);
            self.renamed.insert(full.to_string(), name);
        }
        &self.renamed[full]
    }

    fn introduce(&mut self, full: &str, kind: &str) -> String {
        if let Some((_, bits)) = full.split_once('=') {
            let value = f64::from_bits(u64::from_str_radix(bits, 16).expect("sixteen digits"));
            let size = if self.single { 4 } else { 8 };
            if self.room < size {
                return literal(value, self.single);
            }
            self.room -= size;
            let bits = if self.single { u64::from((value as f32).to_bits()) } else { value.to_bits() };
            let name = self.fresh(kind);
            return self.declare("const real", name, Param::Constant(bits));
        }
        let name = self.fresh(kind);
        match self.known.get(full).copied() {
            Some(param @ Param::Stride(_)) => self.declare("const i64", name, param),
            Some(param @ Param::Pointer(Home::Bytes(_))) => self.declare("const u8* __restrict__", name, param),
            Some(param) if kind == "b" => self.declare("const real* __restrict__", name, param),
            Some(param) => self.declare("real* __restrict__", name, param),
            None => name, // a variable of the kernel
        }
    }

    fn fresh(&mut self, kind: &str) -> String {
        let count = self.counts.entry(kind.to_string()).or_default();
        *count += 1;
        format!("{kind}{}", *count - 1)
    }

    fn declare(&mut self, what: &str, name: String, param: Param) -> String {
        let _ = write!(self.list, ", {what} {name}");
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
    use super::super::plan::{Home, Param};
    use super::{Arguments, constant};
    use std::collections::HashMap;

    fn kernel(text: &str, single: bool) -> (String, Arguments) {
        let known = [("b@12", Home::Memory(5)), ("h@7", Home::Next(1))];
        let known: HashMap<String, Param> =
            known.into_iter().map(|(name, home)| (name.to_string(), Param::Pointer(home))).collect();
        let mut arguments = Arguments::new(known, single);
        (arguments.rename(text), arguments)
    }

    #[test]
    fn names_are_numbered_in_order_of_appearance() {
        let constant = constant(3, 0.1, true);
        let (text, arguments) = kernel(&format!("h@7[p@12] = {constant} * b@12[p@12] + {constant};"), true);
        assert_eq!(text, "h0[p0] = c0 * b0[p0] + c0;");
        assert_eq!(arguments.list(), ", real* __restrict__ h0, const real c0, const real* __restrict__ b0");
        let bits = Param::Constant(u64::from(0.1f32.to_bits()));
        assert_eq!(arguments.params, [Param::Pointer(Home::Next(1)), bits, Param::Pointer(Home::Memory(5))]);
    }

    #[test]
    fn constants_without_room_are_text() {
        let all: Vec<String> = (0..1000).map(|i| constant(i, f64::from(i) + 0.3, false)).collect();
        let (text, arguments) = kernel(&all.join(" "), false);
        let bytes = 24 + 8 * (arguments.params.len() + 2);
        assert!(bytes <= 4096 && bytes > 4096 - 8, "{bytes} bytes of arguments");
        assert!(text.ends_with("999.3") && text.starts_with("c0 c1 "), "{text}");
    }
}
