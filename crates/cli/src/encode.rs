//! `minvel encode`: codes of images.

use crate::Failure;
use crate::model::Place;
use clap::Args;
use minvel::Error;
use minvel::autoencoder::{Codec, Reading};
use minvel_lab::image::Framed;
use minvel_lab::image::folder::Framing;
use minvel_lab::table::{Column, check_name, code_table, write_table};
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// Encode images with a trained auto-encoder, and write their codes as a table.
///
/// MODEL is the folder of `minvel train`, or a file models/NAME.safetensors of a training or of `minvel reproduce`. IMAGES is a
/// folder of PNG and JPEG files, one such file, an idx file, or a data set such as mnist:test. Pictures are cropped and scaled as
/// in training.
///
/// Each row is the code of one image: the file name, then the coordinates of a point of the latent manifold (z1, … in Rⁿ; unit1,
/// … of a unit vector; angle1, … in radians; ball1, … in the Poincaré ball; qx, qy, qz, qw of a rotation). A .npy file
/// contains the coordinates only.
///
/// A Wasserstein auto-encoder has one code per image. In a variational one, the code is a sample of the posterior, determined by
/// the seed and the row; --mean writes the mean of an explicit posterior instead. With a Bernoulli likelihood, grey
/// pixels are sampled as black or white by the seed, as in training.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel encode runs/train-wae photos --out codes.csv           one row per picture
  minvel encode runs/train-vae mnist:test --mean --out z.npy    posterior means, coordinates only
  minvel encode runs/train-vae cat.png --draws 100 --out z.csv  100 posterior samples of a picture
  minvel decode runs/train-wae codes.csv --out pictures         back to pictures")]
pub struct Arguments {
    /// Folder of `minvel train`, or a model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Folder of pictures, a picture, an idx file, or a data set such as mnist:test.
    #[arg(value_name = "IMAGES")]
    images: String,
    /// Output file: .csv, .tsv (also .gz), .parquet or .npy.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Posterior samples per image; more than one adds a column `draw`.
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "mean")]
    draws: NonZero<u32>,
    /// Write posterior means instead of samples.
    #[arg(long)]
    mean: bool,
    /// Random seed [default: that of the training, as in its figures].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    place: Place,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    check_name(&arguments.out).map_err(Failure::Input)?;
    let mut codec = arguments.place.codec(&arguments.model).map_err(Failure::Input)?;
    let framing = Framing { crop: codec.card.crop, side: codec.card.image[0] };
    let (channels, threads) = (codec.card.image[2], arguments.place.context().threads());
    let framed = Framed::read(&arguments.images, framing, channels, threads).map_err(Failure::Input)?;
    let columns = arguments.columns(&mut codec, &framed).map_err(Failure::Input)?;
    write_table(&arguments.out, &columns).map_err(Failure::Work)?;
    for file in framed.skipped.iter().take(10) {
        note!("warning: skipped {}, which {}", file.path.display(), file.why);
    }
    let (images, skipped) = (framed.names.len(), framed.skipped.len());
    if skipped > 10 {
        note!("warning: {skipped} files were skipped");
    }
    if arguments.json {
        let all = serde_json::json!({
            "images": images, "skipped": framed.skipped, "rows": columns[0].values.len(),
            "latent": codec.card.settings.latent, "out": arguments.out,
        });
        say!("{all}");
        return Ok(());
    }
    let of = if images == 1 { "1 image".to_string() } else { format!("{images} images") };
    say!("Codes of {of} on {}", codec.card.settings.latent);
    say!("Written: {}", arguments.out.display());
    Ok(())
}

impl Arguments {
    /// File, draw and coordinates of each row, all draws of an image together.
    fn columns(&self, codec: &mut Codec, framed: &Framed) -> Result<Vec<Column>, Error> {
        let (seed, context) = (self.seed.unwrap_or(codec.card.seed), self.place.context());
        let draws = self.draws.get() as usize;
        let readings: Vec<Reading> =
            if self.mean { vec![Reading::Mean] } else { (0..self.draws.get()).map(Reading::Draw).collect() };
        let sets = readings.into_iter().map(|reading| codec.encode(&framed.pixels, reading, seed, &context));
        let sets = sets.collect::<Result<Vec<_>, _>>()?;
        let m = codec.model.latent.ambient();
        let mut codes = Vec::with_capacity(sets.len() * framed.names.len() * m);
        for k in 0..framed.names.len() {
            sets.iter().for_each(|set| codes.extend_from_slice(&set[k * m..][..m]));
        }
        let mut columns = vec![];
        if !is_npy(&self.out) {
            let mut files = Column::named("file");
            framed.names.iter().for_each(|name| (0..draws).for_each(|_| files.push_odd(name.clone())));
            columns.push(files);
            if draws > 1 {
                let numbers = (0..framed.names.len() * draws).map(|k| (k % draws + 1) as f64).collect();
                columns.push(Column::numbers("draw", numbers));
            }
        }
        columns.extend(code_table(&*codec.model.latent, &codes));
        Ok(columns)
    }
}

fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy"))
}
