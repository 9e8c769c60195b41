//! `minvel inspect`: what a model is made of.

mod network;

use crate::{Failure, model};
use clap::Args;
use minvel::density::Kind;
use minvel::fit::Base;
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
            "kernels_weight": model.kernels_weight(), "tried": model.tried(),
        });
        say!("{all}");
        return Ok(());
    }
    say!("{coordinates}");
    let stacked = model.experts().iter().any(|expert| expert.weight() < 1.0);
    match stacked {
        true => say!(
            "p(x) = w a(x) + Σ wₖ pₖ(x) with w = {:.4}, error of log Z {:.1e}",
            model.kernels_weight(),
            model.log_z().value.std_error
        ),
        false => say!("p(x) = a(x) exp(−t f(x))/Z with t = {}, log Z = {}", model.share(), model.log_z().value),
    }
    let (centres, rows) = (model.kernels().centres(), model.rows());
    let means = match model.stands_on_rows() {
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
            Kind::Component { .. } => format!("a mixture of {} natural laws", model.kernels().kernels_of(k)),
            Kind::Fixed { width } => format!("round, width {width:.2e}"),
            Kind::Local { shape, factor } => {
                let own = model.kernels().kernels_of(k);
                let some = if own < centres { format!(", about {own} centres") } else { String::new() };
                let width = model.kernels().typical_width(k);
                match model.kernels().neighbours_of(shape) {
                    Some(count) => {
                        format!("shaped by {count} neighbours, covariance × {factor}, width {width:.2e}{some}")
                    }
                    None => format!("a mixture of {own} normal laws"),
                }
            }
        };
        say!("   {:5.1} %  {kind}", 100.0 * family.share);
    }
    if model.experts().is_empty() {
        say!("f: none");
    }
    for expert in model.experts() {
        let (networks, hidden) = (expert.networks(), &expert.network().hidden);
        let share = if expert.base() == Base::Anchor { format!(", t = {}", expert.share()) } else { String::new() };
        let (weight, log_z) = (100.0 * expert.weight(), expert.log_z());
        say!(
            "   {weight:5.1} %  {}: mean of {networks} networks {hidden:?}{share}, log Z = {} ({})",
            expert.name(),
            log_z.value,
            log_z.method
        );
    }
    if !model.tried().is_empty() {
        say!("validation rows, each alone (nats): NLL, gain over the kernels, weight");
    }
    for tried in model.tried() {
        say!("   {}  {}  {:5.1} %  {}", tried.validation_nll, tried.gain, 100.0 * tried.weight, tried.name);
    }
    Ok(())
}
