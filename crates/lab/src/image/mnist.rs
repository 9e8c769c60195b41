//! MNIST: 60 000 digits to learn from and 10 000 to test with, 28 × 28, from four idx files.
//!
//! **Source.** lecun1998lenet. **Conventions.** The files have their published names, with or without `.gz`, in the folder
//! the user gives or in that of the [`catalogue`]. **Checked by** tests/lab/data_images.rs.

use super::idx;
use super::images::Labelled;
use crate::catalogue;
use minvel::Error;
use std::path::{Path, PathBuf};

/// The 60 000 digits to learn from.
pub fn train(folder: Option<&Path>) -> Result<Labelled, Error> {
    read(folder, "train")
}

/// The 10 000 digits to test with.
pub fn test(folder: Option<&Path>) -> Result<Labelled, Error> {
    read(folder, "t10k")
}

/// Whether all four files are there; they are not read.
pub fn check(folder: Option<&Path>) -> Result<(), Error> {
    let folder = place(folder)?;
    for part in ["train", "t10k"] {
        file(&folder, &format!("{part}-images-idx3-ubyte"))?;
        file(&folder, &format!("{part}-labels-idx1-ubyte"))?;
    }
    Ok(())
}

/// The folder given, or that of the catalogue.
fn place(folder: Option<&Path>) -> Result<PathBuf, Error> {
    folder.map_or_else(|| catalogue::find("mnist")?.here(), |given| Ok(given.to_path_buf()))
}

fn read(folder: Option<&Path>, part: &str) -> Result<Labelled, Error> {
    let folder = place(folder)?;
    let images = idx::images(&file(&folder, &format!("{part}-images-idx3-ubyte"))?)?;
    let path = file(&folder, &format!("{part}-labels-idx1-ubyte"))?;
    let labels = idx::labels(&path)?;
    if let Some(wrong) = labels.iter().find(|label| **label > 9) {
        return Err(Error::content(&path, format!("has a label {wrong}; expected 0 to 9")));
    }
    Labelled::new(images, labels, &path)
}

/// The file of a name, in gzip or plain.
fn file(folder: &Path, name: &str) -> Result<PathBuf, Error> {
    let packed = folder.join(format!("{name}.gz"));
    let plain = folder.join(name);
    let there = [packed, plain].into_iter().find(|path| path.is_file());
    let missing = || {
        let advice = catalogue::advice(&["mnist"]);
        Error::content(folder, format!("has no file {name}.gz or {name}, which MNIST needs: {advice}"))
    };
    there.ok_or_else(missing)
}
