//! `minvel inspect`: what a model is made of.

mod network;

use crate::{Failure, model};
use clap::Args;
use minvel::density::Kind;
use minvel_lab::fitting::RunFolder;
use std::path::PathBuf;

/// Describe a model: kernels, correction and log Z of a fitted density; codes, networks and training of an auto-encoder.
#[derive(Args)]
pub struct Arguments {
    /// Folder of `minvel fit` or `minvel train`, or the model file of a training.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match model::Kind::of(&arguments.model).map_err(Failure::Input)? {
        model::Kind::Density(folder) => density(arguments, &folder),
        model::Kind::Autoencoder => network::run(&arguments.model, arguments.json),
    }
}

fn density(arguments: &Arguments, folder: &RunFolder) -> Result<(), Failure> {
    let (model, coordinates) = folder.read_model().map_err(Failure::Input)?;
    let settings = model.settings();
    if arguments.json {
        let all = serde_json::json!({
            "coordinates": coordinates, "rows": model.rows(), "centres": model.kernels().centres(), "kernels": model.kernels().families(),
            "share": model.share(), "log_z": model.log_z().value, "partition": model.log_z(), "settings": settings,
        });
        say!("{all}");
        return Ok(());
    }
    say!("{coordinates}");
    say!("p(x) = a(x) exp(−t f(x))/Z with t = {}, log Z = {}", model.share(), model.log_z().value);
    let (centres, rows) = (model.kernels().centres(), model.rows());
    let means = match model.kernels().stands_on_rows() {
        true => String::new(),
        false => format!(" (clusters of {rows} training rows, or of samples)"),
    };
    say!("a: {centres} centres{means}, kernels");
    for (k, family) in model.kernels().families().iter().enumerate() {
        let kind = match family.kind {
            Kind::Uniform => "uniform".to_string(),
            Kind::Grouped { width, .. } => {
                format!("round, width {width:.3}, about {} groups", model.kernels().kernels_of(k))
            }
            Kind::Natural { kappa } => format!("natural, κ = {kappa:.3}"),
            Kind::Fixed { width } => format!("round, width {width:.2e}"),
            Kind::Local { shape, factor } => {
                let own = model.kernels().kernels_of(k);
                let groups = if own < centres { format!(", about {own} groups") } else { String::new() };
                match model.kernels().neighbours_of(shape) {
                    Some(count) => format!("shaped by {count} neighbours, covariance × {factor}{groups}"),
                    None => format!("a mixture of {own} normal laws"),
                }
            }
        };
        say!("   {:5.1} %  {kind}", 100.0 * family.share);
    }
    let objective = serde_json::to_value(settings.objective).expect("a name");
    if model.share() == 0.0 {
        say!("f: none");
        return Ok(());
    }
    say!("f: mean of {} networks {:?}, objective {objective}", settings.seeds, settings.network.hidden);
    Ok(())
}
