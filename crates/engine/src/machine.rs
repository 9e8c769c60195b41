//! The devices of this machine: which there are, which is meant, and the options of a program that does not say.

use crate::device::{Card, Device, DeviceError, Precision};
use crate::options::Options;
use std::str::FromStr;

impl Device {
    /// The first GPU if it can be used, else the processor.
    pub fn auto() -> Device {
        Device::Cuda(0).checked().unwrap_or(Device::Cpu)
    }

    /// The device itself if it can be used; or what is missing, and what to do.
    pub fn checked(self) -> Result<Device, DeviceError> {
        match self {
            Device::Cpu => Ok(self),
            Device::Cuda(index) => usable(index).map(|()| self),
        }
    }

    /// `MINVEL_DEVICE`, or the processor: what programs run on that do not say where. An error if there is no such device.
    pub fn from_environment() -> Result<Device, DeviceError> {
        let Ok(text) = std::env::var("MINVEL_DEVICE") else { return Ok(Device::Cpu) };
        text.parse().map_err(|why: DeviceError| DeviceError::new(why.kind(), format!("MINVEL_DEVICE: {why}")))
    }
}

impl FromStr for Device {
    type Err = DeviceError;

    /// `cpu`, `cuda`, `cuda:1`, or `auto`.
    fn from_str(text: &str) -> Result<Device, DeviceError> {
        let unknown =
            || DeviceError::unavailable(format!("unknown device `{text}`; expected auto, cpu, cuda or cuda:NUMBER"));
        match text.split_once(':') {
            None if text == "auto" => Ok(Device::auto()),
            None if text == "cpu" => Ok(Device::Cpu),
            None if text == "cuda" => Ok(Device::Cuda(0)),
            Some(("cuda", number)) => number.parse().map(Device::Cuda).map_err(|_| unknown()),
            _ => Err(unknown()),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        let device = Device::from_environment().unwrap_or_else(|why| panic!("{why}"));
        Options { replicas: 1, device, precision: Precision::F32, threads: 0, isa: None, tile: 0 }
    }
}

/// The GPUs of this machine; or why they cannot be used.
pub fn cards() -> Result<Vec<Card>, DeviceError> {
    #[cfg(feature = "cuda")]
    return crate::cuda::cards();
    #[cfg(not(feature = "cuda"))]
    Err(without())
}

#[cfg(feature = "cuda")]
use crate::cuda::usable;

#[cfg(not(feature = "cuda"))]
fn usable(_: usize) -> Result<(), DeviceError> {
    Err(without())
}

/// Why there is no GPU in this build.
#[cfg(not(feature = "cuda"))]
pub(crate) fn without() -> DeviceError {
    DeviceError::unavailable(
        "this build of minvel has no GPU support; build it with the feature `cuda`, or use the CPU",
    )
}
