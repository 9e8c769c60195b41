//! Checkpoints: a state, the step it belongs to, and a note, in one safetensors file that is there wholly or not at all.
//!
//! Each variable is a tensor `[replicas, len]`. The metadata has the single key `minvel`, a JSON object with format, step,
//! purpose, numbers of the replicas, names of the variables in order, and the note: one key, so that the same state
//! always gives the same bytes.

use crate::limits::TooLarge;
use crate::{Error, file};
use minvel_engine::State;
use minvel_engine::math::Real;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the layout; a file of another is refused.
const FORMAT: u32 = 1;

/// The most variables: a state looks them up one by one.
const MOST_VARIABLES: usize = 1 << 14;

/// Numbers that have a place in a file.
pub trait Scalar: Real {
    /// Name of the type in the file.
    const DTYPE: Dtype;
    /// Little-endian bytes.
    fn bytes(values: &[Self]) -> Vec<u8>;
    /// From little-endian bytes.
    fn from_bytes(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! scalar {
    ($type:ty, $dtype:expr) => {
        impl Scalar for $type {
            const DTYPE: Dtype = $dtype;
            fn bytes(values: &[Self]) -> Vec<u8> {
                values.iter().flat_map(|x| x.to_le_bytes()).collect()
            }
            fn from_bytes(bytes: &[u8]) -> Vec<Self> {
                bytes.as_chunks().0.iter().map(|b| <$type>::from_le_bytes(*b)).collect()
            }
        }
    };
}

scalar!(f32, Dtype::F32);
scalar!(f64, Dtype::F64);

/// A state on its way to or from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint<T: Real> {
    /// The variables.
    pub state: State<T>,
    /// Steps made.
    pub step: u32,
    /// What it is for.
    pub purpose: String,
    note: serde_json::Value,
}

#[derive(Serialize, Deserialize)]
struct Metadata {
    format: u32,
    version: String,
    step: u32,
    purpose: String,
    first_replica: u32,
    replicas: u32,
    variables: Vec<String>,
    note: serde_json::Value,
}

impl<T: Scalar> Checkpoint<T> {
    /// A state after `step` steps of what `purpose` names, with a note.
    pub fn new(state: State<T>, step: u32, purpose: &str, note: &impl Serialize) -> Self {
        let note = serde_json::to_value(note).expect("a note is plain data");
        Checkpoint { state, step, purpose: purpose.to_string(), note }
    }

    /// The note; `path` is for the error.
    pub fn note<N: DeserializeOwned>(&self, path: &Path) -> Result<N, Error> {
        serde_json::from_value(self.note.clone()).map_err(|e| Error::content(path, format!("unreadable note: {e}")))
    }

    /// Writes the file, wholly or not at all.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let numbers = self.state.numbers();
        let metadata = Metadata {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_string(),
            step: self.step,
            purpose: self.purpose.clone(),
            first_replica: numbers.start,
            replicas: numbers.len() as u32,
            variables: self.state.iter().map(|(name, _)| name.to_string()).collect(),
            note: self.note.clone(),
        };
        let metadata = serde_json::to_string(&metadata).expect("metadata are plain data");
        let bytes: Vec<(&str, Vec<u8>, usize)> =
            self.state.iter().map(|(name, values)| (name, T::bytes(values), values.len())).collect();
        let replicas = numbers.len();
        let tensors = bytes.iter().map(|(name, bytes, len)| {
            (*name, TensorView::new(T::DTYPE, vec![replicas, len / replicas], bytes).expect("as many bytes as numbers"))
        });
        let header = Some([("minvel".to_string(), metadata)].into_iter().collect());
        let all = serialize(tensors, header).map_err(|e| Error::content(path, e.to_string()))?;
        file::write(path, &all)
    }

    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bytes = file::read(path)?;
        Self::parse(&bytes).map_err(|what| Error::content(path, what))
    }

    /// Reads the file, if there is one.
    pub fn read_if_there(path: &Path) -> Result<Option<Self>, Error> {
        let bytes = file::read_if_there(path)?;
        bytes.map(|bytes| Self::parse(&bytes).map_err(|what| Error::content(path, what))).transpose()
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let broken = |e: &dyn std::fmt::Display| format!("this is not a whole safetensors file: {e}");
        check_header(bytes)?;
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| broken(&e))?;
        let text = header.metadata().as_ref().and_then(|m| m.get("minvel"));
        let text = text.ok_or("this safetensors file was not written by minvel (no metadata `minvel`)")?;
        let metadata = read_metadata(text)?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|e| broken(&e))?;
        let end = metadata.first_replica.checked_add(metadata.replicas).ok_or("too many replicas")?;
        let mut state = State::of_replicas(metadata.first_replica..end);
        if metadata.variables.len() > MOST_VARIABLES {
            let count = metadata.variables.len();
            return Err(format!("this file has {count} variables: at most {MOST_VARIABLES} are supported"));
        }
        for name in &metadata.variables {
            if state.iter().any(|(known, _)| known == name) {
                return Err(format!("variable `{name}` occurs twice"));
            }
            let tensor = tensors.tensor(name).map_err(|_| format!("variable `{name}` is missing"))?;
            let [replicas, len] = tensor.shape() else { return Err(format!("variable `{name}` has an invalid shape")) };
            if tensor.dtype() != T::DTYPE || *replicas != metadata.replicas as usize {
                let (dtype, wanted) = (tensor.dtype(), T::DTYPE);
                return Err(format!("variable `{name}` is {dtype:?} for {replicas} replicas, not {wanted:?}"));
            }
            state.set(name, &T::from_bytes(tensor.data()), *len);
        }
        Ok(Checkpoint { state, step: metadata.step, purpose: metadata.purpose, note: metadata.note })
    }

    /// An error unless the checkpoint was made for this purpose, of the variables that `state` has.
    pub fn belongs_to(&self, path: &Path, purpose: &str, state: &State<T>) -> Result<(), Error> {
        if self.purpose != purpose {
            let what = format!("this checkpoint is for `{}`, not for `{purpose}`; choose another folder", self.purpose);
            return Err(Error::content(path, what));
        }
        let outline =
            |s: &State<T>| s.iter().map(|(name, values)| (name.to_string(), values.len())).collect::<Vec<_>>();
        if self.state.numbers() != state.numbers() || outline(&self.state) != outline(state) {
            return Err(Error::content(
                path,
                "the variables of this checkpoint are not those of the model; choose another folder",
            ));
        }
        Ok(())
    }
}

/// Checks the length of a safetensors header before it is parsed: text that becomes a tree takes many times its memory.
pub fn check_header(bytes: &[u8]) -> Result<(), String> {
    let length = bytes.first_chunk().map_or(0, |start| u64::from_le_bytes(*start));
    let there = bytes.len() as u64;
    if length > there.saturating_sub(8) {
        return Err(format!(
            "this is not a whole safetensors file: its header has {length} bytes, but the file has {there}"
        ));
    }
    TooLarge::check(length, file::TEXT).map_err(|why| format!("the header of this safetensors file {why}"))
}

/// The format comes first: a newer file may differ in everything else.
fn read_metadata(text: &str) -> Result<Metadata, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|e| format!("unreadable metadata: {e}"))?;
    let format = value.get("format").and_then(|f| f.as_u64()).ok_or("its metadata have no format version")?;
    if format != FORMAT as u64 {
        let version = value.get("version").and_then(|v| v.as_str()).unwrap_or("an unknown version");
        return Err(format!("format {format}, written by minvel {version}; this program reads format {FORMAT}"));
    }
    serde_json::from_value(value).map_err(|e| format!("unreadable metadata: {e}"))
}
