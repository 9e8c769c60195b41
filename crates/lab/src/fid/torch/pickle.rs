//! The few pickles that state dicts are made of.
//!
//! **Conventions.** A pickle is a program for a machine with a stack; this one has no functions to call but three, which are built
//! in: `collections.OrderedDict()`, `torch._utils._rebuild_tensor_v2` and `_rebuild_parameter`, and knows the types of
//! storages by name. Values lie in one list and refer to each other by index, so that neither depth nor cycles can hurt.

use half::f16;
use std::collections::{BTreeMap, HashMap};

/// What numbers a storage holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    F16,
    F32,
    F64,
    /// Whole numbers of 8 bytes, which are not read.
    Whole,
}

impl Kind {
    fn named(name: &str) -> Option<Kind> {
        match name {
            "HalfStorage" => Some(Kind::F16),
            "FloatStorage" => Some(Kind::F32),
            "DoubleStorage" => Some(Kind::F64),
            "LongStorage" => Some(Kind::Whole),
            _ => None,
        }
    }

    /// Bytes of a number.
    pub fn size(self) -> usize {
        match self {
            Kind::F16 => 2,
            Kind::F32 => 4,
            Kind::F64 | Kind::Whole => 8,
        }
    }

    pub fn numbers(self, bytes: &[u8]) -> Vec<f32> {
        match self {
            Kind::F16 => bytes.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect(),
            Kind::F32 => bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            Kind::F64 => bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b) as f32).collect(),
            Kind::Whole => vec![],
        }
    }
}

/// Numbers that tensors are parts of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Storage {
    pub kind: Kind,
    pub key: String,
    /// How many numbers.
    pub count: usize,
}

impl Storage {
    pub fn bytes(&self) -> Result<usize, String> {
        self.count.checked_mul(self.kind.size()).ok_or_else(|| format!("the storage {} is too large", self.key))
    }
}

/// A tensor: which part of which storage, row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TensorInfo {
    pub storage: Storage,
    pub offset: usize,
    pub shape: Vec<usize>,
}

impl TensorInfo {
    /// How many numbers, unless they are too many to count.
    pub fn count(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |product, n| product.checked_mul(*n))
    }
}

/// The functions that may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Global {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    StorageType(Kind),
}

/// Index of a value.
type Id = usize;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    None,
    Bool,
    Int(i64),
    Long(Vec<u8>),
    Text(String),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Global(Global),
    Storage(Storage),
    Tensor(TensorInfo),
}

/// What a pickle gives.
pub(super) struct Loaded {
    values: Vec<Value>,
    top: Id,
}

impl Loaded {
    /// The bytes of a long number, least first.
    pub fn long(&self) -> Option<&[u8]> {
        if let Value::Long(bytes) = &self.values[self.top] { Some(bytes) } else { None }
    }

    pub fn number(&self) -> Option<i64> {
        if let Value::Int(n) = self.values[self.top] { Some(n) } else { None }
    }

    /// A list of text.
    pub fn texts(&self) -> Result<Vec<String>, String> {
        let Value::List(items) = &self.values[self.top] else { return Err("it has no list of storages".into()) };
        let text = |id: &Id| if let Value::Text(text) = &self.values[*id] { Some(text.clone()) } else { None };
        items.iter().map(text).collect::<Option<_>>().ok_or_else(|| "its list of storages has invalid entries".into())
    }

    /// A dictionary of tensors by name.
    pub fn state_dict(&self) -> Result<BTreeMap<String, TensorInfo>, String> {
        let Value::Dict(items) = &self.values[self.top] else { return Err("it holds no dictionary".into()) };
        let item = |(key, value): &(Id, Id)| match (&self.values[*key], &self.values[*value]) {
            (Value::Text(name), Value::Tensor(tensor)) => Ok((name.clone(), tensor.clone())),
            (Value::Text(name), _) => Err(format!("`{name}` is not a tensor")),
            _ => Err("it has a key that is not text".to_string()),
        };
        items.iter().map(item).collect()
    }
}

/// Runs one pickle; the bytes behind it are left.
pub(super) fn load(bytes: &mut &[u8]) -> Result<Loaded, String> {
    let mut machine = Machine { bytes, values: vec![], stack: vec![], marks: vec![], memo: HashMap::new() };
    while !machine.step()? {}
    let top = machine.pop()?;
    Ok(Loaded { values: machine.values, top })
}

struct Machine<'a, 'b> {
    bytes: &'a mut &'b [u8],
    values: Vec<Value>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

impl Machine<'_, '_> {
    /// One instruction; true at the end.
    fn step(&mut self) -> Result<bool, String> {
        let code = self.fixed::<1>()?[0];
        match code {
            0x80 => match self.fixed::<1>()?[0] {
                2..=3 => {}
                version => return Err(format!("it has a pickle of protocol {version}; expected 2 or 3")),
            },
            b'.' => return Ok(true),
            b'(' => self.marks.push(self.stack.len()),
            b'N' => self.push(Value::None),
            0x88 | 0x89 => self.push(Value::Bool),
            b'K' => self.byte().map(|n| self.push(Value::Int(n.into())))?,
            b'M' => self.fixed().map(|b| self.push(Value::Int(u16::from_le_bytes(b).into())))?,
            b'J' => self.fixed().map(|b| self.push(Value::Int(i32::from_le_bytes(b).into())))?,
            0x8a => {
                let length = self.byte()?;
                let bytes = self.take(length as usize)?.to_vec();
                self.push(long(bytes));
            }
            b'U' => {
                let length = self.byte()?;
                self.text(length as usize)?;
            }
            b'X' | b'T' => {
                let length = u32::from_le_bytes(self.fixed()?);
                self.text(length as usize)?;
            }
            b')' => self.push(Value::Tuple(vec![])),
            0x85..=0x87 => {
                let items = self.pop_many((code - 0x84) as usize)?;
                self.push(Value::Tuple(items));
            }
            b't' => self.marked().map(|items| self.push(Value::Tuple(items)))?,
            b'}' => self.push(Value::Dict(vec![])),
            b']' => self.push(Value::List(vec![])),
            b'a' => self.pop().and_then(|item| self.append(vec![item]))?,
            b'e' => self.marked().and_then(|items| self.append(items))?,
            b's' => self.pop_many(2).and_then(|items| self.set(items))?,
            b'u' => self.marked().and_then(|items| self.set(items))?,
            b'q' => self.byte().and_then(|n| self.remember(n.into()))?,
            b'r' => self.fixed().and_then(|b| self.remember(u32::from_le_bytes(b)))?,
            b'h' => self.byte().and_then(|n| self.recall(n.into()))?,
            b'j' => self.fixed().and_then(|b| self.recall(u32::from_le_bytes(b)))?,
            b'c' => self.global()?,
            b'Q' => self.storage()?,
            b'R' => self.call()?,
            // attributes of a dictionary (versions of its modules) are of no use here
            b'b' => self.pop().map(|_| ())?,
            other => return Err(format!("its pickle has the instruction {other:#04x}, which no state dict needs")),
        }
        Ok(false)
    }

    fn take(&mut self, count: usize) -> Result<&[u8], String> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or("it is truncated")?;
        *self.bytes = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.take(N).map(|taken| taken.try_into().expect("so many were taken"))
    }

    fn byte(&mut self) -> Result<u8, String> {
        Ok(self.fixed::<1>()?[0])
    }

    fn line(&mut self) -> Result<String, String> {
        let end = self.bytes.iter().take(256).position(|b| *b == b'\n').ok_or("it is truncated")?;
        let line = String::from_utf8_lossy(&self.take(end + 1)?[..end]).into_owned();
        Ok(line)
    }

    fn text(&mut self, length: usize) -> Result<(), String> {
        let text = String::from_utf8(self.take(length)?.to_vec()).map_err(|_| "it has text that is not UTF-8")?;
        self.push(Value::Text(text));
        Ok(())
    }

    fn push(&mut self, value: Value) {
        self.stack.push(self.values.len());
        self.values.push(value);
    }

    fn pop(&mut self) -> Result<Id, String> {
        // what lies below a mark belongs to what the mark began
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() > floor {
            Ok(self.stack.pop().expect("above the floor"))
        } else {
            Err("its stack is empty".into())
        }
    }

    fn pop_many(&mut self, count: usize) -> Result<Vec<Id>, String> {
        let mut items = (0..count).map(|_| self.pop()).collect::<Result<Vec<_>, _>>()?;
        items.reverse();
        Ok(items)
    }

    fn marked(&mut self) -> Result<Vec<Id>, String> {
        let mark = self.marks.pop().ok_or("it ends a list that it did not begin")?;
        Ok(self.stack.split_off(mark))
    }

    fn top(&self) -> Result<Id, String> {
        self.stack.last().copied().ok_or_else(|| "its stack is empty".into())
    }

    fn append(&mut self, more: Vec<Id>) -> Result<(), String> {
        let top = self.top()?;
        match &mut self.values[top] {
            Value::List(items) => items.extend(more),
            _ => return Err("it appends to something that is not a list".into()),
        }
        Ok(())
    }

    fn set(&mut self, more: Vec<Id>) -> Result<(), String> {
        let top = self.top()?;
        match &mut self.values[top] {
            Value::Dict(items) if more.len().is_multiple_of(2) => items.extend(more.chunks(2).map(|c| (c[0], c[1]))),
            _ => return Err("it sets items of something that is not a dictionary".into()),
        }
        Ok(())
    }

    fn remember(&mut self, name: u32) -> Result<(), String> {
        let top = self.top()?;
        self.memo.insert(name, top);
        Ok(())
    }

    fn recall(&mut self, name: u32) -> Result<(), String> {
        let id = *self.memo.get(&name).ok_or("it recalls a value that it did not store")?;
        self.stack.push(id);
        Ok(())
    }

    fn global(&mut self) -> Result<(), String> {
        let (module, name) = (self.line()?, self.line()?);
        let global = match (module.as_str(), name.as_str()) {
            ("collections", "OrderedDict") => Some(Global::OrderedDict),
            ("torch._utils", "_rebuild_tensor_v2") => Some(Global::RebuildTensor),
            ("torch._utils", "_rebuild_parameter") => Some(Global::RebuildParameter),
            ("torch", name) => Kind::named(name).map(Global::StorageType),
            _ => None,
        };
        let global = global.ok_or_else(|| format!("it asks for {module}.{name}, which is refused"))?;
        self.push(Value::Global(global));
        Ok(())
    }

    /// The items of a tuple.
    fn items(&self, id: Id) -> Result<Vec<&Value>, String> {
        match &self.values[id] {
            Value::Tuple(items) => Ok(items.iter().map(|id| &self.values[*id]).collect()),
            _ => Err("it has another value where a tuple is expected".into()),
        }
    }

    /// Whole numbers that are not negative.
    fn numbers(&self, value: &Value) -> Result<Vec<usize>, String> {
        let Value::Tuple(items) = value else { return Err("it has a tensor without a shape".into()) };
        let number = |id: &Id| if let Value::Int(n) = self.values[*id] { usize::try_from(n).ok() } else { None };
        items.iter().map(number).collect::<Option<_>>().ok_or_else(|| "it has a tensor with an invalid shape".into())
    }

    fn storage(&mut self) -> Result<(), String> {
        let id = self.pop()?;
        let storage = match self.items(id)?[..] {
            [
                Value::Text(word),
                Value::Global(Global::StorageType(kind)),
                Value::Text(key),
                Value::Text(_),
                Value::Int(count),
            ]
            | [
                Value::Text(word),
                Value::Global(Global::StorageType(kind)),
                Value::Text(key),
                Value::Text(_),
                Value::Int(count),
                Value::None,
            ] if word == "storage" => {
                let count = usize::try_from(*count).map_err(|_| "it has a storage of negative length")?;
                Storage { kind: *kind, key: key.clone(), count }
            }
            _ => return Err("it refers to something that is not a storage".into()),
        };
        self.push(Value::Storage(storage));
        Ok(())
    }

    fn call(&mut self) -> Result<(), String> {
        let (arguments, function) = (self.pop()?, self.pop()?);
        let given = self.items(arguments)?;
        let made = match (&self.values[function], &given[..]) {
            (Value::Global(Global::OrderedDict), []) => Value::Dict(vec![]),
            (
                Value::Global(Global::RebuildTensor),
                [Value::Storage(storage), Value::Int(offset), shape, strides, ..],
            ) => {
                let tensor = TensorInfo {
                    storage: storage.clone(),
                    offset: usize::try_from(*offset).map_err(|_| "it has a tensor with a negative offset")?,
                    shape: self.numbers(shape)?,
                };
                check_strides(&tensor.shape, &self.numbers(strides)?)?;
                Value::Tensor(tensor)
            }
            (Value::Global(Global::RebuildParameter), [tensor @ Value::Tensor(_), ..]) => (*tensor).clone(),
            _ => return Err("it calls a function in a way that a state dict does not".into()),
        };
        self.push(made);
        Ok(())
    }
}

/// A small number as such.
fn long(bytes: Vec<u8>) -> Value {
    if bytes.len() > 7 {
        return Value::Long(bytes);
    }
    let mut wide = if bytes.last().is_some_and(|b| *b >= 0x80) { [0xff; 8] } else { [0; 8] };
    wide[..bytes.len()].copy_from_slice(&bytes);
    Value::Int(i64::from_le_bytes(wide))
}

/// Only tensors whose numbers follow each other are read.
fn check_strides(shape: &[usize], strides: &[usize]) -> Result<(), String> {
    let mut expected = 1usize;
    let row_major = shape.len() == strides.len()
        && shape.iter().zip(strides).rev().all(|(n, stride)| {
            let fits = *n == 1 || *stride == expected;
            expected = expected.saturating_mul(*n);
            fits
        });
    if row_major { Ok(()) } else { Err("it has a tensor whose numbers are not row-major".into()) }
}
