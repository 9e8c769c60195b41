//! Which model a command is to use, and where.

use crate::threads::Threads;
use crate::{Failure, place};
use clap::Args;
use minvel::autoencoder::Codec;
use minvel::train::Context;
use minvel::{Device, Error, file};
use minvel_lab::fitting::RunFolder;
use minvel_lab::image::png_file;
use minvel_lab::plot::{ImageGrid, Plot};
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// Columns of a picture of many images, as in the figures of a training.
const COLUMNS: usize = 16;

/// Which training, and where it is to compute.
#[derive(Args)]
pub struct Place {
    /// Which of the concurrent trainings (`train --seeds`), from 1 [default: 1, as in the figures].
    #[arg(long, value_name = "K")]
    replica: Option<NonZero<usize>>,
    /// Device: auto (a GPU if available), cpu, cuda or cuda:N [default: auto].
    #[arg(long, value_name = "DEVICE")]
    device: Option<Device>,
    #[command(flatten)]
    pub threads: Threads,
}

impl Place {
    /// The auto-encoder of a run folder or model file.
    pub fn codec(&self, model: &Path) -> Result<Codec, Error> {
        place::check_device(self.device())?;
        Codec::read(&Codec::locate(model)?, self.replica.map_or(0, |k| k.get() - 1))
    }

    fn device(&self) -> Device {
        self.device.unwrap_or_else(|| "auto".parse().expect("a known word"))
    }

    /// Where programs run.
    pub fn context(&self) -> Context<'static> {
        let mut context = Context::bare();
        (context.threads, context.device) = (self.threads.number, self.device());
        context
    }

    /// An error if a fitted density is asked for what only auto-encoders have.
    pub fn is_for_densities(&self) -> Result<(), Error> {
        match (self.replica, self.device) {
            (None, None) => Ok(()),
            _ => {
                Err(Error::config("--replica and --device apply to auto-encoders only; this model is a fitted density"))
            }
        }
    }
}

/// What a folder or file holds.
pub enum Kind {
    /// What `minvel fit` wrote.
    Density(RunFolder),
    /// What `minvel train` or `minvel reproduce` wrote.
    Autoencoder,
}

impl Kind {
    /// By the files that are there; a folder that is neither is taken for a fit, whose reader says what is missing.
    pub fn of(model: &Path) -> Result<Kind, Error> {
        let has = |name: &str| model.join(name).exists();
        if model.is_file() && model.file_name().is_some_and(|name| name == "model.safetensors") {
            let folder = model.parent().unwrap_or(Path::new("")).to_path_buf();
            let fit = folder.join("summary.json").exists() || folder.join("config.toml").exists();
            return Ok(if fit { Kind::Density(RunFolder(folder)) } else { Kind::Autoencoder });
        }
        if model.is_file() {
            return Ok(Kind::Autoencoder);
        }
        if has("model.safetensors") && !model.ends_with("models") || has("config.toml") {
            return Ok(Kind::Density(RunFolder(model.to_path_buf())));
        }
        if has("models") || has("run.json") || model.ends_with("models") {
            return Ok(Kind::Autoencoder);
        }
        let what = match model.is_dir() {
            true => "contains no model; expected a fit (model.safetensors) or a training (models/*.safetensors)",
            false => "not found; expected the folder of a fit or of a training",
        };
        Err(Error::content(model, what))
    }
}

/// Where images go: a folder of PNG files, one picture of all, or both.
#[derive(Args)]
pub struct Album {
    /// Write all images into one PNG file, 16 per row.
    #[arg(long, value_name = "FILE")]
    grid: Option<PathBuf>,
}

impl Album {
    /// An error if a fitted density is asked for pictures.
    pub fn is_for_densities(&self) -> Result<(), Error> {
        match &self.grid {
            None => Ok(()),
            Some(_) => Err(Error::config("--grid applies to auto-encoders only; this model is a fitted density")),
        }
    }

    /// An error if the images cannot be written there: asked before work that ends in them.
    pub fn check(&self, out: Option<&Path>) -> Result<(), Error> {
        if out.is_none() && self.grid.is_none() {
            return Err(Error::config("missing output; give --out DIR, --grid FILE.png, or both"));
        }
        if let Some(grid) = &self.grid {
            if grid.extension().is_none_or(|e| !e.eq_ignore_ascii_case("png")) {
                return Err(Error::config(format!("--grid {}: unsupported file type; expected .png", grid.display())));
            }
            file::check_place(grid)?;
        }
        let Some(out) = out else { return Ok(()) };
        if out.is_file() {
            return Err(Error::content(out, "is a file; expected a new or empty folder for the pictures"));
        }
        let table = ["csv", "tsv", "npy", "parquet", "gz"].iter().any(|e| out.extension().is_some_and(|own| own == *e));
        if table && !out.is_dir() {
            let what = "an auto-encoder writes pictures, not a table; expected a folder";
            return Err(Error::content(out, what));
        }
        match out.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            true => Err(Error::content(out, "the folder is not empty; choose another")),
            false => Ok(()),
        }
    }

    /// Writes images in bytes, numbered from 1; tells where.
    pub fn write(&self, out: Option<&Path>, image: [usize; 3], pixels: &[u8]) -> Result<Vec<PathBuf>, Failure> {
        let mut written = vec![];
        if let Some(out) = out {
            file::create_folder(out).map_err(Failure::Work)?;
            let digits = (pixels.len() / image.iter().product::<usize>()).to_string().len().max(4);
            for (k, own) in pixels.chunks(image.iter().product()).enumerate() {
                let path = out.join(format!("{:0digits$}.png", k + 1));
                file::write(&path, &png_file(image, own)).map_err(Failure::Work)?;
            }
            written.push(out.to_path_buf());
        }
        if let Some(grid) = &self.grid {
            let plot = Plot::Grid(ImageGrid::new(image, COLUMNS, pixels.to_vec()));
            file::write(grid, &plot.png(2.0)).map_err(Failure::Work)?;
            written.push(grid.clone());
        }
        Ok(written)
    }
}
