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
All settings with their meaning: minvel train vae --help and minvel train wae --help.")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// A variational auto-encoder: likelihoods, samples, paths between digits.
    ///
    /// It learns to draw digits from codes on a manifold, and to tell the law of the code from the digit; what keeps codes
    /// near the prior is an energy learnt at minimum velocity, or a divergence where the posterior has a density. The folder
    /// gets report.html, the figures, and models/model.safetensors.
    #[command(term_width = 0)] // the settings can be copied to a file
    #[command(after_long_help = concat!(
        "Examples:\n",
        "  minvel train vae --quick                                  digits in two minutes\n",
        "  minvel train vae --quick --set model.latent=sphere:2      with a map of the whole latent sphere\n",
        "  minvel train vae --set model.latent=hyperbolic:4          another manifold for the codes\n",
        "  minvel train vae --set model.posterior=explicit --set model.matching.kind=divergence\n",
        "  minvel train vae --seeds 10 --device cuda                 ten trainings side by side on a GPU\n\n",
        "Settings, as --set KEY=VALUE (keys of [model] are model.KEY) or as a file for --config:\n\n",
        include_str!("../../../experiments/train-vae.toml")
    ))]
    Vae(reproduce::How),
    /// A Wasserstein auto-encoder: velocity, adversarial or MMD matching.
    ///
    /// One code for each digit; the codes of all digits together are pulled to the prior. The folder gets report.html, the
    /// figures, and models/model.safetensors.
    #[command(term_width = 0)] // the settings can be copied to a file
    #[command(after_long_help = concat!(
        "Examples:\n",
        "  minvel train wae --quick                                  digits in two minutes\n",
        "  minvel train wae --set model.matching.kind=adversarial    a critic instead of an energy\n",
        "  minvel train wae --set model.latent=torus:4               another manifold for the codes\n",
        "  minvel train wae --set data=photos --set frame.side=32 --set model.network=convolutional \\\n",
        "      --set model.filters=[64,128,256] --set model.hidden=[512] --set model.activation=relu \\\n",
        "      --set model.likelihood=dequantised --set model.rate=1e-4  a folder of pictures of your own\n\n",
        "Settings, as --set KEY=VALUE (keys of [model] are model.KEY) or as a file for --config:\n\n",
        include_str!("../../../experiments/train-wae.toml")
    ))]
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
    reproduce::perform(&[entry], &name, how, 1, command)
}
