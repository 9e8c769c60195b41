//! `minvel train lenet`: the network whose features FID compares on MNIST.

use crate::progress::Bars;
use crate::threads::Threads;
use crate::{Failure, place};
use clap::Args;
use minvel::estimate::format;
use minvel::train::Context;
use minvel::{Device, Error, file};
use minvel_lab::fid::{FeatureMap, Lenet, Schooling};
use minvel_lab::image::mnist;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Train LeNet on MNIST, whose features FID compares on digits.
///
/// Settings are those of the paper's code: 55000 digits, the first 5000 held out, batches of 64, ten epochs. On a CPU the
/// same seed gives the same weights, bit for bit. After an interruption, the same command resumes the training.
#[derive(Args)]
pub struct Arguments {
    /// Output file [default: weights/lenet.safetensors in the user's cache folder, where FID looks for it].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Folder of the four MNIST files [default: see `minvel data path mnist`].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Random seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of epochs.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    epochs: u32,
    /// Device: auto (a GPU if available), cpu, cuda or cuda:N; see `minvel devices`.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    device: Device,
    #[command(flatten)]
    threads: Threads,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    place::check_device(arguments.device).map_err(Failure::Input)?;
    let nowhere = || Error::config("no cache folder, because HOME is not set; choose a file with --out");
    let out = arguments.out.clone().or_else(Lenet::home).ok_or_else(nowhere).map_err(Failure::Input)?;
    let folder = arguments.data.as_deref();
    let stop = crate::stop::on_signal();
    let (train, test) = (mnist::train(folder).map_err(Failure::Input)?, mnist::test(folder).map_err(Failure::Input)?);
    let schooling = Schooling { seed: arguments.seed, epochs: arguments.epochs, ..Schooling::default() };
    let place = workplace(&out);
    file::create_folder(&place).map_err(Failure::Work)?;
    crate::stop::advise("interrupted; run the same command again to resume");
    let bars = Bars::new("LeNet on MNIST");
    let purpose = format!("{schooling:?} on {}", train.images.sha256);
    let mut context = Context::new(&bars, stop, &place, &purpose);
    (context.threads, context.device) = (arguments.threads.number, arguments.device);
    let outcome = Lenet::train(&train, &test, &schooling, &context);
    bars.finish();
    let network = outcome.map_err(|error| match error {
        Error::Device(_) => {
            Failure::Halted(error, "run the same command again to resume, if necessary on another --device".into())
        }
        error => Failure::of_work(error),
    })?;
    network.write(&out).map_err(Failure::Work)?;
    std::fs::remove_dir_all(&place).map_err(|e| Failure::Work(Error::file(&place, "remove", e)))?;
    let (origin, seconds) = (&network.origin, context.seconds());
    match arguments.json {
        true => say!("{}", json!({ "out": out, "sha256": network.sha256(), "seconds": seconds, "origin": origin })),
        false => {
            let percent = |share: f64| format!("{:.2} %", 100.0 * share);
            let (test, held_out) = (percent(origin.test_error), percent(origin.held_out_error));
            say!("test error {test}, held-out error {held_out} after {} steps", origin.steps);
            say!("{}. Weights: {}", format::duration(seconds), out.display());
        }
    }
    Ok(())
}

/// Folder of the checkpoints, beside the file.
fn workplace(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".training");
    PathBuf::from(name)
}
