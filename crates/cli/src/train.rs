//! `minvel train`: train one model by settings of one's own.

mod lenet;

use crate::{Failure, reproduce};
use clap::{Args, Subcommand};
use minvel::experiment::{self, Entry};

/// Train an auto-encoder of images with codes on a manifold, or the network that judges its digits.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel train vae --quick                               digits in two minutes
  minvel train vae --set model.latent=hyperbolic:4       codes in hyperbolic space
  minvel train vae --set model.posterior=explicit --set model.matching.kind=divergence
  minvel train wae --config mine.toml --device cuda      settings of a file, on a GPU
  minvel train vae --resume runs/train-vae               go on after Ctrl-C or a power cut
  minvel train lenet                                     the features that FID compares on MNIST
All settings with their meaning: experiments/train-vae.toml and experiments/train-wae.toml.")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// A variational auto-encoder: likelihoods, samples, paths between digits.
    Vae(reproduce::How),
    /// A Wasserstein auto-encoder: velocity, adversarial or MMD matching.
    Wae(reproduce::How),
    Lenet(lenet::Arguments),
}

/// Runs the command.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let (command, how) = match &arguments.what {
        What::Vae(how) => ("train vae", how),
        What::Wae(how) => ("train wae", how),
        What::Lenet(arguments) => return lenet::run(arguments),
    };
    let name = command.replace(' ', "-");
    let entry: &'static Entry = experiment::find(&name).map_err(Failure::Input)?;
    reproduce::perform(&[entry], &name, how, command)
}
