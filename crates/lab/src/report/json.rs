//! JSON for people: objects over several lines, lists of numbers on one.

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// The text of a value.
pub fn text<T: Serialize>(value: &T) -> serde_json::Result<String> {
    let mut out = vec![];
    value.serialize(&mut Serializer::with_formatter(&mut out, Layout::default()))?;
    Ok(String::from_utf8(out).expect("JSON is UTF-8"))
}

/// How the items of an open list or object stand.
#[derive(Clone, Copy, PartialEq)]
enum Items {
    /// There is none yet.
    None,
    /// One after another on the same line.
    OnOneLine,
    /// Each on its own line.
    OnOwnLines,
}

/// Whether an item of a list is awaited, and whether it is the first.
#[derive(Clone, Copy, PartialEq)]
enum Awaited {
    Nothing,
    First,
    Next,
}

/// Lays out as it goes: what an item is shows only when it begins.
struct Layout {
    open: Vec<Items>,
    awaited: Awaited,
}

impl Default for Layout {
    fn default() -> Self {
        Layout { open: vec![], awaited: Awaited::Nothing }
    }
}

impl Layout {
    fn line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        self.open.iter().try_for_each(|_| out.write_all(b"  "))
    }

    /// Before an item of a list: numbers stay on the line, lists and objects take their own, words follow the first item.
    fn item<W: ?Sized + Write>(&mut self, out: &mut W, here: impl Fn(Items) -> Items) -> io::Result<()> {
        let awaited = std::mem::replace(&mut self.awaited, Awaited::Nothing);
        if awaited == Awaited::Nothing {
            return Ok(());
        }
        let items = self.open.last_mut().expect("an item is in a list");
        *items = here(*items);
        let own_line = *items == Items::OnOwnLines;
        if awaited == Awaited::Next {
            out.write_all(if own_line { b"," } else { b", " })?;
        }
        if own_line { self.line(out) } else { Ok(()) }
    }

    fn number<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.item(out, |items| if items == Items::OnOwnLines { items } else { Items::OnOneLine })
    }

    fn group<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.item(out, |_| Items::OnOwnLines)?;
        self.open.push(Items::None);
        Ok(())
    }

    fn close<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        let items = self.open.pop().expect("what closes was opened");
        if items == Items::OnOwnLines {
            self.line(out)?;
        }
        out.write_all(bracket)
    }
}

/// Numbers are written as serde_json does, after their place in a list is found.
macro_rules! numbers {
    ($($name:ident: $type:ty),*) => {$(
        fn $name<W: ?Sized + Write>(&mut self, out: &mut W, value: $type) -> io::Result<()> {
            self.number(out)?;
            serde_json::ser::CompactFormatter.$name(out, value)
        }
    )*};
}

impl Formatter for Layout {
    numbers!(
        write_bool: bool, write_i8: i8, write_i16: i16, write_i32: i32, write_i64: i64, write_i128: i128,
        write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64, write_u128: u128, write_f32: f32, write_f64: f64,
        write_number_str: &str
    );

    fn write_null<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.number(out)?;
        out.write_all(b"null")
    }

    fn begin_string<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.item(out, |items| if items == Items::OnOneLine { items } else { Items::OnOwnLines })?;
        out.write_all(b"\"")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.group(out)?;
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, _: &mut W, first: bool) -> io::Result<()> {
        self.awaited = if first { Awaited::First } else { Awaited::Next };
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.group(out)?;
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        *self.open.last_mut().expect("a key is in an object") = Items::OnOwnLines;
        self.line(out)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}
