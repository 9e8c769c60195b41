//! The description of a trained auto-encoder.

use crate::Failure;
use minvel::autoencoder::{Codec, Likelihood, ModelCard, Posterior};
use minvel_lab::table::code_columns;
use std::path::Path;

/// Describes the first of the concurrent trainings, which differ in their seed only.
pub fn run(model: &Path, json: bool) -> Result<(), Failure> {
    let path = Codec::locate(model).map_err(Failure::Input)?;
    let codec = Codec::read(&path, 0).map_err(Failure::Input)?;
    let columns = code_columns(&*codec.model.latent);
    let [encoder, decoder, matching] = codec.parameters();
    if json {
        let all = serde_json::json!({
            "file": path, "card": codec.card, "steps": codec.steps, "replicas": codec.replicas, "columns": columns,
            "parameters": { "encoder": encoder, "decoder": decoder, "matching": matching },
        });
        say!("{all}");
        return Ok(());
    }
    let ModelCard { version, settings, image: [height, width, channels], crop, data, images, seed } = &codec.card;
    let colour = if *channels == 1 { "grey" } else { "in colour" };
    say!("auto-encoder of {width} × {height} images, {colour}, trained by minvel {version}: {}", path.display());
    say!("codes       {}: {}", settings.latent, listed(&columns));
    say!("prior       {}", prior(&codec));
    say!("posterior   {}", posterior(codec.model.encoder.posterior));
    say!("likelihood  {}", likelihood(codec.model.decoder.likelihood));
    let filters = if settings.filters.is_empty() { String::new() } else { format!(" filters {:?},", settings.filters) };
    say!("networks    {},{filters} hidden {:?}, {}", settings.network, settings.hidden, settings.activation);
    say!("parameters  encoder {encoder}, decoder {decoder}, {} matching {matching}", settings.matching.kind);
    say!(
        "training    {} steps of {} images, rate {}, matching weight {}, seed {seed}{}",
        codec.steps,
        settings.batch,
        settings.rate,
        settings.matching.weight,
        if codec.replicas > 1 {
            format!(", {} concurrent trainings (choose with --replica)", codec.replicas)
        } else {
            String::new()
        }
    );
    say!("data        {data}, {images} training images");
    let cut = crop.map_or("the largest centred square".to_string(), |n| format!("the centred {n} × {n} square"));
    say!("pictures    {cut}, scaled to {width} × {height}");
    Ok(())
}

fn listed(columns: &[String]) -> String {
    match columns {
        [first, .., last] if columns.len() > 4 => format!("{} columns {first} … {last}", columns.len()),
        _ => format!("columns {}", columns.join(", ")),
    }
}

fn prior(codec: &Codec) -> &'static str {
    use minvel::manifold::Space;
    match codec.model.latent.spaces().as_deref() {
        Some([Space::Euclidean(_)]) => "normal",
        Some([Space::Hyperbolic(_)]) => "wrapped normal",
        Some([_]) => "uniform",
        _ => "product of the priors of its factors",
    }
}

fn posterior(posterior: Posterior) -> String {
    match posterior {
        Posterior::Point => "point: one code per image".into(),
        Posterior::Implicit { noise } => format!("implicit: samples from {noise} noise inputs, no density"),
        Posterior::Gaussian => "diagonal normal: a sample, or the mean with --mean".into(),
        Posterior::VonMisesFisher { .. } => "von Mises–Fisher: a sample, or the mean direction with --mean".into(),
    }
}

fn likelihood(likelihood: Likelihood) -> String {
    match likelihood {
        Likelihood::Bernoulli => "Bernoulli: pixels are black or white, sampled by intensity".into(),
        Likelihood::Gaussian { deviation } => format!("normal, σ = {deviation}, intensities in [0, 1]"),
        Likelihood::Dequantised { deviation } => {
            format!("normal on dequantised bytes, σ = {deviation}, intensities in [−1, 1]")
        }
    }
}
