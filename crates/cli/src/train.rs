//! `minvel train`: train one model by settings of one's own.

mod lenet;

use crate::{Failure, reproduce};
use clap::{Args, Subcommand};
use minvel::{Error, file};
use minvel_lab::experiment::{Config, Entry};
use minvel_lab::paper::{Choices, Chosen};
use minvel_lab::{index, paper};
use std::path::Path;

/// Train an auto-encoder with codes on a manifold, or the LeNet whose features FID compares on MNIST.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel train wae photos                                your pictures, with suitable settings
  minvel train vae --quick                               digits in two minutes
  minvel train vae --set model.latent=hyperbolic:4       codes in hyperbolic space
  minvel train vae --set model.posterior=explicit --set model.matching.kind=divergence
  minvel train wae --config mine.toml --device cuda      settings from a file, on a GPU
  minvel train vae --resume runs/train-vae               continue after Ctrl-C or a power failure
  minvel train lenet                                     LeNet, for FID on MNIST
Use a trained model with minvel encode, decode, sample and inspect.
All settings: minvel train vae --help and minvel train wae --help.")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

/// The settings of an experiment as its file has them.
fn settings(name: &str) -> &'static str {
    index::find(name).expect("it is in the list").settings
}

#[derive(Subcommand)]
enum What {
    /// Train a variational auto-encoder: likelihoods, samples, paths between images.
    ///
    /// The decoder maps codes on a manifold to images, the encoder maps an image to a posterior over codes. The posterior is
    /// kept close to the prior by an energy trained at minimum velocity (implicit posteriors) or by the KL divergence
    /// (explicit posteriors). The output folder holds report.html, the figures and models/model.safetensors.
    ///
    /// For a folder of pictures, the image size, likelihood, networks and training settings are chosen to suit the pictures
    /// and printed; override any of them with --set.
    #[command(term_width = 0)] // the settings can be copied to a file
    #[command(after_long_help = concat!(
        "Examples:\n",
        "  minvel train vae photos                                   your folder of PNG and JPEG files\n",
        "  minvel train vae --quick                                  digits in two minutes\n",
        "  minvel train vae --quick --set model.latent=sphere:2      with a map of the whole latent sphere\n",
        "  minvel train vae --set model.latent=hyperbolic:4          another manifold for the codes\n",
        "  minvel train vae --set model.posterior=explicit --set model.matching.kind=divergence\n",
        "  minvel train vae --seeds 10 --device cuda                 ten concurrent trainings on a GPU\n\n",
        "Settings, for --set KEY=VALUE (in section [model], KEY is model.NAME) or for a --config file:\n\n"
    ).to_string() + settings("train-vae"))]
    Vae(Training),
    /// Train a Wasserstein auto-encoder: velocity, adversarial or MMD matching.
    ///
    /// Each image has one code, and the distribution of all codes is matched to the prior. The output folder holds
    /// report.html, the figures and models/model.safetensors.
    ///
    /// For a folder of pictures, the image size, likelihood, networks and training settings are chosen to suit the pictures
    /// and printed; override any of them with --set.
    #[command(term_width = 0)] // the settings can be copied to a file
    #[command(after_long_help = concat!(
        "Examples:\n",
        "  minvel train wae photos                                   your folder of PNG and JPEG files\n",
        "  minvel train wae photos --set frame.side=64               at another size\n",
        "  minvel train wae --quick                                  digits in two minutes\n",
        "  minvel train wae --set model.matching.kind=adversarial    a critic instead of an energy\n",
        "  minvel train wae --set model.latent=torus:4               another manifold for the codes\n",
        "  minvel train wae cifar10 --device cuda                    a public data set of photographs\n\n",
        "Settings, for --set KEY=VALUE (in section [model], KEY is model.NAME) or for a --config file:\n\n"
    ).to_string() + settings("train-wae"))]
    Wae(Training),
    Lenet(lenet::Arguments),
}

/// What to train on, and how.
#[derive(Args)]
struct Training {
    /// Folder of pictures (PNG, JPEG, searched recursively), folder of MNIST's files, mnist or cifar10 [default: mnist].
    #[arg(value_name = "PICTURES", conflicts_with = "resume")]
    pictures: Option<String>,
    #[command(flatten)]
    how: reproduce::How,
}

/// Runs the command.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let (command, training) = match arguments.what {
        What::Vae(training) => ("train vae", training),
        What::Wae(training) => ("train wae", training),
        What::Lenet(arguments) => return lenet::run(&arguments),
    };
    let name = command.replace(' ', "-");
    let entry: &'static Entry = index::find(&name).map_err(Failure::Input)?;
    let how =
        if training.how.resume.is_some() { training.how } else { suited(training, entry).map_err(Failure::Input)? };
    reproduce::perform(&[entry], &name, &how, 1, command)
}

/// With the settings that suit the pictures, for those that the user does not state.
fn suited(training: Training, entry: &Entry) -> Result<reproduce::How, Error> {
    let Training { pictures, mut how } = training;
    let key_of = |assignment: &String| assignment.split('=').next().unwrap_or_default().trim().to_string();
    if let Some(pictures) = pictures {
        if how.set.iter().any(|assignment| key_of(assignment) == "data") {
            return Err(Error::config(
                "the pictures are given twice, by PICTURES and by --set data=…; remove one of them",
            ));
        }
        let quoted = serde_json::to_string(&pictures).expect("a name is plain data");
        how.set.insert(0, format!("data={quoted}"));
    }
    let mut stated: Vec<String> = how.set.iter().map(key_of).collect();
    if let Some(path) = &how.config {
        stated.extend(Config::parse(&path.display().to_string(), &file::read_text(Path::new(path))?)?.keys());
    }
    if how.quick {
        stated.push("model.iterations".into());
    }
    let config = reproduce::resolved(entry, &how, &[entry.name])?;
    // a side of 0 leaves it to the pictures
    let open = config.json()["frame"]["side"] == 0;
    let fixed = |key: &str| stated.iter().any(|own| own == key) && !(key == "frame.side" && open);
    if let Some(choices) = paper::choices(&config, &fixed)? {
        print(&choices);
        let chosen = choices.chosen.iter().map(|c| format!("{}={}", c.key, c.value));
        how.set.extend(chosen); // after a `frame.side=0` that leaves it open
    }
    Ok(how)
}

/// What was chosen and why, each as it can be overridden.
fn print(choices: &Choices) {
    say!("{}.", choices.about);
    if choices.chosen.is_empty() {
        return;
    }
    say!("Settings chosen for these pictures; override any with --set:");
    let line = |c: &Chosen| format!("--set {}={}", c.key, c.value.replace('"', ""));
    let widest = choices.chosen.iter().map(|c| line(c).chars().count()).max().unwrap_or(0);
    for c in &choices.chosen {
        say!("  {:<widest$}  {}", line(c), c.why);
    }
}
