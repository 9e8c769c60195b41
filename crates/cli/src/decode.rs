//! `minvel decode`: images of codes.

use crate::Failure;
use crate::model::{Album, Place};
use clap::Args;
use minvel_lab::table::read_codes;
use std::path::PathBuf;

/// Decode codes into images with a trained auto-encoder, and write them as PNG files.
///
/// CODES is a table as written by `minvel encode` (CSV, TSV, Parquet, NPY). Each row is a point of the latent manifold. Coordinates
/// are found by column name (`minvel inspect MODEL` lists the names) and other columns are ignored; in a file without names, all
/// columns are coordinates, in order. Points off the manifold are an error that names the row. Images are numbered by row.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel decode runs/train-wae codes.csv --out pictures         0001.png, 0002.png, …
  minvel decode runs/train-wae codes.csv --grid all.png         all images in one picture")]
pub struct Arguments {
    /// Folder of `minvel train`, or a model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Table of codes.
    #[arg(value_name = "CODES")]
    codes: PathBuf,
    /// Output folder for PNG files, new or empty.
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
    let pixels = codec.decode(&codes, &arguments.place.context()).map_err(Failure::of_work)?;
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
