//! `--device` of commands whose work consists of units: one device, or all GPUs of this machine.

use crate::place::check_device;
use minvel::{Device, Error};
use std::str::FromStr;

/// Where units are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Devices {
    /// All on one device.
    One(Device),
    /// On every GPU, as on processes that share a folder: a GPU begins with its own part of the units, and goes on with what is left.
    AllCards,
}

impl FromStr for Devices {
    type Err = String;

    /// `cuda:all`, or what names one device.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "cuda:all" {
            return Ok(Devices::AllCards);
        }
        text.parse().map(Devices::One).map_err(|why: minvel::DeviceError| match why.to_string() {
            why if why.starts_with("unknown device") => format!("{why}, or cuda:all"),
            why => why,
        })
    }
}

impl Devices {
    /// The devices, all of which can be used; an error where there is none.
    pub fn usable(self) -> Result<Vec<Device>, Error> {
        let devices = match self {
            Devices::One(device) => vec![device],
            Devices::AllCards => {
                let cards = minvel::cards().map_err(|why| Error::config(format!("cuda:all: {why} (--device cpu)")))?;
                cards.iter().map(|card| Device::Cuda(card.index)).collect()
            }
        };
        if devices.is_empty() {
            return Err(Error::config("cuda:all: this machine has no GPU (--device cpu)"));
        }
        devices.iter().try_for_each(|device| check_device(*device))?;
        Ok(devices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cards_are_named_by_a_word_and_others_as_before() {
        assert_eq!("cuda:all".parse(), Ok(Devices::AllCards));
        assert_eq!("cuda:1".parse(), Ok(Devices::One(Device::Cuda(1))));
        assert_eq!("cpu".parse(), Ok(Devices::One(Device::Cpu)));
        let why = "cuda:every".parse::<Devices>().unwrap_err();
        assert_eq!(why, "unknown device `cuda:every`; expected auto, cpu, cuda or cuda:NUMBER, or cuda:all");
    }
}
