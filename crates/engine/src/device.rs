//! Where programs run, and what can go wrong there.

use std::fmt;
use std::str::FromStr;

/// A device that programs run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    /// The processor.
    Cpu,
    /// An NVIDIA GPU, by its number.
    Cuda(usize),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Device::Cpu => write!(f, "cpu"),
            Device::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

/// How matrix products of f32 programs are computed on a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// To the accuracy of f32.
    #[default]
    F32,
    /// With factors rounded to 11 bits, sums in f32.
    Tf32,
}

impl FromStr for Precision {
    type Err = DeviceError;

    /// `f32` or `tf32`.
    fn from_str(text: &str) -> Result<Precision, DeviceError> {
        match text {
            "f32" => Ok(Precision::F32),
            "tf32" => Ok(Precision::Tf32),
            _ => Err(DeviceError::unavailable(format!("unknown precision `{text}`; expected f32 or tf32"))),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Precision::F32 => "f32",
            Precision::Tf32 => "tf32",
        })
    }
}

/// What a device could not do: what happened, and what to do.
///
/// The CPU is a device too: it can run out of memory, and its programs can meet an index outside a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceError {
    kind: DeviceErrorKind,
    what: String,
}

/// The kinds of [`DeviceError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceErrorKind {
    /// There is no such device, or something that it needs is not installed.
    Unavailable,
    /// The device has no memory left.
    OutOfMemory,
    /// The device failed while it worked: it may be lost to this process.
    Failed,
    /// An index of a gather or scatter was outside its table.
    Index,
}

impl DeviceError {
    pub(crate) fn new(kind: DeviceErrorKind, what: impl Into<String>) -> Self {
        DeviceError { kind, what: what.into() }
    }

    pub(crate) fn unavailable(what: impl Into<String>) -> Self {
        Self::new(DeviceErrorKind::Unavailable, what)
    }

    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self::new(DeviceErrorKind::Failed, what)
    }

    /// The CPU's memory does not suffice for so many bytes (none: more than can be counted).
    pub(crate) fn no_room(bytes: Option<usize>) -> Self {
        let size =
            bytes.map_or("more memory than can be addressed".to_string(), |b| format!("{} MB", b.div_ceil(1 << 20)));
        let what = format!("out of memory: the program asks for {size}; use fewer replicas or rows");
        Self::new(DeviceErrorKind::OutOfMemory, what)
    }

    /// What kind of trouble it is.
    pub fn kind(&self) -> DeviceErrorKind {
        self.kind
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for DeviceError {}

/// An index outside its table, as devices note it: the length of the table and the bits of the index as f32. Of several the
/// greatest note remains, so that it does not depend on who comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadIndex(pub u64);

impl BadIndex {
    pub fn new(index: f32, len: usize) -> Self {
        BadIndex((len as u64) << 32 | u64::from(index.to_bits()))
    }

    /// Nothing, if the note is empty: no table has length 0.
    pub fn check(self) -> Result<(), DeviceError> {
        let (index, len) = (f32::from_bits(self.0 as u32), self.0 >> 32);
        if len == 0 {
            return Ok(());
        }
        Err(DeviceError::new(
            DeviceErrorKind::Index,
            format!("gather: index {index} is outside 0..{len}; check the inputs that contain or produce indices"),
        ))
    }
}

/// An NVIDIA GPU of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its number, as in `cuda:0`.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Bytes of memory.
    pub memory: usize,
    /// Compute capability, (9, 0) say.
    pub capability: (i32, i32),
    /// CUDA version of the driver, (13, 0) say.
    pub driver: (i32, i32),
}
