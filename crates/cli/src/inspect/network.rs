//! What a trained auto-encoder is made of.

use crate::Failure;
use minvel::autoencoder::{Codec, Likelihood, ModelCard, Posterior};
use minvel::data::code_columns;
use std::path::Path;

/// Describes the first of the trainings side by side; they differ in their seed alone.
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
    say!("auto-encoder of images of {width} × {height}, {colour}, trained by minvel {version}: {}", path.display());
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
            format!(", {} trainings side by side (--replica)", codec.replicas)
        } else {
            String::new()
        }
    );
    say!("data        {data}, {images} training images");
    let cut = crop.map_or("the largest square".to_string(), |n| format!("a square of {n} × {n}"));
    say!("pictures    {cut} of the middle, scaled to {width} × {height}");
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
        _ => "the product of those of its factors",
    }
}

fn posterior(posterior: Posterior) -> String {
    match posterior {
        Posterior::Point => "point: one code for each image".into(),
        Posterior::Implicit { noise } => format!("implicit: a draw by {noise} noise inputs, without a density"),
        Posterior::Gaussian => "normal with independent coordinates: a draw, or its mean by --mean".into(),
        Posterior::VonMisesFisher { .. } => "von Mises–Fisher: a draw, or its mean direction by --mean".into(),
    }
}

fn likelihood(likelihood: Likelihood) -> String {
    match likelihood {
        Likelihood::Bernoulli => "Bernoulli: pixels are black or white, drawn by their intensity".into(),
        Likelihood::Gaussian { deviation } => format!("normal, σ = {deviation} of an intensity between 0 and 1"),
        Likelihood::Dequantised { deviation } => {
            format!("normal of dequantised bytes, σ = {deviation} between −1 and 1")
        }
    }
}
