//! `minvel decode`: images of codes.

use crate::Failure;
use crate::model::{Album, Place};
use clap::Args;
use minvel::data::read_codes;
use std::path::PathBuf;

/// Write the images of codes under a trained auto-encoder, as PNG files.
///
/// CODES is a table as `minvel encode` writes it (CSV, TSV, Parquet, NPY): each row is a point of the latent manifold, found by the
/// names of its columns; other columns are ignored, and without names all columns are the coordinates in order. `minvel inspect
/// MODEL` tells the names. Points that are not on the manifold are refused with their row. Images are numbered by row.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel decode runs/train-wae codes.csv --out pictures         0001.png, 0002.png, …
  minvel decode runs/train-wae codes.csv --grid all.png         one picture of all")]
pub struct Arguments {
    /// Folder of a training, or a model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Table of codes.
    #[arg(value_name = "CODES")]
    codes: PathBuf,
    /// Folder to write PNG files to, new or empty.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    album: Album,
    #[command(flatten)]
    place: Place,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let out = arguments.out.as_deref();
    arguments.album.check(out).map_err(Failure::Input)?;
    let mut codec = arguments.place.codec(&arguments.model).map_err(Failure::Input)?;
    let codes = read_codes(&arguments.codes, &*codec.model.latent).map_err(Failure::Input)?;
    let pixels = codec.decode(&codes, &arguments.place.desk()).map_err(Failure::of_work)?;
    let written = arguments.album.write(out, codec.card.image, &pixels)?;
    let images = pixels.len() / codec.pixels();
    if arguments.json {
        say!("{}", serde_json::json!({ "images": images, "written": written }));
        return Ok(());
    }
    say!("{}", if images == 1 { "1 image".to_string() } else { format!("{images} images") });
    written.iter().for_each(|path| say!("Written: {}", path.display()));
    Ok(())
}
