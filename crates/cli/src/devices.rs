//! `minvel devices`: what programs can run on.

use crate::Failure;
use clap::Args;
use minvel::{Card, Device};

/// List available devices, as names for --device.
#[derive(Args)]
pub struct Arguments {}

/// Runs the command.
pub fn run(_: &Arguments) -> Result<(), Failure> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    say!("cpu     {cores} threads");
    match minvel::cards() {
        Ok(cards) if cards.is_empty() => say!("cuda    no NVIDIA GPU found"),
        Ok(cards) => cards.iter().for_each(|card| say!("{}", line(card))),
        Err(why) => say!("cuda    unavailable: {why}"),
    }
    Ok(())
}

fn line(card: &Card) -> String {
    let Card { index, name, memory, capability: (major, minor), driver } = card;
    let facts =
        format!("{} GiB, compute capability {major}.{minor}, driver for CUDA {}.{}", memory >> 30, driver.0, driver.1);
    let trouble = Device::Cuda(*index).checked().err().map_or(String::new(), |why| format!("; unusable: {why}"));
    format!("cuda:{index}  {name}, {facts}{trouble}")
}
