//! `minvel sample`: new points of a fitted density, or new images of a trained auto-encoder.

use crate::Failure;
use crate::model::{Album, Kind, Place};
use crate::progress::Bars;
use crate::target::{Resumption, Target};
use clap::Args;
use minvel::Error;
use minvel_lab::catalogue::sha256;
use minvel_lab::fitting::RunFolder;
use minvel_lab::stream::Drawing;
use std::path::PathBuf;

/// Sample from a model: points from a fitted density, or images from a trained auto-encoder.
///
/// From a density: a table of points in the units and layout of its data. Rows of the kernels are exact samples. Rows of a
/// learnt energy are ends of independent Metropolis–Hastings chains: 20 samples of the kernels (or of a wide law) are
/// proposed, and accepted or rejected for the energy. An axis is given by its end in the upper half.
///
/// From an auto-encoder: images (mean pixels) for codes sampled from the prior, as PNG files. The default seed is that of the
/// training, whose first 64 images are those of the figure in its report.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel sample runs/quakes --out points.csv                    1000 points from a fitted density
  minvel sample runs/quakes -n 100 --out - | minvel score runs/quakes - --out -
  minvel sample runs/train-wae -n 64 --out pictures             64 images from an auto-encoder
  minvel sample runs/train-wae -n 256 --grid all.png --seed 2   256 other images in one picture")]
pub struct Arguments {
    /// Folder of `minvel fit` or `minvel train`, or the model file of a training.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Number of samples [default: 1000 points or 64 images].
    #[arg(short = 'n', long, value_name = "N")]
    number: Option<usize>,
    /// Output: for points a file (.csv, .tsv, also .gz, .parquet, .npy; - for CSV on standard output), for images a new or
    /// empty folder.
    #[arg(long, value_name = "FILE|DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    album: Album,
    /// Random seed [default: 1 for points; for images, that of the training].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    resumption: Resumption,
    #[command(flatten)]
    place: Place,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match Kind::of(&arguments.model).map_err(Failure::Input)? {
        Kind::Density(folder) => points(arguments, &folder),
        Kind::Autoencoder => images(arguments),
    }
}

fn points(arguments: &Arguments, folder: &RunFolder) -> Result<(), Failure> {
    let Some(out) = &arguments.out else {
        return Err(Failure::Input(Error::config("missing output; give --out FILE")));
    };
    let target = Target { out: out.clone() };
    arguments.place.is_for_densities().map_err(Failure::Input)?;
    arguments.album.is_for_densities().map_err(Failure::Input)?;
    target.check(arguments.json).map_err(Failure::Input)?;
    let (model, coordinates) = folder.read_model().map_err(Failure::Input)?;
    let bars = Bars::new("sample");
    let context = arguments.place.threads.context(&bars);
    let number = arguments.number.unwrap_or(1000);
    let drawing = Drawing {
        model: &model,
        model_sha256: &sha256(&folder.model()).map_err(Failure::Input)?,
        coordinates: &coordinates,
        number,
        seed: arguments.seed.unwrap_or(1),
        out,
        resume: arguments.resumption.resume,
        save_every: arguments.resumption.save_every(),
    };
    Resumption::advise(!target.is_standard());
    let drawn = drawing.perform(&context)?;
    bars.finish();
    match arguments.json {
        true => {
            let all = serde_json::json!({
                "rows": number, "acceptance": drawn.acceptance, "moved": drawn.moved, "out": out,
            });
            say!("{all}");
        }
        false => {
            let how = match model.rows_of_draws(1) {
                0 => "independent draws of the kernels, exact".to_string(),
                _ => format!("acceptance {:.2}, {:.1} % of the chains moved", drawn.acceptance, 100.0 * drawn.moved),
            };
            target.say(&format!("{number} points; {how}"));
        }
    }
    Ok(())
}

fn images(arguments: &Arguments) -> Result<(), Failure> {
    let out = arguments.out.as_deref();
    if arguments.resumption.resume {
        return Err(Failure::Input(Error::config("--resume is for points of a fitted density, not for images")));
    }
    let number = arguments.number.unwrap_or(64);
    if number == 0 {
        return Err(Failure::Input(Error::config("-n must be at least 1")));
    }
    arguments.album.check(out).map_err(Failure::Input)?;
    let mut codec = arguments.place.codec(&arguments.model).map_err(Failure::Input)?;
    let seed = arguments.seed.unwrap_or(codec.card.seed);
    let pixels = codec.sample(number, seed, &arguments.place.context()).map_err(Failure::of_work)?;
    let written = arguments.album.write(out, codec.card.image, &pixels)?;
    if arguments.json {
        say!("{}", serde_json::json!({ "images": number, "seed": seed, "written": written }));
        return Ok(());
    }
    say!("{number} images, seed {seed}");
    written.iter().for_each(|path| say!("Written: {}", path.display()));
    Ok(())
}
